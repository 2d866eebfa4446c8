//! What is known here of the changes that all nodes make, for those who ask. The `follow` task reads them in their order, tells the
//! feed, and notes which mailboxes have changed, so that answers which were given before can be given again as long as they are true.
//!
//! Whoever is about to give such an answer first lets the task look whether anything has happened. One look serves all who wait for
//! it, so it costs the database next to nothing, and no node ever tells what was true a moment ago.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_mail::message::Summary;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::error::DatabaseError;
use super::rows::{self, split_position};
use super::version_cache::VersionCache;
use crate::feed::{Change, Event, Feed, FeedItem};
use crate::{Result, StoreError, Usage};

/// How long a look may take.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(5);
/// How many news wait for whoever takes the feed.
const FEED_CAPACITY: usize = 64;
/// How many batches of this node may wait to be told. More than that are asked for like those of others.
const MAX_OWN_BATCHES: usize = 256;

/// The side of those who ask.
pub(super) struct ChangeTracker {
    pub(super) version_cache: VersionCache,
    /// By how many microseconds the clock here is ahead of the database's; zero when that is next to nothing.
    clock_error: AtomicI64,
    /// How many have ever asked for a look.
    pub(super) poll_requests: AtomicU64,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) polls: watch::Sender<Poll>,
    /// What this node has changed, by the number of the change before.
    pub(super) own_changes: Mutex<BTreeMap<u64, Vec<Change>>>,
    pub(super) feed: Mutex<Option<mpsc::Sender<FeedItem>>>,
}

/// What wakes the task.
#[derive(Default)]
pub(super) struct Wakeup {
    pub(super) notify: Notify,
    /// Whether another node has told that there is something new, or the connection is broken.
    pub(super) has_remote_changes: AtomicBool,
    /// Whether this node has made changes that others have not been told of.
    pub(super) has_unannounced_changes: AtomicBool,
}

/// The last look: how many of those who had asked it serves, and how it went.
pub(super) struct Poll {
    pub(super) served_requests: u64,
    pub(super) result: Result<PolledState>,
}

/// What a look finds.
#[derive(Clone, Default)]
pub(super) struct PolledState {
    /// How much the store holds.
    pub(super) usage: Usage,
    /// Whether nothing can be stored, as at a server that was in charge before a fail-over.
    pub(super) is_read_only: bool,
}

impl Wakeup {
    pub(super) fn wake_for_remote_changes(&self) {
        self.has_remote_changes.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }
}

impl ChangeTracker {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            version_cache: VersionCache::default(),
            clock_error: AtomicI64::new(0),
            poll_requests: AtomicU64::new(0),
            wakeup: Arc::default(),
            polls: watch::channel(Poll { served_requests: 0, result: Ok(PolledState::default()) }).0,
            own_changes: Mutex::default(),
            feed: Mutex::default(),
        })
    }

    /// Waits until everything is known that has happened so far, on whatever node.
    pub(super) async fn catch_up(&self) -> Result<()> {
        self.request_poll().await.map(drop)
    }

    /// How much the store holds; an error when nothing can be stored there.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let found = self.request_poll().await?;
        if found.is_read_only {
            return Err(StoreError::Unavailable("the database only reads".to_owned()));
        }
        Ok(found.usage)
    }

    async fn request_poll(&self) -> Result<PolledState> {
        let ticket = self.poll_requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut looks = self.polls.subscribe();
        self.wakeup.notify.notify_one();
        let looked = timeout(POLL_TIMEOUT, looks.wait_for(|look| look.served_requests >= ticket)).await;
        let look = looked.map_err(|_| DatabaseError::timed_out("a look into the database"))?;
        look.map_err(|_| StoreError::Unavailable("it is closed".to_owned()))?.result.clone()
    }

    /// What the time is by the database's clock when it is this time here.
    pub(super) fn to_database_time(&self, time: Timestamp) -> Timestamp {
        let error = SignedDuration::from_micros(self.clock_error.load(Ordering::Relaxed));
        time.checked_sub(error).unwrap_or(time)
    }

    /// Whether times are being corrected.
    pub(super) fn is_clock_wrong(&self) -> bool {
        self.clock_error.load(Ordering::Relaxed) != 0
    }

    /// The clock here is ahead by so much. Whether it was wrong before.
    pub(super) fn set_clock_error(&self, error: SignedDuration) -> bool {
        let micros = i64::try_from(error.as_micros()).unwrap_or(0);
        self.clock_error.swap(micros, Ordering::Relaxed) != 0
    }

    /// Takes note of changes that this node has made behind number `before`.
    pub(super) fn record_own_changes(&self, before: u64, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut own = lock(&self.own_changes);
        if own.len() < MAX_OWN_BATCHES {
            own.insert(before, changes);
        }
        drop(own);
        self.wakeup.has_unannounced_changes.store(true, Ordering::SeqCst);
        self.wakeup.notify.notify_one();
    }

    /// The same, with what a function of the database returned for a change that removes messages; which these are.
    pub(super) fn record_deletions(&self, rows: &[Row]) -> Result<Vec<Summary>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let (before, rows) = split_position(rows)?;
        let changes = rows.iter().map(rows::parse_change).collect::<Result<Vec<_>>>()?;
        let deleted = changes.iter().filter_map(|change| match &change.event {
            Event::Deleted(summary) => Some(summary.clone()),
            Event::Stored(_) | Event::Seen { .. } => None,
        });
        let deleted = deleted.collect();
        self.record_own_changes(before, changes);
        Ok(deleted)
    }

    /// The feed, for the first who asks.
    pub(super) fn feed(&self) -> Option<Feed> {
        let mut place = lock(&self.feed);
        if place.is_some() {
            return None;
        }
        let (sender, feed) = Feed::new(FEED_CAPACITY);
        *place = Some(sender);
        drop(place);
        self.wakeup.wake_for_remote_changes();
        Some(feed)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
