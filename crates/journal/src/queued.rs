//! A snapshot of the chunks that are not written yet, which queries combine with the written ones. Some of them may be
//! written by the time the storage is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

use super::write_queue::WriteQueue;
use super::{Chunk, MAX_LISTED_CHUNKS, SessionId, SessionPage, Transcript};

/// The queued chunks at one moment, in the order in which they were appended.
pub(super) struct QueuedChunks(Vec<Arc<Chunk>>);

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
    pub(super) fn snapshot(waiting: &WriteQueue) -> (Self, bool) {
        let (contents, has_shelf) = waiting.lock_when_ready();
        let fresh = contents.queue.chunks().cloned().collect();
        drop(contents);
        (Self(fresh), has_shelf)
    }

    /// Returns the sessions with queued chunks that match a page, ignoring its limit.
    pub(super) fn sessions(&self, page: SessionPage) -> BTreeSet<SessionId> {
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let wanted = |piece: &&Arc<Chunk>| piece.session < before && (!page.refused_only || piece.info.refusals > 0);
        self.0.iter().filter(wanted).map(|piece| piece.session).collect()
    }

    /// Returns the chunk that received a message.
    pub(super) fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Option<(SessionId, u32)> {
        let has = |piece: &&Arc<Chunk>| {
            let messages = piece.transaction.iter().flat_map(|mail| &mail.messages);
            messages.into_iter().any(|(name, number)| *number == id && name == mailbox)
        };
        self.0.iter().find(has).map(|piece| (piece.session, piece.number))
    }

    /// Combines the written and the queued chunks of a session.
    pub(super) fn merge(
        &self,
        session: SessionId,
        part: TranscriptPart,
        written: Option<Transcript>,
    ) -> Option<Transcript> {
        let (mut cover, mut pieces) = (None, BTreeMap::new());
        if let Some(written) = written {
            cover = Some(written.info);
            pieces.extend(written.chunks.into_iter().map(|piece| (piece.number, piece)));
        }
        for piece in self.0.iter().filter(|piece| piece.session == session) {
            cover = Some(piece.info.clone());
            if part.includes(piece.number) {
                pieces.insert(piece.number, piece.clone());
            }
        }
        if let TranscriptPart::Listed = part {
            while pieces.len() > MAX_LISTED_CHUNKS {
                pieces.pop_first();
            }
        }
        let pieces: Vec<Arc<Chunk>> = pieces.into_values().collect();
        cover.filter(|_| !pieces.is_empty()).map(|cover| Transcript { session, info: cover, chunks: pieces })
    }
}

impl TranscriptPart {
    pub(super) fn includes(self, number: u32) -> bool {
        match self {
            Self::Listed | Self::Whole => true,
            Self::Chunk(wanted) => number == 0 || number == wanted,
        }
    }
}
