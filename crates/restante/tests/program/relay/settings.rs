//! Settings that change between two starts with the same data directory.

use restante_testdir::TestDir;

use super::queue::{Queue, send};
use super::recorder::Recorder;
use crate::support::durability::eventually;
use crate::support::{Server, command};

/// Starts a server with a data directory.
fn start(directory: &TestDir, arguments: &[&str]) -> Server {
    let mut command = command();
    Server::spawn(command.arg("--data").arg(directory.path()).args(arguments))
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn messages_that_arrive_without_a_relay_are_not_forwarded_later() {
    let (directory, recorder) = (TestDir::new(), Recorder::start());
    let target = recorder.target();
    let relay = ["--relay-private", "--relay-targets", &target];
    let forwarding = [&relay[..], &["--relay-forward", "recorder"]].concat();
    let table = [
        ("first", &forwarding[..]),
        ("second", &[]),
        ("third", &forwarding),
        ("fourth", &relay),
        ("last", &forwarding),
    ];
    for (subject, arguments) in table {
        let server = start(&directory, arguments);
        send(&server, "ann@x.org", subject);
        if arguments == forwarding {
            eventually("a message is not forwarded", || recorder.has(subject, "ann@x.org"));
        }
        stop(server);
    }
    let subjects: Vec<String> = recorder.arrived().into_keys().map(|(subject, _)| subject).collect();
    assert_eq!(subjects, ["first", "last", "third"]);
}

#[test]
fn queued_recipients_are_compared_with_the_current_settings() {
    let (directory, mut recorder) = (TestDir::new(), Recorder::start());
    let target = recorder.target();
    recorder.stop();
    let server = start(&directory, &["--relay-private", "--relay-targets", &target]);
    let entry = Queue::of(&server).release_to(&server, "Hello", &["ann@x.org", "eve@y.org"]);
    stop(server);
    recorder.start_again();
    let server = start(&directory, &["--relay-private", "--relay-targets", &format!("{target} block=*@y.org")]);
    let queue = Queue::of(&server);
    eventually("the entry is not final", || {
        queue.retry(&serde_json::json!({"all": true}));
        queue.entry(&entry)["state"] == "failed"
    });
    let recipients = queue.entry(&entry)["recipients"].clone();
    assert_eq!((&recipients[0]["state"], &recipients[1]["state"]), (&"delivered".into(), &"failed".into()));
    assert_eq!(recipients[1]["reply"], "the relay target does not allow this recipient");
    assert!(recorder.has("Hello", "ann@x.org") && !recorder.has("Hello", "eve@y.org"));
}

#[test]
fn entries_of_a_target_that_was_removed_are_reported_and_can_be_cancelled() {
    let (directory, mut recorder) = (TestDir::new(), Recorder::start());
    let target = recorder.target();
    recorder.stop();
    let other = target.replacen("recorder", "other", 1);
    // Another target is configured, or none.
    for arguments in [&["--relay-private", "--relay-targets", &other][..], &[]] {
        let server = start(&directory, &["--relay-private", "--relay-targets", &target]);
        let entry = Queue::of(&server).release_to(&server, "Hello", &["ann@x.org"]);
        stop(server);
        let mut server = start(&directory, arguments);
        let line = server.wait_for_log("messages wait for a relay target that is not configured");
        assert!(line.contains("restante relay cancel --target recorder") && line.contains("entries=1"), "{line}");
        let queue = Queue::of(&server);
        assert_eq!(queue.cancel(&serde_json::json!({"target": "recorder"})), 1);
        assert_eq!(queue.entry(&entry)["state"], "cancelled");
        stop(server);
    }
}
