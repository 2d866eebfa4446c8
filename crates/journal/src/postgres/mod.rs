//! The PostgreSQL journal, which several nodes share. It is in the database of their store, and every node returns the
//! sessions of all nodes.
//!
//! As in the disk journal, chunks wait in memory until a thread has written them. This node returns them at once, other
//! nodes after they are written, usually within a second. While the database is unavailable, they stay in the queue as
//! long as it has capacity. The size limit applies to all nodes together; the chunks that were written first are
//! evicted.

mod read;
mod storage;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use restante_store::postgres::PostgresStore;

use self::read::TableReader;
use self::storage::PostgresStorage;
use super::write_queue::{MAX_QUEUED_BYTES, StorageState, WriteQueue};
use super::writer::WriterThread;
use super::{Journal, SessionIdGenerator};

/// The number of node numbers, including zero, which nodes without a number use. The same as in `journal.sql`.
const NODE_NUMBERS: u64 = 64;

/// Opens the journal in the database of a store. `max_bytes` is the limit for all nodes together. The journal is written
/// through a separate connection. Fails if the writer thread cannot be started.
pub fn open(store: &PostgresStore, max_bytes: usize) -> io::Result<Journal> {
    let database = store.database().clone();
    let queue = Arc::new(WriteQueue::new(max_bytes, MAX_QUEUED_BYTES));
    let session_ids = Arc::new(SessionIdGenerator::new(NODE_NUMBERS));
    // Queries need not wait for the thread: the tables exist already.
    queue.set_storage(StorageState::Open);
    let (own_database, ids) = (database.with_own_connection().map_err(io::Error::other)?, session_ids.clone());
    let writer = WriterThread::start(queue.clone(), move || PostgresStorage::open(own_database, ids))?;
    Ok(Journal { session_ids, queue, storage: Some((Box::new(TableReader { database }), writer)) })
}
