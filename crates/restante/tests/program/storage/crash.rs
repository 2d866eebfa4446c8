//! Kills the real program with SIGKILL repeatedly under load: no acknowledged message is lost. `RESTANTE_CRASH_ROUNDS` sets the
//! number of kills. Set `RESTANTE_CRASH_SEED` to the printed seed to repeat a failed run, as far as threads allow it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::Server;
use crate::support::disk::Disk;
use crate::support::durability::{Client, ExpectedState, eventually};
use crate::support::random::{Random, setting};

const ROUNDS: u64 = 8;
const SENDERS: usize = 4;
const MAILBOXES: [&str; 6] = ["anna", "bert", "cleo", "dirk", "ella", "fred"];

#[test]
fn acknowledged_messages_survive_sigkill_under_load() {
    run_kill_rounds("crash-full", &[]);
}

#[test]
fn acknowledged_messages_survive_sigkill_with_relaxed_durability() {
    run_kill_rounds("crash-relaxed", &["--storage-durability", "relaxed"]);
}

fn run_kill_rounds(name: &str, arguments: &[&str]) {
    let disk = Disk::new(name);
    let state = ExpectedState::default();
    let mut random = Random::seeded_by("RESTANTE_CRASH_SEED");
    for round in 0..setting("RESTANTE_CRASH_ROUNDS").unwrap_or(ROUNDS) {
        let mut server = disk.server(arguments);
        state.check(&server);
        // Keeps the time to read all messages short.
        if round % 6 == 5 {
            purge_all(&server, &state);
        }
        let time = Duration::from_millis(20 + random.below(300) as u64);
        load(&mut server, &state, &mut random, round, time);
    }
    let server = disk.server(arguments);
    state.check(&server);
    assert!(state.stored_count() > 0);
    check_no_leftovers(&disk, server, &state, arguments);
}

/// Runs all clients until the server is killed.
fn load(server: &mut Server, state: &ExpectedState, random: &mut Random, round: u64, time: Duration) {
    let accepted = AtomicUsize::new(0);
    let client = || Client::new(server, state).unwrap();
    let senders: Vec<_> = (0..SENDERS).map(|_| client()).collect();
    let (changer, mut purger) = (client(), client());
    let was_running = std::thread::scope(|scope| {
        for (number, mut client) in senders.into_iter().enumerate() {
            let (accepted, mut random) = (&accepted, random.fork());
            scope.spawn(move || send(&mut client, &mut random, &format!("{round}-{number}"), accepted));
        }
        let mut random = random.fork();
        scope.spawn(move || change(&changer, &mut random));
        scope.spawn(move || purge(&mut purger, round));
        std::thread::sleep(time);
        let was_running = server.is_running();
        // The clients stop when the server is killed, so this must happen even after a failure.
        server.kill();
        was_running
    });
    assert!(was_running, "round {round}: the server exited: {}", server.full_log());
    println!("round {round}: {} messages in {time:?}", accepted.load(Ordering::Relaxed));
}

/// Sends small and large messages to one or several mailboxes.
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

/// Fills a separate mailbox and purges it.
fn purge(client: &mut Client<'_>, round: u64) -> io::Result<()> {
    for number in 0.. {
        assert_eq!(client.send(&format!("{round}-purged-{number}"), &["purged"], 2000)?, 250);
        if number % 5 == 4 {
            assert_eq!(client.purge("purged")?, 200);
        }
    }
    Ok(())
}

/// Checks that at most the active segment remains when no messages are stored.
fn check_no_leftovers(disk: &Disk, server: Server, state: &ExpectedState, arguments: &[&str]) {
    purge_all(&server, state);
    state.check(&server);
    drop(server);
    let server = disk.server(arguments);
    state.check(&server);
    eventually("unused segments remain", || disk.segments().len() <= 1);
    assert_eq!(state.stored_count(), 0);
}

fn purge_all(server: &Server, state: &ExpectedState) {
    let client = Client::new(server, state).unwrap();
    for mailbox in MAILBOXES.iter().chain(&["purged"]) {
        assert_eq!(client.purge(mailbox).unwrap(), 200);
    }
}
