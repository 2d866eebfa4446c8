//! The memory journal: everything is in memory and is lost when the process ends. One lock protects everything and is
//! held for microseconds.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::Result;

use super::{Chunk, Journal, MAX_LISTED_CHUNKS, SessionId, SessionIdGenerator, SessionInfo, SessionPage, Transcript};

/// A [`Journal`] in memory.
#[derive(Debug)]
pub struct MemoryJournal {
    max_bytes: usize,
    session_ids: SessionIdGenerator,
    state: Mutex<State>,
}

impl MemoryJournal {
    /// Creates an empty journal with a size limit.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, session_ids: SessionIdGenerator::default(), state: Mutex::default() }
    }

    /// Locks the state. A panic in another task does not poison it, because no change of [`State`] can panic half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn start_session(&self, now: Timestamp) -> SessionId {
        self.session_ids.next(now)
    }

    fn append(&self, mut piece: Chunk) {
        piece.lines.shrink();
        let piece = Arc::new(piece);
        // Evicted chunks are freed after the lock is released.
        let mut gone = Vec::new();
        let mut book = self.lock();
        book.add(piece);
        while book.bytes > self.max_bytes {
            let Some(oldest) = book.remove_oldest() else { break };
            gone.push(oldest);
        }
        drop(book);
    }

    fn expire_before(&self, deadline: Timestamp) {
        let mut gone = Vec::new();
        let mut book = self.lock();
        while book.oldest().is_some_and(|piece| piece.at < deadline) {
            gone.extend(book.remove_oldest());
        }
        drop(book);
    }

    async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let book = self.lock();
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let ids: Vec<SessionId> = if page.refused_only {
            book.refused.range(..before).rev().take(page.limit).copied().collect()
        } else {
            book.sessions.range(..before).rev().take(page.limit).map(|(id, _)| *id).collect()
        };
        Ok(ids.into_iter().filter_map(|id| book.transcript(id, MAX_LISTED_CHUNKS)).collect())
    }

    async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        Ok(self.lock().transcript(id, usize::MAX))
    }

    async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let book = self.lock();
        let place = book.messages.get(&MessageKey(id, mailbox.clone()));
        Ok(place.and_then(|&(session, number)| book.excerpt(session, number)))
    }
}

/// The data that the lock protects.
#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<SessionId, StoredSession>,
    /// The sessions in which something was refused.
    refused: BTreeSet<SessionId>,
    /// The chunk that received a message.
    messages: HashMap<MessageKey, (SessionId, u32)>,
    /// One entry per chunk, in the order in which they were appended. The first chunk of the first session here is
    /// evicted next.
    order: VecDeque<SessionId>,
    bytes: usize,
}

/// The key of a message. Only the id is hashed, because two messages rarely have the same one.
#[derive(Debug, PartialEq, Eq)]
struct MessageKey(MessageId, MailboxName);

impl Hash for MessageKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// What is left of a session.
#[derive(Debug)]
struct StoredSession {
    info: Arc<SessionInfo>,
    chunks: VecDeque<Arc<Chunk>>,
}

impl State {
    fn add(&mut self, piece: Arc<Chunk>) {
        self.bytes += piece.bytes();
        self.order.push_back(piece.session);
        if piece.info.refusals > 0 {
            self.refused.insert(piece.session);
        }
        for (mailbox, id) in piece.transaction.iter().flat_map(|mail| &mail.messages) {
            self.messages.insert(MessageKey(*id, mailbox.clone()), (piece.session, piece.number));
        }
        let cover = piece.info.clone();
        let held = self.sessions.entry(piece.session);
        let held = held.or_insert_with(|| StoredSession { info: cover.clone(), chunks: VecDeque::with_capacity(3) });
        held.info = cover;
        held.chunks.push_back(piece);
    }

    fn oldest(&self) -> Option<&Arc<Chunk>> {
        self.sessions.get(self.order.front()?)?.chunks.front()
    }

    fn remove_oldest(&mut self) -> Option<Arc<Chunk>> {
        let session = self.order.pop_front()?;
        let held = self.sessions.get_mut(&session)?;
        let piece = held.chunks.pop_front()?;
        if held.chunks.is_empty() {
            self.sessions.remove(&session);
            self.refused.remove(&session);
        }
        for (mailbox, id) in piece.transaction.iter().flat_map(|mail| &mail.messages) {
            self.messages.remove(&MessageKey(*id, mailbox.clone()));
        }
        self.bytes -= piece.bytes();
        Some(piece)
    }

    /// Returns a session with its last chunks.
    fn transcript(&self, session: SessionId, most: usize) -> Option<Transcript> {
        let held = self.sessions.get(&session)?;
        let first = held.chunks.len().saturating_sub(most);
        let pieces = held.chunks.range(first..).cloned().collect();
        Some(Transcript { session, info: held.info.clone(), chunks: pieces })
    }

    /// Returns a session with its first chunk and one other.
    fn excerpt(&self, session: SessionId, number: u32) -> Option<Transcript> {
        let held = self.sessions.get(&session)?;
        let place = held.chunks.binary_search_by_key(&number, |piece| piece.number).ok()?;
        let opening = held.chunks.front().filter(|piece| piece.number == 0 && number > 0);
        let pieces = opening.into_iter().chain(held.chunks.get(place)).cloned().collect();
        Some(Transcript { session, info: held.info.clone(), chunks: pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[tokio::test]
    async fn it_is_a_journal() {
        conformance::run(async |max_bytes| MemoryJournal::new(max_bytes)).await;
    }

    #[tokio::test]
    async fn what_has_gone_leaves_no_trace() {
        let journal = MemoryJournal::new(10_000);
        for session in 1..1000 {
            journal.append(conformance::mail_chunk(session, 1, "bob", session));
        }
        journal.expire_before(Timestamp::MAX);
        let book = journal.lock();
        assert_eq!((book.bytes, book.order.len(), book.sessions.len()), (0, 0, 0));
        assert_eq!((book.messages.len(), book.refused.len()), (0, 0));
    }
}
