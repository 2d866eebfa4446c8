//! What test suites do: wait for mail, hand it in over HTTP, and throw all of it away. Against the real program.

use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::{Server, Talk, connect};

const MAIL: &[u8] = b"From: Ann <ann@x.org>\r\nSubject: Welcome\r\n\r\nYour code is 4711.\r\n";

/// Asks for something that takes a while, on a connection of its own.
fn begin(server: &Server, path: &str) -> Talk<TcpStream> {
    let mut talk = Talk::new(connect(server.http));
    talk.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    talk
}

/// The status and the body of an answer.
fn answer(mut talk: Talk<TcpStream>) -> (u16, Value) {
    let status = talk.line().expect("an answer");
    let mut length = 0;
    while let Some(line) = talk.line().filter(|line| !line.is_empty()) {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let body = talk.exactly(length);
    (status[9..12].parse().unwrap(), if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() })
}

fn ask(server: &Server, path: &str) -> (u16, Value) {
    answer(begin(server, path))
}

fn subjects(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap()).collect()
}

#[test]
fn mail_that_comes_and_mail_that_does_not() {
    let server = Server::start(&[]);
    let wait = "/api/v2/mailbox/james/wait";
    let waiting = begin(&server, &format!("{wait}?match=subject:welcome+4711"));
    let latest = begin(&server, "/api/v1/mailbox/james/latest?wait=10m");
    let unexpected = begin(&server, &format!("{wait}?expect=none&timeout=10m"));
    let two = begin(&server, &format!("{wait}?count=2&timeout=10m"));
    server.deliver("other@x.org", MAIL);
    server.deliver("james@x.org", MAIL);
    let (status, body) = answer(waiting);
    assert_eq!((status, subjects(&body)), (200, vec!["Welcome"]));
    let first = body["messages"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(answer(latest).1["body"]["text"], "Your code is 4711.\r\n".replace('\r', ""));
    assert_eq!(answer(unexpected).0, 409);

    // It was there before, and nothing behind it.
    assert_eq!(ask(&server, &format!("{wait}?timeout=0")).0, 200);
    let (status, body) = ask(&server, &format!("{wait}?timeout=10ms&after={first}"));
    assert_eq!((status, subjects(&body)), (408, vec![]));
    assert_eq!(ask(&server, &format!("{wait}?timeout=10ms&after={first}&expect=none")), (204, Value::Null));
    assert_eq!(ask(&server, &format!("{wait}?match=subject:(")).0, 400);

    server.deliver("james@x.org", b"Subject: Again\r\n\r\n");
    assert_eq!(subjects(&answer(two).1), ["Welcome", "Again"]);
}

#[test]
fn the_end_of_the_server_under_a_thousand_waiters() {
    let mut server = Server::start(&["--web-maxconnections", "3000"]);
    // A thousand connections and those of the tests beside this one are more than a usual limit of 1024 allows.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let crowd: Vec<_> = (0..1000)
        .map(|number| begin(&server, &format!("/api/v2/mailbox/box{}/wait?timeout=10m", number % 500)))
        .collect();
    // Some leave, some get what they wait for, the others wait to the end.
    let mut crowd = crowd.into_iter();
    crowd.by_ref().take(100).for_each(drop);
    for number in 100..200 {
        server.deliver(&format!("box{number}@x.org"), MAIL);
    }
    for _ in 0..100 {
        assert_eq!(answer(crowd.next().unwrap()).0, 200);
    }
    let rest: Vec<_> = crowd.collect();
    server.signal("TERM");
    let mut refused = 0;
    for mut talk in rest {
        // A connection whose request was not read by then is closed without an answer.
        let Some(status) = talk.line() else { continue };
        match &status[9..12] {
            "200" => {}
            "503" => refused += 1,
            _ => panic!("{status}"),
        }
    }
    assert!(refused > 0, "nobody was told");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn mail_over_http_is_mail() {
    let server = Server::start(&[]);
    let mut events = Talk::new(connect(server.http));
    events.send("GET /api/v2/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    events.until(b"retry: ");
    let post = |path: &str, kind: &str, body: &[u8]| {
        let answer = ureq::post(server.url(path)).content_type(kind).send(body);
        let mut answer = answer.unwrap();
        let body: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        (answer.status().as_u16(), answer.headers()["location"].to_str().unwrap().to_owned(), body)
    };
    let (status, location, body) = post("/api/v2/mailbox/james?from=bounce@x.org", "message/rfc822", MAIL);
    assert_eq!((status, subjects(&body)), (201, vec!["Welcome"]));
    events.until(b"Welcome");
    let source = server.bytes(&format!("{location}/source"));
    assert!(source.ends_with(MAIL));
    let trace = String::from_utf8_lossy(&source[..source.len() - MAIL.len()]).into_owned();
    let start = "Return-Path: <bounce@x.org>\r\nReceived: from [127.0.0.1] ([127.0.0.1]) by mx.test\r\n  for <james>; ";
    assert!(trace.starts_with(start), "{trace}");

    let pieces = json!({"from": "Ann <ann@x.org>", "subject": "Grüße", "text": "Hällo", "html": "<p>Hällo</p>",
        "attachments": [{"filename": "ü.txt", "content": "SGVsbG8="}]});
    let (_, location, _) = post("/api/v2/mailbox/james", "application/json", pieces.to_string().as_bytes());
    let message = server.json(&location);
    assert_eq!((&message["subject"], &message["to"]), (&json!("Grüße"), &json!(["<james@mx.test>"])));
    assert_eq!(message["body"], json!({"text": "Hällo", "html": "<p>Hällo</p>"}));
    assert_eq!(message["attachments"][0]["filename"], "ü.txt");
}

#[test]
fn nothing_is_left() {
    let server = Server::start(&[]);
    for name in ["ann", "ann", "bob"] {
        server.deliver(&format!("{name}@x.org"), MAIL);
    }
    let mut answer = ureq::delete(server.url("/api/v2/mailboxes")).call().unwrap();
    assert_eq!(answer.body_mut().read_to_string().unwrap(), "{\"deleted\":3}\n");
    assert_eq!(server.json("/api/v2/mailboxes")["mailboxes"], json!([]));
}
