//! `restante relay` and `restante webhook`: show the targets of a server, and show and change the entries of its queues. A
//! message is added to the relay queue by `restante release`.

mod change;
mod list;
pub(super) mod relay;
mod show;
mod targets;
mod webhook;

use std::io;

use clap::{Arg, ArgMatches, Command};
use jiff::Timestamp;
use restante_api_types::{QueueEntryCounts, QueueEntryProgress};
use restante_mail::terminal_text;
use serde_json::Value;

use self::change::ChangeKind;
use super::{parse_segment, with_common_options};
use crate::error::CommandError;
use crate::options::Options;
use crate::output::{Column, Table, TextStyle, format_ago};
use crate::{CommandContext, Task};

/// A queue of the server: its names, and how its targets and entries are printed.
struct QueueKind {
    /// The name of the group of commands.
    group: &'static str,
    about: &'static str,
    /// The segment of its paths in the API.
    path: &'static str,
    /// Whether its targets can be paused.
    can_pause: bool,
    help: HelpTexts,
    /// The error if the server has no targets.
    no_targets: &'static str,
    print_targets: Print,
    print_entries: Print,
    /// Prints the document of an entry.
    print_entry: Print,
}

/// The texts that describe the details of a queue.
struct HelpTexts {
    /// The columns of the targets, and what else a user must know of them.
    targets: &'static str,
    /// The columns of the list of entries.
    list: &'static str,
    /// What is shown of an entry.
    show: &'static str,
    retry: &'static str,
    cancel: &'static str,
}

/// Prints a document, or an array of documents.
type Print = fn(&mut CommandContext<'_>, &Value) -> Result<(), CommandError>;

/// In the order of the help text.
const QUEUES: [&QueueKind; 2] = [&relay::RELAY, &webhook::WEBHOOK];

/// A command of the group: its definition, and the parser of its arguments.
type Subcommand = (fn(&QueueKind) -> Command, fn(&'static QueueKind, &ArgMatches) -> Box<dyn Task>);

/// In the order of the help text. The last two are those of queues whose targets can be paused.
const SUBCOMMANDS: [Subcommand; 7] = [
    (targets::command, targets::parse),
    (list::command, list::parse),
    (show::command, show::parse),
    (change::retry_command, |queue, matches| change::parse(queue, ChangeKind::Retry, matches)),
    (change::cancel_command, |queue, matches| change::parse(queue, ChangeKind::Cancel, matches)),
    (change::pause_command, |queue, matches| change::parse(queue, ChangeKind::Pause, matches)),
    (change::resume_command, |queue, matches| change::parse(queue, ChangeKind::Resume, matches)),
];

pub(super) fn commands() -> impl Iterator<Item = Command> {
    QUEUES.into_iter().map(|queue| {
        Command::new(queue.group)
            .about(queue.about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
            .subcommands(queue.subcommands().map(|(command, _)| with_common_options(command(queue))))
    })
}

/// Parses a command of a group. Returns `None` if there is no group with this name.
pub(super) fn parse(group: &str, matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let queue = QUEUES.into_iter().find(|queue| queue.group == group)?;
    let (name, subcommand) = matches.subcommand()?;
    let (_, parse) = queue.subcommands().find(|(command, _)| command(queue).get_name() == name)?;
    Some((parse(queue, subcommand), Options::parse(subcommand)))
}

impl QueueKind {
    fn subcommands(&self) -> impl Iterator<Item = Subcommand> {
        SUBCOMMANDS.into_iter().take(if self.can_pause { 7 } else { 5 })
    }
}

/// Returns the argument `--target NAME`.
pub(super) fn target_arg() -> Arg {
    Arg::new("target").long("target").value_name("NAME")
}

/// Returns the argument for the ids of entries.
fn ids_arg() -> Arg {
    Arg::new("ids").value_name("ID").value_parser(parse_segment).help("The id of an entry")
}

/// Returns a time: relative on a terminal, otherwise as the server writes it.
fn display_time(context: &CommandContext<'_>, time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(at) if context.style.is_terminal() => format_ago(at, context.now),
        _ => time.to_owned(),
    }
}

/// Returns what separates the values in a cell.
fn separator(context: &CommandContext<'_>) -> &'static str {
    if context.style.is_terminal() { ", " } else { "," }
}

/// A row of the table of targets.
struct TargetRow {
    name: String,
    address: String,
    state: &'static str,
    entries: QueueEntryCounts,
    /// What is sent to the target.
    rules: String,
    error: Option<String>,
}

/// Prints targets as a table.
fn print_target_rows(
    context: &mut CommandContext<'_>,
    [address, rules]: [&'static str; 2],
    rows: impl IntoIterator<Item = TargetRow>,
) -> io::Result<()> {
    let count = |name| Column::new(name).right_aligned();
    let mut table = Table::new([
        Column::new("NAME").styled(TextStyle::Id),
        Column::new(address).shrinkable(),
        Column::new("STATE"),
        count("QUEUED"),
        count("SENDING"),
        count("DELIVERED"),
        count("FAILED"),
        count("CANCELLED"),
        Column::new(rules).shrinkable(),
        Column::new("ERROR").shrinkable(),
    ]);
    for TargetRow { name, address, state, entries, rules, error } in rows {
        table.add_row([
            name,
            address,
            state.to_owned(),
            entries.queued.to_string(),
            entries.sending.to_string(),
            entries.delivered.to_string(),
            entries.failed.to_string(),
            entries.cancelled.to_string(),
            rules,
            error.unwrap_or_default(),
        ]);
    }
    context.style.write_table(context.out, &table)
}

/// Prints the fields of an entry that are not empty, then its attempts.
fn print_fields(
    context: &mut CommandContext<'_>,
    fields: &[(&str, &str)],
    progress: &QueueEntryProgress<'_>,
) -> io::Result<()> {
    let attempts = progress.attempts.to_string();
    let attempts: [(&str, &str); 6] = [
        ("Created", &progress.created),
        ("Expires", &progress.expires),
        ("Attempts", &attempts),
        ("Last attempt", progress.last_attempt.as_deref().unwrap_or_default()),
        ("Next attempt", progress.next_attempt.as_deref().unwrap_or_default()),
        ("Last reply", &progress.last_reply),
    ];
    for (name, value) in fields.iter().chain(&attempts).filter(|(_, value)| !value.is_empty()) {
        let name = context.style.paint(TextStyle::Head, &format!("{name}:"));
        writeln!(context.out, "{name} {}", terminal_text::escape_line(value))?;
    }
    Ok(())
}
