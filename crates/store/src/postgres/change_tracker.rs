//! The state that queries share with the [`ChangePoller`](super::change_poller::ChangePoller). The task records which
//! mailboxes have changed, so that cached results can be used until then.
//!
//! Before a cached result is used, the task polls the database for changes. One poll serves all requests that wait for
//! it, so it costs the database very little, and no node ever returns an outdated result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use restante_mail::message::Summary;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::clock::DatabaseClock;
use super::error::DatabaseError;
use super::mailbox_generations::MailboxGenerations;
use super::rows::{self, split_position};
use crate::feed::{Change, CopyEvent, Feed, FeedItem};
use crate::{Result, StoreError, Usage};

/// How long a poll may take.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(5);
/// The capacity of the feed.
const FEED_CAPACITY: usize = 64;
/// The maximum number of batches of this node that wait to be sent to the feed. Further ones are read from the
/// database, like those of other nodes.
const MAX_OWN_BATCHES: usize = 256;

/// The state that queries and the polling task share.
pub(super) struct ChangeTracker {
    pub(super) generations: MailboxGenerations,
    pub(super) database_clock: Arc<DatabaseClock>,
    /// The number of requests for a poll so far.
    pub(super) poll_requests: AtomicU64,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) polls: watch::Sender<Poll>,
    /// The changes of this node that were not sent to the feed yet, by the position of the change before them.
    pub(super) own_changes: Mutex<BTreeMap<u64, Vec<Change>>>,
    /// The position of the last change of this node. Zero if it is not known.
    pub(super) last_own_position: AtomicU64,
    pub(super) feed: Mutex<Option<mpsc::Sender<FeedItem>>>,
}

/// Wakes the polling task.
#[derive(Default)]
pub(super) struct Wakeup {
    pub(super) notify: Notify,
    /// Whether another node has sent a notification, the connection was closed, or the feed was taken.
    pub(super) has_remote_changes: AtomicBool,
    /// Whether other nodes must still be notified of changes of this node.
    pub(super) needs_notification: AtomicBool,
}

/// The result of the last poll, and the number of requests that it serves.
pub(super) struct Poll {
    pub(super) served_requests: u64,
    pub(super) result: Result<PolledState>,
}

/// What a poll returns.
#[derive(Clone, Default)]
pub(super) struct PolledState {
    /// The number of the last change.
    pub(super) last_change: u64,
    /// The usage of the store.
    pub(super) usage: Usage,
    /// Whether the database is read-only, as the former primary after a failover is.
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
            generations: MailboxGenerations::default(),
            database_clock: Arc::default(),
            poll_requests: AtomicU64::new(0),
            wakeup: Arc::default(),
            polls: watch::channel(Poll { served_requests: 0, result: Ok(PolledState::default()) }).0,
            own_changes: Mutex::default(),
            last_own_position: AtomicU64::new(0),
            feed: Mutex::default(),
        })
    }

    /// Waits until this node knows all changes that any node has made so far. Returns the number of the last one.
    pub(super) async fn catch_up(&self) -> Result<u64> {
        self.request_poll().await.map(|state| state.last_change)
    }

    /// Returns the usage of the store. Fails if the database is read-only.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let state = self.request_poll().await?;
        if state.is_read_only {
            return Err(StoreError::Unavailable("the database is read-only".to_owned()));
        }
        Ok(state.usage)
    }

    async fn request_poll(&self) -> Result<PolledState> {
        let request = self.poll_requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut polls = self.polls.subscribe();
        self.wakeup.notify.notify_one();
        let result = timeout(POLL_TIMEOUT, polls.wait_for(|poll| poll.served_requests >= request)).await;
        let poll = result.map_err(|_| DatabaseError::timed_out("polling the database"))?;
        poll.map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))?.result.clone()
    }

    /// Records changes that this node has made after the position `before`.
    pub(super) fn record_own_changes(&self, before: u64, changes: Vec<Change>) {
        let Some(last) = changes.last() else { return };
        self.last_own_position.fetch_max(last.position, Ordering::SeqCst);
        let mut own_changes = self.own_changes.lock();
        if own_changes.len() < MAX_OWN_BATCHES {
            own_changes.insert(before, changes);
        }
        drop(own_changes);
        self.wakeup.needs_notification.store(true, Ordering::SeqCst);
        self.wakeup.notify.notify_one();
    }

    /// Records the deletions that a function of the database returned. Returns the deleted messages.
    pub(super) fn record_deletions(&self, rows: &[Row]) -> Result<Vec<Summary>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let (before, rows) = split_position(rows)?;
        let changes = rows.iter().map(rows::parse_change).collect::<Result<Vec<_>>>()?;
        let deleted = changes.iter().filter_map(|change| match &change.event {
            CopyEvent::Deleted(summary) => Some(summary.clone()),
            CopyEvent::Stored(_) | CopyEvent::Marked(_) => None,
        });
        let deleted = deleted.collect();
        self.record_own_changes(before, changes);
        Ok(deleted)
    }

    /// Returns the feed. Only the first call returns it.
    pub(super) fn feed(&self) -> Option<Feed> {
        let mut sender_slot = self.feed.lock();
        if sender_slot.is_some() {
            return None;
        }
        let (sender, feed) = Feed::new(FEED_CAPACITY);
        *sender_slot = Some(sender);
        drop(sender_slot);
        self.wakeup.wake_for_remote_changes();
        Some(feed)
    }
}
