//! What was noted and waits to be written, as whoever asks sees it beside what is written. It is newer, and may already be
//! written when that is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

use super::write_queue::WriteQueue;
use super::{Chunk, MAX_LISTED_CHUNKS, SessionId, SessionPage, Transcript};

/// What waits at one moment, in the order in which it was noted.
pub(super) struct QueuedChunks(Vec<Arc<Chunk>>);

/// Which pieces of a session are wanted.
#[derive(Clone, Copy)]
pub(super) enum TranscriptPart {
    /// The last ones, without their lines.
    Listed,
    Whole,
    /// The head and this one.
    Chunk(u32),
}

impl QueuedChunks {
    /// What waits now, and whether anything is written beside it.
    pub(super) fn snapshot(waiting: &WriteQueue) -> (Self, bool) {
        let (contents, has_shelf) = waiting.lock_when_ready();
        let fresh = contents.queue.chunks().cloned().collect();
        drop(contents);
        (Self(fresh), has_shelf)
    }

    /// The sessions of which something waits, as far as the page is about them, whatever its limit.
    pub(super) fn sessions(&self, page: SessionPage) -> BTreeSet<SessionId> {
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let wanted = |piece: &&Arc<Chunk>| piece.session < before && (!page.refused_only || piece.info.refusals > 0);
        self.0.iter().filter(wanted).map(|piece| piece.session).collect()
    }

    /// The piece in which a message came.
    pub(super) fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Option<(SessionId, u32)> {
        let has = |piece: &&Arc<Chunk>| {
            let messages = piece.transaction.iter().flat_map(|mail| &mail.messages);
            messages.into_iter().any(|(name, number)| *number == id && name == mailbox)
        };
        self.0.iter().find(has).map(|piece| (piece.session, piece.number))
    }

    /// A session as it is told: this part of what is written of it, and of what waits.
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
