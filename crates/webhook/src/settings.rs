//! The settings of webhooks.

use std::fmt;
use std::time::Duration;

/// A kind of event.
pub use restante_api_types::WebhookEvent as EventKind;
use restante_http_client::{has_private_host, parse_url};
use restante_queue::{Limits, QueueKind};

use crate::Key;
use crate::endpoint::Endpoint;

/// The queue of the webhooks.
pub const QUEUE: QueueKind = QueueKind {
    name: "webhook",
    file_name: "webhooks.db",
    application_id: 0x7268_6f6b, // "rhok"
    // A target can ask for a delay of an hour.
    max_delay: Duration::from_mins(90),
    // After a power failure, events are found again from the checkpoint.
    is_synced: false,
    // Events that were given up can be retried by hand, except large ones.
    max_finished_payload: 16 << 10,
    retried_payload: |payload| (!payload.is_empty()).then(|| payload.to_vec()),
};

/// The limits of the queue. [`Settings::max_queued`] limits the waiting events of each target.
pub const QUEUE_LIMITS: Limits = Limits { max_waiting: usize::MAX, max_finished: 10_000 };

/// The settings of webhooks.
#[derive(Clone, Default)]
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
    /// Whether the queue survives the end of the process. Otherwise the shutdown sends what it can.
    pub is_durable: bool,
}

/// URLs may contain tokens, so only their number is shown.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("targets", &self.targets.len()).finish_non_exhaustive()
    }
}

/// A target. Entries with the same URL are one target, which gets the events that match any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An http or https URL.
    pub url: String,
    /// The events to send; empty for all.
    pub events: Vec<EventKind>,
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
