//! Permits for expensive work: the timeout, and clients that disconnect while they wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use restante_http_connection::memory::SMALL_BYTES;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use restante_net::ShutdownTrigger;
use restante_store::MessageSelector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::state::message::Representation;
use crate::{ConnectionGuard, Version, serve_connection};

const LARGE: &str = "/api/v1/mailbox/test/latest";

/// Creates a server with a large message, and acquires all work permits.
async fn crowded_house() -> (TestServer, Arc<Server>, OwnedSemaphorePermit) {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let settings = Settings { cache_bytes: 64 << 20, max_message_bytes: 1 << 20, ..Settings::default() };
    let server = Arc::new(Server::new(Arc::new(mailroom), settings));
    let turns = u32::try_from(server.work_permits.available_permits()).unwrap();
    let all = server.work_permits.clone().acquire_many_owned(turns).await.unwrap();
    let house = TestServer { store, router: build_router(server.clone()) };
    house.put(0, "test", &format!("\r\n{}", "needle ".repeat(SMALL_BYTES / 4))).await;
    (house, server, all)
}

/// Opens a connection and sends a request.
async fn asking(house: &TestServer, head: &str) -> (DuplexStream, JoinHandle<()>) {
    let (mut client, server) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let serving = serve_connection(
        server,
        Peer::default(),
        Version::Http1,
        house.router.clone(),
        ConnectionGuard::new(None, shutdown),
    );
    let serving = tokio::spawn(async move {
        let _trigger = trigger;
        serving.await;
    });
    client.write_all(format!("{head} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    (client, serving)
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_not_waited_for_without_end() {
    let (house, _server, all) = crowded_house().await;
    let began = Instant::now();
    let answer = house.request(&format!("GET {LARGE}")).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(answer.problem(503).contains("busy with other large messages"));
    assert_eq!(answer.header("retry-after"), "5");
    drop(all);
    assert_eq!(house.request(&format!("GET {LARGE}")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn who_has_left_does_not_keep_its_place() {
    let (house, _server, _all) = crowded_house().await;
    for target in [LARGE, "/serve/mailbox/test/latest/html", "/api/v2/mailbox/test/latest/links"] {
        let (client, serving) = asking(&house, &format!("GET {target}")).await;
        sleep(Duration::from_secs(5)).await;
        assert!(!serving.is_finished(), "{target}: it is still there");
        drop(client);
        timeout(Duration::from_secs(3), serving).await.expect("a moment later").unwrap();
    }
}

/// A client that has only closed its sending side gets a response if that does not take long.
#[tokio::test(start_paused = true)]
async fn who_has_said_its_last_word_waits_a_moment() {
    for (seconds, status) in [(1, "200 OK"), (3, "400 Bad Request")] {
        let (house, _server, all) = crowded_house().await;
        let (mut client, serving) = asking(&house, &format!("GET {LARGE}")).await;
        client.shutdown().await.unwrap();
        sleep(Duration::from_secs(seconds)).await;
        drop(all);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{seconds}: {answer:.100}");
        serving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_comes_all_the_same() {
    let house = TestServer::with(Settings { max_message_bytes: 1 << 20, ..Settings::default() });
    let head =
        "POST /api/v2/mailbox/test HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: message/rfc822";
    let body = format!("Subject: slow\r\n\r\n{}\r\n", "x".repeat(9000));
    let (mut client, serving) = duplex(1 << 20);
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let tenure = ConnectionGuard::new(None, shutdown);
    let serving =
        tokio::spawn(serve_connection(serving, Peer::default(), Version::Http1, house.router.clone(), tenure));
    client.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes()).await.unwrap();
    for piece in body.as_bytes().chunks(100) {
        sleep(Duration::from_millis(50)).await;
        client.write_all(piece).await.unwrap();
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    serving.await.unwrap();
    assert!(house.request("GET /api/v1/mailbox/test/latest/source").await.text().ends_with(&body));
}

/// Requests that wait for messages and requests that read messages do not block each other.
#[tokio::test(start_paused = true)]
async fn who_waits_has_a_turn_of_its_own() {
    let (house, _server, _all) = crowded_house().await;
    for (query, status) in [("body:needle", 200), ("body:pin", 408)] {
        let answer = house.request(&format!("GET /api/v2/mailbox/test/wait?timeout=1s&match={query}")).await;
        assert_eq!(answer.status, status, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_many_ask_for_is_made_once() {
    let (house, server, mut all) = crowded_house().await;
    let id = house.request("GET /api/v1/mailbox/test").await.json()[0]["id"].as_str().unwrap().parse().unwrap();
    let of = server.mailroom.find(&"test".to_owned().into(), MessageSelector::Id(id)).await.unwrap().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let mut asking = JoinSet::new();
    for _ in 0..20 {
        let (server, of, written) = (server.clone(), of.clone(), written.clone());
        let write = move |_: &Summary, _: &Mime| {
            written.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from_static(b"all of it"))
        };
        asking.spawn(async move { server.render(&of, Representation::Compat, write).await.unwrap() });
    }
    tokio::task::yield_now().await;
    drop(all.split(1));
    assert!(asking.join_all().await.iter().all(|body| body == "all of it"));
    assert_eq!(written.load(Ordering::Relaxed), 1);
}
