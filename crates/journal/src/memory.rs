//! The memory journal: everything is in memory and is lost when the process ends. One lock protects everything and is
//! held for microseconds.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
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
}

#[async_trait]
impl Journal for MemoryJournal {
    fn start_session(&self, now: Timestamp) -> SessionId {
        self.session_ids.next(now)
    }

    fn append(&self, mut chunk: Chunk) {
        chunk.lines.shrink();
        let chunk = Arc::new(chunk);
        // Evicted chunks are freed after the lock is released.
        let mut evicted = Vec::new();
        let mut state = self.state.lock();
        state.add(chunk);
        while state.bytes > self.max_bytes {
            let Some(oldest) = state.remove_oldest() else { break };
            evicted.push(oldest);
        }
        drop(state);
    }

    fn expire_before(&self, deadline: Timestamp) {
        // Expired chunks are freed after the lock is released.
        let mut expired = Vec::new();
        let mut state = self.state.lock();
        while state.oldest().is_some_and(|chunk| chunk.at < deadline) {
            expired.extend(state.remove_oldest());
        }
        drop(state);
    }

    async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let state = self.state.lock();
        let before = page.before.unwrap_or(SessionId(u64::MAX));
        let ids: Vec<SessionId> = if page.refused_only {
            state.refused.range(..before).rev().take(page.limit).copied().collect()
        } else {
            state.sessions.range(..before).rev().take(page.limit).map(|(id, _)| *id).collect()
        };
        Ok(ids.into_iter().filter_map(|id| state.transcript(id, MAX_LISTED_CHUNKS)).collect())
    }

    async fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        Ok(self.state.lock().transcript(id, usize::MAX))
    }

    async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let state = self.state.lock();
        let location = state.messages.get(&MessageKey(id, mailbox.clone()));
        Ok(location.and_then(|&(session, number)| state.excerpt(session, number)))
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
    fn add(&mut self, chunk: Arc<Chunk>) {
        self.bytes += chunk.bytes();
        self.order.push_back(chunk.session);
        if chunk.info.refusals > 0 {
            self.refused.insert(chunk.session);
        }
        for (mailbox, id) in chunk.transaction.iter().flat_map(|transaction| &transaction.messages) {
            self.messages.insert(MessageKey(*id, mailbox.clone()), (chunk.session, chunk.number));
        }
        let info = chunk.info.clone();
        let stored = self.sessions.entry(chunk.session);
        let stored = stored.or_insert_with(|| StoredSession { info: info.clone(), chunks: VecDeque::with_capacity(3) });
        stored.info = info;
        stored.chunks.push_back(chunk);
    }

    fn oldest(&self) -> Option<&Arc<Chunk>> {
        self.sessions.get(self.order.front()?)?.chunks.front()
    }

    fn remove_oldest(&mut self) -> Option<Arc<Chunk>> {
        let session = self.order.pop_front()?;
        let stored = self.sessions.get_mut(&session)?;
        let chunk = stored.chunks.pop_front()?;
        if stored.chunks.is_empty() {
            self.sessions.remove(&session);
            self.refused.remove(&session);
        }
        for (mailbox, id) in chunk.transaction.iter().flat_map(|transaction| &transaction.messages) {
            self.messages.remove(&MessageKey(*id, mailbox.clone()));
        }
        self.bytes -= chunk.bytes();
        Some(chunk)
    }

    /// Returns a session with its last chunks.
    fn transcript(&self, session: SessionId, max_chunks: usize) -> Option<Transcript> {
        let stored = self.sessions.get(&session)?;
        let first = stored.chunks.len().saturating_sub(max_chunks);
        let chunks = stored.chunks.range(first..).cloned().collect();
        Some(Transcript { session, info: stored.info.clone(), chunks })
    }

    /// Returns a session with its first chunk and one other.
    fn excerpt(&self, session: SessionId, number: u32) -> Option<Transcript> {
        let stored = self.sessions.get(&session)?;
        let location = stored.chunks.binary_search_by_key(&number, |chunk| chunk.number).ok()?;
        let first = stored.chunks.front().filter(|chunk| chunk.number == 0 && number > 0);
        let chunks = first.into_iter().chain(stored.chunks.get(location)).cloned().collect();
        Some(Transcript { session, info: stored.info.clone(), chunks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance;

    #[tokio::test]
    async fn passes_conformance_suite() {
        conformance::run(async |max_bytes| MemoryJournal::new(max_bytes)).await;
    }

    #[tokio::test]
    async fn expired_chunks_free_all_memory() {
        let journal = MemoryJournal::new(10_000);
        for session in 1..1000 {
            journal.append(conformance::mail_chunk(session, 1, "bob", session));
        }
        journal.expire_before(Timestamp::MAX);
        let state = journal.state.lock();
        assert_eq!((state.bytes, state.order.len(), state.sessions.len()), (0, 0, 0));
        assert_eq!((state.messages.len(), state.refused.len()), (0, 0));
    }
}
