//! Waiting for messages: existing ones, arriving ones, timeouts, and clients that disconnect.

use std::time::Duration;

use restante_net::ShutdownTrigger;
use restante_search::Search;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::*;
use crate::{ConnectionGuard, Version, serve_connection};

fn house() -> TestServer {
    TestServer::with(Settings { max_message_bytes: 1 << 20, ..Settings::default() })
}

/// Delivers a message through another request.
async fn deliver(house: &TestServer, mailbox: &str, subject: &str) -> String {
    let request = format!("POST /api/v2/mailbox/{mailbox}\nContent-Type: message/rfc822");
    let mail = format!("From: a@example.org\r\nSubject: {subject}\r\n\r\nThe code is 4711.\r\n");
    let answer = house.request_with(&request, mail, Peer::default()).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()["messages"][0]["id"].as_str().unwrap().to_owned()
}

fn subjects(answer: &Value) -> Vec<&str> {
    let messages = answer["messages"].as_array().expect("a list");
    messages.iter().map(|one| one["subject"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_there_is_told_at_once() {
    let house = house();
    let first = deliver(&house, "test", "one").await;
    deliver(&house, "test", "two").await;
    let table = [
        ("", &["one"][..]),
        ("?count=2", &["one", "two"]),
        (&format!("?after={first}"), &["two"]),
        ("?match=subject:two", &["two"]),
        ("?match=4711&count=2&timeout=0", &["one", "two"]),
        ("?timeout=10m&expect=some", &["one"]),
    ];
    for (query, expected) in table {
        let answer = house.request(&format!("GET /api/v2/mailbox/Test+x/wait{query}")).await;
        assert_eq!(answer.status, 200, "{query}");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(subjects(&answer.json()), expected, "{query}");
        assert!(
            answer.text().starts_with("{\"messages\":[{\"mailbox\":\"test\",\"id\":\"")
                && answer.text().ends_with("}]}\n")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_is_told_when_it_comes() {
    let house = house();
    let waiting = house.request("GET /api/v2/mailbox/test/wait?count=2&match=-subject:no&timeout=1m");
    let sending = async {
        for subject in ["one", "no", "two"] {
            sleep(Duration::from_secs(10)).await;
            deliver(&house, "other", "two").await;
            deliver(&house, "test", subject).await;
        }
    };
    let (answer, ()) = tokio::join!(waiting, sending);
    assert_eq!(subjects(&answer.json()), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_is_told_at_the_end_of_the_time() {
    let house = house();
    deliver(&house, "test", "one").await;
    let began = tokio::time::Instant::now();
    let answer = house.request("GET /api/v2/mailbox/test/wait?count=2&timeout=1m30s").await;
    assert_eq!(began.elapsed().as_secs(), 90);
    assert_eq!(answer.problem(408), "1 of 2 matching messages arrived in time.");
    assert_eq!(subjects(&answer.json()), ["one"]);
    let answer = house.request("GET /api/v2/mailbox/empty/wait").await;
    assert_eq!(began.elapsed().as_secs(), 120);
    assert_eq!(answer.problem(408), "0 of 1 matching messages arrived in time.");
    assert_eq!(subjects(&answer.json()), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_becomes_right_later_is_found_at_the_end() {
    let house = house();
    deliver(&house, "test", "one").await;
    let waiting = house.request("GET /api/v2/mailbox/test/wait?match=is:seen&timeout=2.5");
    let (answer, ()) = tokio::join!(waiting, async {
        sleep(Duration::from_secs(1)).await;
        let mark = "PATCH /api/v1/mailbox/test/latest";
        let latest = house.request("GET /api/v1/mailbox/test/latest").await.json()["id"].as_str().unwrap().to_owned();
        house.request_with(&mark.replace("latest", &latest), "{\"seen\":true}", Peer::default()).await;
    });
    assert_eq!(subjects(&answer.json()), ["one"]);
    assert_eq!(answer.status, 200);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_expected() {
    let house = house();
    let answer = house.request("GET /api/v2/mailbox/test/wait?expect=none&timeout=5").await;
    assert_eq!((answer.status.as_u16(), answer.text()), (204, ""));
    let waiting = house.request("GET /api/v2/mailbox/test/wait?expect=none&match=subject:bad&timeout=1m");
    let (answer, _) = tokio::join!(waiting, async {
        deliver(&house, "test", "good").await;
        deliver(&house, "test", "bad").await
    });
    assert_eq!(answer.problem(409), "A matching message arrived, but none was expected.");
    assert_eq!(subjects(&answer.json()), ["bad"]);
    let answer = house.request("GET /api/v2/mailbox/test/wait?expect=none&timeout=0").await;
    assert_eq!(subjects(&answer.json()), ["good"], "it was there before");
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_meanwhile_is_not_told() {
    let house = house();
    let one = deliver(&house, "test", "one").await;
    let waiting = house.request("GET /api/v2/mailbox/test/wait?count=2&timeout=1m");
    let (answer, ()) = tokio::join!(waiting, async {
        sleep(Duration::from_secs(1)).await;
        house.request(&format!("DELETE /api/v1/mailbox/test/{one}")).await;
        deliver(&house, "test", "two").await;
        sleep(Duration::from_secs(1)).await;
        deliver(&house, "test", "three").await;
    });
    assert_eq!(subjects(&answer.json()), ["two", "three"]);
}

#[tokio::test]
async fn wrong_parameters() {
    let house = house();
    let time = "must be a duration such as 30s, 1m30s or 500ms, or a number of seconds.";
    let table = [
        ("timeout=x", time),
        ("timeout=", time),
        ("timeout=-1s", time),
        ("timeout=1d", time),
        ("timeout=99999999999999999999", time),
        ("timeout=601", "The parameter timeout must be at most 10m."),
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
        let sentence = house.request(&format!("GET /api/v2/mailbox/test/wait?{query}")).await.problem(400);
        assert!(sentence.contains(expected), "{query}: {sentence}");
    }
    for path in ["latest?wait=x", "latest/source?wait=11m"] {
        let sentence = house.request(&format!("GET /api/v1/mailbox/test/{path}")).await.problem(400);
        assert!(sentence.contains("The parameter wait"), "{sentence}");
    }
    assert_eq!(house.request("POST /api/v2/mailbox/test/wait").await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn the_latest_of_an_empty_mailbox_is_waited_for() {
    let house = house();
    for (path, expected) in [("latest", "\"subject\":\"one\""), ("latest/source", "Subject: one")] {
        let request = format!("GET /api/v1/mailbox/{}/{path}?wait=30s", path.len());
        assert_eq!(house.request(&request).await.problem(404), "The mailbox has no such message.");
        let mailbox = path.len().to_string();
        let (answer, _) = tokio::join!(house.request(&request), deliver(&house, &mailbox, "one"));
        assert!(answer.text().contains(expected), "{}", answer.text());
        deliver(&house, &mailbox, "two").await;
        assert!(house.request(&request).await.text().contains("two"));
    }
    assert_eq!(house.request("GET /api/v1/mailbox/none/17?wait=30s").await.status, 404);
}

#[tokio::test]
async fn a_thousand_wait_for_one_mailbox_and_a_thousand_for_their_own() {
    let house = Arc::new(house());
    let waiting: Vec<_> = (0..2000)
        .map(|number| {
            let (house, name) = (house.clone(), if number < 1000 { "all".to_owned() } else { format!("own{number}") });
            tokio::spawn(async move { house.request(&format!("GET /api/v2/mailbox/{name}/wait?timeout=10m")).await })
        })
        .collect();
    tokio::task::yield_now().await;
    deliver(&house, "all", "to all").await;
    for number in 1000..2000 {
        deliver(&house, &format!("own{number}"), &format!("to {number}")).await;
    }
    for (number, answer) in waiting.into_iter().enumerate() {
        let answer = answer.await.unwrap().json();
        let expected = if number < 1000 { "to all".to_owned() } else { format!("to {number}") };
        assert_eq!(subjects(&answer), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn not_more_than_so_many_wait() {
    let house =
        TestServer::build(Policy::default(), Settings::default(), |server| server.wait_permits = Semaphore::new(1));
    let waiting = house.request("GET /api/v2/mailbox/test/wait?timeout=1m");
    let more = async {
        sleep(Duration::from_secs(1)).await;
        for path in ["v2/mailbox/other/wait", "v1/mailbox/other/latest?wait=1m"] {
            let answer = house.request(&format!("GET /api/{path}")).await;
            assert_eq!(answer.problem(503), "Too many requests are waiting for messages.");
            assert_eq!(answer.header("retry-after"), "5");
        }
    };
    let (answer, ()) = tokio::join!(waiting, more);
    assert_eq!(answer.status, 408);
    assert_eq!(house.request("GET /api/v2/mailbox/other/wait").await.status, 408, "the place is free again");
}

/// A client that closes its side has disconnected. The connection ends and releases everything that it holds.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_not_waited_for() {
    let extensions = crate::Extensions { search: Some(Arc::new(Search::new(None))), ..crate::Extensions::default() };
    let house = TestServer::with(Settings { extensions, ..Settings::default() });
    // A search without a started index waits two seconds for it.
    for path in ["/api/v2/mailbox/test/wait?timeout=10m", "/api/v2/search?q=code"] {
        let (mut client, server) = duplex(1 << 16);
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let tenure = ConnectionGuard::new(None, shutdown);
        let serving = serve_connection(server, Peer::default(), Version::Http1, house.router.clone(), tenure);
        let serving = tokio::spawn(serving);
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(!serving.is_finished(), "{path}");
        drop(client);
        timeout(Duration::from_millis(500), serving).await.expect("at once").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_server_ends_every_wait() {
    let house = house();
    let (mut client, server) = duplex(1 << 16);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let tenure = ConnectionGuard::new(None, shutdown);
    let serving = tokio::spawn(serve_connection(server, Peer::default(), Version::Http1, house.router.clone(), tenure));
    let request = b"GET /api/v1/mailbox/test/latest?wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(request).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    tokio::spawn(async move { trigger.trigger_and_wait(Duration::MAX).await });
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    assert!(answer.contains("The server is shutting down."), "{answer}");
    serving.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
