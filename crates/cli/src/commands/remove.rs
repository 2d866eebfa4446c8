//! `restante delete` and `restante purge`: delete messages.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::entry::{self, EntryFilter, query_arg, tag_arg};
use super::scope::message_arg;
use super::{arg_text, mailbox_arg, parse_segment};
use crate::error::CommandError;
use crate::output::count_with_noun;
use crate::server::{ApiRequest, json_body, status_error};
use crate::{CommandContext, Task};

/// The maximum number of ids in one request. The server accepts about fifty thousand.
const MAX_IDS_PER_REQUEST: usize = 10_000;
/// The number of messages up to which matching messages are counted before they are deleted.
const MAX_COUNTED: usize = 1000;

pub(super) fn delete_command() -> Command {
    Command::new("delete")
        .about("Deletes messages")
        .long_about(
            "Deletes messages of a mailbox, or from all their mailboxes with --message. With --query or --tag, it \
             deletes all messages that match. Then it prints their number and asks first, unless --yes is given.",
        )
        .arg(mailbox_arg().required(false).requires("ids"))
        .arg(Arg::new("ids").value_name("ID").num_args(1..).value_parser(parse_segment).help("The ids of the messages"))
        .arg(
            message_arg()
                .action(ArgAction::Append)
                .num_args(1..)
                .conflicts_with_all(["mailbox", "query", "tag"])
                .help("The id of a message, whatever its mailboxes; may be repeated"),
        )
        .arg(query_arg().conflicts_with("mailbox").help("All messages that match this search query"))
        .arg(tag_arg().conflicts_with("mailbox").help("All messages with this tag; may be repeated"))
        .arg(
            Arg::new("yes")
                .long("yes")
                .short('y')
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["mailbox", "message"])
                .help("Deletes matching messages without asking"),
        )
        .group(ArgGroup::new("target").args(["mailbox", "message", "query", "tag"]).multiple(true).required(true))
}

pub(super) fn parse_delete(matches: &ArgMatches) -> Box<dyn Task> {
    let many = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
    if matches.contains_id("mailbox") {
        return Box::new(DeleteCopies { mailbox: arg_text(matches, "mailbox"), ids: many("ids") });
    }
    if matches.contains_id("message") {
        return Box::new(DeleteMessages { ids: many("message") });
    }
    Box::new(DeleteMatching { filter: EntryFilter::parse(matches), yes: matches.get_flag("yes") })
}

pub(super) fn purge_command() -> Command {
    Command::new("purge")
        .about("Deletes all messages of a mailbox, or of all mailboxes")
        .arg(mailbox_arg().required(false))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Deletes all messages on the server"))
        .group(ArgGroup::new("target").args(["mailbox", "all"]).required(true))
}

pub(super) fn parse_purge(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Purge { mailbox: matches.get_one("mailbox").cloned() })
}

/// Deletes the copies of messages in one mailbox.
struct DeleteCopies {
    mailbox: String,
    ids: Vec<String>,
}

impl Task for DeleteCopies {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let ids = distinct_ids(&self.ids)?;
        let mut deleted = 0;
        for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
            let path = &["api", "v2", "mailbox", &self.mailbox, "delete"];
            deleted += deleted_count(&context.server.post(path, &json!({ "ids": ids }))?);
        }
        print_deleted(context, deleted)?;
        missing_result(ids.len(), deleted)
    }
}

/// Deletes messages from all their mailboxes.
struct DeleteMessages {
    ids: Vec<String>,
}

impl Task for DeleteMessages {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let ids = distinct_ids(&self.ids)?;
        let mut deleted = 0;
        for id in &ids {
            let path = &["api", "v2", "messages", id];
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
}

/// Deletes the messages that match a query and have tags.
struct DeleteMatching {
    filter: EntryFilter,
    yes: bool,
}

impl Task for DeleteMatching {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        if !self.yes && !self.confirm(context)? {
            return Err(CommandError::not_found("Nothing was deleted."));
        }
        let parameters = self.filter.parameters();
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = &["api", "v2", "messages"];
        let request = ApiRequest { path, parameters: &parameters, ..ApiRequest::default() };
        let deleted = deleted_count(&json_body(&context.server.send("DELETE", request, None)?)?);
        print_deleted(context, deleted)?;
        if deleted == 0 { Err(CommandError::not_found("No message matches.")) } else { Ok(()) }
    }
}

impl DeleteMatching {
    /// Counts the messages, and asks whether to delete them.
    fn confirm(&self, context: &CommandContext<'_>) -> Result<bool, CommandError> {
        let found = entry::fetch_newest(&context.server, &self.filter, MAX_COUNTED)?;
        let count = match found.entries.len() {
            0 => return Err(CommandError::not_found("No message matches.")),
            MAX_COUNTED if !found.next.is_null() => format!("more than {MAX_COUNTED} messages"),
            count => count_with_noun(u64::try_from(count).unwrap_or(u64::MAX), "message"),
        };
        (context.confirm)(&format!("Delete {count}?")).ok_or_else(|| {
            CommandError::Usage(format!("The command would delete {count}: add --yes to delete without a question."))
        })
    }
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

struct Purge {
    /// `None` means all mailboxes.
    mailbox: Option<String>,
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
