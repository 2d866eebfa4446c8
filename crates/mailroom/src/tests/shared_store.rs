//! Several mailrooms that share a store: each change is published on all of them, once and in the same order.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::naming::Naming;
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use restante_teststore::{Node, SharedStore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::events::{Event, Lagged, MarkChange, Subscription};
use crate::hooks::{Extensions, Observer};
use crate::{ArrivalSource, DeletionCause, DeliveryOutcome, Mailroom, Settings};

const LONG: Duration = Duration::from_mins(10);
/// How long a test waits for an expected event.
const EVENT_TIMEOUT: Duration = Duration::from_mins(1);

/// An observer that records its notifications.
#[derive(Default)]
struct RecordingObserver(Mutex<Vec<String>>);

impl RecordingObserver {
    fn record(&self, notification: String) {
        self.0.lock().unwrap().push(notification);
    }

    fn take_records(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for RecordingObserver {
    fn message_stored(&self, summary: &Summary) {
        self.record(format!("+{}", summary.headline.subject()));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.record(format!("-{}", summary.headline.subject()));
    }

    fn mark_changed(&self, MarkChange { mailbox, changed, marks, .. }: &MarkChange) {
        if changed.seen {
            self.record(format!("{mailbox} {}", if marks.seen { "read" } else { "unread" }));
        }
    }

    fn events_missed(&self) {
        self.record("missed".to_owned());
    }
}

/// A node with an observer of each kind and a subscription.
struct TestNode {
    node: Arc<Node>,
    mailroom: Arc<Mailroom>,
    node_observer: Arc<RecordingObserver>,
    store_observer: Arc<RecordingObserver>,
    events: Subscription,
}

/// Creates `COUNT` nodes that share a store, which keeps `cap` messages per mailbox.
async fn nodes<const COUNT: usize>(cap: usize) -> [TestNode; COUNT] {
    let store = SharedStore::new(Limits { messages_per_mailbox: cap, ..Limits::default() });
    let mut test_nodes = Vec::new();
    for _ in 0..COUNT {
        test_nodes.push(start_node(store.node().await));
    }
    test_nodes.try_into().ok().expect("COUNT nodes were created")
}

fn start_node(node: Arc<Node>) -> TestNode {
    let (node_observer, store_observer) =
        (Arc::new(RecordingObserver::default()), Arc::new(RecordingObserver::default()));
    let extensions = Extensions {
        hooks: None,
        node_observers: vec![node_observer.clone()],
        store_observers: vec![store_observer.clone()],
    };
    let settings = Settings { history: 10, ..Settings::default() };
    let mailroom = Arc::new(Mailroom::new(settings, node.clone(), extensions));
    assert!(mailroom.is_shared());
    let feed_reader = mailroom.clone();
    tokio::spawn(async move { feed_reader.follow_feed().await });
    let events = mailroom.subscribe(None, None);
    TestNode { node, mailroom, node_observer, store_observer, events }
}

impl TestNode {
    /// Delivers a message with this subject.
    async fn deliver(&self, to: &str, subject: &str) -> Summary {
        deliver(&self.mailroom, to, subject).await
    }

    /// Starts a request that has found no message after this one in Ann's mailbox and waits.
    async fn wait_for_ann(&self, after: MessageId) -> JoinHandle<Option<Message>> {
        let mut arrivals = self.mailroom.arrivals(ArrivalSource::Mailbox("ann".to_owned().into()), after, LONG);
        let waiting = tokio::spawn(async move {
            let arrival = timeout(EVENT_TIMEOUT, arrivals.next()).await.expect("the request is woken");
            arrival.unwrap()
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!waiting.is_finished());
        waiting
    }

    /// Returns the next events in the notation of the observers.
    async fn next_events(&mut self, count: usize) -> Vec<String> {
        next_events(&mut self.events, count).await
    }
}

async fn deliver(mailroom: &Mailroom, to: &str, subject: &str) -> Summary {
    let address = Address::parse(&format!("{to}@x.org"), Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        login: None,
        key: None,
        listener: None,
        from: None,
        recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, format!("Subject: {subject}\r\n\r\n").into()).await.unwrap() {
        DeliveryOutcome::Stored(mut copies) => copies.remove(0),
        outcome => panic!("{outcome:?}"),
    }
}

async fn next_events(events: &mut Subscription, count: usize) -> Vec<String> {
    let mut received = Vec::new();
    for _ in 0..count {
        let published = timeout(EVENT_TIMEOUT, events.next()).await.expect("an event is published");
        received.push(match published.map(|published| published.event().clone()) {
            Ok(Event::Stored(summary, _)) => format!("+{}", summary.headline.subject()),
            Ok(Event::Deleted(summary)) => format!("-{}", summary.headline.subject()),
            Err(Lagged) => "lagged".to_owned(),
        });
    }
    received
}

#[tokio::test]
async fn change_is_published_on_all_nodes_and_observed_where_it_was_made() {
    let mut test_nodes = nodes::<3>(0).await;
    let [a, b, c] = &test_nodes;
    let first = a.deliver("ann", "first").await;
    b.deliver("bob", "second").await;
    assert!(b.mailroom.set_seen(&first.mailbox, first.id, true).await.unwrap());
    assert!(c.mailroom.remove(&first.mailbox, first.id).await.unwrap());
    a.deliver("bob", "third").await;
    assert_eq!(a.mailroom.purge(&"bob".to_owned().into()).await.unwrap(), 2);
    c.deliver("ann", "last").await;

    for test_node in &mut test_nodes {
        assert_eq!(
            test_node.next_events(7).await,
            ["+first", "+second", "-first", "+third", "-second", "-third", "+last"]
        );
        assert!(test_node.events.try_next().unwrap().is_none());
        let observed = ["+first", "+second", "ann read", "-first", "+third", "-second", "-third", "+last"];
        assert_eq!(test_node.store_observer.take_records(), observed);
    }
    let [a, b, c] = &test_nodes;
    assert_eq!(a.node_observer.take_records(), ["+first", "+third", "-second", "-third"]);
    assert_eq!(b.node_observer.take_records(), ["+second", "ann read"]);
    assert_eq!(c.node_observer.take_records(), ["-first", "+last"]);
    let counts = test_nodes.each_ref().map(|test_node| test_node.mailroom.counts());
    let done =
        counts.each_ref().map(|counts| (counts.received, counts.stored, counts.deleted_by(DeletionCause::Request)));
    assert_eq!(done, [(2, 2, 2), (1, 1, 0), (1, 1, 1)], "each node counts its own changes");
}

#[tokio::test]
async fn eviction_is_published_after_the_message_that_caused_it() {
    let [a, mut b] = nodes::<2>(1).await;
    a.deliver("ann", "old").await;
    a.deliver("ann", "new").await;
    assert_eq!(b.next_events(3).await, ["+old", "+new", "-old"]);
    assert_eq!(
        next_events(&mut b.mailroom.subscribe(None, None), 1).await,
        ["+new"],
        "the history has no deleted messages"
    );
    assert_eq!(b.mailroom.counts().deleted_by(DeletionCause::Limit), 0);
    assert_eq!(a.mailroom.counts().deleted_by(DeletionCause::Limit), 1);
}

#[tokio::test]
async fn waiting_request_is_woken_by_any_node() {
    let [a, b, c] = nodes::<3>(0).await;
    let mut waiting = Vec::new();
    for test_node in [&a, &b, &c] {
        waiting.push(test_node.wait_for_ann(MessageId::ZERO).await);
    }
    let message = a.deliver("ann", "awaited").await;
    for arrival in waiting {
        assert_eq!(arrival.await.unwrap(), Message::group([message.clone()]).pop());
    }
}

#[tokio::test]
async fn subscriber_resumes_on_another_node() {
    let [mut a, mut b] = nodes::<2>(0).await;
    for subject in ["1", "2", "3"] {
        a.deliver(if subject == "2" { "bob" } else { "ann" }, subject).await;
    }
    b.next_events(3).await;
    let first = a.events.next().await.unwrap().position();
    assert_eq!(first.to_string().split_once('-').unwrap().0, "0", "the run of a shared store is 0");
    for (topic, expected) in [(None, vec!["+2", "+3", "+4"]), (Some("ann"), vec!["+3", "+4"])] {
        let mut resumed = b.mailroom.subscribe(topic.map(|name| name.to_owned().into()), Some(first));
        assert!(!resumed.has_gap());
        if topic.is_none() {
            a.deliver("ann", "4").await;
        }
        assert_eq!(next_events(&mut resumed, expected.len()).await, expected);
        assert!(resumed.try_next().unwrap().is_none());
    }
}

#[tokio::test]
async fn resuming_on_a_node_that_is_behind_repeats_nothing() {
    let [mut a, mut b] = nodes::<2>(0).await;
    a.deliver("ann", "1").await;
    assert_eq!(b.next_events(1).await, ["+1"]);
    b.node.hold().await;
    a.deliver("ann", "2").await;
    a.deliver("ann", "3").await;
    a.next_events(1).await;
    let second = a.events.next().await.unwrap().position();
    let mut moved = b.mailroom.subscribe(None, Some(second));
    assert!(!moved.has_gap());
    b.node.release().await;
    a.deliver("ann", "4").await;
    assert_eq!(next_events(&mut moved, 2).await, ["+3", "+4"]);
    assert_eq!(b.next_events(3).await, ["+2", "+3", "+4"]);
}

#[tokio::test]
async fn starting_node_reads_the_backlog_first() {
    let store = SharedStore::new(Limits::default());
    let (mut old, node) = (start_node(store.node().await), store.starting_node().await);
    let settings = Settings { history: 10, ..Settings::default() };
    let new = Arc::new(Mailroom::new(settings, node.clone(), Extensions::default()));
    old.deliver("ann", "1").await;
    old.deliver("ann", "2").await;
    let first = old.events.next().await.unwrap().position();
    let (backlog_reader, feed_reader) = (new.clone(), new.clone());
    let (mut backlog, release) = (Box::pin(backlog_reader.read_feed_backlog()), node.release());
    assert!(timeout(Duration::from_millis(10), &mut backlog).await.is_err(), "the backlog is not available yet");
    tokio::join!(backlog, release);

    let (mut resumed, mut late) = (new.subscribe(None, Some(first)), new.subscribe(None, None));
    assert!(!resumed.has_gap());
    tokio::spawn(async move { feed_reader.follow_feed().await });
    old.deliver("ann", "3").await;
    assert_eq!(next_events(&mut resumed, 2).await, ["+2", "+3"]);
    assert_eq!(next_events(&mut late, 3).await, ["+1", "+2", "+3"]);
}

#[tokio::test]
async fn gap_in_the_feed_notifies_observers_requests_and_subscribers() {
    let [a, mut b] = nodes::<2>(0).await;
    let known_message = a.deliver("ann", "known").await;
    assert_eq!(b.next_events(1).await, ["+known"]);
    let mut topic = b.mailroom.subscribe(Some("ann".to_owned().into()), None);
    assert_eq!(next_events(&mut topic, 1).await, ["+known"]);
    let mut quiet = b.mailroom.subscribe(Some("eve".to_owned().into()), None);
    let arrival = b.wait_for_ann(known_message.id).await;

    b.node.hold().await;
    let missed_message = a.deliver("ann", "missed").await;
    a.mailroom.remove(&known_message.mailbox, known_message.id).await.unwrap();
    b.store_observer.take_records();
    b.node.discard_held().await;

    assert_eq!(arrival.await.unwrap(), Message::group([missed_message]).pop());
    assert_eq!(b.store_observer.take_records(), ["missed"]);
    assert_eq!(b.next_events(1).await, ["lagged"]);
    assert_eq!(next_events(&mut topic, 1).await, ["lagged"]);
    assert_eq!(next_events(&mut quiet, 1).await, ["lagged"]);
    let mut again = b.mailroom.subscribe(None, None);
    assert!(again.try_next().unwrap().is_none(), "the history was cleared");
    a.deliver("ann", "next").await;
    assert_eq!(next_events(&mut again, 1).await, ["+next"], "new events are published again");
}

/// All nodes change the store concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_nodes_publish_the_same_order() {
    const MESSAGES: usize = 200;
    let mut test_nodes = nodes::<3>(0).await;
    let mut tasks = Vec::new();
    for (number, test_node) in test_nodes.iter().enumerate() {
        let mailroom = test_node.mailroom.clone();
        tasks.push(tokio::spawn(async move {
            for index in 0..MESSAGES {
                let message = deliver(&mailroom, "ann", &format!("{number}.{index}")).await;
                if index % 2 == 0 {
                    assert!(mailroom.remove(&message.mailbox, message.id).await.unwrap());
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut received = Vec::new();
    for test_node in &mut test_nodes {
        received.push(test_node.next_events(3 * (MESSAGES + MESSAGES / 2)).await);
        assert!(test_node.events.try_next().unwrap().is_none());
        assert_eq!(Some(&test_node.store_observer.take_records()), received.last());
    }
    assert!(received.iter().all(|events| *events == received[0]));
    let distinct: HashSet<_> = received[0].iter().collect();
    assert_eq!(distinct.len(), received[0].len());
}

/// Without a feed there is nothing to follow. Store observers are then notified like node observers.
#[tokio::test]
async fn unshared_store_has_no_feed() {
    let (node_observer, store_observer) =
        (Arc::new(RecordingObserver::default()), Arc::new(RecordingObserver::default()));
    let extensions = Extensions {
        hooks: None,
        node_observers: vec![node_observer.clone()],
        store_observers: vec![store_observer.clone()],
    };
    let mailroom = Mailroom::new(Settings::default(), Arc::new(MemoryStore::new(Limits::default())), extensions);
    assert!(!mailroom.is_shared());
    mailroom.follow_feed().await;
    let message = deliver(&mailroom, "ann", "mail").await;
    mailroom.set_seen(&message.mailbox, message.id, true).await.unwrap();
    mailroom.remove(&message.mailbox, message.id).await.unwrap();
    for observer in [node_observer, store_observer] {
        assert_eq!(observer.take_records(), ["+mail", "ann read", "-mail"]);
    }
}
