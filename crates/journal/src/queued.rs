//! A snapshot of the chunks that are not written yet, which queries combine with the written ones. Some of them may be
//! written by the time the storage is read. In a journal without a storage these are all chunks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::sql_values::to_i64;

use super::write_queue::WriteQueue;
use super::{Chunk, MAX_LISTED_CHUNKS, SessionId, SessionPage, Transcript};

/// The queued chunks at one moment, by session, in the order in which they were appended.
pub(super) struct QueuedChunks(BTreeMap<SessionId, Vec<Arc<Chunk>>>);

/// The chunks of a session that a query returns.
#[derive(Clone, Copy)]
pub(super) enum TranscriptPart {
    /// The last ones, without their lines.
    Listed,
    Whole,
    /// The first one and this one.
    Chunk(u32),
}

impl QueuedChunks {
    /// Returns the queued chunks, and whether the storage must be read too.
    pub(super) fn snapshot(queue: &WriteQueue) -> (Self, bool) {
        let (contents, has_storage) = queue.lock_when_ready();
        let queued: Vec<Arc<Chunk>> = contents.queue.chunks().cloned().collect();
        drop(contents);
        let mut sessions = BTreeMap::<SessionId, Vec<Arc<Chunk>>>::new();
        for chunk in queued {
            sessions.entry(chunk.session).or_default().push(chunk);
        }
        (Self(sessions), has_storage)
    }

    /// Returns the sessions with queued chunks on a page.
    pub(super) fn sessions(&self, page: SessionPage) -> BTreeSet<SessionId> {
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let matches = |chunks: &[Arc<Chunk>]| !page.refused_only || chunks.iter().any(|chunk| chunk.info.refusals > 0);
        let sessions = self.0.range(..before).rev().filter(|(_, chunks)| matches(chunks));
        sessions.take(page.limit).map(|(session, _)| *session).collect()
    }

    /// Returns the chunk that received a message.
    pub(super) fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Option<(SessionId, u32)> {
        let has_message = |chunk: &&Arc<Chunk>| {
            let messages = chunk.transaction.iter().flat_map(|transaction| &transaction.messages);
            messages.into_iter().any(|(name, number)| *number == id && name == mailbox)
        };
        self.0.values().flatten().find(has_message).map(|chunk| (chunk.session, chunk.number))
    }

    /// Combines the written and the queued chunks of a session.
    pub(super) fn merge(
        &self,
        session: SessionId,
        part: TranscriptPart,
        written: Option<Transcript>,
    ) -> Option<Transcript> {
        let (mut info, mut chunks) = (None, BTreeMap::new());
        if let Some(written) = written {
            info = Some(written.info);
            chunks.extend(written.chunks.into_iter().map(|chunk| (chunk.number, chunk)));
        }
        for chunk in self.0.get(&session).into_iter().flatten() {
            info = Some(chunk.info.clone());
            if part.includes(chunk.number) {
                chunks.insert(chunk.number, chunk.clone());
            }
        }
        if let TranscriptPart::Listed = part {
            while chunks.len() > MAX_LISTED_CHUNKS {
                chunks.pop_first();
            }
        }
        let chunks: Vec<Arc<Chunk>> = chunks.into_values().collect();
        info.filter(|_| !chunks.is_empty()).map(|info| Transcript { session, info, chunks })
    }
}

/// The parameters of a query for a part of a session.
pub(super) struct PartQuery {
    /// Only the first chunk, this one and the last one, which has the latest properties of the session.
    pub(super) single: Option<u32>,
    pub(super) max_chunks: Option<i64>,
    pub(super) with_lines: bool,
}

impl TranscriptPart {
    pub(super) fn query(self) -> PartQuery {
        match self {
            Self::Listed => PartQuery { single: None, max_chunks: Some(to_i64(MAX_LISTED_CHUNKS)), with_lines: false },
            Self::Whole => PartQuery { single: None, max_chunks: None, with_lines: true },
            Self::Chunk(number) => PartQuery { single: Some(number), max_chunks: None, with_lines: true },
        }
    }

    pub(super) fn includes(self, number: u32) -> bool {
        match self {
            Self::Listed | Self::Whole => true,
            Self::Chunk(included) => number == 0 || number == included,
        }
    }
}
