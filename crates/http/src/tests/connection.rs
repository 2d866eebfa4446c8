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
fn connect(house: &TestServer, end: impl Future<Output = ()> + Send + 'static) -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(1 << 20);
    let (trigger, shutdown) = ShutdownTrigger::new();
    tokio::spawn(async move {
        end.await;
        trigger.trigger_and_wait(Duration::MAX).await
    });
    let tenure = ConnectionGuard::new(None, shutdown);
    (client, tokio::spawn(serve_connection(server, Peer::default(), Version::Http1, house.router.clone(), tenure)))
}

/// Sends the complete request, then reads until the server closes the connection.
async fn converse(house: &TestServer, request: &str) -> String {
    let (mut client, server) = connect(house, pending());
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    server.await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Returns the response without its date.
fn undated(answer: &str) -> String {
    answer.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}

#[tokio::test]
async fn several_requests_on_one_connection() {
    let house = TestServer::new();
    let request = format!("{GET}{GET}HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = converse(&house, &request).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 3);
    assert_eq!(answer.matches("\r\n\r\n[]\n").count(), 2);
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn an_unmodified_answer_has_no_length() {
    let house = TestServer::new();
    let request = GET.replace("\r\n\r\n", "\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n");
    let answer = undated(&converse(&house, &request).await);
    assert!(answer.starts_with("HTTP/1.1 304 Not Modified\r\n"), "{answer}");
    assert!(!answer.contains("content-length") && !answer.contains("transfer-encoding"), "{answer}");
}

#[tokio::test]
async fn old_clients_and_raw_names() {
    let house = TestServer::new();
    house.put(0, "jöran", "\r\n").await;
    let old = converse(&house, "GET /api/v1/mailbox/j\u{f6}ran HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200 OK\r\n") && old.contains("\"mailbox\":\"jöran\""), "{old}");
    let nameless = converse(&house, "GET /api/v1/mailbox/test HTTP/1.0\r\n\r\n").await;
    assert!(nameless.starts_with("HTTP/1.0 200 OK\r\n"), "{nameless}");
    let named = converse(&house, "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n").await;
    assert!(named.starts_with("HTTP/1.0 421 "), "{named}");
    let newer = converse(&house, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(newer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{newer}");
}

#[tokio::test]
async fn repeated_slashes_and_dot_segments() {
    let house = TestServer::with_two_messages().await;
    let send = async |request: &str| converse(&house, &format!("{request} HTTP/1.0\r\nHost: localhost\r\n\r\n")).await;
    // The location to which a GET is redirected.
    for (request, location) in [
        ("GET //api/v1/mailbox/test", "/api/v1/mailbox/test"),
        ("GET /api//v1/mailbox//test/latest?wait=1s", "/api/v1/mailbox/test/latest?wait=1s"),
        ("HEAD /api/v1/x/../mailbox/test", "/api/v1/mailbox/test"),
        ("GET //evil.example/", "/evil.example/"),
    ] {
        let answer = send(request).await;
        assert!(answer.starts_with("HTTP/1.0 301 Moved Permanently\r\n"), "{request}: {answer}");
        assert!(answer.contains(&format!("location: {location}\r\n")), "{request}: {answer}");
    }
    // Other methods are not redirected.
    let marked = send("PATCH //api/v1/mailbox/./test/latest").await;
    assert!(marked.starts_with("HTTP/1.0 200 OK\r\n"), "{marked}");
    let purged = send("DELETE /api/v1//mailbox//test").await;
    assert!(purged.starts_with("HTTP/1.0 200 OK\r\n"), "{purged}");
    assert!(house.request("GET /api/v1/mailbox/test").await.numbers().is_empty());
}

#[tokio::test]
async fn what_is_no_http() {
    let house = TestServer::new();
    for garbage in ["EHLO localhost\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET / HTTP/1.1\r\nNo Colon\r\n\r\n"] {
        let answer = converse(&house, garbage).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{garbage:?} {answer}");
    }
    let endless = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(100_000));
    let answer = converse(&house, &endless).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn targets_that_are_no_path() {
    let house = TestServer::new();
    for target in ["OPTIONS *", "CONNECT localhost:25", "GET http://localhost", "GET http://localhost?x"] {
        let answer =
            converse(&house, &format!("{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(["200", "404"].contains(&status), "{target}: {answer}");
    }
}

#[tokio::test]
async fn an_endless_body() {
    let house = TestServer::with_two_messages().await;
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let answer = converse(&house, &format!("{head}{}", chunk.repeat(4))).await;
    assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{answer}");
    let broken = converse(&house, &format!("{head}no number\r\n")).await;
    assert!(broken.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{broken}");
    assert_eq!(house.request("GET /api/v1/mailbox/test/latest").await.json()["seen"], false);
}

#[tokio::test(start_paused = true)]
async fn slow_loris() {
    let house = TestServer::with_two_messages().await;
    let (mut client, server) = connect(&house, pending());
    let start = Instant::now();
    let drip = tokio::spawn(async move {
        for byte in GET.bytes().cycle().filter(|&byte| byte != b'\n') {
            if client.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
    });
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
    drip.await.unwrap();

    let start = Instant::now();
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";
    let answer = converse(&house, head).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn shutdown_ends_an_idle_connection() {
    let house = TestServer::new();
    let (stop, stopped) = oneshot::channel::<()>();
    let (mut client, server) = connect(&house, async {
        let _ = stopped.await;
    });
    client.write_all(GET.as_bytes()).await.unwrap();
    let mut first = [0; 4];
    client.read_exact(&mut first).await.unwrap();
    stop.send(()).unwrap();
    server.await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("\r\n\r\n[]\n"), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_and_does_not_read() {
    let house = TestServer::new();
    house.put(0, "test", &"x".repeat(1 << 21)).await;
    let (mut client, server) = connect(&house, pending());
    client.write_all(GET.replace("/test", "/test/latest/source").as_bytes()).await.unwrap();
    let start = Instant::now();
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_a_trickle() {
    let house = TestServer::new();
    house.put(0, "test", &"x".repeat(1 << 24)).await;
    let (mut client, server) = connect(&house, pending());
    client.write_all(GET.replace("/test", "/test/latest/source").as_bytes()).await.unwrap();
    let start = Instant::now();
    let trickle = tokio::spawn(async move {
        let mut little = [0; 6000];
        while client.read_exact(&mut little).await.is_ok() {
            sleep(Duration::from_secs(20)).await;
        }
    });
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
    trickle.abort();
}

/// The clock is paused while there is work, so slow machines do not matter.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_said_its_last_word() {
    let house = TestServer::new();
    house.put(0, "test", &"x".repeat(8 << 20)).await;
    for target in ["/test", "/test/latest", "/test/latest/source"] {
        let expected = house.request(&format!("GET /api/v1/mailbox{target}")).await.body;
        let (mut client, server) = connect(&house, pending());
        client.write_all(GET.replace("/test", target).as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(&expected),
            "{target}: {}",
            answer.len()
        );
        server.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_announced_too_long_is_waited_for_a_moment_only() {
    let house = TestServer::with_two_messages().await;
    let start = Instant::now();
    let head = "PATCH /api/v1/mailbox/test/latest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
    let answer = converse(&house, head).await;
    assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{answer}");
    // A client that sends the complete body reads the response only after that.
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

/// A client sees the refusal even if its request, which is not read, arrives before it reads.
#[tokio::test]
async fn one_connection_too_many() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.write_all(GET.as_bytes()).await.unwrap();
    let server = tokio::spawn(refuse_connection(listener.accept().await.unwrap().0, TooMany::InTotal));
    // The refusal has arrived.
    client.peek(&mut [0]).await.unwrap();
    // The server may have closed the connection: its timeout is short.
    let _ = client.write_all(GET.as_bytes()).await;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n") && !head.contains("  "), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["status"], &body["title"]), (&503.into(), &"Service Unavailable".into()));
    drop(client);
    server.await.unwrap();
}

#[tokio::test]
async fn a_client_without_tls_where_there_must_be_some() {
    let (mut client, server) = duplex(1 << 16);
    client.write_all(GET.as_bytes()).await.unwrap();
    let server = tokio::spawn(refuse_plaintext(server));
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n") && head.contains("text/plain"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    assert!(body.contains("https://"), "{body}");
    drop(client);
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_leave_is_left() {
    let (mut client, server) = duplex(1 << 16);
    let server = tokio::spawn(refuse_connection(server, TooMany::FromPeer));
    let start = Instant::now();
    while client.write_all(b"x").await.is_ok() {
        sleep(Duration::from_millis(100)).await;
    }
    server.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
