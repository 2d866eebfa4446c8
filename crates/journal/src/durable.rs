//! A journal in a storage: chunks wait in memory until a thread has written them, and queries read both.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::{Result, StoreError};
use tokio::task::spawn_blocking;

use crate::queued::{QueuedChunks, TranscriptPart};
use crate::stored::StoredTranscripts;
use crate::write_queue::WriteQueue;
use crate::writer::WriterThread;
use crate::{Chunk, Journal, SessionId, SessionIdGenerator, SessionPage, Transcript};

/// A [`Journal`] in a file or a database.
pub struct DurableJournal {
    pub(super) session_ids: Arc<SessionIdGenerator>,
    pub(super) queue: Arc<WriteQueue>,
    pub(super) reader: Box<dyn StorageReader>,
    pub(super) _writer: WriterThread,
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

impl DurableJournal {
    /// Returns the queued chunks, and the reader if the storage must be read too.
    async fn snapshot(&self) -> Result<(QueuedChunks, Option<&dyn StorageReader>)> {
        let queue = self.queue.clone();
        // This can wait until the storage is open.
        let snapshot = spawn_blocking(move || QueuedChunks::snapshot(&queue)).await;
        let (queued, has_storage) = snapshot.map_err(|panic| StoreError::Broken(panic.to_string()))?;
        Ok((queued, has_storage.then_some(&*self.reader)))
    }
}

#[async_trait]
impl Journal for DurableJournal {
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
        let (queued, reader) = self.snapshot().await?;
        let mut ids = queued.sessions(page);
        if let Some(reader) = reader {
            ids.extend(reader.session_ids(page).await?);
        }
        let ids: Vec<SessionId> = ids.into_iter().rev().take(page.limit).collect();
        read_transcripts(&queued, reader, &ids, TranscriptPart::Listed).await
    }

    async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        let (queued, reader) = self.snapshot().await?;
        Ok(read_transcripts(&queued, reader, &[id], TranscriptPart::Whole).await?.pop())
    }

    async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let (queued, reader) = self.snapshot().await?;
        let location = match (queued.find_message(mailbox, id), reader) {
            (None, Some(reader)) => reader.find_message(mailbox, id).await?,
            (location, _) => location,
        };
        let Some((session, number)) = location else { return Ok(None) };
        Ok(read_transcripts(&queued, reader, &[session], TranscriptPart::Chunk(number)).await?.pop())
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
