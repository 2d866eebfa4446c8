//! Delivery over HTTP, and deleting all messages.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use crate::support::*;

const MAIL: &str = "From: Ann <ann@example.org>\r\nSubject: Hello\r\n\r\nHi\n.\r\n";

fn server() -> TestServer {
    TestServer::with(Settings { max_message_bytes: 10_000, ..Settings::default() })
}

async fn post(server: &TestServer, path: &str, content_type: &str, body: impl Into<Body>) -> TestResponse {
    let request = format!("POST /api/v2/mailbox/{path}\nContent-Type: {content_type}");
    server.request_with(&request, body, Peer::from(Some([192, 0, 2, 7].into()))).await
}

async fn post_json(server: &TestServer, value: &Value) -> TestResponse {
    post(server, "test", "application/json", value.to_string()).await
}

async fn source(server: &TestServer, mailbox: &str) -> String {
    server.request(&format!("GET /api/v1/mailbox/{mailbox}/latest/source")).await.text().to_owned()
}

#[tokio::test]
async fn message_is_stored_byte_for_byte() {
    let server = server();
    let response = post(&server, "Test+x", "message/rfc822", MAIL).await;
    assert_eq!(response.status, 201);
    let message = &response.json()["messages"][0];
    assert_eq!((&message["mailbox"], &message["subject"]), (&json!("test"), &json!("Hello")));
    assert_eq!(message["from"], "Ann <ann@example.org>");
    let location = format!("/api/v1/mailbox/test/{}", message["id"].as_str().unwrap());
    assert_eq!(response.header("location"), location);
    assert_eq!(server.request(&format!("GET {location}")).await.status, 200);
    let source = source(&server, "test").await;
    let (trace, message) = source.split_at(source.len() - MAIL.len());
    assert_eq!(message, MAIL);
    assert!(
        trace.starts_with("Return-Path: <ann@example.org>\r\nReceived: from [192.0.2.7] ([192.0.2.7]) by "),
        "{trace}"
    );
}

#[tokio::test]
async fn envelope_sender_is_a_parameter() {
    let server = server();
    for (query, expected) in [("from=bob@x.org", "<bob@x.org>"), ("from=", "<>")] {
        post(&server, &format!("test?{query}"), "message/rfc822", MAIL).await;
        assert!(source(&server, "test").await.starts_with(&format!("Return-Path: {expected}\r\n")));
    }
    let response = post(&server, "test?from=nobody", "message/rfc822", MAIL).await;
    assert!(response.problem(400).contains("The parameter from must be an address or empty"));
}

#[tokio::test]
async fn message_is_composed_from_fields() {
    let server = server();
    let fields = json!({
        "from": "Ännchen <ann@example.org>",
        "to": ["test@example.org"],
        "cc": ["Bob <bob@example.org>"],
        "subject": "Grüße",
        "text": "Hello",
        "html": "<img src=cid:logo>",
        "headers": {"X-Kind": "welcome"},
        "attachments": [
            {"filename": "a.txt", "content-type": "text/plain", "content": "SGVsbG8="},
            {"content-type": "image/png", "content": "AAEC", "content-id": "logo"},
        ],
        "date": "2026-11-15T10:00:00Z",
    });
    let response = post_json(&server, &fields).await;
    assert_eq!(response.status, 201, "{:?}", response.body);
    let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
    assert_eq!(message["from"], "Ännchen <ann@example.org>");
    assert_eq!(message["subject"], "Grüße");
    assert_eq!(message["body"], json!({"text": "Hello", "html": "<img src=cid:logo>"}));
    assert_eq!(message["header"]["X-Kind"], json!(["welcome"]));
    assert_eq!(message["header"]["Date"], json!(["Sun, 15 Nov 2026 10:00:00 +0000"]));
    assert_eq!(message["attachments"].as_array().unwrap().len(), 2);
    // Only the sender is required.
    let response = post_json(&server, &json!({"from": "a@x"})).await;
    assert_eq!(response.json()["messages"][0]["to"], json!(["<test@localhost>"]));
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let server = server();
    let table = [
        (json!({}), "missing field `from`"),
        (json!({"from": "a@x", "form": "b@x"}), "unknown field `form`"),
        (json!({"from": "a@x\r\nBcc: b@x"}), "from has a line break or another control character"),
        (json!({"from": "a@x", "to": ["x"]}), "to[0] is neither an address"),
        (json!({"from": "a@x", "subject": "a\u{0}b"}), "subject has a line break"),
        (json!({"from": "a@x", "headers": {"X: y\r\nBcc": "b@x"}}), "name of a header field"),
        (json!({"from": "a@x", "headers": {"X-Foo": "a\nb"}}), "headers.X-Foo has a line break"),
        (json!({"from": "a@x", "attachments": [{"content": "a"}]}), "attachments[0].content is not base64"),
        (json!({"from": "a@x", "attachments": [{"content": "", "filename": "a\nb"}]}), "attachments[0].filename has"),
        (json!({"from": "a@x", "date": "yesterday"}), "date is not a time"),
        (json!([]), "invalid type: sequence, expected an object"),
        (json!(["a@x", [], [], "Hello"]), "invalid type: sequence, expected an object"),
        (json!({"from": "a@x", "attachments": [["a.txt", null, "", null]]}), "expected an object"),
    ];
    for (fields, expected) in table {
        let sentence = post_json(&server, &fields).await.problem(422);
        assert!(sentence.contains(expected), "{sentence}");
    }
    for (content_type, status) in [("text/plain", 415), ("message/rfc822x", 415), ("message/rfc822; x=y", 422)] {
        assert_eq!(post(&server, "test", content_type, "").await.status, status, "{content_type}");
    }
    assert!(post(&server, "test", "application/json", "{").await.problem(422).contains("not valid JSON"));
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.text(), "[]\n");
}

#[tokio::test]
async fn message_size_is_limited() {
    let server = server();
    let message = |length| Body::from("x".repeat(length));
    assert_eq!(post(&server, "test", "message/rfc822", message(10_000)).await.status, 201);
    post(&server, "test", "message/rfc822", message(10_001)).await.problem(413);
    let fields = |length| json!({"from": "a@x", "text": "x\n".repeat(length)});
    assert_eq!(post_json(&server, &fields(3000)).await.status, 201);
    let sentence = post_json(&server, &fields(3400)).await.problem(413);
    assert!(sentence.starts_with("The message is too large: 10"), "{sentence}");
    post_json(&server, &fields(100_000)).await.problem(413);
}

#[tokio::test]
async fn smtp_policy_applies() {
    let list = |domain: &str| [domain].into_iter().collect();
    let policy =
        Policy { reject_domains: list("closed.org"), reject_origin_domains: list("spam.org"), ..Policy::default() };
    let server = TestServer::build(policy, Settings { max_message_bytes: 10_000, ..Settings::default() }, |_| {});
    let table = [
        ("ann@closed.org", "550 5.7.1 Mail to this domain is not accepted here"),
        ("ann?from=bob@spam.org", "550 5.7.1 Mail from this domain is not accepted here"),
    ];
    for (path, expected) in table {
        let sentence = post(&server, path, "message/rfc822", MAIL).await.problem(403);
        assert_eq!(sentence, format!("The message is refused, as over SMTP: {expected}"));
    }
    assert_eq!(server.request("GET /api/v1/mailbox/ann").await.text(), "[]\n");
    assert_eq!(post(&server, "ann", "message/rfc822", MAIL).await.status, 201);
}

/// An announced length reserves no memory, and a client that sends nothing is soon disconnected.
#[tokio::test(start_paused = true)]
async fn stalled_upload_times_out() {
    let server = server();
    let start = tokio::time::Instant::now();
    let one_byte = stream::iter([Ok::<_, std::io::Error>("x")]).chain(stream::pending());
    let response = post(&server, "test", "message/rfc822", Body::from_stream(one_byte)).await;
    assert_eq!(response.problem(408), "The body of the request did not arrive in time.");
    assert!(start.elapsed().as_secs() <= 5, "{:?}", start.elapsed());
    // Single bytes now and then do not extend the time.
    let single_bytes = stream::repeat(()).then(|()| async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, std::io::Error>("x")
    });
    assert_eq!(post(&server, "test", "message/rfc822", Body::from_stream(single_bytes)).await.status, 408);
    assert!(start.elapsed().as_secs() <= 11, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn uploads_have_their_own_budget() {
    let mut uploads = None;
    let settings = Settings { max_message_bytes: 1 << 20, ..Settings::default() };
    let server = TestServer::build(Policy::default(), settings, |server| uploads = Some(server.uploads.budget.clone()));
    let uploads = uploads.unwrap();
    let message = |length: usize| "x".repeat(length);
    assert_eq!(post(&server, "test", "message/rfc822", message(1 << 20)).await.status, 201);
    // The first reservation uses the complete budget, and the second is the only one that may exceed it.
    let mut others = [uploads.reservation(), uploads.reservation()];
    for other in &mut others {
        other.adjust_to(restante_http_core::uploads::MAX_UPLOAD_BYTES).await;
    }
    let refused = post(&server, "test", "message/rfc822", message(1 << 20)).await;
    assert!(refused.problem(503).starts_with("Too many large messages are being uploaded"));
    assert_eq!(refused.header("retry-after"), "5");
    let fields = json!({"from": "a@x", "text": "=\n".repeat(100_000)});
    assert_eq!(post_json(&server, &fields).await.status, 503, "the composed message is longer");
    assert_eq!(
        post(&server, "test", "message/rfc822", message(1000)).await.status,
        201,
        "small messages are not counted"
    );
    assert_eq!(server.request("GET /api/v1/mailbox/test/latest").await.status, 200);
    drop(others);
    for _ in 0..100 {
        assert_eq!(
            post(&server, "test", "message/rfc822", message(1 << 20)).await.status,
            201,
            "all memory is released"
        );
    }
}

/// A client that sends the complete body before it reads the response gets one, within limits.
#[tokio::test(start_paused = true)]
async fn too_large_body_is_drained() {
    let server = server();
    for (chunks, drained) in [(100, 100), (1_000_000, 2 * 1024 + 1)] {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = count.clone();
        let body = stream::repeat(Bytes::from(vec![b'x'; 32 * 1024])).take(chunks).map(move |chunk| {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, std::io::Error>(chunk)
        });
        post(&server, "test", "message/rfc822", Body::from_stream(body)).await.problem(413);
        let count = count.load(std::sync::atomic::Ordering::Relaxed);
        assert!((drained..=drained + 2).contains(&count), "{count} of {chunks}");
    }
}

#[tokio::test]
async fn deletes_all_messages() {
    let server = server();
    for mailbox in ["ann", "ann", "bob"] {
        post(&server, mailbox, "message/rfc822", MAIL).await;
    }
    for query in ["mailbox=ann", "prefix=ann&limit=1", "Prefix=ann"] {
        let sentence = server.request(&format!("DELETE /api/v2/mailboxes?{query}")).await.problem(400);
        assert!(sentence.contains("Accepted parameters: prefix."), "{sentence}");
    }
    assert_eq!(server.request("DELETE /api/v2/mailboxes?prefix=BO").await.text(), "{\"deleted\":1}\n");
    for deleted in [2, 0] {
        let response = server.request("DELETE /api/v2/mailboxes").await;
        assert_eq!((response.status.as_u16(), response.text()), (200, format!("{{\"deleted\":{deleted}}}\n").as_str()));
    }
    assert_eq!(server.request("GET /api/v1/mailbox/ann").await.text(), "[]\n");
}
