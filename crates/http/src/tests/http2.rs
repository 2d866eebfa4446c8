//! HTTP/2: many requests on one connection, and clients that misuse it.

use std::future::pending;
use std::sync::atomic::Ordering;
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
fn connect(house: &TestServer, end: impl Future<Output = ()> + Send + 'static) -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    tokio::spawn(async move {
        end.await;
        trigger.trigger_and_wait(Duration::MAX).await
    });
    let (peer, tenure) = (Peer { tls: true, ..Peer::default() }, ConnectionGuard::new(None, shutdown));
    (client, tokio::spawn(serve_connection(server, peer, Version::Http2, house.router.clone(), tenure)))
}

/// Performs the handshake, and drives the connection in its own task, which ends with the connection.
async fn client(stream: DuplexStream, builder: &client::Builder) -> (SendRequest<Bytes>, JoinHandle<()>) {
    let (client, connection) = builder.handshake(stream).await.unwrap();
    (client, tokio::spawn(async move { drop(connection.await) }))
}

async fn open(house: &TestServer) -> SendRequest<Bytes> {
    client(connect(house, pending()).0, &client::Builder::new()).await.0
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
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        all.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    Ok(all)
}

async fn get(client: &SendRequest<Bytes>, path: &str) -> (u16, Vec<u8>) {
    let response = send(client, request(&format!("GET {path}")), "").await.unwrap();
    (response.status().as_u16(), body(response).await.unwrap())
}

#[tokio::test]
async fn a_hundred_at_the_same_time() {
    let house = TestServer::with_two_messages().await;
    house.put(2, "test", &"x".repeat(3 << 20)).await;
    let client = open(&house).await;
    let mut asking = JoinSet::new();
    for number in 0..100 {
        let path = [LIST, "/api/v1/mailbox/test/latest/source", "/", "/api/v1/mailbox/none"][number % 4];
        let client = client.clone();
        asking.spawn(async move { (path, get(&client, path).await) });
    }
    for (path, (status, body)) in asking.join_all().await {
        let expected = house.request(&format!("GET {path}")).await;
        assert!(status == 200 && body == expected.body, "{path}: {status}, {} bytes", body.len());
    }
}

#[tokio::test]
async fn everything_else_is_as_ever() {
    let house = TestServer::with_two_messages().await;
    let client = open(&house).await;
    let marked = send(&client, request("PATCH /api/v1/mailbox/test/latest"), "{\"seen\":true}").await.unwrap();
    assert_eq!(marked.status(), 200);
    assert_eq!(house.request("GET /api/v1/mailbox/test/latest").await.json()["seen"], true);
    let length = house.request(&format!("GET {LIST}")).await.body.len();
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
async fn a_request_names_its_host_without_a_host_header() {
    let house = TestServer::new();
    let client = open(&house).await;
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
        let answer = send(&client, request, "").await.unwrap();
        assert_eq!(answer.status(), status, "{authority} {host:?}");
    }
}

#[tokio::test]
async fn links_are_for_https() {
    let house = TestServer::new();
    house.put(0, "test", "Content-Type: image/png\r\n\r\nx").await;
    let (_, body) = get(&open(&house).await, "/api/v1/mailbox/test/latest").await;
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let link = json["attachments"][0]["download-link"].as_str().unwrap();
    assert!(link.starts_with("https://localhost/mailbox/"), "{link}");
}

/// Creates a server, and returns its metrics.
fn counting() -> (TestServer, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    (TestServer::with(Settings { metrics: metrics.clone(), ..Settings::default() }), metrics)
}

async fn until_listeners(metrics: &Metrics, number: usize) {
    while metrics.monitors.streams.load(Ordering::Relaxed) != number {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_listener_that_gives_up_is_noticed() {
    let (house, metrics) = counting();
    let (stream, server) = connect(&house, pending());
    let (client, driver) = client(stream, &client::Builder::new()).await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(send(&client, request("GET /api/v2/events"), "").await.unwrap());
    }
    until_listeners(&metrics, 3).await;
    // One stream is reset; the others and the connection continue.
    drop(listeners.pop());
    until_listeners(&metrics, 2).await;
    assert_eq!(get(&client, LIST).await, (200, b"[]\n".to_vec()));
    let mut stream = listeners.remove(0).into_body();
    assert!(stream.data().await.unwrap().unwrap().starts_with(b"retry: "));
    // The connection is closed.
    driver.abort();
    until_listeners(&metrics, 0).await;
    server.await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_server() {
    let (house, metrics) = counting();
    house.put(0, "test", &"x".repeat(1 << 20)).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let (stream, server) = connect(&house, async {
        let _ = stopped.await;
    });
    let (client, driver) = client(stream, &client::Builder::new()).await;
    let listener = send(&client, request("GET /api/v2/events"), "").await.unwrap();
    let source = send(&client, request(&format!("GET {LIST}/latest/source")), "").await.unwrap();
    until_listeners(&metrics, 1).await;
    stop.send(()).unwrap();
    // Responses in progress are completed, event streams end, and new requests are refused.
    assert!(body(source).await.unwrap().len() > 1 << 20);
    assert!(body(listener).await.unwrap().starts_with(b"retry: "));
    server.await.unwrap();
    driver.await.unwrap();
    assert!(send(&client, request(&format!("GET {LIST}")), "").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn at_the_end_nobody_waits_for_a_listener_that_takes_nothing() {
    let (house, metrics) = counting();
    let (stop, stopped) = oneshot::channel::<()>();
    let (stream, server) = connect(&house, async {
        let _ = stopped.await;
    });
    let (client, _driver) = client(stream, client::Builder::new().initial_window_size(0)).await;
    let _listener = send(&client, request("GET /api/v2/events"), "").await.unwrap();
    until_listeners(&metrics, 1).await;
    let start = Instant::now();
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// The connection as a whole is never blocked: small responses are sent while the client does not read the large one.
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_one_answer() {
    let house = TestServer::new();
    house.put(0, "large", &"x".repeat(1 << 20)).await;
    let (stream, server) = connect(&house, pending());
    let (client, _driver) = client(stream, client::Builder::new().initial_window_size(1000)).await;
    let start = Instant::now();
    let _large = send(&client, request("GET /api/v1/mailbox/large/latest/source"), "").await.unwrap();
    let mut answers = 0;
    while let Ok(answer) = send(&client, request(&format!("GET {LIST}")), "").await {
        let Ok(body) = body(answer).await else { break };
        assert_eq!(body, b"[]\n");
        answers += 1;
        sleep(Duration::from_secs(10)).await;
    }
    server.await.unwrap();
    assert!(answers > 4 && start.elapsed() < Duration::from_mins(2), "{answers} {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_nothing_to_ask() {
    let house = TestServer::new();
    let start = Instant::now();
    let (stream, server) = connect(&house, pending());
    let (client, driver) = client(stream, &client::Builder::new()).await;
    assert_eq!(get(&client, LIST).await.0, 200);
    driver.await.unwrap();
    server.await.unwrap();
    let time = start.elapsed();
    assert!(time > Duration::from_secs(30) && time < Duration::from_mins(1), "{time:?}");

    let (_silent, server) = connect(&house, pending());
    let start = Instant::now();
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_is_not_idle() {
    let house = TestServer::new();
    let client = open(&house).await;
    let mut listener = send(&client, request("GET /api/v2/events"), "").await.unwrap().into_body();
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(10) {
        let piece = listener.data().await.unwrap().unwrap();
        listener.flow_control().release_capacity(piece.len()).unwrap();
    }
    assert_eq!(get(&client, LIST).await.0, 200);
}

#[tokio::test]
async fn a_header_that_is_too_large() {
    let house = TestServer::new();
    let client = open(&house).await;
    let mut large = request(&format!("GET {LIST}"));
    large.headers_mut().insert("x-large", "x".repeat(40_000).parse().unwrap());
    assert_eq!(send(&client, large, "").await.unwrap().status(), 431);
    assert_eq!(get(&client, LIST).await.0, 200);
}

#[tokio::test]
async fn what_is_no_http2() {
    let house = TestServer::new();
    for garbage in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\0\0\0\0\r\n\r\n", ""] {
        let (mut stream, server) = connect(&house, pending());
        stream.write_all(garbage.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        server.await.unwrap();
    }
}

/// Returns an HTTP/2 frame: length, type, flags, stream and payload (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Requests that are reset immediately after they are sent (CVE-2023-44487).
#[tokio::test]
async fn rapid_reset() {
    // GET, https, / and localhost. All but the last are in the static table (RFC 7541 appendix A).
    const GET: &[u8] = b"\x82\x87\x84\x41\x09localhost";
    let house = TestServer::new();
    let (mut attacker, server) = connect(&house, pending());
    let mut flood = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    for stream in (1..20_000).step_by(2) {
        flood.extend(frame(1, 0x05, stream, GET));
        flood.extend(frame(3, 0, stream, &u32::from(Reason::CANCEL).to_be_bytes()));
    }
    // The server may close the connection during the write.
    let _ = attacker.write_all(&flood).await;
    let mut heard = Vec::new();
    let _ = attacker.read_to_end(&mut heard).await;
    server.await.unwrap();
    let calm = u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes();
    assert!(heard.windows(4).any(|window| window == calm), "it was not sent away: {heard:?}");
    assert_eq!(get(&open(&house).await, LIST).await.0, 200);
}
