//! `restante mailboxes`: lists the mailboxes of a server.

use clap::Parser;
use restante_api_types::{Mailbox, Newest};
use serde_json::json;

use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle, format_ago, format_size};
use crate::server::{PagedList, decode};
use crate::{CommandContext, Task};

const MAILBOXES: PagedList<'_> =
    PagedList { path: &["api", "v2", "mailboxes"], member: "mailboxes", cursor: "after", page_size: 1000 };

/// Lists the mailboxes that contain messages.
#[derive(Parser)]
#[command(
    name = "mailboxes",
    long_about = "Lists the mailboxes that contain messages, by name. In a pipe, the columns are separated by tabs: NAME, \
        MESSAGES, UNSEEN, BYTES and the DATE of the newest message."
)]
pub(super) struct ListMailboxes {
    /// Only mailboxes whose names begin with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
}

impl Task for ListMailboxes {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let conditions: Vec<_> = self.prefix.iter().map(|prefix| ("prefix", prefix.clone())).collect();
        let found = context.server.list(&MAILBOXES, &conditions, usize::MAX)?.items;
        let document = json!({ "mailboxes": found, "next": null });
        let mailboxes: Vec<Mailbox<'static>> = decode(&document["mailboxes"])?;
        let is_empty = mailboxes.is_empty();
        if context.json {
            context.style.write_json(context.out, &document)?;
        } else if !is_empty {
            print_mailboxes(context, mailboxes)?;
        }
        if is_empty { Err(CommandError::not_found("There are no messages.")) } else { Ok(()) }
    }
}

fn print_mailboxes(context: &mut CommandContext<'_>, mailboxes: Vec<Mailbox<'static>>) -> std::io::Result<()> {
    let mut table = Table::new([
        Column::new("MAILBOX").shrinkable().styled(TextStyle::Id),
        Column::new("MESSAGES").right_aligned(),
        Column::new("UNSEEN").right_aligned(),
        Column::new("SIZE").right_aligned(),
        Column::new("NEWEST").styled(TextStyle::Faint),
    ]);
    let is_terminal = context.style.is_terminal();
    for Mailbox { name, messages, unseen, bytes, newest: Newest { date, .. } } in mailboxes {
        let newest = match date.parse() {
            Ok(at) if is_terminal => format_ago(at, context.now),
            _ => date.into_owned(),
        };
        let bytes = if is_terminal { format_size(bytes) } else { bytes.to_string() };
        table.add_row([name.into_owned(), messages.to_string(), unseen.to_string(), bytes, newest]);
    }
    context.style.write_table(context.out, &table)
}
