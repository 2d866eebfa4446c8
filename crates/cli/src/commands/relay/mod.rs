//! `restante relay`: shows the relay targets of a server, and shows and changes the entries of its relay queue. A
//! message is added to the queue by `restante release`.

mod change;
mod list;
mod show;
mod targets;

use std::io;

use clap::{Arg, ArgMatches, Command};
use jiff::Timestamp;
use restante_api_types::RelayEntry;

use super::{parse_segment, with_common_options};
use crate::options::Options;
use crate::output::{Column, Table, TextStyle, format_ago};
use crate::{CommandContext, Task};

/// The name of the group of commands.
pub(super) const RELAY: &str = "relay";

/// A command of the group: its definition, and the parser of its arguments.
type Subcommand = (fn() -> Command, fn(&ArgMatches) -> Box<dyn Task>);

/// In the order of the help text.
const SUBCOMMANDS: [Subcommand; 5] = [
    (targets::command, targets::parse),
    (list::command, list::parse),
    (show::command, show::parse),
    (change::retry_command, change::parse_retry),
    (change::cancel_command, change::parse_cancel),
];

pub(super) fn command() -> Command {
    Command::new(RELAY)
        .about("Shows relay targets, and shows and changes the relay queue")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(SUBCOMMANDS.map(|(command, _)| with_common_options(command())))
}

pub(super) fn parse(matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let (name, subcommand) = matches.subcommand()?;
    let (_, parse) = SUBCOMMANDS.iter().find(|(command, _)| command().get_name() == name)?;
    Some((parse(subcommand), Options::parse(subcommand)))
}

/// Returns the argument `--target NAME`.
pub(super) fn target_arg() -> Arg {
    Arg::new("target").long("target").value_name("NAME")
}

/// Returns the path of an entry.
pub(super) fn entry_path(id: &str) -> [&str; 5] {
    ["api", "v2", "relay", "entries", id]
}

/// Prints entries as a table.
pub(super) fn print_entries(context: &mut CommandContext<'_>, entries: &[RelayEntry<'_>]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("STATE"),
        Column::new("TARGET"),
        Column::new("MESSAGE").styled(TextStyle::Id),
        Column::new("TO").shrinkable(),
        Column::new("TRIES").right_aligned().styled(TextStyle::Faint),
        Column::new("REPLY").shrinkable(),
    ]);
    let separator = if context.style.is_terminal() { ", " } else { "," };
    for entry in entries {
        let recipients: Vec<&str> = entry.recipients.iter().map(|recipient| &*recipient.address).collect();
        table.add_row([
            entry.id.to_string(),
            display_time(context, &entry.created),
            entry.state.name().to_owned(),
            entry.target.to_string(),
            entry.message.to_string(),
            recipients.join(separator),
            entry.attempts.to_string(),
            entry.last_reply.to_string(),
        ]);
    }
    context.style.write_table(context.out, &table)
}

/// Returns a time: relative on a terminal, otherwise as the server writes it.
fn display_time(context: &CommandContext<'_>, time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(at) if context.style.is_terminal() => format_ago(at, context.now),
        _ => time.to_owned(),
    }
}

/// Returns the argument for the ids of entries.
fn ids_arg() -> Arg {
    Arg::new("ids").value_name("ID").value_parser(parse_segment).help("The id of an entry")
}
