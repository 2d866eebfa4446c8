//! What is too old goes once, whichever of the nodes notices it.

use std::collections::BTreeSet;
use std::thread;

use super::listeners::{Heard, Listener, Way, what_is_left};
use super::messages::{Letters, Postman};
use super::nodes::{Cluster, Node};
use crate::support::webhook_receiver::{Receiver, Told};

/// More than go at once.
const LETTERS: usize = 300;

#[test]
fn old_mail_goes_once_for_all_nodes() {
    let receiver = Receiver::start();
    let arguments = ["--storage-retentionperiod", "2s", "--webhook-private", "--webhook-urls", &receiver.url("/told")];
    let Some(cluster) = Cluster::start(3, &arguments) else { return };
    let heard = send_and_listen(&cluster);
    assert!(heard.iter().all(|of| *of == heard[0]), "nodes tell different things");
    assert!(what_is_left(&heard[0]).values().all(BTreeSet::is_empty));
    let by_each: Vec<u64> = cluster.nodes.iter().map(deletions).collect();
    assert_eq!(by_each.iter().sum::<u64>(), LETTERS as u64, "{by_each:?}");
    for node in &cluster.nodes {
        assert!(node.reader().list("bob").unwrap().is_empty());
    }
    let told = receiver.wait_for(2 * LETTERS);
    let distinct: BTreeSet<String> = told.iter().map(Told::short).collect();
    assert_eq!((told.len(), distinct.len()), (2 * LETTERS, 2 * LETTERS), "webhooks are told once");
}

/// Sends letters to all nodes, and listens to each until all of them have come and gone.
fn send_and_listen(cluster: &Cluster) -> Vec<Vec<Heard>> {
    let letters = Letters::default();
    let open = |node| Listener::open(node, Way::Events, None);
    let listeners: Vec<Listener> = cluster.nodes.iter().map(open).collect();
    thread::scope(|scope| {
        for (place, node) in cluster.nodes.iter().enumerate() {
            let mut postman = Postman::new(&letters, node.smtp);
            let subjects = (0..LETTERS / 3).map(move |number| format!("{place}-{number}"));
            scope.spawn(move || subjects.for_each(|subject| postman.send(&subject, &["bob"], 100)));
        }
        let threads: Vec<_> = listeners.into_iter().map(|of| scope.spawn(|| of.take(2 * LETTERS))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// How much a node has deleted because it was too old.
fn deletions(node: &Node) -> u64 {
    node.server().json("/debug/vars")["retention"]["DeletesTotal"].as_u64().unwrap()
}
