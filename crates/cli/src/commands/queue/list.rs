//! `restante relay list` and `restante webhook list`: list entries of a queue.

use clap::Args;
use clap::builder::PossibleValuesParser;
use restante_api_types::QueueEntryState;
use serde_json::{Value, json};

use super::super::{limit_parser, parse_segment};
use super::QueueKind;
use crate::error::CommandError;
use crate::server::{ListedItems, PagedList};
use crate::{CommandContext, print_note};

/// The number of entries that are listed, unless a limit is given.
const DEFAULT_LIMIT: usize = 50;
/// The maximum number of entries per request.
const PAGE_SIZE: usize = 1000;

// The arguments of `list`. A doc comment would replace the description of the command.
#[derive(Args)]
pub(super) struct ListArgs {
    /// Only entries in this state
    #[arg(long, value_parser = PossibleValuesParser::new(QueueEntryState::ALL.map(QueueEntryState::name)))]
    state: Option<String>,
    /// Only entries of this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Only entries of the message with this id
    #[arg(long, value_name = "ID", value_parser = parse_segment)]
    message: Option<String>,
    /// Only the newest N entries [default: 50]
    #[arg(long, value_name = "N", value_parser = limit_parser())]
    limit: Option<usize>,
}

impl ListArgs {
    pub(super) fn run(&self, queue: &QueueKind, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let path = &["api", "v2", queue.path, "entries"];
        let list = PagedList { path, member: "entries", cursor: "before", page_size: PAGE_SIZE };
        let given = [("message", &self.message), ("target", &self.target), ("state", &self.state)];
        let conditions: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
        let found = context.server.list(&list, &conditions, self.limit.unwrap_or(DEFAULT_LIMIT))?;
        let ListedItems { items: mut entries, next, .. } = found;
        let (is_empty, has_more) = (entries.is_empty(), !next.is_null());
        if context.json {
            context.style.write_json(context.out, &json!({ "entries": entries, "next": next }))?;
        } else if !is_empty {
            entries.reverse();
            (queue.print_entries)(context, &Value::Array(entries))?;
            if has_more && self.limit.is_none() && context.style.is_terminal() {
                context.out.flush()?;
                print_note(&format!("Only the newest {DEFAULT_LIMIT} entries are listed: add --limit N for more."));
            }
        }
        match (is_empty, conditions.is_empty()) {
            (false, _) => Ok(()),
            (true, true) => Err(CommandError::not_found(format!("The {} queue is empty.", queue.group))),
            (true, false) => Err(CommandError::not_found("No entry matches.")),
        }
    }
}
