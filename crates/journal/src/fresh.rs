//! What was noted and waits to be written, as whoever asks sees it beside what is written. It is newer, and may already be
//! written when that is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

use super::waiting::Waiting;
use super::{MAX_LISTED_PIECES, Piece, SessionId, SessionPage, Transcript};

/// What waits at one moment, in the order in which it was noted.
pub(super) struct Fresh(Vec<Arc<Piece>>);

/// Which pieces of a session are wanted.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The last ones, without their lines.
    Listed,
    Whole,
    /// The head and this one.
    Piece(u32),
}

impl Fresh {
    /// What waits now, and whether anything is written beside it.
    pub(super) fn look(waiting: &Waiting) -> (Self, bool) {
        let (contents, has_shelf) = waiting.look();
        let fresh = contents.queue.pieces().cloned().collect();
        drop(contents);
        (Self(fresh), has_shelf)
    }

    /// The sessions of which something waits, as far as the page is about them, whatever its limit.
    pub(super) fn sessions(&self, page: SessionPage) -> BTreeSet<SessionId> {
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let wanted = |piece: &&Arc<Piece>| piece.session < before && (!page.refused || piece.cover.refused > 0);
        self.0.iter().filter(wanted).map(|piece| piece.session).collect()
    }

    /// The piece in which a message came.
    pub(super) fn place_of(&self, mailbox: &MailboxName, id: MessageId) -> Option<(SessionId, u32)> {
        let has = |piece: &&Arc<Piece>| {
            let messages = piece.transaction.iter().flat_map(|mail| &mail.messages);
            messages.into_iter().any(|(name, number)| *number == id && name == mailbox)
        };
        self.0.iter().find(has).map(|piece| (piece.session, piece.number))
    }

    /// A session as it is told: this part of what is written of it, and of what waits.
    pub(super) fn told(&self, session: SessionId, part: Part, written: Option<Transcript>) -> Option<Transcript> {
        let (mut cover, mut pieces) = (None, BTreeMap::new());
        if let Some(written) = written {
            cover = Some(written.cover);
            pieces.extend(written.pieces.into_iter().map(|piece| (piece.number, piece)));
        }
        for piece in self.0.iter().filter(|piece| piece.session == session) {
            cover = Some(piece.cover.clone());
            if part.includes(piece.number) {
                pieces.insert(piece.number, piece.clone());
            }
        }
        if let Part::Listed = part {
            while pieces.len() > MAX_LISTED_PIECES {
                pieces.pop_first();
            }
        }
        let pieces: Vec<Arc<Piece>> = pieces.into_values().collect();
        cover.filter(|_| !pieces.is_empty()).map(|cover| Transcript { session, cover, pieces })
    }
}

impl Part {
    pub(super) fn includes(self, number: u32) -> bool {
        match self {
            Self::Listed | Self::Whole => true,
            Self::Piece(wanted) => number == 0 || number == wanted,
        }
    }
}
