//! `restante relay list` and `restante webhook list`: list entries of a queue.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use restante_api_types::QueueEntryState;
use serde_json::{Value, json};

use super::super::parse_segment;
use super::{QueueKind, target_arg};
use crate::error::CommandError;
use crate::server::Server;
use crate::{CommandContext, Task, print_note};

/// The number of entries that are listed, unless a limit is given.
const DEFAULT_LIMIT: usize = 50;
/// The maximum number of entries per request.
const PAGE_SIZE: usize = 1000;

pub(super) fn command(queue: &QueueKind) -> Command {
    Command::new("list")
        .about(format!("Lists entries of the {} queue", queue.group))
        .long_about(format!(
            "Lists the newest entries of the {} queue, oldest first. In a pipe, the columns are separated by tabs: {} With \
             --json, the newest entry comes first, as in the REST API.",
            queue.group, queue.help.list
        ))
        .arg(
            Arg::new("state")
                .long("state")
                .value_name("STATE")
                .value_parser(PossibleValuesParser::new(QueueEntryState::ALL.map(QueueEntryState::name)))
                .help("Only entries in this state"),
        )
        .arg(target_arg().help("Only entries of this target"))
        .arg(
            Arg::new("message")
                .long("message")
                .value_name("ID")
                .value_parser(parse_segment)
                .help("Only entries of the message with this id"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .help("Only the newest N entries [default: 50]"),
        )
}

pub(super) fn parse(queue: &'static QueueKind, matches: &ArgMatches) -> Box<dyn Task> {
    let condition = |name: &'static str| Some((name, matches.get_one::<String>(name)?.clone()));
    Box::new(ListEntries {
        queue,
        conditions: ["message", "target", "state"].into_iter().filter_map(condition).collect(),
        limit: matches.get_one::<u32>("limit").and_then(|limit| usize::try_from(*limit).ok()),
    })
}

struct ListEntries {
    queue: &'static QueueKind,
    conditions: Vec<(&'static str, String)>,
    limit: Option<usize>,
}

impl Task for ListEntries {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let (mut entries, next) = self.fetch_newest(&context.server, self.limit.unwrap_or(DEFAULT_LIMIT))?;
        let (is_empty, has_more) = (entries.is_empty(), !next.is_null());
        if context.json {
            context.style.write_json(context.out, &json!({ "entries": entries, "next": next }))?;
        } else if !is_empty {
            entries.reverse();
            (self.queue.print_entries)(context, &Value::Array(entries))?;
            if has_more && self.limit.is_none() && context.style.is_terminal() {
                context.out.flush()?;
                print_note(&format!("Only the newest {DEFAULT_LIMIT} entries are listed: add --limit N for more."));
            }
        }
        match (is_empty, self.conditions.is_empty()) {
            (false, _) => Ok(()),
            (true, true) => Err(CommandError::not_found(format!("The {} queue is empty.", self.queue.group))),
            (true, false) => Err(CommandError::not_found("No entry matches.")),
        }
    }
}

impl ListEntries {
    /// Returns the `limit` newest entries, page by page, and where an older page begins.
    fn fetch_newest(&self, server: &Server, limit: usize) -> Result<(Vec<Value>, Value), CommandError> {
        let (mut entries, mut next) = (Vec::new(), Value::Null);
        loop {
            let page_size = (limit - entries.len()).min(PAGE_SIZE).to_string();
            let mut parameters = vec![("limit", page_size.as_str())];
            parameters.extend(self.conditions.iter().map(|(name, value)| (*name, value.as_str())));
            parameters.extend(next.as_str().map(|next| ("before", next)));
            let path = &["api", "v2", self.queue.path, "entries"];
            let mut page = server.get(path, &parameters)?;
            if let Value::Array(page) = page["entries"].take() {
                entries.extend(page);
            }
            let is_last = page["next"].as_str().is_none_or(|token| next == token);
            next = page["next"].take();
            if is_last || entries.len() >= limit {
                entries.truncate(limit);
                return Ok((entries, next));
            }
        }
    }
}
