//! The PostgreSQL store, which several equal nodes share. Everything is in the database.
//!
//! All changes of all nodes have one order, in which they are numbered and become visible (see `tables.sql`). The ids
//! of messages and the versions of mailboxes are such numbers, and every node gets all changes in its feed. A change is
//! one statement, and changes of several sessions are combined into one statement. An appended message is as safe as a
//! commit of the database.

mod address;
mod bulk_delete;
mod change_poller;
mod change_tracker;
mod clock;
mod database;
mod error;
mod mailbox_generations;
mod reader;
pub mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod tls;
mod writer;

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_cache::{Cache, CacheValue};
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

pub use self::address::{Address, Url};
use self::bulk_delete::BulkDeleter;
use self::change_poller::ChangePoller;
use self::change_tracker::ChangeTracker;
pub use self::clock::DatabaseClock;
pub use self::database::{Database, Parameters};
use self::reader::CopySource;
pub use self::schema::OpenError;
pub use self::tls::ReadFile;
use self::writer::{Job, MAX_BATCHES_IN_FLIGHT, Reply};
use crate::feed::Feed;
use crate::overview::Overview;
use crate::sql_values::{id_to_i64, time_to_nanos, to_i64};
use crate::{
    AgeRange, Appended, CopyKey, CopyUpdate, Limits, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing,
    MessageSelector, NewMessage, Page, ProjectState, Result, Store, UpdateOutcome, Usage, Version, writer_stopped,
};

const PURGE: &str = "SELECT * FROM purge_mailbox($1, $2, $3)";
const CHECK: &str = "SELECT check_append()";
const EXPIRE: &str = "SELECT * FROM expire_copies($1, $2)";

/// The settings of a PostgreSQL store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits above which old messages are evicted.
    pub limits: Limits,
    /// The memory for cached results, in bytes.
    pub cache_bytes: usize,
    /// The maximum number of connections that this node opens.
    pub connections: usize,
    /// The schema that contains all tables. Its name consists of letters, digits and underscores.
    pub schema: String,
    /// What the store is opened for.
    pub access: Access,
}

/// What a store in PostgreSQL is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing. Missing tables are created.
    ReadWrite,
    /// Reading only. Changes nothing, not even the tables.
    ReadOnly,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            cache_bytes: 16 << 20,
            connections: 10,
            schema: "restante".to_owned(),
            access: Access::ReadWrite,
        }
    }
}

/// A [`Store`] in a PostgreSQL database.
pub struct PostgresStore {
    database: Arc<Database>,
    tracker: Arc<ChangeTracker>,
    writer: mpsc::Sender<Job>,
    bulk_deleter: Arc<BulkDeleter>,
    /// Whether the last message could not be stored.
    last_append_failed: AtomicBool,
    /// The tasks of the store, which are aborted when it is dropped.
    _tasks: JoinSet<()>,
    /// Cached results, with the generation of their mailbox.
    versions: Cache<MailboxName, Version>,
    summaries: Cache<(MailboxName, MessageSelector), Summary>,
    /// Messages with the last generation of all mailboxes before they were read.
    messages: Cache<MessageSelector, (Message, u64)>,
    sources: Cache<(MailboxName, MessageId), Source>,
}

impl PostgresStore {
    /// Opens a store, and creates or migrates its tables. Must be called within a runtime, on which its tasks run.
    pub async fn open(address: &Address, settings: Settings) -> Result<Self, OpenError> {
        let Settings { limits, cache_bytes, connections, schema, access } = settings;
        // One connection listens for changes, and one is for bulk deletions.
        let readers = connections.saturating_sub(MAX_BATCHES_IN_FLIGHT + 2).max(1);
        let database = Database::new(address, &schema, MAX_BATCHES_IN_FLIGHT + 1, readers);
        let database = Arc::new(database.map_err(|error| OpenError::Unsupported(error.to_string()))?);
        schema::prepare(&database, access).await?;
        let (tracker, bulk_deleter) = (ChangeTracker::new(), Arc::new(BulkDeleter::new(database.clone())));
        let mut tasks = JoinSet::new();
        tasks.spawn(ChangePoller::new(database.clone(), tracker.clone()).run());
        if access == Access::ReadWrite {
            tasks.spawn(bulk_deleter.clone().trim_history_forever());
        }
        // Results that are cached from now on are complete up to here.
        tracker.catch_up().await.map_err(|error| OpenError::Unreachable(error.to_string()))?;
        let writer = writer::start(&database, &tracker, limits);
        Ok(Self {
            versions: Cache::new(cache_bytes / 8),
            summaries: Cache::new(cache_bytes / 8),
            messages: Cache::new(cache_bytes / 4),
            sources: Cache::new(cache_bytes / 2),
            database,
            tracker,
            writer,
            bulk_deleter,
            last_append_failed: AtomicBool::new(false),
            _tasks: tasks,
        })
    }

    /// Returns the clock of the database, for times in other tables.
    pub fn clock(&self) -> &Arc<DatabaseClock> {
        &self.tracker.database_clock
    }

    /// Returns the database, for other tables in the same schema.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Sends a job to the writer and waits until it is durable.
    async fn submit<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T> {
        let (reply, result) = oneshot::channel();
        self.writer.send(job(reply)).await.map_err(|_| writer_stopped())?;
        result.await.map_err(|_| writer_stopped())?
    }

    /// Records whether a message could be stored.
    fn record_append_result<T>(&self, result: Result<T>) -> Result<T> {
        self.last_append_failed.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Removes many messages in one change. Returns them.
    async fn remove_many(&self, change: &str, parameters: Parameters<'_>) -> Result<Vec<Summary>> {
        self.tracker.record_deletions(&self.bulk_deleter.run(change, parameters).await?)
    }

    /// Returns a cached value, if the mailbox has not changed since.
    async fn find_cached<K: Eq + Hash, V: CacheValue>(
        &self,
        cache: &Cache<K, V>,
        key: &K,
        mailbox: &MailboxName,
    ) -> Result<Option<V>> {
        let generation = self.tracker.generations.generation(mailbox);
        if cache.get(key, generation).is_none() {
            return Ok(None);
        }
        self.tracker.catch_up().await?;
        Ok(cache.get(key, self.tracker.generations.generation(mailbox)))
    }

    /// Returns a cached message, if none of its mailboxes has changed since it was read.
    fn find_cached_message(&self, selector: MessageSelector) -> Option<Message> {
        let generations = &self.tracker.generations;
        let (message, generation) = self.messages.get(&selector, 0)?;
        let is_unchanged = match selector {
            MessageSelector::Id(_) => message.mailboxes().all(|mailbox| generations.generation(mailbox) <= generation),
            // Any new message replaces it.
            MessageSelector::Latest => generations.last_generation() == generation,
        };
        is_unchanged.then_some(message)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        self.append_in_order(vec![message]).await.pop().ok_or_else(writer_stopped)?
    }

    /// The writer may write two batches at the same time, so the messages must be in one of them.
    async fn append_in_order(&self, mut messages: Vec<NewMessage>) -> Vec<Result<Appended>> {
        // The writer waits for a change.
        if messages.is_empty() {
            return Vec::new();
        }
        for message in &mut messages {
            message.received = self.tracker.database_clock.to_database(message.received);
        }
        let count = messages.len();
        match self.record_append_result(self.submit(|reply| Job::Append(messages, reply)).await) {
            Ok(appended) => appended.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); count],
        }
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        if let Some(version) = self.find_cached(&self.versions, mailbox, mailbox).await? {
            return Ok(version);
        }
        let generation = self.tracker.generations.generation(mailbox);
        let version = reader::version(&self.database, mailbox).await?;
        self.versions.insert(mailbox.clone(), generation, version);
        Ok(version)
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        reader::list(&self.database, mailbox, page).await
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        let key = (mailbox.clone(), selector);
        if let Some(summary) = self.find_cached(&self.summaries, &key, mailbox).await? {
            return Ok(Some(summary));
        }
        let generation = self.tracker.generations.generation(mailbox);
        let Some((summary, source)) = reader::find(&self.database, mailbox, selector).await? else { return Ok(None) };
        self.summaries.insert(key, generation, summary.clone());
        if let Some(source) = source {
            self.sources.insert((mailbox.clone(), summary.id), generation, source);
        }
        Ok(Some(summary))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let key = (mailbox.clone(), id);
        if let Some(source) = self.find_cached(&self.sources, &key, mailbox).await? {
            return Ok(Some(source));
        }
        let generation = self.tracker.generations.generation(mailbox);
        let source = reader::source(&self.database, mailbox, id).await?;
        if let Some(source) = &source {
            self.sources.insert(key, generation, source.clone());
        }
        Ok(source)
    }

    async fn sources(&self, copies: Vec<CopyKey>) -> Result<Vec<Option<Source>>> {
        reader::sources(&self.database, &copies).await
    }

    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        reader::messages(&self.database, project, page).await
    }

    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        let generations = &self.tracker.generations;
        if self.find_cached_message(selector).is_some() {
            self.tracker.catch_up().await?;
            if let Some(message) = self.find_cached_message(selector) {
                return Ok(Some(message));
            }
        }
        let last_generation = generations.last_generation();
        let Some((message, source)) = reader::find_message(&self.database, selector).await? else { return Ok(None) };
        self.messages.insert(selector, 0, (message.clone(), last_generation));
        if let Some(CopySource { copy, source }) = source {
            let generation = generations.generation(&copy.mailbox);
            if generation <= last_generation {
                self.sources.insert((copy.mailbox, copy.id), generation, source);
            }
        }
        Ok(Some(message))
    }

    async fn store_version(&self) -> Result<Version> {
        self.tracker.catch_up().await.map(Version)
    }

    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        reader::index(&self.database, mailbox, after, limit).await
    }

    async fn uid_validity(&self) -> Result<u32> {
        reader::uid_validity(&self.database).await
    }

    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        self.submit(|reply| Job::Update(updates, reply)).await
    }

    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>> {
        if copies.is_empty() {
            return Ok(Vec::new());
        }
        self.submit(|reply| Job::Remove(copies, reply)).await
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        let limit: i64 = to_i64(limit);
        self.remove_many(PURGE, &[&mailbox.as_str().as_bytes(), &id_to_i64(last), &limit]).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let limit: i64 = to_i64(limit);
        self.remove_many(EXPIRE, &[&time_to_nanos(self.tracker.database_clock.to_database(deadline)), &limit]).await
    }

    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
        let before = range.before.map(|before| self.tracker.database_clock.to_database(before));
        reader::oldest(&self.database, AgeRange { before, ..range }, limit).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        reader::mailboxes(&self.database, &page).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        reader::last_id(&self.database).await
    }

    async fn usage(&self) -> Result<Usage> {
        // After an error, try whether a message can be stored again. Load balancers use this result: while it is an
        // error, they send no messages, so no append would notice that the store works again.
        if self.last_append_failed.load(Ordering::Relaxed) {
            self.record_append_result(self.database.execute(CHECK, &[]).await)?;
        }
        self.tracker.usage().await
    }

    async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        reader::overview(&self.database, project).await
    }

    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        reader::projects(&self.database, after, limit).await
    }

    fn feed(&self) -> Option<Feed> {
        self.tracker.feed()
    }
}

impl CacheValue for Version {
    fn bytes(&self) -> usize {
        0
    }
}
