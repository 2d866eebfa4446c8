//! Messages as a whole with the real program: the list, waiting, events, changes and deletions.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::smtp::Sender;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, connect};

const MAIL: &[u8] = b"From: Ann <ann@x.org>\r\nTo: all@y.org\r\nCc: Joe <joe@y.org>\r\nSubject: Welcome\r\n\r\n\
                      Your code is 424242.\r\n";

/// Sends a message to these mailboxes.
fn send(server: &Server, mailboxes: &[&str], mail: &[u8]) {
    let mut sender = Sender::connect(server.smtp).unwrap();
    assert_eq!(sender.send(mailboxes, mail, || {}).unwrap(), 250);
}

/// Waits until the search index contains all messages.
fn wait_until_indexed(server: &Server) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while server.json("/api/v2/search?limit=1")["complete"] != true && Instant::now() < deadline {}
}

fn delete(server: &Server, path: &str) -> String {
    ureq::delete(server.url(path)).call().unwrap().body_mut().read_to_string().unwrap()
}

/// A message that is larger than the limit of one of its mailboxes is refused for all of its recipients.
#[test]
fn message_larger_than_the_policy_of_a_mailbox_is_refused() {
    let server = Server::start(&["--storage-policies", "small* maxkb=1; * maxkb=100"]);
    let large = [MAIL, &[b'x'; 1024], b"\r\n"].concat();
    // The recipients, the message, and the reply of SMTP.
    let table: [(&[&str], &[u8], u16); 4] =
        [(&["small"], MAIL, 250), (&["small"], &large, 552), (&["bob", "small"], &large, 552), (&["bob"], &large, 250)];
    let mut expected = [0, 0];
    for (recipients, mail, code) in table {
        let mut sender = Sender::connect(server.smtp).unwrap();
        assert_eq!(sender.send(recipients, mail, || {}).unwrap(), code, "{recipients:?} {}", mail.len());
        for (count, mailbox) in expected.iter_mut().zip(["small", "bob"]) {
            *count += usize::from(code == 250 && recipients.contains(&mailbox));
            assert_eq!(server.count(mailbox), *count, "{recipients:?} {}", mail.len());
        }
    }
    for (mailbox, mail, status) in [("small", &large[..], 413), ("small", MAIL, 201), ("bob", &large, 201)] {
        let url = server.url(&format!("/api/v2/mailbox/{mailbox}"));
        let request = ureq::post(url).config().http_status_as_error(false).build();
        let response = request.content_type("message/rfc822").send(mail).unwrap();
        assert_eq!(response.status(), status, "{mailbox} {}", mail.len());
    }
    assert_eq!(expected.map(|count| count + 1), [server.count("small"), server.count("bob")]);
}

#[test]
fn message_for_several_recipients_is_listed_once() {
    let server = Server::start(&[]);
    let mut events = LineConnection::new(connect(server.http));
    events.send("GET /api/v2/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    events.until(b"retry: ");
    send(&server, &["james", "kim", "lee"], MAIL);
    server.deliver("james@y.org", b"Subject: Again\r\n\r\n");
    let list = server.json("/api/v2/messages");
    let message = &list["messages"][1];
    assert_eq!((list["messages"].as_array().unwrap().len(), &list["next"]), (2, &Value::Null));
    let expected = json!({
        "from": "Ann <ann@x.org>",
        "to": ["<all@y.org>"],
        "cc": ["Joe <joe@y.org>"],
        "recipients": ["james@y.org", "kim@y.org", "lee@y.org"],
        "mailboxes": ["james", "kim", "lee"],
        "subject": "Welcome",
        "snippet": "Your code is 424242.",
        "attachments": 0,
        "seen": false,
        "tags": [],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&message[name], value, "{name}");
    }
    let id = message["id"].as_str().unwrap();
    let whole = server.json(&format!("/api/v2/messages/{id}"));
    assert_eq!((&whole["sender"], &whole["client"]["helo"]), (&json!("ann@x.org"), &json!("client.test")));
    assert_eq!((&whole["client"]["ip"], &whole["client"]["login"]), (&json!("127.0.0.1"), &Value::Null));
    assert_eq!(whole["copies"][2]["mailbox"], "lee");
    assert_eq!(server.json(&format!("/api/v2/messages/{id}/codes"))["codes"][0]["code"], "424242");
    assert!(server.bytes(&format!("/api/v2/messages/{id}/source")).ends_with(MAIL));

    // One event for the message, then the one for the next message.
    let text = String::from_utf8(events.until(b"Again")).unwrap();
    assert_eq!(text.matches("event: message-stored").count(), 2, "{text}");
    assert!(text.contains("\"message\":{\"id\":\""), "{text}");
    let waited = server.json("/api/v2/wait?match=subject:again");
    assert_eq!(waited["messages"], json!([list["messages"][0]]));
}

#[test]
fn messages_are_changed_and_deleted() {
    let server = Server::start(&[]);
    send(&server, &["james", "kim"], MAIL);
    send(&server, &["kim", "lee"], b"Subject: Other\r\n\r\n");
    let change = ureq::patch(server.url("/api/v2/messages/latest")).content_type("application/json");
    let mut response = change.send("{\"seen\": true, \"tags\": [\"run 7\"]}").unwrap();
    let changed: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!((&changed["seen"], &changed["tags"]), (&json!(true), &json!(["run 7"])));
    for (mailbox, seen) in [("lee", true), ("james", false)] {
        assert_eq!(server.json(&format!("/api/v1/mailbox/{mailbox}/latest"))["seen"], seen, "{mailbox}");
    }
    wait_until_indexed(&server);
    let found = server.json("/api/v2/messages?q=424242");
    assert_eq!((found["messages"].as_array().unwrap().len(), &found["messages"][0]["subject"]), (1, &json!("Welcome")));
    assert_eq!(delete(&server, "/api/v2/messages?q=subject:other"), "{\"deleted\":1}\n");
    assert_eq!(["james", "kim", "lee"].map(|mailbox| server.count(mailbox)), [1, 1, 0]);
    let id = server.json("/api/v2/messages/latest")["id"].as_str().unwrap().to_owned();
    assert_eq!(delete(&server, &format!("/api/v2/messages/{id}")), "\"OK\"\n");
    assert_eq!(server.json("/api/v2/messages"), json!({"messages": [], "next": null}));
}
