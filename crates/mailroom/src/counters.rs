//! What has happened in a mailroom since its start, in numbers. The mailroom counts, and anybody may look; how the
//! numbers are shown is not known here.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;

/// Why a message was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionCause {
    /// A reader asked for it.
    Request,
    /// A reader collected the mail and left nothing behind, as POP3 clients do.
    Collected,
    /// It was too old.
    Age,
    /// The cap of its mailbox or the bound of the store was reached.
    Limit,
}

impl DeletionCause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Request, Self::Collected, Self::Age, Self::Limit];
}

/// The numbers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were taken in, whether they were kept or not.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Copies that were put into mailboxes.
    pub stored: u64,
    /// Messages that were taken in and not kept.
    pub discarded: u64,
    /// Deleted messages, in the order of [`Cause::ALL`].
    pub deleted: [u64; DeletionCause::ALL.len()],
    /// How late the messages went that were last removed for their age; zero when there was nothing to remove since.
    pub retention_lag: Duration,
    /// When retention was last done with everything that was due.
    pub retention_completed: Option<Timestamp>,
}

impl Counts {
    /// How many messages were deleted for this cause.
    pub fn deleted_by(&self, cause: DeletionCause) -> u64 {
        self.deleted[cause as usize]
    }
}

/// The numbers while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    received: AtomicU64,
    received_bytes: AtomicU64,
    stored: AtomicU64,
    discarded: AtomicU64,
    deleted: [AtomicU64; DeletionCause::ALL.len()],
    retention_lag_micros: AtomicU64,
    /// Milliseconds since 1970; zero before the first time.
    retention_completed: AtomicI64,
}

impl Counters {
    /// The numbers now. Each of them is exact; two of them may be a delivery apart.
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

    /// A message of so many bytes was put into so many mailboxes.
    pub(crate) fn count_stored(&self, bytes: usize, copies: usize) {
        self.count_received(bytes);
        self.stored.fetch_add(copies as u64, Relaxed);
    }

    /// A message of so many bytes was taken in and not kept.
    pub(crate) fn count_discarded(&self, bytes: usize) {
        self.count_received(bytes);
        self.discarded.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_deleted(&self, cause: DeletionCause, count: usize) {
        self.deleted[cause as usize].fetch_add(count as u64, Relaxed);
    }

    /// Mail was removed for its age, so long after its time.
    pub(crate) fn set_retention_lag(&self, lag: Duration) {
        self.retention_lag_micros.store(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Nothing that is due is left.
    pub(crate) fn set_retention_completed(&self, now: Timestamp) {
        self.retention_completed.store(now.as_millisecond(), Relaxed);
    }

    fn count_received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }
}
