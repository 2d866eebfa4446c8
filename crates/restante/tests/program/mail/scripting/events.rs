//! Script events of stored and deleted messages, for every cause.

use super::folder::{Folder, send};

const REPORTER: &str = r#"
local note = require("note")

local function report(event, meta)
  note(event, meta.mailbox, meta.id, meta.from.name, meta.from.address, #meta.to, meta.to[1].name, meta.to[1].address,
    meta.date, meta.subject, meta.size)
end

function inbucket.after.message_stored(meta) report("stored", meta) end
function inbucket.after.message_deleted(meta) report("deleted", meta) end
"#;

/// Notes only the event and the subject.
const BRIEF: &str = r#"
local note = require("note")
function inbucket.after.message_stored(meta) note("stored", meta.subject) end
function inbucket.after.message_deleted(meta) note("deleted", meta.subject) end
"#;

#[test]
fn metadata_equals_the_listing() {
    let folder = Folder::new("metadata", REPORTER);
    let server = folder.start(&[]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<carl@x.org>", "250");
    connection.command("DATA", "354");
    connection
        .command("From: Ann <ann@y.org>\r\nTo: Bob <bob@x.org>, eve@x.org\r\nSubject: hi\r\n\r\nhello\r\n.", "250");

    let mut expected = Vec::new();
    for mailbox in ["bob", "carl"] {
        let summary = &server.json(&format!("/api/v1/mailbox/{mailbox}"))[0];
        let (id, size) = (summary["id"].as_str().unwrap(), &summary["size"]);
        let date = summary["posix-millis"].as_i64().unwrap() / 1000;
        expected.push(format!("stored {mailbox} {id} Ann ann@y.org 2 Bob bob@x.org {date} hi {size}"));
    }
    assert_eq!(folder.sorted_notes(2), expected);

    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/bob")).call().unwrap().status(), 200);
    assert_eq!(folder.notes(3)[2], expected[0].replace("stored", "deleted"));
}

#[test]
fn every_deletion_causes_an_event() {
    let folder = Folder::new("deletions", BRIEF);
    let mut server = folder.start(&["--storage-mailboxmsgcap", "2"]);
    for subject in ["evicted", "by id", "by POP3"] {
        send(&server, "bob@x.org", subject);
    }
    folder.notes(4);
    let id = &server.ids("bob")[0];
    assert_eq!(ureq::delete(server.url(&format!("/api/v1/mailbox/bob/{id}"))).call().unwrap().status(), 200);
    let mut pop3 = crate::support::pop3::Pop3::login(&mut server, "bob");
    pop3.ok("DELE 1");
    pop3.ok("QUIT");
    let notes = folder.sorted_notes(6);
    assert_eq!(notes[..3], ["deleted by POP3", "deleted by id", "deleted evicted"]);
    assert_eq!(notes[3..], ["stored by POP3", "stored by id", "stored evicted"]);
}

#[test]
fn expired_message_causes_an_event() {
    let folder = Folder::new("retention", BRIEF);
    let server = folder.start(&["--storage-retentionperiod", "1s"]);
    send(&server, "bob@x.org", "old");
    assert_eq!(folder.sorted_notes(2), ["deleted old", "stored old"]);
}

#[test]
fn single_state_receives_events_in_order() {
    let folder = Folder::new("order", BRIEF);
    let server = folder.start(&["--lua-states", "1", "--storage-mailboxmsgcap", "1"]);
    let mut expected = vec!["stored 0".to_owned()];
    for number in 0..20 {
        send(&server, "bob@x.org", &number.to_string());
        if number > 0 {
            expected.extend([format!("stored {number}"), format!("deleted {}", number - 1)]);
        }
    }
    assert_eq!(folder.notes(expected.len()), expected);
}

#[test]
fn shutdown_aborts_a_script_that_uses_the_store() {
    const MAILS: usize = 40;
    const STATES: usize = 8;
    let script = r#"
local note = require("note")
function inbucket.after.message_stored()
  note("begun")
  while true do pcall(restante.store.list, "bob") end
end
"#;
    let folder = Folder::new("end", script);
    let arguments = ["--lua-states", &STATES.to_string(), "--lua-timeout", "1m", "--data", "data"];
    let mut server = folder.start(&arguments);
    for number in 0..MAILS {
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.notes(STATES);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    let log = server.full_log();
    let line = format!("script events are dropped at shutdown events={}", MAILS - STATES);
    assert_eq!(log.matches(&line).count(), 1, "{log}");
    assert!(!log.contains("panicked"), "{log}");
}
