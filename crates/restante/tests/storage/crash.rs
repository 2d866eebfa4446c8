//! The real program is killed again and again while it works, as by `kill -9`: afterwards every promise holds. How many
//! times is said by `RESTANTE_CRASH_ROUNDS`; a run that failed is repeated with the seed that it printed, in
//! `RESTANTE_CRASH_SEED`, as far as threads can be repeated.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::Server;
use crate::support::disk::Disk;
use crate::support::durability::{Client, Promises, eventually};
use crate::support::random::{Random, setting};

const ROUNDS: u64 = 8;
const SENDERS: usize = 4;
const MAILBOXES: [&str; 6] = ["anna", "bert", "cleo", "dirk", "ella", "fred"];

#[test]
fn what_was_acknowledged_survives_kill_under_load() {
    survive("crash-full", &[]);
}

#[test]
fn a_killed_process_loses_nothing_without_syncs_either() {
    survive("crash-relaxed", &["--storage-durability", "relaxed"]);
}

fn survive(name: &str, arguments: &[&str]) {
    let disk = Disk::new(name);
    let promises = Promises::default();
    let mut random = Random::seeded_by("RESTANTE_CRASH_SEED");
    for round in 0..setting("RESTANTE_CRASH_ROUNDS").unwrap_or(ROUNDS) {
        let mut server = disk.server(arguments);
        promises.check(&server);
        // Reading all of it again and again must not take ever longer.
        if round % 6 == 5 {
            purge_all(&server, &promises);
        }
        let time = Duration::from_millis(20 + random.below(300) as u64);
        load(&mut server, &promises, &mut random, round, time);
    }
    let server = disk.server(arguments);
    promises.check(&server);
    assert!(promises.kept() > 0);
    nothing_is_left_over(&disk, server, &promises, arguments);
}

/// Everybody works until the server is killed.
fn load(server: &mut Server, promises: &Promises, random: &mut Random, round: u64, time: Duration) {
    let accepted = AtomicUsize::new(0);
    let client = || Client::new(server, promises).unwrap();
    let senders: Vec<_> = (0..SENDERS).map(|_| client()).collect();
    let (janitor, mut purger) = (client(), client());
    let lived = std::thread::scope(|scope| {
        for (number, mut client) in senders.into_iter().enumerate() {
            let (accepted, mut random) = (&accepted, random.fork());
            scope.spawn(move || send(&mut client, &mut random, &format!("{round}-{number}"), accepted));
        }
        let mut random = random.fork();
        scope.spawn(move || change(&janitor, &mut random));
        scope.spawn(move || purge(&mut purger, round));
        std::thread::sleep(time);
        let lived = server.lives();
        // Whatever has happened, everybody waits for the end.
        server.kill();
        lived
    });
    assert!(lived, "round {round}: the server ended by itself: {}", server.whole_log());
    println!("round {round}: {} letters in {time:?}", accepted.load(Ordering::Relaxed));
}

/// Small letters and large ones, to one mailbox or to many.
fn send(client: &mut Client<'_>, random: &mut Random, name: &str, accepted: &AtomicUsize) -> io::Result<()> {
    for number in 0.. {
        let first = random.below(MAILBOXES.len());
        let count = if random.below(4) == 0 { 1 + random.below(MAILBOXES.len() - 1) } else { 1 };
        let mailboxes: Vec<&str> = MAILBOXES.iter().copied().cycle().skip(first).take(count).collect();
        let length = if random.below(20) == 0 { random.below(1 << 20) } else { 100 + random.below(5000) };
        let code = client.send(&format!("{name}-{number}"), &mailboxes, length)?;
        assert_eq!(code, 250);
        accepted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Deletes messages, and marks others as seen.
fn change(client: &Client<'_>, random: &mut Random) -> io::Result<()> {
    loop {
        let mailbox = MAILBOXES[random.below(MAILBOXES.len())];
        for (id, subject) in client.list(mailbox)? {
            let status = match random.below(4) {
                0 => client.mark(mailbox, id, &subject)?,
                1 | 2 => client.delete(mailbox, id, &subject)?,
                _ => 200,
            };
            assert_eq!(status, 200);
        }
    }
}

/// Fills a mailbox of its own, and purges it.
fn purge(client: &mut Client<'_>, round: u64) -> io::Result<()> {
    for number in 0.. {
        assert_eq!(client.send(&format!("{round}-purged-{number}"), &["purged"], 2000)?, 250);
        if number % 5 == 4 {
            assert_eq!(client.purge("purged")?, 200);
        }
    }
    Ok(())
}

/// When nothing is stored, at most the segment that is being written remains, whatever the crashes have left.
fn nothing_is_left_over(disk: &Disk, server: Server, promises: &Promises, arguments: &[&str]) {
    purge_all(&server, promises);
    promises.check(&server);
    drop(server);
    let server = disk.server(arguments);
    promises.check(&server);
    eventually("segments that nobody needs remain", || disk.segments().len() <= 1);
    assert_eq!(promises.kept(), 0);
}

fn purge_all(server: &Server, promises: &Promises) {
    let client = Client::new(server, promises).unwrap();
    for mailbox in MAILBOXES.iter().chain(&["purged"]) {
        assert_eq!(client.purge(mailbox).unwrap(), 200);
    }
}
