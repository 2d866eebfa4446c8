//! The store that remembers: a data directory with a SQLite database for everything but the mail itself, which lies in
//! append-only segment files.
//!
//! The writer is one thread and the only one that changes anything; readers answer questions beside it. What was
//! appended is on the disk when [`Store::append`] returns; memory is bounded by the cache that the settings allow,
//! whatever is stored.

mod books;
mod changes;
mod checkpoint;
mod compact;
mod directory;
mod error;
mod ground;
mod job;
mod pulse;
mod reader;
mod reclaim;
mod record;
mod recover;
mod rows;
mod schema;
mod segment;
mod sweep;
mod tail;
#[cfg(test)]
mod tests;
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

use self::books::{Counters, Moment, Recent};
use self::directory::Directory;
pub use self::error::OpenError;
use self::job::{Job, Reply};
use self::pulse::Pulse;
use self::reader::Readers;
use self::segment::Segments;
use self::writer::Writer;
use crate::{
    Appended, Limits, Listing, MailboxPage, MailboxState, NewMessage, Page, Result, Store, StoreError, Usage, Version,
    Which,
};

/// How many changes may wait for the writer. Tasks with further changes wait for room, which an async channel does without
/// blocking their threads.
const QUEUE: usize = 1024;
/// How long the writer may take to finish and to close the database.
const CLOSING: Duration = Duration::from_secs(5);

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
    summaries: Cache<(MailboxName, Which), Summary>,
    sources: Cache<(MailboxName, MessageId), Source>,
    /// None when the directory is only read.
    writer: Option<(mpsc::Sender<Job>, Worker)>,
}

/// What writer and readers both know.
struct Shared {
    segments: Arc<Segments>,
    readers: Arc<Readers>,
    recent: Mutex<Recent>,
    /// Whether the last change failed.
    in_trouble: AtomicBool,
    /// Whether the writer gets on.
    pulse: Pulse,
}

impl DiskStore {
    /// Opens a data directory, which is made when there is none, and keeps other servers out of it.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.make()?;
        let lock = directory.lock()?;
        let share = settings.cache_bytes / 4;
        let shared = Arc::new(Shared::new(&directory, Recent::default(), share));
        let writer = Writer::open(directory, settings, shared.clone(), lock)?;
        let (sender, queue) = mpsc::channel(QUEUE);
        let thread = Worker::spawn("store", move || writer.run(queue));
        let thread = thread.map_err(|error| OpenError::Database(format!("no thread for the writer: {error}")))?;
        let (summaries, sources) = (Cache::new(share / 2), Cache::new(share / 2));
        Ok(Self { shared, summaries, sources, writer: Some((sender, thread)) })
    }

    /// Opens a data directory for reading, also while a server uses it. Changes answer [`StoreError::Unavailable`].
    pub fn open_read_only(dir: &Path, cache_bytes: usize) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.check_exists()?;
        schema::open_reader(&directory.database(), cache_bytes)?;
        let shared = Arc::new(Shared::new(&directory, Recent::never(), cache_bytes));
        Ok(Self { shared, summaries: Cache::new(0), sources: Cache::new(0), writer: None })
    }

    /// Hands a job to the writer and waits until it is durable.
    async fn change<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T> {
        let Some((queue, _)) = &self.writer else {
            return Err(StoreError::Unavailable("it is open for reading only".to_owned()));
        };
        let (reply, answer) = Reply::new();
        queue.send(job(reply)).await.map_err(|_| writer_ended())?;
        answer.await.map_err(|_| writer_ended())?
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
            if !thread.wait_until(Instant::now() + CLOSING) {
                let patience = CLOSING.as_secs();
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
        self.change(|reply| Job::Append(message, reply)).await
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        let known = self.shared.look(mailbox);
        if let Ok(version) = known {
            return Ok(Version(version));
        }
        let name = mailbox.clone();
        let found = self.shared.readers.ask(move |database| reader::version(database, &name)).await?;
        let Some(version) = found else { return Ok(Version(0)) };
        self.shared.learn(known, mailbox, version);
        Ok(Version(version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let mailbox = mailbox.clone();
        self.shared.readers.ask(move |database| reader::list(database, &mailbox, page)).await
    }

    async fn find(&self, mailbox: &MailboxName, which: Which) -> Result<Option<Summary>> {
        let (key, known) = ((mailbox.clone(), which), self.shared.look(mailbox));
        if let Some(summary) = recall(&self.summaries, &key, known) {
            return Ok(Some(summary));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let look = move |database: &Connection| reader::find(database, &segments, &name, which);
        let Some((version, found)) = self.shared.readers.ask(look).await? else { return Ok(None) };
        self.shared.learn(known, mailbox, version);
        let Some((summary, source)) = found else { return Ok(None) };
        self.summaries.insert(key, version, summary.clone());
        if let Some(source) = source {
            self.sources.insert((mailbox.clone(), summary.id), version, source);
        }
        Ok(Some(summary))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let (key, known) = ((mailbox.clone(), id), self.shared.look(mailbox));
        if let Some(source) = recall(&self.sources, &key, known) {
            return Ok(Some(source));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let look = move |database: &Connection| reader::source(database, &segments, &name, id);
        let Some((version, source)) = self.shared.readers.ask(look).await? else { return Ok(None) };
        self.shared.learn(known, mailbox, version);
        if let Some(source) = &source {
            self.sources.insert(key, version, source.clone());
        }
        Ok(source)
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        self.change(|reply| Job::SetSeen(mailbox.clone(), id, seen, reply)).await
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        self.change(|reply| Job::Remove(mailbox.clone(), id, reply)).await
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        self.change(|reply| Job::Purge(mailbox.clone(), last, limit, reply)).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        self.change(|reply| Job::Expire(deadline, limit, reply)).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.shared.readers.ask(move |database| reader::mailboxes(database, &page)).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.shared.readers.ask(|database| Ok(Counters::load(database)?.last_id)).await
    }

    async fn usage(&self) -> Result<Usage> {
        if self.writer.as_ref().is_some_and(|(_, thread)| thread.is_finished()) {
            return Err(writer_ended());
        }
        // Readers find much in memory, also when nothing reaches the disk any more.
        self.shared.pulse.check(Instant::now())?;
        // After trouble, it is worth a try whether it is over: nobody may be sending, because of what is said here.
        if self.shared.in_trouble.load(Ordering::Relaxed) {
            self.change(Job::Check).await?;
        }
        self.shared.readers.ask(|database| Ok(Counters::load(database)?.usage)).await
    }
}

/// The version of a mailbox, or since when it is being looked up.
type Known = Result<u64, Moment>;

/// The answer that was given before, if the mailbox is still as it was then.
fn recall<K: Eq + Hash, A: CacheValue>(answers: &Cache<K, A>, key: &K, known: Known) -> Option<A> {
    answers.get(key, known.ok()?)
}

fn writer_ended() -> StoreError {
    StoreError::Unavailable("its writer has ended".to_owned())
}

impl Shared {
    fn new(directory: &Directory, recent: Recent, cache_bytes: usize) -> Self {
        Self {
            segments: Arc::new(Segments::new(directory.segments())),
            readers: Arc::new(Readers::new(directory.database(), cache_bytes)),
            recent: Mutex::new(recent),
            in_trouble: AtomicBool::new(false),
            pulse: Pulse::new(),
        }
    }

    /// Remembers what was looked up.
    fn learn(&self, known: Known, mailbox: &MailboxName, version: u64) {
        if let Err(since) = known {
            self.recent().looked_up(since, mailbox, version);
        }
    }

    /// Notes how the last change went.
    fn note(&self, trouble: Option<&StoreError>) {
        if self.in_trouble.swap(trouble.is_some(), Ordering::Relaxed) && trouble.is_none() {
            tracing::info!("the store works again");
        }
    }

    /// The version of a mailbox, or the moment from which it has to be looked up.
    fn look(&self, mailbox: &MailboxName) -> Known {
        let recent = self.recent();
        recent.version(mailbox).ok_or_else(|| recent.moment())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
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
