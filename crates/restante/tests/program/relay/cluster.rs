//! Several nodes with one PostgreSQL: each entry is sent by one node, and another node takes over if that one is killed or stopped.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use restante_testpg::Postgres;

use super::queue::{Queue, send};
use super::recorder::Recorder;
use crate::support::Server;
use crate::support::durability::{eventually, message_source};
use crate::support::smtp::Sender;

fn start_node(postgres: &Postgres, recorder: &Recorder) -> Server {
    let (url, target) = (postgres.url(), recorder.target());
    let forwarding = ["--relay-private", "--relay-targets", &target, "--relay-forward", "recorder"];
    // No message is deleted before it is forwarded.
    Server::start(&[&["--storage-url", &url, "--storage-mailboxmsgcap", "0"], &forwarding[..]].concat())
}

/// Sends messages with the subjects `NAME-0`, `NAME-1` and so on, and returns the subjects.
fn send_many(smtp: SocketAddr, name: &str, count: usize) -> Vec<String> {
    let mut connection = Sender::connect(smtp).unwrap();
    let subjects: Vec<String> = (0..count).map(|number| format!("{name}-{number}")).collect();
    for subject in &subjects {
        assert_eq!(connection.send(&["anna"], &message_source(subject, 200), || ()).unwrap(), 250);
    }
    subjects
}

/// Waits until all messages have arrived and no entry waits.
fn wait_until_arrived(server: &Server, recorder: &Recorder, subjects: &[String]) {
    eventually("a message does not arrive", || subjects.iter().all(|subject| recorder.has(subject, "anna@y.org")));
    let queue = Queue::of(server);
    eventually("entries are left", || queue.waiting() == 0);
}

#[test]
fn two_nodes_send_each_message_once() {
    let Some(postgres) = Postgres::start() else { return };
    let recorder = Recorder::start();
    let nodes = [start_node(&postgres, &recorder), start_node(&postgres, &recorder)];
    let subjects: Vec<String> = std::thread::scope(|scope| {
        let sending: Vec<_> = nodes
            .iter()
            .zip(["one", "two"])
            .map(|(node, name)| (node.smtp, name))
            .map(|(smtp, name)| scope.spawn(move || send_many(smtp, name, 100)))
            .collect();
        sending.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    wait_until_arrived(&nodes[0], &recorder, &subjects);
    let arrived = recorder.arrived();
    let several: Vec<_> = arrived.iter().filter(|(_, count)| **count != 1).collect();
    assert!(several.is_empty(), "sent several times: {several:?}");
    assert_eq!(arrived.len(), subjects.len());
}

/// The entries of a killed node are due after 30 seconds, which is how long this test takes. The messages that it has not yet compared
/// with the rules are forwarded after 15 seconds.
#[test]
fn entries_of_a_killed_node_are_sent_by_another_one() {
    let Some(postgres) = Postgres::start() else { return };
    let recorder = Recorder::start_holding();
    let mut killed = start_node(&postgres, &recorder);
    let mut subjects = send_many(killed.smtp, "before", 50);
    eventually("nothing is sent", || recorder.held() >= 2);
    let other = start_node(&postgres, &recorder);
    subjects.extend(send_many(killed.smtp, "last", 5));
    killed.kill();
    recorder.resume();
    subjects.extend(send_many(other.smtp, "after", 5));
    wait_until_arrived(&other, &recorder, &subjects);
    let entries = Queue::of(&other).entries();
    assert!(entries.iter().all(|entry| entry["state"] == "delivered"), "{entries:?}");
    assert_eq!(entries.len(), subjects.len(), "a message was compared with the rules twice");
}

#[test]
fn stopped_node_hands_over_at_once() {
    let Some(postgres) = Postgres::start() else { return };
    let recorder = Recorder::start();
    let mut nodes = [start_node(&postgres, &recorder), start_node(&postgres, &recorder)];
    let mut sent = Vec::new();
    for round in 0..3 {
        let subject = format!("round {round}");
        send(&nodes[round % 2], "anna@y.org", &subject);
        sent.push(subject);
        let stopped = &mut nodes[round % 2];
        stopped.signal("TERM");
        assert!(stopped.wait().success());
        let log = stopped.full_log();
        assert!(!log.contains("panicked"), "{log}");
        wait_until_arrived(&nodes[(round + 1) % 2], &recorder, &sent);
        nodes[round % 2] = start_node(&postgres, &recorder);
    }
    assert_eq!(Queue::of(&nodes[0]).entries().len(), sent.len());
}

#[test]
fn messages_that_arrive_after_the_relay_was_removed_are_not_forwarded() {
    let Some(postgres) = Postgres::start() else { return };
    let recorder = Recorder::start();
    let mut with_relay = start_node(&postgres, &recorder);
    let without_relay = Server::start(&["--storage-url", &postgres.url()]);
    let before = send_many(without_relay.smtp, "before", 1);
    wait_until_arrived(&with_relay, &recorder, &before);
    with_relay.signal("TERM");
    assert!(with_relay.wait().success());
    eventually("the position of the forwarder is kept", || {
        postgres.run_sql("postgres", "SELECT queue FROM restante.queue_cursors").is_empty()
    });
    send_many(without_relay.smtp, "between", 1);
    let with_relay = start_node(&postgres, &recorder);
    let after = send_many(with_relay.smtp, "after", 1);
    wait_until_arrived(&with_relay, &recorder, &after);
    assert_eq!(recorder.arrived().len(), 2);
}

#[test]
fn acknowledged_messages_are_forwarded_despite_a_crash_of_the_database() {
    let Some(mut postgres) = Postgres::start() else { return };
    let recorder = Recorder::start();
    let nodes = [start_node(&postgres, &recorder), start_node(&postgres, &recorder)];
    let (acknowledged, is_stopping) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let count = || acknowledged.lock().unwrap().len();
    std::thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            let (smtp, acknowledged, is_stopping) = (node.smtp, &acknowledged, &is_stopping);
            scope.spawn(move || send_until(smtp, &format!("node{number}"), is_stopping, acknowledged));
        }
        // The clients stop after a failure, too.
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..2 {
                let before = count();
                eventually("no messages are accepted", || count() >= before + 20);
                postgres.kill();
                postgres.start_again();
            }
            let before = count();
            eventually("no messages are accepted after the crash", || count() >= before + 20);
        }));
        is_stopping.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    wait_until_arrived(&nodes[0], &recorder, &acknowledged.into_inner().unwrap());
}

/// Sends messages until `is_stopping` is set, and collects the subjects of those that were accepted.
fn send_until(smtp: SocketAddr, name: &str, is_stopping: &AtomicBool, acknowledged: &Mutex<Vec<String>>) {
    let mut connection = Sender::connect(smtp).unwrap();
    for number in 0.. {
        if is_stopping.load(Ordering::Relaxed) {
            return;
        }
        let subject = format!("{name}-{number}");
        match connection.send(&["anna"], &message_source(&subject, 200), || ()) {
            Ok(250) => acknowledged.lock().unwrap().push(subject),
            // The database is not available, and the server may close the connection.
            Ok(451) => {}
            Ok(code) => panic!("unexpected reply: {code}"),
            Err(_) => connection = Sender::connect(smtp).unwrap(),
        }
    }
}
