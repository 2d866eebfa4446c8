//! The memory store: all messages are in memory and are lost when the process ends. Its size is limited in bytes.
//!
//! One lock protects everything and is held for microseconds: bodies are shared, never copied, and removed messages are
//! freed after the lock is released. One counter assigns the ids of the whole store, and one map contains all copies by
//! id, so the copies of a message are adjacent. Expiry and the size limit visit the copies by age; their cost depends only
//! on the number of removed copies. Mailboxes are found by a hash of their name. The ordered set of names changes only when
//! a mailbox gets its first message or loses its last.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::details::Details;
use restante_mail::message::{Headline, Marks, Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::tags::Tags;

use crate::overview::{Overview, TagCounter};
use crate::sql_values::time_to_nanos;
use crate::{
    Age, AgeRange, Appended, CopyKey, CopyUpdate, IndexEntry, Limits, Listing, MailboxIndex, MailboxLimits,
    MailboxPage, MailboxState, MessageListing, MessageSelector, NewCopy, NewMessage, Newest, Page, ProjectState,
    Result, Store, UpdateOutcome, Usage, Version,
};

/// A [`Store`] in memory.
#[derive(Debug)]
pub struct MemoryStore {
    limits: Limits,
    /// A random number, so that two stores have different ones even if they are created at the same time.
    uid_validity: u32,
    state: Mutex<State>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(limits: Limits) -> Self {
        // `RandomState` has new random keys each time.
        let uid_validity = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or_default().max(1);
        // An empty mailbox has the MODSEQ 1, and the first change another one.
        let state = State { last_version: 1, ..State::default() };
        Self { limits, uid_validity, state: Mutex::new(state) }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        let mut state = self.state.lock();
        let stored = state.add(message);
        let mut removed = Vec::new();
        for summary in &stored {
            state.enforce_mailbox_limits(&summary.mailbox, self.limits.of_mailbox(&summary.mailbox), &mut removed);
        }
        state.enforce_size_limit(self.limits.bytes, &mut removed);
        drop(state);
        Ok(Appended { stored, evicted: into_summaries(removed) })
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        Ok(self.state.lock().mailboxes.get(mailbox).map_or(Version(0), |contents| contents.version))
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let state = self.state.lock();
        let Some(contents) = state.mailboxes.get(mailbox) else { return Ok(Listing::default()) };
        let Some(range) = page_range(page) else {
            return Ok(Listing { version: contents.version, messages: Vec::new() });
        };
        let summary = |id: &MessageId| state.copies.get(id).map(|copy| copy.summary(*id));
        let mut ids = contents.ids.range(range);
        let messages = match (page.limit, page.after) {
            (None, _) => ids.filter_map(summary).collect(),
            (Some(limit), Some(_)) => ids.by_ref().take(limit).filter_map(summary).collect(),
            (Some(limit), None) => reversed(ids.rev().take(limit).filter_map(summary)),
        };
        Ok(Listing { version: contents.version, messages })
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        let state = self.state.lock();
        let id = match selector {
            MessageSelector::Id(id) => Some(id),
            MessageSelector::Latest => state.mailboxes.get(mailbox).and_then(|contents| contents.ids.last().copied()),
        };
        Ok(id.and_then(|id| Some(state.copy(mailbox, id)?.summary(id))))
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        let state = self.state.lock();
        let Some(copy) = state.copy(mailbox, id) else { return Ok(None) };
        Ok(Some(Source { trace: copy.trace(), body: copy.body.bytes.clone() }))
    }

    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        let state = self.state.lock();
        let version = Version(state.last_version);
        let page = Page { before: page.before.map(|before| state.message_at(before)), ..page };
        let Some(range) = page_range(page) else { return Ok(MessageListing { version, messages: Vec::new() }) };
        let copies = match project {
            Some(project) => {
                let ids = state.projects.get(project).into_iter().flat_map(|ids| ids.range(range));
                copies_of_page(ids.filter_map(|id| Some(state.copies.get(id)?.summary(*id))), page)
            }
            None => copies_of_page(state.copies.range(range).map(|(id, copy)| copy.summary(*id)), page),
        };
        Ok(MessageListing { version, messages: Message::group(copies) })
    }

    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        let state = self.state.lock();
        let message = match selector {
            MessageSelector::Id(id) => Some(id),
            MessageSelector::Latest => state.copies.last_key_value().map(|(id, copy)| copy.message(*id)),
        };
        let Some(message) = message else { return Ok(None) };
        let copies = state.copies.range(message..).map(|(id, copy)| copy.summary(*id));
        Ok(Message::group(copies.take_while(|copy| copy.message == message)).pop())
    }

    async fn store_version(&self) -> Result<Version> {
        Ok(Version(self.state.lock().last_version))
    }

    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        let state = self.state.lock();
        let last_number = |contents: Option<&Mailbox>| contents.map_or(state.highest_free_number, |it| it.last_number);
        let contents = state.mailboxes.get(mailbox);
        let next_number = last_number(contents).saturating_add(1);
        let Some(contents) = contents else {
            let highest_modseq = state.last_version.max(1);
            return Ok(MailboxIndex { next_number, highest_modseq, ..MailboxIndex::default() });
        };
        let ids = contents.ids.range((Bound::Excluded(after), Bound::Unbounded)).take(limit);
        let entry = |id: &MessageId| {
            let copy = state.copies.get(id)?;
            let (number, received, size) = (copy.number, copy.received, copy.size());
            Some(IndexEntry { id: *id, number, received, size, marks: copy.marks.clone() })
        };
        let (version, entries) = (contents.version, ids.filter_map(entry).collect());
        Ok(MailboxIndex { version, next_number, highest_modseq: version.0, entries })
    }

    async fn uid_validity(&self) -> Result<u32> {
        Ok(self.uid_validity)
    }

    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        let mut state = self.state.lock();
        Ok(updates.iter().map(|update| state.update(update)).collect())
    }

    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>> {
        let mut state = self.state.lock();
        let removed: Vec<_> = copies.iter().filter_map(|key| state.remove(&key.mailbox, key.id)).collect();
        drop(state);
        let mut removed = into_summaries(removed);
        removed.sort_unstable_by_key(|summary| summary.id);
        Ok(removed)
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        let removed = self.state.lock().remove_first(mailbox, last, limit);
        Ok(into_summaries(removed))
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let removed = self.state.lock().remove_older(deadline, limit);
        Ok(into_summaries(removed))
    }

    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
        let state = self.state.lock();
        let key = |age: Age| Bound::Excluded(AgeKey::new(age.received, age.id));
        let following = state.by_age.range((range.after.map_or(Bound::Unbounded, key), Bound::Unbounded));
        let end = range.before.map(|before| AgeKey::new(before, MessageId::ZERO));
        let oldest = following.take_while(|age| end.as_ref().is_none_or(|end| *age < end)).take(limit);
        Ok(oldest.filter_map(|AgeKey(_, id)| Some(state.copies.get(id)?.summary(*id))).collect())
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        let state = self.state.lock();
        let from = state.names.range::<str, _>((Bound::Included(page.start()), Bound::Unbounded));
        let following = from.filter(|name| name.as_str() != page.after);
        let names = following.take_while(|name| name.as_str().starts_with(&page.prefix)).take(page.limit);
        Ok(names.filter_map(|name| state.mailbox_state(name)).collect())
    }

    async fn last_id(&self) -> Result<MessageId> {
        Ok(self.state.lock().last_id)
    }

    async fn usage(&self) -> Result<Usage> {
        let state = self.state.lock();
        Ok(Usage {
            messages: state.messages,
            copies: state.copies.len() as u64,
            mailboxes: state.mailboxes.len() as u64,
            bytes: state.bytes,
        })
    }

    async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        let state = self.state.lock();
        let Some(project) = project else {
            return Ok(Overview { messages: state.messages, unread: state.unread, tags: state.tags.counts() });
        };
        let ids = state.projects.get(project).into_iter().flatten();
        let copies = ids.filter_map(|id| Some((*id, &**state.copies.get(id)?)));
        let copies: Vec<_> =
            copies.map(|(id, copy)| (copy.message(id), copy.marks.seen, copy.marks.tags.clone())).collect();
        drop(state);
        let (mut messages, mut unread, mut tags) = (0, 0, TagCounter::default());
        for message in copies.chunk_by(|(first, ..), (second, ..)| first == second) {
            messages += 1;
            unread += u64::from(message.iter().any(|(_, seen, _)| !seen));
            tags.add_message(message.iter().map(|(_, _, tags)| tags));
        }
        Ok(Overview { messages, unread, tags: tags.counts() })
    }

    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        let state = self.state.lock();
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let projects = state.projects.range((start, Bound::Unbounded)).take(limit);
        let project_state = |(name, ids): (&Project, &BTreeSet<MessageId>)| {
            let [start, end] = name.mailbox_range();
            let mailboxes = state.names.range::<str, _>((Bound::Included(&*start), Bound::Excluded(&*end)));
            let unseen = mailboxes.filter_map(|name| Some(state.mailboxes.get(name)?.unseen)).sum();
            ProjectState { name: name.clone(), copies: ids.len() as u64, unseen }
        };
        Ok(projects.map(project_state).collect())
    }
}

/// The data that the lock protects.
#[derive(Debug, Default)]
struct State {
    /// All copies. Boxed, because the nodes of the tree are half empty if ids only ascend.
    copies: BTreeMap<MessageId, Box<StoredCopy>>,
    /// All copies by age.
    by_age: BTreeSet<AgeKey>,
    /// Mailboxes that are not empty.
    mailboxes: HashMap<MailboxName, Mailbox>,
    /// Their names in order. Sorting them for every query would hold the lock for too long.
    names: BTreeSet<MailboxName>,
    /// The copies in mailboxes of projects. No project is without copies.
    projects: BTreeMap<Project, BTreeSet<MessageId>>,
    /// The last assigned id.
    last_id: MessageId,
    /// The last assigned version.
    last_version: u64,
    /// The number of messages.
    messages: u64,
    /// The number of messages with a copy that is not marked as read.
    unread: u64,
    /// The tags of all messages.
    tags: TagCounter,
    /// The bytes of traces, and of bodies, each counted once.
    bytes: u64,
    /// The highest number of a copy in the mailboxes that are empty now. A mailbox that gets its first message starts
    /// with the next number. So no mailbox has a number twice, although empty ones are not kept.
    highest_free_number: u32,
}

/// The order of copies by age: the time of receipt, then the id. The id alone would suffice if clocks were never set
/// back.
///
/// The time is in Unix nanoseconds, half the size of a [`Timestamp`]. All times after the year 2262 are equal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AgeKey(i64, MessageId);

#[derive(Debug, Default)]
struct Mailbox {
    version: Version,
    /// Copies that are not marked as read.
    unseen: u64,
    /// The sum of the sizes of all copies.
    bytes: u64,
    /// The number of the last copy.
    last_number: u32,
    /// The ids of the copies.
    ids: BTreeSet<MessageId>,
}

/// A message in one mailbox, without its id, which is the key.
#[derive(Debug)]
struct StoredCopy {
    mailbox: MailboxName,
    headline: Headline,
    details: Details,
    marks: Marks,
    received: Timestamp,
    number: u32,
    /// The difference between the id of the copy and that of the message.
    index: u32,
    /// `None` for the trace that [`Details::trace`] returns.
    trace: Option<Box<[u8]>>,
    trace_len: u32,
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

impl AgeKey {
    fn new(received: Timestamp, id: MessageId) -> Self {
        Self(time_to_nanos(received), id)
    }
}

impl StoredCopy {
    fn summary(&self, id: MessageId) -> Summary {
        Summary {
            mailbox: self.mailbox.clone(),
            id,
            message: self.message(id),
            number: self.number,
            headline: self.headline.clone(),
            received: self.received,
            size: self.size(),
            seen: self.marks.seen,
            flags: self.marks.flags,
            tags: self.marks.tags.clone(),
            modseq: self.marks.modseq,
            details: self.details.clone(),
        }
    }

    fn message(&self, id: MessageId) -> MessageId {
        MessageId::from(id.number() - u64::from(self.index))
    }

    fn size(&self) -> u64 {
        u64::from(self.trace_len) + self.body.bytes.len() as u64
    }

    fn trace(&self) -> Bytes {
        match &self.trace {
            Some(trace) => Bytes::copy_from_slice(trace),
            None => self.details.trace(&self.mailbox, self.received),
        }
    }
}

impl State {
    fn next_version(&mut self) -> Version {
        self.last_version += 1;
        Version(self.last_version)
    }

    fn copy(&self, mailbox: &MailboxName, id: MessageId) -> Option<&StoredCopy> {
        self.copies.get(&id).map(|copy| &**copy).filter(|copy| copy.mailbox == *mailbox)
    }

    /// Returns the id of the message that has copies below and above this id, or the id itself.
    fn message_at(&self, id: MessageId) -> MessageId {
        let next = self.copies.range(id..).next();
        next.map_or(id, |(next, copy)| copy.message(*next).min(id))
    }

    /// Returns the other copies of the message that has this copy.
    fn other_copies(&self, id: MessageId) -> impl Iterator<Item = &StoredCopy> {
        let copy = self.copies.get(&id).filter(|copy| copy.body.references.is_some());
        let message = copy.map(|copy| copy.message(id));
        let copies = message.into_iter().flat_map(|message| self.copies_from(message));
        copies.filter(move |(other, _)| *other != id).map(|(_, copy)| copy)
    }

    /// Returns the copies of a message.
    fn copies_from(&self, message: MessageId) -> impl Iterator<Item = (MessageId, &StoredCopy)> {
        let copies = self.copies.range(message..).map(|(id, copy)| (*id, &**copy));
        copies.take_while(move |(id, copy)| copy.message(*id) == message)
    }

    /// Counts a change of the tags of a copy. A tag that another copy of the message has is not counted again.
    fn count_tags(&mut self, id: MessageId, before: &Tags, after: &Tags) {
        if before == after {
            return;
        }
        let others: Vec<Tags> = self.other_copies(id).map(|copy| copy.marks.tags.clone()).collect();
        let is_only = |tag: &str| !others.iter().any(|other| other.contains(tag));
        before.iter().for_each(|tag| self.tags.remove_from_copy(tag, is_only(tag)));
        after.iter().for_each(|tag| self.tags.add(tag, is_only(tag).into(), 1));
    }

    fn update(&mut self, update: &CopyUpdate) -> UpdateOutcome {
        let CopyKey { mailbox, id } = &update.copy;
        let Some(before) = self.copy(mailbox, *id).map(|copy| copy.marks.clone()) else {
            return UpdateOutcome::Missing;
        };
        let mut marks = before.clone();
        let Some(changed) = update.apply(&mut marks, || self.last_version + 1) else { return UpdateOutcome::Conflict };
        if changed.is_empty() {
            return UpdateOutcome::Updated(marks, changed);
        }
        let version = self.next_version();
        if changed.seen && !self.other_copies(*id).any(|other| !other.marks.seen) {
            self.unread = if marks.seen { self.unread - 1 } else { self.unread + 1 };
        }
        self.count_tags(*id, &before.tags, &marks.tags);
        if let Some(contents) = self.mailboxes.get_mut(mailbox) {
            contents.version = version;
            contents.unseen = contents.unseen + u64::from(before.seen) - u64::from(marks.seen);
        }
        if let Some(copy) = self.copies.get_mut(id) {
            copy.marks = marks.clone();
        }
        UpdateOutcome::Updated(marks, changed)
    }

    fn add(&mut self, message: NewMessage) -> Vec<Summary> {
        let NewMessage { received, headline, body: bytes, copies } = message;
        self.messages += 1;
        self.unread += u64::from(copies.iter().any(|copy| !copy.seen));
        self.tags.add_message(copies.iter().map(|copy| &copy.tags));
        self.bytes += bytes.len() as u64;
        let body = Body { bytes, references: (copies.len() > 1).then(Arc::default) };
        let version = self.next_version();
        let mut stored = Vec::with_capacity(copies.len());
        for (index, copy) in (0..).zip(copies) {
            let trace_len = u32::try_from(copy.trace(received).len()).unwrap_or(u32::MAX);
            let NewCopy { mailbox, seen, flags, tags, details, trace } = copy;
            self.last_id = MessageId::next_after(self.last_id, received);
            self.bytes += u64::from(trace_len);
            self.by_age.insert(AgeKey::new(received, self.last_id));
            let contents = match self.mailboxes.entry(mailbox.clone()) {
                Entry::Occupied(occupied) => occupied.into_mut(),
                Entry::Vacant(vacant) => {
                    self.names.insert(vacant.key().clone());
                    vacant.insert(Mailbox { last_number: self.highest_free_number, ..Mailbox::default() })
                }
            };
            contents.last_number = contents.last_number.saturating_add(1);
            if let Some(project) = mailbox.project() {
                self.projects.entry(project).or_default().insert(self.last_id);
            }
            let copy = Box::new(StoredCopy {
                mailbox,
                headline: headline.clone(),
                details,
                marks: Marks { seen, flags, tags, modseq: version.0 },
                received,
                number: contents.last_number,
                index,
                trace: trace.map(|trace| trace.as_ref().into()),
                trace_len,
                body: body.clone(),
            });
            contents.version = version;
            contents.unseen += u64::from(!seen);
            contents.bytes += copy.size();
            contents.ids.insert(self.last_id);
            stored.push(copy.summary(self.last_id));
            self.copies.insert(self.last_id, copy);
        }
        stored
    }

    /// Removes the first messages of a mailbox until it is within its limits.
    fn enforce_mailbox_limits(&mut self, mailbox: &MailboxName, limits: MailboxLimits, removed: &mut Vec<RemovedCopy>) {
        let is_exceeded =
            |contents: &&Mailbox| contents.ids.len() as u64 > limits.messages || contents.bytes > limits.bytes;
        while let Some(contents) = self.mailboxes.get(mailbox).filter(is_exceeded) {
            let Some(&id) = contents.ids.first() else { return };
            removed.extend(self.remove(mailbox, id));
        }
    }

    /// Removes the oldest messages of all mailboxes until at most `bytes` are left.
    fn enforce_size_limit(&mut self, bytes: u64, removed: &mut Vec<RemovedCopy>) {
        while bytes > 0 && self.bytes > bytes {
            let Some(&AgeKey(_, oldest)) = self.by_age.first() else { return };
            removed.extend(self.remove_id(oldest));
        }
    }

    fn remove_older(&mut self, deadline: Timestamp, limit: usize) -> Vec<RemovedCopy> {
        let deadline = AgeKey::new(deadline, MessageId::ZERO);
        let mut removed = Vec::new();
        while removed.len() < limit {
            let Some(oldest) = self.by_age.first().filter(|oldest| **oldest < deadline) else { break };
            let id = oldest.1;
            removed.extend(self.remove_id(id));
        }
        removed
    }

    fn remove_first(&mut self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Vec<RemovedCopy> {
        let contents = self.mailboxes.get(mailbox);
        let lowest = contents.into_iter().flat_map(|contents| contents.ids.range(..=last).take(limit));
        let ids: Vec<MessageId> = lowest.copied().collect();
        ids.into_iter().filter_map(|id| self.remove(mailbox, id)).collect()
    }

    fn remove(&mut self, mailbox: &MailboxName, id: MessageId) -> Option<RemovedCopy> {
        self.copy(mailbox, id)?;
        self.remove_id(id)
    }

    fn remove_id(&mut self, id: MessageId) -> Option<RemovedCopy> {
        let version = self.next_version();
        let Marks { seen, tags, .. } = self.copies.get(&id)?.marks.clone();
        if !seen && !self.other_copies(id).any(|other| !other.marks.seen) {
            self.unread -= 1;
        }
        self.count_tags(id, &tags, &Tags::default());
        let mut copy = self.copies.remove(&id)?;
        self.by_age.remove(&AgeKey::new(copy.received, id));
        if let Some(project) = copy.mailbox.project()
            && let Some(ids) = self.projects.get_mut(&project)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.projects.remove(&project);
            }
        }
        if let Some(contents) = self.mailboxes.get_mut(&copy.mailbox) {
            contents.ids.remove(&id);
            contents.version = version;
            contents.unseen -= u64::from(!seen);
            contents.bytes -= copy.size();
            if contents.ids.is_empty() {
                self.highest_free_number = self.highest_free_number.max(contents.last_number);
                self.mailboxes.remove(&copy.mailbox);
                self.names.remove(&copy.mailbox);
            }
        }
        self.bytes -= u64::from(copy.trace_len);
        if copy.body.release() {
            self.bytes -= copy.body.bytes.len() as u64;
            self.messages -= 1;
        }
        Some(RemovedCopy { summary: copy.summary(id), _copy: copy })
    }

    /// Returns the contents of a mailbox as numbers. `None` if it is empty.
    fn mailbox_state(&self, name: &MailboxName) -> Option<MailboxState> {
        let contents = self.mailboxes.get(name)?;
        let id = *contents.ids.last()?;
        Some(MailboxState {
            name: name.clone(),
            messages: contents.ids.len() as u64,
            unseen: contents.unseen,
            bytes: contents.bytes,
            newest: Newest { id, received: self.copies.get(&id)?.received },
        })
    }
}

/// Returns the ids of a page. `None` if it can contain none.
fn page_range(page: Page) -> Option<(Bound<MessageId>, Bound<MessageId>)> {
    let after = page.after.map_or(Bound::Unbounded, Bound::Excluded);
    let before = page.before.map_or(Bound::Unbounded, Bound::Excluded);
    match (page.after, page.before) {
        (Some(after), Some(before)) if after >= before => None,
        _ => Some((after, before)),
    }
}

fn reversed(summaries: impl Iterator<Item = Summary>) -> Vec<Summary> {
    let mut summaries: Vec<_> = summaries.collect();
    summaries.reverse();
    summaries
}

/// Returns the copies of the messages of a page. `copies` are those in its range, ascending by id.
fn copies_of_page(copies: impl DoubleEndedIterator<Item = Summary>, page: Page) -> Vec<Summary> {
    let limit = page.limit.unwrap_or(usize::MAX);
    // The copies of the message at the start of the range have higher ids than the message.
    let mut copies = copies.filter(|copy| page.after.is_none_or(|after| copy.message > after));
    match page.after {
        Some(_) => first_messages(copies.by_ref(), limit),
        None => reversed(first_messages(copies.rev(), limit).into_iter()),
    }
}

/// Returns the copies of the first `limit` messages.
fn first_messages(copies: impl Iterator<Item = Summary>, limit: usize) -> Vec<Summary> {
    let (mut count, mut last) = (0, None);
    let is_within_limit = |copy: &Summary| {
        count += usize::from(last.replace(copy.message) != Some(copy.message));
        count <= limit
    };
    copies.take_while(is_within_limit).collect()
}

/// Frees the copies and returns their summaries. Called after the lock is released.
fn into_summaries(removed: Vec<RemovedCopy>) -> Vec<Summary> {
    removed.into_iter().map(|removed| removed.summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn passes_conformance_suite() {
        Box::pin(conformance::run(|limits| async move { MemoryStore::new(limits) })).await;
    }

    #[tokio::test]
    async fn stores_that_are_created_at_once_have_different_numbers() {
        let [one, other] = [(); 2].map(|()| MemoryStore::new(Limits::default()));
        assert_ne!(one.uid_validity().await.unwrap(), other.uid_validity().await.unwrap());
    }

    #[tokio::test]
    async fn removes_empty_mailbox() {
        let store = MemoryStore::new(Limits::default());
        let stored = store.append(conformance::message(1, &["a", "shop:b"], b"body")).await.unwrap().stored;
        for summary in &stored {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
        let state = store.state.lock();
        assert!(state.mailboxes.is_empty() && state.names.is_empty() && state.projects.is_empty());
        assert!(state.by_age.is_empty() && state.copies.is_empty());
        assert_eq!((state.bytes, state.messages), (0, 0));
    }
}
