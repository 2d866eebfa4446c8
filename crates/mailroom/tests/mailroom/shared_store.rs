//! Several mailrooms that share a store: each change is published on all of them, once and in the same order.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::events::{Event, Lagged, Subscription};
use restante_mailroom::hooks::{Extensions, Observer};
use restante_mailroom::{DeletionCause, DeliveryOutcome, Mailroom, Settings};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use restante_teststore::{Node, SharedStore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LONG: Duration = Duration::from_mins(10);
/// How long a test waits for an expected event.
const PATIENCE: Duration = Duration::from_mins(1);

/// An observer that records its notifications.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Ear {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Ear {
    fn message_stored(&self, summary: &Summary) {
        self.note(format!("+{}", summary.headline.subject()));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.note(format!("-{}", summary.headline.subject()));
    }

    fn seen_changed(&self, mailbox: &MailboxName, _: MessageId, seen: bool) {
        self.note(format!("{mailbox} {}", if seen { "read" } else { "unread" }));
    }

    fn events_missed(&self) {
        self.note("missed".to_owned());
    }
}

/// A node with an observer of each kind and a subscription.
struct Room {
    node: Arc<Node>,
    mailroom: Arc<Mailroom>,
    observer: Arc<Ear>,
    follower: Arc<Ear>,
    events: Subscription,
}

/// Creates `COUNT` nodes that share a store, which keeps `cap` messages per mailbox.
async fn nodes<const COUNT: usize>(cap: usize) -> [Room; COUNT] {
    let store = SharedStore::new(Limits { messages_per_mailbox: cap, bytes: 0 });
    let mut rooms = Vec::new();
    for _ in 0..COUNT {
        rooms.push(room(store.node().await));
    }
    rooms.try_into().ok().expect("so many were made")
}

fn room(node: Arc<Node>) -> Room {
    let (observer, follower) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
    let extensions =
        Extensions { hooks: None, node_observers: vec![observer.clone()], store_observers: vec![follower.clone()] };
    let settings = Settings { history: 10, ..Settings::default() };
    let mailroom = Arc::new(Mailroom::new(settings, node.clone(), extensions));
    assert!(mailroom.is_shared());
    let following = mailroom.clone();
    tokio::spawn(async move { following.follow_feed().await });
    let events = mailroom.subscribe(None, None);
    Room { node, mailroom, observer, follower, events }
}

impl Room {
    /// Delivers a message with this subject.
    async fn deliver(&self, to: &str, subject: &str) -> Summary {
        deliver(&self.mailroom, to, subject).await
    }

    /// Starts a request that has found no message after this one in Ann's mailbox and waits.
    async fn wait_for_ann(&self, after: MessageId) -> JoinHandle<Option<Summary>> {
        let mut arrivals = self.mailroom.arrivals(&"ann".to_owned().into(), after, LONG);
        let waiting = tokio::spawn(async move {
            let arrival = timeout(PATIENCE, arrivals.next()).await.expect("it is woken");
            arrival.unwrap()
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!waiting.is_finished());
        waiting
    }

    /// Returns the next events in the notation of the observers.
    async fn hear(&mut self, count: usize) -> Vec<String> {
        hear(&mut self.events, count).await
    }
}

async fn deliver(mailroom: &Mailroom, to: &str, subject: &str) -> Summary {
    let address = Address::parse(&format!("{to}@x.org"), Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        from: None,
        recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, format!("Subject: {subject}\r\n\r\n").into()).await.unwrap() {
        DeliveryOutcome::Stored(mut copies) => copies.remove(0),
        DeliveryOutcome::Discarded => panic!("discarded"),
    }
}

async fn hear(events: &mut Subscription, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    for _ in 0..count {
        let told = timeout(PATIENCE, events.next()).await.expect("an event is told");
        heard.push(match told.map(|told| told.event().clone()) {
            Ok(Event::Stored(summary)) => format!("+{}", summary.headline.subject()),
            Ok(Event::Deleted(summary)) => format!("-{}", summary.headline.subject()),
            Err(Lagged) => "lagged".to_owned(),
        });
    }
    heard
}

#[tokio::test]
async fn what_one_node_does_is_heard_on_all_and_observed_where_it_was_done() {
    let mut rooms = nodes::<3>(0).await;
    let [a, b, c] = &rooms;
    let first = a.deliver("ann", "first").await;
    b.deliver("bob", "second").await;
    assert!(b.mailroom.set_seen(&first.mailbox, first.id, true).await.unwrap());
    assert!(c.mailroom.remove(&first.mailbox, first.id).await.unwrap());
    a.deliver("bob", "third").await;
    assert_eq!(a.mailroom.purge(&"bob".to_owned().into()).await.unwrap(), 2);
    c.deliver("ann", "last").await;

    for room in &mut rooms {
        assert_eq!(room.hear(7).await, ["+first", "+second", "-first", "+third", "-second", "-third", "+last"]);
        assert!(room.events.try_next().unwrap().is_none());
        let followed = ["+first", "+second", "ann read", "-first", "+third", "-second", "-third", "+last"];
        assert_eq!(room.follower.heard(), followed);
    }
    let [a, b, c] = &rooms;
    assert_eq!(a.observer.heard(), ["+first", "+third", "-second", "-third"]);
    assert_eq!(b.observer.heard(), ["+second", "ann read"]);
    assert_eq!(c.observer.heard(), ["-first", "+last"]);
    let counts = rooms.each_ref().map(|room| room.mailroom.counts());
    let done =
        counts.each_ref().map(|counts| (counts.received, counts.stored, counts.deleted_by(DeletionCause::Request)));
    assert_eq!(done, [(2, 2, 2), (1, 1, 0), (1, 1, 1)], "each counts what it did itself");
}

#[tokio::test]
async fn what_had_to_go_is_heard_behind_what_it_went_for() {
    let [a, mut b] = nodes::<2>(1).await;
    a.deliver("ann", "old").await;
    a.deliver("ann", "new").await;
    assert_eq!(b.hear(3).await, ["+old", "+new", "-old"]);
    assert_eq!(hear(&mut b.mailroom.subscribe(None, None), 1).await, ["+new"], "what is gone is no history");
    assert_eq!(b.mailroom.counts().deleted_by(DeletionCause::Limit), 0);
    assert_eq!(a.mailroom.counts().deleted_by(DeletionCause::Limit), 1);
}

#[tokio::test]
async fn who_waits_is_woken_by_any_node() {
    let [a, b, c] = nodes::<3>(0).await;
    let mut waiting = Vec::new();
    for room in [&a, &b, &c] {
        waiting.push(room.wait_for_ann(MessageId::ZERO).await);
    }
    let message = a.deliver("ann", "awaited").await;
    for arrival in waiting {
        assert_eq!(arrival.await.unwrap(), Some(message.clone()));
    }
}

#[tokio::test]
async fn who_was_cut_off_goes_on_at_another_node() {
    let [mut a, mut b] = nodes::<2>(0).await;
    for subject in ["1", "2", "3"] {
        a.deliver(if subject == "2" { "bob" } else { "ann" }, subject).await;
    }
    b.hear(3).await;
    let first = a.events.next().await.unwrap().position();
    assert_eq!(first.to_string().split_once('-').unwrap().0, "0", "no run of a single node");
    for (topic, expected) in [(None, vec!["+2", "+3", "+4"]), (Some("ann"), vec!["+3", "+4"])] {
        let mut resumed = b.mailroom.subscribe(topic.map(|name| name.to_owned().into()), Some(first));
        assert!(!resumed.has_gap());
        if topic.is_none() {
            a.deliver("ann", "4").await;
        }
        assert_eq!(hear(&mut resumed, expected.len()).await, expected);
        assert!(resumed.try_next().unwrap().is_none());
    }
}

#[tokio::test]
async fn who_comes_to_a_node_that_is_behind_hears_nothing_twice() {
    let [mut a, mut b] = nodes::<2>(0).await;
    a.deliver("ann", "1").await;
    assert_eq!(b.hear(1).await, ["+1"]);
    b.node.hold().await;
    a.deliver("ann", "2").await;
    a.deliver("ann", "3").await;
    a.hear(1).await;
    let second = a.events.next().await.unwrap().position();
    let mut moved = b.mailroom.subscribe(None, Some(second));
    assert!(!moved.has_gap());
    b.node.release().await;
    a.deliver("ann", "4").await;
    assert_eq!(hear(&mut moved, 2).await, ["+3", "+4"]);
    assert_eq!(b.hear(3).await, ["+2", "+3", "+4"]);
}

#[tokio::test]
async fn a_node_that_starts_first_learns_what_has_just_happened() {
    let store = SharedStore::new(Limits::default());
    let (mut old, node) = (room(store.node().await), store.starting_node().await);
    let settings = Settings { history: 10, ..Settings::default() };
    let new = Arc::new(Mailroom::new(settings, node.clone(), Extensions::default()));
    old.deliver("ann", "1").await;
    old.deliver("ann", "2").await;
    let first = old.events.next().await.unwrap().position();
    let (beginning, following) = (new.clone(), new.clone());
    let (mut begin, release) = (Box::pin(beginning.read_feed_backlog()), node.release());
    assert!(timeout(Duration::from_millis(10), &mut begin).await.is_err(), "it is not known yet");
    tokio::join!(begin, release);

    let (mut resumed, mut late) = (new.subscribe(None, Some(first)), new.subscribe(None, None));
    assert!(!resumed.has_gap());
    tokio::spawn(async move { following.follow_feed().await });
    old.deliver("ann", "3").await;
    assert_eq!(hear(&mut resumed, 2).await, ["+2", "+3"]);
    assert_eq!(hear(&mut late, 3).await, ["+1", "+2", "+3"]);
}

#[tokio::test]
async fn after_a_time_of_which_nothing_is_known_everybody_looks_again() {
    let [a, mut b] = nodes::<2>(0).await;
    let known = a.deliver("ann", "known").await;
    assert_eq!(b.hear(1).await, ["+known"]);
    let mut topic = b.mailroom.subscribe(Some("ann".to_owned().into()), None);
    assert_eq!(hear(&mut topic, 1).await, ["+known"]);
    let mut quiet = b.mailroom.subscribe(Some("eve".to_owned().into()), None);
    let arrival = b.wait_for_ann(known.id).await;

    b.node.hold().await;
    let unheard = a.deliver("ann", "unheard").await;
    a.mailroom.remove(&known.mailbox, known.id).await.unwrap();
    b.follower.heard();
    b.node.discard_held().await;

    assert_eq!(arrival.await.unwrap(), Some(unheard));
    assert_eq!(b.follower.heard(), ["missed"]);
    assert_eq!(b.hear(1).await, ["lagged"]);
    assert_eq!(hear(&mut topic, 1).await, ["lagged"]);
    assert_eq!(hear(&mut quiet, 1).await, ["lagged"]);
    let mut again = b.mailroom.subscribe(None, None);
    assert!(again.try_next().unwrap().is_none(), "what may be gone is no history");
    a.deliver("ann", "next").await;
    assert_eq!(hear(&mut again, 1).await, ["+next"], "and it goes on");
}

/// All nodes change the store concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_nodes_hear_the_same_in_the_same_order() {
    const MAILS: usize = 200;
    let mut rooms = nodes::<3>(0).await;
    let mut tasks = Vec::new();
    for (number, room) in rooms.iter().enumerate() {
        let mailroom = room.mailroom.clone();
        tasks.push(tokio::spawn(async move {
            for mail in 0..MAILS {
                let message = deliver(&mailroom, "ann", &format!("{number}.{mail}")).await;
                if mail % 2 == 0 {
                    assert!(mailroom.remove(&message.mailbox, message.id).await.unwrap());
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut heard = Vec::new();
    for room in &mut rooms {
        heard.push(room.hear(3 * (MAILS + MAILS / 2)).await);
        assert!(room.events.try_next().unwrap().is_none());
        assert_eq!(Some(&room.follower.heard()), heard.last());
    }
    assert!(heard.iter().all(|one| *one == heard[0]));
    let distinct: HashSet<_> = heard[0].iter().collect();
    assert_eq!(distinct.len(), heard[0].len());
}

/// Without a feed there is nothing to follow. Store observers are then notified like node observers.
#[tokio::test]
async fn a_store_of_one_node_is_not_followed() {
    let (observer, follower) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
    let extensions =
        Extensions { hooks: None, node_observers: vec![observer.clone()], store_observers: vec![follower.clone()] };
    let mailroom = Mailroom::new(Settings::default(), Arc::new(MemoryStore::new(Limits::default())), extensions);
    assert!(!mailroom.is_shared());
    mailroom.follow_feed().await;
    let message = deliver(&mailroom, "ann", "mail").await;
    mailroom.set_seen(&message.mailbox, message.id, true).await.unwrap();
    mailroom.remove(&message.mailbox, message.id).await.unwrap();
    for ear in [observer, follower] {
        assert_eq!(ear.heard(), ["+mail", "ann read", "-mail"]);
    }
}
