//! The task that reads the changes of all nodes in their order and sends them to the feed. It does not need to read
//! those of this node. A notification wakes it as soon as another node has changed something; polling every second
//! finds changes without it. A node that is alone sends notifications only to be found by others.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use restante_mail::naming::MailboxName;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use super::change_tracker::{ChangeTracker, POLL_TIMEOUT, Poll, PolledState, Wakeup};
use super::database::{Database, Driver, Parameters, setup_sql};
use super::error::DatabaseError;
use super::rows::{self, get_column};
use crate::feed::{Change, CopyEvent, FeedItem};
use crate::sql_values::to_i64;
use crate::{Result, StoreError, Usage};

/// The interval of polls that nothing else triggers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum and the maximum time between two notifications of other nodes.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(4);
const MAX_NOTIFY_INTERVAL: Duration = Duration::from_secs(10);
/// How long after the last notification this node assumes that others are running.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after an error.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The number of changes that one query reads.
const PAGE_ROWS: i64 = 500;
/// The maximum number of messages, and of rows of the history, in the backlog of the feed.
const BACKLOG_ROWS: i64 = 1000;
/// The largest difference between the clocks of this machine and the database that is ignored.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

const SELECT_STATE: &str = "SELECT last_change, last_trimmed, messages, copies, mailboxes, bytes,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
        current_setting('transaction_read_only')::boolean AS is_read_only
    FROM state";
/// One row without a number if there are no changes.
const SELECT_CHANGES: &str =
    "SELECT last_trimmed, change.* FROM state LEFT JOIN changes_after($1, $2) AS change ON true ORDER BY number";
const NOTIFY: &str = "SELECT pg_notify($1, '')";
const SELECT_IS_KNOWN: &str = "SELECT last_change, $1 <= last_trimmed
        OR EXISTS (SELECT FROM copies WHERE id = $1)
        OR EXISTS (SELECT FROM history WHERE number = $1)
        OR EXISTS (SELECT FROM history WHERE deleted AND id = $1) AS is_known
    FROM state";
const SELECT_BACKLOG_START: &str = "SELECT coalesce(greatest(
        (SELECT id FROM copies ORDER BY id DESC OFFSET $1 LIMIT 1),
        (SELECT number FROM history ORDER BY number DESC OFFSET $1 LIMIT 1)
    ), 0) AS start";

/// See the module documentation.
pub(super) struct ChangePoller {
    database: Arc<Database>,
    tracker: Arc<ChangeTracker>,
    connection: Option<Arc<ListenConnection>>,
    /// The position of the last known change. `None` before the first poll.
    last_position: Option<u64>,
    /// Whether the backlog was sent to the feed.
    is_backlog_sent: bool,
    /// When other nodes were last notified.
    last_notified: Instant,
    /// Until when other nodes may be running: those that have sent a notification, or may have missed one of this node.
    peers_until: Instant,
    last_poll: Instant,
    last_failure: Option<Instant>,
}

/// A connection that receives notifications of other nodes, and its prepared statements.
struct ListenConnection {
    client: Client,
    select_state: Statement,
    select_changes: Statement,
    notify: Statement,
}

impl ListenConnection {
    async fn query_one(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Row, DatabaseError> {
        with_timeout(self.client.query_one(statement, parameters)).await
    }

    /// Returns the first changes after a position. All copies of a message are in the same result.
    async fn changes_after(&self, position: i64) -> Result<ChangePage, DatabaseError> {
        let mut page_rows = PAGE_ROWS;
        loop {
            let rows = with_timeout(self.client.query(&self.select_changes, &[&position, &page_rows])).await?;
            let first = rows.first().ok_or_else(|| rows::missing_error("the state"))?;
            let last_trimmed = rows::get_u64(first, "last_trimmed")?;
            let has_changes = get_column::<Option<i64>>(first, "number")?.is_some();
            let changes = rows.iter().filter(|_| has_changes).map(rows::parse_change);
            let mut changes = changes.collect::<Result<Vec<_>>>()?;
            if to_i64(changes.len()) < page_rows {
                return Ok(ChangePage { changes, last_trimmed });
            }
            let complete = complete_messages(&changes);
            if complete > 0 {
                changes.truncate(complete);
                return Ok(ChangePage { changes, last_trimmed });
            }
            // All rows belong to one message.
            page_rows = page_rows.saturating_mul(4);
        }
    }
}

/// Changes after a position.
struct ChangePage {
    changes: Vec<Change>,
    /// The position up to which the history was trimmed when they were read. If it is higher, some of them are missing.
    last_trimmed: u64,
}

async fn with_timeout<T>(query: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, DatabaseError> {
    let timed_out = |_| DatabaseError::timed_out("polling the database");
    Ok(timeout(POLL_TIMEOUT, query).await.map_err(timed_out)??)
}

impl ChangePoller {
    pub(super) fn new(database: Arc<Database>, tracker: Arc<ChangeTracker>) -> Self {
        let now = Instant::now();
        Self {
            database,
            tracker,
            connection: None,
            last_position: None,
            is_backlog_sent: false,
            last_notified: now,
            peers_until: now,
            last_poll: now,
            last_failure: None,
        }
    }

    /// Runs until it is aborted.
    pub(super) async fn run(mut self) {
        let wakeup = self.tracker.wakeup.clone();
        loop {
            tokio::select! {
                () = wakeup.notify.notified() => {},
                () = sleep_until(self.next_work()) => {},
            }
            self.publish_own().await;
            let requests = self.tracker.poll_requests.load(Ordering::SeqCst);
            if self.is_poll_due(requests) {
                let result = self.poll_unless_failing().await.map_err(StoreError::from);
                self.tracker.polls.send_replace(Poll { served_requests: requests, result });
            }
            if self.next_notification().is_some_and(|due| due <= Instant::now()) {
                self.notify_nodes().await;
            }
        }
    }

    /// Returns when the next poll or notification is due.
    fn next_work(&self) -> Instant {
        let poll = self.next_poll();
        self.next_notification().map_or(poll, |notification| notification.min(poll))
    }

    /// Returns when the next poll is due, if none is requested. Changes of this node that follow those of another node must
    /// not wait for its notification.
    fn next_poll(&self) -> Instant {
        let last_own = self.tracker.last_own_position.load(Ordering::SeqCst);
        let has_unknown_changes = self.last_position.is_some_and(|last| last < last_own);
        let interval = if has_unknown_changes { MIN_NOTIFY_INTERVAL } else { POLL_INTERVAL };
        self.last_failure.map_or(self.last_poll + interval, |failed| failed + RETRY_DELAY)
    }

    /// Returns when other nodes are notified next. If there are none, they need not be notified of changes. `None` without
    /// a connection.
    fn next_notification(&self) -> Option<Instant> {
        self.connection.as_ref()?;
        let is_needed = self.tracker.wakeup.needs_notification.load(Ordering::SeqCst);
        let has_peers = Instant::now() < self.peers_until;
        Some(self.last_notified + if is_needed && has_peers { MIN_NOTIFY_INTERVAL } else { MAX_NOTIFY_INTERVAL })
    }

    /// Returns whether the database must be polled.
    fn is_poll_due(&mut self, requests: u64) -> bool {
        let is_notified = self.tracker.wakeup.has_remote_changes.swap(false, Ordering::SeqCst);
        if is_notified {
            self.peers_until = Instant::now() + PEER_TIMEOUT;
        }
        is_notified || self.next_poll() <= Instant::now() || self.tracker.polls.borrow().served_requests < requests
    }

    /// Notifies other nodes of changes of this node, and that it is running. If this fails, other nodes find the changes by
    /// their polls.
    async fn notify_nodes(&mut self) {
        let Some(connection) = self.connection.clone() else { return };
        self.last_notified = Instant::now();
        self.tracker.wakeup.needs_notification.store(false, Ordering::SeqCst);
        if let Err(error) = connection.query_one(&connection.notify, &[&self.database.schema()]).await {
            tracing::debug!(error = %error.error, "cannot notify other nodes");
            if connection.client.is_closed() {
                self.connection = None;
            }
        }
    }

    /// Polls. If the last poll has just failed, returns its error again instead.
    async fn poll_unless_failing(&mut self) -> Result<PolledState, DatabaseError> {
        if let Some(failed) = self.last_failure
            && failed.elapsed() < RETRY_DELAY
            && let Err(error) = self.tracker.polls.borrow().result.clone()
        {
            return Err(error.into());
        }
        self.last_poll = Instant::now();
        let result = self.poll().await;
        match &result {
            Ok(_) if self.last_failure.take().is_some() => tracing::info!("the database is available again"),
            Ok(_) => {}
            Err(error) => {
                if self.last_failure.is_none() {
                    tracing::error!(error = %error.error, "the database is unavailable, retrying");
                }
                self.last_failure = Some(Instant::now());
                self.connection = None;
            }
        }
        result
    }

    async fn poll(&mut self) -> Result<PolledState, DatabaseError> {
        let connection = self.connect().await?;
        let query_start = Timestamp::now();
        let state = connection.query_one(&connection.select_state, &[]).await?;
        let (last_change, last_trimmed) =
            (rows::get_u64(&state, "last_change")?, rows::get_u64(&state, "last_trimmed")?);
        self.compare_clocks(query_start, get_column(&state, "now")?);
        match self.last_position {
            None => self.last_position = Some(last_change),
            Some(last) if last < last_trimmed && last < last_change => self.publish_gap(last_change).await,
            // The last known change is gone: a server took over that had not received it.
            Some(last) if last > last_change => self.publish_gap(last_change).await,
            Some(_) => {}
        }
        if !self.is_backlog_sent {
            self.send_backlog(&connection).await?;
        }
        while let Some(last) = self.last_position.filter(|last| *last < last_change) {
            let ChangePage { changes, last_trimmed } = connection.changes_after(to_i64(last)).await?;
            if last < last_trimmed {
                self.publish_gap(last_change.max(last_trimmed)).await;
            } else if changes.is_empty() {
                break;
            } else {
                self.publish(changes).await;
            }
        }
        let usage = Usage {
            messages: rows::get_u64(&state, "messages")?,
            copies: rows::get_u64(&state, "copies")?,
            mailboxes: rows::get_u64(&state, "mailboxes")?,
            bytes: rows::get_u64(&state, "bytes")?,
        };
        Ok(PolledState { last_change, usage, is_read_only: get_column(&state, "is_read_only")? })
    }

    /// Compares the clock of this machine with that of the database, which all nodes use. The database read its clock
    /// between `query_start` and now.
    fn compare_clocks(&self, query_start: Timestamp, database: i64) {
        let tolerance = if self.tracker.database_clock.is_wrong() { CLOCK_TOLERANCE / 2 } else { CLOCK_TOLERANCE };
        let error = clock_error(query_start.as_microsecond(), Timestamp::now().as_microsecond(), database);
        let error = if error.abs() > tolerance { error } else { SignedDuration::ZERO };
        let was_wrong = self.tracker.database_clock.set_error(error);
        match (was_wrong, error.is_zero()) {
            (false, false) => {
                let seconds = error.as_secs();
                tracing::warn!(
                    seconds,
                    "the clock of this machine differs from that of the database; times are corrected"
                );
            }
            (true, true) => tracing::info!("the clock of this machine agrees with that of the database again"),
            _ => {}
        }
    }

    /// Returns the connection. Opens it if necessary.
    async fn connect(&mut self) -> Result<Arc<ListenConnection>, DatabaseError> {
        if let Some(connection) = self.connection.as_ref().filter(|connection| !connection.client.is_closed()) {
            return Ok(connection.clone());
        }
        let connected = self.database.connect().await;
        let (client, driver) = connected.ok_or_else(|| DatabaseError::timed_out("connecting to the database"))??;
        let backend_pid = Arc::new(AtomicI32::new(0));
        tokio::spawn(drive_connection(driver, self.tracker.wakeup.clone(), backend_pid.clone()));
        // A notification need not be durable.
        let schema = self.database.schema();
        let setup = format!("{}; SET synchronous_commit TO off; LISTEN {schema}", setup_sql(schema));
        let (select_state, select_changes, notify) = with_timeout(async {
            client.batch_execute(&setup).await?;
            backend_pid.store(client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Relaxed);
            tokio::try_join!(client.prepare(SELECT_STATE), client.prepare(SELECT_CHANGES), client.prepare(NOTIFY))
        })
        .await?;
        let connection = Arc::new(ListenConnection { client, select_state, select_changes, notify });
        self.peers_until = Instant::now() + PEER_TIMEOUT;
        if let Some(last) = self.last_position {
            self.check_continuity(&connection, last).await?;
        }
        self.connection = Some(connection.clone());
        // Nodes that run notify this one from now on.
        self.notify_nodes().await;
        Ok(connection)
    }

    /// Checks that the database contains the last change that this node knows, and reports a gap if not. After the
    /// connection was lost, a server may have taken over that had not received all changes, even if it has made others
    /// since.
    async fn check_continuity(&mut self, connection: &ListenConnection, last: u64) -> Result<(), DatabaseError> {
        // The changes of this node are read again too.
        self.tracker.own_changes.lock().clear();
        let row = with_timeout(connection.client.query_one(SELECT_IS_KNOWN, &[&to_i64(last)])).await?;
        if !row.try_get::<_, bool>("is_known")? {
            self.publish_gap(rows::get_u64(&row, "last_change")?).await;
        }
        Ok(())
    }

    /// Sends the changes of this node to the feed, up to the first one that follows a change of another node.
    async fn publish_own(&mut self) {
        while let Some(last) = self.last_position {
            let next = {
                let mut own = self.tracker.own_changes.lock();
                // Changes that were read meanwhile are known.
                *own = own.split_off(&last);
                own.remove(&last)
            };
            let Some(changes) = next else { return };
            self.publish(changes).await;
        }
    }

    async fn publish(&mut self, changes: Vec<Change>) {
        let Some(newest) = changes.last().map(|change| change.position) else { return };
        for change in &changes {
            self.tracker.generations.invalidate(mailbox_of(change));
        }
        // The position advances only after the changes were sent, so that none is skipped.
        self.send_after_backlog(FeedItem::Changes(changes)).await;
        self.last_position = Some(newest);
    }

    /// Reports that the changes since the last poll are not known any more.
    async fn publish_gap(&mut self, last_change: u64) {
        tracing::warn!(
            "changes since the last poll are unknown: the history was trimmed, or another database server took over"
        );
        self.tracker.generations.invalidate_all();
        // The changes of this node may be lost.
        self.tracker.last_own_position.store(0, Ordering::SeqCst);
        self.send_after_backlog(FeedItem::Gap).await;
        self.last_position = Some(last_change);
    }

    /// Sends the latest changes to the feed, if it was taken.
    async fn send_backlog(&mut self, connection: &ListenConnection) -> Result<(), DatabaseError> {
        let Some(last) = self.last_position.filter(|_| self.tracker.feed.lock().is_some()) else { return Ok(()) };
        let start: i64 = with_timeout(connection.client.query_one(SELECT_BACKLOG_START, &[&BACKLOG_ROWS]))
            .await?
            .try_get("start")?;
        let (mut start, mut after, mut all) = (start, rows::to_u64(start), Vec::new());
        while start < to_i64(last) {
            let ChangePage { changes, last_trimmed } = connection.changes_after(start).await?;
            after = after.max(last_trimmed);
            let Some(newest) = changes.last() else { break };
            start = to_i64(newest.position);
            all.extend(changes.into_iter().take_while(|change| change.position <= last));
        }
        self.send(FeedItem::Backlog { after, changes: all }).await;
        self.is_backlog_sent = true;
        Ok(())
    }

    /// Sends an item to the feed, if the backlog was sent before.
    async fn send_after_backlog(&self, item: FeedItem) {
        if self.is_backlog_sent {
            self.send(item).await;
        }
    }

    async fn send(&self, item: FeedItem) {
        let feed = self.tracker.feed.lock().clone();
        if let Some(feed) = feed {
            // The feed may have been dropped.
            let _ = feed.send(item).await;
        }
    }
}

/// Drives a connection, and wakes the [`ChangePoller`] when another node sends a notification.
async fn drive_connection(mut driver: Driver, wakeup: Arc<Wakeup>, backend_pid: Arc<AtomicI32>) {
    let mut messages = stream::poll_fn(|context| driver.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message
            && notification.process_id() != backend_pid.load(Ordering::Relaxed)
        {
            wakeup.wake_for_remote_changes();
        }
    }
    // The connection is closed. The next poll notices that.
    wakeup.wake_for_remote_changes();
}

/// Returns the number of changes before the message at the end, whose other copies may follow. If the last change is not
/// a stored copy, returns the number of all changes.
fn complete_messages(changes: &[Change]) -> usize {
    let stored_message = |change: &Change| match &change.event {
        CopyEvent::Stored(summary) => Some(summary.message),
        _ => None,
    };
    let Some(last) = changes.last().and_then(stored_message) else { return changes.len() };
    changes.len() - changes.iter().rev().take_while(|change| stored_message(change) == Some(last)).count()
}

fn mailbox_of(change: &Change) -> &MailboxName {
    match &change.event {
        CopyEvent::Stored(summary) | CopyEvent::Deleted(summary) => &summary.mailbox,
        CopyEvent::Marked(change) => &change.mailbox,
    }
}

/// Returns how far a clock is ahead of another one. The clock showed `before` and `after`, in microseconds; in between,
/// the other one showed `other`.
fn clock_error(before: i64, after: i64, other: i64) -> SignedDuration {
    let nearest = other.clamp(before, after.max(before));
    SignedDuration::from_micros(nearest - other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangedMarks;
    use crate::feed::MarkChange;

    #[test]
    fn page_ends_before_the_message_at_its_end() {
        let change = |event| Change { position: 1, event };
        let stored = |message: u64| {
            let message = crate::tests::conformance::summary(message);
            change(CopyEvent::Stored(message))
        };
        let seen = || {
            let mailbox = crate::tests::conformance::name("bob");
            let marks = restante_mail::message::Marks { seen: true, ..Default::default() };
            let changed = ChangedMarks { seen: true, ..ChangedMarks::default() };
            change(CopyEvent::Marked(MarkChange { mailbox, id: 1.into(), changed, marks }))
        };
        let table = [
            (vec![], 0),
            (vec![stored(1)], 0),
            (vec![stored(1), stored(1)], 0),
            (vec![stored(1), stored(2), stored(2)], 1),
            (vec![stored(1), stored(2), seen()], 3),
            (vec![seen(), stored(2)], 1),
        ];
        for (changes, complete) in table {
            assert_eq!(complete_messages(&changes), complete, "{changes:?}");
        }
    }

    #[test]
    fn clock_error_excludes_query_time() {
        const SECOND: i64 = 1_000_000;
        for (before, after, other, seconds) in [
            (100, 100, 100, 0),
            (100, 100, 97, 3),
            (100, 100, 190, -90),
            // The result took long.
            (100, 108, 104, 0),
            (100, 108, 90, 10),
            (100, 108, 120, -12),
            // The clock was set back meanwhile.
            (100, 90, 100, 0),
        ] {
            let error = clock_error(before * SECOND, after * SECOND, other * SECOND);
            assert_eq!(error, SignedDuration::from_secs(seconds), "{before} {after} {other}");
        }
    }
}
