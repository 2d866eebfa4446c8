//! Callers that are cancelled: a change that the store was asked for still completes and is published, and a failure is
//! never reported as success.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Naming, Project};
use restante_mail::tags::Tags;
use restante_store::memory::MemoryStore;
use restante_store::overview::Overview;
use restante_store::{
    AgeRange, Appended, CopyKey, CopyUpdate, Limits, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing,
    MessageSelector, NewMessage, Page, ProjectState, Result, Store, StoreError, UpdateOutcome, Usage, Version,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::events::{Event, Subscription};
use crate::hooks::Extensions;
use crate::{DeletionCause, DeliveryOutcome, Mailroom, Settings};

const MAIL: &str = "Subject: Hello\r\n\r\nHi\r\n";

/// Deleting these messages panics: before the store waits, and after it.
const PANICS_AT_ONCE: MessageId = MessageId::ZERO;
const PANICS_LATER: u64 = 1;
/// Longer than any step of these tests.
const LONG: Duration = Duration::from_mins(1);

/// A store that notifies `requested` when a change is requested, and makes the change after `resume` is notified.
struct PausingStore {
    memory: MemoryStore,
    requested: Notify,
    resume: Notify,
}

impl PausingStore {
    fn new() -> Arc<Self> {
        let memory = MemoryStore::new(Limits { messages_per_mailbox: 2, ..Limits::default() });
        Arc::new(Self { memory, requested: Notify::new(), resume: Notify::new() })
    }

    async fn pause(&self) {
        self.requested.notify_one();
        self.resume.notified().await;
    }
}

#[async_trait]
impl Store for PausingStore {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        self.pause().await;
        self.memory.append(message).await
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        self.memory.version(mailbox).await
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        self.memory.list(mailbox, page).await
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        self.memory.find(mailbox, selector).await
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.memory.source(mailbox, id).await
    }

    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        self.memory.index(mailbox, after, limit).await
    }

    async fn uid_validity(&self) -> Result<u32> {
        self.memory.uid_validity().await
    }

    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        self.pause().await;
        self.memory.update_copies(updates).await
    }

    async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        self.memory.overview(project).await
    }

    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        self.memory.projects(after, limit).await
    }

    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        self.memory.messages(project, page).await
    }

    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        self.memory.find_message(selector).await
    }

    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
        self.memory.oldest(range, limit).await
    }

    async fn store_version(&self) -> Result<Version> {
        self.memory.store_version().await
    }

    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>> {
        let includes = |id: MessageId| copies.iter().any(|copy| copy.id == id);
        assert!(!includes(PANICS_AT_ONCE), "panic at once");
        self.pause().await;
        assert!(!includes(PANICS_LATER.into()), "panic after the wait");
        self.memory.remove_copies(copies).await
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        self.pause().await;
        self.memory.purge(mailbox, last, limit).await
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        self.pause().await;
        self.memory.expire(deadline, limit).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.memory.mailboxes(page).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.memory.last_id().await
    }

    async fn usage(&self) -> Result<Usage> {
        self.memory.usage().await
    }
}

fn mailroom(store: Arc<PausingStore>) -> Mailroom {
    Mailroom::new(Settings { history: 10, ..Settings::default() }, store, Extensions::default())
}

fn envelope() -> Envelope {
    let address = |text| Address::parse(text, Alphabet::Ascii).unwrap();
    Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        login: None,
        key: None,
        listener: None,
        from: Some(address("ann@x.org")),
        recipients: vec![Recipient::new(address("bob@x.org"), Naming::Local).unwrap()],
    }
}

/// Delivers a message before the test cancels anything.
async fn delivered(mailroom: &Mailroom, store: &PausingStore) -> Summary {
    store.resume.notify_one();
    let DeliveryOutcome::Stored(mut copies) = mailroom.deliver(&envelope(), Bytes::from(MAIL)).await.unwrap() else {
        panic!("discarded")
    };
    store.requested.notified().await;
    copies.remove(0)
}

/// Starts a change, cancels it while the store is busy, and lets the store continue.
async fn cancel(store: &PausingStore, change: impl Future) {
    tokio::select! {
        _ = change => panic!("the store resumed too early"),
        () = store.requested.notified() => {}
    }
    store.resume.notify_one();
}

/// Subscribes to the events from now on.
fn subscribe_to_new(mailroom: &Mailroom) -> Subscription {
    let mut events = mailroom.subscribe(None, None);
    while events.try_next().unwrap().is_some() {}
    events
}

async fn next(events: &mut Subscription) -> Event {
    timeout(LONG, events.next()).await.expect("an event is published").unwrap().event().clone()
}

#[tokio::test]
async fn cancelled_delivery_is_stored_and_published_with_evictions() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let oldest = delivered(&mailroom, &store).await;
    delivered(&mailroom, &store).await;
    let mut events = subscribe_to_new(&mailroom);
    cancel(&store, mailroom.deliver(&envelope(), Bytes::from(MAIL))).await;
    let Event::Stored(stored, _) = next(&mut events).await else { panic!("the stored event comes first") };
    assert_eq!(next(&mut events).await, Event::Deleted(oldest));
    assert_eq!(mailroom.find(&stored.mailbox, MessageSelector::Latest).await.unwrap(), Some(stored));
}

#[tokio::test]
async fn cancelled_deletion_is_published() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let message = delivered(&mailroom, &store).await;
    let mut events = subscribe_to_new(&mailroom);
    cancel(&store, mailroom.remove(&message.mailbox, message.id)).await;
    assert_eq!(next(&mut events).await, Event::Deleted(message));
    assert!(mailroom.subscribe(None, None).try_next().unwrap().is_none(), "no history");
}

#[tokio::test]
async fn cancelled_deletions_are_published() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let messages = [delivered(&mailroom, &store).await, delivered(&mailroom, &store).await];
    let mut events = subscribe_to_new(&mailroom);
    let ids = messages.iter().map(|message| message.id).collect();
    cancel(&store, mailroom.remove_all(&messages[0].mailbox, ids, DeletionCause::Collected)).await;
    store.requested.notified().await;
    store.resume.notify_one();
    for message in messages {
        assert_eq!(next(&mut events).await, Event::Deleted(message));
    }
}

#[tokio::test]
async fn deletions_are_published_although_another_one_failed() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let message = delivered(&mailroom, &store).await;
    let mut events = subscribe_to_new(&mailroom);
    store.resume.notify_one();
    let error = mailroom
        .remove_all(&message.mailbox, vec![PANICS_AT_ONCE, message.id], DeletionCause::Collected)
        .await
        .unwrap_err();
    assert!(matches!(&error, StoreError::Broken(cause) if cause.contains("panicked")), "{error}");
    assert_eq!(next(&mut events).await, Event::Deleted(message));
}

#[tokio::test]
async fn cancelled_purge_is_published() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let messages = [delivered(&mailroom, &store).await, delivered(&mailroom, &store).await];
    let mut events = subscribe_to_new(&mailroom);
    cancel(&store, mailroom.purge(&messages[0].mailbox)).await;
    for message in messages {
        assert_eq!(next(&mut events).await, Event::Deleted(message));
    }
}

#[tokio::test]
async fn cancelled_mark_is_applied() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let Summary { mailbox, id, .. } = delivered(&mailroom, &store).await;
    cancel(&store, mailroom.set_seen(&mailbox, id, true)).await;
    let is_seen = async {
        while !mailroom.find(&mailbox, MessageSelector::Id(id)).await.unwrap().is_some_and(|summary| summary.seen) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, is_seen).await.expect("the message is marked");
}

#[tokio::test]
async fn cancelled_expiry_is_published() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let message = delivered(&mailroom, &store).await;
    let mut events = subscribe_to_new(&mailroom);
    // The message is now older than the retention period.
    tokio::time::sleep(Duration::from_millis(2)).await;
    cancel(&store, mailroom.run_retention(Some(Duration::from_millis(1)))).await;
    assert_eq!(next(&mut events).await, Event::Deleted(message));
}

#[tokio::test]
async fn panic_in_the_store_is_an_error() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let message = delivered(&mailroom, &store).await;
    let at_once = mailroom.remove(&message.mailbox, PANICS_AT_ONCE).await;
    let resume = async {
        store.requested.notified().await;
        store.resume.notify_one();
    };
    let (later, ()) = tokio::join!(mailroom.remove(&message.mailbox, PANICS_LATER.into()), resume);
    for error in [at_once.unwrap_err(), later.unwrap_err()] {
        assert!(matches!(&error, StoreError::Broken(cause) if cause.contains("panicked")), "{error}");
    }
    assert_eq!(
        mailroom.find(&message.mailbox, MessageSelector::Latest).await.unwrap(),
        Some(message),
        "the mailroom still works"
    );
}

/// Otherwise a store would commit each of them by itself.
#[tokio::test(start_paused = true)]
async fn different_tags_are_set_together() {
    let store = PausingStore::new();
    let mailroom = mailroom(store.clone());
    let keys =
        [delivered(&mailroom, &store).await, delivered(&mailroom, &store).await].map(|copy| CopyKey::from(&copy));
    let [one, added] = [["one"], ["added"]].map(|tags| Tags::new(tags).unwrap());
    store.resume.notify_one();
    mailroom.set_tags(vec![keys[0].clone()], one).await.unwrap();
    let update = mailroom.update_tags(keys.into(), move |tags| tags.union(&added));
    let resume_all = async {
        // The clock advances when all tasks wait.
        tokio::time::sleep(Duration::from_secs(1)).await;
        store.resume.notify_waiters();
    };
    let (updated, ()) = tokio::join!(timeout(LONG, update), resume_all);
    updated.expect("all changes are requested").unwrap();
    let listed = mailroom.messages(None, Page::ALL).await.unwrap().messages;
    assert!(listed.iter().all(|message| message.tags().contains("added")), "{listed:?}");
}
