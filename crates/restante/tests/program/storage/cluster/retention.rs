//! Expired messages are deleted once, whichever node does it.

use std::collections::BTreeSet;
use std::thread;

use super::messages::{RetryingSender, SentMessages};
use super::nodes::{Cluster, Node};
use super::subscribers::{ReceivedEvent, Subscriber, Transport, remaining_messages};
use crate::support::webhook_receiver::{Receiver, WebhookRequest};

/// More than one retention step deletes.
const MESSAGES: usize = 300;

#[test]
fn expired_messages_are_deleted_once_for_all_nodes() {
    let receiver = Receiver::start();
    let arguments = ["--storage-retentionperiod", "2s", "--webhook-private", "--webhook-urls", &receiver.url("/hook")];
    let Some(cluster) = Cluster::start(3, &arguments) else { return };
    let events = send_and_listen(&cluster);
    assert!(events.iter().all(|node_events| *node_events == events[0]), "the events of the nodes differ");
    assert!(remaining_messages(&events[0]).values().all(BTreeSet::is_empty));
    let by_each: Vec<u64> = cluster.nodes.iter().map(deletions).collect();
    assert_eq!(by_each.iter().sum::<u64>(), MESSAGES as u64, "{by_each:?}");
    for node in &cluster.nodes {
        assert!(node.reader().list("bob").unwrap().is_empty());
    }
    let requests = receiver.wait_for(2 * MESSAGES);
    let distinct: BTreeSet<String> = requests.iter().map(WebhookRequest::short).collect();
    assert_eq!((requests.len(), distinct.len()), (2 * MESSAGES, 2 * MESSAGES), "an event was sent twice");
}

/// Sends messages to all nodes, and receives the events of each until all messages are deleted.
fn send_and_listen(cluster: &Cluster) -> Vec<Vec<ReceivedEvent>> {
    let messages = SentMessages::default();
    let open = |node| Subscriber::open(node, Transport::Events, None);
    let subscribers: Vec<Subscriber> = cluster.nodes.iter().map(open).collect();
    thread::scope(|scope| {
        for (index, node) in cluster.nodes.iter().enumerate() {
            let mut sender = RetryingSender::new(&messages, node.smtp);
            let subjects = (0..MESSAGES / 3).map(move |number| format!("{index}-{number}"));
            scope.spawn(move || subjects.for_each(|subject| sender.send(&subject, &["bob"], 100)));
        }
        let threads: Vec<_> =
            subscribers.into_iter().map(|subscriber| scope.spawn(|| subscriber.take(2 * MESSAGES))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns the number of messages that a node has deleted because of their age.
fn deletions(node: &Node) -> u64 {
    node.server().json("/debug/vars")["retention"]["DeletesTotal"].as_u64().unwrap()
}
