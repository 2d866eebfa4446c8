//! `restante delete` and `restante purge`: delete messages.

use clap::{ArgGroup, Parser};
use serde_json::{Value, json};

use super::entry::{self, EntryFilter, parse_query, parse_tag};
use super::parse_segment;
use crate::error::CommandError;
use crate::output::count_with_noun;
use crate::server::{ApiRequest, json_body, status_error};
use crate::{CommandContext, Task};

/// The maximum number of ids in one request. The server accepts about fifty thousand.
const MAX_IDS_PER_REQUEST: usize = 10_000;
/// The number of messages up to which matching messages are counted before they are deleted.
const MAX_COUNTED: usize = 1000;

/// Deletes messages.
#[derive(Parser)]
#[command(
    name = "delete",
    long_about = "Deletes messages of a mailbox, or from all their mailboxes with --message. With --query or --tag, it \
        deletes all messages that match. Then it prints their number and asks first, unless --yes is given.",
    group = ArgGroup::new("target").args(["mailbox", "message", "query", "tag"]).multiple(true).required(true)
)]
pub(super) struct Delete {
    /// The mailbox, as a name or an address
    #[arg(value_parser = parse_segment, requires = "ids")]
    mailbox: Option<String>,
    /// The ids of the messages
    #[arg(value_name = "ID", value_parser = parse_segment)]
    ids: Vec<String>,
    /// The id of a message, whatever its mailboxes; may be repeated
    #[arg(
        id = "message", long, value_name = "ID", num_args = 1.., value_parser = parse_segment,
        conflicts_with_all = ["mailbox", "query", "tag"]
    )]
    messages: Vec<String>,
    /// All messages that match this search query
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse_query, conflicts_with = "mailbox")]
    query: Option<String>,
    /// All messages with this tag; may be repeated
    #[arg(id = "tag", long, value_name = "TAG", value_parser = parse_tag, conflicts_with = "mailbox")]
    tags: Vec<String>,
    /// Deletes matching messages without asking
    #[arg(long, short, conflicts_with_all = ["mailbox", "message"])]
    yes: bool,
}

impl Task for Delete {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        match &self.mailbox {
            Some(mailbox) => delete_copies(context, mailbox, &distinct_ids(&self.ids)?),
            None if !self.messages.is_empty() => delete_messages(context, &distinct_ids(&self.messages)?),
            None => self.delete_matching(context),
        }
    }
}

impl Delete {
    /// Deletes the messages that match the query and have the tags.
    fn delete_matching(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let filter = EntryFilter { query: self.query.clone(), tags: self.tags.clone(), after: None };
        if !self.yes && !confirm(context, &filter)? {
            return Err(CommandError::not_found("Nothing was deleted."));
        }
        let parameters = filter.parameters();
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = &["api", "v2", "messages"];
        let request = ApiRequest { path, parameters: &parameters, ..ApiRequest::default() };
        let deleted = deleted_count(&json_body(&context.server.send("DELETE", request, None)?)?);
        print_deleted(context, deleted)?;
        if deleted == 0 { Err(CommandError::not_found("No message matches.")) } else { Ok(()) }
    }
}

/// Counts the messages, and asks whether to delete them.
fn confirm(context: &CommandContext<'_>, filter: &EntryFilter) -> Result<bool, CommandError> {
    let found = entry::fetch_newest(&context.server, filter, MAX_COUNTED)?;
    let count = match found.items.len() {
        0 => return Err(CommandError::not_found("No message matches.")),
        MAX_COUNTED if !found.next.is_null() => format!("more than {MAX_COUNTED} messages"),
        count => count_with_noun(u64::try_from(count).unwrap_or(u64::MAX), "message"),
    };
    (context.confirm)(&format!("Delete {count}?")).ok_or_else(|| {
        CommandError::Usage(format!("The command would delete {count}: add --yes to delete without a question."))
    })
}

/// Deletes all messages of a mailbox, or of all mailboxes.
#[derive(Parser)]
#[command(name = "purge", group = ArgGroup::new("target").args(["mailbox", "all"]).required(true))]
pub(super) struct Purge {
    /// The mailbox, as a name or an address
    #[arg(value_parser = parse_segment)]
    mailbox: Option<String>,
    /// Deletes all messages on the server
    #[arg(long)]
    all: bool,
}

impl Task for Purge {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let Some(mailbox) = &self.mailbox else {
            let response = context.server.delete(&["api", "v2", "mailboxes"])?;
            return print_deleted(context, deleted_count(&response));
        };
        let response = context.server.delete(&["api", "v1", "mailbox", mailbox])?;
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if context.style.is_terminal() {
            writeln!(context.out, "Purged.")?;
        }
        Ok(())
    }
}

/// Deletes the copies of messages in one mailbox.
fn delete_copies(context: &mut CommandContext<'_>, mailbox: &str, ids: &[&String]) -> Result<(), CommandError> {
    let mut deleted = 0;
    for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
        let path = &["api", "v2", "mailbox", mailbox, "delete"];
        deleted += deleted_count(&context.server.post(path, &json!({ "ids": ids }))?);
    }
    print_deleted(context, deleted)?;
    missing_result(ids.len(), deleted)
}

/// Deletes messages from all their mailboxes.
fn delete_messages(context: &mut CommandContext<'_>, ids: &[&String]) -> Result<(), CommandError> {
    let mut deleted = 0;
    for id in ids {
        let path = &["api", "v2", "messages", id.as_str()];
        let response = context.server.send("DELETE", ApiRequest { path, ..ApiRequest::default() }, None)?;
        match response.status {
            200..300 => deleted += 1,
            404 => {}
            status => return Err(status_error(status, &response.body)),
        }
    }
    print_deleted(context, deleted)?;
    missing_result(ids.len(), deleted)
}

/// Returns the ids, each once.
fn distinct_ids(ids: &[String]) -> Result<Vec<&String>, CommandError> {
    // `latest` could be another message by the time of the request.
    if ids.iter().any(|id| id == "latest") {
        return Err(CommandError::Usage("The command delete takes message ids, not latest.".to_owned()));
    }
    let mut ids: Vec<&String> = ids.iter().collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Returns an error if fewer messages were deleted than requested.
fn missing_result(requested: usize, deleted: u64) -> Result<(), CommandError> {
    let missing = u64::try_from(requested).unwrap_or(u64::MAX).saturating_sub(deleted);
    match missing {
        0 => Ok(()),
        1 => Err(CommandError::not_found("One of the messages does not exist.")),
        many => Err(CommandError::not_found(format!("{many} of the messages do not exist."))),
    }
}

fn deleted_count(response: &Value) -> u64 {
    response["deleted"].as_u64().unwrap_or_default()
}

/// Prints how many messages were deleted, on a terminal or as JSON.
fn print_deleted(context: &mut CommandContext<'_>, deleted: u64) -> Result<(), CommandError> {
    if context.json {
        context.style.write_json(context.out, &json!({ "deleted": deleted }))?;
    } else if context.style.is_terminal() {
        writeln!(context.out, "Deleted {}.", count_with_noun(deleted, "message"))?;
    }
    Ok(())
}
