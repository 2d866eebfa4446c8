//! Live events over connections in memory: frames, closing, limits and timeouts, with a paused clock.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use restante_http::{ConnectionGuard, Version, serve_connection};
use restante_net::{ClientLimits, ConnectionLimits as Connections, ShutdownTrigger};
use restante_teststore::SharedStore;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use crate::support::accounts::Accounts;
use crate::support::events::{EventServer, EventStreamClient, WebSocketClient};
use crate::support::*;

const V1: &str = "/api/v1/monitor/messages";
const V2: &str = "/api/v2/monitor/messages";
const EVENTS: &str = "/api/v2/events";
const UPGRADE: &str = "Connection: keep-alive, Upgrade
    Upgrade: WebSocket
    Sec-WebSocket-Version: 13
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

/// Returns a WebSocket handshake request with these headers, as it is on the wire.
fn handshake(headers: &str) -> String {
    let request = format!("GET {V1} HTTP/1.1\n{headers}\n{UPGRADE}\n\n");
    request.lines().flat_map(|line| [line.trim(), "\r\n"]).collect()
}

#[tokio::test(start_paused = true)]
async fn frames_of_both_versions() {
    let server = EventServer::new();
    let (mut v1, mut v2) = (server.websocket(V1).await, server.websocket(V2).await);
    let id = server.deliver("bob", "\"Grüße\"").await;
    let listing = send_request(&server.router, "GET /api/v1/mailbox/bob", Body::empty(), Peer::default()).await;
    let record = listing.text().strip_prefix('[').and_then(|text| text.strip_suffix("]\n")).unwrap();
    assert_eq!(v1.next().await, record);
    assert_eq!(v2.next().await, format!("{{\"variant\":\"message-stored\",\"identifier\":null,\"header\":{record}}}"));
    send_request(&server.router, &format!("DELETE /api/v1/mailbox/bob/{id}"), Body::empty(), Peer::default()).await;
    assert_eq!(v1.next().await, "nothing", "version 1 has no deletions");
    let deleted = format!(
        "{{\"variant\":\"message-deleted\",\"identifier\":{{\"mailbox\":\"bob\",\"id\":\"{id}\"}},\"header\":null}}"
    );
    assert_eq!(v2.next().await, deleted);
    assert!(server.counts(2, 0, 0).await);
    v1.0.close(None).await.unwrap();
    assert_eq!(v1.next().await, "closed", "a close frame is answered");
    assert_eq!(v1.next().await, "ended");
    drop(v2);
    assert!(server.counts(0, 0, 0).await);
}

#[tokio::test(start_paused = true)]
async fn history_and_mailbox_filters() {
    let server = EventServer::with(Settings { base_path: "/base".to_owned(), ..Settings::default() });
    for (to, subject) in [("ann", "one"), ("bob", "two"), ("ann", "three"), ("bob", "four")] {
        server.deliver(to, subject).await;
    }
    let table = [
        ("/api/v1/monitor/messages", "two three four"),
        ("/base/api/v2/monitor/messages", "two three four"),
        ("/api/v2/monitor/messages/Ann+x@y.org", "three"),
        ("/base/api/v1/monitor/messages/bob", "two four"),
        ("/api/v1/monitor/messages/BOB%40x.org", "two four"),
        ("/api/v1/monitor/messages/eve", ""),
    ];
    for (path, expected) in table {
        let mut client = server.websocket(path).await;
        for subject in expected.split_whitespace() {
            assert_eq!(client.subject().await, subject, "{path}");
        }
        assert_eq!(client.next().await, "nothing", "{path}");
    }
}

#[tokio::test]
async fn rejects_invalid_handshakes() {
    let server = EventServer::new();
    let get = async |request: String| send_request(&server.router, &request, Body::empty(), Peer::default()).await;
    let plain = get(format!("GET {V1}")).await;
    assert!(plain.problem(426).contains("/api/v2/events"));
    let named = ["connection", "upgrade", "sec-websocket-version"].map(|name| plain.header(name).to_owned());
    assert_eq!(named, ["upgrade", "websocket", "13"]);
    for (from, to) in [("WebSocket\n", "h2c\n"), (", Upgrade", ""), ("Version: 13", "Version: 12")] {
        get(format!("GET {V2}/bob\n{}", UPGRADE.replace(from, to))).await.problem(426);
    }
    for (from, to) in [("dGhl", ""), ("dGhlIHNhbXBsZSBub25jZQ==", "!!!!!!!!!!!!!!!!!!!!!!!!"), ("b25jZQ==", "b25jZQA=")]
    {
        get(format!("GET {V1}\n{}", UPGRADE.replace(from, to))).await.problem(400);
    }
    for more in ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Content-Length: 5", "Transfer-Encoding: chunked"] {
        get(format!("GET {V1}\n{UPGRADE}\n{more}")).await.problem(400);
    }
    get(format!("GET {V1}/a%20b\n{UPGRADE}")).await.problem(400);
    get(format!("POST {V1}\n{UPGRADE}")).await.problem(405);
}

#[tokio::test]
async fn rejects_subscribers_from_other_origins() {
    let server = EventServer::new();
    let foreign = ["Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"];
    for (path, header) in [V1, V2, EVENTS].into_iter().flat_map(|path| foreign.map(|header| (path, header))) {
        let request = format!("GET {path}\n{UPGRADE}\n{header}");
        send_request(&server.router, &request, Body::empty(), Peer::default()).await.problem(403);
    }
    // The same request from the own page is accepted.
    let mut client = server.connect(1 << 16);
    client.write_all(handshake("Host: localhost:9000\nOrigin: http://localhost:9000").as_bytes()).await.unwrap();
    let mut response = [0; 12];
    client.read_exact(&mut response).await.unwrap();
    assert_eq!(&response, b"HTTP/1.1 101");
}

#[tokio::test(start_paused = true)]
async fn idle_peer_is_pinged_and_disconnected() {
    let server = EventServer::new();
    let mut client = server.connect(1 << 16);
    client.write_all(handshake("Host: localhost").as_bytes()).await.unwrap();
    let mut stream = EventStreamClient { client, read: String::new() };
    let head = stream.until("\r\n\r\n").await.unwrap();
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
    let start = Instant::now();
    let mut ping = [0; 2];
    stream.client.read_exact(&mut ping).await.unwrap();
    assert_eq!((ping, start.elapsed().as_secs()), ([0x89, 0], 54));
    assert_eq!(stream.client.read(&mut ping).await.unwrap(), 0);
    assert_eq!(start.elapsed().as_secs(), 60);
    assert!(server.counts(0, 0, 0).await);
}

#[tokio::test(start_paused = true)]
async fn responding_peer_stays_connected() {
    let server = EventServer::new();
    let mut client = server.websocket(V1).await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_hours(3) {
        assert_eq!(client.next().await, "nothing");
    }
    server.deliver("bob", "still there").await;
    assert_eq!(client.subject().await, "still there");
}

#[tokio::test(start_paused = true)]
async fn invalid_input_closes_websocket() {
    let server = EventServer::new();
    let fragment =
        |data, length: usize, last| Message::Frame(Frame::message(vec![b'x'; length], OpCode::Data(data), last));
    let table = [
        (vec![Message::text("x".repeat(512)), Message::binary(vec![0; 512])], "nothing"),
        (vec![Message::Ping(Bytes::from_static(b"?")), Message::Pong(Bytes::new())], "nothing"),
        (vec![Message::text("x".repeat(513))], "closed 1009"),
        (vec![Message::text("x".repeat(1 << 20))], "closed 1009"),
        (vec![fragment(Data::Text, 300, false), fragment(Data::Continue, 300, true)], "closed 1009"),
        (vec![fragment(Data::Continue, 1, true)], "closed 1002"),
        (vec![fragment(Data::Reserved(3), 1, true)], "closed 1002"),
        (vec![Message::Frame(Frame::message(&b"\xff"[..], OpCode::Data(Data::Text), true))], "closed 1007"),
    ];
    for (messages, expected) in table {
        let mut client = server.websocket(V1).await;
        for message in &messages {
            client.0.send(message.clone()).await.unwrap();
        }
        let mut response = client.0.next();
        let response = match timeout(Duration::from_secs(5), &mut response).await {
            Ok(Some(Ok(Message::Pong(pong)))) => {
                assert_eq!(pong.as_ref(), b"?");
                "nothing".to_owned()
            }
            Ok(Some(Ok(Message::Close(Some(frame))))) => format!("closed {}", u16::from(frame.code)),
            Err(_) => "nothing".to_owned(),
            other => panic!("{messages:?}: {other:?}"),
        };
        assert_eq!(response, expected, "{messages:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lagging_subscriber_is_closed() {
    let server = EventServer::new();
    let client = server.connect(1000);
    let mut slow = WebSocketClient(client_async(format!("ws://localhost{V2}"), client).await.unwrap().0);
    let mut stream = EventStreamClient { client: server.connect(1000), read: String::new() };
    stream.client.write_all(format!("GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream.until("retry").await.unwrap();
    // Long subjects make the client lag sooner.
    for number in 0..3000 {
        server.deliver("bob", &format!("{number} {}", "x".repeat(4000))).await;
        if number % 10 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
    // Events already on their way are still received.
    let mut received = 0;
    let end = loop {
        let subject = slow.subject().await;
        if !subject.starts_with(&format!("{received} ")) {
            break subject;
        }
        received += 1;
    };
    assert_eq!(end, "closed 1013");
    assert!((1..2000).contains(&received), "{received}");
    let event_text = stream.until("event: lagged\ndata: {}\n\n").await.expect("a lagged event");
    assert!(event_text.contains("\nid: "), "there is an id to resume from");
    assert!(stream.until("\n\n").await.is_none(), "the stream ends");
    assert!(server.counts(0, 0, 2).await);
}

#[tokio::test(start_paused = true)]
async fn stalled_subscriber_is_disconnected() {
    let server = EventServer::new();
    let client = server.connect(1000);
    let stalled = WebSocketClient(client_async(format!("ws://localhost{V2}"), client).await.unwrap().0);
    let mut stream = EventStreamClient { client: server.connect(1000), read: String::new() };
    stream.client.write_all(format!("GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream.until("retry").await.unwrap();
    assert!(server.counts(1, 1, 0).await);
    for _ in 0..100 {
        server.deliver("bob", "hello").await;
    }
    sleep(Duration::from_secs(50)).await;
    assert!(server.counts(1, 1, 0).await, "a pause is tolerated");
    sleep(Duration::from_secs(15)).await;
    assert!(server.counts(0, 0, 0).await);
    drop((stalled, stream));
}

#[tokio::test(start_paused = true)]
async fn server_sent_events() {
    let server = EventServer::new();
    server.deliver("ann", "one").await;
    let second = server.deliver("bob", "two").await;
    let mut all = server.stream(EVENTS, "").await;
    let mut bob = server.stream(&format!("{EVENTS}/Bob@example.org"), "").await;
    server.mailroom.remove(&server.mailroom.mailbox("bob").unwrap(), second).await.unwrap();
    let (name, _, data) = all.event().await.unwrap();
    assert_eq!((name.as_str(), &data["header"]["subject"]), ("message-stored", &"one".into()));
    let (_, _, data) = all.event().await.unwrap();
    assert_eq!((&data["variant"], &data["header"]["subject"]), (&"message-stored".into(), &"two".into()));
    let (name, last, data) = all.event().await.unwrap();
    assert_eq!((name.as_str(), &data["identifier"]["id"]), ("message-deleted", &second.to_string().into()));
    assert_eq!(bob.event().await.unwrap().2["header"]["subject"], "two");
    assert_eq!(bob.event().await.unwrap().0, "message-deleted");

    // A client that reconnects gets what happened since, including deletions, and nothing else.
    drop((all, bob));
    let third = server.deliver("ann", "three").await;
    server.mailroom.remove(&server.mailroom.mailbox("ann").unwrap(), third).await.unwrap();
    let by_header = server.stream(EVENTS, &format!("Last-Event-ID: {last}\r\n")).await;
    let by_query = server.stream(&format!("{EVENTS}/ann?lastEventId={last}"), "").await;
    for mut stream in [by_header, by_query] {
        assert_eq!(stream.event().await.unwrap().2["header"]["subject"], "three");
        assert_eq!(stream.event().await.unwrap().0, "message-deleted");
    }
    // An id of another server start reports only that events may be missing.
    for (foreign, has_gap) in [("1-1", true), ("nonsense", false), ("", false)] {
        let mut stream = server.stream(EVENTS, &format!("Last-Event-ID: {foreign}\r\n")).await;
        if has_gap {
            stream.until("event: lagged\ndata: {}\n\n").await.unwrap();
        }
        assert_eq!(stream.event().await.unwrap().2["header"]["subject"], "one", "{foreign:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_event_per_message() {
    let server = EventServer::with_history(30, Settings::default());
    let (mut all, mut eve) = (server.stream(EVENTS, "").await, server.stream(&format!("{EVENTS}/eve"), "").await);
    let (mut sockets, recipients) = (server.websocket(V2).await, ["bob", "eve", "joe"]);
    let message = server.deliver_to(&recipients, "to three").await;
    let listed = send_request(&server.router, "GET /api/v2/messages", Body::empty(), Peer::default()).await;
    let entry = listed.json()["messages"][0].clone();
    server.deliver("ann", "to one").await;
    assert_eq!(entry["mailboxes"], json!(recipients));
    let (name, first_id, data) = all.event().await.unwrap();
    assert_eq!((name.as_str(), &data["variant"]), ("message-stored", &"message-stored".into()));
    assert_eq!((&data["header"]["mailbox"], &data["identifier"]), (&"bob".into(), &serde_json::Value::Null));
    assert_eq!(data["message"], entry);
    assert_eq!(all.event().await.unwrap().2["message"]["subject"], "to one", "the next event is of the next message");
    let (_, _, data) = eve.event().await.unwrap();
    assert_eq!((&data["header"]["mailbox"], &data["message"]), (&"eve".into(), &entry));
    for recipient in recipients {
        let frame: serde_json::Value = serde_json::from_str(&sockets.next().await).unwrap();
        assert_eq!((&frame["header"]["mailbox"], &frame["message"]), (&recipient.into(), &serde_json::Value::Null));
    }
    // A client that reconnects after the first copy does not get the message again.
    let mut resumed = server.stream(EVENTS, &format!("Last-Event-ID: {first_id}\r\n")).await;
    assert_eq!(resumed.event().await.unwrap().2["message"]["subject"], "to one");
    // Deletions are events of copies.
    send_request(&server.router, &format!("DELETE /api/v2/messages/{message}"), Body::empty(), Peer::default()).await;
    for (number, recipient) in (0..).zip(recipients) {
        let (name, _, data) = all.event().await.unwrap();
        assert_eq!(name, "message-deleted");
        assert_eq!(data["identifier"], json!({"mailbox": recipient, "id": (message.number() + number).to_string()}));
        assert_eq!(data["message"], json!({"id": message.to_string(), "mailboxes": [recipient]}));
    }
}

/// A WebSocket on the path of the event stream gets the data of the same events.
#[tokio::test(start_paused = true)]
async fn websocket_gets_events_of_messages() {
    let server = EventServer::with_history(30, Settings::default());
    let before = server.deliver_to(&["ann", "bob"], "before").await;
    let one_mailbox = format!("{EVENTS}/Eve@example.org");
    let (mut stream, mut eve_stream) = (server.stream(EVENTS, "").await, server.stream(&one_mailbox, "").await);
    let (mut socket, mut eve) = (server.websocket(EVENTS).await, server.websocket(&one_mailbox).await);
    let message = server.deliver_to(&["bob", "eve", "joe"], "to three").await;
    server.deliver("ann", "to one").await;
    send_request(&server.router, &format!("DELETE /api/v2/messages/{message}"), Body::empty(), Peer::default()).await;
    let mut frames = Vec::new();
    for _ in 0..6 {
        let frame: serde_json::Value = serde_json::from_str(&socket.next().await).unwrap();
        assert_eq!(frame, stream.event().await.unwrap().2);
        frames.push(frame);
    }
    let variants: Vec<_> = frames.iter().map(|frame| frame["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, [["message-stored"; 3], ["message-deleted"; 3]].concat());
    let ids: Vec<_> = frames.iter().map(|frame| frame["message"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids[..2], [before.to_string(), message.to_string()]);
    assert_eq!(frames[1]["message"]["mailboxes"], json!(["bob", "eve", "joe"]));
    for variant in ["message-stored", "message-deleted"] {
        let frame: serde_json::Value = serde_json::from_str(&eve.next().await).unwrap();
        assert_eq!(frame, eve_stream.event().await.unwrap().2);
        assert_eq!(frame["variant"], variant);
        let copy = if variant == "message-stored" { &frame["header"]["id"] } else { &frame["identifier"]["id"] };
        assert_eq!(
            (copy, &frame["message"]["id"]),
            (&(message.number() + 1).to_string().into(), &message.to_string().into())
        );
    }
    assert_eq!((socket.next().await, eve.next().await), ("nothing".to_owned(), "nothing".to_owned()));
    assert!(server.counts(2, 2, 0).await);
}

/// A request that is not for a WebSocket gets the stream, and an invalid handshake neither.
#[tokio::test]
async fn path_of_event_stream_accepts_handshakes() {
    let server = EventServer::new();
    let upgrades = [(", Upgrade", ""), ("WebSocket\n", "h2c\n")];
    for (from, to) in upgrades {
        let headers = UPGRADE.replace(from, to).lines().fold(String::new(), |all, line| all + line.trim() + "\r\n");
        let mut stream = server.stream(EVENTS, &headers).await;
        server.deliver("bob", "one").await;
        assert_eq!(stream.event().await.unwrap().0, "message-stored", "{headers}");
    }
    let get = async |request: String| send_request(&server.router, &request, Body::empty(), Peer::default()).await;
    get(format!("GET {EVENTS}\n{}", UPGRADE.replace("Version: 13", "Version: 12"))).await.problem(426);
    get(format!("GET {EVENTS}/bob\n{}", UPGRADE.replace("dGhl", ""))).await.problem(400);
    get(format!("GET {EVENTS}\n{UPGRADE}\nContent-Length: 5")).await.problem(400);
    get(format!("GET {EVENTS}/a%20b\n{UPGRADE}")).await.problem(400);
    get(format!("POST {EVENTS}\n{UPGRADE}")).await.problem(405);
    assert_eq!(get(format!("HEAD {EVENTS}\n{UPGRADE}")).await.status, 200);
}

#[tokio::test]
async fn limited_token_gets_events_of_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = EventServer::with(Settings { auth: Some(accounts.auth.clone()), ..Settings::default() });
    let mut stream = server.stream(EVENTS, &format!("{}\r\n", accounts.token(&["ci-*"]).await)).await;
    let message = server.deliver_to(&["ann", "ci-1", "eve", "ci-2"], "to four").await;
    server.deliver_to(&["ann", "eve"], "hidden").await;
    server.deliver("ci-2", "to one").await;
    let (_, _, data) = stream.event().await.unwrap();
    assert_eq!((&data["header"]["mailbox"], &data["message"]["subject"]), (&"ci-1".into(), &"to four".into()));
    assert_eq!(data["message"]["id"], message.to_string());
    assert_eq!(data["message"]["mailboxes"], json!(["ci-1", "ci-2"]));
    assert_eq!(data["message"]["recipients"], json!(["ci-1@example.org", "ci-2@example.org"]));
    assert_eq!(stream.event().await.unwrap().2["message"]["subject"], "to one");
}

/// The history consists of copies, so it can contain a message without its first copy.
#[tokio::test(start_paused = true)]
async fn history_contains_messages_without_first_copy() {
    let server = EventServer::new();
    let first = server.deliver_to(&["ann", "bob"], "deleted in part").await;
    server.mailroom.remove(&server.mailroom.mailbox("ann").unwrap(), first).await.unwrap();
    let mut stream = server.stream(EVENTS, "").await;
    let (_, _, data) = stream.event().await.unwrap();
    assert_eq!((&data["header"]["mailbox"], &data["message"]["subject"]), (&"bob".into(), &"deleted in part".into()));
    // The history has room for three copies.
    server.deliver_to(&["ann", "bob", "eve", "joe"], "to four").await;
    let mut stream = server.stream(EVENTS, "").await;
    let (_, _, data) = stream.event().await.unwrap();
    assert_eq!((&data["header"]["mailbox"], &data["message"]["subject"]), (&"bob".into(), &"to four".into()));
    server.deliver("ann", "next").await;
    assert_eq!(stream.event().await.unwrap().2["message"]["subject"], "next");
}

/// A load balancer may send the client to another node.
#[tokio::test(start_paused = true)]
async fn subscription_resumes_on_another_node() {
    let store = SharedStore::new(Limits::default());
    let one = EventServer::with_store(store.node().await, Settings::default());
    let other = EventServer::with_store(store.node().await, Settings::default());
    let (mut stream, mut client) = (one.stream(EVENTS, "").await, one.websocket(V1).await);
    let first = other.deliver("ann", "first").await;
    let (_, id, data) = stream.event().await.unwrap();
    assert_eq!((id, &data["header"]["subject"]), (format!("0-{first}"), &"first".into()));
    assert_eq!(client.subject().await, "first");
    drop(stream);

    one.deliver("bob", "second").await;
    other.mailroom.remove(&other.mailroom.mailbox("ann").unwrap(), first).await.unwrap();
    for server in [&one, &other] {
        let mut stream = server.stream(EVENTS, &format!("Last-Event-ID: 0-{first}\r\n")).await;
        assert_eq!(stream.event().await.unwrap().2["header"]["subject"], "second");
        let (name, _, data) = stream.event().await.unwrap();
        assert_eq!((name.as_str(), &data["identifier"]["id"]), ("message-deleted", &first.to_string().into()));
    }
}

#[tokio::test(start_paused = true)]
async fn idle_stream_gets_keep_alive() {
    let server = EventServer::new();
    let mut stream = server.stream(&format!("{EVENTS}/bob"), "").await;
    let start = Instant::now();
    for _ in 0..100 {
        stream.until(":\n\n").await.unwrap();
    }
    assert_eq!(start.elapsed().as_secs(), 500);
    // Events of other mailboxes advance the position.
    server.deliver("ann", "for another").await;
    let id = stream.until(":\nid: ").await.map(|_| ()).and(stream.until("\n\n").await).unwrap();
    assert!(id.ends_with("-0\n\n"), "{id:?}");
    assert_eq!(start.elapsed().as_secs(), 505, "with the next keep-alive");
    server.deliver("bob", "still there").await;
    assert_eq!(stream.event().await.unwrap().2["header"]["subject"], "still there");
}

#[tokio::test(start_paused = true)]
async fn disconnected_stream_releases_connection() {
    let server = EventServer::new();
    let (connections, subscribe) = (Connections::new(3, None), || server.stream(EVENTS, ""));
    let guard = ConnectionGuard::new(Some(connections.admit().unwrap()), server.shutdown.clone());
    let mut stream = EventStreamClient { client: server.connect_with(1 << 16, guard), read: String::new() };
    stream.client.write_all(format!("GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream.until("retry").await.unwrap();
    // Input from the client does not prevent the detection of the disconnect.
    stream.client.write_all(format!("GET {EVENTS} HTTP/1.1\r\n").as_bytes()).await.unwrap();
    let others = [subscribe().await, subscribe().await];
    let start = Instant::now();
    drop((stream, others));
    assert!(server.counts(0, 0, 0).await);
    let _all = [connections.admit().unwrap(), connections.admit().unwrap(), connections.admit().unwrap()];
    assert!(start.elapsed() < Duration::from_secs(1), "without a keep-alive: {:?}", start.elapsed());
}

/// A request that was sent during an event stream is served after it.
#[tokio::test(start_paused = true)]
async fn pipelined_request_is_served_after_stream() {
    let server = EventServer::new();
    let mut stream = EventStreamClient { client: server.connect(1000), read: String::new() };
    stream.client.write_all(format!("GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream.until("retry").await.unwrap();
    stream.client.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    for number in 0..3000 {
        server.deliver("bob", &format!("{number} {}", "x".repeat(4000))).await;
        if number % 10 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(stream.until("0\r\n\r\n").await.is_some(), "the stream lagged and ended");
    assert!(stream.until("ok\n").await.unwrap().contains("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test(start_paused = true)]
async fn number_of_subscribers_is_limited() {
    let server = EventServer::with(Settings { max_monitors: Some(2), ..Settings::default() });
    let (client, stream) = (server.websocket(V1).await, server.stream(EVENTS, "").await);
    for request in [format!("GET {EVENTS}"), format!("GET {V1}\n{UPGRADE}"), format!("GET {EVENTS}\n{UPGRADE}")] {
        let refused = send_request(&server.router, &request, Body::empty(), Peer::default()).await;
        assert_eq!(refused.problem(503), "There are too many subscribers of live events.");
        assert_eq!(refused.header("retry-after"), "5");
    }
    assert_eq!(
        send_request(&server.router, "GET /api/v1/mailbox/bob", Body::empty(), Peer::default()).await.status,
        200
    );
    drop(client);
    assert!(server.counts(0, 1, 0).await);
    let new_stream = server.stream(EVENTS, "").await;
    drop((stream, new_stream));
    assert!(server.counts(0, 0, 0).await);
    let _two = (server.websocket(V1).await, server.websocket(V2).await);
}

#[tokio::test]
async fn headers_of_event_stream() {
    let server = EventServer::new();
    let head = send_request(&server.router, &format!("HEAD {EVENTS}"), Body::empty(), Peer::default()).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), "text/event-stream");
    assert_eq!(head.header("cache-control"), "no-store");
    assert_eq!(head.header("x-accel-buffering"), "no");
    assert_eq!(head.header("access-control-allow-origin"), "");
}

/// A WebSocket is not HTTP any more, but it still counts as a connection.
#[tokio::test(start_paused = true)]
async fn subscribers_hold_connection_until_shutdown() {
    let server = EventServer::new();
    let connections = Connections::new(2, None);
    let guard =
        |server: &EventServer| ConnectionGuard::new(Some(connections.admit().unwrap()), server.shutdown.clone());
    let client = server.connect_with(1 << 16, guard(&server));
    let mut subscriber = WebSocketClient(client_async(format!("ws://localhost{V1}"), client).await.unwrap().0);
    let client = server.connect_with(1000, guard(&server));
    let stalled = WebSocketClient(client_async(format!("ws://localhost{V1}"), client).await.unwrap().0);
    let mut stream = server.stream(EVENTS, "").await;
    for _ in 0..100 {
        server.deliver("bob", "hello").await;
    }
    sleep(Duration::from_secs(1)).await;
    assert!(connections.admit().is_err(), "both slots are in use");

    let EventServer { trigger, shutdown, router, monitors, .. } = server;
    drop((shutdown, router));
    let start = Instant::now();
    let end = tokio::spawn(trigger.trigger_and_wait(Duration::from_secs(15)));
    let mut texts = 0;
    while subscriber.subject().await == "hello" {
        texts += 1;
    }
    assert_eq!(texts, 100);
    while stream.event().await.is_some() {}
    assert!(end.await.unwrap(), "all connections are closed");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(connections.admit().is_ok());
    assert_eq!(monitors.websockets.get(), 0);
    drop(stalled);
}

/// Clients that do not read must not delay the shutdown: a subscriber not at all, other clients only for a limited
/// time.
#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_stalled_clients() {
    let server = EventServer::new();
    for number in 0..200 {
        server.deliver("bob", &format!("{number} {}", "x".repeat(900))).await;
    }
    for (path, seconds) in [(EVENTS, 1), ("/api/v1/mailbox/bob", 13)] {
        let (trigger, shutdown) = ShutdownTrigger::new();
        let mut client = server.connect_with(1000, ConnectionGuard::new(None, shutdown));
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        client.read_u8().await.unwrap();
        for _ in 0..200 {
            server.deliver("bob", &"x".repeat(900)).await;
        }
        sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        assert!(trigger.trigger_and_wait(Duration::from_secs(15)).await, "{path}");
        assert_eq!(start.elapsed().as_secs(), seconds, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn websocket_holds_slot_of_forwarded_client() {
    let server = EventServer::with(Settings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        clients: Arc::new(ClientLimits::new(Some(1))),
        ..Settings::default()
    });
    let (mut client, stream) = duplex(1 << 16);
    let proxy = Peer::from(Some([10, 0, 0, 1].into()));
    let guard = ConnectionGuard::new(None, server.shutdown.clone());
    tokio::spawn(serve_connection(stream, proxy, Version::Http1, server.router.clone(), guard));
    client.write_all(handshake("Host: localhost\nX-Forwarded-For: 192.0.2.1").as_bytes()).await.unwrap();
    let mut stream = EventStreamClient { client, read: String::new() };
    assert!(stream.until("\r\n\r\n").await.unwrap().starts_with("HTTP/1.1 101 "));
    sleep(Duration::from_secs(10)).await;
    let request_again =
        async || send_request(&server.router, "GET /livez\nX-Forwarded-For: 192.0.2.1", Body::empty(), proxy).await;
    request_again().await.problem(429);
    drop(stream);
    assert!(server.counts(0, 0, 0).await);
    assert_eq!(request_again().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn shutdown_closes_websocket() {
    let server = EventServer::new();
    let mut client = server.websocket(V2).await;
    let (trigger, _) = (server.trigger, server.shutdown);
    tokio::spawn(trigger.trigger_and_wait(Duration::from_secs(15)));
    assert_eq!(client.next().await, format!("closed {}", u16::from(CloseCode::Away)));
    assert_eq!(client.next().await, "ended");
}
