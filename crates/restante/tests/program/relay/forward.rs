//! Rules that forward messages, and the detection of loops.

use std::collections::BTreeSet;

use restante_testpg::ReservedPort;
use serde_json::{Value, json};

use super::postfix::Postfix;
use super::queue::{Queue, latest, send, start};
use super::recorder::Recorder;
use crate::support::durability::eventually;
use crate::support::{Server, command};

/// Starts a server at this SMTP address that forwards everything to another address.
fn start_forwarding(smtp: &ReservedPort, to: &ReservedPort, domain: &str) -> Server {
    let target = format!("other smtp://{} starttls=never allow=*", to.address());
    let mut command = command();
    command.args(["--smtp-addr", &smtp.address().to_string(), "--smtp-domain", domain]);
    Server::spawn(command.args(["--relay-private", "--relay-targets", &target, "--relay-forward", "other"]))
}

/// Waits until each of these messages was sent once, and all of them were not sent again when they came back.
fn check_loops(server: &Server, messages: usize) {
    let queue = Queue::of(server);
    let count = |state: &str| queue.entries().iter().filter(|entry| entry["state"] == state).count();
    eventually("a message is not forwarded, or not refused", || [count("delivered"), count("failed")] == [messages; 2]);
    let is_refused = |entry: &Value| entry["last-reply"] == "the message is in a loop: this server has sent it before";
    let entries = queue.entries();
    assert_eq!(entries.iter().filter(|entry| is_refused(entry)).count(), messages, "{entries:?}");
    assert_eq!(entries.len(), 2 * messages);
}

#[test]
fn everything_is_forwarded_to_postfix() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &["--relay-forward", "postfix"]);
    let mut connection = server.connect_smtp();
    connection.start_message("ann@example.org");
    connection.command("RCPT TO:<bob@example.com>", "250");
    connection.command("DATA", "354");
    connection.send("Subject: Both\r\n\r\nHello\r\n.\r\n");
    connection.expect("250");
    let mails = postfix.wait_for(2);
    let found: Vec<[&str; 3]> =
        mails.iter().map(|mail| [mail.recipient.as_str(), mail.sender.as_str(), mail.subject()]).collect();
    assert_eq!(found, [["ann@example.org", "ann@x.org", "Both"], ["bob@example.com", "ann@x.org", "Both"]]);
    let queue = Queue::of(&server);
    eventually("the entry is not delivered", || queue.entries().iter().all(|entry| entry["state"] == "delivered"));
    let entries = queue.entries();
    assert_eq!((entries.len(), &entries[0]["origin"]), (1, &"forward".into()));
}

#[test]
fn rules_select_messages_and_recipients() {
    // A rule without its target, and the messages that it forwards: subject and recipient.
    let table: [(&str, &[[&str; 2]]); 6] = [
        ("", &[["one", "ci-1@example.org"], ["two", "ann@x.org"], ["error three", "qa@x.org"], ["last", "last@x.org"]]),
        ("mailboxes=ci-*|qa", &[["one", "ci-1@example.org"], ["error three", "qa@x.org"]]),
        ("recipients=*@example.org", &[["one", "ci-1@example.org"]]),
        ("search=subject:error", &[["error three", "qa@x.org"]]),
        ("search=\"subject:error to:qa\" to=ops@example.org", &[["error three", "ops@example.org"]]),
        ("mailboxes=ann search=subject:error", &[]),
    ];
    let recorders = table.map(|_| Recorder::start());
    let target = |number: usize| recorders[number].target().replacen("recorder", &format!("t{number}"), 1);
    let targets: Vec<String> = (0..table.len()).map(target).collect();
    let rules: Vec<String> =
        table.iter().enumerate().map(|(number, (rule, _))| format!("t{number} {rule}").trim_end().to_owned()).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let server = start(&targets, &["--relay-forward", &rules.join(",")]);
    let queue = Queue::of(&server);
    for (to, subject) in
        [("ci-1@example.org", "one"), ("ann@x.org", "two"), ("qa@x.org", "error three"), ("last@x.org", "last")]
    {
        send(&server, to, subject);
    }
    // Messages are compared in their order, so the entries of all others exist when the last one has arrived.
    eventually("the last message is not forwarded", || recorders[0].has("last", "last@x.org"));
    eventually("entries wait", || queue.entries().iter().all(|entry| entry["state"] == "delivered"));
    for ((rule, expected), recorder) in table.iter().zip(&recorders) {
        let arrived: BTreeSet<[String; 2]> =
            recorder.arrived().into_keys().map(|(subject, recipient)| [subject, recipient]).collect();
        let expected: BTreeSet<[String; 2]> = expected.iter().map(|message| message.map(str::to_owned)).collect();
        assert_eq!(arrived, expected, "{rule}");
        assert!(recorder.arrived().into_values().all(|count| count == 1), "{rule}: a message arrived twice");
    }
}

#[test]
fn server_that_forwards_to_itself_sends_each_message_once() {
    let port = ReservedPort::new();
    let server = start_forwarding(&port, &port, "mx.test");
    send(&server, "ann@example.org", "One");
    eventually("the message is not forwarded", || server.count("ann") == 2);
    // The forwarded message is compared before this one, which arrives later.
    send(&server, "bob@example.org", "Two");
    eventually("the message is not forwarded", || server.count("bob") == 2);
    send(&server, "cleo@example.org", "Three");
    eventually("the message is not forwarded", || server.count("cleo") == 2);
    assert_eq!(["ann", "bob", "cleo"].map(|mailbox| server.count(mailbox)), [2; 3]);
    check_loops(&server, 3);
}

#[test]
fn two_servers_that_forward_to_each_other_send_each_message_once() {
    let ports = [ReservedPort::new(), ReservedPort::new()];
    let one = start_forwarding(&ports[0], &ports[1], "one.test");
    let two = start_forwarding(&ports[1], &ports[0], "two.test");
    for mailbox in ["ann", "bob", "cleo"] {
        send(&one, &format!("{mailbox}@example.org"), "Hello");
        eventually("the message does not come back", || one.count(mailbox) == 2);
        assert_eq!(two.count(mailbox), 1);
    }
    check_loops(&one, 3);
    assert_eq!(Queue::of(&two).entries().len(), 3);
}

#[test]
fn full_queue_delays_forwarding_without_loss() {
    let mut recorder = Recorder::start();
    recorder.stop();
    let server = start(&[&recorder.target()], &["--relay-forward", "recorder", "--relay-queue", "5"]);
    let queue = Queue::of(&server);
    // An empty queue takes any number of entries.
    send(&server, "ann@example.org", "0");
    eventually("the message is not in the queue", || queue.waiting() == 1);
    for number in 1..20 {
        send(&server, "ann@example.org", &number.to_string());
    }
    eventually("the queue is not full", || queue.waiting() == 5);
    let (status, problem) = queue.try_release(&latest(&server), &json!({})).unwrap();
    assert_eq!(status, 503, "{problem}");
    recorder.start_again();
    eventually("a message is lost", || {
        queue.retry(&json!({ "all": true }));
        (0..20).all(|number: usize| recorder.has(&number.to_string(), "ann@example.org"))
    });
}
