//! The journal that many nodes share: it is in the database in which their mail is, and each of them tells what was said to any.
//!
//! What was noted waits in memory until a thread has written it, as with the journal on disk; this node tells of it at once, the
//! others as soon as it is written, within a second if nothing is wrong. While the database is away it goes on waiting, as far as
//! there is room. The bound is one for all nodes, and lets the pieces go that were written first.

mod ledger;
mod read;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::Result;
use restante_store::postgres::{Database, PostgresStore};

use self::ledger::Ledger;
use super::fresh::{Fresh, Part};
use super::waiting::{ShelfState, Waiting};
use super::writer::Writing;
use super::{Journal, Numbers, Piece, SessionId, SessionPage, Transcript};

/// So many numbers there are for nodes, with the one of those that have none yet: as `journal.sql` says.
const NODES: u64 = 64;

/// A [`Journal`] in a PostgreSQL database.
pub struct PostgresJournal {
    database: Arc<Database>,
    numbers: Arc<Numbers>,
    waiting: Arc<Waiting>,
    _writing: Writing<Ledger>,
}

impl PostgresJournal {
    /// Opens the journal in the database of a store. All nodes together keep at most `max_bytes`. The journal is written through
    /// a connection of its own. Fails if the thread for that cannot be started.
    pub fn open(store: &PostgresStore, max_bytes: usize) -> io::Result<Self> {
        let database = store.database().clone();
        let (waiting, numbers) = (Arc::new(Waiting::new(max_bytes)), Arc::new(Numbers::of_nodes(NODES)));
        // Whoever asks need not wait for the thread.
        waiting.set_shelf(ShelfState::Open);
        let (apart, ours) = (database.with_own_connection().map_err(io::Error::other)?, numbers.clone());
        let thread = Writing::start(waiting.clone(), move || Ledger::open(apart, ours))?;
        Ok(Self { database, numbers, waiting, _writing: thread })
    }

    /// What is told of one session.
    async fn told(&self, fresh: &Fresh, is_written: bool, id: SessionId, part: Part) -> Result<Option<Transcript>> {
        let mut written = if is_written { read::pieces(&self.database, &[id], part).await? } else { HashMap::new() };
        Ok(fresh.told(id, part, written.remove(&id)))
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    fn begin(&self, now: Timestamp) -> SessionId {
        self.numbers.next(now)
    }

    fn note(&self, mut piece: Piece) {
        piece.lines.shrink();
        self.waiting.add(piece);
    }

    fn forget_before(&self, deadline: Timestamp) {
        self.waiting.forget_before(deadline);
    }

    async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let (fresh, is_written) = Fresh::look(&self.waiting);
        let mut ids = fresh.sessions(page);
        if is_written {
            ids.extend(read::sessions(&self.database, page).await?);
        }
        let ids: Vec<SessionId> = ids.into_iter().rev().take(page.limit).collect();
        let mut written =
            if is_written { read::pieces(&self.database, &ids, Part::Listed).await? } else { HashMap::new() };
        Ok(ids.into_iter().filter_map(|id| fresh.told(id, Part::Listed, written.remove(&id))).collect())
    }

    async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        let (fresh, is_written) = Fresh::look(&self.waiting);
        self.told(&fresh, is_written, id, Part::Whole).await
    }

    async fn of_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let (fresh, is_written) = Fresh::look(&self.waiting);
        let mut place = fresh.place_of(mailbox, id);
        if place.is_none() && is_written {
            place = read::place_of(&self.database, mailbox, id).await?;
        }
        let Some((session, number)) = place else { return Ok(None) };
        self.told(&fresh, is_written, session, Part::Piece(number)).await
    }
}
