//! Requests of web pages of other origins that the operator allows.

use restante_settings::AllowList;

use super::*;

const APP: &str = "https://app.example:8443";
const LIST: &str = "/api/v1/mailbox/test";

fn server(cors: Option<AllowList>) -> TestServer {
    TestServer::with(Settings { cors, base_path: "/mail".to_owned(), ..Settings::default() })
}

fn only_app() -> TestServer {
    server(Some(AllowList::Only(vec![APP.to_owned()])))
}

/// Returns the preflight request of a browser for a DELETE from a page of this origin.
fn preflight(path: &str, origin: &str) -> String {
    format!("OPTIONS {path}\nOrigin: {origin}\nAccess-Control-Request-Method: DELETE")
}

#[tokio::test]
async fn preflight_is_answered_for_allowed_origin() {
    let server = only_app();
    for path in [LIST, "/mail/api/v2/mailboxes", "/api/v9/nothing"] {
        let response = server.request(&preflight(path, APP)).await;
        assert_eq!(response.status, 204, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), APP);
        assert_eq!(response.header("access-control-allow-methods"), "GET, HEAD, POST, PUT, PATCH, DELETE");
        let headers = "Authorization, Content-Type, Last-Event-ID, If-None-Match";
        assert_eq!(response.header("access-control-allow-headers"), headers);
        assert_eq!(response.header("access-control-max-age"), "7200");
        assert_eq!(response.header("vary"), "Origin");
        assert_eq!(response.header("access-control-allow-credentials"), "");
        assert!(response.body.is_empty());
    }
}

#[tokio::test]
async fn other_origins_get_no_cors_headers() {
    let off = server(None);
    let only_app = only_app();
    let table = [
        ("CORS is off", &off, LIST, APP, "localhost:9000"),
        ("another origin", &only_app, LIST, "https://evil.example", "localhost:9000"),
        ("another port", &only_app, LIST, "https://app.example", "localhost:9000"),
        ("another scheme", &only_app, LIST, "http://app.example:8443", "localhost:9000"),
        ("no origin", &only_app, LIST, "null", "localhost:9000"),
        ("DNS rebinding", &only_app, LIST, APP, "evil.example"),
        ("not the API", &only_app, "/serve/status", APP, "localhost:9000"),
        ("a page", &only_app, "/m/api/", APP, "localhost:9000"),
    ];
    for (name, server, path, origin, host) in table {
        for request in [preflight(path, origin), format!("GET {path}\nOrigin: {origin}")] {
            let response = server.request(&format!("{request}\nHost: {host}")).await;
            assert_eq!(response.header("access-control-allow-origin"), "", "{name}");
        }
        let response = server.request(&format!("DELETE {path}\nOrigin: {origin}\nHost: {host}")).await;
        assert!(response.status.is_client_error(), "{name}: {}", response.status);
    }
}

#[tokio::test]
async fn listed_origin_reads_and_writes() {
    let server = only_app();
    server.add_message(0, "test", "\r\n").await;
    for fetch_site in ["", "\nSec-Fetch-Site: cross-site", "\nSec-Fetch-Site: same-site"] {
        let read = server.request(&format!("GET {LIST}\nOrigin: {APP}{fetch_site}")).await;
        assert_eq!((read.status.as_u16(), read.header("access-control-allow-origin")), (200, APP));
        assert_eq!(read.header("access-control-expose-headers"), "ETag, Location, Retry-After");
        assert!(read.headers.get_all("vary").iter().any(|value| value == "Origin"));
        let missing = server.request(&format!("GET {LIST}/1\nOrigin: {APP}{fetch_site}")).await;
        assert_eq!(missing.header("access-control-allow-origin"), APP, "a page may read errors");
        missing.problem(404);
        let written = server.request(&format!("DELETE {LIST}\nOrigin: {APP}{fetch_site}")).await;
        assert_eq!((written.status.as_u16(), written.header("access-control-allow-origin")), (200, APP));
    }
}

#[tokio::test]
async fn responses_vary_by_origin() {
    assert_eq!(only_app().request(&format!("GET {LIST}")).await.header("vary"), "Origin");
    assert_eq!(server(None).request(&format!("GET {LIST}")).await.header("vary"), "");
}

#[tokio::test]
async fn live_events_are_shared() {
    let request = |origin: &str| {
        let request = Request::get("/api/v2/events").header("Host", "localhost").header("Origin", origin);
        request.body(Body::empty()).unwrap()
    };
    let server = only_app();
    let response = server.router.clone().oneshot(request(APP)).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["access-control-allow-origin"]),
        (200, &APP.parse().unwrap())
    );
    assert_eq!(server.router.clone().oneshot(request("https://evil.example")).await.unwrap().status(), 403);
    // Without a connection the handshake cannot be completed, so an accepted origin gets 426.
    let socket = |origin| {
        format!(
            "GET /api/v2/monitor/messages\nOrigin: {origin}\nConnection: Upgrade\nUpgrade: websocket\n\
             Sec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
        )
    };
    server.request(&socket(APP)).await.problem(426);
    server.request(&socket("https://evil.example")).await.problem(403);
}

#[tokio::test]
async fn any_origin_is_allowed() {
    let server = server(Some(AllowList::Any));
    for origin in ["https://anybody.example", "null"] {
        assert_eq!(server.request(&preflight(LIST, origin)).await.header("access-control-allow-origin"), origin);
        assert_eq!(server.request(&format!("DELETE {LIST}\nOrigin: {origin}")).await.status, 200);
    }
    let twice = format!("DELETE {LIST}\nOrigin: https://a.example\nOrigin: https://b.example");
    server.request(&twice).await.problem(403);
}

/// Checks which cookies of a browser reach the handlers.
#[tokio::test]
async fn cookies_of_other_origins_are_removed() {
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use restante_http_core::credentials::Credentials;

    use crate::middleware::Mount;
    use crate::middleware::cors::apply_cors;

    let settings = Settings { cors: Some(AllowList::Any), ..Settings::default() };
    let mailroom = Mailroom::new(
        restante_mailroom::Settings::default(),
        Arc::new(MemoryStore::new(Limits::default())),
        Extensions::default(),
    );
    let server = Arc::new(Server::new(Arc::new(mailroom), settings));
    let mount = Arc::new(Mount {
        server,
        prefix: String::new(),
        has_login_page: true,
        credentials: |_, request| Credentials::from_headers(request),
        error_form: |_, response| response,
    });
    let cookies = async |headers: HeaderMap| {
        headers.get("cookie").map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    let router = Router::new().route("/api/x", post(cookies)).layer(from_fn_with_state(mount, apply_cors));
    for (origin, seen) in [("http://localhost:9000", "session=1"), ("http://localhost:3000", ""), (APP, "")] {
        let request = format!("POST /api/x\nCookie: session=1\nOrigin: {origin}");
        assert_eq!(send_request(&router, &request, Body::empty(), Peer::default()).await.text(), seen, "{origin}");
    }
    let program = send_request(&router, "POST /api/x\nCookie: session=1", Body::empty(), Peer::default()).await;
    assert_eq!(program.text(), "session=1");
}
