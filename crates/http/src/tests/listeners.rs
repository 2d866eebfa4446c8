//! Listeners with other APIs than the main ones, and APIs below a prefix.

use restante_http_core::server::Server;
use restante_settings::{AllowList, ApiMount};

use super::*;
use crate::tests::support::auth_server::AuthServer;

/// Returns the service of a main listener and of a separate one.
fn routers(settings: Settings, mounts: &[&str]) -> (Router, Router) {
    let mounts: Vec<ApiMount> = mounts.iter().map(|mount| mount.parse().unwrap()).collect();
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
    let server = Arc::new(Server::new(Arc::new(mailroom), settings));
    let service = Service::with_server(server, ServerInfo::default());
    let separate = mounts.iter().filter(|mount| mount.addr.is_some());
    (service.router(&ListenerApis::main(&mounts)), service.router(&ListenerApis::separate(separate)))
}

async fn get(router: &Router, path: &str) -> TestResponse {
    send_request(router, &format!("GET {path}"), Body::empty(), Peer::default()).await
}

#[tokio::test]
async fn separate_listener_has_only_its_apis() {
    let (main, separate) = routers(Settings::default(), &["localhost:8025 mailpit"]);
    let table = [
        ("/api/v1/info", 200, 200),
        ("/api/v2/messages", 200, 404),
        ("/api/v1/mailbox/test", 200, 404),
        ("/", 200, 404),
        ("/livez", 200, 404),
    ];
    for (path, on_main, on_separate) in table {
        assert_eq!(get(&main, path).await.status, on_main, "{path}");
        assert_eq!(get(&separate, path).await.status, on_separate, "{path}");
    }
    assert_eq!(get(&separate, "/x").await.text(), "404 page not found", "as the API reports it");
}

/// The path of SES version 1 is that of the page.
#[tokio::test]
async fn optional_paths_are_served_where_no_other_api_has_them() {
    let mounts = ["localhost:8025 providers"];
    let (main, separate) = routers(Settings { max_message_bytes: 10_000, ..Settings::default() }, &mounts);
    for (router, path, expected) in
        [(&main, "/", 405), (&main, "/ses", 200), (&separate, "/", 200), (&separate, "/ses", 200)]
    {
        let body = Body::from("Action=GetSendQuota&Version=2010-12-01");
        let response = send_request(router, &format!("POST {path}"), body, Peer::default()).await;
        assert_eq!(response.status, expected, "{path} {}", response.text());
    }
}

#[tokio::test]
async fn separate_listener_has_the_description_of_the_api_but_no_page() {
    let (_, separate) = routers(Settings::default(), &["localhost:9100 rest"]);
    assert_eq!(get(&separate, "/api/openapi.json").await.status, 200);
    assert_eq!(get(&separate, "/api/docs").await.status, 404);
}

#[tokio::test]
async fn listeners_share_the_messages() {
    let (main, separate) = routers(Settings { max_message_bytes: 10_000, ..Settings::default() }, &[":8025 mailpit"]);
    let body = r#"{"From": {"Email": "a@example.org"}, "To": [{"Email": "b@example.org"}], "Text": "x"}"#;
    let sent = send_request(&separate, "POST /api/v1/send", Body::from(body), Peer::default()).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert_eq!(get(&main, "/api/v1/mailbox/b").await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn api_below_a_prefix() {
    for base in ["", "/mail"] {
        let settings = Settings { base_path: base.to_owned(), ..Settings::default() };
        let (main, separate) = routers(settings, &["/old/pit mailpit", "localhost:8025 /pit mailpit operations"]);
        for path in
            ["/old/pit/api/v1/info".to_owned(), "/api/v1/info".to_owned(), format!("{base}/old/pit/api/v1/info")]
        {
            assert_eq!(get(&main, &path).await.status, 200, "{path}");
        }
        assert_eq!(get(&main, "/old/pit/api/v2/messages").await.status, 404);
        for (path, status) in [("/pit/api/v1/info", 200), ("/pit/livez", 200), ("/livez", 404), ("/pit/x/livez", 404)] {
            assert_eq!(get(&separate, path).await.status, status, "{path}");
        }
        assert_eq!(get(&separate, &format!("{base}/pit/livez")).await.status, 200, "{base}");
    }
}

/// A refusal has the form of the API that was called.
#[tokio::test]
async fn refusals_have_the_form_of_the_api() {
    let server = AuthServer::new().await;
    let table = [
        ("GET /api/v1/info", 401, "text/plain"),
        ("GET /api/v2/messages", 401, "application/problem+json"),
        ("GET /api/v1/info\nHost: evil.example", 421, "text/plain"),
        ("GET /api/v1/mailbox/test\nHost: evil.example", 421, "application/problem+json"),
        ("PROPFIND /api/v1/info\nAuthorization: Bearer x", 401, "text/plain"),
    ];
    for (request, status, content_type) in table {
        let response = server.server.request(request).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (status, content_type), "{request}");
        assert_eq!(response.header("www-authenticate").is_empty(), status != 401, "{request}");
    }
}

/// The checks of hosts and origins apply to every listener.
#[tokio::test]
async fn separate_listener_checks_requests() {
    let settings =
        Settings { cors: Some(AllowList::Only(vec!["https://app.example".to_owned()])), ..Settings::default() };
    let (_, separate) = routers(settings, &["localhost:8025 mailpit"]);
    for (headers, status) in [
        ("Host: localhost", 200),
        ("Host: evil.example", 421),
        ("Host: localhost\nOrigin: https://evil.example", 403),
        ("Host: localhost\nOrigin: https://app.example", 200),
    ] {
        let request = format!("GET /api/v1/info\n{headers}");
        let response = send_request(&separate, &request, Body::empty(), Peer::default()).await;
        assert_eq!(response.status, status, "{headers}");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
    }
}

/// Only the main listener has the login page. A redirect to it would lead back to itself on other listeners.
#[tokio::test]
async fn browsers_are_redirected_to_the_login_page_only_where_it_is() {
    let auth = AuthServer::new().await;
    let mount: ApiMount = "localhost:8025 mailpit".parse().unwrap();
    let separate = auth.service().router(&ListenerApis::separate([&mount]));
    let request = "GET /view/latest.html\nAccept: text/html\nUser-Agent: Mozilla/5.0";
    assert_eq!(auth.server.request(request).await.status, 303);
    let refused = send_request(&separate, request, Body::empty(), Peer::default()).await;
    assert_eq!((refused.status.as_u16(), refused.header("content-type")), (401, "text/plain"));
    let unknown = request.replace("/view/latest.html", "/");
    assert_eq!(send_request(&separate, &unknown, Body::empty(), Peer::default()).await.status, 401);
}
