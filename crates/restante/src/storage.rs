//! Opens the store that the configuration asks for, and logs where mail is stored.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use restante_journal::Journal;
use restante_journal::disk::DiskJournal;
use restante_journal::memory::MemoryJournal;
use restante_journal::postgres::PostgresJournal;
use restante_settings::{Config, Storage};
use restante_store::disk::{self, DiskStore, Durability};
use restante_store::memory::MemoryStore;
use restante_store::postgres::{self, Access, PostgresStore};
use restante_store::{Limits, Result, Store, Usage};
use tokio::time::{Instant, sleep};

/// So many entries of a directory say what it is.
const MAX_ENTRIES_CHECKED: usize = 100;

/// How many of the connections to a database the journal takes.
const JOURNAL_CONNECTIONS: usize = 1;

/// How long a database is waited for that cannot be reached when the server starts; how often it is tried and told meanwhile.
const DATABASE_START_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why there is no store: the text is a sentence for the operator.
#[derive(Debug)]
pub enum OpenError {
    /// The data directory cannot be used.
    Directory(disk::OpenError),
    /// The database at this address cannot be used.
    Database(String, postgres::OpenError),
}

impl OpenError {
    /// Whether trying again later does not help.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Directory(error) => error.is_permanent(),
            Self::Database(_, error) => error.is_permanent(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => error.fmt(f),
            Self::Database(address, error) => write!(f, "PostgreSQL at {address}: {error}"),
        }
    }
}

/// A store that is open.
pub struct OpenedStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same, where it is in a database: the journal can be there too.
    database: Option<Arc<PostgresStore>>,
}

/// Opens the store. With a data directory this takes some milliseconds and blocks, so it is best done before anything is served.
pub async fn open(storage: &Storage) -> Result<OpenedStore, OpenError> {
    open_with_access(storage, Access::ReadWrite).await
}

/// The same for reading alone where mail is in a database: nothing is made there.
pub async fn open_with_access(storage: &Storage, access: Access) -> Result<OpenedStore, OpenError> {
    let limits = Limits { messages_per_mailbox: storage.mailbox_msg_cap.unwrap_or(0), bytes: storage.max_bytes };
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

/// Opens the store for a server, which may have been started together with its database: that one is waited for. Nothing is
/// served meanwhile, because nothing could be answered.
pub async fn open_with_retry(storage: &Storage) -> Result<OpenedStore, OpenError> {
    let begun = Instant::now();
    let mut told = None;
    loop {
        let error = match open(storage).await {
            Err(error @ OpenError::Database(..)) if !error.is_permanent() => error,
            opened_or_not => return opened_or_not,
        };
        if begun.elapsed() >= DATABASE_START_TIMEOUT {
            return Err(error);
        }
        if told.is_none_or(|told: Instant| told.elapsed() >= LOG_INTERVAL) {
            tracing::warn!("{error}; waiting for it");
            told = Some(Instant::now());
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Opens the journal of sessions beside the store, unless none is wanted. Whatever is wrong with it, mail comes first.
pub fn open_journal(config: &Config, opened: &OpenedStore) -> Option<Arc<dyn Journal>> {
    let max_bytes = config.smtp.transcript_bytes;
    if max_bytes == 0 {
        return None;
    }
    let in_memory = || Arc::new(MemoryJournal::new(max_bytes));
    let journal: io::Result<Arc<dyn Journal>> = match (&opened.database, &config.storage.path) {
        (Some(database), _) => PostgresJournal::open(database, max_bytes).map(|journal| Arc::new(journal) as _),
        (None, Some(dir)) => DiskJournal::open(dir, max_bytes).map(|journal| Arc::new(journal) as _),
        (None, None) => return Some(in_memory()),
    };
    Some(journal.unwrap_or_else(|error| {
        tracing::error!(%error, "transcripts of sessions are kept in memory only");
        in_memory()
    }))
}

/// Logs where mail is kept, how much is there, and what to do about mail that Inbucket has left there.
pub fn log_storage(storage: &Storage, usage: Result<Usage>) {
    let place = match (&storage.database, &storage.path, storage.durability) {
        (Some(address), ..) => format!("PostgreSQL at {address}"),
        (None, Some(dir), Durability::Full) => dir.display().to_string(),
        (None, Some(dir), Durability::Relaxed) => format!("{}, with relaxed durability", dir.display()),
        (None, None, _) => {
            tracing::info!("mail is kept in memory until the server ends");
            return;
        }
    };
    match usage {
        Ok(Usage { messages, mailboxes, .. }) => {
            tracing::info!("mail is kept in {place}: {messages} messages in {mailboxes} mailboxes");
        }
        Err(error) => tracing::error!(%error, "mail is kept in {place}, but it cannot be counted"),
    }
    if let Some(dir) = storage.path.as_deref().filter(|dir| holds_inbucket_mail(dir)) {
        let shown = dir.display();
        let import = format!("restante import --data {shown} {shown}");
        tracing::info!("{shown} holds mail of Inbucket too; this takes it over, while no server runs: {import}");
    }
}

/// Whether there is a `file` store of Inbucket: a folder `mail` with folders named by the first three digits of a hash.
fn holds_inbucket_mail(dir: &Path) -> bool {
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
    fn mail_of_inbucket() {
        let dir = TestDir::new();
        for (folder, expected) in [("segments", false), ("mail", false), ("mail/cur", false), ("mail/0f3", true)] {
            fs::create_dir_all(dir.path().join(folder)).expect("a folder of our own");
            assert_eq!(holds_inbucket_mail(dir.path()), expected, "{folder}");
        }
    }
}
