//! `retry`, `cancel`, `pause` and `resume` of `restante relay` and `restante webhook`: change entries or targets of a queue.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::{QueueKind, ids_arg, target_arg};
use crate::error::CommandError;
use crate::{CommandContext, Task};

/// The maximum number of ids in one request.
const MAX_IDS_PER_REQUEST: usize = 1000;

pub(super) fn retry_command(queue: &QueueKind) -> Command {
    let command = Command::new("retry").about(format!("Sends entries of the {} queue now", queue.group));
    with_entries(command.long_about(format!(
        "Sends entries of the {} queue now: those that wait for their next attempt, and those that have failed or were \
         cancelled. {}",
        queue.group, queue.help.retry
    )))
}

pub(super) fn cancel_command(queue: &QueueKind) -> Command {
    let command = Command::new("cancel").about(format!("Cancels entries of the {} queue", queue.group));
    with_entries(command.long_about(format!(
        "Cancels entries of the {} queue that have not been sent yet. {}",
        queue.group, queue.help.cancel
    )))
}

pub(super) fn pause_command(queue: &QueueKind) -> Command {
    let command = Command::new("pause").about(format!("Pauses {} targets", queue.group));
    with_targets(command.long_about(format!(
        "Pauses {} targets: their entries wait until the targets are resumed, also after a restart of the server.",
        queue.group
    )))
}

pub(super) fn resume_command(queue: &QueueKind) -> Command {
    with_targets(Command::new("resume").about(format!("Resumes {} targets that were paused", queue.group)))
}

pub(super) fn parse(queue: &'static QueueKind, kind: ChangeKind, matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Change { queue, kind, selection: Selection::parse(matches) })
}

/// Adds the arguments that select entries.
fn with_entries(command: Command) -> Command {
    command
        .arg(ids_arg().num_args(1..).help("The ids of the entries"))
        .arg(target_arg().help("All entries of this target"))
        .arg(all_arg().help("All entries"))
        .group(ArgGroup::new("selection").args(["ids", "target", "all"]).required(true))
}

/// Adds the arguments that select targets.
fn with_targets(command: Command) -> Command {
    command
        .arg(target_arg().help("The target with this name"))
        .arg(all_arg().help("All targets"))
        .group(ArgGroup::new("selection").args(["target", "all"]).required(true))
}

fn all_arg() -> Arg {
    Arg::new("all").long("all").action(ArgAction::SetTrue)
}

/// The selected entries or targets.
enum Selection {
    Ids(Vec<String>),
    Target(String),
    All,
}

impl Selection {
    fn parse(matches: &ArgMatches) -> Self {
        let mut ids: Vec<String> = matches.try_get_many("ids").ok().flatten().into_iter().flatten().cloned().collect();
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

/// What is done with the entries or targets.
#[derive(Clone, Copy)]
pub(super) enum ChangeKind {
    Retry,
    Cancel,
    Pause,
    Resume,
}

struct Change {
    queue: &'static QueueKind,
    kind: ChangeKind,
    selection: Selection,
}

impl Task for Change {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let (path, member, verb, [one, many]) = match self.kind {
            ChangeKind::Retry => ("retry", "retried", "Retrying", ["entry", "entries"]),
            ChangeKind::Cancel => ("cancel", "cancelled", "Cancelled", ["entry", "entries"]),
            ChangeKind::Pause => ("pause", "paused", "Paused", ["target", "targets"]),
            ChangeKind::Resume => ("resume", "resumed", "Resumed", ["target", "targets"]),
        };
        let mut changed = 0;
        for body in self.selection.bodies() {
            let response = context.server.post(&["api", "v2", self.queue.path, path], &body)?;
            changed += response[member].as_u64().unwrap_or_default();
        }
        if context.json {
            context.style.write_json(context.out, &json!({ member: changed }))?;
        } else if context.style.is_terminal() {
            writeln!(context.out, "{verb} {changed} {}.", if changed == 1 { one } else { many })?;
        }
        self.result(changed)
    }
}

impl Change {
    /// Returns an error if fewer entries or targets were changed than requested, or none.
    fn result(&self, changed: u64) -> Result<(), CommandError> {
        let requested = match &self.selection {
            Selection::Ids(ids) => u64::try_from(ids.len()).unwrap_or(u64::MAX),
            Selection::Target(_) | Selection::All => 1,
        };
        let missing = requested.saturating_sub(changed);
        let message = match (&self.selection, self.kind, missing) {
            (_, _, 0) => return Ok(()),
            (Selection::Ids(_), ChangeKind::Retry, 1) => {
                "One of the entries does not exist, is being sent, or was delivered.".to_owned()
            }
            (Selection::Ids(_), ChangeKind::Retry, _) => {
                format!("{missing} of the entries do not exist, are being sent, or were delivered.")
            }
            (Selection::Ids(_), _, 1) => "One of the entries does not exist, or does not wait.".to_owned(),
            (Selection::Ids(_), _, _) => {
                format!("{missing} of the entries do not exist, or do not wait.")
            }
            (_, ChangeKind::Retry, _) => "There is no entry to retry.".to_owned(),
            (_, ChangeKind::Cancel, _) => "There is no entry to cancel.".to_owned(),
            (_, ChangeKind::Pause | ChangeKind::Resume, _) => "There is no such target.".to_owned(),
        };
        Err(CommandError::not_found(message))
    }
}
