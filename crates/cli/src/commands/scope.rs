//! The messages that a command uses: those of one mailbox, or all messages of the server.

use clap::Args;
use restante_api_types::MessageRecord;
use serde_json::Value;

use super::entry::{self, EntryFilter};
use super::{message, parse_segment};
use crate::error::CommandError;
use crate::server::{Server, decode};

/// The messages of a mailbox, or all.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    All,
    Mailbox(String),
}

/// The arguments that select one message: `[MAILBOX] [ID]` or `--message ID`.
#[derive(Args, Clone, Debug)]
pub(super) struct MessageArgs {
    /// The mailbox, as a name or an address [default: all mail]
    #[arg(value_parser = parse_segment)]
    mailbox: Option<String>,
    /// The id of a message, or latest
    #[arg(default_value = "latest", value_parser = parse_segment)]
    id: String,
    /// The id of a message, whatever its mailboxes
    #[arg(long, value_name = "ID", value_parser = parse_segment, conflicts_with = "mailbox")]
    message: Option<String>,
}

impl MessageArgs {
    /// Returns the messages that the id refers to.
    pub(super) fn scope(&self) -> Scope {
        Scope::new(self.mailbox.as_deref())
    }

    /// Returns the id of the message, or `latest`.
    pub(super) fn id(&self) -> &str {
        self.message.as_ref().unwrap_or(&self.id)
    }
}

impl Scope {
    /// Returns the messages of a mailbox, or all messages without one.
    pub(super) fn new(mailbox: Option<&str>) -> Self {
        mailbox.map_or(Self::All, |mailbox| Self::Mailbox(mailbox.to_owned()))
    }

    /// Returns the path of the source of a message.
    pub(super) fn source_path<'a>(&'a self, id: &'a str) -> Vec<&'a str> {
        match self {
            Self::All => vec!["api", "v2", "messages", id, "source"],
            Self::Mailbox(mailbox) => vec!["api", "v1", "mailbox", mailbox, id, "source"],
        }
    }

    /// Returns the path of what the server extracts from a message, such as `codes`.
    pub(super) fn extract_path<'a>(&'a self, id: &'a str, what: &'a str) -> Vec<&'a str> {
        match self {
            Self::All => vec!["api", "v2", "messages", id, what],
            Self::Mailbox(mailbox) => vec!["api", "v2", "mailbox", mailbox, id, what],
        }
    }

    /// Returns the path of requests that wait for messages.
    pub(super) fn wait_path(&self) -> Vec<&str> {
        match self {
            Self::All => vec!["api", "v2", "wait"],
            Self::Mailbox(mailbox) => vec!["api", "v2", "mailbox", mailbox, "wait"],
        }
    }

    /// Returns the path of the live events.
    pub(super) fn events_path(&self) -> Vec<&str> {
        match self {
            Self::All => vec!["api", "v2", "events"],
            Self::Mailbox(mailbox) => vec!["api", "v2", "events", mailbox],
        }
    }

    /// Returns the ids of the `last` newest messages, ascending, without those up to `after`.
    pub(super) fn newest_ids(&self, server: &Server, last: usize, after: u64) -> Result<Vec<u64>, CommandError> {
        let mut ids: Vec<u64> = match self {
            Self::All => {
                let filter = EntryFilter { after: (after > 0).then_some(after), ..EntryFilter::default() };
                let entries = entry::fetch_newest(server, &filter, last)?.items;
                entries.iter().rev().filter_map(|entry| entry["id"].as_str()?.parse().ok()).collect()
            }
            Self::Mailbox(mailbox) => {
                let newest: Vec<MessageRecord<'static>> =
                    decode(&Value::Array(message::list(server, mailbox, Some(last))?))?;
                newest.iter().filter_map(|message| message.id.parse().ok()).collect()
            }
        };
        ids.retain(|id| *id > after);
        Ok(ids)
    }
}
