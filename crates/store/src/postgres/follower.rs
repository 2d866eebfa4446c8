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

use super::knowledge::Knowledge;
use super::rows::{self, opening};
use super::trouble::Trouble;
use crate::feed::{Change, Event, Feed, News};
use crate::{Result, StoreError, Usage};

/// How long a look may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How many news wait for whoever takes the feed.
const FEED: usize = 64;
/// How many batches of this node may wait to be told. More than that are asked for like those of others.
const MAX_OWN: usize = 256;

/// The side of those who ask.
pub(super) struct Follower {
    pub(super) knowledge: Knowledge,
    /// By how many microseconds the clock here is ahead of the database's; zero when that is next to nothing.
    clock_error: AtomicI64,
    /// How many have ever asked for a look.
    pub(super) asked: AtomicU64,
    pub(super) bell: Arc<Bell>,
    pub(super) looks: watch::Sender<Look>,
    /// What this node has changed, by the number of the change before.
    pub(super) own: Mutex<BTreeMap<u64, Vec<Change>>>,
    pub(super) feed: Mutex<Option<mpsc::Sender<News>>>,
}

/// What wakes the task.
#[derive(Default)]
pub(super) struct Bell {
    pub(super) wake: Notify,
    /// Whether another node has told that there is something new, or the connection is broken.
    pub(super) is_rung_by_others: AtomicBool,
    /// Whether this node has made changes that others have not been told of.
    pub(super) is_unannounced: AtomicBool,
}

/// The last look: how many of those who had asked it serves, and how it went.
pub(super) struct Look {
    pub(super) served: u64,
    pub(super) found: Result<Found>,
}

/// What a look finds.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// How much the store holds.
    pub(super) usage: Usage,
    /// Whether nothing can be stored, as at a server that was in charge before a fail-over.
    pub(super) is_read_only: bool,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.is_rung_by_others.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

impl Follower {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            knowledge: Knowledge::default(),
            clock_error: AtomicI64::new(0),
            asked: AtomicU64::new(0),
            bell: Arc::default(),
            looks: watch::channel(Look { served: 0, found: Ok(Found::default()) }).0,
            own: Mutex::default(),
            feed: Mutex::default(),
        })
    }

    /// Waits until everything is known that has happened so far, on whatever node.
    pub(super) async fn catch_up(&self) -> Result<()> {
        self.look().await.map(drop)
    }

    /// How much the store holds; an error when nothing can be stored there.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let found = self.look().await?;
        if found.is_read_only {
            return Err(StoreError::Unavailable("the database only reads".to_owned()));
        }
        Ok(found.usage)
    }

    async fn look(&self) -> Result<Found> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut looks = self.looks.subscribe();
        self.bell.wake.notify_one();
        let looked = timeout(PATIENCE, looks.wait_for(|look| look.served >= ticket)).await;
        let look = looked.map_err(|_| Trouble::too_slow("a look into the database"))?;
        look.map_err(|_| StoreError::Unavailable("it is closed".to_owned()))?.found.clone()
    }

    /// What the time is by the database's clock when it is this time here.
    pub(super) fn corrected(&self, time: Timestamp) -> Timestamp {
        let error = SignedDuration::from_micros(self.clock_error.load(Ordering::Relaxed));
        time.checked_sub(error).unwrap_or(time)
    }

    /// Whether times are being corrected.
    pub(super) fn is_clock_wrong(&self) -> bool {
        self.clock_error.load(Ordering::Relaxed) != 0
    }

    /// The clock here is ahead by so much. Whether it was wrong before.
    pub(super) fn correct_clock_by(&self, error: SignedDuration) -> bool {
        let micros = i64::try_from(error.as_micros()).unwrap_or(0);
        self.clock_error.swap(micros, Ordering::Relaxed) != 0
    }

    /// Takes note of changes that this node has made behind number `before`.
    pub(super) fn know(&self, before: u64, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut own = lock(&self.own);
        if own.len() < MAX_OWN {
            own.insert(before, changes);
        }
        drop(own);
        self.bell.is_unannounced.store(true, Ordering::SeqCst);
        self.bell.wake.notify_one();
    }

    /// The same, with what a function of the database returned for a change that removes messages; which these are.
    pub(super) fn hear(&self, rows: &[Row]) -> Result<Vec<Summary>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let (before, rows) = opening(rows)?;
        let changes = rows.iter().map(rows::change).collect::<Result<Vec<_>>>()?;
        let deleted = changes.iter().filter_map(|change| match &change.event {
            Event::Deleted(summary) => Some(summary.clone()),
            Event::Stored(_) | Event::Seen { .. } => None,
        });
        let deleted = deleted.collect();
        self.know(before, changes);
        Ok(deleted)
    }

    /// The feed, for the first who asks.
    pub(super) fn feed(&self) -> Option<Feed> {
        let mut place = lock(&self.feed);
        if place.is_some() {
            return None;
        }
        let (sender, feed) = Feed::new(FEED);
        *place = Some(sender);
        drop(place);
        self.bell.ring();
        Some(feed)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
