//! The live monitor of the real program: mail comes in and goes, by every way there is, and those who listen hear of it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::monitor::{Ear, EventStream, Heard};
use crate::support::pop3::Pop3;
use crate::support::{LONG, Server};

const V1: &str = "/api/v1/monitor/messages";
const V2: &str = "/api/v2/monitor/messages";
const EVENTS: &str = "/api/v2/events";

/// Sends mails with these subjects over one connection.
fn send(server: &Server, to: &[&str], subjects: impl IntoIterator<Item = String>) {
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    for subject in subjects {
        talk.say("MAIL FROM:<ann@x.org>", "250");
        for to in to {
            talk.say(&format!("RCPT TO:<{to}>"), "250");
        }
        talk.say("DATA", "354");
        talk.say(&format!("From: ann@x.org\r\nTo: all@x.org\r\nSubject: {subject}\r\n\r\nHello\r\n."), "250");
    }
    talk.say("QUIT", "221");
}

fn send_one(server: &Server, to: &str, subject: &str) {
    send(server, &[to], [subject.to_owned()]);
}

fn delete(server: &Server, path: &str) {
    ureq::delete(server.url(&format!("/api/v1/mailbox/{path}"))).call().unwrap();
}

/// A frame of version 2 in short: `+subject` or `-id`.
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
fn one_mail_is_heard_in_every_way() {
    let server = Server::start(&["--web-basepath", "/mail"]);
    send_one(&server, "early@x.org", "history");
    let (mut v1, mut v2) = (Ear::open(&server, V1), Ear::open(&server, &format!("/mail{V2}")));
    let mut bob = Ear::open(&server, &format!("{V1}/Bob+tag@y.org"));
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
fn every_cause_of_deletion_is_told() {
    let options = [
        vec!["--storage-mailboxmsgcap", "2"],
        vec!["--storage-params", "maxkb:4"],
        vec!["--storage-retentionperiod", "1s"],
    ];
    let [mut cap, bound, age] = options.map(|options| Server::start(&options));

    let mut ear = Ear::open(&cap, V2);
    let mut ids = Vec::new();
    for subject in ["one", "two", "three", "four"] {
        send_one(&cap, "bob@x.org", subject);
        let stored = ear.text();
        assert_eq!(short(&stored), format!("+{subject}"));
        ids.push(stored["header"]["id"].as_str().unwrap().to_owned());
        if ids.len() > 2 {
            assert_eq!(short(&ear.text()), format!("-{}", ids[ids.len() - 3]), "the cap");
        }
    }
    delete(&cap, &format!("bob/{}", ids[2]));
    assert_eq!(short(&ear.text()), format!("-{}", ids[2]));
    delete(&cap, "bob");
    assert_eq!(short(&ear.text()), format!("-{}", ids[3]), "a purge");
    send_one(&cap, "bob@x.org", "five");
    let stored = ear.text();
    let mut pop3 = Pop3::login(&mut cap, "bob");
    pop3.ok("DELE 1");
    pop3.quit();
    assert_eq!(ear.text()["identifier"]["id"], stored["header"]["id"], "POP3");

    let mut ear = Ear::open(&bound, V2);
    send(&bound, &["bob@x.org"], (0..50).map(|number| format!("{number} {}", "x".repeat(400))));
    let first = ear.text()["header"]["id"].as_str().unwrap().to_owned();
    let gone = std::iter::repeat_with(|| short(&ear.text())).find(|frame| frame.starts_with('-'));
    assert_eq!(gone, Some(format!("-{first}")), "the bound");

    let mut ear = Ear::open(&age, V2);
    send_one(&age, "bob@x.org", "old");
    let stored = ear.text();
    assert_eq!(ear.text()["identifier"], serde_json::json!({"mailbox": "bob", "id": stored["header"]["id"]}), "age");
    // What is gone is not in the history of those who come later.
    let mut late = Ear::open(&age, V2);
    send_one(&age, "bob@x.org", "new");
    assert_eq!(short(&late.text()), "+new");
}

#[test]
fn a_stream_goes_on_where_it_was_cut_off() {
    let server = Server::start(&[]);
    let mut events = EventStream::open(&server, EVENTS, "");
    send(&server, &["bob@x.org"], ["one", "two", "three"].map(str::to_owned));
    let first = events.next().unwrap();
    assert_eq!(short(&first.data), "+one");
    drop(events);
    delete(&server, "bob");
    let mut events = EventStream::open(&server, EVENTS, &format!("Last-Event-ID: {}\r\n", first.id));
    let heard: Vec<String> = (0..5).map(|_| short(&events.next().unwrap().data)).collect();
    assert_eq!(heard[..2], ["+two", "+three"]);
    assert!(heard[2..].iter().all(|frame| frame.starts_with('-')), "{heard:?}");

    // The next server knows nothing of this one's positions.
    let next = Server::start(&[]);
    send_one(&next, "bob@x.org", "another life");
    let mut events = EventStream::open(&next, &format!("{EVENTS}?lastEventId={}", first.id), "");
    assert_eq!(events.next().unwrap().name, "lagged");
    assert_eq!(short(&events.next().unwrap().data), "+another life");
}

#[test]
fn who_does_not_listen_is_cut_off_and_the_others_hear_everything() {
    const MAILS: usize = 150;
    let server = Server::start(&["--storage-mailboxmsgcap", "0"]);
    let recipients: Vec<String> = (0..200).map(|number| format!("{number}@x.org")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let mut deaf = Ear::hard_of_hearing(&server, V2);
    let mut quiet = Ear::open(&server, &format!("{V1}/somebody"));
    let subjects = (0..MAILS).map(|number| format!("{number} {}", "x".repeat(900)));
    send(&server, &recipients, subjects);
    let mut heard = 0;
    let end = loop {
        match deaf.next() {
            Heard::Text(_) => heard += 1,
            end @ Heard::Closed(_) => break end,
        }
    };
    assert_eq!(end, Heard::Closed(1013));
    assert!(heard < MAILS * recipients.len());
    deaf.hang_up();
    send_one(&server, "somebody@x.org", "hello");
    assert_eq!(quiet.text()["subject"], "hello");
}

#[test]
fn a_client_has_little_to_say() {
    let server = Server::start(&[]);
    let mut ear = Ear::open(&server, V1);
    ear.say("x".repeat(512));
    send_one(&server, "bob@x.org", "heard");
    assert_eq!(ear.text()["subject"], "heard");
    ear.say("x".repeat(100_000));
    assert_eq!(ear.next(), Heard::Closed(1009));
}

#[test]
fn doors_that_stay_closed() {
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
fn the_end_is_told_and_waits_for_nobody() {
    let mut server = Server::start(&[]);
    let (mut ear, mut events) = (Ear::open(&server, V2), EventStream::open(&server, EVENTS, ""));
    let _stalled = Ear::hard_of_hearing(&server, V1);
    send(&server, &["bob@x.org"], (0..200).map(|number| format!("{number} {}", "x".repeat(900))));
    for _ in 0..200 {
        ear.text();
        events.next().unwrap();
    }
    let start = Instant::now();
    server.signal("TERM");
    assert_eq!(ear.next(), Heard::Closed(1001));
    ear.hang_up();
    assert!(events.next().is_none());
    assert!(server.wait().success());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(!server.whole_log().contains("cut off"));
}

#[test]
fn monitors_count_among_the_connections() {
    for is_stream_first in [false, true] {
        let server = Server::start(&["--web-maxconnections", "2"]);
        let (ear, stream) = (Ear::open(&server, V1), EventStream::open(&server, EVENTS, ""));
        let status = || {
            let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
            agent.get(server.url("/livez")).call().map_or(0, |answer| answer.status().as_u16())
        };
        assert_eq!(status(), 503);
        // One leaves, and the other one stays until the end.
        let (mut ear, mut stream) = (Some(ear), Some(stream));
        if is_stream_first {
            stream = None;
        } else {
            ear = None;
        }
        let deadline = Instant::now() + LONG;
        while status() != 200 {
            assert!(Instant::now() < deadline, "the place is not free again");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop((ear, stream));
    }
}

#[test]
fn monitors_leave_places_to_others() {
    let server = Server::start(&["--web-maxconnections=4", "--web-maxmonitors=1"]);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let monitor = EventStream::open(&server, EVENTS, "");
    let refused = agent.get(server.url(EVENTS)).call().unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"5"[..]));
    assert_eq!(agent.get(server.url("/readyz")).call().unwrap().status(), 200);
    drop(monitor);
}
