//! Messages as the API lists them, and the table they are shown in; how the list of a mailbox is asked for.

use std::io;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::Session;
use crate::failure::Failure;
use crate::screen::{Column, Style, Table, ago, size};
use crate::server::{Question, Server, shaped};

/// How many messages are asked for at once.
const PAGE: usize = 1000;

/// The summary record of a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Message {
    pub(super) mailbox: String,
    pub(super) id: String,
    #[serde(default)]
    pub(super) from: String,
    // Programs written in Go say null where they mean an empty list.
    #[serde(default)]
    pub(super) to: Option<Vec<String>>,
    #[serde(default)]
    pub(super) subject: String,
    pub(super) date: String,
    #[serde(default)]
    pub(super) size: u64,
}

impl Message {
    /// When the server received it; the beginning of time when that makes no sense.
    pub(super) fn received(&self) -> Timestamp {
        self.date.parse().unwrap_or_default()
    }

    /// When that was, for people on a terminal and for programs elsewhere.
    pub(super) fn when(&self, session: &Session<'_>) -> String {
        if session.screen.is_terminal() { ago(self.received(), session.now) } else { self.date.clone() }
    }
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
            message.id.clone(),
            message.when(session),
            message.from.clone(),
            message.subject.clone(),
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
