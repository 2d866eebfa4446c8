//! Messages before they are stored: what a script sees of them, and the effect of its changes.

use serde_json::json;

use super::folder::{Folder, send, subjects, wait_for_calls};

use crate::support::exposition::Exposition;

/// The subject selects what the script does.
const CHANGES: &str = r#"
local changes = {
  ["nil"] = function() return nil end,
  ["false"] = function() return false end,
  forgotten = function(msg) msg.mailboxes = { "other" } end,
  unchanged = function(msg) return msg end,
  moved = function(msg) msg.mailboxes = { "other" } return msg end,
  spread = function(msg) msg.mailboxes = { "One", "two+tag@x.org", "one" } return msg end,
  copied = function(msg) table.insert(msg.mailboxes, "copy") return msg end,
  discarded = function(msg) msg.mailboxes = {} return msg end,
  made = function(msg)
    local new = inbound_message.new()
    new.mailboxes, new.subject, new.from = { "made" }, "new", address.new("Maker", "maker@x.org")
    return new
  end,
  ["bad name"] = function(msg) msg.mailboxes = { "no name" } return msg end,
  ["bad name in place"] = function(msg) msg.mailboxes[1] = "no name" return msg end,
  ["bad list"] = function(msg) msg.mailboxes = "other" return msg end,
  size = function(msg) msg.size = 1 return msg end,
  ["true"] = function(msg) return true end,
  text = function(msg) return "other" end,
}

function inbucket.before.message_stored(msg)
  return changes[msg.subject](msg)
end
"#;

#[test]
fn script_sets_the_mailboxes_of_a_message() {
    let table: [(&str, &[&str]); 9] = [
        ("nil", &["bob"]),
        ("false", &["bob"]),
        ("forgotten", &["bob"]),
        ("unchanged", &["bob"]),
        ("moved", &["other"]),
        ("spread", &["one", "two"]),
        ("copied", &["bob", "copy"]),
        ("discarded", &[]),
        ("made", &["made"]),
    ];
    for (subject, mailboxes) in table {
        let folder = Folder::new("destinations", CHANGES);
        let server = folder.start(&[]);
        send(&server, "bob@x.org", subject);
        wait_for_calls(&server, "before.message_stored", "ok", 1);
        for mailbox in ["bob", "other", "one", "two", "copy", "made"] {
            assert_eq!(server.count(mailbox), usize::from(mailboxes.contains(&mailbox)), "{subject}: {mailbox}");
        }
        let page = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
        let discarded = if mailboxes.is_empty() { 1.0 } else { 0.0 };
        assert!((page.value("restante_messages_discarded_total") - discarded).abs() < 1e-9, "{subject}");
    }
}

#[test]
fn invalid_result_is_ignored_and_logged_with_its_line() {
    let folder = Folder::new("bad-messages", CHANGES);
    let mut server = folder.start(&[]);
    let no_name = "inbound_message.mailboxes holds 'no name': the local part has a character that needs quotes";
    let table = [
        ("bad name", no_name, 16),
        ("bad name in place", no_name, 24),
        ("bad list", "inbound_message.mailboxes must be a list of texts, not a text", 18),
        ("size", "inbound_message.size is read-only", 19),
        ("true", "must return the message, nil or false, not a boolean", 24),
        ("text", "must return the message, nil or false, not a text", 24),
    ];
    for (subject, problem, line) in table {
        send(&server, "bob@x.org", subject);
        server.wait_for_log(&format!("ERROR {problem} script=rules.lua line={line} event=before.message_stored"));
    }
    assert_eq!(subjects(&server, "bob"), table.map(|(subject, ..)| subject));
    assert_eq!(server.count("other"), 0);
}

#[test]
fn script_changes_the_listing_but_not_the_source() {
    let folder = Folder::new(
        "headline",
        r#"
function inbucket.before.message_stored(msg)
  assert(msg.from.name == "Ann Ä" and msg.from.address == "ann@x.org")
  assert(#msg.to == 2 and msg.to[1].name == "Bob" and msg.to[2].address == "carl@x.org")
  msg.from.name = "Nobody"
  msg.to = { address.new("Dora", "dora@x.org"), msg.to[1] }
  msg.subject = "[test] " .. msg.subject
  return msg
end
"#,
    );
    let server = folder.start(&[]);
    let mail =
        "From: =?utf-8?q?Ann_=C3=84?= <ann@x.org>\r\nTo: Bob <bob@x.org>, carl@x.org\r\nSubject: hi\r\n\r\nhello\r\n";
    server.deliver("bob@x.org", mail.as_bytes());
    let summary = &server.json("/api/v1/mailbox/bob")[0];
    assert_eq!(summary["from"], "Nobody <ann@x.org>");
    assert_eq!(summary["to"], json!(["Dora <dora@x.org>", "Bob <bob@x.org>"]));
    assert_eq!(summary["subject"], "[test] hi");
    let source = String::from_utf8(server.bytes("/api/v1/mailbox/bob/latest/source")).unwrap();
    assert!(source.ends_with(mail), "{source}");
}

#[test]
fn script_can_store_messages_that_the_policy_discards() {
    let folder = Folder::new(
        "rescue",
        r#"
local note = require("note")

function inbucket.before.message_stored(msg)
  note(msg.subject, #msg.mailboxes)
  if msg.subject == "rescue" then
    msg.mailboxes = { "rescued" }
    return msg
  end
end
"#,
    );
    let server = folder.start(&["--smtp-discarddomains", "drop.test"]);
    send(&server, "bob@drop.test", "rescue");
    send(&server, "bob@drop.test", "drop");
    assert_eq!(folder.notes(2), ["rescue 0", "drop 0"]);
    assert_eq!(subjects(&server, "rescued"), ["rescue"]);
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn script_mailboxes_follow_the_naming_setting() {
    let folder = Folder::new(
        "naming",
        r#"
local note = require("note")

function inbucket.before.message_stored(msg)
  note(unpack(msg.mailboxes))
  msg.mailboxes = { "Eve+tag@Y.org" }
  return msg
end
"#,
    );
    for (naming, before, after) in
        [("local", "bob", "eve"), ("full", "bob@x.org", "eve@y.org"), ("domain", "x.org", "y.org")]
    {
        let server = folder.start(&["--mailboxnaming", naming]);
        send(&server, "Bob@X.org", "hi");
        assert_eq!(server.count(after), 1, "{naming}");
        assert_eq!(folder.notes(1), [before]);
        folder.remove("notes.txt");
    }
}

#[test]
fn script_sees_and_sets_projects() {
    let folder = Folder::new(
        "projects",
        r#"
local note = require("note")

function inbucket.before.message_stored(msg)
  note(unpack(msg.mailboxes))
  msg.mailboxes = { "Acme:Eve+tag@Y.org", msg.mailboxes[1], "ann" }
  return msg
end
"#,
    );
    let server = folder.start(&["--projects-rules", "shop header=X-App:*"]);
    server.deliver("Bob@X.org", b"X-App: a\r\n\r\n");
    assert_eq!(folder.notes(1), ["shop:bob"]);
    for (mailbox, count) in [("acme:eve", 1), ("shop:bob", 1), ("ann", 1), ("bob", 0), ("eve", 0)] {
        assert_eq!(server.count(mailbox), count, "{mailbox}");
    }
}

#[test]
fn script_reads_the_content_of_a_message() {
    let folder = Folder::new(
        "contents",
        r#"
local note = require("note")

function inbucket.before.message_stored(msg)
  note(msg.size == #msg.source, msg.headers["x-run"], table.concat(msg.headers:all("X-Run"), "+"), msg.headers[1].name)
  note(msg.text, msg.html, #msg.attachments, msg.attachments[1].filename, msg.attachments[1].size)
end

function inbucket.after.message_stored(meta)
  note(meta.size == #meta.source, meta.source:match("^Return%-Path: <ann@x.org>\r\n") ~= nil, meta.text)
end

function inbucket.after.message_deleted(meta)
  note(meta.source, meta.text, meta.headers)
end
"#,
    );
    let server = folder.start(&[]);
    let mail = "X-Run: 1\r\nX-Run: 2\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/plain\r\n\r\nhello\r\n\
        --b\r\nContent-Type: text/html\r\n\r\n<p>hello\r\n\
        --b\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nabc\r\n--b--\r\n";
    server.deliver("bob@x.org", mail.as_bytes());
    folder.notes(3);
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/bob")).call().unwrap().status(), 200);
    let expected = ["true 1 1+2 X-Run", "hello <p>hello 1 a.txt 3", "true true hello", "nil nil nil"];
    assert_eq!(folder.notes(4), expected);
}
