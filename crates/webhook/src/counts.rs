//! Delivery statistics: counters and their snapshot.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Delivery statistics of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scheme, host and port of the target. The rest of its URL may be a secret.
    pub target: String,
    /// Events in the queue.
    pub waiting: u64,
    /// Events that the target accepted.
    pub delivered: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events that were given up.
    pub failed: u64,
    /// Events that were dropped because the queue was full or the server was shutting down.
    pub dropped: u64,
}

/// The counters of one target.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) waiting: AtomicU64,
    /// Size of the queued events in bytes.
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl Counters {
    /// Adds the counters to `counts`, which may already contain those of another target with the same label.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        counts.waiting += self.waiting.load(Relaxed);
        counts.delivered += self.delivered.load(Relaxed);
        counts.retried += self.retried.load(Relaxed);
        counts.failed += self.failed.load(Relaxed);
        counts.dropped += self.dropped.load(Relaxed);
    }
}
