//! The counters of a mailroom since its start. The metrics crate renders them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::named_enum;

named_enum! {
    /// Why a message was deleted.
    pub enum DeletionCause {
        /// A client deleted it.
        Request = "request",
        /// A POP3 client deleted it after it collected the mailbox.
        Collected = "pop3",
        /// An IMAP client deleted or moved it.
        Expunged = "imap",
        /// It was older than the retention period.
        Age = "age",
        /// The limit of its mailbox or of the store was reached.
        Limit = "limit",
    }
}

/// The values of the counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were accepted, stored or not.
    pub received: u64,
    /// The bytes of these messages.
    pub received_bytes: u64,
    /// Copies that were stored in mailboxes.
    pub stored: u64,
    /// Messages that were accepted and discarded.
    pub discarded: u64,
    /// Deleted messages by cause, in the order of [`DeletionCause::ALL`].
    pub deleted: [u64; DeletionCause::ALL.len()],
    /// How long after its expiry the oldest message of the last retention batch was deleted. Zero if the last round
    /// found nothing to delete.
    pub retention_lag: Duration,
    /// When the last retention round completed.
    pub retention_completed: Option<Timestamp>,
}

impl Counts {
    /// Returns the number of messages deleted for this cause.
    pub fn deleted_by(&self, cause: DeletionCause) -> u64 {
        self.deleted[cause as usize]
    }
}

/// The live counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    received: AtomicU64,
    received_bytes: AtomicU64,
    stored: AtomicU64,
    discarded: AtomicU64,
    deleted: [AtomicU64; DeletionCause::ALL.len()],
    retention_lag_micros: AtomicU64,
    /// Milliseconds since 1970. Zero before the first completed round.
    retention_completed: AtomicI64,
}

impl Counters {
    /// Returns the current values. Each value is exact, but two values may differ by a delivery that is in progress.
    pub(crate) fn counts(&self) -> Counts {
        let completed = Some(self.retention_completed.load(Relaxed)).filter(|millis| *millis != 0);
        Counts {
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            stored: self.stored.load(Relaxed),
            discarded: self.discarded.load(Relaxed),
            deleted: self.deleted.each_ref().map(|count| count.load(Relaxed)),
            retention_lag: Duration::from_micros(self.retention_lag_micros.load(Relaxed)),
            retention_completed: completed.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        }
    }

    /// Counts a message of `bytes` bytes that was stored in `copies` mailboxes.
    pub(crate) fn count_stored(&self, bytes: usize, copies: usize) {
        self.count_received(bytes);
        self.stored.fetch_add(copies as u64, Relaxed);
    }

    /// Counts a message of `bytes` bytes that was discarded.
    pub(crate) fn count_discarded(&self, bytes: usize) {
        self.count_received(bytes);
        self.discarded.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_deleted(&self, cause: DeletionCause, count: usize) {
        self.deleted[cause as usize].fetch_add(count as u64, Relaxed);
    }

    /// Records how long after its expiry a message was deleted.
    pub(crate) fn set_retention_lag(&self, lag: Duration) {
        self.retention_lag_micros.store(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Records the time of a completed retention round.
    pub(crate) fn set_retention_completed(&self, now: Timestamp) {
        self.retention_completed.store(now.as_millisecond(), Relaxed);
    }

    fn count_received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }
}
