//! Permits for expensive work: the timeout, and clients that disconnect while they wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use restante_http_connection::memory::SMALL_BYTES;
use restante_http_core::render::{Representation, Work};
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use restante_net::ShutdownTrigger;
use restante_store::MessageSelector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::{ConnectionGuard, Version, serve_connection};

const LARGE: &str = "/api/v1/mailbox/test/latest";

/// Creates a server with a large message, and acquires all work permits.
async fn busy_server() -> (TestServer, Arc<Server>, OwnedSemaphorePermit) {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let settings = Settings { cache_bytes: 64 << 20, max_message_bytes: 1 << 20, ..Settings::default() };
    let state = Arc::new(Server::new(Arc::new(mailroom), settings));
    let count = u32::try_from(state.renderer.work_permits.available_permits()).unwrap();
    let permits_held = state.renderer.work_permits.clone().acquire_many_owned(count).await.unwrap();
    let server = TestServer { store, router: build_router(state.clone()) };
    server.add_message(0, "test", &format!("\r\n{}", "needle ".repeat(SMALL_BYTES / 4))).await;
    (server, state, permits_held)
}

/// Opens a connection and sends a request.
async fn connect_and_request(server: &TestServer, head: &str) -> (DuplexStream, JoinHandle<()>) {
    let (mut client, stream) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let task = serve_connection(
        stream,
        Peer::default(),
        Version::Http1,
        server.router.clone(),
        ConnectionGuard::new(None, shutdown),
    );
    let task = tokio::spawn(async move {
        let _trigger = trigger;
        task.await;
    });
    client.write_all(format!("{head} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    (client, task)
}

#[tokio::test(start_paused = true)]
async fn waiting_for_permit_times_out() {
    let (server, _state, permits_held) = busy_server().await;
    let start = Instant::now();
    let response = server.request(&format!("GET {LARGE}")).await;
    assert_eq!(start.elapsed().as_secs(), 10);
    assert!(response.problem(503).contains("busy with other large messages"));
    assert_eq!(response.header("retry-after"), "5");
    drop(permits_held);
    assert_eq!(server.request(&format!("GET {LARGE}")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_stops_waiting_for_permit() {
    let (server, _state, _permits_held) = busy_server().await;
    for target in [LARGE, "/serve/mailbox/test/latest/html", "/api/v2/mailbox/test/latest/links"] {
        let (client, task) = connect_and_request(&server, &format!("GET {target}")).await;
        sleep(Duration::from_secs(5)).await;
        assert!(!task.is_finished(), "{target}: the client is still connected");
        drop(client);
        timeout(Duration::from_secs(3), task).await.expect("shortly after the disconnect").unwrap();
    }
}

/// A client that has only closed its sending side gets a response if that does not take long.
#[tokio::test(start_paused = true)]
async fn half_closed_client_waits_briefly_for_permit() {
    for (seconds, status) in [(1, "200 OK"), (3, "400 Bad Request")] {
        let (server, _state, permits_held) = busy_server().await;
        let (mut client, task) = connect_and_request(&server, &format!("GET {LARGE}")).await;
        client.shutdown().await.unwrap();
        sleep(Duration::from_secs(seconds)).await;
        drop(permits_held);
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{seconds}: {response:.100}");
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn slow_body_is_accepted() {
    let server = TestServer::with(Settings { max_message_bytes: 1 << 20, ..Settings::default() });
    let head =
        "POST /api/v2/mailbox/test HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: message/rfc822";
    let body = format!("Subject: slow\r\n\r\n{}\r\n", "x".repeat(9000));
    let (mut client, stream) = duplex(1 << 20);
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let guard = ConnectionGuard::new(None, shutdown);
    let task = tokio::spawn(serve_connection(stream, Peer::default(), Version::Http1, server.router.clone(), guard));
    client.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes()).await.unwrap();
    for chunk in body.as_bytes().chunks(100) {
        sleep(Duration::from_millis(50)).await;
        client.write_all(chunk).await.unwrap();
    }
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 201 Created\r\n"), "{response}");
    task.await.unwrap();
    assert!(server.request("GET /api/v1/mailbox/test/latest/source").await.text().ends_with(&body));
}

/// Requests that wait for messages and requests that read messages do not block each other.
#[tokio::test(start_paused = true)]
async fn wait_requests_have_their_own_permit() {
    let (server, _state, _permits_held) = busy_server().await;
    for (query, status) in [("body:needle", 200), ("body:pin", 408)] {
        let response = server.request(&format!("GET /api/v2/mailbox/test/wait?timeout=1s&match={query}")).await;
        assert_eq!(response.status, status, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_render_once() {
    let (server, state, mut permits_held) = busy_server().await;
    let id = server.request("GET /api/v1/mailbox/test").await.json()[0]["id"].as_str().unwrap().parse().unwrap();
    let summary = state.mailroom.find(&"test".to_owned().into(), MessageSelector::Id(id)).await.unwrap().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let mut renderings = JoinSet::new();
    for _ in 0..20 {
        let (state, summary, written) = (state.clone(), summary.clone(), written.clone());
        let write = move |_: &Summary, _: &Mime| {
            written.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from_static(b"all of it"))
        };
        renderings.spawn(async move {
            state.renderer.render(&summary, Representation::new("test", Work::Html), write).await.unwrap()
        });
    }
    tokio::task::yield_now().await;
    drop(permits_held.split(1));
    assert!(renderings.join_all().await.iter().all(|body| body == "all of it"));
    assert_eq!(written.load(Ordering::Relaxed), 1);
}
