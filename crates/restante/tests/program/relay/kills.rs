//! The real program is killed with SIGKILL repeatedly while it forwards and releases messages: every acknowledged message arrives.
//! `RESTANTE_RELAY_ROUNDS` sets the number of kills. Set `RESTANTE_RELAY_SEED` to the printed seed to repeat a failed run, as far as
//! threads allow it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::queue::{Queue, latest, send};
use super::recorder::Recorder;
use crate::support::disk::Disk;
use crate::support::durability::message_source;
use crate::support::random::{Random, setting};
use crate::support::smtp::Sender;
use crate::support::{Server, TEST_TIMEOUT};

const ROUNDS: u64 = 5;
const CLIENTS: usize = 3;
/// The number of requests that are acknowledged in every round.
const MIN_ACKNOWLEDGED: usize = 20;

/// Runs clients until the server is killed at a random moment. Each client calls `request` with a unique name; an error means that
/// the server was killed. `during` is run in the middle. Returns the names of the acknowledged requests.
fn run_until_killed(
    server: &mut Server,
    round: u64,
    random: &mut Random,
    during: impl FnOnce(),
    request: impl Fn(&mut Option<Sender>, &str) -> io::Result<()> + Sync,
) -> BTreeSet<String> {
    let acknowledged = Mutex::new(BTreeSet::new());
    let time = Duration::from_millis(random.below(300) as u64);
    let (request, names) = (&request, &acknowledged);
    let was_running = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || -> io::Result<()> {
                let mut connection = None;
                for number in 0.. {
                    let name = format!("{round}-{client}-{number}");
                    request(&mut connection, &name)?;
                    names.lock().unwrap().insert(name);
                }
                Ok(())
            });
        }
        let deadline = Instant::now() + TEST_TIMEOUT;
        while names.lock().unwrap().len() < MIN_ACKNOWLEDGED && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        during();
        // This is not a wait for anything: the moment of the kill is random.
        std::thread::sleep(time);
        let was_running = server.is_running();
        // The clients stop when the server is killed, so this must happen even after a failure.
        server.kill();
        was_running
    });
    assert!(was_running, "round {round}: the server exited: {}", server.full_log());
    let log = server.full_log();
    assert!(!log.contains("panicked"), "{log}");
    let acknowledged = acknowledged.into_inner().unwrap();
    println!("round {round}: {} acknowledged in {time:?}", acknowledged.len());
    acknowledged
}

/// Waits until everything has arrived and no entry waits.
fn check_arrived(server: &Server, recorder: &Recorder, expected: &[(String, String)]) {
    let mut missing: Vec<_> = expected.iter().collect();
    wait_while_progressing("messages are acknowledged, but not sent", || {
        missing.retain(|(subject, recipient)| !recorder.has(subject, recipient));
        missing.len() as u64
    });
    let queue = Queue::of(server);
    wait_while_progressing("entries are left", || queue.waiting());
    let entries = &queue.target()["entries"];
    assert_eq!((&entries["failed"], &entries["cancelled"]), (&0.into(), &0.into()), "{entries}");
}

/// Waits until nothing remains. Fails if the rest does not become smaller for two minutes. The whole wait has no such limit: the relay has the
/// lowest priority, and is slow on a busy machine.
fn wait_while_progressing(message: &str, mut count_rest: impl FnMut() -> u64) {
    let mut smallest = u64::MAX;
    let mut deadline = Instant::now();
    loop {
        let rest = count_rest();
        if rest == 0 {
            return;
        }
        if rest < smallest {
            smallest = rest;
            deadline = Instant::now() + 2 * TEST_TIMEOUT;
        }
        assert!(Instant::now() < deadline, "{message}: {rest}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn acknowledged_messages_are_forwarded_despite_sigkill() {
    let (disk, mut recorder) = (Disk::new("relay-forward"), Recorder::start());
    let target = recorder.target();
    let arguments = ["--relay-private", "--relay-targets", &target, "--relay-forward", "recorder"];
    let mut random = Random::seeded_by("RESTANTE_RELAY_SEED");
    let mut acknowledged = BTreeSet::new();
    for round in 0..setting("RESTANTE_RELAY_ROUNDS").unwrap_or(ROUNDS) {
        let mut server = disk.server(&arguments);
        let smtp = server.smtp;
        // In every second round the receiving server is restarted, too.
        let restart = || {
            if round % 2 == 1 {
                recorder.stop();
                recorder.start_again();
            }
        };
        acknowledged.extend(run_until_killed(&mut server, round, &mut random, restart, |connection, name| {
            let connection = match connection {
                Some(connection) => connection,
                none => none.insert(Sender::connect(smtp)?),
            };
            assert_eq!(connection.send(&["anna", "bert"], &message_source(name, 500), || ())?, 250);
            Ok(())
        }));
    }
    let server = disk.server(&arguments);
    let to = |subject: &String| ["anna@y.org", "bert@y.org"].map(|to| (subject.clone(), to.to_owned()));
    let expected: Vec<(String, String)> = acknowledged.iter().flat_map(to).collect();
    check_arrived(&server, &recorder, &expected);
}

#[test]
fn acknowledged_releases_are_sent_despite_sigkill() {
    let (disk, recorder) = (Disk::new("relay-release"), Recorder::start());
    let target = recorder.target();
    let arguments = ["--relay-private", "--relay-targets", &target];
    let mut random = Random::seeded_by("RESTANTE_RELAY_SEED");
    let mut acknowledged = BTreeSet::new();
    for round in 0..setting("RESTANTE_RELAY_ROUNDS").unwrap_or(ROUNDS) {
        let mut server = disk.server(&arguments);
        if round == 0 {
            send(&server, "ann@example.org", "Released");
        }
        let (message, queue) = (latest(&server), Queue::of(&server));
        acknowledged.extend(run_until_killed(
            &mut server,
            round,
            &mut random,
            || (),
            |_, name| {
                let to = format!("{name}@example.org");
                let (status, entry) = queue.try_release(&message, &json!({ "to": [to] }))?;
                assert_eq!(status, 202, "{entry}");
                Ok(())
            },
        ));
    }
    let server = disk.server(&arguments);
    let expected: Vec<(String, String)> =
        acknowledged.iter().map(|name| ("Released".to_owned(), format!("{name}@example.org"))).collect();
    check_arrived(&server, &recorder, &expected);
}

#[test]
fn queued_entries_survive_a_restart() {
    let (disk, mut recorder) = (Disk::new("relay-restart"), Recorder::start());
    recorder.stop();
    let target = recorder.target();
    let arguments = ["--relay-private", "--relay-targets", &target];
    let mut server = disk.server(&arguments);
    let queue = Queue::of(&server);
    let id = queue.release_to(&server, "Kept", &["bob@example.org"]);
    let before = queue.wait_for(&id, "queued");
    server.signal("TERM");
    assert!(server.wait().success());
    let server = disk.server(&arguments);
    let queue = Queue::of(&server);
    let after = queue.entry(&id);
    for member in ["message", "recipients", "created", "expires", "last-reply", "last-attempt", "origin"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    recorder.start_again();
    queue.wait_for(&id, "delivered");
    assert_eq!(
        recorder.arrived().into_iter().collect::<Vec<_>>(),
        [(("Kept".to_owned(), "bob@example.org".to_owned()), 1)]
    );
}
