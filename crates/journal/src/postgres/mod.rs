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

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::Result;
use restante_store::postgres::{Database, PostgresStore};

use self::storage::PostgresStorage;
use super::queued::{QueuedChunks, TranscriptPart};
use super::write_queue::{StorageState, WriteQueue};
use super::writer::WriterThread;
use super::{Chunk, Journal, SessionId, SessionIdGenerator, SessionPage, Transcript};

/// The number of node numbers, including zero, which nodes without a number use. The same as in `journal.sql`.
const NODE_NUMBERS: u64 = 64;

/// A [`Journal`] in a PostgreSQL database.
pub struct PostgresJournal {
    database: Arc<Database>,
    session_ids: Arc<SessionIdGenerator>,
    queue: Arc<WriteQueue>,
    _writer: WriterThread<PostgresStorage>,
}

impl PostgresJournal {
    /// Opens the journal in the database of a store. `max_bytes` is the limit for all nodes together. The journal is
    /// written through a separate connection. Fails if the writer thread cannot be started.
    pub fn open(store: &PostgresStore, max_bytes: usize) -> io::Result<Self> {
        let database = store.database().clone();
        let (queue, session_ids) =
            (Arc::new(WriteQueue::new(max_bytes)), Arc::new(SessionIdGenerator::with_node_count(NODE_NUMBERS)));
        // Queries need not wait for the thread: the tables exist already.
        queue.set_storage(StorageState::Open);
        let (own_database, ids) = (database.with_own_connection().map_err(io::Error::other)?, session_ids.clone());
        let thread = WriterThread::start(queue.clone(), move || PostgresStorage::open(own_database, ids))?;
        Ok(Self { database, session_ids, queue, _writer: thread })
    }

    /// Returns a part of one session.
    async fn transcript(
        &self,
        queued: &QueuedChunks,
        has_storage: bool,
        id: SessionId,
        part: TranscriptPart,
    ) -> Result<Option<Transcript>> {
        let mut written =
            if has_storage { read::read_transcripts(&self.database, &[id], part).await? } else { Default::default() };
        Ok(queued.merge(id, part, written.take(id)))
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    fn start_session(&self, now: Timestamp) -> SessionId {
        self.session_ids.next(now)
    }

    fn append(&self, mut chunk: Chunk) {
        chunk.lines.shrink();
        self.queue.add(chunk);
    }

    fn expire_before(&self, deadline: Timestamp) {
        self.queue.expire_before(deadline);
    }

    async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let (queued, has_storage) = QueuedChunks::snapshot(&self.queue);
        let mut ids = queued.sessions(page);
        if has_storage {
            ids.extend(read::session_ids(&self.database, page).await?);
        }
        let ids: Vec<SessionId> = ids.into_iter().rev().take(page.limit).collect();
        let mut written = if has_storage {
            read::read_transcripts(&self.database, &ids, TranscriptPart::Listed).await?
        } else {
            Default::default()
        };
        Ok(ids.into_iter().filter_map(|id| queued.merge(id, TranscriptPart::Listed, written.take(id))).collect())
    }

    async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        let (queued, has_storage) = QueuedChunks::snapshot(&self.queue);
        self.transcript(&queued, has_storage, id, TranscriptPart::Whole).await
    }

    async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let (queued, has_storage) = QueuedChunks::snapshot(&self.queue);
        let mut location = queued.find_message(mailbox, id);
        if location.is_none() && has_storage {
            location = read::find_message(&self.database, mailbox, id).await?;
        }
        let Some((session, number)) = location else { return Ok(None) };
        self.transcript(&queued, has_storage, session, TranscriptPart::Chunk(number)).await
    }
}
