//! The store that remembers: a data directory with a SQLite database for everything but the mail itself, which lies in
//! append-only segment files.
//!
//! The writer is one thread and the only one that changes anything; readers answer questions beside it. What was
//! appended is on the disk when [`Store::append`] returns; memory is bounded by the cache that the settings allow,
//! whatever is stored.

mod active_segment;
mod changes;
mod checkpoint;
mod compact;
mod directory;
mod error;
mod job;
mod preflight;
mod reader;
mod reclaim;
mod record;
mod recover;
mod rows;
mod scan;
mod schema;
mod segment;
mod statistics;
#[cfg(test)]
mod tests;
mod watchdog;
mod writer;

use std::hash::Hash;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_cache::{Cache, CacheValue};
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_sqlite::Synchronous;
use restante_worker::Worker;
use rusqlite::Connection;
use tokio::sync::mpsc;

use self::directory::Directory;
pub use self::error::OpenError;
use self::job::{Job, Reply};
use self::reader::ReaderPool;
use self::segment::Segments;
use self::statistics::{Counters, LookupEpoch, MailboxCache};
use self::watchdog::Watchdog;
use self::writer::Writer;
use crate::{
    Appended, Limits, Listing, MailboxPage, MailboxState, MessageSelector, NewMessage, Page, Result, Store, StoreError,
    Usage, Version,
};

/// How many changes may wait for the writer. Tasks with further changes wait for room, which an async channel does without
/// blocking their threads.
const QUEUE_CAPACITY: usize = 1024;
/// How long the writer may take to finish and to close the database.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a disk store works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When old mail goes.
    pub limits: Limits,
    /// When mail is safe.
    pub durability: Durability,
    /// The memory for pages of the database and for answers that were given before, in bytes.
    pub cache_bytes: usize,
    /// A segment file of this length gets no further mail. Space comes back a segment at a time.
    pub segment_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { limits: Limits::default(), durability: Durability::Full, cache_bytes: 16 << 20, segment_bytes: 64 << 20 }
    }
}

/// What has to happen before a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk: it survives the end of the process and the loss of power.
    #[default]
    Full,
    /// It is handed to the system: it survives the end of the process. When the machine itself fails, the changes of
    /// the last moments can be lost.
    Relaxed,
}

/// A [`Store`] on disk.
pub struct DiskStore {
    shared: Arc<Shared>,
    /// Answers that were given before.
    summaries: Cache<(MailboxName, MessageSelector), Summary>,
    sources: Cache<(MailboxName, MessageId), Source>,
    /// None when the directory is only read.
    writer: Option<(mpsc::Sender<Job>, Worker)>,
}

/// What writer and readers both know.
struct Shared {
    segments: Arc<Segments>,
    readers: Arc<ReaderPool>,
    mailbox_cache: Mutex<MailboxCache>,
    /// Whether the last change failed.
    last_change_failed: AtomicBool,
    /// Whether the writer gets on.
    watchdog: Watchdog,
}

impl DiskStore {
    /// Opens a data directory, which is made when there is none, and keeps other servers out of it.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.create()?;
        let lock = directory.lock()?;
        let share = settings.cache_bytes / 4;
        let shared = Arc::new(Shared::new(&directory, MailboxCache::default(), share));
        let writer = Writer::open(directory, settings, shared.clone(), lock)?;
        let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        let thread = Worker::spawn("store", move || writer.run(queue));
        let thread = thread.map_err(|error| OpenError::Database(format!("no thread for the writer: {error}")))?;
        let (summaries, sources) = (Cache::new(share / 2), Cache::new(share / 2));
        Ok(Self { shared, summaries, sources, writer: Some((sender, thread)) })
    }

    /// Opens a data directory for reading, also while a server uses it. Changes answer [`StoreError::Unavailable`].
    pub fn open_read_only(dir: &Path, cache_bytes: usize) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.check_exists()?;
        schema::open_reader(&directory.database_path(), cache_bytes)?;
        let shared = Arc::new(Shared::new(&directory, MailboxCache::disabled(), cache_bytes));
        Ok(Self { shared, summaries: Cache::new(0), sources: Cache::new(0), writer: None })
    }

    /// Hands a job to the writer and waits until it is durable.
    async fn submit<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T> {
        let Some((queue, _)) = &self.writer else {
            return Err(StoreError::Unavailable("it is open for reading only".to_owned()));
        };
        let (reply, answer) = Reply::new();
        queue.send(job(reply)).await.map_err(|_| writer_stopped())?;
        answer.await.map_err(|_| writer_stopped())?
    }
}

impl Drop for DiskStore {
    /// The writer finishes what it was given, and closes the database when everybody else has let go of it, because only
    /// the last one can put it in order.
    ///
    /// A disk that is stuck may never let it finish, so it is left behind when that takes too long. For what was
    /// acknowledged this is no worse than the end of the process at any other moment: it is on the disk already, or with
    /// relaxed durability in the hands of the system, and the next start puts the database in order. The writer keeps the
    /// lock of the directory as long as it lives, so that nobody gets in its way.
    fn drop(&mut self) {
        self.shared.readers.close();
        if let Some((queue, thread)) = self.writer.take() {
            drop(queue);
            if !thread.wait_until(Instant::now() + CLOSE_TIMEOUT) {
                let patience = CLOSE_TIMEOUT.as_secs();
                tracing::error!(
                    "the disk did not let the store close within {patience} s; what was acknowledged is kept"
                );
            } else if thread.join().is_err() {
                tracing::error!("the writer of the store has panicked");
            }
        }
    }
}

#[async_trait]
impl Store for DiskStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        self.submit(|reply| Job::Append(message, reply)).await
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        let known = self.shared.cached_version(mailbox);
        if let Ok(version) = known {
            return Ok(Version(version));
        }
        let name = mailbox.clone();
        let found = self.shared.readers.query(move |database| reader::version(database, &name)).await?;
        let Some(version) = found else { return Ok(Version(0)) };
        self.shared.cache_version(known, mailbox, version);
        Ok(Version(version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let mailbox = mailbox.clone();
        self.shared.readers.query(move |database| reader::list(database, &mailbox, page)).await
    }

    async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>> {
        let (key, known) = ((mailbox.clone(), which), self.shared.cached_version(mailbox));
        if let Some(summary) = find_cached(&self.summaries, &key, known) {
            return Ok(Some(summary));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let look = move |database: &Connection| reader::find(database, &segments, &name, which);
        let Some((version, found)) = self.shared.readers.query(look).await? else { return Ok(None) };
        self.shared.cache_version(known, mailbox, version);
        let Some((summary, source)) = found else { return Ok(None) };
        self.summaries.insert(key, version, summary.clone());
        if let Some(source) = source {
            self.sources.insert((mailbox.clone(), summary.id), version, source);
        }
        Ok(Some(summary))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let (key, known) = ((mailbox.clone(), id), self.shared.cached_version(mailbox));
        if let Some(source) = find_cached(&self.sources, &key, known) {
            return Ok(Some(source));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let look = move |database: &Connection| reader::source(database, &segments, &name, id);
        let Some((version, source)) = self.shared.readers.query(look).await? else { return Ok(None) };
        self.shared.cache_version(known, mailbox, version);
        if let Some(source) = &source {
            self.sources.insert(key, version, source.clone());
        }
        Ok(source)
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        self.submit(|reply| Job::SetSeen(mailbox.clone(), id, seen, reply)).await
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        self.submit(|reply| Job::Remove(mailbox.clone(), id, reply)).await
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        self.submit(|reply| Job::Purge(mailbox.clone(), last, limit, reply)).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        self.submit(|reply| Job::Expire(deadline, limit, reply)).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.shared.readers.query(move |database| reader::mailboxes(database, &page)).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.shared.readers.query(|database| Ok(Counters::load(database)?.last_id)).await
    }

    async fn usage(&self) -> Result<Usage> {
        if self.writer.as_ref().is_some_and(|(_, thread)| thread.is_finished()) {
            return Err(writer_stopped());
        }
        // Readers find much in memory, also when nothing reaches the disk any more.
        self.shared.watchdog.check(Instant::now())?;
        // After trouble, it is worth a try whether it is over: nobody may be sending, because of what is said here.
        if self.shared.last_change_failed.load(Ordering::Relaxed) {
            self.submit(Job::Check).await?;
        }
        self.shared.readers.query(|database| Ok(Counters::load(database)?.usage)).await
    }
}

/// The version of a mailbox, or since when it is being looked up.
type VersionLookup = Result<u64, LookupEpoch>;

/// The answer that was given before, if the mailbox is still as it was then.
fn find_cached<K: Eq + Hash, A: CacheValue>(answers: &Cache<K, A>, key: &K, known: VersionLookup) -> Option<A> {
    answers.get(key, known.ok()?)
}

fn writer_stopped() -> StoreError {
    StoreError::Unavailable("its writer has ended".to_owned())
}

impl Shared {
    fn new(directory: &Directory, recent: MailboxCache, cache_bytes: usize) -> Self {
        Self {
            segments: Arc::new(Segments::new(directory.segments_path())),
            readers: Arc::new(ReaderPool::new(directory.database_path(), cache_bytes)),
            mailbox_cache: Mutex::new(recent),
            last_change_failed: AtomicBool::new(false),
            watchdog: Watchdog::new(),
        }
    }

    /// Remembers what was looked up.
    fn cache_version(&self, known: VersionLookup, mailbox: &MailboxName, version: u64) {
        if let Err(since) = known {
            self.mailbox_cache().insert_version(since, mailbox, version);
        }
    }

    /// Notes how the last change went.
    fn record_result(&self, trouble: Option<&StoreError>) {
        if self.last_change_failed.swap(trouble.is_some(), Ordering::Relaxed) && trouble.is_none() {
            tracing::info!("the store works again");
        }
    }

    /// The version of a mailbox, or the moment from which it has to be looked up.
    fn cached_version(&self, mailbox: &MailboxName) -> VersionLookup {
        let recent = self.mailbox_cache();
        recent.version(mailbox).ok_or_else(|| recent.begin_lookup())
    }

    fn mailbox_cache(&self) -> MutexGuard<'_, MailboxCache> {
        self.mailbox_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Durability {
    /// When SQLite syncs a commit.
    fn synchronous(self) -> Synchronous {
        match self {
            Self::Full => Synchronous::Full,
            Self::Relaxed => Synchronous::Normal,
        }
    }
}
