//! What is known here of the changes that all nodes make: a task that reads them in their order, tells the feed, and notes which
//! mailboxes have changed, so that answers which were given before can be given again as long as they are true.
//!
//! Whoever is about to give such an answer first lets the task look whether anything has happened. One look serves all who wait for
//! it, so it costs the database next to nothing, and no node ever tells what was true a moment ago. What this node has changed
//! itself is known without asking; what others have, a notification tells at once, and a look every second in any case.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use super::database::{Database, Driver, setup};
use super::knowledge::Knowledge;
use super::rows;
use super::trouble::Trouble;
use super::writer::opening;
use crate::feed::{Change, Event, Feed, News, PAST};
use crate::{Result, StoreError};
use restante_mail::message::Summary;

/// How often it is looked without any reason.
const INTERVAL: Duration = Duration::from_secs(1);
/// Other nodes are told at most so often that there is something new.
const PACE: Duration = Duration::from_millis(4);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is waited after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// How many changes are read at once.
const PAGE: i64 = 500;
/// How many messages and how much of the past the feed begins with that are not quite new.
const WARM: i64 = 1000;
/// How many news wait for whoever takes the feed.
const FEED: usize = 64;
/// How many batches of this node may wait to be told. More than that are asked for like those of others.
const MAX_OWN: usize = 256;
/// How often the past is tidied, how much of it goes at once, and when it goes on where that was not enough.
const TIDYING: Duration = Duration::from_secs(10);
const TIDIED: i64 = 1000;
const TIDYING_ON: Duration = Duration::from_millis(100);

const TIDY: &str = "SELECT tidy(make_interval(secs => $1), $2) AS tidied";

const LOOK: &str = "SELECT clock, forgotten FROM state";
const CHANGES: &str = "SELECT * FROM changes($1, $2)";
const NOTIFY: &str = "SELECT pg_notify($1, $2)";
const WARM_START: &str = "SELECT coalesce(greatest(
        (SELECT id FROM copies ORDER BY id DESC OFFSET $1 LIMIT 1),
        (SELECT number FROM past ORDER BY number DESC OFFSET $1 LIMIT 1)
    ), 0) AS start";

/// The side of those who ask.
pub(super) struct Follower {
    pub(super) knowledge: Knowledge,
    /// How many have ever asked for a look.
    asked: AtomicU64,
    bell: Arc<Bell>,
    looks: watch::Sender<Look>,
    own: Mutex<BTreeMap<u64, Vec<Change>>>,
    feed: Mutex<Option<mpsc::Sender<News>>>,
}

/// What wakes the task.
#[derive(Default)]
struct Bell {
    wake: Notify,
    /// Whether another node has told that there is something new, or the connection is broken.
    is_rung_by_others: AtomicBool,
}

/// The last look: how many of those who had asked it serves, and how it went.
#[derive(Clone, Default)]
struct Look {
    served: u64,
    failure: Option<StoreError>,
}

impl Bell {
    fn ring(&self) {
        self.is_rung_by_others.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

impl Follower {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            knowledge: Knowledge::default(),
            asked: AtomicU64::new(0),
            bell: Arc::default(),
            looks: watch::channel(Look::default()).0,
            own: Mutex::default(),
            feed: Mutex::default(),
        })
    }

    /// Waits until everything is known that has happened so far, on whatever node.
    pub(super) async fn catch_up(&self) -> Result<()> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut looks = self.looks.subscribe();
        self.bell.wake.notify_one();
        let looked = timeout(PATIENCE, looks.wait_for(|look| look.served >= ticket)).await;
        let look = looked.map_err(|_| Trouble::too_slow("a look into the database"))?;
        look.map_or_else(
            |_| Err(StoreError::Unavailable("it is closed".to_owned())),
            |look| look.failure.clone().map_or(Ok(()), Err),
        )
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

/// The task.
pub(super) struct Task {
    database: Arc<Database>,
    follower: Arc<Follower>,
    ears: Option<Arc<Ears>>,
    /// The number of the last change that is known; none before the first look.
    last: Option<u64>,
    /// Whether the feed has been told what is not quite new.
    is_warm: bool,
    /// Whether there is something that other nodes have not been told of, and when they were last told.
    is_unannounced: bool,
    announced: Instant,
    looked: Instant,
    next_tidying: Instant,
    failed: Option<Instant>,
}

/// A connection that hears what other nodes tell, and what is asked with it.
struct Ears {
    client: Client,
    look: Statement,
    changes: Statement,
    notify: Statement,
}

impl Task {
    pub(super) fn new(database: Arc<Database>, follower: Arc<Follower>) -> Self {
        let now = Instant::now();
        Self {
            database,
            follower,
            ears: None,
            last: None,
            is_warm: false,
            is_unannounced: false,
            announced: now,
            looked: now,
            next_tidying: now + TIDYING,
            failed: None,
        }
    }

    /// Works until it is aborted.
    pub(super) async fn run(mut self) {
        let bell = self.follower.bell.clone();
        loop {
            let next = if self.is_unannounced { self.announced + PACE } else { self.looked + INTERVAL };
            tokio::select! {
                () = bell.wake.notified() => {},
                () = sleep_until(next) => {},
            }
            self.tell_own().await;
            let served = self.follower.asked.load(Ordering::SeqCst);
            if self.looks_are_due(served) {
                let failure = self.look_within_time().await.err().map(StoreError::from);
                self.follower.looks.send_replace(Look { served, failure });
            }
        }
    }

    /// Whether there is a reason to ask the database, other than what this node has done itself.
    fn looks_are_due(&self, asked: u64) -> bool {
        let is_rung = self.follower.bell.is_rung_by_others.swap(false, Ordering::SeqCst);
        let is_announcing = self.is_unannounced && self.announced.elapsed() >= PACE;
        is_rung || is_announcing || self.looked.elapsed() >= INTERVAL || self.follower.looks.borrow().served < asked
    }

    /// Looks, unless it has failed only just now, and then says so again.
    async fn look_within_time(&mut self) -> Result<(), Trouble> {
        if let Some(failed) = self.failed
            && failed.elapsed() < PAUSE
            && let Some(failure) = self.follower.looks.borrow().failure.clone()
        {
            return Err(Trouble { error: failure, is_cut_off: true });
        }
        self.looked = Instant::now();
        let looked = timeout(PATIENCE, self.look()).await;
        let looked = looked.unwrap_or_else(|_| Err(Trouble::too_slow("a look into the database")));
        match &looked {
            Ok(()) if self.failed.take().is_some() => tracing::info!("the database is there again"),
            Ok(()) => {}
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

    async fn look(&mut self) -> Result<(), Trouble> {
        let ears = self.ears().await?;
        self.tell_own().await;
        let state = ears.client.query_one(&ears.look, &[]).await?;
        let (clock, forgotten) = (rows::number(&state, "clock")?, rows::number(&state, "forgotten")?);
        match self.last {
            None => self.last = Some(clock),
            // The past is forgotten, or what was known never happened: another server took over that had not heard of it.
            Some(last) if last < forgotten && last < clock || last > clock => self.miss(clock).await,
            Some(_) => {}
        }
        if !self.is_warm {
            self.warm_up(&ears).await?;
        }
        while let Some(last) = self.last.filter(|last| *last < clock) {
            let rows = ears.client.query(&ears.changes, &[&to_i64(last), &PAGE]).await?;
            if rows.is_empty() {
                break;
            }
            let changes = rows.iter().map(rows::change).collect::<Result<Vec<_>>>()?;
            self.tell(changes).await;
        }
        if self.is_unannounced && self.announced.elapsed() >= PACE {
            (self.is_unannounced, self.announced) = (false, Instant::now());
            ears.client.execute(&ears.notify, &[&self.database.schema(), &clock.to_string()]).await?;
        }
        if self.next_tidying <= Instant::now() {
            let tidied: i64 = ears.client.query_one(TIDY, &[&PAST.as_secs_f64(), &TIDIED]).await?.try_get("tidied")?;
            self.next_tidying = Instant::now() + if tidied < TIDIED { TIDYING } else { TIDYING_ON };
        }
        Ok(())
    }

    /// The connection, which also hears what other nodes tell.
    async fn ears(&mut self) -> Result<Arc<Ears>, Trouble> {
        if let Some(ears) = self.ears.as_ref().filter(|ears| !ears.client.is_closed()) {
            return Ok(ears.clone());
        }
        let connected = self.database.connect().await;
        let (client, driver) = connected.ok_or_else(|| Trouble::too_slow("a connection to the database"))??;
        tokio::spawn(drive(driver, self.follower.bell.clone()));
        // What is told to others need not be durable.
        let setup = setup(self.database.schema());
        client
            .batch_execute(&format!("{setup}; SET synchronous_commit TO off; LISTEN {}", self.database.schema()))
            .await?;
        let (look, changes, notify) =
            tokio::try_join!(client.prepare(LOOK), client.prepare(CHANGES), client.prepare(NOTIFY))?;
        let ears = Arc::new(Ears { client, look, changes, notify });
        self.ears = Some(ears.clone());
        Ok(ears)
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
            self.is_unannounced = true;
            self.tell(changes).await;
        }
    }

    async fn tell(&mut self, changes: Vec<Change>) {
        let Some(newest) = changes.last() else { return };
        self.last = Some(newest.number);
        for change in &changes {
            self.follower.knowledge.changed(mailbox(change));
        }
        self.put(News::Changes(changes)).await;
    }

    /// It is not known what has happened since the last time.
    async fn miss(&mut self, clock: u64) {
        tracing::warn!(
            "this node was cut off from the database for so long that it has missed what happened meanwhile"
        );
        self.last = Some(clock);
        self.follower.knowledge.everything_changed();
        self.put(News::Missed).await;
    }

    /// Tells the feed of the latest messages, when somebody has taken it.
    async fn warm_up(&mut self, ears: &Ears) -> Result<(), Trouble> {
        let Some(last) = self.last.filter(|_| lock(&self.follower.feed).is_some()) else { return Ok(()) };
        let start: i64 = ears.client.query_one(WARM_START, &[&WARM]).await?.try_get("start")?;
        let (mut start, mut behind, mut all) = (start, rows::unsigned(start), Vec::new());
        while start < to_i64(last) {
            let rows = ears.client.query(&ears.changes, &[&start, &PAGE]).await?;
            let changes = rows.iter().map(rows::change).collect::<Result<Vec<_>>>()?;
            let Some(newest) = changes.last() else { break };
            start = to_i64(newest.number);
            all.extend(changes.into_iter().take_while(|change| change.number <= last));
        }
        // Asked for now, because what was there may have been tidied away before it was read.
        let state = ears.client.query_one(&ears.look, &[]).await?;
        behind = behind.max(rows::number(&state, "forgotten")?);
        self.is_warm = true;
        self.put(News::Lately { behind, changes: all }).await;
        Ok(())
    }

    /// Tells the feed, once it has heard what came before.
    async fn put(&self, news: News) {
        let feed = lock(&self.follower.feed).clone();
        if let Some(feed) = feed.filter(|_| self.is_warm) {
            // Whoever had the feed may have gone.
            let _ = feed.send(news).await;
        }
    }
}

/// Keeps a connection going, and rings the bell when other nodes tell that there is something new.
async fn drive(mut driver: Driver, bell: Arc<Bell>) {
    let mut messages = stream::poll_fn(|context| driver.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(_) = message {
            bell.ring();
        }
    }
    // It is broken: whoever looks next will notice.
    bell.ring();
}

fn mailbox(change: &Change) -> &restante_mail::naming::MailboxName {
    match &change.event {
        Event::Stored(summary) | Event::Deleted(summary) => &summary.mailbox,
        Event::Seen { mailbox, .. } => mailbox,
    }
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
