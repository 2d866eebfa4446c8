//! The open index, shared by its writer and by queries. Queries of an index in a file run concurrently with the writer;
//! an index in memory has one connection for both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use restante_mail::message::MessageId;
use restante_sqlite::has_space_beside_messages;
use rusqlite::{Connection, Result};
use tokio::sync::Notify;

use crate::index::{Index, IndexQuery, Matches, find_with_deadline, open_reader};

/// The number of idle readers that are kept.
const MAX_IDLE_READERS: usize = 2;

/// The index in a file or in memory; it may be closed.
#[derive(Default)]
pub(crate) struct IndexFile {
    /// The data directory; `None` for an index in memory.
    directory: Option<PathBuf>,
    index: Mutex<Option<Index>>,
    idle: Mutex<IdleReaders>,
    /// Notified when the index was opened.
    opened: Notify,
    /// The number of messages in the index.
    count: AtomicU64,
}

/// Readers that are not in use.
#[derive(Default)]
struct IdleReaders {
    /// Incremented whenever the index is closed. Readers of an earlier generation are not reused.
    generation: u64,
    /// True if there is an index to read.
    is_open: bool,
    readers: Vec<Connection>,
}

impl IndexFile {
    /// Creates a closed index, in a data directory or in memory.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    /// Returns true if the index outlives the process.
    pub(crate) fn is_persistent(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns true if there is enough free disk space to write the index.
    pub(crate) fn has_disk_space(&self) -> bool {
        self.directory.as_deref().is_none_or(has_space_beside_messages)
    }

    /// Returns the number of messages in the index.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Opens the index. Returns the id up to which it agrees with the store, if that is known.
    pub(crate) fn open(&self) -> Result<Option<MessageId>> {
        let (index, complete_up_to) = Index::open(self.directory.as_deref())?;
        self.count.store(index.count(), Relaxed);
        *self.index.lock() = Some(index);
        self.idle.lock().is_open = true;
        self.opened.notify_waiters();
        Ok(complete_up_to)
    }

    /// Waits until the index is open.
    pub(crate) async fn wait_until_open(&self) {
        loop {
            let opened = self.opened.notified();
            if self.idle.lock().is_open {
                return;
            }
            opened.await;
        }
    }

    /// Runs `work` on the index. Returns `None` if it is closed.
    pub(crate) fn with_index<T>(&self, work: impl FnOnce(&mut Index) -> Result<T>) -> Option<Result<T>> {
        let mut index = self.index.lock();
        let index = index.as_mut()?;
        let result = work(index);
        self.count.store(index.count(), Relaxed);
        Some(result)
    }

    /// Returns true if the index is not open.
    pub(crate) fn is_closed(&self) -> bool {
        self.index.lock().is_none()
    }

    /// Takes the index out, so that it is closed for others.
    pub(crate) fn take_index(&self) -> Option<Index> {
        let mut idle = self.idle.lock();
        let generation = idle.generation + 1;
        *idle = IdleReaders { generation, ..IdleReaders::default() };
        self.index.lock().take()
    }

    /// Runs a query. Returns `None` if the index is closed. Blocks.
    pub(crate) fn find(&self, query: &IndexQuery<'_>) -> Option<Result<Matches>> {
        let (generation, reader) = {
            let mut idle = self.idle.lock();
            if !idle.is_open {
                return None;
            }
            (idle.generation, idle.readers.pop())
        };
        let Some(directory) = &self.directory else { return self.with_index(|index| index.find(query)) };
        let mut reader = match reader.map_or_else(|| open_reader(directory), Ok) {
            Ok(reader) => reader,
            Err(error) => return Some(Err(error)),
        };
        let matches = find_with_deadline(&mut reader, query);
        let mut idle = self.idle.lock();
        if matches.is_ok() && idle.generation == generation && idle.readers.len() < MAX_IDLE_READERS {
            idle.readers.push(reader);
        }
        Some(matches)
    }
}
