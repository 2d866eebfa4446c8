//! Opens the configured store, and logs where messages are stored.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use restante_journal::{self as journal, Journal};
use restante_queue::{Limits as QueueLimits, PostgresQueue, Queue, QueueKind, SqliteQueue};
use restante_settings::{Config, Storage};
use restante_store::disk::{self, DiskStore, Durability};
use restante_store::memory::MemoryStore;
use restante_store::postgres::{self, Access, PostgresStore};
use restante_store::{Result, Store, StoreError, Usage};
use restante_webhook::Webhooks;
use tokio::time::{Instant, sleep};

/// The maximum number of directory entries that are examined.
const MAX_ENTRIES_CHECKED: usize = 100;

/// The number of database connections that the journal uses.
const JOURNAL_CONNECTIONS: usize = 1;

/// How long the start waits for a database that cannot be reached, how often it retries, and how often it logs that.
const DATABASE_START_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why the store cannot be opened. It displays as a sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be used.
    #[error("{0}")]
    Directory(disk::OpenError),
    /// The database at this address cannot be used.
    #[error("PostgreSQL at {0}: {1}")]
    Database(String, postgres::OpenError),
}

impl OpenError {
    /// Returns true if a later attempt cannot succeed.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Directory(error) => error.is_permanent(),
            Self::Database(_, error) => error.is_permanent(),
        }
    }
}

/// An open store.
pub struct OpenedStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same store, if it is in a database, which can contain the journal too.
    database: Option<Arc<PostgresStore>>,
}

/// Opens the store. With a data directory this blocks for some milliseconds, so call it before anything is served.
pub async fn open(storage: &Storage) -> Result<OpenedStore, OpenError> {
    open_with_access(storage, Access::ReadWrite).await
}

/// Opens the store. With read access, nothing is created in a database.
pub async fn open_with_access(storage: &Storage, access: Access) -> Result<OpenedStore, OpenError> {
    let limits = storage.limits();
    let cache_bytes = storage.cache_bytes;
    if let Some(address) = &storage.database {
        let connections = storage.connections.saturating_sub(JOURNAL_CONNECTIONS);
        let settings = postgres::Settings { limits, cache_bytes, connections, access, ..postgres::Settings::default() };
        let opened = PostgresStore::open(address, settings).await;
        let store = Arc::new(opened.map_err(|error| OpenError::Database(address.to_string(), error))?);
        return Ok(OpenedStore { store: store.clone(), database: Some(store) });
    }
    let store: Arc<dyn Store> = match &storage.path {
        None => Arc::new(MemoryStore::new(limits)),
        Some(dir) => {
            let durability = storage.durability;
            let settings = disk::Settings { limits, durability, cache_bytes, ..disk::Settings::default() };
            Arc::new(DiskStore::open(dir, settings).map_err(OpenError::Directory)?)
        }
    };
    Ok(OpenedStore { store, database: None })
}

/// Opens the store for a server. Waits for a database, which may have been started at the same time. Nothing is served
/// in the meantime, because no request could succeed.
pub async fn open_with_retry(storage: &Storage) -> Result<OpenedStore, OpenError> {
    let started = Instant::now();
    let mut last_logged = None;
    loop {
        let error = match open(storage).await {
            Err(error @ OpenError::Database(..)) if !error.is_permanent() => error,
            result => return result,
        };
        if started.elapsed() >= DATABASE_START_TIMEOUT {
            return Err(error);
        }
        if last_logged.is_none_or(|last_logged: Instant| last_logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!("{error}; retrying");
            last_logged = Some(Instant::now());
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Opens the journal of sessions next to the store, unless it is turned off. An error of the journal does not prevent
/// the start.
pub fn open_journal(config: &Config, opened: &OpenedStore) -> Option<Arc<Journal>> {
    let max_bytes = config.smtp.transcript_bytes;
    if max_bytes == 0 {
        return None;
    }
    let journal = match (&opened.database, &config.storage.path) {
        (Some(database), _) => journal::postgres::open(database, max_bytes),
        (None, Some(dir)) => journal::disk::open(dir, max_bytes),
        (None, None) => Ok(Journal::in_memory(max_bytes)),
    };
    let journal = journal.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot open the journal, session transcripts are kept in memory only");
        Journal::in_memory(max_bytes)
    });
    Some(Arc::new(journal))
}

/// Opens a queue next to the store. The error is a sentence for the operator.
pub async fn open_queue(
    config: &Config,
    opened: &OpenedStore,
    kind: QueueKind,
    limits: QueueLimits,
) -> Result<Arc<dyn Queue>, String> {
    Ok(match (&opened.database, &config.storage.path) {
        (Some(database), _) => {
            let queue = PostgresQueue::open(database, kind, limits).await;
            Arc::new(queue.map_err(|error| format!("cannot open the {} queue: {error}", kind.name))?)
        }
        (None, Some(dir)) => Arc::new(SqliteQueue::open(dir, kind, limits)?),
        (None, None) => Arc::new(SqliteQueue::in_memory(kind, limits)?),
    })
}

/// Opens the queue of the relay. The error is a sentence for the operator.
pub async fn open_relay_queue(config: &Config, opened: &OpenedStore) -> Result<Arc<dyn Queue>, String> {
    let limits = QueueLimits { max_waiting: config.relay.max_queued, max_finished: restante_relay::MAX_FINISHED };
    open_queue(config, opened, restante_relay::QUEUE, limits).await
}

/// Opens the queue of the webhooks. Returns whether it survives the end of the process, too. The error is a sentence for
/// the operator.
pub async fn open_webhook_queue(config: &Config, opened: &OpenedStore) -> Result<(Arc<dyn Queue>, bool), String> {
    let (kind, limits) = (restante_webhook::QUEUE, restante_webhook::QUEUE_LIMITS);
    match open_queue(config, opened, kind, limits).await {
        Ok(queue) => Ok((queue, opened.database.is_some() || config.storage.path.is_some())),
        // Delivery of messages is more important.
        Err(error) => {
            tracing::error!("webhook events are kept in memory only: {error}");
            Ok((Arc::new(SqliteQueue::in_memory(kind, limits)?), false))
        }
    }
}

/// Deletes the position of the forwarder of an earlier configuration with a relay. Otherwise the messages that arrive
/// without a relay would be forwarded when it is configured again. Returns the queue if entries wait in it, or if the
/// position must be deleted later, because another node forwards. The error is a sentence for the operator.
pub async fn end_forwarding(config: &Config, opened: &OpenedStore) -> Result<Option<Arc<dyn Queue>>, String> {
    if !has_queue(config, opened, restante_relay::QUEUE) {
        return Ok(None);
    }
    let queue = open_relay_queue(config, opened).await?;
    let ended = async {
        let is_used =
            !queue.delete_cursor().await? || queue.counts().await?.iter().any(|count| !count.state.is_final());
        if !is_used {
            queue.leave().await?;
        }
        Ok(is_used)
    };
    let is_used = ended.await.map_err(|error: StoreError| format!("cannot access the relay queue: {error}"))?;
    Ok(is_used.then_some(queue))
}

/// Ends the webhooks of an earlier configuration. Returns the number of cancelled events. The error is a sentence for the
/// operator.
pub async fn end_webhooks(config: &Config, opened: &OpenedStore) -> Result<u64, String> {
    let (kind, limits) = (restante_webhook::QUEUE, restante_webhook::QUEUE_LIMITS);
    if !has_queue(config, opened, kind) {
        return Ok(0);
    }
    let queue = open_queue(config, opened, kind, limits).await?;
    Webhooks::end(&*queue).await.map_err(|error| format!("cannot access the webhook queue: {error}"))
}

/// Returns whether there can be a queue of an earlier configuration.
fn has_queue(config: &Config, opened: &OpenedStore, kind: QueueKind) -> bool {
    match (&opened.database, &config.storage.path) {
        (Some(_), _) => true,
        (None, Some(dir)) => SqliteQueue::exists(dir, kind),
        (None, None) => false,
    }
}

/// Returns where messages are stored, without credentials.
pub(crate) fn describe(storage: &Storage) -> String {
    match (&storage.database, &storage.path, storage.durability) {
        (Some(address), ..) => format!("PostgreSQL at {address}"),
        (None, Some(dir), Durability::Full) => dir.display().to_string(),
        (None, Some(dir), Durability::Relaxed) => format!("{}, with relaxed durability", dir.display()),
        (None, None, _) => "memory until the server stops".to_owned(),
    }
}

/// Logs where messages are stored, how many there are, and how to import existing messages of Inbucket.
pub fn log_storage(storage: &Storage, usage: Result<Usage>) {
    let location = describe(storage);
    if storage.database.is_none() && storage.path.is_none() {
        tracing::info!("messages are stored in {location}");
        return;
    }
    match usage {
        Ok(Usage { messages, mailboxes, .. }) => {
            tracing::info!("messages are stored in {location}: {messages} messages in {mailboxes} mailboxes");
        }
        Err(error) => tracing::error!(%error, "messages are stored in {location}, but cannot be counted"),
    }
    if let Some(dir) = storage.path.as_deref().filter(|dir| contains_inbucket_store(dir)) {
        let path = dir.display();
        let import = format!("restante import --data {path} {path}");
        tracing::info!("{path} also contains messages of Inbucket; to import them, stop the server and run: {import}");
    }
}

/// Returns true if the directory contains a `file` store of Inbucket: a directory `mail` with directories named by the
/// first three digits of a hash.
fn contains_inbucket_store(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir.join("mail")) else { return false };
    entries.take(MAX_ENTRIES_CHECKED).flatten().any(|entry| {
        let name = entry.file_name();
        name.len() == 3 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use restante_testdir::TestDir;

    use super::*;

    #[test]
    fn detects_an_inbucket_store() {
        let dir = TestDir::new();
        for (folder, expected) in [("segments", false), ("mail", false), ("mail/cur", false), ("mail/0f3", true)] {
            fs::create_dir_all(dir.path().join(folder)).expect("the folder is created");
            assert_eq!(contains_inbucket_store(dir.path()), expected, "{folder}");
        }
    }
}
