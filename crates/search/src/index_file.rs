//! Where the index stands, for the one who writes and for those who ask. An index in a file is asked beside its writer; one in
//! memory is asked in turns with it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use restante_mail::message::MessageId;
use rusqlite::Result;

use crate::index::{Index, IndexQuery, Matches, Reader};

/// How many readers are kept for the next question.
const MAX_IDLE_READERS: usize = 2;

/// How many bytes of the disk are left to the mail: the index takes no space where there is less.
const MIN_FREE_BYTES: u64 = 64 << 20;

/// See the file's documentation.
#[derive(Default)]
pub(crate) struct IndexFile {
    /// The data directory, if there is one.
    directory: Option<PathBuf>,
    index: Mutex<Option<Index>>,
    idle: Mutex<IdleReaders>,
    /// How many messages are in the index.
    count: AtomicU64,
}

/// Readers that nobody uses.
#[derive(Default)]
struct IdleReaders {
    /// How many indexes there were; a reader of an earlier one is of no use.
    generation: u64,
    /// Whether there is an index to read.
    is_open: bool,
    readers: Vec<Reader>,
}

impl IndexFile {
    /// An empty shelf, in a data directory or in memory.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    /// Whether what is on it outlives the process.
    pub(crate) fn is_persistent(&self) -> bool {
        self.directory.is_some()
    }

    /// Whether there is room for more than the mail.
    pub(crate) fn has_disk_space(&self) -> bool {
        let space = self.directory.as_ref().map(rustix::fs::statvfs);
        // Where nobody knows, the database finds out.
        space
            .and_then(std::result::Result::ok)
            .is_none_or(|space| space.f_bavail.saturating_mul(space.f_frsize) > MIN_FREE_BYTES)
    }

    /// How many messages are in the index.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Opens the index, if it is not. The id up to which everything in it is right, if that is known.
    pub(crate) fn open(&self) -> Result<Option<MessageId>> {
        let (index, through) = Index::open(self.directory.as_deref())?;
        self.count.store(index.count(), Relaxed);
        *lock(&self.index) = Some(index);
        lock(&self.idle).is_open = true;
        Ok(through)
    }

    /// Does something with the index, if there is one.
    pub(crate) fn with_index<T>(&self, work: impl FnOnce(&mut Index) -> Result<T>) -> Option<Result<T>> {
        let mut index = lock(&self.index);
        let index = index.as_mut()?;
        let result = work(index);
        self.count.store(index.count(), Relaxed);
        Some(result)
    }

    /// Whether there is no index on it.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.index).is_none()
    }

    /// Takes the index off the shelf.
    pub(crate) fn take(&self) -> Option<Index> {
        let mut idle = lock(&self.idle);
        let generation = idle.generation + 1;
        *idle = IdleReaders { generation, ..IdleReaders::default() };
        lock(&self.index).take()
    }

    /// Asks the index, if there is one. Blocks.
    pub(crate) fn find(&self, asked: &IndexQuery<'_>) -> Option<Result<Matches>> {
        let (generation, reader) = {
            let mut idle = lock(&self.idle);
            if !idle.is_open {
                return None;
            }
            (idle.generation, idle.readers.pop())
        };
        let Some(directory) = &self.directory else { return self.with_index(|index| index.find(asked)) };
        let mut reader = match reader.map_or_else(|| Reader::open(directory), Ok) {
            Ok(reader) => reader,
            Err(error) => return Some(Err(error)),
        };
        let found = reader.find(asked);
        let mut idle = lock(&self.idle);
        if found.is_ok() && idle.generation == generation && idle.readers.len() < MAX_IDLE_READERS {
            idle.readers.push(reader);
        }
        Some(found)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
