//! The limit on open requests of a client behind a proxy.

use restante_metrics::{Metrics, Protocol};
use restante_net::ClientLimits;

use super::*;

const LIST: &str = "GET /api/v1/mailbox/test";

/// Creates a server behind the proxies of 10.0.0.0/8 with this limit on open requests per client.
pub(super) fn house(limit: Option<usize>) -> TestServer {
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
pub(super) async fn begin(house: &TestServer, peer: Peer, client: &str) -> axum::response::Response {
    let request = Request::get("/api/v1/mailbox/test").header("Host", "localhost").header("X-Forwarded-For", client);
    house.router.clone().oneshot(request.extension(peer).body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_request_is_open_until_its_answer_has_ended() {
    let house = house(Some(2));
    let proxy = peer("10.0.0.1");
    let asking = format!("{LIST}\nX-Forwarded-For: 192.0.2.1");
    let (first, _second) = (begin(&house, proxy, "192.0.2.1").await, begin(&house, proxy, "192.0.2.1").await);
    let third = house.request_with(&asking, Body::empty(), proxy).await;
    assert_eq!(third.problem(429), "This client has too many connections or requests open.");
    assert_eq!(third.header("retry-after"), "1");
    // The client is the same through another proxy, and other clients of the same proxy are not limited.
    assert_eq!(house.request_with(&asking, Body::empty(), peer("10.0.0.2")).await.status, 429);
    assert_eq!(begin(&house, proxy, "192.0.2.2").await.status(), 200);
    assert_eq!(to_bytes(first.into_body(), usize::MAX).await.unwrap(), "[]\n");
    assert_eq!(house.request_with(&asking, Body::empty(), proxy).await.status, 200);
}

/// A proxy may name the client in the PROXY header, in the request header, or in both.
#[tokio::test]
async fn a_client_that_is_named_twice_is_one() {
    let proxy = Peer { ip: "192.0.2.1".parse().ok(), ..peer("10.0.0.1") };
    for client in ["192.0.2.1", "", "10.0.0.2"] {
        let house = house(Some(1));
        let _open = begin(&house, proxy, client).await;
        assert_eq!(begin(&house, proxy, client).await.status(), 429, "{client:?}");
        assert_eq!(begin(&house, proxy, "192.0.2.2").await.status(), 200);
    }
}

#[tokio::test]
async fn a_request_too_many_is_counted() {
    let metrics = Arc::new(Metrics::default());
    let house = TestServer::with(Settings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        clients: Arc::new(ClientLimits::new(Some(1))),
        metrics: metrics.clone(),
        ..Settings::default()
    });
    let _open = begin(&house, peer("10.0.0.1"), "192.0.2.1").await;
    for _ in 0..3 {
        assert_eq!(begin(&house, peer("10.0.0.1"), "192.0.2.1").await.status(), 429);
    }
    assert_eq!(metrics.connections(Protocol::Http).refused_total(), 3);
}

#[tokio::test]
async fn requests_are_counted_only_where_a_trusted_proxy_names_a_client() {
    for (peer, client, limit) in [
        (peer("192.0.2.7"), "192.0.2.1", Some(1)),
        (Peer::default(), "192.0.2.1", Some(1)),
        (peer("10.0.0.1"), "nonsense", Some(1)),
        (peer("10.0.0.1"), "10.0.0.9", Some(1)),
        (peer("10.0.0.1"), "192.0.2.1", None),
    ] {
        let house = house(limit);
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(begin(&house, peer, client).await);
            assert_eq!(open.last().unwrap().status(), 200, "{peer:?} {client}");
        }
    }
}

#[tokio::test]
async fn an_answer_keeps_its_length_while_a_place_is_held() {
    let house = house(Some(1));
    let answer = begin(&house, peer("10.0.0.1"), "192.0.2.1").await;
    assert_eq!(http_body::Body::size_hint(answer.body()).exact(), Some(3));
}
