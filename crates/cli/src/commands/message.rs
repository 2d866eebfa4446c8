//! Lists the messages of a mailbox, and prints them as a table.

use std::io;

use jiff::Timestamp;
use restante_api_types::MessageRecord;
use serde_json::Value;

use crate::CommandContext;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle, format_ago, format_size};
use crate::server::{Server, decode};

/// The number of messages per request.
const PAGE_SIZE: usize = 1000;

/// The summary record of a message.
pub(super) type Message = MessageRecord<'static>;

/// Returns when the server received a message, or the epoch if the date is invalid.
pub(super) fn received_at(message: &Message) -> Timestamp {
    message.date.parse().unwrap_or_default()
}

/// Returns the date of a message: relative on a terminal, otherwise as the server writes it.
pub(super) fn display_date(message: &Message, context: &CommandContext<'_>) -> String {
    if context.style.is_terminal() { format_ago(received_at(message), context.now) } else { message.date.to_string() }
}

/// Prints messages of one mailbox.
pub(super) fn print_table(context: &mut CommandContext<'_>, messages: &[Message]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("FROM").shrinkable(),
        Column::new("SUBJECT").shrinkable(),
        Column::new("SIZE").right_aligned().styled(TextStyle::Faint),
    ]);
    let is_terminal = context.style.is_terminal();
    for message in messages {
        table.add_row([
            message.id.to_string(),
            display_date(message, context),
            message.from.to_string(),
            message.subject.to_string(),
            if is_terminal { format_size(message.size) } else { message.size.to_string() },
        ]);
    }
    context.style.write_table(context.out, &table)
}

/// Returns the `last` newest messages of a mailbox, or all, ascending. All messages are requested page by page, because
/// a mailbox can be large.
pub(super) fn list(server: &Server, mailbox: &str, last: Option<usize>) -> Result<Vec<Value>, CommandError> {
    let page = |parameters: &[(&str, &str)]| -> Result<Vec<Value>, CommandError> {
        decode(&server.get(&["api", "v1", "mailbox", mailbox], parameters)?)
    };
    if let Some(last) = last {
        return page(&[("limit", &last.to_string())]);
    }
    let mut found: Vec<Value> = Vec::new();
    loop {
        let after = found.last().map_or("0", |message| message["id"].as_str().unwrap_or_default()).to_owned();
        let next = page(&[("after", &after), ("limit", &PAGE_SIZE.to_string())])?;
        // A server without paging returns all messages at once, which is hardly ever exactly one page.
        let is_last = next.len() != PAGE_SIZE;
        found.extend(next);
        if is_last {
            return Ok(found);
        }
    }
}
