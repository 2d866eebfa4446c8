//! The API for test suites with the real program: waiting for messages, injecting them over HTTP, and deleting all of them.

use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::{LineConnection, Server, connect};

const MAIL: &[u8] = b"From: Ann <ann@x.org>\r\nSubject: Welcome\r\n\r\nYour code is 4711.\r\n";

/// Starts a request that waits, on a new connection.
fn start_request(server: &Server, path: &str) -> LineConnection<TcpStream> {
    let mut connection = LineConnection::new(connect(server.http));
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    connection
}

/// Reads the status and the body of a response.
fn read_response(mut connection: LineConnection<TcpStream>) -> (u16, Value) {
    let status = connection.line().expect("a response");
    let mut length = 0;
    while let Some(line) = connection.line().filter(|line| !line.is_empty()) {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let body = connection.exactly(length);
    (status[9..12].parse().unwrap(), if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() })
}

fn request(server: &Server, path: &str) -> (u16, Value) {
    read_response(start_request(server, path))
}

fn subjects(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap()).collect()
}

#[test]
fn wait_for_messages_that_arrive_or_not() {
    let server = Server::start(&[]);
    let wait = "/api/v2/mailbox/james/wait";
    let waiting = start_request(&server, &format!("{wait}?match=subject:welcome+4711"));
    let latest = start_request(&server, "/api/v1/mailbox/james/latest?wait=10m");
    let unexpected = start_request(&server, &format!("{wait}?expect=none&timeout=10m"));
    let two = start_request(&server, &format!("{wait}?count=2&timeout=10m"));
    server.deliver("other@x.org", MAIL);
    server.deliver("james@x.org", MAIL);
    let (status, body) = read_response(waiting);
    assert_eq!((status, subjects(&body)), (200, vec!["Welcome"]));
    let first = body["messages"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(read_response(latest).1["body"]["text"], "Your code is 4711.\r\n".replace('\r', ""));
    assert_eq!(read_response(unexpected).0, 409);

    // The message was stored before, and none arrived after it.
    assert_eq!(request(&server, &format!("{wait}?timeout=0")).0, 200);
    let (status, body) = request(&server, &format!("{wait}?timeout=10ms&after={first}"));
    assert_eq!((status, subjects(&body)), (408, vec![]));
    assert_eq!(request(&server, &format!("{wait}?timeout=10ms&after={first}&expect=none")), (204, Value::Null));
    assert_eq!(request(&server, &format!("{wait}?match=subject:(")).0, 400);

    server.deliver("james@x.org", b"Subject: Again\r\n\r\n");
    assert_eq!(subjects(&read_response(two).1), ["Welcome", "Again"]);
}

#[test]
fn shutdown_with_a_thousand_waiting_requests() {
    let mut server = Server::start(&["--web-maxconnections", "3000"]);
    // A thousand connections and those of concurrent tests exceed a usual limit of 1024.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let waiting: Vec<_> = (0..1000)
        .map(|number| start_request(&server, &format!("/api/v2/mailbox/box{}/wait?timeout=10m", number % 500)))
        .collect();
    // Some clients disconnect, some get their message, and the others wait until the shutdown.
    let mut waiting = waiting.into_iter();
    waiting.by_ref().take(100).for_each(drop);
    for number in 100..200 {
        server.deliver(&format!("box{number}@x.org"), MAIL);
    }
    for _ in 0..100 {
        assert_eq!(read_response(waiting.next().unwrap()).0, 200);
    }
    let rest: Vec<_> = waiting.collect();
    server.signal("TERM");
    let mut refused = 0;
    for mut connection in rest {
        // A connection whose request was not read yet is closed without a response.
        let Some(status) = connection.line() else { continue };
        match &status[9..12] {
            "200" => {}
            "503" => refused += 1,
            _ => panic!("{status}"),
        }
    }
    assert!(refused > 0, "no request was refused");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn injected_message_is_stored_like_any_other() {
    let server = Server::start(&[]);
    let mut events = LineConnection::new(connect(server.http));
    events.send("GET /api/v2/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    events.until(b"retry: ");
    let post = |path: &str, kind: &str, body: &[u8]| {
        let response = ureq::post(server.url(path)).content_type(kind).send(body);
        let mut response = response.unwrap();
        let body: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
        (response.status().as_u16(), response.headers()["location"].to_str().unwrap().to_owned(), body)
    };
    let (status, location, body) = post("/api/v2/mailbox/james?from=bounce@x.org", "message/rfc822", MAIL);
    assert_eq!((status, subjects(&body)), (201, vec!["Welcome"]));
    events.until(b"Welcome");
    let source = server.bytes(&format!("{location}/source"));
    assert!(source.ends_with(MAIL));
    let trace = String::from_utf8_lossy(&source[..source.len() - MAIL.len()]).into_owned();
    let start = "Return-Path: <bounce@x.org>\r\nReceived: from [127.0.0.1] ([127.0.0.1]) by mx.test\r\n  for <james>; ";
    assert!(trace.starts_with(start), "{trace}");

    let parts = json!({"from": "Ann <ann@x.org>", "subject": "Grüße", "text": "Hällo", "html": "<p>Hällo</p>",
        "attachments": [{"filename": "ü.txt", "content": "SGVsbG8="}]});
    let (_, location, _) = post("/api/v2/mailbox/james", "application/json", parts.to_string().as_bytes());
    let message = server.json(&location);
    assert_eq!((&message["subject"], &message["to"]), (&json!("Grüße"), &json!(["<james@mx.test>"])));
    assert_eq!(message["body"], json!({"text": "Hällo", "html": "<p>Hällo</p>"}));
    assert_eq!(message["attachments"][0]["filename"], "ü.txt");
}

#[test]
fn delete_all_messages() {
    let server = Server::start(&[]);
    for name in ["ann", "ann", "bob"] {
        server.deliver(&format!("{name}@x.org"), MAIL);
    }
    let mut response = ureq::delete(server.url("/api/v2/mailboxes")).call().unwrap();
    assert_eq!(response.body_mut().read_to_string().unwrap(), "{\"deleted\":3}\n");
    assert_eq!(server.json("/api/v2/mailboxes")["mailboxes"], json!([]));
}
