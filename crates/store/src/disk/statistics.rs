//! Statistics that the writer keeps in memory: the counters of the whole store, the segments, and a cache of the
//! mailboxes that changed last. They include what the open transaction has changed. A batch of jobs collects its
//! [`Changes`](super::changes::Changes) separately, and they are applied to the statistics when all of it succeeded.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use rusqlite::Connection;

use super::OpenError;
use super::rows::get_u64;
use crate::Usage;

/// The row of the table `state`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) last_id: MessageId,
    pub(super) last_version: u64,
    pub(super) usage: Usage,
    /// The highest number of a copy in the mailboxes that are empty now. A mailbox that gets its first message starts
    /// with the next number. So no mailbox has a number twice, although empty ones have no row.
    pub(super) highest_free_number: u32,
}

impl Counters {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(
            "SELECT last_id, last_version, messages, copies, mailboxes, bytes, highest_free_number FROM state",
        )?;
        statement.query_row([], |row| {
            let usage = Usage {
                messages: get_u64(row, 2)?,
                copies: get_u64(row, 3)?,
                mailboxes: get_u64(row, 4)?,
                bytes: get_u64(row, 5)?,
            };
            let (last_id, last_version) = (get_u64(row, 0)?.into(), get_u64(row, 1)?);
            Ok(Self { last_id, last_version, usage, highest_free_number: row.get(6)? })
        })
    }
}

/// A row of the table `segments`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentStats {
    /// The length of the written part, in bytes.
    pub(super) end: u64,
    /// The number of bytes that are in use.
    pub(super) live: u64,
}

impl SegmentStats {
    /// Returns whether less than half of the segment is in use.
    pub(super) fn is_sparse(&self) -> bool {
        self.live.saturating_mul(2) < self.end
    }
}

/// A row of the table `mailboxes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MailboxStats {
    pub(super) messages: u64,
    pub(super) version: u64,
    /// Messages that are not marked as read.
    pub(super) unseen: u64,
    /// The sum of the sizes of all messages.
    pub(super) bytes: u64,
    /// The number of the last copy.
    pub(super) last_number: u32,
}

#[derive(Default)]
pub(super) struct Statistics {
    pub(super) counters: Counters,
    pub(super) segments: BTreeMap<u64, SegmentStats>,
}

impl Statistics {
    /// Loads the statistics from the database.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let counters = Counters::load(connection)?;
        let mut statement = connection.prepare("SELECT id, end, live FROM segments")?;
        let rows = statement.query_map([], |row| {
            Ok((get_u64(row, 0)?, SegmentStats { end: get_u64(row, 1)?, live: get_u64(row, 2)? }))
        })?;
        let segments = rows.collect::<rusqlite::Result<_>>()?;
        Ok(Self { counters, segments })
    }

    /// Fails if there are messages but no segments. The database is damaged then, and files must not be removed because
    /// they are missing in it.
    pub(super) fn validate(&self, connection: &Connection) -> Result<(), OpenError> {
        let has_messages = connection.prepare("SELECT 1 FROM copies LIMIT 1")?.exists([])?;
        if has_messages && self.segments.is_empty() {
            return Err(OpenError::Damaged("its table of segments is empty".to_owned()));
        }
        Ok(())
    }
}

/// The version of the store for readers, so that they need no query. It is set before the results of a batch are sent.
/// Queries commit the open transaction first, so it is never newer than the data that a query finds afterwards.
pub(super) struct StoreVersion(AtomicU64);

impl StoreVersion {
    /// No version reaches this number.
    const UNKNOWN: u64 = u64::MAX;

    /// Creates a version that only the database knows.
    pub(super) fn unknown() -> Self {
        Self(Self::UNKNOWN.into())
    }

    /// Returns the version. `None` if only the database knows it.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|version| *version != Self::UNKNOWN)
    }

    pub(super) fn set(&self, version: u64) {
        self.0.store(version, Ordering::Release);
    }

    /// Makes the version unknown, because it is not certain whether a commit has happened.
    pub(super) fn forget(&self) {
        self.set(Self::UNKNOWN);
    }
}

/// A cache of mailboxes that changed or were read. A cached mailbox is never empty; a mailbox that is not cached must be
/// looked up. Readers need only the version, so that is all they look up and insert. Lookups that overlap with a change
/// are not cached.
#[derive(Default)]
pub(super) struct MailboxCache {
    /// When this generation is full it becomes the old one. The entries of the previous old one that were not used
    /// since are dropped.
    young: HashMap<MailboxName, CachedMailbox>,
    old: HashMap<MailboxName, CachedMailbox>,
    /// Incremented by every change.
    epoch: u64,
    /// Whether nothing is cached.
    is_disabled: bool,
}

/// A cached mailbox: its statistics, known if the writer changed it, or only its version, found by a reader.
#[derive(Clone, Copy)]
enum CachedMailbox {
    Stats(MailboxStats),
    Version(u64),
}

/// The epoch in which a lookup started.
#[derive(Clone, Copy)]
pub(super) struct LookupEpoch(u64);

impl MailboxCache {
    /// The number of mailboxes in one generation. With names of usual length, both take one or two megabytes.
    const GENERATION_CAPACITY: usize = 4096;

    /// Creates a cache that never holds anything, for a database that other processes change.
    pub(super) fn disabled() -> Self {
        Self { is_disabled: true, ..Self::default() }
    }

    pub(super) fn version(&self, mailbox: &MailboxName) -> Option<u64> {
        self.find(mailbox).map(|entry| match entry {
            CachedMailbox::Stats(stats) => stats.version,
            CachedMailbox::Version(version) => version,
        })
    }

    pub(super) fn stats(&self, mailbox: &MailboxName) -> Option<MailboxStats> {
        match self.find(mailbox)? {
            CachedMailbox::Stats(stats) => Some(stats),
            CachedMailbox::Version(_) => None,
        }
    }

    /// Returns whether these mailboxes are cached with these versions.
    pub(super) fn has_versions<'a>(&self, versions: impl IntoIterator<Item = (&'a MailboxName, u64)>) -> bool {
        versions.into_iter().all(|(mailbox, version)| self.version(mailbox) == Some(version))
    }

    /// Starts a lookup. Its result is passed to [`Self::insert_version`].
    pub(super) fn begin_lookup(&self) -> LookupEpoch {
        LookupEpoch(self.epoch)
    }

    /// Caches the result of a lookup, unless a change may have made it outdated.
    pub(super) fn insert_version(&mut self, started_in: LookupEpoch, mailbox: &MailboxName, version: u64) {
        if started_in.0 == self.epoch && !self.is_disabled {
            self.insert(mailbox.clone(), CachedMailbox::Version(version));
        }
    }

    /// Caches mailboxes that were changed.
    pub(super) fn update(&mut self, mailboxes: impl IntoIterator<Item = (MailboxName, MailboxStats)>) {
        self.epoch += 1;
        for (mailbox, stats) in mailboxes {
            if stats.messages > 0 {
                self.insert(mailbox, CachedMailbox::Stats(stats));
            } else {
                self.young.remove(&mailbox);
                self.old.remove(&mailbox);
            }
        }
    }

    /// Removes everything, because the state of the database is not known.
    pub(super) fn clear(&mut self) {
        self.epoch += 1;
        self.young.clear();
        self.old.clear();
    }

    fn find(&self, mailbox: &MailboxName) -> Option<CachedMailbox> {
        self.young.get(mailbox).or_else(|| self.old.get(mailbox)).copied()
    }

    fn insert(&mut self, mailbox: MailboxName, entry: CachedMailbox) {
        if self.young.len() >= Self::GENERATION_CAPACITY && !self.young.contains_key(&mailbox) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(mailbox, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> MailboxName {
        MailboxName::from(format!("box{number}"))
    }

    fn stats(messages: u64, version: u64) -> MailboxStats {
        MailboxStats { messages, version, ..MailboxStats::default() }
    }

    fn update(cache: &mut MailboxCache, number: u64, stats: MailboxStats) {
        cache.update([(name(number), stats)]);
    }

    #[test]
    fn cache_is_bounded_and_never_outdated() {
        let mut cache = MailboxCache::default();
        for number in 0..20_000 {
            update(&mut cache, number, stats(1, number));
            update(&mut cache, 0, stats(number + 1, number));
            assert_eq!(cache.stats(&name(0)), Some(stats(number + 1, number)));
            assert_eq!(cache.version(&name(0)), Some(number));
            assert!(cache.young.len() + cache.old.len() <= 2 * MailboxCache::GENERATION_CAPACITY);
        }
        update(&mut cache, 0, MailboxStats::default());
        assert_eq!(cache.version(&name(0)), None);
        assert_eq!(cache.version(&name(1)), None);
    }

    #[test]
    fn lookup_during_change_is_not_cached() {
        let mut cache = MailboxCache::default();
        let before = cache.begin_lookup();
        cache.insert_version(before, &name(0), 1);
        assert_eq!(cache.version(&name(0)), Some(1));
        // The writer needs all statistics.
        assert_eq!(cache.stats(&name(0)), None);

        update(&mut cache, 0, MailboxStats::default());
        cache.insert_version(before, &name(0), 1);
        assert_eq!(cache.version(&name(0)), None);
        cache.insert_version(cache.begin_lookup(), &name(0), 1);
        assert_eq!(cache.version(&name(0)), Some(1));
        cache.clear();
        assert_eq!(cache.version(&name(0)), None);

        let mut disabled = MailboxCache::disabled();
        disabled.insert_version(disabled.begin_lookup(), &name(0), 1);
        assert_eq!(disabled.version(&name(0)), None);
    }
}
