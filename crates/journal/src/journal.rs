//! The journal: chunks wait in memory until a thread has written them to the storage, and queries read both. Without a
//! storage they stay in memory.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::{Result, StoreError};
use tokio::task::spawn_blocking;

use crate::queued::{QueuedChunks, TranscriptPart};
use crate::stored::StoredTranscripts;
use crate::write_queue::{StorageState, WriteQueue};
use crate::writer::WriterThread;
use crate::{Chunk, SessionId, SessionIdGenerator, SessionPage, Transcript};

/// Sessions and their transcripts, in a file, a database, or memory.
///
/// All methods may be called at the same time from any number of tasks.
pub struct Journal {
    pub(super) session_ids: Arc<SessionIdGenerator>,
    pub(super) queue: Arc<WriteQueue>,
    /// The storage, and the thread that writes to it. `None` in memory.
    pub(super) storage: Option<(Box<dyn StorageReader>, WriterThread)>,
}

/// Queries of the written chunks.
#[async_trait]
pub(super) trait StorageReader: Send + Sync + 'static {
    /// Returns the ids of the sessions on a page.
    async fn session_ids(&self, page: SessionPage) -> Result<Vec<SessionId>>;

    /// Returns the chunk that received a message.
    async fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<(SessionId, u32)>>;

    /// Returns a part of these sessions. Sessions that do not exist are left out.
    async fn transcripts(&self, sessions: &[SessionId], part: TranscriptPart) -> Result<StoredTranscripts>;
}

impl Journal {
    /// Creates an empty journal in memory with a size limit. It is lost when the process ends.
    pub fn in_memory(max_bytes: usize) -> Self {
        let queue = WriteQueue::new(max_bytes, max_bytes);
        queue.set_storage(StorageState::Closed);
        Self { session_ids: Arc::new(SessionIdGenerator::new(1)), queue: Arc::new(queue), storage: None }
    }

    /// Returns an id for a session that starts now. It is higher than all ids returned before, and different from those
    /// of other nodes.
    pub fn start_session(&self, now: Timestamp) -> SessionId {
        self.session_ids.next(now)
    }

    /// Appends a chunk. Returns at once, whatever the storage is doing; later queries include the chunk. If the size
    /// limit is exceeded, the chunks that were appended first are evicted. If there is a storage, queued chunks may also be
    /// lost, oldest first, if they arrive faster than they can be written and the queue is full.
    pub fn append(&self, mut chunk: Chunk) {
        chunk.lines.shrink();
        self.queue.add(chunk);
    }

    /// Deletes chunks that were recorded before the deadline, within some seconds. Returns at once.
    pub fn expire_before(&self, deadline: Timestamp) {
        self.queue.expire_before(deadline);
    }

    /// Returns a page of sessions, latest first. Each has at most its last [`crate::MAX_LISTED_CHUNKS`] chunks, whose lines
    /// may be left out. The cost depends on the size of the result and on the number of chunks in memory.
    pub async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let (queued, reader) = self.snapshot().await?;
        let mut ids = queued.sessions(page);
        if let Some(reader) = reader {
            ids.extend(reader.session_ids(page).await?);
        }
        let ids: Vec<SessionId> = ids.into_iter().rev().take(page.limit).collect();
        read_transcripts(&queued, reader, &ids, TranscriptPart::Listed).await
    }

    /// Returns what is left of a session.
    pub async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        let (queued, reader) = self.snapshot().await?;
        Ok(read_transcripts(&queued, reader, &[id], TranscriptPart::Whole).await?.pop())
    }

    /// Returns the first chunk of the session that received this message, if it is left, and the chunk of the message.
    pub async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let (queued, reader) = self.snapshot().await?;
        let location = match (queued.find_message(mailbox, id), reader) {
            (None, Some(reader)) => reader.find_message(mailbox, id).await?,
            (location, _) => location,
        };
        let Some((session, number)) = location else { return Ok(None) };
        Ok(read_transcripts(&queued, reader, &[session], TranscriptPart::Chunk(number)).await?.pop())
    }

    /// Returns the queued chunks, and the reader if the storage must be read too.
    async fn snapshot(&self) -> Result<(QueuedChunks, Option<&dyn StorageReader>)> {
        let queue = self.queue.clone();
        // This can wait until the storage is open.
        let snapshot = spawn_blocking(move || QueuedChunks::snapshot(&queue)).await;
        let (queued, has_storage) = snapshot.map_err(|panic| StoreError::Broken(panic.to_string()))?;
        Ok((queued, self.storage.as_ref().filter(|_| has_storage).map(|(reader, _)| &**reader)))
    }
}

/// Returns a part of these sessions, without those that do not exist.
async fn read_transcripts(
    queued: &QueuedChunks,
    reader: Option<&dyn StorageReader>,
    sessions: &[SessionId],
    part: TranscriptPart,
) -> Result<Vec<Transcript>> {
    let mut written = match reader {
        Some(reader) => reader.transcripts(sessions, part).await?,
        None => StoredTranscripts::default(),
    };
    Ok(sessions.iter().filter_map(|id| queued.merge(*id, part, written.take(*id))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance;

    #[tokio::test]
    async fn memory_journal_passes_conformance_suite() {
        conformance::run(async |max_bytes| Journal::in_memory(max_bytes)).await;
    }

    #[tokio::test]
    async fn memory_journal_has_a_limit_above_that_of_the_queue() {
        use crate::write_queue::MAX_QUEUED_BYTES;
        let journal = Journal::in_memory(2 * MAX_QUEUED_BYTES);
        let text = "x".repeat(60_000);
        let count = 2 * MAX_QUEUED_BYTES as u64 / 61_000;
        for session in 1..=count {
            journal.append(conformance::chunk(session, 0, &text));
        }
        assert!(journal.session(1.into()).await.unwrap().is_some());
        assert!(journal.session(count.into()).await.unwrap().is_some());
    }
}
