//! Waiting for messages: existing ones, arriving ones, timeouts, and clients that disconnect.

use std::time::Duration;

use restante_http::{ConnectionGuard, Version, serve_connection};
use restante_net::ShutdownTrigger;
use restante_search::Search;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::support::accounts::Accounts;
use crate::support::events::EventServer;
use crate::support::*;

const UNEXPECTED: &str = "A matching message arrived, but none was expected.";

fn server() -> TestServer {
    TestServer::with(Settings { max_message_bytes: 1 << 20, ..Settings::default() })
}

/// Delivers a message through another request.
async fn deliver(server: &TestServer, mailbox: &str, subject: &str) -> String {
    let request = format!("POST /api/v2/mailbox/{mailbox}\nContent-Type: message/rfc822");
    let mail = format!("From: a@example.org\r\nSubject: {subject}\r\n\r\nThe code is 4711.\r\n");
    let response = server.request_with(&request, mail, Peer::default()).await;
    assert_eq!(response.status, 201, "{:?}", response.body);
    response.json()["messages"][0]["id"].as_str().unwrap().to_owned()
}

fn subjects(response: &Value) -> Vec<&str> {
    let messages = response["messages"].as_array().expect("a list");
    messages.iter().map(|message| message["subject"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn existing_messages_are_returned_immediately() {
    let server = server();
    let first = deliver(&server, "test", "one").await;
    deliver(&server, "test", "two").await;
    let table = [
        ("", &["one"][..]),
        ("?count=2", &["one", "two"]),
        (&format!("?after={first}"), &["two"]),
        ("?match=subject:two", &["two"]),
        ("?match=4711&count=2&timeout=0", &["one", "two"]),
        ("?timeout=10m&expect=some", &["one"]),
    ];
    for (query, expected) in table {
        let response = server.request(&format!("GET /api/v2/mailbox/Test+x/wait{query}")).await;
        assert_eq!(response.status, 200, "{query}");
        assert_eq!(response.header("cache-control"), "no-store");
        assert_eq!(subjects(&response.json()), expected, "{query}");
        assert!(
            response.text().starts_with("{\"messages\":[{\"mailbox\":\"test\",\"id\":\"")
                && response.text().ends_with("}]}\n")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn arriving_messages_are_returned() {
    let server = server();
    let waiting = server.request("GET /api/v2/mailbox/test/wait?count=2&match=-subject:no&timeout=1m");
    let sending = async {
        for subject in ["one", "no", "two"] {
            sleep(Duration::from_secs(10)).await;
            deliver(&server, "other", "two").await;
            deliver(&server, "test", subject).await;
        }
    };
    let (response, ()) = tokio::join!(waiting, sending);
    assert_eq!(subjects(&response.json()), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn timeout_returns_408() {
    let server = server();
    deliver(&server, "test", "one").await;
    let start = tokio::time::Instant::now();
    let response = server.request("GET /api/v2/mailbox/test/wait?count=2&timeout=1m30s").await;
    assert_eq!(start.elapsed().as_secs(), 90);
    assert_eq!(response.problem(408), "1 of 2 matching messages arrived in time.");
    assert_eq!(subjects(&response.json()), ["one"]);
    let response = server.request("GET /api/v2/mailbox/empty/wait").await;
    assert_eq!(start.elapsed().as_secs(), 120);
    assert_eq!(response.problem(408), "0 of 1 matching messages arrived in time.");
    assert_eq!(subjects(&response.json()), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn message_that_matches_later_is_found() {
    let server = server();
    deliver(&server, "test", "one").await;
    let waiting = server.request("GET /api/v2/mailbox/test/wait?match=is:seen&timeout=2.5");
    let (response, ()) = tokio::join!(waiting, async {
        sleep(Duration::from_secs(1)).await;
        let mark = "PATCH /api/v1/mailbox/test/latest";
        let latest = server.request("GET /api/v1/mailbox/test/latest").await.json()["id"].as_str().unwrap().to_owned();
        server.request_with(&mark.replace("latest", &latest), "{\"seen\":true}", Peer::default()).await;
    });
    assert_eq!(subjects(&response.json()), ["one"]);
    assert_eq!(response.status, 200);
}

#[tokio::test(start_paused = true)]
async fn expecting_no_message() {
    let server = server();
    let response = server.request("GET /api/v2/mailbox/test/wait?expect=none&timeout=5").await;
    assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    let waiting = server.request("GET /api/v2/mailbox/test/wait?expect=none&match=subject:bad&timeout=1m");
    let (response, _) = tokio::join!(waiting, async {
        deliver(&server, "test", "good").await;
        deliver(&server, "test", "bad").await
    });
    assert_eq!(response.problem(409), "A matching message arrived, but none was expected.");
    assert_eq!(subjects(&response.json()), ["bad"]);
    let response = server.request("GET /api/v2/mailbox/test/wait?expect=none&timeout=0").await;
    assert_eq!(subjects(&response.json()), ["good"], "it existed before");
}

#[tokio::test(start_paused = true)]
async fn deleted_messages_are_not_returned() {
    let server = server();
    let message = deliver(&server, "test", "one").await;
    let waiting = server.request("GET /api/v2/mailbox/test/wait?count=2&timeout=1m");
    let (response, ()) = tokio::join!(waiting, async {
        sleep(Duration::from_secs(1)).await;
        server.request(&format!("DELETE /api/v1/mailbox/test/{message}")).await;
        deliver(&server, "test", "two").await;
        sleep(Duration::from_secs(1)).await;
        deliver(&server, "test", "three").await;
    });
    assert_eq!(subjects(&response.json()), ["two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn waits_for_messages_of_all_mailboxes() {
    let server = server();
    let first = deliver(&server, "ann", "one").await;
    deliver(&server, "bob", "two").await;
    let table = [
        ("", &["one"][..]),
        ("?count=2", &["one", "two"]),
        (&format!("?after={first}"), &["two"]),
        ("?match=mailbox:bob", &["two"]),
        ("?match=4711&count=2&timeout=0", &["one", "two"]),
    ];
    for (query, expected) in table {
        let response = server.request(&format!("GET /api/v2/wait{query}")).await;
        assert_eq!((response.status.as_u16(), response.header("cache-control")), (200, "no-store"), "{query}");
        assert_eq!(subjects(&response.json()), expected, "{query}");
    }
    let listed = server.request("GET /api/v2/messages/latest").await.json();
    let waited = server.request(&format!("GET /api/v2/wait?after={first}")).await.json();
    for (name, value) in waited["messages"][0].as_object().unwrap() {
        assert_eq!(value, &listed[name]);
    }
    let waiting = server.request("GET /api/v2/wait?count=2&match=subject:later&timeout=1m");
    let (response, ()) = tokio::join!(waiting, async {
        for (mailbox, subject) in [("ann", "later 1"), ("eve", "other"), ("joe", "later 2")] {
            sleep(Duration::from_secs(5)).await;
            deliver(&server, mailbox, subject).await;
        }
    });
    assert_eq!(subjects(&response.json()), ["later 1", "later 2"]);
    let response = server.request("GET /api/v2/wait?count=9&timeout=1m&match=subject:later").await;
    assert_eq!(response.problem(408), "2 of 9 matching messages arrived in time.");
    assert_eq!(response.json()["messages"][1]["mailboxes"][0], "joe");
    let response = server.request("GET /api/v2/wait?expect=none&timeout=1m&match=subject:never").await;
    assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    let response = server.request("GET /api/v2/wait?expect=none&match=subject:other").await;
    assert_eq!((response.problem(409).as_str(), subjects(&response.json())), (UNEXPECTED, vec!["other"]));
    assert!(server.request("GET /api/v2/wait?mach=a").await.problem(400).contains("Unknown parameter mach."));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_all_mailboxes_counts_messages() {
    let server = EventServer::new();
    let wait = async |query: &str| {
        let request = format!("GET /api/v2/wait?{query}");
        send_request(&server.router, &request, Body::empty(), Peer::default()).await
    };
    let (response, message) = tokio::join!(wait("count=2&timeout=1m"), async {
        sleep(Duration::from_secs(1)).await;
        let message = server.deliver_to(&["ann", "bob", "eve"], "one").await;
        sleep(Duration::from_secs(1)).await;
        server.deliver("ann", "two").await;
        message
    });
    assert_eq!(subjects(&response.json()), ["one", "two"]);
    assert_eq!(response.json()["messages"][0]["mailboxes"], serde_json::json!(["ann", "bob", "eve"]));
    // One copy is enough to match, and the message has the id of its first copy.
    let response = wait("match=mailbox:bob&timeout=0").await.json();
    assert_eq!(response["messages"][0]["id"], message.to_string());
    assert_eq!(wait("match=mailbox:bob+mailbox:eve&timeout=0").await.status, 408, "not of several copies");
}

#[tokio::test]
async fn limited_token_waits_only_for_its_mailboxes() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let (all, limited) = (accounts.token(&[]).await, accounts.token(&["ci-*"]).await);
    let deliver = async |mailbox: &str| {
        let request = format!("POST /api/v2/mailbox/{mailbox}\nContent-Type: message/rfc822\n{all}");
        accounts.server.request_with(&request, format!("Subject: {mailbox}\r\n\r\n"), Peer::default()).await
    };
    let request = format!("GET /api/v2/wait?timeout=1m\n{limited}");
    let (response, ()) = tokio::join!(accounts.server.request(&request), async {
        assert_eq!(deliver("ann").await.status, 201);
        assert_eq!(deliver("ci-1").await.status, 201);
    });
    assert_eq!(subjects(&response.json()), ["ci-1"]);
}

#[tokio::test]
async fn rejects_invalid_parameters() {
    let server = server();
    let time = "must be a duration such as 90s, 15m, 12h, 1d, 2w, 1h30m or 500ms, or a number of seconds.";
    let table = [
        ("timeout=x", time),
        ("timeout=", time),
        ("timeout=-1s", time),
        ("timeout=601", "The parameter timeout must be at most 10m."),
        ("timeout=1d", "The parameter timeout must be at most 10m."),
        ("timeout=99999999999999999999", "The parameter timeout must be at most 10m."),
        ("timeout=10m1s", "The parameter timeout must be at most 10m."),
        ("timeout=1s&timeout=1s", "The parameter timeout is given twice."),
        ("after=latest", "The parameter after must be a whole number."),
        ("count=0", "The parameter count must be between 1 and 1000."),
        ("count=1001", "The parameter count must be between 1 and 1000."),
        ("count=-1", "The parameter count must be a whole number."),
        ("expect=all", "The parameter expect must be some or none."),
        ("expect=none&count=2", "The parameter count cannot be used with expect=none."),
        ("match=(subject:x", "of the query"),
        ("match=a&match=b", "The parameter match is given twice."),
        ("mach=a", "Unknown parameter mach. Accepted parameters: timeout, after, count, match, expect."),
        ("match=%zz", "The query is not percent-encoded UTF-8."),
        ("match=%FF", "The query is not percent-encoded UTF-8."),
        ("match=%", "The query is not percent-encoded UTF-8."),
        ("timeout=1.5.0", time),
        ("timeout=.", time),
    ];
    for (query, expected) in table {
        let sentence = server.request(&format!("GET /api/v2/mailbox/test/wait?{query}")).await.problem(400);
        assert!(sentence.contains(expected), "{query}: {sentence}");
    }
    for path in ["latest?wait=x", "latest/source?wait=11m"] {
        let sentence = server.request(&format!("GET /api/v1/mailbox/test/{path}")).await.problem(400);
        assert!(sentence.contains("The parameter wait"), "{sentence}");
    }
    assert_eq!(server.request("POST /api/v2/mailbox/test/wait").await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn waits_for_latest_of_empty_mailbox() {
    let server = server();
    for (path, expected) in [("latest", "\"subject\":\"one\""), ("latest/source", "Subject: one")] {
        let request = format!("GET /api/v1/mailbox/{}/{path}?wait=30s", path.len());
        assert_eq!(server.request(&request).await.problem(404), "The mailbox has no such message.");
        let mailbox = path.len().to_string();
        let (response, _) = tokio::join!(server.request(&request), deliver(&server, &mailbox, "one"));
        assert!(response.text().contains(expected), "{}", response.text());
        deliver(&server, &mailbox, "two").await;
        assert!(server.request(&request).await.text().contains("two"));
    }
    assert_eq!(server.request("GET /api/v1/mailbox/none/17?wait=30s").await.status, 404);
}

#[tokio::test]
async fn thousands_of_requests_wait() {
    let server = Arc::new(server());
    let waiting: Vec<_> = (0..2000)
        .map(|number| {
            let (server, name) =
                (server.clone(), if number < 1000 { "all".to_owned() } else { format!("own{number}") });
            tokio::spawn(async move { server.request(&format!("GET /api/v2/mailbox/{name}/wait?timeout=10m")).await })
        })
        .collect();
    tokio::task::yield_now().await;
    deliver(&server, "all", "to all").await;
    for number in 1000..2000 {
        deliver(&server, &format!("own{number}"), &format!("to {number}")).await;
    }
    for (number, response) in waiting.into_iter().enumerate() {
        let response = response.await.unwrap().json();
        let expected = if number < 1000 { "to all".to_owned() } else { format!("to {number}") };
        assert_eq!(subjects(&response), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn number_of_waiting_requests_is_limited() {
    let server =
        TestServer::build(Policy::default(), Settings::default(), |state| state.wait_permits = Semaphore::new(1));
    let waiting = server.request("GET /api/v2/mailbox/test/wait?timeout=1m");
    let more = async {
        sleep(Duration::from_secs(1)).await;
        for path in ["v2/mailbox/other/wait", "v2/wait", "v1/mailbox/other/latest?wait=1m"] {
            let response = server.request(&format!("GET /api/{path}")).await;
            assert_eq!(response.problem(503), "Too many requests are waiting for messages.");
            assert_eq!(response.header("retry-after"), "5");
        }
    };
    let (response, ()) = tokio::join!(waiting, more);
    assert_eq!(response.status, 408);
    assert_eq!(server.request("GET /api/v2/mailbox/other/wait").await.status, 408, "the permit is released");
}

/// A client that closes its side has disconnected. The connection ends and releases everything that it holds.
#[tokio::test(start_paused = true)]
async fn disconnect_cancels_wait_and_search() {
    let services =
        restante_http::Services { search: Some(Arc::new(Search::new(None))), ..restante_http::Services::default() };
    let server = TestServer::with(Settings { services, ..Settings::default() });
    // A search without a started index waits two seconds for it.
    for path in ["/api/v2/mailbox/test/wait?timeout=10m", "/api/v2/search?q=code"] {
        let (mut client, stream) = duplex(1 << 16);
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let guard = ConnectionGuard::new(None, shutdown);
        let task = serve_connection(stream, Peer::default(), Version::Http1, server.router.clone(), guard);
        let task = tokio::spawn(task);
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(!task.is_finished(), "{path}");
        drop(client);
        timeout(Duration::from_millis(500), task).await.expect("at once").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_wait() {
    let server = server();
    let (mut client, stream) = duplex(1 << 16);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let guard = ConnectionGuard::new(None, shutdown);
    let task = tokio::spawn(serve_connection(stream, Peer::default(), Version::Http1, server.router.clone(), guard));
    let request = b"GET /api/v1/mailbox/test/latest?wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(request).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let start = tokio::time::Instant::now();
    tokio::spawn(async move { trigger.trigger_and_wait(Duration::MAX).await });
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{response}");
    assert!(response.contains("The server is shutting down."), "{response}");
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
