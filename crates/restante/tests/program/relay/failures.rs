//! Servers that cannot be reached, refuse service, drop the connection or do not reply. Their messages wait, and are sent later.

use serde_json::json;

use super::postfix::Postfix;
use super::queue::{Queue, latest, recipients, send, start};
use super::recorder::Recorder;
use super::sink::Sink;
use crate::support::durability::eventually;

#[test]
fn replies_and_broken_connections_decide_what_happens() {
    // Options of smtp-sink, the state of the entry, and whether the target is paused.
    let table = [
        (["-q", "CONNECT"], "queued", true),
        (["-q", "EHLO"], "queued", true),
        (["-q", "MAIL"], "queued", true),
        (["-q", "RCPT"], "queued", false),
        (["-q", "DATA"], "queued", false),
        (["-q", "."], "queued", false),
        (["-Q", "MAIL"], "queued", true),
        (["-Q", "RCPT"], "queued", true),
        (["-Q", "."], "queued", true),
        (["-r", "MAIL"], "queued", false),
        (["-r", "RCPT"], "queued", false),
        (["-r", "DATA"], "queued", false),
        (["-r", "."], "queued", false),
        (["-f", "CONNECT"], "queued", true),
        (["-f", "MAIL"], "failed", false),
        (["-f", "RCPT"], "failed", false),
        (["-f", "DATA"], "failed", false),
        (["-f", "."], "failed", false),
    ];
    let mut sinks = Vec::new();
    for (options, ..) in table {
        let Some(sink) = Sink::start(&options) else { return };
        sinks.push(sink);
    }
    let name = |number: usize| format!("t{number}");
    let targets: Vec<String> =
        sinks.iter().enumerate().map(|(number, sink)| sink.target().replacen("sink", &name(number), 1)).collect();
    let server = start(&targets.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    let queue = Queue::of(&server);
    send(&server, "ann@example.org", "Hello");
    let message = latest(&server);
    let ids: Vec<String> =
        (0..table.len()).map(|number| queue.release(&message, &json!({ "target": name(number) }))).collect();
    for (number, (options, state, is_paused)) in table.iter().enumerate() {
        println!("smtp-sink {options:?}");
        let entry = queue.wait_for(&ids[number], state);
        assert!(!entry["last-reply"].as_str().unwrap().is_empty(), "{options:?}: {entry}");
        let expected = if *is_paused { "paused" } else { "ready" };
        assert_eq!(queue.targets()[number]["state"], expected, "{options:?}: {entry}");
    }
    // All targets work again.
    let _sinks: Vec<Option<Sink>> = sinks.into_iter().map(|sink| Sink::start_on(sink.stop(), &[])).collect();
    eventually("an entry is not delivered", || {
        queue.retry(&json!({ "all": true }));
        queue.entries().iter().all(|entry| entry["state"] == "delivered")
    });
    for entry in queue.entries() {
        assert_eq!(recipients(&entry), ["ann@example.org delivered 250"]);
    }
}

#[test]
fn server_that_does_not_reply_is_disconnected_after_the_timeout() {
    let Some(sink) = Sink::start(&["-W", "DATA:300"]) else { return };
    let server = start(&[&format!("{} timeout=3s", sink.target())], &[]);
    let queue = Queue::of(&server);
    let id = queue.release_to(&server, "Slow", &["ann@example.org"]);
    let entry = queue.wait_for(&id, "queued");
    assert_eq!(entry["last-reply"], "the server did not reply in time");
    // The transcript has the times of its lines, not that of the result.
    let transcript = entry["transcript"].as_array().unwrap();
    let [first, last] =
        [transcript.first(), transcript.last()].map(|line| line.unwrap()["posix-millis"].as_u64().unwrap());
    assert!(last - first >= 3000, "{entry}");
    assert!(transcript[0]["at"].as_str() < entry["last-attempt"].as_str(), "{entry}");
}

#[test]
fn recipient_that_needs_a_missing_extension_fails() {
    let Some(sink) = Sink::start(&["-8"]) else { return };
    let server = start(&[&sink.target()], &[]);
    let queue = Queue::of(&server);
    let id = queue.release_to(&server, "International", &["jürgen@example.org", "ann@example.org"]);
    let entry = queue.wait_for(&id, "failed");
    assert!(entry["recipients"][0]["reply"].as_str().unwrap().contains("SMTPUTF8"), "{entry}");
    assert_eq!(recipients(&entry)[1], "ann@example.org delivered 250");
    // Content with 8 bits needs no extension in practice.
    server.deliver("ann@example.org", "Subject: x\r\n\r\nGrüße\r\n".as_bytes());
    queue.wait_for(&queue.release(&latest(&server), &json!({})), "delivered");
}

#[test]
fn messages_wait_until_postfix_is_back() {
    let Some(mut postfix) = Postfix::start() else { return };
    let other = Recorder::start();
    postfix.stop();
    let server = start(&[&postfix.target(), &other.target()], &["--relay-forward", "postfix,recorder"]);
    let queue = Queue::of(&server);
    send(&server, "ann@example.org", "One");
    send(&server, "ann@example.org", "Two");
    eventually("the target is not paused", || queue.targets()[0]["state"] == "paused");
    let target = &queue.targets()[0];
    assert!(target["last-error"].as_str().unwrap().contains("refused"), "{target}");
    // The other target is not affected.
    eventually("nothing arrives", || ["One", "Two"].iter().all(|subject| other.has(subject, "ann@example.org")));
    postfix.start_again();
    let mut subjects: Vec<String> = postfix.wait_for(2).iter().map(|mail| mail.subject().to_owned()).collect();
    subjects.sort();
    assert_eq!(subjects, ["One", "Two"]);
    eventually("the target is paused", || queue.targets()[0]["state"] == "ready");
    eventually("entries are left", || queue.entries().iter().all(|entry| entry["state"] == "delivered"));
}

#[test]
fn reply_of_421_pauses_the_target() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let queue = Queue::of(&server);
    postfix.reply_to("busy@example.org", "421 4.3.2 too busy");
    let id = queue.release_to(&server, "Busy", &["busy@example.org"]);
    let entry = queue.wait_for(&id, "queued");
    assert_eq!(recipients(&entry), ["busy@example.org waiting 421"]);
    let target = queue.target();
    assert!(target["last-error"].as_str().unwrap().contains("too busy"), "{target}");
    postfix.accept_all();
    // After the pause, another entry is sent first.
    let other = queue.release_to(&server, "Other", &["other@example.org"]);
    queue.wait_for(&other, "delivered");
    eventually("the target is paused", || queue.target()["state"] == "ready");
    queue.wait_for(&id, "delivered");
    assert_eq!(postfix.wait_for(2).len(), 2);
}

#[test]
fn deleted_message_fails_its_entry() {
    let mut recorder = Recorder::start();
    recorder.stop();
    let server = start(&[&recorder.target()], &[]);
    let queue = Queue::of(&server);
    let id = queue.release_to(&server, "Deleted", &["bob@example.org"]);
    queue.wait_for(&id, "queued");
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/ann")).call().unwrap().status(), 200);
    recorder.start_again();
    assert_eq!(queue.retry(&json!({ "ids": [id] })), 1);
    let entry = queue.wait_for(&id, "failed");
    assert_eq!(entry["last-reply"], "the message was deleted");
    assert!(recorder.arrived().is_empty());
}

#[test]
fn private_target_is_refused_by_default() {
    let recorder = Recorder::start();
    let server = crate::support::Server::start(&["--relay-targets", &recorder.target()]);
    let queue = Queue::of(&server);
    let id = queue.release_to(&server, "Private", &["bob@example.org"]);
    let entry = queue.wait_for(&id, "queued");
    assert!(entry["last-reply"].as_str().unwrap().contains("is not a public address"), "{entry}");
    assert!(recorder.arrived().is_empty());
}

#[test]
fn failures_are_logged_as_json() {
    let recorder = Recorder::start();
    let mut server = start(&[&recorder.target()], &["--relay-forward", "recorder", "--logjson"]);
    let traced = "Received: from a by b\r\n".repeat(30);
    server.deliver("ann@x.org", format!("{traced}Subject: Loop\r\n\r\nHello\r\n").as_bytes());
    let line: serde_json::Value = serde_json::from_str(&server.wait_for_log("could not be relayed")).unwrap();
    let id: u64 = latest(&server).parse().unwrap();
    assert_eq!((&line["message"], &line["message_id"]), (&json!("a message could not be relayed"), &json!(id)));
}
