//! `restante relay` and `restante webhook`: show the targets of a server, and show and change the entries of its queues. A
//! message is added to the relay queue by `restante release`.

mod change;
mod list;
pub(super) mod relay;
mod webhook;

use std::io;

use clap::builder::StyledStr;
use clap::{ArgMatches, Command, FromArgMatches as _, Subcommand};
use jiff::Timestamp;
use restante_api_types::{QueueEntryCounts, QueueEntryProgress};
use restante_mail::terminal_text;
use serde_json::Value;

use self::change::{ChangeKind, EntryArgs, TargetArgs};
use self::list::ListArgs;
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
    /// The commands, and the details in their help texts.
    commands: &'static [(&'static str, &'static str)],
    /// The segment of its paths in the API.
    path: &'static str,
    /// The error if the server has no targets.
    no_targets: &'static str,
    print_targets: Print,
    print_entries: Print,
    /// Prints the document of an entry.
    print_entry: Print,
}

/// Prints a document, or an array of documents.
type Print = fn(&mut CommandContext<'_>, &Value) -> Result<(), CommandError>;

/// In the order of the help text.
const QUEUES: [&QueueKind; 2] = [&relay::RELAY, &webhook::WEBHOOK];

/// The commands of all queues. In their help texts, `{queue}` is the name of the queue, and `{details}` what differs
/// between the queues.
#[derive(Subcommand)]
enum QueueCommand {
    /// Lists the {queue} targets of a server.
    #[command(
        long_about = "Lists the {queue} targets of a server, with the number of entries in each state. In a pipe, the \
            columns are separated by tabs: {details}"
    )]
    Targets,
    /// Lists entries of the {queue} queue.
    #[command(
        long_about = "Lists the newest entries of the {queue} queue, oldest first. In a pipe, the columns are separated by \
            tabs: {details} With --json, the newest entry comes first, as in the REST API."
    )]
    List(ListArgs),
    /// Shows an entry of the {queue} queue.
    #[command(long_about = "Shows an entry of the {queue} queue: {details}")]
    Show {
        /// The id of an entry
        #[arg(value_parser = parse_segment)]
        id: String,
    },
    /// Sends entries of the {queue} queue now.
    #[command(
        long_about = "Sends entries of the {queue} queue now: those that wait for their next attempt, and those that have \
            failed or were cancelled. {details}"
    )]
    Retry(EntryArgs),
    /// Cancels entries of the {queue} queue.
    #[command(long_about = "Cancels entries of the {queue} queue that have not been sent yet. {details}")]
    Cancel(EntryArgs),
    /// Pauses {queue} targets.
    #[command(
        long_about = "Pauses {queue} targets: their entries wait until the targets are resumed, also after a restart of \
            the server."
    )]
    Pause(TargetArgs),
    /// Resumes {queue} targets that were paused.
    Resume(TargetArgs),
}

pub(super) fn commands() -> impl Iterator<Item = Command> {
    QUEUES.into_iter().map(|queue| {
        let all = QueueCommand::augment_subcommands(Command::new(queue.group));
        Command::new(queue.group)
            .about(queue.about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
            .subcommands(all.get_subcommands().filter_map(|command| queue.describe(command)).map(with_common_options))
    })
}

/// Parses a command of a group. Returns `None` if there is no group with this name.
pub(super) fn parse(group: &str, matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let queue = QUEUES.into_iter().find(|queue| queue.group == group)?;
    let command = QueueCommand::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let (_, subcommand) = matches.subcommand()?;
    Some((Box::new(QueueTask { queue, command }), Options::parse(subcommand)))
}

impl QueueKind {
    /// Returns a command with the help texts of this queue, or `None` if the queue does not have it.
    fn describe(&self, command: &Command) -> Option<Command> {
        let (_, details) = self.commands.iter().find(|(name, _)| *name == command.get_name())?;
        let fill_in = |text: &StyledStr| text.to_string().replace("{queue}", self.group).replace("{details}", details);
        let described = command.clone().about(fill_in(command.get_about()?));
        Some(match command.get_long_about() {
            Some(text) => described.long_about(fill_in(text)),
            None => described,
        })
    }

    fn list_targets(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let response = context.server.get(&["api", "v2", self.path], &[])?;
        let is_empty = response["targets"].as_array().is_none_or(Vec::is_empty);
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if !is_empty {
            (self.print_targets)(context, &response["targets"])?;
        }
        if is_empty { Err(CommandError::not_found(self.no_targets)) } else { Ok(()) }
    }

    fn show_entry(&self, context: &mut CommandContext<'_>, id: &str) -> Result<(), CommandError> {
        let response = context.server.get(&["api", "v2", self.path, "entries", id], &[])?;
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        (self.print_entry)(context, &response)
    }
}

/// A command of a queue.
struct QueueTask {
    queue: &'static QueueKind,
    command: QueueCommand,
}

impl Task for QueueTask {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let queue = self.queue;
        let (kind, selection) = match &self.command {
            QueueCommand::Targets => return queue.list_targets(context),
            QueueCommand::List(list) => return list.run(queue, context),
            QueueCommand::Show { id } => return queue.show_entry(context, id),
            QueueCommand::Retry(entries) => (ChangeKind::Retry, entries.selection()),
            QueueCommand::Cancel(entries) => (ChangeKind::Cancel, entries.selection()),
            QueueCommand::Pause(targets) => (ChangeKind::Pause, targets.selection()),
            QueueCommand::Resume(targets) => (ChangeKind::Resume, targets.selection()),
        };
        kind.apply(queue, &selection, context)
    }
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
