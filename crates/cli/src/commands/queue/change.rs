//! `retry`, `cancel`, `pause` and `resume` of `restante relay` and `restante webhook`: change entries or targets of a queue.

use clap::Args;
use serde_json::{Value, json};

use super::super::parse_segment;
use super::QueueKind;
use crate::CommandContext;
use crate::error::CommandError;

/// The maximum number of ids in one request.
const MAX_IDS_PER_REQUEST: usize = 1000;

// The arguments that select entries. A doc comment would replace the description of the command.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct EntryArgs {
    /// The ids of the entries
    #[arg(value_name = "ID", value_parser = parse_segment)]
    ids: Vec<String>,
    /// All entries of this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// All entries
    #[arg(long)]
    all: bool,
}

// The arguments that select targets.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct TargetArgs {
    /// The target with this name
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// All targets
    #[arg(long)]
    all: bool,
}

/// The selected entries or targets.
pub(super) enum Selection {
    Ids(Vec<String>),
    Target(String),
    All,
}

impl EntryArgs {
    pub(super) fn selection(&self) -> Selection {
        let mut ids = self.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        match &self.target {
            Some(target) => Selection::Target(target.clone()),
            None if self.all => Selection::All,
            None => Selection::Ids(ids),
        }
    }
}

impl TargetArgs {
    pub(super) fn selection(&self) -> Selection {
        if self.all { Selection::All } else { Selection::Target(self.target.clone().unwrap_or_default()) }
    }
}

impl Selection {
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

impl ChangeKind {
    /// Changes the selected entries or targets of a queue.
    pub(super) fn apply(
        self,
        queue: &QueueKind,
        selection: &Selection,
        context: &mut CommandContext<'_>,
    ) -> Result<(), CommandError> {
        let (path, member, verb, [one, many]) = match self {
            Self::Retry => ("retry", "retried", "Retrying", ["entry", "entries"]),
            Self::Cancel => ("cancel", "cancelled", "Cancelled", ["entry", "entries"]),
            Self::Pause => ("pause", "paused", "Paused", ["target", "targets"]),
            Self::Resume => ("resume", "resumed", "Resumed", ["target", "targets"]),
        };
        let mut changed = 0;
        for body in selection.bodies() {
            let response = context.server.post(&["api", "v2", queue.path, path], &body)?;
            changed += response[member].as_u64().unwrap_or_default();
        }
        if context.json {
            context.style.write_json(context.out, &json!({ member: changed }))?;
        } else if context.style.is_terminal() {
            writeln!(context.out, "{verb} {changed} {}.", if changed == 1 { one } else { many })?;
        }
        self.result(selection, changed)
    }

    /// Returns an error if fewer entries or targets were changed than requested, or none.
    fn result(self, selection: &Selection, changed: u64) -> Result<(), CommandError> {
        let requested = match selection {
            Selection::Ids(ids) => u64::try_from(ids.len()).unwrap_or(u64::MAX),
            Selection::Target(_) | Selection::All => 1,
        };
        let missing = requested.saturating_sub(changed);
        let message = match (selection, self, missing) {
            (_, _, 0) => return Ok(()),
            (Selection::Ids(_), Self::Retry, 1) => {
                "One of the entries does not exist, is being sent, or was delivered.".to_owned()
            }
            (Selection::Ids(_), Self::Retry, _) => {
                format!("{missing} of the entries do not exist, are being sent, or were delivered.")
            }
            (Selection::Ids(_), _, 1) => "One of the entries does not exist, or does not wait.".to_owned(),
            (Selection::Ids(_), _, _) => {
                format!("{missing} of the entries do not exist, or do not wait.")
            }
            (_, Self::Retry, _) => "There is no entry to retry.".to_owned(),
            (_, Self::Cancel, _) => "There is no entry to cancel.".to_owned(),
            (_, Self::Pause | Self::Resume, _) => "There is no such target.".to_owned(),
        };
        Err(CommandError::not_found(message))
    }
}
