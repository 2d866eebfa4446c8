//! The messages that a command uses: those of one mailbox, or all messages of the server.

use clap::{Arg, ArgMatches, Command};
use restante_api_types::MessageRecord;
use serde_json::Value;

use super::entry::{self, EntryFilter};
use super::{arg_text, id_arg, mailbox_arg, message, parse_segment};
use crate::error::CommandError;
use crate::server::{Server, decode};

/// The messages of a mailbox, or all.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    All,
    Mailbox(String),
}

/// Adds the arguments that select one message: `[MAILBOX] [ID]` or `--message ID`.
pub(super) fn with_message_args(command: Command) -> Command {
    command
        .arg(mailbox_arg().required(false).help("The mailbox, as a name or an address [default: all mail]"))
        .arg(id_arg())
        .arg(message_arg().conflicts_with("mailbox"))
}

/// Returns the argument `--message ID`.
pub(super) fn message_arg() -> Arg {
    Arg::new("message")
        .long("message")
        .value_name("ID")
        .value_parser(parse_segment)
        .help("The id of a message, whatever its mailboxes")
}

/// Returns the id that was selected by one of the arguments of [`with_message_args`].
pub(super) fn selected_id(matches: &ArgMatches) -> String {
    matches.get_one::<String>("message").cloned().unwrap_or_else(|| arg_text(matches, "id"))
}

impl Scope {
    /// Returns the mailbox of the command line, or all messages if none was given.
    pub(super) fn parse(matches: &ArgMatches) -> Self {
        matches.get_one::<String>("mailbox").cloned().map_or(Self::All, Self::Mailbox)
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
                let mut entries = entry::fetch_newest(server, &filter, last)?.entries;
                entries.reverse();
                entries.iter().filter_map(|entry| entry["id"].as_str()?.parse().ok()).collect()
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
