//! The settings of webhooks.

use std::path::PathBuf;
use std::time::Duration;

use restante_http_client::{has_private_host, parse_url};

use crate::Key;
use crate::endpoint::Endpoint;

/// The settings of webhooks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The targets.
    pub targets: Vec<Target>,
    /// The signing key.
    pub secret: Option<Key>,
    /// Whether targets may have addresses that are not public.
    pub private_addresses: bool,
    /// The timeout of a request.
    pub timeout: Duration,
    /// How long delivery of an event is retried.
    pub give_up_after: Duration,
    /// The maximum number of events that wait for one target.
    pub max_queued: usize,
    /// The data directory, if there is one. Queued events are written there and survive a restart.
    pub directory: Option<PathBuf>,
}

/// A target. Entries with the same URL are one target, which gets the events that match any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An http or https URL.
    pub url: String,
    /// The events to send; empty for all.
    pub events: Vec<Event>,
    /// Patterns of mailbox names with the wildcards `*` and `?`; empty for all.
    pub mailboxes: Vec<String>,
}

impl Target {
    /// Checks that requests can be sent to the URL. The error does not contain the URL, which may be a secret.
    pub fn validate(&self) -> Result<(), String> {
        Endpoint::parse(&self.url).map(|_| ())
    }

    /// Returns whether the URL alone shows that its host is not on the public internet.
    pub fn has_private_host(&self) -> bool {
        parse_url(&self.url).is_ok_and(|url| has_private_host(&url))
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored,
    /// A message was deleted.
    Deleted,
}

impl Event {
    /// Returns the name used in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Deleted => "deleted",
        }
    }
}
