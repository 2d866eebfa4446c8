//! `restante list`: lists all messages of a server, or those of a mailbox.

use clap::Parser;
use serde_json::{Value, json};

use super::entry::{self, Entry, EntryFilter};
use super::message::{self, Message};
use super::{limit_parser, parse_segment};
use crate::error::CommandError;
use crate::server::decode;
use crate::{CommandContext, Task, print_note};

/// The number of messages that are listed of all mailboxes together, unless a limit is given.
const DEFAULT_LIMIT: usize = 50;

/// Lists all messages, or those of a mailbox.
#[derive(Parser)]
#[command(
    name = "list",
    long_about = "Lists the newest messages of all mailboxes, or the messages of one mailbox, oldest first. Without a \
        mailbox, a message with several recipients is listed once. On a terminal, it prints a table. In a pipe, the \
        columns are separated by tabs: ID, DATE, FROM, MAILBOXES, SUBJECT, the number of attachments, and TAGS; for a \
        mailbox ID, DATE, FROM, SUBJECT and SIZE. Mailboxes and tags are separated by commas. With --json and without a \
        mailbox, the newest message comes first, as in the REST API. `restante mailboxes` lists the mailboxes.",
    mut_arg("query", |arg| arg.conflicts_with("mailbox")),
    mut_arg("tag", |arg| arg.conflicts_with("mailbox"))
)]
pub(super) struct List {
    /// The mailbox, as a name or an address [default: all mail]
    #[arg(value_parser = parse_segment)]
    mailbox: Option<String>,
    /// Only the newest N messages [default: 50 of all mail, all of a mailbox]
    #[arg(long, value_name = "N", value_parser = limit_parser())]
    limit: Option<usize>,
    #[command(flatten)]
    filter: EntryFilter,
}

impl Task for List {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        match &self.mailbox {
            Some(mailbox) => self.list_mailbox(context, mailbox),
            None => self.list_all(context),
        }
    }
}

impl List {
    fn list_all(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let found = entry::fetch_newest(&context.server, &self.filter, self.limit.unwrap_or(DEFAULT_LIMIT))?;
        let document = json!({ "messages": found.items, "next": found.next });
        let mut entries: Vec<Entry> = decode(&document["messages"])?;
        let has_more = !found.next.is_null();
        if context.json {
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

    fn list_mailbox(&self, context: &mut CommandContext<'_>, mailbox: &str) -> Result<(), CommandError> {
        let found = Value::Array(message::list(&context.server, mailbox, self.limit)?);
        let messages: Vec<Message> = decode(&found)?;
        if context.json {
            context.style.write_json(context.out, &found)?;
        } else if !messages.is_empty() {
            message::print_table(context, &messages)?;
        }
        if messages.is_empty() {
            return Err(CommandError::not_found(format!("Mailbox {mailbox} is empty.")));
        }
        Ok(())
    }
}
