//! The task that follows what all nodes do: it reads the changes in their order, or knows them because this node has made them, and
//! tells the feed. A notification says at once that others have changed something; a look every second finds it in any case.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use restante_mail::naming::MailboxName;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use super::change_tracker::{ChangeTracker, POLL_TIMEOUT, Poll, PolledState, Wakeup, lock};
use super::database::{Database, Driver, Parameters, setup_sql};
use super::error::DatabaseError;
use super::rows::{self, get_column};
use crate::feed::{Change, Event, FeedItem};
use crate::{Result, StoreError, Usage};

/// How often it is looked without any reason.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Other nodes are told at most so often that there is something new.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(4);
/// How long it is waited after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// How many changes are read at once.
const PAGE_ROWS: i64 = 500;
/// How many messages and how much of the past the feed begins with that are not quite new.
const BACKLOG_ROWS: i64 = 1000;
/// By how much the clock of this machine may differ from the database's.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

const SELECT_STATE: &str = "SELECT clock, forgotten, messages, mailboxes, bytes,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
        current_setting('transaction_read_only')::boolean AS is_read_only
    FROM state";
const SELECT_CHANGES: &str = "SELECT * FROM changes($1, $2)";
const NOTIFY: &str = "SELECT pg_notify($1, $2)";
const SELECT_IS_KNOWN: &str = "SELECT clock, $1 <= forgotten
        OR EXISTS (SELECT FROM copies WHERE id = $1)
        OR EXISTS (SELECT FROM past WHERE number = $1)
        OR EXISTS (SELECT FROM past WHERE deleted AND id = $1) AS is_known
    FROM state";
const SELECT_BACKLOG_START: &str = "SELECT coalesce(greatest(
        (SELECT id FROM copies ORDER BY id DESC OFFSET $1 LIMIT 1),
        (SELECT number FROM past ORDER BY number DESC OFFSET $1 LIMIT 1)
    ), 0) AS start";

/// See the file's documentation.
pub(super) struct ChangePoller {
    database: Arc<Database>,
    tracker: Arc<ChangeTracker>,
    connection: Option<Arc<ListenConnection>>,
    /// The number of the last change that is known; none before the first look.
    last_position: Option<u64>,
    /// Whether the feed has been told what is not quite new.
    is_backlog_sent: bool,
    /// When other nodes were last told that there is something new.
    last_notified: Instant,
    last_poll: Instant,
    last_failure: Option<Instant>,
}

/// A connection that hears what other nodes tell, and what is asked with it.
struct ListenConnection {
    client: Client,
    select_state: Statement,
    select_changes: Statement,
    notify: Statement,
}

impl ListenConnection {
    async fn query_one(&self, question: &Statement, parameters: Parameters<'_>) -> Result<Row, DatabaseError> {
        with_timeout(self.client.query_one(question, parameters)).await
    }

    /// The first changes behind this number.
    async fn changes_after(&self, number: i64) -> Result<Vec<Change>, DatabaseError> {
        let rows = with_timeout(self.client.query(&self.select_changes, &[&number, &PAGE_ROWS])).await?;
        Ok(rows.iter().map(rows::parse_change).collect::<Result<_>>()?)
    }
}

async fn with_timeout<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, DatabaseError> {
    let late = |_| DatabaseError::timed_out("a look into the database");
    Ok(timeout(POLL_TIMEOUT, answer).await.map_err(late)??)
}

impl ChangePoller {
    pub(super) fn new(database: Arc<Database>, follower: Arc<ChangeTracker>) -> Self {
        let now = Instant::now();
        Self {
            database,
            tracker: follower,
            connection: None,
            last_position: None,
            is_backlog_sent: false,
            last_notified: now,
            last_poll: now,
            last_failure: None,
        }
    }

    /// Works until it is aborted.
    pub(super) async fn run(mut self) {
        let bell = self.tracker.wakeup.clone();
        loop {
            tokio::select! {
                () = bell.notify.notified() => {},
                () = sleep_until(self.next_poll()) => {},
            }
            self.publish_own().await;
            let served = self.tracker.poll_requests.load(Ordering::SeqCst);
            if self.is_poll_due(served) {
                let found = self.poll_unless_failing().await.map_err(StoreError::from);
                self.tracker.polls.send_replace(Poll { served_requests: served, result: found });
            }
        }
    }

    /// When it is looked again, if nobody asks for it.
    fn next_poll(&self) -> Instant {
        let usual = self.last_poll + POLL_INTERVAL;
        match self.last_failure {
            Some(failed) => failed + RETRY_DELAY,
            None if self.tracker.wakeup.has_unannounced_changes.load(Ordering::SeqCst) => {
                usual.min(self.last_notified + MIN_NOTIFY_INTERVAL)
            }
            None => usual,
        }
    }

    /// Whether there is a reason to ask the database, other than what this node has done itself.
    fn is_poll_due(&self, asked: u64) -> bool {
        let is_rung = self.tracker.wakeup.has_remote_changes.swap(false, Ordering::SeqCst);
        is_rung || self.next_poll() <= Instant::now() || self.tracker.polls.borrow().served_requests < asked
    }

    /// Looks, unless it has failed only just now, and then says so again.
    async fn poll_unless_failing(&mut self) -> Result<PolledState, DatabaseError> {
        if let Some(failed) = self.last_failure
            && failed.elapsed() < RETRY_DELAY
            && let Err(failure) = self.tracker.polls.borrow().result.clone()
        {
            return Err(failure.into());
        }
        self.last_poll = Instant::now();
        let looked = self.poll().await;
        match &looked {
            Ok(_) if self.last_failure.take().is_some() => tracing::info!("the database is there again"),
            Ok(_) => {}
            Err(trouble) => {
                if self.last_failure.is_none() {
                    tracing::error!(error = %trouble.error, "the database cannot be asked; it is tried again");
                }
                self.last_failure = Some(Instant::now());
                self.connection = None;
            }
        }
        looked
    }

    async fn poll(&mut self) -> Result<PolledState, DatabaseError> {
        let ears = self.connect().await?;
        let asked = Timestamp::now();
        let state = ears.query_one(&ears.select_state, &[]).await?;
        let (clock, forgotten) = (rows::get_u64(&state, "clock")?, rows::get_u64(&state, "forgotten")?);
        self.compare_clocks(asked, get_column(&state, "now")?);
        match self.last_position {
            None => self.last_position = Some(clock),
            Some(last) if last < forgotten && last < clock => self.publish_gap(clock).await,
            // What was known never happened: another server took over that had not heard of it.
            Some(last) if last > clock => self.publish_gap(clock).await,
            Some(_) => {}
        }
        if !self.is_backlog_sent {
            self.send_backlog(&ears).await?;
        }
        while let Some(last) = self.last_position.filter(|last| *last < clock) {
            let changes = ears.changes_after(to_i64(last)).await?;
            // What was forgotten just before they were read is missing among them.
            let state = ears.query_one(&ears.select_state, &[]).await?;
            if last < rows::get_u64(&state, "forgotten")? {
                self.publish_gap(rows::get_u64(&state, "clock")?).await;
            } else if changes.is_empty() {
                break;
            } else {
                self.publish(changes).await;
            }
        }
        if self.tracker.wakeup.has_unannounced_changes.load(Ordering::SeqCst)
            && self.last_notified.elapsed() >= MIN_NOTIFY_INTERVAL
        {
            self.last_notified = Instant::now();
            self.tracker.wakeup.has_unannounced_changes.store(false, Ordering::SeqCst);
            let told = ears.query_one(&ears.notify, &[&self.database.schema(), &clock.to_string()]).await;
            self.tracker.wakeup.has_unannounced_changes.fetch_or(told.is_err(), Ordering::SeqCst);
            told?;
        }
        let usage = Usage {
            messages: rows::get_u64(&state, "messages")?,
            mailboxes: rows::get_u64(&state, "mailboxes")?,
            bytes: rows::get_u64(&state, "bytes")?,
        };
        Ok(PolledState { usage, is_read_only: get_column(&state, "is_read_only")? })
    }

    /// Notes by how much the clock here is wrong: that of the database is the one that all nodes go by. What it said it read some time
    /// between the question and now.
    fn compare_clocks(&self, asked: Timestamp, database: i64) {
        let tolerance = if self.tracker.is_clock_wrong() { CLOCK_TOLERANCE / 2 } else { CLOCK_TOLERANCE };
        let error = clock_error(asked.as_microsecond(), Timestamp::now().as_microsecond(), database);
        let error = if error.abs() > tolerance { error } else { SignedDuration::ZERO };
        let was_wrong = self.tracker.set_clock_error(error);
        match (was_wrong, error.is_zero()) {
            (false, false) => {
                let seconds = error.as_secs();
                tracing::warn!(
                    seconds,
                    "the clock of this machine differs from the database's, by which all times are corrected"
                );
            }
            (true, true) => tracing::info!("the clock of this machine agrees with the database's again"),
            _ => {}
        }
    }

    /// The connection, which also hears what other nodes tell.
    async fn connect(&mut self) -> Result<Arc<ListenConnection>, DatabaseError> {
        if let Some(ears) = self.connection.as_ref().filter(|ears| !ears.client.is_closed()) {
            return Ok(ears.clone());
        }
        let connected = self.database.connect().await;
        let (client, driver) = connected.ok_or_else(|| DatabaseError::timed_out("a connection to the database"))??;
        let process = Arc::new(AtomicI32::new(0));
        tokio::spawn(drive_connection(driver, self.tracker.wakeup.clone(), process.clone()));
        // What is told to others need not be durable.
        let orders = format!(
            "{}; SET synchronous_commit TO off; LISTEN {}",
            setup_sql(self.database.schema()),
            self.database.schema()
        );
        let (look, changes, notify) = with_timeout(async {
            client.batch_execute(&orders).await?;
            process.store(client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Relaxed);
            tokio::try_join!(client.prepare(SELECT_STATE), client.prepare(SELECT_CHANGES), client.prepare(NOTIFY))
        })
        .await?;
        let ears = Arc::new(ListenConnection { client, select_state: look, select_changes: changes, notify });
        if let Some(last) = self.last_position {
            self.check_continuity(&ears, last).await?;
        }
        self.connection = Some(ears.clone());
        Ok(ears)
    }

    /// After a connection was lost, another server may have taken over that has not heard of everything, even if it has heard of other
    /// things since. So it is asked whether it knows the last change that is known here.
    async fn check_continuity(&mut self, ears: &ListenConnection, last: u64) -> Result<(), DatabaseError> {
        // What this node has done is asked for as well.
        lock(&self.tracker.own_changes).clear();
        let row = with_timeout(ears.client.query_one(SELECT_IS_KNOWN, &[&to_i64(last)])).await?;
        if !row.try_get::<_, bool>("is_known")? {
            self.publish_gap(rows::get_u64(&row, "clock")?).await;
        }
        Ok(())
    }

    /// Tells what this node has changed itself, as far as nothing of others is in between.
    async fn publish_own(&mut self) {
        while let Some(last) = self.last_position {
            let next = {
                let mut own = lock(&self.tracker.own_changes);
                // What was asked for meanwhile is known.
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
            self.tracker.version_cache.invalidate(mailbox_of(change));
        }
        // Whoever is told may take so long that this is given up. Then it comes again.
        self.send_after_backlog(FeedItem::Changes(changes)).await;
        self.last_position = Some(newest);
    }

    /// It is not known what has happened since the last time.
    async fn publish_gap(&mut self, clock: u64) {
        tracing::warn!("the database cannot tell any more what has happened since it was last asked");
        self.tracker.version_cache.invalidate_all();
        self.send_after_backlog(FeedItem::Gap).await;
        self.last_position = Some(clock);
    }

    /// Tells the feed of the latest messages, when somebody has taken it.
    async fn send_backlog(&mut self, ears: &ListenConnection) -> Result<(), DatabaseError> {
        let Some(last) = self.last_position.filter(|_| lock(&self.tracker.feed).is_some()) else { return Ok(()) };
        let start: i64 =
            with_timeout(ears.client.query_one(SELECT_BACKLOG_START, &[&BACKLOG_ROWS])).await?.try_get("start")?;
        let (mut start, mut behind, mut all) = (start, rows::to_u64(start), Vec::new());
        while start < to_i64(last) {
            let changes = ears.changes_after(start).await?;
            let Some(newest) = changes.last() else { break };
            start = to_i64(newest.position);
            all.extend(changes.into_iter().take_while(|change| change.position <= last));
        }
        // Asked for now, because what was there may have been tidied away before it was read.
        let state = ears.query_one(&ears.select_state, &[]).await?;
        behind = behind.max(rows::get_u64(&state, "forgotten")?);
        self.send(FeedItem::Backlog { after: behind, changes: all }).await;
        self.is_backlog_sent = true;
        Ok(())
    }

    /// Tells the feed, once it has heard what came before.
    async fn send_after_backlog(&self, news: FeedItem) {
        if self.is_backlog_sent {
            self.send(news).await;
        }
    }

    async fn send(&self, news: FeedItem) {
        let feed = lock(&self.tracker.feed).clone();
        if let Some(feed) = feed {
            // Whoever had the feed may have gone.
            let _ = feed.send(news).await;
        }
    }
}

/// Keeps a connection going, and rings the bell when other nodes tell that there is something new.
async fn drive_connection(mut driver: Driver, bell: Arc<Wakeup>, process: Arc<AtomicI32>) {
    let mut messages = stream::poll_fn(|context| driver.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message
            && notification.process_id() != process.load(Ordering::Relaxed)
        {
            bell.wake_for_remote_changes();
        }
    }
    // It is broken: whoever looks next will notice.
    bell.wake_for_remote_changes();
}

fn mailbox_of(change: &Change) -> &MailboxName {
    match &change.event {
        Event::Stored(summary) | Event::Deleted(summary) => &summary.mailbox,
        Event::Seen { mailbox, .. } => mailbox,
    }
}

/// By how much a clock is ahead that showed these microseconds before and after the other one showed its own.
fn clock_error(before: i64, after: i64, other: i64) -> SignedDuration {
    let nearest = other.clamp(before, after.max(before));
    SignedDuration::from_micros(nearest - other)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_wrong_only_if_waiting_does_not_explain_it() {
        const SECOND: i64 = 1_000_000;
        for (before, after, other, seconds) in [
            (100, 100, 100, 0),
            (100, 100, 97, 3),
            (100, 100, 190, -90),
            // The answer took its time.
            (100, 108, 104, 0),
            (100, 108, 90, 10),
            (100, 108, 120, -12),
            // The clock was put back meanwhile.
            (100, 90, 100, 0),
        ] {
            let error = clock_error(before * SECOND, after * SECOND, other * SECOND);
            assert_eq!(error, SignedDuration::from_secs(seconds), "{before} {after} {other}");
        }
    }
}
