//! The service on a connection: the bytes on the wire, keep-alive, limits, and shutdown.

use std::future::pending;
use std::time::Duration;

use restante_net::{ShutdownTrigger, TooMany};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{ConnectionGuard, Version, refuse_connection, refuse_plaintext, serve_connection};

const GET: &str = "GET /api/v1/mailbox/test HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Opens a connection to a server that shuts down when `end` is ready.
fn connect(server: &TestServer, end: impl Future<Output = ()> + Send + 'static) -> (DuplexStream, JoinHandle<()>) {
    let (client, stream) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    tokio::spawn(async move {
        end.await;
        trigger.trigger_and_wait(Duration::MAX).await
    });
    let guard = ConnectionGuard::new(None, shutdown);
    (client, tokio::spawn(serve_connection(stream, Peer::default(), Version::Http1, server.router.clone(), guard)))
}

/// Sends the complete request, then reads until the server closes the connection.
async fn send_and_read_all(server: &TestServer, request: &str) -> String {
    let (mut client, task) = connect(server, pending());
    client.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    client.read_to_end(&mut response).await.unwrap();
    task.await.unwrap();
    String::from_utf8(response).unwrap()
}

/// Returns the response without its date.
fn undated(response: &str) -> String {
    response.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}

#[tokio::test]
async fn several_requests_on_one_connection() {
    let server = TestServer::new();
    let request = format!("{GET}{GET}HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let response = send_and_read_all(&server, &request).await;
    assert_eq!(response.matches("HTTP/1.1 200 OK\r\n").count(), 3);
    assert_eq!(response.matches("\r\n\r\n[]\n").count(), 2);
    assert!(response.ends_with("\r\n\r\n"), "{response}");
}

#[tokio::test]
async fn not_modified_has_no_length() {
    let server = TestServer::new();
    let request = GET.replace("\r\n\r\n", "\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n");
    let response = undated(&send_and_read_all(&server, &request).await);
    assert!(response.starts_with("HTTP/1.1 304 Not Modified\r\n"), "{response}");
    assert!(!response.contains("content-length") && !response.contains("transfer-encoding"), "{response}");
}

#[tokio::test]
async fn http_1_0_and_raw_names() {
    let server = TestServer::new();
    server.add_message(0, "jöran", "\r\n").await;
    let old = send_and_read_all(&server, "GET /api/v1/mailbox/j\u{f6}ran HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200 OK\r\n") && old.contains("\"mailbox\":\"jöran\""), "{old}");
    let without_host = send_and_read_all(&server, "GET /api/v1/mailbox/test HTTP/1.0\r\n\r\n").await;
    assert!(without_host.starts_with("HTTP/1.0 200 OK\r\n"), "{without_host}");
    let named = send_and_read_all(&server, "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n").await;
    assert!(named.starts_with("HTTP/1.0 421 "), "{named}");
    let newer = send_and_read_all(&server, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(newer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{newer}");
}

#[tokio::test]
async fn repeated_slashes_and_dot_segments() {
    let server = TestServer::with_two_messages().await;
    let send = async |request: &str| {
        send_and_read_all(&server, &format!("{request} HTTP/1.0\r\nHost: localhost\r\n\r\n")).await
    };
    // The location to which a GET is redirected.
    for (request, location) in [
        ("GET //api/v1/mailbox/test", "/api/v1/mailbox/test"),
        ("GET /api//v1/mailbox//test/latest?wait=1s", "/api/v1/mailbox/test/latest?wait=1s"),
        ("HEAD /api/v1/x/../mailbox/test", "/api/v1/mailbox/test"),
        ("GET //evil.example/", "/evil.example/"),
    ] {
        let response = send(request).await;
        assert!(response.starts_with("HTTP/1.0 301 Moved Permanently\r\n"), "{request}: {response}");
        assert!(response.contains(&format!("location: {location}\r\n")), "{request}: {response}");
    }
    // Other methods are not redirected.
    let marked = send("PATCH //api/v1/mailbox/./test/latest").await;
    assert!(marked.starts_with("HTTP/1.0 200 OK\r\n"), "{marked}");
    let purged = send("DELETE /api/v1//mailbox//test").await;
    assert!(purged.starts_with("HTTP/1.0 200 OK\r\n"), "{purged}");
    assert!(server.request("GET /api/v1/mailbox/test").await.numbers().is_empty());
}

#[tokio::test]
async fn invalid_http_is_refused() {
    let server = TestServer::new();
    for garbage in ["EHLO localhost\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET / HTTP/1.1\r\nNo Colon\r\n\r\n"] {
        let response = send_and_read_all(&server, garbage).await;
        assert!(response.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{garbage:?} {response}");
    }
    let endless = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(100_000));
    let response = send_and_read_all(&server, &endless).await;
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[tokio::test]
async fn targets_without_path() {
    let server = TestServer::new();
    for target in ["OPTIONS *", "CONNECT localhost:25", "GET http://localhost", "GET http://localhost?x"] {
        let response =
            send_and_read_all(&server, &format!("{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
                .await;
        let status = response.split(' ').nth(1).unwrap_or_default();
        assert!(["200", "404"].contains(&status), "{target}: {response}");
    }
}

#[tokio::test]
async fn endless_body_is_refused() {
    let server = TestServer::with_two_messages().await;
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let response = send_and_read_all(&server, &format!("{head}{}", chunk.repeat(4))).await;
    assert!(response.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{response}");
    let broken = send_and_read_all(&server, &format!("{head}no number\r\n")).await;
    assert!(broken.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{broken}");
    assert_eq!(server.request("GET /api/v1/mailbox/test/latest").await.json()["seen"], false);
}

#[tokio::test(start_paused = true)]
async fn slow_requests_time_out() {
    let server = TestServer::with_two_messages().await;
    let (mut client, task) = connect(&server, pending());
    let start = Instant::now();
    let drip = tokio::spawn(async move {
        for byte in GET.bytes().cycle().filter(|&byte| byte != b'\n') {
            if client.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
    });
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
    drip.await.unwrap();

    let start = Instant::now();
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";
    let response = send_and_read_all(&server, head).await;
    assert!(response.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{response}");
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn shutdown_ends_an_idle_connection() {
    let server = TestServer::new();
    let (stop, stopped) = oneshot::channel::<()>();
    let (mut client, task) = connect(&server, async {
        let _ = stopped.await;
    });
    client.write_all(GET.as_bytes()).await.unwrap();
    let mut first = [0; 4];
    client.read_exact(&mut first).await.unwrap();
    stop.send(()).unwrap();
    task.await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("\r\n\r\n[]\n"), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_disconnected() {
    let server = TestServer::new();
    server.add_message(0, "test", &"x".repeat(1 << 21)).await;
    let (mut client, task) = connect(&server, pending());
    client.write_all(GET.replace("/test", "/test/latest/source").as_bytes()).await.unwrap();
    let start = Instant::now();
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_too_slowly_is_disconnected() {
    let server = TestServer::new();
    server.add_message(0, "test", &"x".repeat(1 << 24)).await;
    let (mut client, task) = connect(&server, pending());
    client.write_all(GET.replace("/test", "/test/latest/source").as_bytes()).await.unwrap();
    let start = Instant::now();
    let trickle = tokio::spawn(async move {
        let mut buffer = [0; 6000];
        while client.read_exact(&mut buffer).await.is_ok() {
            sleep(Duration::from_secs(20)).await;
        }
    });
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
    trickle.abort();
}

/// The clock is paused while there is work, so slow machines do not matter.
#[tokio::test(start_paused = true)]
async fn half_closed_client_gets_complete_response() {
    let server = TestServer::new();
    server.add_message(0, "test", &"x".repeat(8 << 20)).await;
    for target in ["/test", "/test/latest", "/test/latest/source"] {
        let expected = server.request(&format!("GET /api/v1/mailbox{target}")).await.body;
        let (mut client, task) = connect(&server, pending());
        client.write_all(GET.replace("/test", target).as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.unwrap();
        assert!(
            response.starts_with(b"HTTP/1.1 200 OK\r\n") && response.ends_with(&expected),
            "{target}: {}",
            response.len()
        );
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn too_long_announced_body_is_drained_briefly() {
    let server = TestServer::with_two_messages().await;
    let start = Instant::now();
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
    let response = send_and_read_all(&server, head).await;
    assert!(response.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{response}");
    // A client that sends the complete body reads the response only after that.
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

/// A client sees the refusal even if its request, which is not read, arrives before it reads.
#[tokio::test]
async fn refused_connection_gets_problem_document() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.write_all(GET.as_bytes()).await.unwrap();
    let task = tokio::spawn(refuse_connection(listener.accept().await.unwrap().0, TooMany::InTotal));
    // The refusal has arrived.
    client.peek(&mut [0]).await.unwrap();
    // The server may have closed the connection: its timeout is short.
    let _ = client.write_all(GET.as_bytes()).await;
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n") && !head.contains("  "), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["status"], &body["title"]), (&503.into(), &"Service Unavailable".into()));
    drop(client);
    task.await.unwrap();
}

#[tokio::test]
async fn plaintext_client_is_pointed_to_https() {
    let (mut client, stream) = duplex(1 << 16);
    client.write_all(GET.as_bytes()).await.unwrap();
    let task = tokio::spawn(refuse_plaintext(stream));
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n") && head.contains("text/plain"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    assert!(body.contains("https://"), "{body}");
    drop(client);
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refusal_times_out() {
    let (mut client, stream) = duplex(1 << 16);
    let task = tokio::spawn(refuse_connection(stream, TooMany::FromClient));
    let start = Instant::now();
    while client.write_all(b"x").await.is_ok() {
        sleep(Duration::from_millis(100)).await;
    }
    task.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
