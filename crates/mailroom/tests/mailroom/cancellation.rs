//! Callers that are cancelled: a change that the store was asked for still completes and is published, and a failure is
//! never reported as success.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::events::{Event, Subscription};
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{DeletionCause, DeliveryOutcome, Mailroom, Settings};
use restante_store::memory::MemoryStore;
use restante_store::{
    Appended, Limits, Listing, MailboxPage, MailboxState, MessageSelector, NewMessage, Page, Result, Store, StoreError,
    Usage, Version,
};
use tokio::sync::Notify;
use tokio::time::timeout;

const MAIL: &str = "Subject: Hello\r\n\r\nHi\r\n";

/// Deleting these messages panics: before the store waits, and after it.
const AT_ONCE: MessageId = MessageId::ZERO;
const LATER: u64 = 1;
/// Longer than any step of these tests.
const LONG: Duration = Duration::from_mins(1);

/// A store that signals when a change is requested, and makes it when it is told to continue.
struct Slow {
    memory: MemoryStore,
    asked: Notify,
    go_on: Notify,
}

impl Slow {
    fn new() -> Arc<Self> {
        let memory = MemoryStore::new(Limits { messages_per_mailbox: 2, bytes: 0 });
        Arc::new(Self { memory, asked: Notify::new(), go_on: Notify::new() })
    }

    async fn pause(&self) {
        self.asked.notify_one();
        self.go_on.notified().await;
    }
}

#[async_trait]
impl Store for Slow {
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

    async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>> {
        self.memory.find(mailbox, which).await
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.memory.source(mailbox, id).await
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        self.pause().await;
        self.memory.set_seen(mailbox, id, seen).await
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        assert_ne!(id, AT_ONCE, "a mistake at once");
        self.pause().await;
        assert_ne!(id.number(), LATER, "a mistake later");
        self.memory.remove(mailbox, id).await
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

fn room(store: Arc<Slow>) -> Mailroom {
    Mailroom::new(Settings { history: 10, ..Settings::default() }, store, Extensions::default())
}

fn envelope() -> Envelope {
    let address = |text| Address::parse(text, Alphabet::Ascii).unwrap();
    Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        from: Some(address("ann@x.org")),
        recipients: vec![Recipient::new(address("bob@x.org"), Naming::Local).unwrap()],
    }
}

/// Delivers a message before the test cancels anything.
async fn delivered(room: &Mailroom, store: &Slow) -> Summary {
    store.go_on.notify_one();
    let DeliveryOutcome::Stored(mut copies) = room.deliver(&envelope(), Bytes::from(MAIL)).await.unwrap() else {
        panic!("discarded")
    };
    store.asked.notified().await;
    copies.remove(0)
}

/// Starts a change, cancels it while the store is busy, and lets the store continue.
async fn cut_off(store: &Slow, change: impl Future) {
    tokio::select! {
        _ = change => panic!("the store was told to go on too early"),
        () = store.asked.notified() => {}
    }
    store.go_on.notify_one();
}

/// Subscribes to the events from now on.
fn listen(room: &Mailroom) -> Subscription {
    let mut events = room.subscribe(None, None);
    while events.try_next().unwrap().is_some() {}
    events
}

async fn next(events: &mut Subscription) -> Event {
    timeout(LONG, events.next()).await.expect("an event is told").unwrap().event().clone()
}

#[tokio::test]
async fn a_delivery_whose_sender_left_is_stored_and_told_with_all_it_evicted() {
    let store = Slow::new();
    let room = room(store.clone());
    let oldest = delivered(&room, &store).await;
    delivered(&room, &store).await;
    let mut events = listen(&room);
    cut_off(&store, room.deliver(&envelope(), Bytes::from(MAIL))).await;
    let Event::Stored(stored) = next(&mut events).await else { panic!("stored first") };
    assert_eq!(next(&mut events).await, Event::Deleted(oldest));
    assert_eq!(room.find(&stored.mailbox, MessageSelector::Latest).await.unwrap(), Some(stored));
}

#[tokio::test]
async fn a_removal_whose_client_left_is_told() {
    let store = Slow::new();
    let room = room(store.clone());
    let message = delivered(&room, &store).await;
    let mut events = listen(&room);
    cut_off(&store, room.remove(&message.mailbox, message.id)).await;
    assert_eq!(next(&mut events).await, Event::Deleted(message));
    assert!(room.subscribe(None, None).try_next().unwrap().is_none(), "no history");
}

#[tokio::test]
async fn removals_whose_client_left_are_told() {
    let store = Slow::new();
    let room = room(store.clone());
    let messages = [delivered(&room, &store).await, delivered(&room, &store).await];
    let mut events = listen(&room);
    let ids = messages.iter().map(|message| message.id).collect();
    cut_off(&store, room.remove_all(&messages[0].mailbox, ids, DeletionCause::Collected)).await;
    store.asked.notified().await;
    store.go_on.notify_one();
    for message in messages {
        assert_eq!(next(&mut events).await, Event::Deleted(message));
    }
}

#[tokio::test]
async fn removals_that_succeed_beside_one_that_fails_are_told() {
    let store = Slow::new();
    let room = room(store.clone());
    let message = delivered(&room, &store).await;
    let mut events = listen(&room);
    store.go_on.notify_one();
    let failure =
        room.remove_all(&message.mailbox, vec![AT_ONCE, message.id], DeletionCause::Collected).await.unwrap_err();
    assert!(matches!(&failure, StoreError::Broken(cause) if cause.contains("panicked")), "{failure}");
    assert_eq!(next(&mut events).await, Event::Deleted(message));
}

#[tokio::test]
async fn a_purge_whose_client_left_is_told() {
    let store = Slow::new();
    let room = room(store.clone());
    let messages = [delivered(&room, &store).await, delivered(&room, &store).await];
    let mut events = listen(&room);
    cut_off(&store, room.purge(&messages[0].mailbox)).await;
    for message in messages {
        assert_eq!(next(&mut events).await, Event::Deleted(message));
    }
}

#[tokio::test]
async fn a_message_is_marked_although_its_reader_left() {
    let store = Slow::new();
    let room = room(store.clone());
    let Summary { mailbox, id, .. } = delivered(&room, &store).await;
    cut_off(&store, room.set_seen(&mailbox, id, true)).await;
    let is_seen = async {
        while !room.find(&mailbox, MessageSelector::Id(id)).await.unwrap().is_some_and(|summary| summary.seen) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, is_seen).await.expect("it is marked");
}

#[tokio::test]
async fn expiry_that_is_stopped_half_way_is_told() {
    let store = Slow::new();
    let room = room(store.clone());
    let message = delivered(&room, &store).await;
    let mut events = listen(&room);
    // The message is now older than the retention period.
    tokio::time::sleep(Duration::from_millis(2)).await;
    cut_off(&store, room.run_retention(Duration::from_millis(1))).await;
    assert_eq!(next(&mut events).await, Event::Deleted(message));
}

#[tokio::test]
async fn a_panic_in_the_middle_is_a_failure() {
    let store = Slow::new();
    let room = room(store.clone());
    let message = delivered(&room, &store).await;
    let at_once = room.remove(&message.mailbox, AT_ONCE).await;
    let go_on = async {
        store.asked.notified().await;
        store.go_on.notify_one();
    };
    let (later, ()) = tokio::join!(room.remove(&message.mailbox, LATER.into()), go_on);
    for failure in [at_once.unwrap_err(), later.unwrap_err()] {
        assert!(matches!(&failure, StoreError::Broken(cause) if cause.contains("panicked")), "{failure}");
    }
    assert_eq!(room.find(&message.mailbox, MessageSelector::Latest).await.unwrap(), Some(message), "the room goes on");
}
