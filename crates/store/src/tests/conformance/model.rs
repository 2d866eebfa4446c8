//! Compares a store with a simple model of it: random sequences of operations, reproducible by their seed. After each
//! operation, the store must return what the model returns. The model is slow and obvious; if both differ, the store is
//! wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Flags, Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::patterns::Patterns;
use restante_mail::tags::Tags;

use super::mailboxes::state_of;
use super::marks::checked_index;
use super::{message, name, project};
use crate::overview::{Overview, TagCount};
use crate::{
    Age, AgeRange, Appended, ChangedMarks, CopyKey, CopyUpdate, Limits, MailboxPage, MailboxPolicies, MailboxPolicy,
    MailboxState, MessageSelector, NewMessage, Page, ProjectState, Store, UpdateOutcome, Usage, Version,
};

const MAILBOXES: [&str; 7] = ["ann", "shop:ann", "bob", "cid", "acme:ann", "shop:bob", "shop-2:ann"];
/// The projects of these mailboxes, in order, and one without mailboxes.
const PROJECTS: [&str; 4] = ["acme", "empty", "shop", "shop-2"];

/// Returns the limits that random walks use.
pub(super) fn limits() -> Vec<Limits> {
    let policy =
        |pattern: &str| MailboxPolicy { mailboxes: Patterns::from_iter([pattern]), ..MailboxPolicy::default() };
    let policies = MailboxPolicies::from_iter([
        MailboxPolicy { messages: Some(0), bytes: Some(2_000), ..policy("shop:ann") },
        MailboxPolicy { messages: Some(5), ..policy("shop*:*") },
        MailboxPolicy { messages: Some(2), bytes: Some(3_000), ..policy("?cme:*") },
    ]);
    vec![
        Limits::default(),
        Limits { messages_per_mailbox: 3, ..Limits::default() },
        Limits { bytes: 6_000, ..Limits::default() },
        Limits { messages_per_mailbox: 4, bytes: 8_000, ..Limits::default() },
        Limits { policies: policies.clone(), ..Limits::default() },
        Limits { messages_per_mailbox: 3, bytes: 9_000, policies },
    ]
}

/// A random walk over one store, and the expected contents.
pub(super) struct RandomWalk {
    random: Random,
    limits: Limits,
    /// In nanoseconds. It advances, stands still, and is sometimes set back.
    clock: i64,
    /// The number of messages, which gives each its own subject.
    appended: i64,
    contents: BTreeMap<MailboxName, BTreeMap<MessageId, StoredMessage>>,
    /// The highest id and number that each mailbox ever had.
    highest: HashMap<MailboxName, (MessageId, u32)>,
    /// The highest MODSEQ that each mailbox ever had.
    highest_modseq: HashMap<MailboxName, u64>,
    /// The listing at each version that a mailbox ever had.
    versions: HashMap<(MailboxName, Version), Vec<Summary>>,
}

/// A message in one mailbox.
#[derive(Clone)]
struct StoredMessage {
    summary: Summary,
    source: Source,
}

impl RandomWalk {
    /// Starts a walk in an empty store with these limits. Walks with equal seeds are equal.
    pub(super) fn new(seed: u64, limits: Limits) -> Self {
        Self {
            random: Random(seed),
            limits,
            clock: 1_000_000_000_000,
            appended: 0,
            contents: BTreeMap::new(),
            highest: HashMap::new(),
            highest_modseq: HashMap::new(),
            versions: HashMap::new(),
        }
    }

    /// Runs `steps` random operations, and checks the whole store at the end.
    pub(super) async fn run(&mut self, store: &impl Store, steps: usize) {
        for _ in 0..steps {
            self.step(store).await;
            assert_eq!(store.usage().await.unwrap(), self.usage());
            assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), self.mailbox_states());
            assert_eq!(store.overview(None).await.unwrap(), self.overview(None));
            assert_eq!(store.projects(None, usize::MAX).await.unwrap(), self.project_states());
            for project in PROJECTS.map(project) {
                assert_eq!(store.overview(Some(&project)).await.unwrap(), self.overview(Some(&project)), "{project}");
            }
            let mut oldest = self.by_age();
            let rest = oldest.split_off(oldest.len().min(3));
            assert_eq!(store.oldest(AgeRange::default(), 3).await.unwrap(), oldest);
            let before = rest.get(1).map(|copy| copy.received);
            let after = AgeRange { after: oldest.last().map(Age::from), before };
            let is_older = |copy: &&Summary| before.is_none_or(|before| copy.received < before);
            let expected: Vec<Summary> = rest.iter().take(2).filter(is_older).cloned().collect();
            assert_eq!(store.oldest(after, 2).await.unwrap(), expected, "{after:?}");
        }
        self.check(store).await;
    }

    async fn step(&mut self, store: &impl Store) {
        match self.random.below(100) {
            0..40 => self.append(store).await,
            40..50 => self.remove(store).await,
            50..54 => self.purge(store).await,
            54..60 => self.expire(store).await,
            60..72 => self.update(store).await,
            72..75 => self.remove_message_with_copies(store).await,
            75..82 => self.list(store).await,
            82..89 => self.messages(store).await,
            89..96 => self.read(store).await,
            _ => self.mailboxes(store).await,
        }
    }

    async fn append(&mut self, store: &impl Store) {
        let message = self.random_message();
        let sent = message.clone();
        let Appended { stored, evicted } = store.append(message).await.unwrap();
        assert_eq!(stored.len(), sent.copies.len());
        let message = stored[0].id;
        for ((index, copy), summary) in (0..).zip(sent.copies).zip(stored) {
            assert_eq!(summary.id.number(), message.number() + index, "the copies of a message have consecutive ids");
            let trace = copy.trace(sent.received);
            let expected = Summary {
                mailbox: copy.mailbox.clone(),
                id: summary.id,
                message,
                number: summary.number,
                headline: sent.headline.clone(),
                received: sent.received,
                size: (trace.len() + sent.body.len()) as u64,
                seen: copy.seen,
                flags: copy.flags,
                tags: copy.tags,
                modseq: summary.modseq,
                details: copy.details,
            };
            assert_eq!(summary, expected);
            let last = self.highest.insert(copy.mailbox.clone(), (summary.id, summary.number));
            let is_higher = |(id, number)| id < summary.id && number < summary.number;
            assert!(last.is_none_or(is_higher), "{last:?} came before {} {}", summary.id, summary.number);
            let highest = self.highest_modseq.insert(copy.mailbox.clone(), summary.modseq);
            assert!(highest < Some(summary.modseq), "{highest:?} came before {}", summary.modseq);
            let source = Source { trace, body: sent.body.clone() };
            let stored_message = StoredMessage { summary, source };
            self.contents.entry(copy.mailbox).or_default().insert(stored_message.summary.id, stored_message);
        }
        assert_same(evicted, self.evict());
    }

    async fn remove(&mut self, store: &impl Store) {
        let (mailbox, id) = self.pick_message();
        let removed = store.remove(&mailbox, id).await.unwrap();
        assert_eq!(removed, self.remove_message(&mailbox, id));
    }

    async fn purge(&mut self, store: &impl Store) {
        let mailbox = self.random_mailbox();
        let purged = store.purge(&mailbox, MessageId::MAX, usize::MAX).await.unwrap();
        let removed = self.contents.remove(&mailbox).unwrap_or_default();
        assert_eq!(purged, summaries(&removed));
    }

    async fn expire(&mut self, store: &impl Store) {
        let deadline = timestamp(self.clock - self.random.signed(20_000));
        let limit = [0, 1, 2, 5, 1000][self.random.below(5)];
        let expired = store.expire(deadline, limit).await.unwrap();
        let mut expected = self.by_age();
        expected.retain(|summary| summary.received < deadline);
        expected.truncate(limit);
        assert_eq!(expired, expected, "before {deadline}, at most {limit}");
        for summary in expected {
            self.remove_message(&summary.mailbox, summary.id);
        }
    }

    async fn update(&mut self, store: &impl Store) {
        let updates: Vec<CopyUpdate> = (0..self.random.below(5)).map(|_| self.random_update()).collect();
        let outcomes = store.update_copies(updates.clone()).await.unwrap();
        assert_eq!(outcomes.len(), updates.len());
        for (update, outcome) in updates.iter().zip(outcomes) {
            let CopyKey { mailbox, id } = &update.copy;
            let Some(copy) = self.contents.get_mut(mailbox).and_then(|messages| messages.get_mut(id)) else {
                assert_eq!(outcome, UpdateOutcome::Missing);
                continue;
            };
            let before = copy.summary.marks();
            if update.if_modseq.is_some_and(|modseq| modseq != before.modseq) {
                assert_eq!(outcome, UpdateOutcome::Conflict);
                continue;
            }
            let UpdateOutcome::Updated(marks, changed) = outcome else { panic!("{outcome:?} of {update:?}") };
            copy.summary.seen = update.seen.unwrap_or(before.seen);
            copy.summary.flags = update.flags.unwrap_or(before.flags);
            copy.summary.tags = update.tags.clone().unwrap_or(before.tags.clone());
            let after = copy.summary.marks();
            let (seen, flags, tags) =
                (after.seen != before.seen, after.flags != before.flags, after.tags != before.tags);
            assert_eq!(changed, ChangedMarks { seen, flags, tags });
            if after != before {
                let highest = self.highest_modseq.entry(mailbox.clone()).or_default();
                assert!(marks.modseq > *highest, "{marks:?} came after {highest}");
                (*highest, copy.summary.modseq) = (marks.modseq, marks.modseq);
            }
            assert_eq!(marks, copy.summary.marks());
        }
    }

    fn random_update(&mut self) -> CopyUpdate {
        let (mailbox, id) = self.pick_message();
        let copy = self.contents.get(&mailbox).and_then(|messages| messages.get(&id));
        let modseq = copy.map_or(1, |copy| copy.summary.modseq) + self.random.below(4) as u64 / 3;
        let tags = Tags::from_valid(["x", "y"].into_iter().take(self.random.below(3)));
        CopyUpdate {
            copy: CopyKey { mailbox, id },
            seen: self.random.chance(2).then(|| self.random.below(3) > 0),
            flags: self.random.chance(3).then(|| Flags::from_bits(self.random.byte())),
            tags: self.random.chance(3).then_some(tags),
            if_modseq: self.random.chance(3).then_some(modseq),
        }
    }

    async fn remove_message_with_copies(&mut self, store: &impl Store) {
        let (_, id) = self.pick_message();
        let found = store.find_message(MessageSelector::Id(id)).await.unwrap();
        let expected = self.messages_by_id().into_iter().find(|message| message.id() == id);
        assert_eq!(found, expected);
        let copies = found.map(Message::into_copies).unwrap_or_default();
        let removed = store.remove_copies(copies.iter().map(CopyKey::from).collect()).await.unwrap();
        assert_eq!(removed, copies);
        for copy in copies {
            self.remove_message(&copy.mailbox, copy.id);
        }
    }

    async fn messages(&mut self, store: &impl Store) {
        let page = self.random_page();
        let project = self.random.chance(2).then(|| project(PROJECTS[self.random.below(PROJECTS.len())]));
        let mut expected = self.messages_by_id();
        let all_below = |message: &Message, before| message.copies().iter().all(|copy| copy.id < before);
        expected.retain(|message| page.before.is_none_or(|before| all_below(message, before)));
        expected.retain(|message| page.after.is_none_or(|after| message.id() > after));
        let mut expected = restrict(expected, project.as_ref());
        truncate_to_page(&mut expected, page);
        let found = store.messages(project.as_ref(), page).await.unwrap().messages;
        assert_eq!(found, expected, "{page:?} {project:?}");
        let latest = store.find_message(MessageSelector::Latest).await.unwrap();
        assert_eq!(latest, self.messages_by_id().pop());
    }

    async fn list(&mut self, store: &impl Store) {
        let page = self.random_page();
        let mailbox = self.random_mailbox();
        let mut expected = self.listing(&mailbox);
        expected.retain(|summary| page.before.is_none_or(|before| summary.id < before));
        expected.retain(|summary| page.after.is_none_or(|after| summary.id > after));
        truncate_to_page(&mut expected, page);
        let listing = store.list(&mailbox, page).await.unwrap();
        assert_eq!(listing.messages, expected, "{page:?}");
        assert_eq!(listing.version, store.version(&mailbox).await.unwrap());
        self.check_listing(store, &mailbox).await;
    }

    async fn read(&mut self, store: &impl Store) {
        let (mailbox, id) = self.pick_message();
        let messages = self.contents.get(&mailbox);
        let found = messages.and_then(|messages| messages.get(&id));
        let latest = messages.and_then(|messages| messages.values().next_back());
        let summary = |message: Option<&StoredMessage>| message.map(|message| message.summary.clone());
        assert_eq!(store.find(&mailbox, MessageSelector::Id(id)).await.unwrap(), summary(found));
        assert_eq!(store.find(&mailbox, MessageSelector::Latest).await.unwrap(), summary(latest));
        assert_eq!(store.source(&mailbox, id).await.unwrap(), found.map(|message| message.source.clone()));
    }

    async fn mailboxes(&mut self, store: &impl Store) {
        let after = if self.random.chance(2) { self.random_mailbox().as_str().to_owned() } else { String::new() };
        let prefix = ["", "", "a", "bob", "shop:"][self.random.below(5)].to_owned();
        let limit = self.random.below(7);
        let last_project = project(PROJECTS[self.random.below(PROJECTS.len())]);
        let mut projects = self.project_states();
        projects.retain(|project| project.name > last_project);
        projects.truncate(limit);
        assert_eq!(store.projects(Some(&last_project), limit).await.unwrap(), projects);
        let mut expected = self.mailbox_states();
        expected.retain(|mailbox| mailbox.name.as_str() > after.as_str());
        expected.retain(|mailbox| mailbox.name.as_str().starts_with(&prefix));
        expected.truncate(limit);
        assert_eq!(store.mailboxes(MailboxPage { prefix, after, limit }).await.unwrap(), expected);
    }

    /// Compares all contents of the store.
    pub(super) async fn check(&mut self, store: &impl Store) {
        assert_eq!(store.usage().await.unwrap(), self.usage());
        assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), self.mailbox_states());
        for mailbox in MAILBOXES {
            self.check_listing(store, &name(mailbox)).await;
        }
        for message in self.contents.values().flat_map(BTreeMap::values) {
            let source = store.source(&message.summary.mailbox, message.summary.id).await.unwrap();
            assert_eq!(source.as_ref(), Some(&message.source));
        }
    }

    /// Compares a whole listing with the model, and with an earlier listing of the same version.
    async fn check_listing(&mut self, store: &impl Store, mailbox: &MailboxName) {
        let listing = store.list(mailbox, Page::ALL).await.unwrap();
        let expected = self.listing(mailbox);
        assert_eq!(listing.messages, expected);
        assert_eq!(listing.version == Version(0), expected.is_empty(), "zero is an empty mailbox's version");
        let earlier = self.versions.entry((mailbox.clone(), listing.version)).or_insert(expected);
        let index = checked_index(store, mailbox.as_str()).await;
        let last_number = self.highest.get(mailbox).map_or(0, |(_, number)| *number);
        let highest_modseq = self.highest_modseq.get(mailbox).copied().unwrap_or(1);
        assert!(index.next_number > last_number && index.highest_modseq >= highest_modseq, "{mailbox}");
        assert_eq!(*earlier, listing.messages, "{:?} was the version of another listing", listing.version);
    }

    fn random_message(&mut self) -> NewMessage {
        self.appended += 1;
        // Ids are derived from microseconds, so the clock moves by zero, nanoseconds or microseconds. It moves forward
        // more often than back.
        let step = [0, 7, 1_000, 5_000, 20_000, -1, -3_000, -30_000][self.random.below(8)];
        self.clock += step;
        let size = [0, 1, 100, 700, 1500, 7000][self.random.below(6)];
        let body: Bytes = (0..size).map(|_| self.random.byte()).collect();
        let first = self.random.below(MAILBOXES.len());
        let count = 1 + self.random.below(4);
        let mailboxes: Vec<_> = MAILBOXES.iter().cycle().skip(first).take(count).copied().collect();
        let mut message = message(self.appended, &mailboxes, b"");
        for copy in &mut message.copies {
            (copy.seen, copy.flags) = (self.random.chance(4), Flags::from_bits(self.random.byte()));
        }
        NewMessage { received: timestamp(self.clock), body, ..message }
    }

    fn random_page(&mut self) -> Page {
        Page {
            limit: [None, Some(0), Some(1), Some(3), Some(1000)][self.random.below(5)],
            before: self.random.chance(2).then(|| self.pick_message().1),
            after: self.random.chance(2).then(|| self.pick_message().1),
        }
    }

    fn random_mailbox(&mut self) -> MailboxName {
        name(MAILBOXES[self.random.below(MAILBOXES.len())])
    }

    /// Usually returns an existing message; sometimes one that was removed, never existed, or is in another mailbox.
    fn pick_message(&mut self) -> (MailboxName, MessageId) {
        let ids: Vec<_> = self.contents.values().flat_map(BTreeMap::values).map(|message| &message.summary).collect();
        let Some(at) = ids.len().checked_sub(1).map(|last| self.random.below(last + 1)) else {
            return (self.random_mailbox(), MessageId::from(1));
        };
        let (mailbox, id) = (ids[at].mailbox.clone(), ids[at].id);
        match self.random.below(10) {
            0 => (mailbox, MessageId::from(id.number() + 1)),
            1 => (self.random_mailbox(), id),
            _ => (mailbox, id),
        }
    }

    /// Removes what the limits evict after an append: first by those of mailboxes, then by the size limit.
    fn evict(&mut self) -> Vec<Summary> {
        let mut evicted = Vec::new();
        for (mailbox, messages) in &mut self.contents {
            let limits = self.limits.of_mailbox(mailbox);
            let size =
                |messages: &BTreeMap<_, StoredMessage>| messages.values().map(|message| message.summary.size).sum();
            while messages.len() as u64 > limits.messages || limits.bytes < size(messages) {
                evicted.extend(messages.pop_first().map(|(_, message)| message.summary));
            }
        }
        self.contents.retain(|_, messages| !messages.is_empty());
        while self.limits.bytes > 0 && self.usage().bytes > self.limits.bytes {
            let oldest = self.by_age().swap_remove(0);
            evicted.extend(self.remove_message(&oldest.mailbox, oldest.id));
        }
        evicted
    }

    fn remove_message(&mut self, mailbox: &MailboxName, id: MessageId) -> Option<Summary> {
        let messages = self.contents.get_mut(mailbox)?;
        let removed = messages.remove(&id)?;
        if messages.is_empty() {
            self.contents.remove(mailbox);
        }
        Some(removed.summary)
    }

    fn by_age(&self) -> Vec<Summary> {
        let mut all: Vec<_> = self.contents.values().flat_map(summaries).collect();
        all.sort_by_key(|summary| (summary.received, summary.id));
        all
    }

    fn messages_by_id(&self) -> Vec<Message> {
        let mut copies: Vec<_> = self.contents.values().flat_map(summaries).collect();
        copies.sort_by_key(|summary| summary.id);
        Message::group(copies)
    }

    fn listing(&self, mailbox: &MailboxName) -> Vec<Summary> {
        self.contents.get(mailbox).map(summaries).unwrap_or_default()
    }

    fn mailbox_states(&self) -> Vec<MailboxState> {
        self.contents.values().filter_map(|messages| state_of(&summaries(messages))).collect()
    }

    fn project_states(&self) -> Vec<ProjectState> {
        let state_of = |project: Project| {
            let mailboxes = self.contents.iter().filter(|(name, _)| name.project().as_ref() == Some(&project));
            let copies: Vec<Summary> = mailboxes.flat_map(|(_, messages)| summaries(messages)).collect();
            let unseen = copies.iter().filter(|copy| !copy.seen).count() as u64;
            ProjectState { name: project, copies: copies.len() as u64, unseen }
        };
        PROJECTS.map(project).map(state_of).into_iter().filter(|state| state.copies > 0).collect()
    }

    fn overview(&self, project: Option<&Project>) -> Overview {
        let messages = restrict(self.messages_by_id(), project);
        let mut tags: BTreeMap<String, u64> = BTreeMap::new();
        for message in &messages {
            let all: BTreeSet<&str> = message.copies().iter().flat_map(|copy| copy.tags.iter()).collect();
            for tag in all {
                *tags.entry(tag.to_owned()).or_default() += 1;
            }
        }
        Overview {
            messages: messages.len() as u64,
            unread: messages.iter().filter(|message| !message.is_seen()).count() as u64,
            tags: tags.into_iter().map(|(tag, messages)| TagCount { tag, messages }).collect(),
        }
    }

    fn usage(&self) -> Usage {
        let copies: Vec<_> = self.contents.values().flat_map(BTreeMap::values).collect();
        let traces: usize = copies.iter().map(|message| message.source.trace.len()).sum();
        let bodies: BTreeMap<MessageId, usize> =
            copies.iter().map(|message| (message.summary.message, message.source.body.len())).collect();
        Usage {
            messages: bodies.len() as u64,
            copies: copies.len() as u64,
            mailboxes: self.contents.len() as u64,
            bytes: (traces + bodies.values().sum::<usize>()) as u64,
        }
    }
}

/// Prints the state of the walk if a test panics.
impl Drop for RandomWalk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in a random walk with {:?} after {} appends; {:?}", self.limits, self.appended, self.random);
        }
    }
}

/// Returns the messages that have copies in a project, with these copies only.
fn restrict(messages: Vec<Message>, project: Option<&Project>) -> Vec<Message> {
    let is_permitted = |mailbox: &MailboxName| project.is_none() || mailbox.project().as_ref() == project;
    messages.into_iter().filter_map(|message| message.restricted_to(is_permitted)).collect()
}

/// Drops the items above the limit of a page: the last ones if the page has a start, otherwise the first ones.
fn truncate_to_page<T>(items: &mut Vec<T>, page: Page) {
    let excess = items.len().saturating_sub(page.limit.unwrap_or(usize::MAX));
    match page.after {
        Some(_) => items.truncate(items.len() - excess),
        None => drop(items.drain(..excess)),
    }
}

fn summaries(messages: &BTreeMap<MessageId, StoredMessage>) -> Vec<Summary> {
    messages.values().map(|message| message.summary.clone()).collect()
}

/// Compares messages in any order.
fn assert_same(mut one: Vec<Summary>, mut other: Vec<Summary>) {
    let key = |summary: &Summary| (summary.mailbox.clone(), summary.id);
    one.sort_by_key(key);
    other.sort_by_key(key);
    assert_eq!(one, other);
}

fn timestamp(nanosecond: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanosecond.into()).expect("tests use valid times")
}

/// `SplitMix64`: small, and the same on all platforms.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        usize::try_from(self.next() % end).expect("smaller than a usize")
    }

    fn signed(&mut self, end: usize) -> i64 {
        i64::try_from(self.below(end)).expect("tests use small numbers")
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
