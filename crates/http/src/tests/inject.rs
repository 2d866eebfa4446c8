//! Delivery over HTTP, and deleting all messages.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use super::*;

const MAIL: &str = "From: Ann <ann@example.org>\r\nSubject: Hello\r\n\r\nHi\n.\r\n";

fn house() -> TestServer {
    TestServer::with(Settings { max_message_bytes: 10_000, ..Settings::default() })
}

async fn post(house: &TestServer, path: &str, kind: &str, body: impl Into<Body>) -> TestResponse {
    let request = format!("POST /api/v2/mailbox/{path}\nContent-Type: {kind}");
    house.request_with(&request, body, Peer::from(Some([192, 0, 2, 7].into()))).await
}

async fn post_json(house: &TestServer, value: &Value) -> TestResponse {
    post(house, "test", "application/json", value.to_string()).await
}

async fn source(house: &TestServer, mailbox: &str) -> String {
    house.request(&format!("GET /api/v1/mailbox/{mailbox}/latest/source")).await.text().to_owned()
}

#[tokio::test]
async fn a_mail_is_stored_byte_for_byte() {
    let house = house();
    let answer = post(&house, "Test+x", "message/rfc822", MAIL).await;
    assert_eq!(answer.status, 201);
    let message = &answer.json()["messages"][0];
    assert_eq!((&message["mailbox"], &message["subject"]), (&json!("test"), &json!("Hello")));
    assert_eq!(message["from"], "Ann <ann@example.org>");
    let location = format!("/api/v1/mailbox/test/{}", message["id"].as_str().unwrap());
    assert_eq!(answer.header("location"), location);
    assert_eq!(house.request(&format!("GET {location}")).await.status, 200);
    let source = source(&house, "test").await;
    let (trace, mail) = source.split_at(source.len() - MAIL.len());
    assert_eq!(mail, MAIL);
    assert!(
        trace.starts_with("Return-Path: <ann@example.org>\r\nReceived: from [192.0.2.7] ([192.0.2.7]) by "),
        "{trace}"
    );
}

#[tokio::test]
async fn the_envelope_has_its_own_sender() {
    let house = house();
    for (query, expected) in [("from=bob@x.org", "<bob@x.org>"), ("from=", "<>")] {
        post(&house, &format!("test?{query}"), "message/rfc822", MAIL).await;
        assert!(source(&house, "test").await.starts_with(&format!("Return-Path: {expected}\r\n")));
    }
    let answer = post(&house, "test?from=nobody", "message/rfc822", MAIL).await;
    assert!(answer.problem(400).contains("The parameter from must be an address or empty"));
}

#[tokio::test]
async fn the_pieces_of_a_mail_become_one() {
    let house = house();
    let pieces = json!({
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
    let answer = post_json(&house, &pieces).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let message = house.request("GET /api/v1/mailbox/test/latest").await.json();
    assert_eq!(message["from"], "Ännchen <ann@example.org>");
    assert_eq!(message["subject"], "Grüße");
    assert_eq!(message["body"], json!({"text": "Hello", "html": "<img src=cid:logo>"}));
    assert_eq!(message["header"]["X-Kind"], json!(["welcome"]));
    assert_eq!(message["header"]["Date"], json!(["Sun, 15 Nov 2026 10:00:00 +0000"]));
    assert_eq!(message["attachments"].as_array().unwrap().len(), 2);
    // Only the sender is required.
    let answer = post_json(&house, &json!({"from": "a@x"})).await;
    assert_eq!(answer.json()["messages"][0]["to"], json!(["<test@localhost>"]));
}

#[tokio::test]
async fn what_makes_no_mail() {
    let house = house();
    let table = [
        (json!({}), "missing field `from`"),
        (json!({"from": "a@x", "form": "b@x"}), "unknown field `form`"),
        (json!({"from": "a@x\r\nBcc: b@x"}), "from has a line break or another control character"),
        (json!({"from": "a@x", "to": ["x"]}), "to[0] is neither an address"),
        (json!({"from": "a@x", "subject": "a\u{0}b"}), "subject has a line break"),
        (json!({"from": "a@x", "headers": {"X: y\r\nBcc": "b@x"}}), "is no name of a header field"),
        (json!({"from": "a@x", "headers": {"X-Foo": "a\nb"}}), "headers.X-Foo has a line break"),
        (json!({"from": "a@x", "attachments": [{"content": "a"}]}), "attachments[0].content is no base64"),
        (json!({"from": "a@x", "attachments": [{"content": "", "filename": "a\nb"}]}), "attachments[0].filename has"),
        (json!({"from": "a@x", "date": "yesterday"}), "date is no time"),
        (json!([]), "invalid type: sequence, expected an object"),
        (json!(["a@x", [], [], "Hello"]), "invalid type: sequence, expected an object"),
        (json!({"from": "a@x", "attachments": [["a.txt", null, "", null]]}), "expected an object"),
    ];
    for (pieces, expected) in table {
        let sentence = post_json(&house, &pieces).await.problem(422);
        assert!(sentence.contains(expected), "{sentence}");
    }
    for (kind, status) in [("text/plain", 415), ("message/rfc822x", 415), ("message/rfc822; x=y", 422)] {
        assert_eq!(post(&house, "test", kind, "").await.status, status, "{kind}");
    }
    assert!(post(&house, "test", "application/json", "{").await.problem(422).contains("not valid JSON"));
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.text(), "[]\n");
}

#[tokio::test]
async fn a_mail_is_not_larger_than_over_smtp() {
    let house = house();
    let mail = |length| Body::from("x".repeat(length));
    assert_eq!(post(&house, "test", "message/rfc822", mail(10_000)).await.status, 201);
    post(&house, "test", "message/rfc822", mail(10_001)).await.problem(413);
    let pieces = |length| json!({"from": "a@x", "text": "x\n".repeat(length)});
    assert_eq!(post_json(&house, &pieces(3000)).await.status, 201);
    let sentence = post_json(&house, &pieces(3400)).await.problem(413);
    assert!(sentence.starts_with("The composed message is too large: 10"), "{sentence}");
    post_json(&house, &pieces(100_000)).await.problem(413);
}

#[tokio::test]
async fn the_policy_is_that_of_smtp() {
    let list = |domain: &str| [domain].into_iter().collect();
    let policy =
        Policy { reject_domains: list("closed.org"), reject_origin_domains: list("spam.org"), ..Policy::default() };
    let house = TestServer::build(policy, Settings { max_message_bytes: 10_000, ..Settings::default() }, |_| {});
    let table = [
        ("ann@closed.org", "550 5.7.1 Mail to this domain is not accepted here"),
        ("ann?from=bob@spam.org", "550 5.7.1 Mail from this domain is not accepted here"),
    ];
    for (path, expected) in table {
        let sentence = post(&house, path, "message/rfc822", MAIL).await.problem(403);
        assert_eq!(sentence, format!("The message is refused, as over SMTP: {expected}"));
    }
    assert_eq!(house.request("GET /api/v1/mailbox/ann").await.text(), "[]\n");
    assert_eq!(post(&house, "ann", "message/rfc822", MAIL).await.status, 201);
}

/// An announced length reserves no memory, and a client that sends nothing is soon disconnected.
#[tokio::test(start_paused = true)]
async fn a_mail_that_does_not_come_is_not_waited_for() {
    let house = house();
    let began = tokio::time::Instant::now();
    let one = stream::iter([Ok::<_, std::io::Error>("x")]).chain(stream::pending());
    let answer = post(&house, "test", "message/rfc822", Body::from_stream(one)).await;
    assert_eq!(answer.problem(408), "The body of the request did not arrive in time.");
    assert!(began.elapsed().as_secs() <= 5, "{:?}", began.elapsed());
    // Single bytes now and then do not extend the time.
    let drops = stream::repeat(()).then(|()| async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, std::io::Error>("x")
    });
    assert_eq!(post(&house, "test", "message/rfc822", Body::from_stream(drops)).await.status, 408);
    assert!(began.elapsed().as_secs() <= 11, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn large_mails_have_room_of_their_own() {
    let mut uploads = None;
    let settings = Settings { max_message_bytes: 1 << 20, ..Settings::default() };
    let house = TestServer::build(Policy::default(), settings, |server| uploads = Some(server.upload_budget.clone()));
    let uploads = uploads.unwrap();
    let mail = |length: usize| "x".repeat(length);
    assert_eq!(post(&house, "test", "message/rfc822", mail(1 << 20)).await.status, 201);
    // One reservation uses the complete budget, the other the extra allowance for the longest waiter.
    let mut others = [uploads.reservation(), uploads.reservation()];
    for other in &mut others {
        other.adjust_to(crate::state::MAX_UPLOAD_BYTES).await;
    }
    let refused = post(&house, "test", "message/rfc822", mail(1 << 20)).await;
    assert!(refused.problem(503).starts_with("Too many large messages are being uploaded"));
    assert_eq!(refused.header("retry-after"), "5");
    let pieces = json!({"from": "a@x", "text": "=\n".repeat(100_000)});
    assert_eq!(post_json(&house, &pieces).await.status, 503, "as a mail it is longer");
    assert_eq!(post(&house, "test", "message/rfc822", mail(1000)).await.status, 201, "a small one goes always");
    assert_eq!(house.request("GET /api/v1/mailbox/test/latest").await.status, 200);
    drop(others);
    for _ in 0..100 {
        assert_eq!(post(&house, "test", "message/rfc822", mail(1 << 20)).await.status, 201, "all of it is given back");
    }
}

/// A client that sends the complete body before it reads the response gets one, within limits.
#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_taken_and_thrown_away() {
    let house = house();
    for (pieces, taken) in [(100, 100), (1_000_000, 2 * 1024 + 1)] {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = count.clone();
        let body = stream::repeat(Bytes::from(vec![b'x'; 32 * 1024])).take(pieces).map(move |piece| {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, std::io::Error>(piece)
        });
        post(&house, "test", "message/rfc822", Body::from_stream(body)).await.problem(413);
        let count = count.load(std::sync::atomic::Ordering::Relaxed);
        assert!((taken..=taken + 2).contains(&count), "{count} of {pieces}");
    }
}

#[tokio::test]
async fn everything_is_deleted() {
    let house = house();
    for mailbox in ["ann", "ann", "bob"] {
        post(&house, mailbox, "message/rfc822", MAIL).await;
    }
    for query in ["mailbox=ann", "prefix=ann&limit=1", "Prefix=ann"] {
        let sentence = house.request(&format!("DELETE /api/v2/mailboxes?{query}")).await.problem(400);
        assert!(sentence.contains("Accepted parameters: prefix."), "{sentence}");
    }
    assert_eq!(house.request("DELETE /api/v2/mailboxes?prefix=BO").await.text(), "{\"deleted\":1}\n");
    for deleted in [2, 0] {
        let answer = house.request("DELETE /api/v2/mailboxes").await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, format!("{{\"deleted\":{deleted}}}\n").as_str()));
    }
    assert_eq!(house.request("GET /api/v1/mailbox/ann").await.text(), "[]\n");
}
