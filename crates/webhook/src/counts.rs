//! What has become of the events, in numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What has become of the events for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scheme, host and port of the target; the rest of its URL may be a secret.
    pub target: String,
    /// Events that wait.
    pub waiting: u64,
    /// Events that the target has taken.
    pub delivered: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events that were given up.
    pub failed: u64,
    /// Events that found the queue full, or came too late.
    pub dropped: u64,
}

/// The numbers of one target while they change.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) waiting: AtomicU64,
    /// What waits, in bytes.
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl Counters {
    /// Adds the numbers to those of another target that is shown under the same name.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        counts.waiting += self.waiting.load(Relaxed);
        counts.delivered += self.delivered.load(Relaxed);
        counts.retried += self.retried.load(Relaxed);
        counts.failed += self.failed.load(Relaxed);
        counts.dropped += self.dropped.load(Relaxed);
    }
}
