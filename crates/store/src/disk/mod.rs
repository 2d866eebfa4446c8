//! The disk store: a data directory with a SQLite database, and the messages themselves in append-only segment files.
//!
//! One writer thread makes all changes. Readers run queries at the same time. When [`Store::append`] returns, the
//! message is on disk. Memory is bounded by the cache that the settings allow, however much is stored.

mod active_segment;
mod changes;
mod checkpoint;
mod compact;
mod directory;
mod error;
mod job;
mod preflight;
mod reader;
mod reader_pool;
mod reclaim;
mod record;
mod recover;
mod replay;
mod rows;
mod scan;
mod schema;
mod segment;
mod statistics;
#[cfg(test)]
mod tests;
mod transaction;
mod uncommitted;
mod watchdog;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use restante_cache::Cache;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_worker::Worker;
use rusqlite::Connection;
use tokio::sync::mpsc;

use self::directory::Directory;
pub use self::error::OpenError;
use self::job::{Job, Reply};
use self::reader::FoundMessage;
use self::reader_pool::ReaderPool;
use self::segment::Segments;
use self::statistics::{Counters, LookupEpoch, MailboxCache, Statistics, StoreVersion};
use self::uncommitted::HasUncommitted;
use self::watchdog::Watchdog;
use self::writer::Writer;
use crate::overview::Overview;
use crate::{
    AgeRange, Appended, CopyKey, CopyUpdate, Limits, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing,
    MessageSelector, NewMessage, Page, ProjectState, Result, Store, StoreError, UpdateOutcome, Usage, Version,
    writer_stopped,
};

/// The capacity of the writer's queue. Tasks with further changes wait asynchronously, without blocking their threads.
const QUEUE_CAPACITY: usize = 1024;
/// How long the writer may take to finish its jobs and to close the database.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a store that is opened for reading waits for the commits of a server, and how often it checks them.
const MAX_COMMIT_WAIT: Duration = Duration::from_millis(500);
const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The settings of a disk store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits above which old messages are evicted.
    pub limits: Limits,
    /// When a change is acknowledged.
    pub durability: Durability,
    /// The memory for pages of the database and for cached summaries and sources, in bytes.
    pub cache_bytes: usize,
    /// The length at which a segment file is full. Space is freed by whole segments, and that of
    /// large records individually where the file system supports it.
    pub segment_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { limits: Limits::default(), durability: Durability::Full, cache_bytes: 16 << 20, segment_bytes: 64 << 20 }
    }
}

/// What must happen before a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is synced to disk. It survives a crash of the process and a power failure.
    #[default]
    Full,
    /// It is written to the operating system. It survives a crash of the process. A crash of the machine can lose the
    /// changes of the last second or so.
    Relaxed,
}

/// A [`Store`] on disk.
pub struct DiskStore {
    shared: Arc<Shared>,
    /// Cached results of queries.
    summaries: Cache<(MailboxName, MessageSelector), Summary>,
    /// Messages with the versions of the mailboxes of their copies. They are valid while they have these versions.
    messages: Cache<MessageSelector, (Message, Vec<u64>)>,
    sources: Cache<(MailboxName, MessageId), Source>,
    /// `None` if the directory is open for reading only.
    writer: Option<(mpsc::Sender<Job>, Worker)>,
}

/// The state that the writer and the readers share.
struct Shared {
    segments: Arc<Segments>,
    readers: ReaderPool,
    mailbox_cache: Mutex<MailboxCache>,
    store_version: StoreVersion,
    has_uncommitted: HasUncommitted,
    /// Whether the last change failed.
    last_change_failed: AtomicBool,
    /// Detects that the writer is blocked.
    watchdog: Watchdog,
}

impl DiskStore {
    /// Opens a data directory for one server. Creates it if it does not exist, and locks it.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.create()?;
        let lock = directory.lock()?;
        let cache_share = settings.cache_bytes / 4;
        let shared = Arc::new(Shared::new(&directory, MailboxCache::default(), cache_share));
        let writer = Writer::open(directory, settings, shared.clone(), lock)?;
        let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        let thread = Worker::spawn("store", move || writer.run(queue));
        let thread = thread.map_err(|error| OpenError::Database(format!("cannot start the writer thread: {error}")))?;
        Ok(Self {
            shared,
            summaries: Cache::new(cache_share / 4),
            messages: Cache::new(cache_share / 4),
            sources: Cache::new(cache_share / 2),
            writer: Some((sender, thread)),
        })
    }

    /// Opens a data directory for reading, even while a server uses it. Changes fail with [`StoreError::Unavailable`].
    pub fn open_read_only(dir: &Path, cache_bytes: usize) -> Result<Self, OpenError> {
        let directory = Directory::new(dir);
        directory.check_exists()?;
        let database = schema::open_reader(&directory.database_path(), cache_bytes)?;
        let shared = Arc::new(Shared::new(&directory, MailboxCache::disabled(), cache_bytes));
        wait_for_commit(&database, &shared.segments)?;
        let (summaries, messages, sources) = (Cache::new(0), Cache::new(0), Cache::new(0));
        Ok(Self { shared, summaries, messages, sources, writer: None })
    }

    /// Returns a cached message if none of its mailboxes has changed since. `version` is that of the store.
    fn find_cached_message(&self, selector: MessageSelector, version: Option<u64>) -> Option<Message> {
        let (message, versions) = self.messages.get(&selector, message_cache_state(selector, version)?)?;
        let mailboxes = message.mailboxes().zip(versions);
        let is_current = self.shared.mailbox_cache.lock().has_versions(mailboxes);
        is_current.then_some(message)
    }

    /// Runs a query. It finds all acknowledged changes.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.shared.has_uncommitted.get() {
            self.submit(Job::Commit).await?;
        }
        self.shared.readers.query(query).await
    }

    /// Sends a job to the writer and waits until it is durable.
    async fn submit<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T> {
        let Some((queue, _)) = &self.writer else {
            return Err(StoreError::Unavailable("it is open for reading only".to_owned()));
        };
        let (reply, result) = Reply::new();
        queue.send(job(reply)).await.map_err(|_| writer_stopped())?;
        result.await.map_err(|_| writer_stopped())?
    }
}

impl Drop for DiskStore {
    /// Waits until the writer has finished its jobs and closed the database. It is the last to close its connection,
    /// because only the last connection can checkpoint the log.
    ///
    /// On a blocked disk the writer may never finish, so the wait has a timeout. Acknowledged changes are as safe as
    /// after a crash of the process: they are on disk or, with relaxed durability, in the cache of the operating
    /// system, and the next start recovers the database. The writer holds the lock of the directory until it ends, so
    /// no other server can interfere with it.
    fn drop(&mut self) {
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        self.shared.readers.close(deadline);
        if let Some((queue, thread)) = self.writer.take() {
            drop(queue);
            if !thread.wait_until(deadline) {
                let timeout_seconds = CLOSE_TIMEOUT.as_secs();
                tracing::error!(
                    "the disk did not respond within {timeout_seconds} s while the store was closing; acknowledged messages are safe"
                );
            } else if thread.join().is_err() {
                tracing::error!("the writer thread of the store has panicked");
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
        let lookup = self.shared.cached_version(mailbox);
        if let Ok(version) = lookup {
            return Ok(Version(version));
        }
        let name = mailbox.clone();
        let found = self.query(move |database| reader::version(database, &name)).await?;
        let Some(version) = found else { return Ok(Version(0)) };
        self.shared.cache_version(lookup, mailbox, version);
        Ok(Version(version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let mailbox = mailbox.clone();
        self.query(move |database| reader::list(database, &mailbox, page)).await
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        let (key, lookup) = ((mailbox.clone(), selector), self.shared.cached_version(mailbox));
        if let Some(summary) = lookup.ok().and_then(|version| self.summaries.get(&key, version)) {
            return Ok(Some(summary));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let query = move |database: &Connection| reader::find(database, &segments, &name, selector);
        let Some((version, found)) = self.query(query).await? else { return Ok(None) };
        self.shared.cache_version(lookup, mailbox, version);
        let Some((summary, source)) = found else { return Ok(None) };
        self.summaries.insert(key, version, summary.clone());
        if let Some(source) = source {
            self.sources.insert((mailbox.clone(), summary.id), version, source);
        }
        Ok(Some(summary))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let (key, lookup) = ((mailbox.clone(), id), self.shared.cached_version(mailbox));
        if let Some(source) = lookup.ok().and_then(|version| self.sources.get(&key, version)) {
            return Ok(Some(source));
        }
        let (name, segments) = (mailbox.clone(), self.shared.segments.clone());
        let query = move |database: &Connection| reader::source(database, &segments, &name, id);
        let Some((version, source)) = self.query(query).await? else { return Ok(None) };
        self.shared.cache_version(lookup, mailbox, version);
        if let Some(source) = &source {
            self.sources.insert(key, version, source.clone());
        }
        Ok(source)
    }

    async fn sources(&self, copies: Vec<CopyKey>) -> Result<Vec<Option<Source>>> {
        let segments = self.shared.segments.clone();
        self.query(move |database| reader::sources(database, &segments, &copies)).await
    }

    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        // Read before the query, so it is not newer than the result.
        let (project, version) = (project.cloned(), self.shared.store_version.get());
        self.query(move |database| reader::messages(database, project.as_ref(), page, version)).await
    }

    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        let version = self.shared.store_version.get();
        if let Some(message) = self.find_cached_message(selector, version) {
            return Ok(Some(message));
        }
        let epoch = self.shared.mailbox_cache.lock().begin_lookup();
        let segments = self.shared.segments.clone();
        let query = move |database: &Connection| reader::find_message(database, &segments, selector);
        let Some(FoundMessage { message, versions, source }) = self.query(query).await? else {
            return Ok(None);
        };
        self.shared.cache_versions(epoch, message.mailboxes().zip(versions.iter().copied()));
        let first = message.first();
        if let (Some(source), Some(version)) = (source, versions.first()) {
            self.sources.insert((first.mailbox.clone(), first.id), *version, source);
        }
        if let Some(state) = message_cache_state(selector, version) {
            self.messages.insert(selector, state, (message.clone(), versions));
        }
        Ok(Some(message))
    }

    async fn store_version(&self) -> Result<Version> {
        let version = match self.shared.store_version.get() {
            Some(version) => version,
            None => self.query(|database| Ok(Counters::load(database)?.last_version)).await?,
        };
        Ok(Version(version))
    }

    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        let mailbox = mailbox.clone();
        self.query(move |database| reader::index(database, &mailbox, after, limit)).await
    }

    async fn uid_validity(&self) -> Result<u32> {
        self.shared.readers.query(reader::uid_validity).await
    }

    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        self.submit(|reply| Job::Update(updates, reply)).await
    }

    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>> {
        self.submit(|reply| Job::RemoveCopies(copies, reply)).await
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        self.submit(|reply| Job::Purge(mailbox.clone(), last, limit, reply)).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        self.submit(|reply| Job::Expire(deadline, limit, reply)).await
    }

    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
        self.query(move |database| reader::oldest(database, range, limit)).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.query(move |database| reader::mailboxes(database, &page)).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.query(|database| Ok(Counters::load(database)?.last_id)).await
    }

    async fn usage(&self) -> Result<Usage> {
        if self.writer.as_ref().is_some_and(|(_, thread)| thread.is_finished()) {
            return Err(writer_stopped());
        }
        // Readers find much in memory, so they do not notice a disk that blocks.
        self.shared.watchdog.check(Instant::now())?;
        // After an error, try whether a message can be stored again. Load balancers use this result: while it is an
        // error, they send no messages, so no append would notice that the store works again.
        if self.shared.last_change_failed.load(Ordering::Relaxed) {
            self.submit(Job::Check).await?;
        }
        self.query(|database| Ok(Counters::load(database)?.usage)).await
    }

    async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        let project = project.cloned();
        self.query(move |database| reader::overview(database, project.as_ref())).await
    }

    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        let after = after.cloned();
        self.query(move |database| reader::projects(database, after.as_ref(), limit)).await
    }
}

/// Waits until the database contains the messages that are in the segments now. A server commits them shortly after it
/// has acknowledged them. After a crash there is no server that does, so the wait has a limit.
fn wait_for_commit(database: &Connection, segments: &Segments) -> Result<(), OpenError> {
    let written = segments.end().map_err(|error| OpenError::Database(error.to_string()))?;
    let deadline = Instant::now() + MAX_COMMIT_WAIT;
    loop {
        let committed = Statistics::load(database)?.segments.last_key_value().map(|(id, stats)| (*id, stats.end));
        if committed >= written || Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(COMMIT_POLL_INTERVAL);
    }
}

/// The version of a mailbox if it is cached, otherwise the start of its lookup.
type VersionLookup = Result<u64, LookupEpoch>;

/// Returns the state of the store on which a cached message depends. `None` if it cannot be cached.
fn message_cache_state(selector: MessageSelector, store_version: Option<u64>) -> Option<u64> {
    match selector {
        // A message with this id can only change together with one of its mailboxes.
        MessageSelector::Id(_) => Some(0),
        MessageSelector::Latest => store_version,
    }
}

impl Shared {
    fn new(directory: &Directory, mailbox_cache: MailboxCache, cache_bytes: usize) -> Self {
        Self {
            segments: Arc::new(Segments::new(directory.segments_path())),
            readers: ReaderPool::new(directory.database_path(), cache_bytes),
            mailbox_cache: Mutex::new(mailbox_cache),
            store_version: StoreVersion::unknown(),
            has_uncommitted: HasUncommitted::default(),
            last_change_failed: AtomicBool::new(false),
            watchdog: Watchdog::new(),
        }
    }

    /// Caches a version that was looked up.
    fn cache_version(&self, lookup: VersionLookup, mailbox: &MailboxName, version: u64) {
        if let Err(epoch) = lookup {
            self.mailbox_cache.lock().insert_version(epoch, mailbox, version);
        }
    }

    /// Caches versions that were looked up.
    fn cache_versions<'a>(&self, epoch: LookupEpoch, versions: impl IntoIterator<Item = (&'a MailboxName, u64)>) {
        let mut mailbox_cache = self.mailbox_cache.lock();
        for (mailbox, version) in versions {
            mailbox_cache.insert_version(epoch, mailbox, version);
        }
    }

    /// Records whether the last change succeeded.
    fn record_result(&self, error: Option<&StoreError>) {
        if self.last_change_failed.swap(error.is_some(), Ordering::Relaxed) && error.is_none() {
            tracing::info!("the store works again");
        }
    }

    /// Returns the cached version of a mailbox, or starts a lookup.
    fn cached_version(&self, mailbox: &MailboxName) -> VersionLookup {
        let mailbox_cache = self.mailbox_cache.lock();
        mailbox_cache.version(mailbox).ok_or_else(|| mailbox_cache.begin_lookup())
    }
}
