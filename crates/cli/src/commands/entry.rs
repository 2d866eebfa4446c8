//! Messages of the whole server, which may be in several mailboxes: lists them, and prints them as a table.

use std::io;

use clap::Args;
use jiff::Timestamp;
use restante_mail::tags::{self, Tags};
use serde::Deserialize;

use crate::CommandContext;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle, format_ago};
use crate::server::{ListedItems, PagedList, Server};

const MESSAGES: PagedList<'_> =
    PagedList { path: &["api", "v2", "messages"], member: "messages", cursor: "before", page_size: 200 };

/// The fields of an entry of `/api/v2/messages` that are shown.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    #[serde(default)]
    pub(super) from: String,
    #[serde(default)]
    pub(super) mailboxes: Vec<String>,
    #[serde(default)]
    pub(super) subject: String,
    #[serde(default)]
    pub(super) received: String,
    /// The number of attachments.
    #[serde(default)]
    pub(super) attachments: u64,
    #[serde(default)]
    pub(super) tags: Vec<String>,
}

impl Entry {
    /// Returns when the server received the message, or the epoch if the date is invalid.
    pub(super) fn received_at(&self) -> Timestamp {
        self.received.parse().unwrap_or_default()
    }

    /// Returns true if the message has all these tags, in any case.
    pub(super) fn has_tags(&self, wanted: &[String]) -> bool {
        let tags = Tags::from_valid(self.tags.iter().map(String::as_str));
        wanted.iter().all(|tag| tags.contains(tag))
    }

    /// Returns the cells of a row. The second column, the time, depends on the command.
    pub(super) fn cells(&self, when: String, is_terminal: bool) -> [String; 7] {
        let separator = if is_terminal { ", " } else { "," };
        let attachments =
            if is_terminal && self.attachments == 0 { String::new() } else { self.attachments.to_string() };
        [
            self.id.clone(),
            when,
            self.from.clone(),
            self.mailboxes.join(separator),
            self.subject.clone(),
            attachments,
            self.tags.join(separator),
        ]
    }
}

/// The columns of a table of entries.
pub(super) const COLUMNS: [Column; 7] = [
    Column::new("ID").styled(TextStyle::Id),
    Column::new("WHEN").styled(TextStyle::Faint),
    Column::new("FROM").shrinkable(),
    Column::new("MAILBOXES").shrinkable(),
    Column::new("SUBJECT").shrinkable(),
    Column::new("FILES").right_aligned().styled(TextStyle::Faint),
    Column::new("TAGS").shrinkable().styled(TextStyle::Hit),
];

/// The conditions of a list of messages.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct EntryFilter {
    /// Only messages that match this search query
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse_query)]
    pub(super) query: Option<String>,
    /// Only messages with this tag; may be repeated
    #[arg(id = "tag", long, value_name = "TAG", value_parser = parse_tag)]
    pub(super) tags: Vec<String>,
    /// Only messages with greater ids.
    #[arg(skip)]
    pub(super) after: Option<u64>,
}

/// Parses a search query. The server checks its syntax.
pub(super) fn parse_query(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a tag.
pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    let tag = text.trim();
    tags::validate(tag).map(|()| tag.to_owned()).map_err(|error| error.to_string())
}

impl EntryFilter {
    /// Returns true if there is no condition.
    pub(super) fn is_empty(&self) -> bool {
        self.query.is_none() && self.tags.is_empty() && self.after.is_none()
    }

    /// Returns the parameters of a request.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let query = self.query.iter().map(|query| ("q", query.clone()));
        let tags = self.tags.iter().map(|tag| ("tag", tag.clone()));
        let after = self.after.iter().map(|after| ("after", after.to_string()));
        query.chain(tags).chain(after).collect()
    }
}

/// Returns the `limit` newest messages that match, newest first.
pub(super) fn fetch_newest(server: &Server, filter: &EntryFilter, limit: usize) -> Result<ListedItems, CommandError> {
    server.list(&MESSAGES, &filter.parameters(), limit)
}

/// Prints messages as a table.
pub(super) fn print_table(context: &mut CommandContext<'_>, entries: &[Entry]) -> io::Result<()> {
    let mut table = Table::new(COLUMNS);
    let is_terminal = context.style.is_terminal();
    for entry in entries {
        let when = if is_terminal { format_ago(entry.received_at(), context.now) } else { entry.received.clone() };
        table.add_row(entry.cells(when, is_terminal));
    }
    context.style.write_table(context.out, &table)
}
