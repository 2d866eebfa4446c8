//! The memory store: all messages are in memory and are lost when the process ends. Its size is limited in bytes.
//!
//! One lock protects everything and is held for microseconds: bodies are shared, never copied, and removed messages are
//! freed after the lock is released. One counter assigns the ids of the whole store. Expiry and the size limit visit the
//! messages of all mailboxes by age; their cost depends only on the number of removed messages. Mailboxes are found by a
//! hash of their name. The ordered set of names changes only when a mailbox gets its first message or loses its last.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Headline, MessageId, Source, Summary};
use restante_mail::naming::MailboxName;

use crate::{
    Appended, Limits, Listing, MailboxPage, MailboxState, MessageSelector, NewCopy, NewMessage, Newest, Page, Result,
    Store, Usage, Version,
};

/// A [`Store`] in memory.
#[derive(Debug)]
pub struct MemoryStore {
    limits: Limits,
    state: Mutex<State>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Locks the state. Poisoning is ignored, because no change of [`State`] can panic half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        let mut state = self.lock();
        let stored = state.add(message);
        let mut removed = Vec::new();
        for summary in &stored {
            state.enforce_cap(&summary.mailbox, self.limits.messages_per_mailbox, &mut removed);
        }
        state.enforce_size_limit(self.limits.bytes, &mut removed);
        drop(state);
        Ok(Appended { stored, evicted: into_summaries(removed) })
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        Ok(self.lock().mailboxes.get(mailbox).map_or(Version(0), |contents| contents.version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let state = self.lock();
        let Some(contents) = state.mailboxes.get(mailbox) else { return Ok(Listing::default()) };
        Ok(Listing { version: contents.version, messages: contents.page(mailbox, page) })
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        let state = self.lock();
        let Some(contents) = state.mailboxes.get(mailbox) else { return Ok(None) };
        let found = match selector {
            MessageSelector::Id(id) => contents.copies.get_key_value(&id),
            MessageSelector::Latest => contents.copies.last_key_value(),
        };
        Ok(found.map(|(id, copy)| copy.summary(mailbox, *id)))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let state = self.lock();
        let copy = state.mailboxes.get(mailbox).and_then(|contents| contents.copies.get(&id));
        Ok(copy.map(|copy| Source { trace: Bytes::copy_from_slice(&copy.trace), body: copy.body.bytes.clone() }))
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        let mut state = self.lock();
        let version = state.next_version();
        let Some(contents) = state.mailboxes.get_mut(mailbox) else { return Ok(false) };
        let Some(copy) = contents.copies.get_mut(&id) else { return Ok(false) };
        if copy.seen != seen {
            copy.seen = seen;
            contents.version = version;
            if seen {
                contents.unseen -= 1;
            } else {
                contents.unseen += 1;
            }
        }
        Ok(true)
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        let removed = self.lock().remove(mailbox, id);
        Ok(removed.map(|removed| removed.summary))
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        let removed = self.lock().remove_first(mailbox, last, limit);
        Ok(into_summaries(removed))
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let removed = self.lock().remove_older(deadline, limit);
        Ok(into_summaries(removed))
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        let state = self.lock();
        let from = state.names.range::<str, _>((Bound::Included(page.start()), Bound::Unbounded));
        let following = from.filter(|name| name.as_str() != page.after);
        let names = following.take_while(|name| name.as_str().starts_with(&page.prefix)).take(page.limit);
        Ok(names.filter_map(|name| state.mailboxes.get(name)?.state(name)).collect())
    }

    async fn last_id(&self) -> Result<MessageId> {
        Ok(self.lock().last_id)
    }

    async fn usage(&self) -> Result<Usage> {
        let state = self.lock();
        Ok(Usage { messages: state.by_age.len() as u64, mailboxes: state.mailboxes.len() as u64, bytes: state.bytes })
    }
}

/// The data that the lock protects.
#[derive(Debug, Default)]
struct State {
    /// Mailboxes that are not empty.
    mailboxes: HashMap<MailboxName, Mailbox>,
    /// Their names in order. Sorting them for every query would hold the lock for too long.
    names: BTreeSet<MailboxName>,
    /// All copies by age.
    by_age: BTreeMap<Age, MailboxName>,
    /// The last assigned id.
    last_id: MessageId,
    /// The last assigned version.
    last_version: u64,
    /// The bytes of traces, and of bodies, each counted once.
    bytes: u64,
}

/// The order of copies by age: the time of receipt, then the id. The id alone would suffice if clocks were never set
/// back.
///
/// The time is in Unix nanoseconds, half the size of a [`Timestamp`]. All times after the year 2262 are equal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Age(i64, MessageId);

#[derive(Debug, Default)]
struct Mailbox {
    version: Version,
    /// Copies that are not marked as read.
    unseen: u64,
    /// The sum of the sizes of all copies.
    bytes: u64,
    /// Boxed, because the nodes of the tree are half empty if ids only ascend.
    copies: BTreeMap<MessageId, Box<StoredCopy>>,
}

/// A message in one mailbox, without its mailbox and id, which are the keys.
#[derive(Debug)]
struct StoredCopy {
    headline: Headline,
    received: Timestamp,
    seen: bool,
    trace: Box<[u8]>,
    body: Body,
}

/// A removed copy: its summary for the caller, and the copy itself, which is freed after the lock is released.
struct RemovedCopy {
    summary: Summary,
    _copy: Box<StoredCopy>,
}

/// The part of a message that its copies share.
#[derive(Clone, Debug)]
struct Body {
    bytes: Bytes,
    /// Held by every copy if there is more than one. When the last one is removed, the bytes are freed.
    references: Option<Arc<()>>,
}

impl Body {
    /// Releases this copy's reference. Returns true if it was the last one.
    fn release(&mut self) -> bool {
        self.references.take().is_none_or(|copies| Arc::into_inner(copies).is_some())
    }
}

impl Age {
    fn new(received: Timestamp, id: MessageId) -> Self {
        let nanosecond = received.as_nanosecond();
        let limit = if nanosecond < 0 { i64::MIN } else { i64::MAX };
        Self(i64::try_from(nanosecond).unwrap_or(limit), id)
    }
}

impl StoredCopy {
    fn summary(&self, mailbox: &MailboxName, id: MessageId) -> Summary {
        Summary {
            mailbox: mailbox.clone(),
            id,
            headline: self.headline.clone(),
            received: self.received,
            size: self.size(),
            seen: self.seen,
        }
    }

    fn size(&self) -> u64 {
        (self.trace.len() + self.body.bytes.len()) as u64
    }
}

impl State {
    fn next_version(&mut self) -> Version {
        self.last_version += 1;
        Version(self.last_version)
    }

    fn add(&mut self, message: NewMessage) -> Vec<Summary> {
        let NewMessage { received, headline, body: bytes, copies } = message;
        self.bytes += bytes.len() as u64;
        let body = Body { bytes, references: (copies.len() > 1).then(Arc::default) };
        let version = self.next_version();
        let mut stored = Vec::with_capacity(copies.len());
        for NewCopy { mailbox, trace } in copies {
            self.last_id = MessageId::next_after(self.last_id, received);
            self.bytes += trace.len() as u64;
            let (headline, trace, body) = (headline.clone(), trace.as_ref().into(), body.clone());
            let copy = Box::new(StoredCopy { headline, received, seen: false, trace, body });
            stored.push(copy.summary(&mailbox, self.last_id));
            self.by_age.insert(Age::new(received, self.last_id), mailbox.clone());
            let contents = match self.mailboxes.entry(mailbox) {
                Entry::Occupied(occupied) => occupied.into_mut(),
                Entry::Vacant(vacant) => {
                    self.names.insert(vacant.key().clone());
                    vacant.insert(Mailbox::default())
                }
            };
            contents.version = version;
            contents.unseen += 1;
            contents.bytes += copy.size();
            contents.copies.insert(self.last_id, copy);
        }
        stored
    }

    /// Removes the first messages of a mailbox until at most `cap` are left.
    fn enforce_cap(&mut self, mailbox: &MailboxName, cap: usize, removed: &mut Vec<RemovedCopy>) {
        let count = self.mailboxes.get(mailbox).map_or(0, |contents| contents.copies.len());
        let excess = if cap == 0 { 0 } else { count.saturating_sub(cap) };
        for _ in 0..excess {
            let lowest = self.mailboxes.get(mailbox).and_then(|contents| contents.copies.first_key_value());
            let Some((&id, _)) = lowest else { return };
            removed.extend(self.remove(mailbox, id));
        }
    }

    /// Removes the oldest messages of all mailboxes until at most `bytes` are left.
    fn enforce_size_limit(&mut self, bytes: u64, removed: &mut Vec<RemovedCopy>) {
        while bytes > 0 && self.bytes > bytes {
            let Some((&Age(_, oldest), mailbox)) = self.by_age.first_key_value() else { return };
            removed.extend(self.remove(&mailbox.clone(), oldest));
        }
    }

    fn remove_older(&mut self, deadline: Timestamp, limit: usize) -> Vec<RemovedCopy> {
        let deadline = Age::new(deadline, MessageId::ZERO);
        let mut removed = Vec::new();
        while removed.len() < limit {
            let Some((oldest, mailbox)) = self.by_age.first_key_value() else { break };
            if *oldest >= deadline {
                break;
            }
            removed.extend(self.remove(&mailbox.clone(), oldest.1));
        }
        removed
    }

    fn remove(&mut self, mailbox: &MailboxName, id: MessageId) -> Option<RemovedCopy> {
        let version = self.next_version();
        let contents = self.mailboxes.get_mut(mailbox)?;
        let copy = contents.copies.remove(&id)?;
        contents.version = version;
        contents.unseen -= u64::from(!copy.seen);
        contents.bytes -= copy.size();
        if contents.copies.is_empty() {
            self.mailboxes.remove(mailbox);
            self.names.remove(mailbox);
        }
        Some(self.finish_removal(mailbox, id, copy))
    }

    fn remove_first(&mut self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Vec<RemovedCopy> {
        let contents = self.mailboxes.get(mailbox);
        let lowest = contents.into_iter().flat_map(|contents| contents.copies.range(..=last).take(limit));
        let ids: Vec<MessageId> = lowest.map(|(id, _)| *id).collect();
        ids.into_iter().filter_map(|id| self.remove(mailbox, id)).collect()
    }

    /// Updates the totals for a copy that was removed from its mailbox.
    fn finish_removal(&mut self, mailbox: &MailboxName, id: MessageId, mut copy: Box<StoredCopy>) -> RemovedCopy {
        self.by_age.remove(&Age::new(copy.received, id));
        self.bytes -= copy.trace.len() as u64;
        if copy.body.release() {
            self.bytes -= copy.body.bytes.len() as u64;
        }
        RemovedCopy { summary: copy.summary(mailbox, id), _copy: copy }
    }
}

impl Mailbox {
    /// Returns the contents as numbers. `None` if the mailbox is empty.
    fn state(&self, name: &MailboxName) -> Option<MailboxState> {
        let (&id, copy) = self.copies.last_key_value()?;
        Some(MailboxState {
            name: name.clone(),
            messages: self.copies.len() as u64,
            unseen: self.unseen,
            bytes: self.bytes,
            newest: Newest { id, received: copy.received },
        })
    }

    fn page(&self, name: &MailboxName, page: Page) -> Vec<Summary> {
        let after = page.after.map_or(Bound::Unbounded, Bound::Excluded);
        let before = page.before.map_or(Bound::Unbounded, Bound::Excluded);
        if let (Some(after), Some(before)) = (page.after, page.before)
            && after >= before
        {
            return Vec::new();
        }
        let matching = self.copies.range((after, before)).map(|(id, copy)| copy.summary(name, *id));
        match (page.limit, page.after) {
            (None, _) => matching.collect(),
            (Some(limit), Some(_)) => matching.take(limit).collect(),
            (Some(limit), None) => {
                let mut last: Vec<_> = matching.rev().take(limit).collect();
                last.reverse();
                last
            }
        }
    }
}

/// Frees the copies and returns their summaries. Called after the lock is released.
fn into_summaries(removed: Vec<RemovedCopy>) -> Vec<Summary> {
    removed.into_iter().map(|removed| removed.summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn passes_conformance_suite() {
        conformance::run(|limits| async move { MemoryStore::new(limits) }).await;
    }

    #[tokio::test]
    async fn removes_empty_mailbox() {
        let store = MemoryStore::new(Limits::default());
        let stored = store.append(conformance::message(1, &["a", "b"], b"body")).await.unwrap().stored;
        for summary in &stored {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
        let state = store.lock();
        assert!(state.mailboxes.is_empty() && state.names.is_empty() && state.by_age.is_empty());
        assert_eq!(state.bytes, 0);
    }
}
