//! What webhooks are told at their start.

use std::path::PathBuf;
use std::time::Duration;

use restante_http_client::{has_private_host, parse_url};

use crate::Key;
use crate::endpoint::Endpoint;

/// What webhooks are told at their start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is told.
    pub targets: Vec<Target>,
    /// The key that requests are signed with.
    pub secret: Option<Key>,
    /// Whether targets may be on addresses that are not public.
    pub private_addresses: bool,
    /// How long a target may take to answer.
    pub timeout: Duration,
    /// How long it is tried to tell a target of one event.
    pub give_up_after: Duration,
    /// How many events may wait for one target.
    pub max_queued: usize,
    /// The data directory, where the store has one: what waits there survives a restart.
    pub directory: Option<PathBuf>,
}

/// Somebody to tell. Two entries with the same URL are one target, which is told of what either of them wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An http or https URL.
    pub url: String,
    /// The events to tell of; none means all.
    pub events: Vec<Event>,
    /// Patterns of mailbox names with the wildcards `*` and `?`; none means all.
    pub mailboxes: Vec<String>,
}

impl Target {
    /// Whether the URL is one that can be told anything. The error is a sentence without the URL, which may hold a secret.
    pub fn validate(&self) -> Result<(), String> {
        Endpoint::parse(&self.url).map(|_| ())
    }

    /// Whether one can tell by the URL alone that its host is not one of the public internet.
    pub fn is_plainly_private(&self) -> bool {
        parse_url(&self.url).is_ok_and(|url| has_private_host(&url))
    }
}

/// What a target can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored,
    /// A message was deleted.
    Deleted,
}

impl Event {
    /// What settings call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Deleted => "deleted",
        }
    }
}
