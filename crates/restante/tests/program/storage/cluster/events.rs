//! The events of every node reach the subscribers of all nodes: once and in the same order, also after a disconnect, a hang or a
//! crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use restante_testpg::FaultProxy;

use super::messages::{RetryingSender, SentMessages};
use super::nodes::{Cluster, Node, local};
use super::stop_flag::StopFlag;
use super::subscribers::{END, ReceivedEvent, Subscriber, Transport, number, remaining_messages};
use crate::support::TEST_TIMEOUT;
use crate::support::monitor::EventStream;
use crate::support::random::Random;

/// No messages are deleted in the last one.
const MAILBOXES: [&str; 3] = ["anna", "bert", "kept"];
const UNDELETED: &str = MAILBOXES[2];

#[test]
fn all_nodes_send_the_same_events() {
    run_scenario(|_| {});
}

#[test]
fn disconnected_node_sends_missed_events() {
    run_scenario(|cluster| {
        for _ in 0..2 {
            cluster.nodes[2].disconnect_while(|| thread::sleep(Duration::from_millis(1500)));
            thread::sleep(Duration::from_millis(300));
        }
    });
}

#[test]
fn node_with_hanging_database_connection_sends_missed_events() {
    run_scenario(|cluster| cluster.nodes[2].hang_while(|| thread::sleep(Duration::from_secs(3))));
}

#[test]
fn all_nodes_send_the_same_events_after_the_database_was_killed() {
    run_scenario(|cluster| {
        for _ in 0..2 {
            cluster.kill_database(Duration::from_millis(300));
            thread::sleep(Duration::from_millis(300));
        }
    });
}

/// Sends and deletes messages at two nodes during an action, with subscribers at all three nodes.
fn run_scenario(action: impl FnOnce(&Cluster)) {
    let Some(cluster) = Cluster::start(3, &["--storage-mailboxmsgcap", "0"]) else { return };
    let nodes = cluster.nodes.iter().enumerate();
    let subscribers: Vec<(usize, Subscriber)> = nodes
        .flat_map(|(index, node)| subscribers(node).into_iter().map(move |subscriber| (index, subscriber)))
        .collect();
    let messages = SentMessages::default();
    let received = thread::scope(|scope| {
        let receive_until_end = |(node, subscriber): (usize, Subscriber)| -> SubscriberThread<'_> {
            let (transport, mailbox) = (subscriber.transport, subscriber.mailbox);
            let ends = if mailbox.is_some() { 1 } else { MAILBOXES.len() };
            (node, transport, mailbox, scope.spawn(move || subscriber.receive_until_end(ends)))
        };
        let threads: Vec<SubscriberThread<'_>> = subscribers.into_iter().map(receive_until_end).collect();
        let smtp: Vec<_> = cluster.nodes[..2].iter().map(|node| node.smtp.port()).collect();
        send_and_delete(&cluster, &messages, &smtp, || {
            thread::sleep(Duration::from_millis(500));
            action(&cluster);
            thread::sleep(Duration::from_millis(500));
        });
        let join = |(node, transport, mailbox, thread): SubscriberThread<'_>| {
            (node, transport, mailbox, thread.join().unwrap())
        };
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    let everything = &received[0].3;
    check(&cluster, &messages, everything);
    for (node, transport, mailbox, received) in &received {
        let concerns = |event: &&ReceivedEvent| {
            mailbox.is_none_or(|mailbox| mailbox == event.mailbox())
                && (event.is_stored() || matches!(transport, Transport::Events | Transport::Socket))
        };
        let expected: Vec<&ReceivedEvent> = everything.iter().filter(concerns).collect();
        let received: Vec<&ReceivedEvent> = received.iter().collect();
        assert!(received == expected, "node {node}, {transport:?} {mailbox:?}: {}", difference(&received, &expected));
    }
}

/// The index of the node, the transport, the mailbox, and the thread that receives.
type SubscriberThread<'scope> = (usize, Transport, Option<&'static str>, ScopedJoinHandle<'scope, Vec<ReceivedEvent>>);

/// Opens the subscribers of a node. The first one receives all events.
fn subscribers(node: &Node) -> Vec<Subscriber> {
    let transports = [
        (Transport::Events, None),
        (Transport::Socket, None),
        (Transport::SocketV1, None),
        (Transport::Events, Some(MAILBOXES[0])),
        (Transport::Socket, Some(MAILBOXES[1])),
        (Transport::SocketV1, Some(MAILBOXES[0])),
        (Transport::LongPoll, Some(UNDELETED)),
    ];
    transports.into_iter().map(|(transport, mailbox)| Subscriber::open(node, transport, mailbox)).collect()
}

/// Sends messages to these ports, and deletes messages at any node, during an action. Sends the last message after that.
fn send_and_delete(cluster: &Cluster, messages: &SentMessages, smtp: &[u16], action: impl FnOnce()) {
    let end = StopFlag::default();
    thread::scope(|scope| {
        for index in 0..4 {
            let (end, smtp) = (&end, local(smtp[index % smtp.len()]));
            scope.spawn(move || {
                let mut sender = RetryingSender::new(messages, smtp);
                for round in 0.. {
                    let mailboxes = if round % 4 == 0 { &MAILBOXES[..] } else { &MAILBOXES[round % 3..][..1] };
                    sender.send(&format!("{index}-{round}"), mailboxes, 100);
                    // The load can be low.
                    thread::sleep(Duration::from_millis(20));
                    if end.is_set() {
                        return;
                    }
                }
            });
        }
        for (mailbox, seed) in [(MAILBOXES[0], 1), (MAILBOXES[1], 3)] {
            let end = &end;
            scope.spawn(move || delete(cluster, mailbox, Random(seed), end));
        }
        let _end = end.set_on_drop();
        action();
    });
    RetryingSender::new(messages, local(smtp[0])).send(END, &MAILBOXES, 100);
}

/// Finds messages at one node, and deletes them at another.
fn delete(cluster: &Cluster, mailbox: &str, mut random: Random, end: &StopFlag) {
    let readers: Vec<_> = cluster.nodes.iter().map(Node::reader).collect();
    while !end.is_set() {
        thread::sleep(Duration::from_millis(20));
        let [finder, deleter] = [random.below(readers.len()), random.below(readers.len())];
        let Ok(list) = readers[finder].list(mailbox) else { continue };
        for summary in list.iter().filter(|_| random.below(2) == 0) {
            // A disconnected or killed node deletes nothing, or cannot confirm it.
            let _ = readers[deleter].request("DELETE", &format!("{mailbox}/{}", number(&summary["id"])));
        }
    }
}

/// Checks the events against the content: every message was stored, and the remaining messages are listed.
fn check(cluster: &Cluster, messages: &SentMessages, everything: &[ReceivedEvent]) {
    let left = remaining_messages(everything);
    for node in &cluster.nodes {
        for mailbox in MAILBOXES {
            let list = node.reader().list(mailbox).unwrap();
            let ids: BTreeSet<u64> = list.iter().map(|summary| number(&summary["id"])).collect();
            assert_eq!(left.get(mailbox), Some(&ids), "{mailbox}");
        }
    }
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in everything {
        if let ReceivedEvent::Stored { mailbox, subject, .. } = event {
            subjects.entry(mailbox).or_default().insert(subject);
        }
    }
    for mailbox in MAILBOXES {
        let sent = messages.acknowledged(mailbox);
        let sent: BTreeSet<&str> = sent.iter().map(String::as_str).collect();
        assert_eq!(subjects.get(mailbox), Some(&sent), "{mailbox}");
    }
    let deleted = everything.iter().filter(|event| !event.is_stored()).count();
    println!("{} events, {deleted} of them deletions", everything.len());
    assert!(deleted > 0);
}

/// Describes the first difference of two lists.
fn difference(received: &[&ReceivedEvent], expected: &[&ReceivedEvent]) -> String {
    let index = received
        .iter()
        .zip(expected)
        .position(|(one, other)| one != other)
        .unwrap_or(received.len().min(expected.len()));
    let near = |events: &[&ReceivedEvent]| {
        format!("{:?}", events.iter().skip(index.saturating_sub(2)).take(5).collect::<Vec<_>>())
    };
    format!(
        "{} instead of {} events; from {index} on {} instead of {}",
        received.len(),
        expected.len(),
        near(received),
        near(expected)
    )
}

#[test]
fn subscriber_continues_at_another_node() {
    const KILLS: usize = 6;
    let Some(cluster) = Cluster::start(3, &["--storage-mailboxmsgcap", "0"]) else { return };
    let messages = SentMessages::default();
    let balancer = FaultProxy::balancing(cluster.ports().0);
    let receiving = AtomicUsize::new(0);
    // If too few connections receive events, the assertion below fails, when all threads have ended.
    let wait_for_connections = |count| {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while receiving.load(Relaxed) < count && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    };
    // A subscriber that connects later does not get all earlier events.
    let first = subscribe(&cluster, 0, "");
    let everything = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&cluster, first, &receiving));
        send_and_delete(&cluster, &messages, &[balancer.port()], || {
            for kill in 0..KILLS {
                wait_for_connections(kill + 1);
                cluster.nodes[kill % 3].kill_while(|| thread::sleep(Duration::from_millis(100)));
            }
            wait_for_connections(KILLS + 1);
        });
        let (received, losses) = follower.join().unwrap();
        assert!(losses >= KILLS, "only {losses} connections were lost");
        received
    });
    check(&cluster, &messages, &everything);
}

/// A position is valid at a restarted node, even if almost all of its history is deleted.
#[test]
fn restarted_node_accepts_positions_of_other_nodes() {
    let Some(cluster) = Cluster::start(2, &[]) else { return };
    let (messages, [old, new]) = (SentMessages::default(), [&cluster.nodes[0], &cluster.nodes[1]]);
    let mut sender = RetryingSender::new(&messages, old.smtp);
    let mut events = EventStream::open(&old.server(), "/api/v2/events", "");
    sender.send("deleted", &["bob"], 100);
    assert_eq!(new.reader().request("DELETE", "bob").unwrap().0, 200);
    let [stored, deleted] = [events.next().unwrap(), events.next().unwrap()];
    sender.send("kept", &["bob"], 100);
    new.kill_while(|| {});
    for (last, expected) in [(stored, &["message-deleted", "message-stored"][..]), (deleted, &["message-stored"])] {
        let last = format!("Last-Event-ID: {}\r\n", last.id);
        let mut events = EventStream::open(&new.server(), "/api/v2/events", &last);
        let names: Vec<String> = expected.iter().map(|_| events.next().unwrap().name).collect();
        assert_eq!(names, expected);
    }
}

/// Subscribes to all events at the node that follows after this number of lost connections, from this position on.
fn subscribe(cluster: &Cluster, losses: usize, position: &str) -> EventStream {
    EventStream::open(&cluster.nodes[losses % 3].server(), "/api/v2/events", position)
}

/// Receives all events from one node after the other, each until it is killed. Returns the events and the number of lost connections. Sets
/// `receiving` to the number of connections on which an event has arrived.
fn follow(cluster: &Cluster, first: EventStream, receiving: &AtomicUsize) -> (Vec<ReceivedEvent>, usize) {
    let (mut received, mut last, mut ends, mut events) = (Vec::new(), None, 0, first);
    for losses in 0.. {
        while let Some(event) = events.next() {
            receiving.store(losses + 1, Relaxed);
            let copies = ReceivedEvent::of_message(&event.data);
            ends += copies.iter().filter(|copy| copy.is_end()).count();
            received.extend(copies);
            last = Some(event.id);
            if ends == MAILBOXES.len() {
                return (received, losses);
            }
        }
        let position = last.as_ref().map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        events = subscribe(cluster, losses + 1, &position);
    }
    unreachable!("the loop ends with the last message")
}
