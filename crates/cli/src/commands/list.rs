//! `restante list`: lists all messages of a server, or those of a mailbox.

use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use super::entry::{self, Entry, EntryFilter, query_arg, tag_arg};
use super::mailbox_arg;
use super::message::{self, Message};
use crate::error::CommandError;
use crate::server::decode;
use crate::{CommandContext, Task, print_note};

/// The number of messages that are listed of all mailboxes together, unless a limit is given.
const DEFAULT_LIMIT: usize = 50;

pub(super) fn command() -> Command {
    Command::new("list")
        .about("Lists all messages, or those of a mailbox")
        .long_about(
            "Lists the newest messages of all mailboxes, or the messages of one mailbox, oldest first. Without a \
             mailbox, a message with several recipients is listed once. On a terminal, it prints a table. In a pipe, \
             the columns are separated by tabs: ID, DATE, FROM, MAILBOXES, SUBJECT, the number of attachments, and \
             TAGS; for a mailbox ID, DATE, FROM, SUBJECT and SIZE. Mailboxes and tags are separated by commas. With \
             --json and without a mailbox, the newest message comes first, as in the REST API. `restante mailboxes` \
             lists the mailboxes.",
        )
        .arg(mailbox_arg().required(false).help("The mailbox, as a name or an address [default: all mail]"))
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .help("Only the newest N messages [default: 50 of all mail, all of a mailbox]"),
        )
        .arg(query_arg().conflicts_with("mailbox"))
        .arg(tag_arg().conflicts_with("mailbox"))
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let limit = matches.get_one::<u32>("limit").and_then(|limit| usize::try_from(*limit).ok());
    match matches.get_one::<String>("mailbox") {
        Some(mailbox) => Box::new(ListMailbox { mailbox: mailbox.clone(), limit }),
        None => Box::new(ListAll { filter: EntryFilter::parse(matches), limit }),
    }
}

struct ListAll {
    filter: EntryFilter,
    limit: Option<usize>,
}

impl Task for ListAll {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let mut found = entry::fetch_newest(&context.server, &self.filter, self.limit.unwrap_or(DEFAULT_LIMIT))?;
        let mut entries: Vec<Entry> = decode(&Value::Array(found.entries.clone()))?;
        let has_more = !found.next.is_null();
        if context.json {
            let document = json!({ "messages": found.entries, "next": found.next.take() });
            context.style.write_json(context.out, &document)?;
        } else if !entries.is_empty() {
            entries.reverse();
            entry::print_table(context, &entries)?;
            if has_more && self.limit.is_none() && context.style.is_terminal() {
                context.out.flush()?;
                print_note(&format!("Only the newest {DEFAULT_LIMIT} messages are listed: add --limit N for more."));
            }
        }
        match (entries.is_empty(), self.filter.is_empty()) {
            (false, _) => Ok(()),
            (true, true) => Err(CommandError::not_found("There are no messages.")),
            (true, false) => Err(CommandError::not_found("No message matches.")),
        }
    }
}

struct ListMailbox {
    mailbox: String,
    limit: Option<usize>,
}

impl Task for ListMailbox {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let found = Value::Array(message::list(&context.server, &self.mailbox, self.limit)?);
        let messages: Vec<Message> = decode(&found)?;
        if context.json {
            context.style.write_json(context.out, &found)?;
        } else if !messages.is_empty() {
            message::print_table(context, &messages)?;
        }
        if messages.is_empty() {
            return Err(CommandError::not_found(format!("Mailbox {} is empty.", self.mailbox)));
        }
        Ok(())
    }
}
