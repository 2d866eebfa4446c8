//! The live monitor of the real program: every way to store and delete messages causes events for subscribers.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::imap::Imap;
use crate::support::monitor::{EventStream, SocketMessage, WebSocketClient};
use crate::support::pop3::Pop3;
use crate::support::{Server, TEST_TIMEOUT};

const V1: &str = "/api/v1/monitor/messages";
const V2: &str = "/api/v2/monitor/messages";
const EVENTS: &str = "/api/v2/events";

/// Sends messages with these subjects over one connection.
fn send(server: &Server, to: &[&str], subjects: impl IntoIterator<Item = String>) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    for subject in subjects {
        connection.command("MAIL FROM:<ann@x.org>", "250");
        for to in to {
            connection.command(&format!("RCPT TO:<{to}>"), "250");
        }
        connection.command("DATA", "354");
        connection.command(&format!("From: ann@x.org\r\nTo: all@x.org\r\nSubject: {subject}\r\n\r\nHello\r\n."), "250");
    }
    connection.command("QUIT", "221");
}

fn send_one(server: &Server, to: &str, subject: &str) {
    send(server, &[to], [subject.to_owned()]);
}

fn delete(server: &Server, path: &str) {
    ureq::delete(server.url(&format!("/api/v1/mailbox/{path}"))).call().unwrap();
}

/// Abbreviates an event of version 2: `+subject` or `-id`.
fn short(frame: &Value) -> String {
    match frame["variant"].as_str().unwrap() {
        "message-stored" => {
            assert_eq!(frame["identifier"], Value::Null);
            format!("+{}", frame["header"]["subject"].as_str().unwrap())
        }
        "message-deleted" => {
            assert_eq!(frame["header"], Value::Null);
            format!("-{}", frame["identifier"]["id"].as_str().unwrap())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn stored_message_reaches_every_kind_of_subscriber() {
    let server = Server::start(&["--web-basepath", "/mail"]);
    send_one(&server, "early@x.org", "history");
    let (mut v1, mut v2) = (WebSocketClient::open(&server, V1), WebSocketClient::open(&server, &format!("/mail{V2}")));
    let mut bob = WebSocketClient::open(&server, &format!("{V1}/Bob+tag@y.org"));
    let mut events = EventStream::open(&server, &format!("/mail{EVENTS}"), "");
    assert_eq!(v1.text()["subject"], "history");
    assert_eq!(short(&v2.text()), "+history");
    assert_eq!(short(&events.next().unwrap().data), "+history");

    send_one(&server, "ann@x.org", "for ann");
    send_one(&server, "bob@x.org", "for bob");
    let record = &server.json("/api/v1/mailbox/bob")[0];
    assert_eq!(v1.text()["subject"], "for ann");
    assert_eq!((v1.text(), bob.text()), (record.clone(), record.clone()));
    assert_eq!((short(&v2.text()), short(&v2.text())), ("+for ann".into(), "+for bob".into()));
    assert_eq!(events.next().unwrap().name, "message-stored");
    assert_eq!(events.next().unwrap().data["header"], *record);

    let metrics = String::from_utf8(server.bytes("/metrics")).unwrap();
    for line in ["restante_monitors{kind=\"websocket\"} 3\n", "restante_monitors{kind=\"sse\"} 1\n"] {
        assert!(metrics.contains(line), "{line}");
    }
    assert_eq!(server.json("/debug/vars")["http"]["WebSocketConnectsCurrent"], 3);
}

#[test]
fn every_cause_of_deletion_sends_an_event() {
    let options = [
        vec!["--storage-mailboxmsgcap", "2"],
        vec!["--storage-params", "maxkb:4"],
        vec!["--storage-retentionperiod", "1s"],
    ];
    let [mut cap, size_limit, age] = options.map(|options| Server::start(&options));

    let mut socket = WebSocketClient::open(&cap, V2);
    let mut ids = Vec::new();
    for subject in ["one", "two", "three", "four"] {
        send_one(&cap, "bob@x.org", subject);
        let stored = socket.text();
        assert_eq!(short(&stored), format!("+{subject}"));
        ids.push(stored["header"]["id"].as_str().unwrap().to_owned());
        if ids.len() > 2 {
            assert_eq!(short(&socket.text()), format!("-{}", ids[ids.len() - 3]), "the cap");
        }
    }
    delete(&cap, &format!("bob/{}", ids[2]));
    assert_eq!(short(&socket.text()), format!("-{}", ids[2]));
    delete(&cap, "bob");
    assert_eq!(short(&socket.text()), format!("-{}", ids[3]), "a purge");
    send_one(&cap, "bob@x.org", "five");
    let stored = socket.text();
    let mut pop3 = Pop3::login(&mut cap, "bob");
    pop3.ok("DELE 1");
    pop3.quit();
    assert_eq!(socket.text()["identifier"]["id"], stored["header"]["id"], "POP3");
    send_one(&cap, "bob@x.org", "six");
    let stored = socket.text();
    let mut imap = Imap::login(&mut cap, "bob");
    for command in ["SELECT INBOX", "STORE 1 +FLAGS.SILENT (\\Deleted)", "CLOSE"] {
        imap.ok(command);
    }
    assert_eq!(socket.text()["identifier"]["id"], stored["header"]["id"], "IMAP");

    let mut socket = WebSocketClient::open(&size_limit, V2);
    send(&size_limit, &["bob@x.org"], (0..50).map(|number| format!("{number} {}", "x".repeat(400))));
    let first = socket.text()["header"]["id"].as_str().unwrap().to_owned();
    let deleted = std::iter::repeat_with(|| short(&socket.text())).find(|frame| frame.starts_with('-'));
    assert_eq!(deleted, Some(format!("-{first}")), "the size limit");

    let mut socket = WebSocketClient::open(&age, V2);
    send_one(&age, "bob@x.org", "old");
    let stored = socket.text();
    assert_eq!(socket.text()["identifier"], serde_json::json!({"mailbox": "bob", "id": stored["header"]["id"]}), "age");
    // Deleted messages are not in the history of later subscribers.
    let mut late = WebSocketClient::open(&age, V2);
    send_one(&age, "bob@x.org", "new");
    assert_eq!(short(&late.text()), "+new");
}

#[test]
fn stream_continues_at_the_last_event_id() {
    let server = Server::start(&[]);
    let mut events = EventStream::open(&server, EVENTS, "");
    send(&server, &["bob@x.org"], ["one", "two", "three"].map(str::to_owned));
    let first = events.next().unwrap();
    assert_eq!(short(&first.data), "+one");
    drop(events);
    delete(&server, "bob");
    let mut events = EventStream::open(&server, EVENTS, &format!("Last-Event-ID: {}\r\n", first.id));
    let frames: Vec<String> = (0..5).map(|_| short(&events.next().unwrap().data)).collect();
    assert_eq!(frames[..2], ["+two", "+three"]);
    assert!(frames[2..].iter().all(|frame| frame.starts_with('-')), "{frames:?}");

    // A restarted server does not know the old positions.
    let next = Server::start(&[]);
    send_one(&next, "bob@x.org", "another life");
    let mut events = EventStream::open(&next, &format!("{EVENTS}?lastEventId={}", first.id), "");
    assert_eq!(events.next().unwrap().name, "lagged");
    assert_eq!(short(&events.next().unwrap().data), "+another life");
}

#[test]
fn slow_subscriber_is_disconnected_and_others_are_not_affected() {
    const MAILS: usize = 150;
    let server = Server::start(&["--storage-mailboxmsgcap", "0"]);
    let recipients: Vec<String> = (0..200).map(|number| format!("{number}@x.org")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let mut slow = WebSocketClient::open_with_small_buffer(&server, V2);
    let mut other = WebSocketClient::open(&server, &format!("{V1}/somebody"));
    let subjects = (0..MAILS).map(|number| format!("{number} {}", "x".repeat(900)));
    send(&server, &recipients, subjects);
    let mut frames = 0;
    let end = loop {
        match slow.next() {
            SocketMessage::Text(_) => frames += 1,
            end @ SocketMessage::Closed(_) => break end,
        }
    };
    assert_eq!(end, SocketMessage::Closed(1013));
    assert!(frames < MAILS * recipients.len());
    slow.wait_for_close();
    send_one(&server, "somebody@x.org", "hello");
    assert_eq!(other.text()["subject"], "hello");
}

#[test]
fn large_client_messages_close_the_socket() {
    let server = Server::start(&[]);
    let mut socket = WebSocketClient::open(&server, V1);
    socket.send("x".repeat(512));
    send_one(&server, "bob@x.org", "short");
    assert_eq!(socket.text()["subject"], "short");
    socket.send("x".repeat(100_000));
    assert_eq!(socket.next(), SocketMessage::Closed(1009));
}

#[test]
fn rejects_invalid_monitor_requests() {
    let server = Server::start(&[]);
    let status = |path: &str, header: (&str, &str)| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(server.url(path)).header(header.0, header.1).call().unwrap().status().as_u16()
    };
    assert_eq!(status(V1, ("X-Nothing", "x")), 426);
    assert_eq!(status(V2, ("Origin", "http://evil.example")), 403);
    assert_eq!(status(EVENTS, ("Origin", "http://evil.example")), 403);
    assert_eq!(status(&format!("{EVENTS}/no%20name"), ("X-Nothing", "x")), 400);
}

#[test]
fn shutdown_closes_monitors_without_waiting() {
    let mut server = Server::start(&[]);
    let (mut socket, mut events) = (WebSocketClient::open(&server, V2), EventStream::open(&server, EVENTS, ""));
    let _stalled = WebSocketClient::open_with_small_buffer(&server, V1);
    send(&server, &["bob@x.org"], (0..200).map(|number| format!("{number} {}", "x".repeat(900))));
    for _ in 0..200 {
        socket.text();
        events.next().unwrap();
    }
    let start = Instant::now();
    server.signal("TERM");
    assert_eq!(socket.next(), SocketMessage::Closed(1001));
    socket.wait_for_close();
    assert!(events.next().is_none());
    assert!(server.wait().success());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(!server.full_log().contains("in time"));
}

#[test]
fn monitors_count_as_connections() {
    for is_stream_first in [false, true] {
        let server = Server::start(&["--web-maxconnections", "2"]);
        let (socket, stream) = (WebSocketClient::open(&server, V1), EventStream::open(&server, EVENTS, ""));
        let status = || {
            let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
            agent.get(server.url("/livez")).call().map_or(0, |response| response.status().as_u16())
        };
        assert_eq!(status(), 503);
        // One client disconnects, and the other one stays connected.
        let (mut socket, mut stream) = (Some(socket), Some(stream));
        if is_stream_first {
            stream = None;
        } else {
            socket = None;
        }
        let deadline = Instant::now() + TEST_TIMEOUT;
        while status() != 200 {
            assert!(Instant::now() < deadline, "the connection slot is not freed");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop((socket, stream));
    }
}

#[test]
fn monitor_limit_leaves_connections_for_other_requests() {
    let server = Server::start(&["--web-maxconnections=4", "--web-maxmonitors=1"]);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let monitor = EventStream::open(&server, EVENTS, "");
    let refused = agent.get(server.url(EVENTS)).call().unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"5"[..]));
    assert_eq!(agent.get(server.url("/readyz")).call().unwrap().status(), 200);
    drop(monitor);
}
