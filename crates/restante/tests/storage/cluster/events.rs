//! What happens at any node is told at every node: once, and in the same order, also when something was cut off, hung or died
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use restante_testpg::Balancer;

use super::listeners::{END, Heard, Listener, Way, number, what_is_left};
use super::messages::{Letters, Postman};
use super::nodes::{Cluster, Node, local};
use super::stop_flag::StopFlag;
use crate::support::monitor::EventStream;
use crate::support::random::Random;

/// In the last one nothing is deleted.
const MAILBOXES: [&str; 3] = ["anna", "bert", "kept"];
const KEPT: &str = MAILBOXES[2];

#[test]
fn all_nodes_tell_the_same() {
    scene(|_| {});
}

#[test]
fn a_node_that_was_cut_off_tells_what_it_has_missed() {
    scene(|cluster| {
        for _ in 0..2 {
            cluster.nodes[2].cut_while(|| thread::sleep(Duration::from_millis(1500)));
            thread::sleep(Duration::from_millis(300));
        }
    });
}

#[test]
fn a_node_whose_line_hung_tells_what_it_has_missed() {
    scene(|cluster| cluster.nodes[2].hang_while(|| thread::sleep(Duration::from_secs(3))));
}

#[test]
fn all_nodes_tell_the_same_after_the_database_was_killed() {
    scene(|cluster| {
        for _ in 0..2 {
            cluster.kill_database(Duration::from_millis(300));
            thread::sleep(Duration::from_millis(300));
        }
    });
}

/// Mail comes and goes at two nodes while this happens, and all three are listened to.
fn scene(happens: impl FnOnce(&Cluster)) {
    let Some(cluster) = Cluster::start(3, &["--storage-mailboxmsgcap", "0"]) else { return };
    let nodes = cluster.nodes.iter().enumerate();
    let listeners: Vec<(usize, Listener)> =
        nodes.flat_map(|(place, node)| listeners(node).into_iter().map(move |listener| (place, listener))).collect();
    let letters = Letters::default();
    let heard = thread::scope(|scope| {
        let listen = |(node, listener): (usize, Listener)| -> Listening<'_> {
            let (way, mailbox) = (listener.way, listener.mailbox);
            let ends = if mailbox.is_some() { 1 } else { MAILBOXES.len() };
            (node, way, mailbox, scope.spawn(move || listener.listen(ends)))
        };
        let threads: Vec<Listening<'_>> = listeners.into_iter().map(listen).collect();
        let smtp: Vec<_> = cluster.nodes[..2].iter().map(|node| node.smtp.port()).collect();
        bustle(&cluster, &letters, &smtp, || {
            thread::sleep(Duration::from_millis(500));
            happens(&cluster);
            thread::sleep(Duration::from_millis(500));
        });
        let join = |(node, way, mailbox, thread): Listening<'_>| (node, way, mailbox, thread.join().unwrap());
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    let everything = &heard[0].3;
    check(&cluster, &letters, everything);
    for (node, way, mailbox, heard) in &heard {
        let concerns = |event: &&Heard| {
            mailbox.is_none_or(|mailbox| mailbox == event.mailbox())
                && (event.is_stored() || matches!(way, Way::Events | Way::Socket))
        };
        let expected: Vec<&Heard> = everything.iter().filter(concerns).collect();
        let heard: Vec<&Heard> = heard.iter().collect();
        assert!(heard == expected, "node {node}, {way:?} {mailbox:?}: {}", difference(&heard, &expected));
    }
}

/// A node, how and to what it is listened to, and the thread that does it.
type Listening<'scope> = (usize, Way, Option<&'static str>, ScopedJoinHandle<'scope, Vec<Heard>>);

/// Those who listen at a node; the first one to everything.
fn listeners(node: &Node) -> Vec<Listener> {
    let ways = [
        (Way::Events, None),
        (Way::Socket, None),
        (Way::FirstSocket, None),
        (Way::Events, Some(MAILBOXES[0])),
        (Way::Socket, Some(MAILBOXES[1])),
        (Way::FirstSocket, Some(MAILBOXES[0])),
        (Way::Waits, Some(KEPT)),
    ];
    ways.into_iter().map(|(way, mailbox)| Listener::open(node, way, mailbox)).collect()
}

/// Mail is sent to these ports, and deleted at any node, for as long as something happens, and then the last letter.
fn bustle(cluster: &Cluster, letters: &Letters, smtp: &[u16], happens: impl FnOnce()) {
    let end = StopFlag::default();
    thread::scope(|scope| {
        for place in 0..4 {
            let (end, smtp) = (&end, local(smtp[place % smtp.len()]));
            scope.spawn(move || {
                let mut postman = Postman::new(letters, smtp);
                for round in 0.. {
                    let mailboxes = if round % 4 == 0 { &MAILBOXES[..] } else { &MAILBOXES[round % 3..][..1] };
                    postman.send(&format!("{place}-{round}"), mailboxes, 100);
                    // It need not be much.
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
        happens();
    });
    Postman::new(letters, local(smtp[0])).send(END, &MAILBOXES, 100);
}

/// Finds mail at one node, and deletes it at another one.
fn delete(cluster: &Cluster, mailbox: &str, mut random: Random, end: &StopFlag) {
    let readers: Vec<_> = cluster.nodes.iter().map(Node::reader).collect();
    while !end.is_set() {
        thread::sleep(Duration::from_millis(20));
        let [finder, deleter] = [random.below(readers.len()), random.below(readers.len())];
        let Ok(list) = readers[finder].list(mailbox) else { continue };
        for summary in list.iter().filter(|_| random.below(2) == 0) {
            // Who is just cut off, or dead, does not delete it, or it does and cannot say so.
            let _ = readers[deleter].ask("DELETE", &format!("{mailbox}/{}", number(&summary["id"])));
        }
    }
}

/// What was told is what has happened: every letter was stored, and what is left is what is there.
fn check(cluster: &Cluster, letters: &Letters, everything: &[Heard]) {
    let left = what_is_left(everything);
    for node in &cluster.nodes {
        for mailbox in MAILBOXES {
            let list = node.reader().list(mailbox).unwrap();
            let ids: BTreeSet<u64> = list.iter().map(|summary| number(&summary["id"])).collect();
            assert_eq!(left.get(mailbox), Some(&ids), "{mailbox}");
        }
    }
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in everything {
        if let Heard::Stored { mailbox, subject, .. } = event {
            subjects.entry(mailbox).or_default().insert(subject);
        }
    }
    for mailbox in MAILBOXES {
        let sent = letters.acknowledged(mailbox);
        let sent: BTreeSet<&str> = sent.iter().map(String::as_str).collect();
        assert_eq!(subjects.get(mailbox), Some(&sent), "{mailbox}");
    }
    let deleted = everything.iter().filter(|event| !event.is_stored()).count();
    println!("{} events, {deleted} of them deletions", everything.len());
    assert!(deleted > 0);
}

/// Where two differ first.
fn difference(heard: &[&Heard], expected: &[&Heard]) -> String {
    let place =
        heard.iter().zip(expected).position(|(one, other)| one != other).unwrap_or(heard.len().min(expected.len()));
    let near = |of: &[&Heard]| format!("{:?}", of.iter().skip(place.saturating_sub(2)).take(5).collect::<Vec<_>>());
    format!(
        "{} instead of {} events; from {place} on {} instead of {}",
        heard.len(),
        expected.len(),
        near(heard),
        near(expected)
    )
}

#[test]
fn who_loses_a_node_goes_on_at_another_one() {
    const KILLS: usize = 6;
    let Some(cluster) = Cluster::start(3, &["--storage-mailboxmsgcap", "0"]) else { return };
    let letters = Letters::default();
    let balancer = Balancer::new(cluster.ports().0);
    let everything = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&cluster));
        bustle(&cluster, &letters, &[balancer.port()], || {
            for kill in 0..KILLS {
                thread::sleep(Duration::from_millis(400));
                cluster.nodes[kill % 3].kill_while(|| thread::sleep(Duration::from_millis(100)));
            }
            thread::sleep(Duration::from_millis(400));
        });
        let (heard, losses) = follower.join().unwrap();
        assert!(losses >= KILLS / 2, "only {losses} nodes were lost");
        heard
    });
    check(&cluster, &letters, &everything);
}

/// Also where next to nothing is left of what happened.
#[test]
fn a_node_that_has_just_started_knows_where_others_were() {
    let Some(cluster) = Cluster::start(2, &[]) else { return };
    let (letters, [old, new]) = (Letters::default(), [&cluster.nodes[0], &cluster.nodes[1]]);
    let mut postman = Postman::new(&letters, old.smtp);
    let mut events = EventStream::open(&old.server(), "/api/v2/events", "");
    postman.send("deleted", &["bob"], 100);
    assert_eq!(new.reader().ask("DELETE", "bob").unwrap().0, 200);
    let [stored, deleted] = [events.next().unwrap(), events.next().unwrap()];
    postman.send("kept", &["bob"], 100);
    new.kill_while(|| {});
    for (last, expected) in [(stored, &["message-deleted", "message-stored"][..]), (deleted, &["message-stored"])] {
        let last = format!("Last-Event-ID: {}\r\n", last.id);
        let mut events = EventStream::open(&new.server(), "/api/v2/events", &last);
        let told: Vec<String> = expected.iter().map(|_| events.next().unwrap().name).collect();
        assert_eq!(told, expected);
    }
}

/// Listens to everything at one node after the other, each until it is lost. What was heard, and how many were lost.
fn follow(cluster: &Cluster) -> (Vec<Heard>, usize) {
    let (mut heard, mut last, mut ends) = (Vec::new(), None, 0);
    for losses in 0.. {
        let position = last.as_ref().map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        let mut events = EventStream::open(&cluster.nodes[losses % 3].server(), "/api/v2/events", &position);
        while let Some(event) = events.next() {
            let told = Heard::frame(&event.data);
            ends += usize::from(told.is_end());
            heard.push(told);
            last = Some(event.id);
            if ends == MAILBOXES.len() {
                return (heard, losses);
            }
        }
    }
    unreachable!("it follows until the end")
}
