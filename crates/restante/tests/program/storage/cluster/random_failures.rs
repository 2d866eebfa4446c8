//! Kills nodes and their database, and disconnects or hangs the connections between them, under load. `RESTANTE_CLUSTER_SECONDS` sets
//! the duration. Set `RESTANTE_CLUSTER_SEED` to the printed seed to repeat a failed run, as far as threads allow it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use restante_testpg::FaultProxy;

use super::messages::{RetryingSender, SentMessages, is_intact, list, subject};
use super::nodes::{Cluster, Node, local};
use super::stop_flag::StopFlag;
use crate::support::random::{Random, setting};
use crate::support::rest::Reader;

const SECONDS: u64 = 18;
/// The minimum number of faults of each kind.
const ROUNDS: usize = 3;
const SENDERS: usize = 8;
/// The message cap of every mailbox. The mailbox `CAPPED` gets more messages.
const CAP: usize = 100;
const CAPPED: &str = "crowded";
/// The number of messages for each other mailbox, below the cap because some are stored twice.
const MESSAGES_PER_MAILBOX: usize = 30;

#[test]
fn acknowledged_messages_survive_random_faults() {
    let cap = CAP.to_string();
    let Some(cluster) = Cluster::durable(3, &["--storage-mailboxmsgcap", &cap]) else { return };
    let mut random = Random::seeded_by("RESTANTE_CLUSTER_SEED");
    let (smtp, http) = cluster.ports();
    let (smtp, http) = (FaultProxy::balancing(smtp), FaultProxy::balancing(http));
    let (messages, shared) = (SentMessages::default(), Shared::default());
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            let (random, sender) = (random.fork(), RetryingSender::new(&messages, local(smtp.port())));
            scope.spawn(|| send(sender, random, &shared));
        }
        for port in cluster.ports().1.into_iter().chain([http.port()]) {
            let (random, messages, shared) = (random.fork(), &messages, &shared);
            scope.spawn(move || read_repeatedly(local(port), messages, random, shared));
        }
        let _end = shared.stop.set_on_drop();
        let rounds = inject_faults(&cluster, &mut random);
        println!("{rounds} rounds of {:?}", Fault::ALL);
    });
    cluster.until_ready();
    let [refused, broken] = [&messages.refused, &messages.broken].map(|count| count.load(Ordering::Relaxed));
    let (reads, count) = (shared.reads.load(Ordering::Relaxed), messages.count());
    println!("{count} messages, {refused} attempts refused, {broken} broken, {reads} reads");
    assert!(refused > 0 && broken > 0 && reads > 0, "no fault had an effect");
    check(&cluster, &messages, shared.next.into_inner());
}

/// The state that all threads share.
#[derive(Default)]
struct Shared {
    stop: StopFlag,
    /// The number of the next message.
    next: AtomicUsize,
    /// The number of successful reads.
    reads: AtomicUsize,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Node,
    Database,
    NodeAndDatabase,
    Disconnect,
    /// Repeated short disconnects: requests arrive, but their responses do not.
    Flicker,
    Hang,
}

impl Fault {
    const ALL: [Self; 6] =
        [Self::Node, Self::Database, Self::NodeAndDatabase, Self::Disconnect, Self::Flicker, Self::Hang];
}

/// Injects every kind of fault in every round, in random order. Returns the number of rounds.
fn inject_faults(cluster: &Cluster, random: &mut Random) -> usize {
    let time = Duration::from_secs(setting("RESTANTE_CLUSTER_SECONDS").unwrap_or(SECONDS));
    let start = Instant::now();
    let mut round = 0;
    while round < ROUNDS || start.elapsed() < time {
        round += 1;
        let mut kinds = Fault::ALL.to_vec();
        while !kinds.is_empty() {
            let kind = kinds.swap_remove(random.below(kinds.len()));
            inject_fault(cluster, kind, random);
            thread::sleep(random_pause(random));
        }
    }
    round
}

fn inject_fault(cluster: &Cluster, kind: Fault, random: &mut Random) {
    let node: &Node = &cluster.nodes[random.below(cluster.nodes.len())];
    let pause = random_pause(random);
    match kind {
        Fault::Node => node.kill_while(|| thread::sleep(pause)),
        Fault::Database => cluster.kill_database(pause),
        Fault::NodeAndDatabase => node.kill_while(|| cluster.kill_database(pause)),
        Fault::Disconnect => node.disconnect_while(|| thread::sleep(pause)),
        Fault::Flicker => (0..20).for_each(|_| {
            node.disconnect_while(|| ());
            thread::sleep(pause / 10);
        }),
        Fault::Hang => node.hang_while(|| thread::sleep(pause * 3)),
    }
}

fn random_pause(random: &mut Random) -> Duration {
    Duration::from_millis(random.below(400) as u64)
}

/// Sends small and large messages, to one mailbox or to two, and every third also to the capped mailbox.
fn send(mut sender: RetryingSender<'_>, mut random: Random, shared: &Shared) {
    while !shared.stop.is_set() {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let (first, second) = (mailbox(number), format!("second-{}", mailbox(number)));
        let mut mailboxes = vec![first.as_str()];
        if number.is_multiple_of(3) {
            mailboxes.push(CAPPED);
        }
        if number.is_multiple_of(5) {
            mailboxes.push(&second);
        }
        let length = if random.below(40) == 0 { random.below(300_000) } else { 100 + random.below(4000) };
        sender.send(&number.to_string(), &mailboxes, length);
    }
}

/// Returns the mailbox of the message with this number.
fn mailbox(number: usize) -> String {
    format!("box-{}", number / MESSAGES_PER_MAILBOX)
}

/// Reads mailboxes: a successful response contains all messages that were acknowledged before the request, and respects the cap.
fn read_repeatedly(http: SocketAddr, messages: &SentMessages, mut random: Random, shared: &Shared) {
    let reader = Reader::new(http);
    while !shared.stop.is_set() {
        thread::sleep(Duration::from_millis(20));
        let newest = shared.next.load(Ordering::Relaxed);
        let mailbox = mailbox(newest.saturating_sub(random.below(3 * MESSAGES_PER_MAILBOX)));
        let acknowledged = messages.acknowledged(&mailbox);
        let (Some(found), Some(capped)) = (list(&reader, &mailbox), list(&reader, CAPPED)) else { continue };
        let found: Vec<&str> = found.iter().map(subject).collect();
        let missing: Vec<&String> = acknowledged.iter().filter(|subject| !found.contains(&subject.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} of {mailbox} were acknowledged, but only {found:?} are listed");
        assert!(capped.len() <= CAP, "{CAPPED} has {} messages", capped.len());
        shared.reads.fetch_add(1, Ordering::Relaxed);
    }
}

/// Checks that all nodes list the same messages, and that these are the sent ones.
fn check(cluster: &Cluster, messages: &SentMessages, count: usize) {
    let readers: Vec<Reader> = cluster.nodes.iter().map(Node::reader).collect();
    let same = |mailbox: &str| {
        let mut lists = readers.iter().map(|reader| list(reader, mailbox).expect("all nodes are ready"));
        let first = lists.next().unwrap();
        assert!(lists.all(|list| list == first), "nodes differ in {mailbox}");
        first
    };
    let names =
        (0..=count).step_by(MESSAGES_PER_MAILBOX).map(mailbox).flat_map(|name| [format!("second-{name}"), name]);
    let found: BTreeMap<String, Vec<_>> = names.map(|name| (name.clone(), same(&name))).collect();
    messages.check(&found);
    for (mailbox, list) in &found {
        let Some(newest) = list.last().map(subject) else { continue };
        let (status, source) = readers[0].request("GET", &format!("{mailbox}/latest/source")).unwrap();
        assert!(status == 200 && is_intact(&source, newest), "{newest} is damaged: {status}");
    }
    let capped = same(CAPPED).len();
    assert!((CAP.min(count / 3)..=CAP).contains(&capped), "{capped} of {count}");
}
