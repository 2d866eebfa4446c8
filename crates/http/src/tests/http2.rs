//! HTTP/2: many requests on one connection, and clients that misuse it.

use std::future::pending;
use std::time::Duration;

use h2::client::{self, SendRequest};
use h2::{Reason, RecvStream};
use restante_metrics::Metrics;
use restante_net::ShutdownTrigger;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::*;
use crate::{ConnectionGuard, Version, serve_connection};

const ROOT: &str = "https://localhost";
const LIST: &str = "/api/v1/mailbox/test";

/// Opens a connection to a server that shuts down when `end` is ready.
fn connect(server: &TestServer, end: impl Future<Output = ()> + Send + 'static) -> (DuplexStream, JoinHandle<()>) {
    let (client, stream) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    tokio::spawn(async move {
        end.await;
        trigger.trigger_and_wait(Duration::MAX).await
    });
    let (peer, guard) = (Peer { tls: true, ..Peer::default() }, ConnectionGuard::new(None, shutdown));
    (client, tokio::spawn(serve_connection(stream, peer, Version::Http2, server.router.clone(), guard)))
}

/// Performs the handshake, and drives the connection in its own task, which ends with the connection.
async fn client(stream: DuplexStream, builder: &client::Builder) -> (SendRequest<Bytes>, JoinHandle<()>) {
    let (client, connection) = builder.handshake(stream).await.unwrap();
    (client, tokio::spawn(async move { drop(connection.await) }))
}

async fn open(server: &TestServer) -> SendRequest<Bytes> {
    client(connect(server, pending()).0, &client::Builder::new()).await.0
}

fn request(line: &str) -> Request<()> {
    let (method, path) = line.split_once(' ').unwrap();
    Request::builder().method(method).uri(format!("{ROOT}{path}")).body(()).unwrap()
}

/// Sends a request with this body, and waits for the head of the response.
async fn send(client: &SendRequest<Bytes>, request: Request<()>, body: &str) -> Result<Response, h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, mut stream) = client.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true)?;
    }
    response.await
}

type Response = axum::http::Response<RecvStream>;

/// Reads the complete body, and releases flow-control capacity as it arrives.
async fn body(response: Response) -> Result<Vec<u8>, h2::Error> {
    let mut stream = response.into_body();
    let mut all = Vec::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        all.extend_from_slice(&chunk);
        stream.flow_control().release_capacity(chunk.len())?;
    }
    Ok(all)
}

async fn get(client: &SendRequest<Bytes>, path: &str) -> (u16, Vec<u8>) {
    let response = send(client, request(&format!("GET {path}")), "").await.unwrap();
    (response.status().as_u16(), body(response).await.unwrap())
}

#[tokio::test]
async fn hundred_concurrent_requests() {
    let server = TestServer::with_two_messages().await;
    // Larger than the window of a stream of the client.
    server.add_message(2, "test", &"x".repeat(3 << 20)).await;
    let client = open(&server).await;
    let mut requests = JoinSet::new();
    for number in 0..100 {
        // Only some are large: under load, 75 MB on one connection takes longer than requests wait for memory.
        let path = match number % 20 {
            0 => "/api/v1/mailbox/test/latest/source",
            other => [LIST, "/", "/api/v1/mailbox/none"][other % 3],
        };
        let client = client.clone();
        requests.spawn(async move { (path, get(&client, path).await) });
    }
    for (path, (status, body)) in requests.join_all().await {
        let expected = server.request(&format!("GET {path}")).await;
        assert!(status == 200 && body == expected.body, "{path}: {status}, {} bytes", body.len());
    }
}

#[tokio::test]
async fn methods_and_limits_work_as_in_http1() {
    let server = TestServer::with_two_messages().await;
    let client = open(&server).await;
    let marked = send(&client, request("PATCH /api/v1/mailbox/test/latest"), "{\"seen\":true}").await.unwrap();
    assert_eq!(marked.status(), 200);
    assert_eq!(server.request("GET /api/v1/mailbox/test/latest").await.json()["seen"], true);
    let length = server.request(&format!("GET {LIST}")).await.body.len();
    let head = send(&client, request(&format!("HEAD {LIST}")), "").await.unwrap();
    assert_eq!(head.headers()["content-length"], length.to_string().as_str());
    assert_eq!(body(head).await.unwrap(), b"");
    let large = send(&client, request("PATCH /api/v1/mailbox/test/latest"), &"x".repeat(1 << 18)).await.unwrap();
    assert_eq!(large.status(), 413);
    // Browsers open another connection for a WebSocket.
    let socket = send(&client, request("GET /api/v2/monitor/messages"), "").await.unwrap();
    assert_eq!((socket.status().as_u16(), socket.headers().get("upgrade")), (426, None));
}

#[tokio::test]
async fn authority_replaces_host_header() {
    let server = TestServer::new();
    let client = open(&server).await;
    let table = [
        ("localhost:9000", None, 200),
        ("evil.example", None, 421),
        ("user@localhost", None, 400),
        ("localhost", Some("LocalHost"), 200),
        ("localhost", Some("evil.example"), 400),
        ("evil.example", Some("localhost"), 400),
    ];
    for (authority, host, status) in table {
        let mut request = request(&format!("GET {LIST}"));
        *request.uri_mut() = format!("https://{authority}{LIST}").parse().unwrap();
        if let Some(host) = host {
            request.headers_mut().insert("host", host.parse().unwrap());
        }
        let response = send(&client, request, "").await.unwrap();
        assert_eq!(response.status(), status, "{authority} {host:?}");
    }
}

#[tokio::test]
async fn links_use_https() {
    let server = TestServer::new();
    server.add_message(0, "test", "Content-Type: image/png\r\n\r\nx").await;
    let (_, body) = get(&open(&server).await, "/api/v1/mailbox/test/latest").await;
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let link = json["attachments"][0]["download-link"].as_str().unwrap();
    assert!(link.starts_with("https://localhost/mailbox/"), "{link}");
}

/// Creates a server, and returns its metrics.
fn server_with_metrics() -> (TestServer, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    (TestServer::with(Settings { metrics: metrics.clone(), ..Settings::default() }), metrics)
}

async fn wait_for_subscribers(metrics: &Metrics, number: i64) {
    while metrics.monitors.streams.get() != number {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn canceled_subscriptions_are_released() {
    let (server, metrics) = server_with_metrics();
    let (stream, task) = connect(&server, pending());
    let (client, driver) = client(stream, &client::Builder::new()).await;
    let mut subscribers = Vec::new();
    for _ in 0..3 {
        subscribers.push(send(&client, request("GET /api/v2/events"), "").await.unwrap());
    }
    wait_for_subscribers(&metrics, 3).await;
    // One stream is reset; the others and the connection continue.
    drop(subscribers.pop());
    wait_for_subscribers(&metrics, 2).await;
    assert_eq!(get(&client, LIST).await, (200, b"[]\n".to_vec()));
    let mut stream = subscribers.remove(0).into_body();
    assert!(stream.data().await.unwrap().unwrap().starts_with(b"retry: "));
    // The connection is closed.
    driver.abort();
    wait_for_subscribers(&metrics, 0).await;
    task.await.unwrap();
}

#[tokio::test]
async fn shutdown_completes_open_requests() {
    let (server, metrics) = server_with_metrics();
    server.add_message(0, "test", &"x".repeat(1 << 20)).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let (stream, task) = connect(&server, async {
        let _ = stopped.await;
    });
    let (client, driver) = client(stream, &client::Builder::new()).await;
    let subscriber = send(&client, request("GET /api/v2/events"), "").await.unwrap();
    let source = send(&client, request(&format!("GET {LIST}/latest/source")), "").await.unwrap();
    wait_for_subscribers(&metrics, 1).await;
    stop.send(()).unwrap();
    // Responses in progress are completed, event streams end, and new requests are refused.
    assert!(body(source).await.unwrap().len() > 1 << 20);
    assert!(body(subscriber).await.unwrap().starts_with(b"retry: "));
    task.await.unwrap();
    driver.await.unwrap();
    assert!(send(&client, request(&format!("GET {LIST}")), "").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_stalled_subscriber() {
    let (server, metrics) = server_with_metrics();
    let (stop, stopped) = oneshot::channel::<()>();
    let (stream, task) = connect(&server, async {
        let _ = stopped.await;
    });
    let (client, _driver) = client(stream, client::Builder::new().initial_window_size(0)).await;
    let _subscriber = send(&client, request("GET /api/v2/events"), "").await.unwrap();
    wait_for_subscribers(&metrics, 1).await;
    let start = Instant::now();
    stop.send(()).unwrap();
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// The connection as a whole is never blocked: small responses are sent while the client does not read the large one.
#[tokio::test(start_paused = true)]
async fn unread_response_closes_connection() {
    let server = TestServer::new();
    server.add_message(0, "large", &"x".repeat(1 << 20)).await;
    let (stream, task) = connect(&server, pending());
    let (client, _driver) = client(stream, client::Builder::new().initial_window_size(1000)).await;
    let start = Instant::now();
    let _large = send(&client, request("GET /api/v1/mailbox/large/latest/source"), "").await.unwrap();
    let mut responses = 0;
    while let Ok(response) = send(&client, request(&format!("GET {LIST}")), "").await {
        let Ok(body) = body(response).await else { break };
        assert_eq!(body, b"[]\n");
        responses += 1;
        sleep(Duration::from_secs(10)).await;
    }
    task.await.unwrap();
    assert!(responses > 4 && start.elapsed() < Duration::from_mins(2), "{responses} {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed() {
    let server = TestServer::new();
    let start = Instant::now();
    let (stream, task) = connect(&server, pending());
    let (client, driver) = client(stream, &client::Builder::new()).await;
    assert_eq!(get(&client, LIST).await.0, 200);
    driver.await.unwrap();
    task.await.unwrap();
    let time = start.elapsed();
    assert!(time > Duration::from_secs(30) && time < Duration::from_mins(1), "{time:?}");

    let (_silent, task) = connect(&server, pending());
    let start = Instant::now();
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn subscriber_is_not_idle() {
    let server = TestServer::new();
    let client = open(&server).await;
    let mut subscriber = send(&client, request("GET /api/v2/events"), "").await.unwrap().into_body();
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(10) {
        let chunk = subscriber.data().await.unwrap().unwrap();
        subscriber.flow_control().release_capacity(chunk.len()).unwrap();
    }
    assert_eq!(get(&client, LIST).await.0, 200);
}

#[tokio::test]
async fn too_large_header_is_refused() {
    let server = TestServer::new();
    let client = open(&server).await;
    let mut large = request(&format!("GET {LIST}"));
    large.headers_mut().insert("x-large", "x".repeat(40_000).parse().unwrap());
    assert_eq!(send(&client, large, "").await.unwrap().status(), 431);
    assert_eq!(get(&client, LIST).await.0, 200);
}

#[tokio::test]
async fn invalid_http2_is_refused() {
    let server = TestServer::new();
    for garbage in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\0\0\0\0\r\n\r\n", ""] {
        let (mut stream, task) = connect(&server, pending());
        stream.write_all(garbage.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        task.await.unwrap();
    }
}

/// Returns an HTTP/2 frame: length, type, flags, stream and payload (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Requests that are reset immediately after they are sent (CVE-2023-44487).
#[tokio::test]
async fn rapid_reset_closes_connection() {
    // GET, https, / and localhost. All but the last are in the static table (RFC 7541 appendix A).
    const GET: &[u8] = b"\x82\x87\x84\x41\x09localhost";
    let server = TestServer::new();
    let (mut attacker, task) = connect(&server, pending());
    let mut flood = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    for stream in (1..20_000).step_by(2) {
        flood.extend(frame(1, 0x05, stream, GET));
        flood.extend(frame(3, 0, stream, &u32::from(Reason::CANCEL).to_be_bytes()));
    }
    // The server may close the connection during the write.
    let _ = attacker.write_all(&flood).await;
    let mut received = Vec::new();
    let _ = attacker.read_to_end(&mut received).await;
    task.await.unwrap();
    let enhance_your_calm = u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes();
    assert!(
        received.windows(4).any(|window| window == enhance_your_calm),
        "the client was not disconnected: {received:?}"
    );
    assert_eq!(get(&open(&server).await, LIST).await.0, 200);
}
