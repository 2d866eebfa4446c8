//! Nodes and their database are killed, and lines between them are cut and hang, while mail comes in. How long is said by
//! `RESTANTE_CLUSTER_SECONDS`; a run that failed is repeated with the seed that it printed, in `RESTANTE_CLUSTER_SEED`, as far as
//! threads can be repeated.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use restante_testpg::Balancer;

use super::messages::{Letters, Postman, is_whole, list, subject};
use super::nodes::{Cluster, Node, local};
use super::stop_flag::StopFlag;
use crate::support::random::{Random, setting};
use crate::support::rest::Reader;

const SECONDS: u64 = 18;
/// How often each kind of trouble happens at least.
const ROUNDS: usize = 3;
const SENDERS: usize = 8;
/// The cap of every mailbox. One of them gets more.
const CAP: usize = 100;
const CROWDED: &str = "crowded";
/// How many letters each of the others gets, which leaves room for those that are there twice.
const LETTERS: usize = 30;

#[test]
fn what_was_acknowledged_survives_every_storm() {
    let cap = CAP.to_string();
    let Some(cluster) = Cluster::durable(3, &["--storage-mailboxmsgcap", &cap]) else { return };
    let mut random = Random::seeded_by("RESTANTE_CLUSTER_SEED");
    let (smtp, http) = cluster.ports();
    let (smtp, http) = (Balancer::new(smtp), Balancer::new(http));
    let (letters, sky) = (Letters::default(), Sky::default());
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            let (random, postman) = (random.fork(), Postman::new(&letters, local(smtp.port())));
            scope.spawn(|| send(postman, random, &sky));
        }
        for port in cluster.ports().1.into_iter().chain([http.port()]) {
            let (random, letters, sky) = (random.fork(), &letters, &sky);
            scope.spawn(move || watch(local(port), letters, random, sky));
        }
        let _end = sky.is_clear.set_on_drop();
        let rounds = storm(&cluster, &mut random);
        println!("{rounds} rounds of {:?}", Trouble::ALL);
    });
    cluster.until_ready();
    let [refused, broken] = [&letters.refused, &letters.broken].map(|count| count.load(Ordering::Relaxed));
    let (looks, letters_sent) = (sky.looks.load(Ordering::Relaxed), letters.count());
    println!("{letters_sent} letters, {refused} tries refused, {broken} broken, {looks} looks");
    assert!(refused > 0 && broken > 0 && looks > 0, "that was no storm");
    check(&cluster, &letters, sky.next.into_inner());
}

/// What all who work in the storm share.
#[derive(Default)]
struct Sky {
    is_clear: StopFlag,
    /// The number of the next letter.
    next: AtomicUsize,
    /// How often a mailbox could be looked at.
    looks: AtomicUsize,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Node,
    Database,
    NodeAndDatabase,
    Cut,
    /// Cut, and mended at once, again and again: what was sent arrives, its answer does not.
    Flicker,
    Hang,
}

impl Trouble {
    const ALL: [Self; 6] = [Self::Node, Self::Database, Self::NodeAndDatabase, Self::Cut, Self::Flicker, Self::Hang];
}

/// Every kind of trouble happens in every round, in any order; returns how many rounds there were.
fn storm(cluster: &Cluster, random: &mut Random) -> usize {
    let time = Duration::from_secs(setting("RESTANTE_CLUSTER_SECONDS").unwrap_or(SECONDS));
    let start = Instant::now();
    let mut round = 0;
    while round < ROUNDS || start.elapsed() < time {
        round += 1;
        let mut kinds = Trouble::ALL.to_vec();
        while !kinds.is_empty() {
            let kind = kinds.swap_remove(random.below(kinds.len()));
            strike(cluster, kind, random);
            thread::sleep(moment(random));
        }
    }
    round
}

fn strike(cluster: &Cluster, kind: Trouble, random: &mut Random) {
    let node: &Node = &cluster.nodes[random.below(cluster.nodes.len())];
    let moment = moment(random);
    match kind {
        Trouble::Node => node.kill_while(|| thread::sleep(moment)),
        Trouble::Database => cluster.kill_database(moment),
        Trouble::NodeAndDatabase => node.kill_while(|| cluster.kill_database(moment)),
        Trouble::Cut => node.cut_while(|| thread::sleep(moment)),
        Trouble::Flicker => (0..20).for_each(|_| {
            node.cut_while(|| ());
            thread::sleep(moment / 10);
        }),
        Trouble::Hang => node.hang_while(|| thread::sleep(moment * 3)),
    }
}

fn moment(random: &mut Random) -> Duration {
    Duration::from_millis(random.below(400) as u64)
}

/// Sends small letters and large ones, to one mailbox or to two, and every third to the crowded one as well.
fn send(mut postman: Postman<'_>, mut random: Random, sky: &Sky) {
    while !sky.is_clear.is_set() {
        let number = sky.next.fetch_add(1, Ordering::Relaxed);
        let (first, second) = (mailbox(number), format!("second-{}", mailbox(number)));
        let mut mailboxes = vec![first.as_str()];
        if number.is_multiple_of(3) {
            mailboxes.push(CROWDED);
        }
        if number.is_multiple_of(5) {
            mailboxes.push(&second);
        }
        let length = if random.below(40) == 0 { random.below(300_000) } else { 100 + random.below(4000) };
        postman.send(&number.to_string(), &mailboxes, length);
    }
}

/// Where a letter with this number goes.
fn mailbox(number: usize) -> String {
    format!("box-{}", number / LETTERS)
}

/// Looks at mailboxes: whoever can answer knows all that was acknowledged before it was asked, and keeps the cap.
fn watch(http: SocketAddr, letters: &Letters, mut random: Random, sky: &Sky) {
    let reader = Reader::new(http);
    while !sky.is_clear.is_set() {
        thread::sleep(Duration::from_millis(20));
        let newest = sky.next.load(Ordering::Relaxed);
        let mailbox = mailbox(newest.saturating_sub(random.below(3 * LETTERS)));
        let promised = letters.acknowledged(&mailbox);
        let (Some(found), Some(crowd)) = (list(&reader, &mailbox), list(&reader, CROWDED)) else { continue };
        let found: Vec<&str> = found.iter().map(subject).collect();
        let missing: Vec<&String> = promised.iter().filter(|promised| !found.contains(&promised.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} of {mailbox} were acknowledged, but there is only {found:?}");
        assert!(crowd.len() <= CAP, "{CROWDED} holds {}", crowd.len());
        sky.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// All nodes hold the same, which is what was sent.
fn check(cluster: &Cluster, letters: &Letters, count: usize) {
    let readers: Vec<Reader> = cluster.nodes.iter().map(Node::reader).collect();
    let same = |mailbox: &str| {
        let mut lists = readers.iter().map(|reader| list(reader, mailbox).expect("they are all there"));
        let first = lists.next().unwrap();
        assert!(lists.all(|list| list == first), "nodes differ in {mailbox}");
        first
    };
    let names = (0..=count).step_by(LETTERS).map(mailbox).flat_map(|name| [format!("second-{name}"), name]);
    let found: BTreeMap<String, Vec<_>> = names.map(|name| (name.clone(), same(&name))).collect();
    letters.check(&found);
    for (mailbox, list) in &found {
        let Some(newest) = list.last().map(subject) else { continue };
        let (status, source) = readers[0].ask("GET", &format!("{mailbox}/latest/source")).unwrap();
        assert!(status == 200 && is_whole(&source, newest), "{newest} is damaged: {status}");
    }
    let crowd = same(CROWDED).len();
    assert!((CAP.min(count / 3)..=CAP).contains(&crowd), "{crowd} of {count}");
}
