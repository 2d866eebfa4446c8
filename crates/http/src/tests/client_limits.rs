//! The limit on open requests of a client behind a proxy.

use restante_metrics::{Metrics, Protocol};
use restante_net::ClientLimits;

use super::*;

const LIST: &str = "GET /api/v1/mailbox/test";

/// Creates a server behind the proxies of 10.0.0.0/8 with this limit on open requests per client.
pub(super) fn server(limit: Option<usize>) -> TestServer {
    TestServer::with(Settings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        clients: Arc::new(ClientLimits::new(limit)),
        ..Settings::default()
    })
}

pub(super) fn peer(ip: &str) -> Peer {
    Some(ip.parse().unwrap()).into()
}

/// Sends a request without reading the response body.
pub(super) async fn send_unread(server: &TestServer, peer: Peer, client: &str) -> axum::response::Response {
    let request = Request::get("/api/v1/mailbox/test").header("Host", "localhost").header("X-Forwarded-For", client);
    server.router.clone().oneshot(request.extension(peer).body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn request_counts_until_response_body_ends() {
    let server = server(Some(2));
    let proxy = peer("10.0.0.1");
    let request = format!("{LIST}\nX-Forwarded-For: 192.0.2.1");
    let (first, _second) =
        (send_unread(&server, proxy, "192.0.2.1").await, send_unread(&server, proxy, "192.0.2.1").await);
    let third = server.request_with(&request, Body::empty(), proxy).await;
    assert_eq!(third.problem(429), "This client has too many connections or requests open.");
    assert_eq!(third.header("retry-after"), "1");
    // The client is the same through another proxy, and other clients of the same proxy are not limited.
    assert_eq!(server.request_with(&request, Body::empty(), peer("10.0.0.2")).await.status, 429);
    assert_eq!(send_unread(&server, proxy, "192.0.2.2").await.status(), 200);
    assert_eq!(to_bytes(first.into_body(), usize::MAX).await.unwrap(), "[]\n");
    assert_eq!(server.request_with(&request, Body::empty(), proxy).await.status, 200);
}

/// A proxy may name the client in the PROXY header, in the request header, or in both.
#[tokio::test]
async fn client_named_twice_is_counted_once() {
    let proxy = Peer { ip: "192.0.2.1".parse().ok(), ..peer("10.0.0.1") };
    for client in ["192.0.2.1", "", "10.0.0.2"] {
        let server = server(Some(1));
        let _open = send_unread(&server, proxy, client).await;
        assert_eq!(send_unread(&server, proxy, client).await.status(), 429, "{client:?}");
        assert_eq!(send_unread(&server, proxy, "192.0.2.2").await.status(), 200);
    }
}

#[tokio::test]
async fn refused_requests_are_counted() {
    let metrics = Arc::new(Metrics::default());
    let server = TestServer::with(Settings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        clients: Arc::new(ClientLimits::new(Some(1))),
        metrics: metrics.clone(),
        ..Settings::default()
    });
    let _open = send_unread(&server, peer("10.0.0.1"), "192.0.2.1").await;
    for _ in 0..3 {
        assert_eq!(send_unread(&server, peer("10.0.0.1"), "192.0.2.1").await.status(), 429);
    }
    assert_eq!(metrics.connections(Protocol::Http).refused_total(), 3);
}

#[tokio::test]
async fn limit_applies_only_to_forwarded_clients() {
    for (peer, client, limit) in [
        (peer("192.0.2.7"), "192.0.2.1", Some(1)),
        (Peer::default(), "192.0.2.1", Some(1)),
        (peer("10.0.0.1"), "nonsense", Some(1)),
        (peer("10.0.0.1"), "10.0.0.9", Some(1)),
        (peer("10.0.0.1"), "192.0.2.1", None),
    ] {
        let server = server(limit);
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(send_unread(&server, peer, client).await);
            assert_eq!(open.last().unwrap().status(), 200, "{peer:?} {client}");
        }
    }
}

#[tokio::test]
async fn response_keeps_its_length_while_slot_is_held() {
    let server = server(Some(1));
    let response = send_unread(&server, peer("10.0.0.1"), "192.0.2.1").await;
    assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(3));
}
