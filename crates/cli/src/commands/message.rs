//! Messages as the API lists them, and the table they are shown in; how the list of a mailbox is asked for.

use std::io;

use jiff::Timestamp;
use restante_api_types::MessageRecord;
use serde_json::Value;

use crate::Session;
use crate::failure::Failure;
use crate::screen::{Column, Style, Table, ago, size};
use crate::server::{Question, Server, shaped};

/// How many messages are asked for at once.
const PAGE: usize = 1000;

/// The summary record of a message.
pub(super) type Message = MessageRecord<'static>;

/// Returns when the server received a message; the beginning of time if the date is no time.
pub(super) fn received(message: &Message) -> Timestamp {
    message.date.parse().unwrap_or_default()
}

/// Returns when that was: relative for people on a terminal, as the server writes it elsewhere.
pub(super) fn when(message: &Message, session: &Session<'_>) -> String {
    if session.screen.is_terminal() { ago(received(message), session.now) } else { message.date.to_string() }
}

/// Shows messages of one mailbox.
pub(super) fn show(session: &mut Session<'_>, messages: &[Message]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("ID").styled(Style::Id),
        Column::new("WHEN").styled(Style::Faint),
        Column::new("FROM").giving(),
        Column::new("SUBJECT").giving(),
        Column::new("SIZE").right().styled(Style::Faint),
    ]);
    let is_terminal = session.screen.is_terminal();
    for message in messages {
        table.row([
            message.id.to_string(),
            when(message, session),
            message.from.to_string(),
            message.subject.to_string(),
            if is_terminal { size(message.size) } else { message.size.to_string() },
        ]);
    }
    session.screen.table(session.out, &table)
}

/// The last so many messages of a mailbox, or all, ascending. Those are asked for page by page: a mailbox can be large.
pub(super) fn list(server: &Server, mailbox: &str, last: Option<usize>) -> Result<Vec<Value>, Failure> {
    let page = |parameters: &[(&str, &str)]| -> Result<Vec<Value>, Failure> {
        shaped(&server.get(Question { path: &["api", "v1", "mailbox", mailbox], parameters, ..Question::default() })?)
    };
    if let Some(last) = last {
        return page(&[("limit", &last.to_string())]);
    }
    let mut found: Vec<Value> = Vec::new();
    loop {
        let after = found.last().map_or("0", |message| message["id"].as_str().unwrap_or_default()).to_owned();
        let next = page(&[("after", &after), ("limit", &PAGE.to_string())])?;
        // A server that knows no pages gives everything at once, which is hardly ever just as much.
        let is_last = next.len() != PAGE;
        found.extend(next);
        if is_last {
            return Ok(found);
        }
    }
}
