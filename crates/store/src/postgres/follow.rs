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

use super::database::{Database, Driver, Parameters, setup};
use super::follower::{Bell, Follower, Found, Look, PATIENCE, lock};
use super::rows::{self, value};
use super::trouble::Trouble;
use crate::feed::{Change, Event, News};
use crate::{Result, StoreError, Usage};

/// How often it is looked without any reason.
const INTERVAL: Duration = Duration::from_secs(1);
/// Other nodes are told at most so often that there is something new.
const PACE: Duration = Duration::from_millis(4);
/// How long it is waited after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// How many changes are read at once.
const PAGE: i64 = 500;
/// How many messages and how much of the past the feed begins with that are not quite new.
const WARM: i64 = 1000;
/// By how much the clock of this machine may differ from the database's.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

const LOOK: &str = "SELECT clock, forgotten, messages, mailboxes, bytes,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
        current_setting('transaction_read_only')::boolean AS is_read_only
    FROM state";
const CHANGES: &str = "SELECT * FROM changes($1, $2)";
const NOTIFY: &str = "SELECT pg_notify($1, $2)";
const CHECK: &str = "SELECT clock, $1 <= forgotten
        OR EXISTS (SELECT FROM copies WHERE id = $1)
        OR EXISTS (SELECT FROM past WHERE number = $1)
        OR EXISTS (SELECT FROM past WHERE deleted AND id = $1) AS is_known
    FROM state";
const WARM_START: &str = "SELECT coalesce(greatest(
        (SELECT id FROM copies ORDER BY id DESC OFFSET $1 LIMIT 1),
        (SELECT number FROM past ORDER BY number DESC OFFSET $1 LIMIT 1)
    ), 0) AS start";

/// See the file's documentation.
pub(super) struct Task {
    database: Arc<Database>,
    follower: Arc<Follower>,
    ears: Option<Arc<Ears>>,
    /// The number of the last change that is known; none before the first look.
    last: Option<u64>,
    /// Whether the feed has been told what is not quite new.
    is_warm: bool,
    /// When other nodes were last told that there is something new.
    announced: Instant,
    looked: Instant,
    failed: Option<Instant>,
}

/// A connection that hears what other nodes tell, and what is asked with it.
struct Ears {
    client: Client,
    look: Statement,
    changes: Statement,
    notify: Statement,
}

impl Ears {
    async fn one(&self, question: &Statement, parameters: Parameters<'_>) -> Result<Row, Trouble> {
        within_time(self.client.query_one(question, parameters)).await
    }

    /// The first changes behind this number.
    async fn changes_behind(&self, number: i64) -> Result<Vec<Change>, Trouble> {
        let rows = within_time(self.client.query(&self.changes, &[&number, &PAGE])).await?;
        Ok(rows.iter().map(rows::change).collect::<Result<_>>()?)
    }
}

async fn within_time<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Trouble> {
    let late = |_| Trouble::too_slow("a look into the database");
    Ok(timeout(PATIENCE, answer).await.map_err(late)??)
}

impl Task {
    pub(super) fn new(database: Arc<Database>, follower: Arc<Follower>) -> Self {
        let now = Instant::now();
        Self { database, follower, ears: None, last: None, is_warm: false, announced: now, looked: now, failed: None }
    }

    /// Works until it is aborted.
    pub(super) async fn run(mut self) {
        let bell = self.follower.bell.clone();
        loop {
            tokio::select! {
                () = bell.wake.notified() => {},
                () = sleep_until(self.next_look()) => {},
            }
            self.tell_own().await;
            let served = self.follower.asked.load(Ordering::SeqCst);
            if self.looks_are_due(served) {
                let found = self.look_or_rest().await.map_err(StoreError::from);
                self.follower.looks.send_replace(Look { served, found });
            }
        }
    }

    /// When it is looked again, if nobody asks for it.
    fn next_look(&self) -> Instant {
        let usual = self.looked + INTERVAL;
        match self.failed {
            Some(failed) => failed + PAUSE,
            None if self.follower.bell.is_unannounced.load(Ordering::SeqCst) => usual.min(self.announced + PACE),
            None => usual,
        }
    }

    /// Whether there is a reason to ask the database, other than what this node has done itself.
    fn looks_are_due(&self, asked: u64) -> bool {
        let is_rung = self.follower.bell.is_rung_by_others.swap(false, Ordering::SeqCst);
        is_rung || self.next_look() <= Instant::now() || self.follower.looks.borrow().served < asked
    }

    /// Looks, unless it has failed only just now, and then says so again.
    async fn look_or_rest(&mut self) -> Result<Found, Trouble> {
        if let Some(failed) = self.failed
            && failed.elapsed() < PAUSE
            && let Err(failure) = self.follower.looks.borrow().found.clone()
        {
            return Err(failure.into());
        }
        self.looked = Instant::now();
        let looked = self.look().await;
        match &looked {
            Ok(_) if self.failed.take().is_some() => tracing::info!("the database is there again"),
            Ok(_) => {}
            Err(trouble) => {
                if self.failed.is_none() {
                    tracing::error!(error = %trouble.error, "the database cannot be asked; it is tried again");
                }
                self.failed = Some(Instant::now());
                self.ears = None;
            }
        }
        looked
    }

    async fn look(&mut self) -> Result<Found, Trouble> {
        let ears = self.ears().await?;
        let asked = Timestamp::now();
        let state = ears.one(&ears.look, &[]).await?;
        let (clock, forgotten) = (rows::number(&state, "clock")?, rows::number(&state, "forgotten")?);
        self.compare_clocks(asked, value(&state, "now")?);
        match self.last {
            None => self.last = Some(clock),
            Some(last) if last < forgotten && last < clock => self.miss(clock).await,
            // What was known never happened: another server took over that had not heard of it.
            Some(last) if last > clock => self.miss(clock).await,
            Some(_) => {}
        }
        if !self.is_warm {
            self.warm_up(&ears).await?;
        }
        while let Some(last) = self.last.filter(|last| *last < clock) {
            let changes = ears.changes_behind(to_i64(last)).await?;
            // What was forgotten just before they were read is missing among them.
            let state = ears.one(&ears.look, &[]).await?;
            if last < rows::number(&state, "forgotten")? {
                self.miss(rows::number(&state, "clock")?).await;
            } else if changes.is_empty() {
                break;
            } else {
                self.tell(changes).await;
            }
        }
        if self.follower.bell.is_unannounced.load(Ordering::SeqCst) && self.announced.elapsed() >= PACE {
            self.announced = Instant::now();
            self.follower.bell.is_unannounced.store(false, Ordering::SeqCst);
            let told = ears.one(&ears.notify, &[&self.database.schema(), &clock.to_string()]).await;
            self.follower.bell.is_unannounced.fetch_or(told.is_err(), Ordering::SeqCst);
            told?;
        }
        let usage = Usage {
            messages: rows::number(&state, "messages")?,
            mailboxes: rows::number(&state, "mailboxes")?,
            bytes: rows::number(&state, "bytes")?,
        };
        Ok(Found { usage, is_read_only: value(&state, "is_read_only")? })
    }

    /// Notes by how much the clock here is wrong: that of the database is the one that all nodes go by. What it said it read some time
    /// between the question and now.
    fn compare_clocks(&self, asked: Timestamp, database: i64) {
        let tolerance = if self.follower.is_clock_wrong() { TOLERANCE / 2 } else { TOLERANCE };
        let error = clock_error(asked.as_microsecond(), Timestamp::now().as_microsecond(), database);
        let error = if error.abs() > tolerance { error } else { SignedDuration::ZERO };
        let was_wrong = self.follower.correct_clock_by(error);
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
    async fn ears(&mut self) -> Result<Arc<Ears>, Trouble> {
        if let Some(ears) = self.ears.as_ref().filter(|ears| !ears.client.is_closed()) {
            return Ok(ears.clone());
        }
        let connected = self.database.connect().await;
        let (client, driver) = connected.ok_or_else(|| Trouble::too_slow("a connection to the database"))??;
        let process = Arc::new(AtomicI32::new(0));
        tokio::spawn(drive(driver, self.follower.bell.clone(), process.clone()));
        // What is told to others need not be durable.
        let orders = format!(
            "{}; SET synchronous_commit TO off; LISTEN {}",
            setup(self.database.schema()),
            self.database.schema()
        );
        let (look, changes, notify) = within_time(async {
            client.batch_execute(&orders).await?;
            process.store(client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Relaxed);
            tokio::try_join!(client.prepare(LOOK), client.prepare(CHANGES), client.prepare(NOTIFY))
        })
        .await?;
        let ears = Arc::new(Ears { client, look, changes, notify });
        if let Some(last) = self.last {
            self.check(&ears, last).await?;
        }
        self.ears = Some(ears.clone());
        Ok(ears)
    }

    /// After a connection was lost, another server may have taken over that has not heard of everything, even if it has heard of other
    /// things since. So it is asked whether it knows the last change that is known here.
    async fn check(&mut self, ears: &Ears, last: u64) -> Result<(), Trouble> {
        // What this node has done is asked for as well.
        lock(&self.follower.own).clear();
        let row = within_time(ears.client.query_one(CHECK, &[&to_i64(last)])).await?;
        if !row.try_get::<_, bool>("is_known")? {
            self.miss(rows::number(&row, "clock")?).await;
        }
        Ok(())
    }

    /// Tells what this node has changed itself, as far as nothing of others is in between.
    async fn tell_own(&mut self) {
        while let Some(last) = self.last {
            let next = {
                let mut own = lock(&self.follower.own);
                // What was asked for meanwhile is known.
                *own = own.split_off(&last);
                own.remove(&last)
            };
            let Some(changes) = next else { return };
            self.tell(changes).await;
        }
    }

    async fn tell(&mut self, changes: Vec<Change>) {
        let Some(newest) = changes.last().map(|change| change.number) else { return };
        for change in &changes {
            self.follower.knowledge.changed(mailbox(change));
        }
        // Whoever is told may take so long that this is given up. Then it comes again.
        self.put(News::Changes(changes)).await;
        self.last = Some(newest);
    }

    /// It is not known what has happened since the last time.
    async fn miss(&mut self, clock: u64) {
        tracing::warn!("the database cannot tell any more what has happened since it was last asked");
        self.follower.knowledge.everything_changed();
        self.put(News::Missed).await;
        self.last = Some(clock);
    }

    /// Tells the feed of the latest messages, when somebody has taken it.
    async fn warm_up(&mut self, ears: &Ears) -> Result<(), Trouble> {
        let Some(last) = self.last.filter(|_| lock(&self.follower.feed).is_some()) else { return Ok(()) };
        let start: i64 = within_time(ears.client.query_one(WARM_START, &[&WARM])).await?.try_get("start")?;
        let (mut start, mut behind, mut all) = (start, rows::unsigned(start), Vec::new());
        while start < to_i64(last) {
            let changes = ears.changes_behind(start).await?;
            let Some(newest) = changes.last() else { break };
            start = to_i64(newest.number);
            all.extend(changes.into_iter().take_while(|change| change.number <= last));
        }
        // Asked for now, because what was there may have been tidied away before it was read.
        let state = ears.one(&ears.look, &[]).await?;
        behind = behind.max(rows::number(&state, "forgotten")?);
        self.send(News::Lately { behind, changes: all }).await;
        self.is_warm = true;
        Ok(())
    }

    /// Tells the feed, once it has heard what came before.
    async fn put(&self, news: News) {
        if self.is_warm {
            self.send(news).await;
        }
    }

    async fn send(&self, news: News) {
        let feed = lock(&self.follower.feed).clone();
        if let Some(feed) = feed {
            // Whoever had the feed may have gone.
            let _ = feed.send(news).await;
        }
    }
}

/// Keeps a connection going, and rings the bell when other nodes tell that there is something new.
async fn drive(mut driver: Driver, bell: Arc<Bell>, process: Arc<AtomicI32>) {
    let mut messages = stream::poll_fn(|context| driver.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message
            && notification.process_id() != process.load(Ordering::Relaxed)
        {
            bell.ring();
        }
    }
    // It is broken: whoever looks next will notice.
    bell.ring();
}

fn mailbox(change: &Change) -> &MailboxName {
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
