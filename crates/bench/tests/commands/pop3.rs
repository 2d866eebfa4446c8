//! Tests of the `pop3` command against the fake server.

use crate::fake::{Behavior, FakeServer};
use crate::{bench, errors, rows};

#[test]
fn pop3_measures_each_step() {
    let server = FakeServer::start(Behavior::Honest);
    let options = format!("--sessions 3 --messages 20 --size 500 --retrieve 10 --pid {}", std::process::id());
    let output = bench(&format!("pop3 --pop3 {} --smtp {} {options}", server.pop3, server.smtp));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(errors(&output).contains("3 mailboxes hold 60 messages, 30000 octets"), "{}", errors(&output));
    let rows = rows(&output);
    let steps: Vec<_> = rows.iter().map(|row| (row["step"].as_str().unwrap(), row["operations"].as_u64())).collect();
    let expected = [("login", 3), ("stat", 3), ("list", 3), ("uidl", 3), ("retr", 30), ("dele", 60), ("quit", 3)];
    assert_eq!(steps, expected.map(|(step, operations)| (step, Some(operations))));
    assert_eq!(rows[4]["bytes_each"], 500);
    assert!(rows.iter().all(|row| row["errors"] == 0));
    assert_eq!(server.stored("pop3-0") + server.stored("pop3-1") + server.stored("pop3-2"), 0, "all are deleted");
}

#[test]
fn pop3_can_keep_existing_mailboxes() {
    let server = FakeServer::start(Behavior::Honest);
    bench(&format!("smtp --smtp {} --messages 7", server.smtp));
    let output = bench(&format!("pop3 --pop3 {} --filled --mailbox bench --keep", server.pop3));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    assert_eq!((&rows[4]["step"], &rows[4]["operations"]), (&"retr".into(), &7.into()));
    assert_eq!(rows[5]["step"], "quit");
    assert_eq!(server.stored("bench-0"), 7);
}

#[test]
fn pop3_empties_before_it_fills() {
    let server = FakeServer::start(Behavior::Honest);
    for _ in 0..2 {
        let output = bench(&format!("pop3 --pop3 {} --smtp {} --messages 5 --keep", server.pop3, server.smtp));
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        assert_eq!(server.stored("pop3-0"), 5);
    }
}

#[test]
fn pop3_reports_missing_messages() {
    let server = FakeServer::start(Behavior::LosesEachTenth);
    let output = bench(&format!("pop3 --pop3 {} --smtp {} --messages 30", server.pop3, server.smtp));
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("1 mailboxes hold 27 of 30 messages"), "{}", errors(&output));
}

#[test]
fn pop3_requires_smtp_or_filled() {
    let output = bench("pop3 --pop3 127.0.0.1:1");
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("--smtp"), "{}", errors(&output));
}
