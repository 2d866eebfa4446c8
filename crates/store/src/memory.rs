//! The memory store: all messages are in memory and are lost when the process ends. Its size is limited in bytes.
//!
//! One lock protects everything and is held for microseconds: bodies are shared, never copied, and removed messages are
//! freed after the lock is released. One counter assigns the ids of the whole store. Expiry and the size limit walk the
//! messages of all mailboxes by age, and cost what they remove. Mailboxes are found by a hash of their name; only the
//! first and the last message of a mailbox change the ordered set of names.

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

    /// Locks the state. A panic in another task does not poison it, because no change of [`State`] can panic half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        let mut shelves = self.lock();
        let stored = shelves.add(message);
        let mut gone = Vec::new();
        for summary in &stored {
            shelves.enforce_cap(&summary.mailbox, self.limits.messages_per_mailbox, &mut gone);
        }
        shelves.enforce_size_limit(self.limits.bytes, &mut gone);
        drop(shelves);
        Ok(Appended { stored, evicted: into_summaries(gone) })
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        Ok(self.lock().mailboxes.get(mailbox).map_or(Version(0), |held| held.version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let shelves = self.lock();
        let Some(held) = shelves.mailboxes.get(mailbox) else { return Ok(Listing::default()) };
        Ok(Listing { version: held.version, messages: held.page(mailbox, page) })
    }

    async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>> {
        let shelves = self.lock();
        let Some(held) = shelves.mailboxes.get(mailbox) else { return Ok(None) };
        let found = match which {
            MessageSelector::Id(id) => held.copies.get_key_value(&id),
            MessageSelector::Latest => held.copies.last_key_value(),
        };
        Ok(found.map(|(id, copy)| copy.summary(mailbox, *id)))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let shelves = self.lock();
        let copy = shelves.mailboxes.get(mailbox).and_then(|held| held.copies.get(&id));
        Ok(copy.map(|copy| Source { trace: Bytes::copy_from_slice(&copy.trace), body: copy.body.bytes.clone() }))
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        let mut shelves = self.lock();
        let version = shelves.next_version();
        let Some(held) = shelves.mailboxes.get_mut(mailbox) else { return Ok(false) };
        let Some(copy) = held.copies.get_mut(&id) else { return Ok(false) };
        if copy.seen != seen {
            copy.seen = seen;
            held.version = version;
            if seen {
                held.unseen -= 1;
            } else {
                held.unseen += 1;
            }
        }
        Ok(true)
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        let removed = self.lock().remove(mailbox, id);
        Ok(removed.map(|gone| gone.summary))
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
        let shelves = self.lock();
        let from = shelves.names.range::<str, _>((Bound::Included(page.start()), Bound::Unbounded));
        let behind = from.filter(|name| name.as_str() != page.after);
        let names = behind.take_while(|name| name.as_str().starts_with(&page.prefix)).take(page.limit);
        Ok(names.filter_map(|name| shelves.mailboxes.get(name)?.state(name)).collect())
    }

    async fn last_id(&self) -> Result<MessageId> {
        Ok(self.lock().last_id)
    }

    async fn usage(&self) -> Result<Usage> {
        let shelves = self.lock();
        Ok(Usage {
            messages: shelves.by_age.len() as u64,
            mailboxes: shelves.mailboxes.len() as u64,
            bytes: shelves.bytes,
        })
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
        let farthest = if nanosecond < 0 { i64::MIN } else { i64::MAX };
        Self(i64::try_from(nanosecond).unwrap_or(farthest), id)
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
            let held = match self.mailboxes.entry(mailbox) {
                Entry::Occupied(held) => held.into_mut(),
                Entry::Vacant(free) => {
                    self.names.insert(free.key().clone());
                    free.insert(Mailbox::default())
                }
            };
            held.version = version;
            held.unseen += 1;
            held.bytes += copy.size();
            held.copies.insert(self.last_id, copy);
        }
        stored
    }

    /// Removes the first messages of a mailbox until at most `cap` are left.
    fn enforce_cap(&mut self, mailbox: &MailboxName, cap: usize, gone: &mut Vec<RemovedCopy>) {
        let held = self.mailboxes.get(mailbox).map_or(0, |held| held.copies.len());
        let excess = if cap == 0 { 0 } else { held.saturating_sub(cap) };
        for _ in 0..excess {
            let first = self.mailboxes.get(mailbox).and_then(|held| held.copies.first_key_value());
            let Some((&id, _)) = first else { return };
            gone.extend(self.remove(mailbox, id));
        }
    }

    /// Removes the oldest messages of all mailboxes until at most `bytes` are left.
    fn enforce_size_limit(&mut self, bytes: u64, gone: &mut Vec<RemovedCopy>) {
        while bytes > 0 && self.bytes > bytes {
            let Some((&Age(_, oldest), mailbox)) = self.by_age.first_key_value() else { return };
            gone.extend(self.remove(&mailbox.clone(), oldest));
        }
    }

    fn remove_older(&mut self, deadline: Timestamp, limit: usize) -> Vec<RemovedCopy> {
        let deadline = Age::new(deadline, MessageId::ZERO);
        let mut gone = Vec::new();
        while gone.len() < limit {
            let Some((oldest, mailbox)) = self.by_age.first_key_value() else { break };
            if *oldest >= deadline {
                break;
            }
            gone.extend(self.remove(&mailbox.clone(), oldest.1));
        }
        gone
    }

    fn remove(&mut self, mailbox: &MailboxName, id: MessageId) -> Option<RemovedCopy> {
        let version = self.next_version();
        let held = self.mailboxes.get_mut(mailbox)?;
        let copy = held.copies.remove(&id)?;
        held.version = version;
        held.unseen -= u64::from(!copy.seen);
        held.bytes -= copy.size();
        if held.copies.is_empty() {
            self.mailboxes.remove(mailbox);
            self.names.remove(mailbox);
        }
        Some(self.finish_removal(mailbox, id, copy))
    }

    fn remove_first(&mut self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Vec<RemovedCopy> {
        let held = self.mailboxes.get(mailbox);
        let first = held.into_iter().flat_map(|held| held.copies.range(..=last).take(limit));
        let ids: Vec<MessageId> = first.map(|(id, _)| *id).collect();
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
fn into_summaries(gone: Vec<RemovedCopy>) -> Vec<Summary> {
    gone.into_iter().map(|gone| gone.summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn passes_the_conformance_suite() {
        conformance::run(|limits| async move { MemoryStore::new(limits) }).await;
    }

    #[tokio::test]
    async fn forgets_a_mailbox_that_became_empty() {
        let store = MemoryStore::new(Limits::default());
        let stored = store.append(conformance::message(1, &["a", "b"], b"body")).await.unwrap().stored;
        for summary in &stored {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
        let shelves = store.lock();
        assert!(shelves.mailboxes.is_empty() && shelves.names.is_empty() && shelves.by_age.is_empty());
        assert_eq!(shelves.bytes, 0);
    }
}
