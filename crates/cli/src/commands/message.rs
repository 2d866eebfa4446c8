//! Messages as the API lists them, and the table they are shown in; how the list of a mailbox is asked for.

use std::io;

use jiff::Timestamp;
use restante_api_types::MessageRecord;
use serde_json::Value;

use crate::CommandContext;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle, format_ago, format_size};
use crate::server::{ApiRequest, Server, decode};

/// How many messages are asked for at once.
const PAGE_SIZE: usize = 1000;

/// The summary record of a message.
pub(super) type Message = MessageRecord<'static>;

/// Returns when the server received a message; the beginning of time if the date is no time.
pub(super) fn received_at(message: &Message) -> Timestamp {
    message.date.parse().unwrap_or_default()
}

/// Returns when that was: relative for people on a terminal, as the server writes it elsewhere.
pub(super) fn display_date(message: &Message, session: &CommandContext<'_>) -> String {
    if session.style.is_terminal() { format_ago(received_at(message), session.now) } else { message.date.to_string() }
}

/// Shows messages of one mailbox.
pub(super) fn print_table(session: &mut CommandContext<'_>, messages: &[Message]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("FROM").shrinkable(),
        Column::new("SUBJECT").shrinkable(),
        Column::new("SIZE").right_aligned().styled(TextStyle::Faint),
    ]);
    let is_terminal = session.style.is_terminal();
    for message in messages {
        table.add_row([
            message.id.to_string(),
            display_date(message, session),
            message.from.to_string(),
            message.subject.to_string(),
            if is_terminal { format_size(message.size) } else { message.size.to_string() },
        ]);
    }
    session.style.write_table(session.out, &table)
}

/// The last so many messages of a mailbox, or all, ascending. Those are asked for page by page: a mailbox can be large.
pub(super) fn list(server: &Server, mailbox: &str, last: Option<usize>) -> Result<Vec<Value>, CommandError> {
    let page = |parameters: &[(&str, &str)]| -> Result<Vec<Value>, CommandError> {
        decode(&server.get(ApiRequest {
            path: &["api", "v1", "mailbox", mailbox],
            parameters,
            ..ApiRequest::default()
        })?)
    };
    if let Some(last) = last {
        return page(&[("limit", &last.to_string())]);
    }
    let mut found: Vec<Value> = Vec::new();
    loop {
        let after = found.last().map_or("0", |message| message["id"].as_str().unwrap_or_default()).to_owned();
        let next = page(&[("after", &after), ("limit", &PAGE_SIZE.to_string())])?;
        // A server that knows no pages gives everything at once, which is hardly ever just as much.
        let is_last = next.len() != PAGE_SIZE;
        found.extend(next);
        if is_last {
            return Ok(found);
        }
    }
}
