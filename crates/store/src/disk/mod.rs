//! The store that remembers: a data directory with a SQLite database for everything but the mail itself, which lies in
//! append-only segment files.
//!
//! [`Writer`](writer::Writer) is one thread and the only one that changes anything; [`Readers`](reader::Readers) answer
//! questions beside it. What was appended is on the disk when [`Store::append`] returns; memory is bounded by the cache
//! that the settings allow, whatever is stored.

mod books;
mod changes;
mod checkpoint;
mod directory;
mod job;
mod reader;
mod reclaim;
mod record;
mod recover;
mod rows;
mod schema;
mod segment;
#[cfg(test)]
mod tests;
mod trouble;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::mpsc;

use self::books::Recent;
use self::directory::Directory;
pub use self::directory::OpenError;
use self::job::{Job, Reply};
use self::reader::Readers;
use self::segment::Segments;
use self::writer::Writer;
use crate::{Appended, Limits, Listing, NewMessage, Page, Result, Store, StoreError, Usage, Version, Which};

/// How many changes may wait for the writer before those who ask have to wait themselves.
const QUEUE: usize = 1024;

/// How a disk store works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When old mail goes.
    pub limits: Limits,
    /// When mail is safe.
    pub durability: Durability,
    /// The memory for the database's pages, in bytes.
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
    readers: Arc<Readers>,
    /// None when the directory is only read.
    writer: Option<(mpsc::Sender<Job>, JoinHandle<()>)>,
}

/// What writer and readers both know.
struct Shared {
    segments: Arc<Segments>,
    recent: Mutex<Recent>,
    usage: Mutex<Usage>,
}

impl DiskStore {
    /// Opens a data directory, which is made when there is none, and keeps other servers out of it.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.make()?;
        let lock = directory.lock()?;
        let shared = Arc::new(Shared::new(&directory));
        let readers = Arc::new(Readers::new(directory.database(), settings.cache_bytes / 2));
        let writer = Writer::open(directory, settings, shared.clone(), lock)?;
        let (sender, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || writer.run(queue));
        let thread = thread.map_err(|error| OpenError::Database(format!("no thread for the writer: {error}")))?;
        Ok(Self { shared, readers, writer: Some((sender, thread)) })
    }

    /// Opens a data directory for reading, also while a server uses it. Changes answer [`StoreError::Unavailable`].
    pub fn open_read_only(dir: &Path, cache_bytes: usize) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.check_exists()?;
        schema::open_reader(&directory.database(), cache_bytes)?;
        let shared = Arc::new(Shared::new(&directory));
        let readers = Arc::new(Readers::new(directory.database(), cache_bytes));
        Ok(Self { shared, readers, writer: None })
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
    fn drop(&mut self) {
        self.readers.close();
        if let Some((queue, thread)) = self.writer.take() {
            drop(queue);
            if thread.join().is_err() {
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
        if let Some(book) = self.shared.recent().find(mailbox) {
            return Ok(Version(book.version));
        }
        let mailbox = mailbox.clone();
        self.readers.ask(move |database| reader::version(database, &mailbox)).await
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let mailbox = mailbox.clone();
        self.readers.ask(move |database| reader::list(database, &mailbox, page)).await
    }

    async fn find(&self, mailbox: &MailboxName, which: Which) -> Result<Option<Summary>> {
        let mailbox = mailbox.clone();
        self.readers.ask(move |database| reader::find(database, &mailbox, which)).await
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let (mailbox, segments) = (mailbox.clone(), self.shared.segments.clone());
        self.readers.ask(move |database| reader::source(database, &segments, &mailbox, id)).await
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        self.change(|reply| Job::SetSeen(mailbox.clone(), id, seen, reply)).await
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        self.change(|reply| Job::Remove(mailbox.clone(), id, reply)).await
    }

    async fn purge(&self, mailbox: &MailboxName) -> Result<Vec<Summary>> {
        self.change(|reply| Job::Purge(mailbox.clone(), reply)).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        self.change(|reply| Job::Expire(deadline, limit, reply)).await
    }

    async fn mailboxes(&self, after: Option<&MailboxName>, limit: usize) -> Result<Vec<MailboxName>> {
        let after = after.cloned();
        self.readers.ask(move |database| reader::mailboxes(database, after.as_ref(), limit)).await
    }

    async fn usage(&self) -> Result<Usage> {
        if let Some((_, thread)) = &self.writer {
            return if thread.is_finished() { Err(writer_ended()) } else { Ok(*self.shared.usage()) };
        }
        self.readers.ask(|database| Ok(books::Books::load(database)?.counters.usage)).await
    }
}

fn writer_ended() -> StoreError {
    StoreError::Unavailable("its writer has ended".to_owned())
}

impl Shared {
    fn new(directory: &Directory) -> Self {
        let segments = Arc::new(Segments::new(directory.segments()));
        Self { segments, recent: Mutex::default(), usage: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, usage: Usage) {
        *self.usage() = usage;
    }
}

impl Durability {
    /// How careful SQLite has to be: `NORMAL` keeps the database sound in any case, and syncs only now and then.
    fn synchronous(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Relaxed => "NORMAL",
        }
    }
}
