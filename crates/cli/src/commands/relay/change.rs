//! `restante relay retry` and `restante relay cancel`: change entries of the relay queue.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::{ids_arg, target_arg};
use crate::error::CommandError;
use crate::{CommandContext, Task};

/// The maximum number of ids in one request.
const MAX_IDS_PER_REQUEST: usize = 1000;

pub(super) fn retry_command() -> Command {
    let command = Command::new("retry").about("Sends entries of the relay queue now").long_about(
        "Sends entries of the relay queue now: those that wait for their next attempt, and those that have failed or were \
         cancelled. The message is not sent again to recipients for which it was accepted.",
    );
    with_selection(command)
}

pub(super) fn parse_retry(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Change { kind: Kind::Retry, selection: Selection::parse(matches) })
}

pub(super) fn cancel_command() -> Command {
    let command = Command::new("cancel").about("Cancels entries of the relay queue").long_about(
        "Cancels entries of the relay queue that have not been sent yet. A message that is being sent may still be \
         accepted.",
    );
    with_selection(command)
}

pub(super) fn parse_cancel(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Change { kind: Kind::Cancel, selection: Selection::parse(matches) })
}

/// Adds the arguments that select entries.
fn with_selection(command: Command) -> Command {
    command
        .arg(ids_arg().num_args(1..).help("The ids of the entries"))
        .arg(target_arg().help("All entries of this target"))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("All entries"))
        .group(ArgGroup::new("selection").args(["ids", "target", "all"]).required(true))
}

/// The selected entries.
enum Selection {
    Ids(Vec<String>),
    Target(String),
    All,
}

impl Selection {
    fn parse(matches: &ArgMatches) -> Self {
        let mut ids: Vec<String> = matches.get_many("ids").into_iter().flatten().cloned().collect();
        ids.sort_unstable();
        ids.dedup();
        match matches.get_one::<String>("target") {
            Some(target) => Self::Target(target.clone()),
            None if ids.is_empty() => Self::All,
            None => Self::Ids(ids),
        }
    }

    /// Returns the bodies of the requests.
    fn bodies(&self) -> Vec<Value> {
        match self {
            Self::Ids(ids) => ids.chunks(MAX_IDS_PER_REQUEST).map(|ids| json!({ "ids": ids })).collect(),
            Self::Target(target) => vec![json!({ "target": target })],
            Self::All => vec![json!({ "all": true })],
        }
    }
}

/// What is done with the entries.
#[derive(Clone, Copy)]
enum Kind {
    Retry,
    Cancel,
}

struct Change {
    kind: Kind,
    selection: Selection,
}

impl Task for Change {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let (path, member, verb) = match self.kind {
            Kind::Retry => ("retry", "retried", "Retrying"),
            Kind::Cancel => ("cancel", "cancelled", "Cancelled"),
        };
        let mut changed = 0;
        for body in self.selection.bodies() {
            let response = context.server.post(&["api", "v2", "relay", path], &body)?;
            changed += response[member].as_u64().unwrap_or_default();
        }
        if context.json {
            context.style.write_json(context.out, &json!({ member: changed }))?;
        } else if context.style.is_terminal() {
            let entries = if changed == 1 { "1 entry".to_owned() } else { format!("{changed} entries") };
            writeln!(context.out, "{verb} {entries}.")?;
        }
        self.result(changed)
    }
}

impl Change {
    /// Returns an error if fewer entries were changed than requested, or none.
    fn result(&self, changed: u64) -> Result<(), CommandError> {
        let requested = match &self.selection {
            Selection::Ids(ids) => u64::try_from(ids.len()).unwrap_or(u64::MAX),
            Selection::Target(_) | Selection::All => 1,
        };
        let missing = requested.saturating_sub(changed);
        let message = match (&self.selection, self.kind, missing) {
            (_, _, 0) => return Ok(()),
            (Selection::Ids(_), Kind::Retry, 1) => {
                "One of the entries does not exist, is being sent, or was delivered.".to_owned()
            }
            (Selection::Ids(_), Kind::Retry, _) => {
                format!("{missing} of the entries do not exist, are being sent, or were delivered.")
            }
            (Selection::Ids(_), Kind::Cancel, 1) => "One of the entries does not exist, or does not wait.".to_owned(),
            (Selection::Ids(_), Kind::Cancel, _) => {
                format!("{missing} of the entries do not exist, or do not wait.")
            }
            (_, Kind::Retry, _) => "There is no entry to retry.".to_owned(),
            (_, Kind::Cancel, _) => "There is no entry to cancel.".to_owned(),
        };
        Err(CommandError::not_found(message))
    }
}
