//! Authentication, and the requests that credentials allow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::tests::support::auth_server::AuthServer;

/// Returns the status of a request with this `Authorization`.
async fn status(auth_server: &AuthServer, request: &str, authorization: &str) -> u16 {
    auth_server.server.request(&with_authorization(request, authorization)).await.status.as_u16()
}

/// Logs in with the form, and returns the response.
async fn log_in(auth_server: &AuthServer, user: &str, password: &str, next: &str) -> TestResponse {
    let form = format!("user={user}&password={password}&next={next}");
    let request = "POST /login\nContent-Type: application/x-www-form-urlencoded\nOrigin: http://localhost:9000";
    auth_server.server.request_with(request, form, Peer::default()).await
}

fn with_authorization(request: &str, authorization: &str) -> String {
    if authorization.is_empty() { request.to_owned() } else { format!("{request}\nAuthorization: {authorization}") }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn cookie(response: &TestResponse) -> String {
    response.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn requests_require_matching_grant() {
    let auth_server = AuthServer::new().await;
    let bearer = |token: &str| format!("Bearer {token}");
    let columns = [
        String::new(),
        basic("ann", "secret"),
        bearer(&auth_server.reader),
        bearer(&auth_server.writer),
        bearer(&auth_server.admin),
        bearer(&auth_server.limited),
    ];
    #[rustfmt::skip] // One row per request: no credentials, a user, and tokens to read, to write, to administer, and for ci-* only.
    let table: &[(&str, [u16; 6])] = &[
        ("GET /livez",                                [200, 200, 200, 200, 200, 200]),
        ("GET /readyz",                               [200, 200, 200, 200, 200, 200]),
        ("GET /login",                                [200, 200, 200, 200, 200, 200]),
        ("GET /favicon.ico",                          [200, 200, 200, 200, 200, 200]),
        ("GET /robots.txt",                           [200, 200, 200, 200, 200, 200]),
        ("GET /",                                     [401, 200, 200, 200, 200, 200]),
        ("GET /m/test",                               [401, 200, 200, 200, 200, 200]),
        ("GET /api/v2/server",                        [401, 200, 200, 200, 200, 200]),
        ("GET /serve/greeting",                       [401, 200, 200, 200, 200, 200]),
        ("GET /nothing",                              [401, 404, 404, 404, 404, 404]),
        ("GET /api/v1/mailbox/test",                  [401, 200, 200, 403, 403, 403]),
        ("GET /api/v1/mailbox/ci-1",                  [401, 200, 200, 403, 403, 200]),
        ("GET /api/v1/mailbox/test/latest",           [401, 200, 200, 403, 403, 403]),
        ("GET /api/v1/mailbox/ci-1/latest/source",    [401, 200, 200, 403, 403, 200]),
        ("GET /serve/mailbox/test/latest/html",       [401, 200, 200, 403, 403, 403]),
        ("GET /api/v2/mailboxes",                     [401, 200, 200, 403, 403, 200]),
        ("GET /api/v2/monitor/messages",              [401, 426, 426, 403, 403, 426]),
        ("GET /api/v2/monitor/messages/test",         [401, 426, 426, 403, 403, 403]),
        ("PATCH /api/v1/mailbox/test/1",              [401, 404, 403, 404, 403, 403]),
        ("DELETE /api/v1/mailbox/test/1",             [401, 404, 403, 404, 403, 403]),
        ("POST /api/v2/mailbox/ci-1/mark",            [401, 422, 403, 422, 403, 422]),
        ("GET /metrics",                              [401, 200, 403, 403, 200, 403]),
        ("GET /debug/vars",                           [401, 200, 403, 403, 200, 403]),
        ("GET /serve/status",                         [401, 200, 403, 403, 200, 403]),
    ];
    for (request, expected) in table {
        for (authorization, expected) in columns.iter().zip(expected) {
            assert_eq!(status(&auth_server, request, authorization).await, *expected, "{request} {authorization}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_credentials_are_refused() {
    let auth_server = AuthServer::new().await;
    let request = "GET /api/v1/mailbox/test";
    let (none, wrong, unknown) = (
        "This server requires credentials: a token, or a user name and a password.",
        "The user name or the password is wrong.",
        "The token is unknown.",
    );
    let table = [
        ("", none),
        ("Basic !", none),
        ("Digest x", none),
        (&basic("ann", "wrong"), wrong),
        (&basic("eve", "secret"), wrong),
        (&basic("ann", "rst_x"), unknown),
        ("Bearer secret", unknown),
    ];
    for (authorization, sentence) in table {
        let response = auth_server.server.request(&with_authorization(request, authorization)).await;
        assert_eq!(response.problem(401), sentence, "{authorization}");
        assert!(response.header("www-authenticate").contains("Basic realm=\"Restante\""), "{authorization}");
    }
    // A token is accepted as the password with any user name, and in the query only if there is no other way.
    assert_eq!(status(&auth_server, request, &basic("", &auth_server.reader)).await, 200);
    let token = &auth_server.reader;
    assert_eq!(status(&auth_server, &format!("{request}?access_token={token}"), "").await, 401);
    assert_eq!(status(&auth_server, &format!("GET /api/v2/monitor/messages?access_token={token}"), "").await, 426);
    assert_eq!(status(&auth_server, &format!("GET /api/v1/monitor/messages/test?access_token={token}"), "").await, 426);
    assert_eq!(status(&auth_server, &format!("GET /api/events?access_token={token}"), "").await, 426);
}

#[tokio::test]
async fn browsers_get_no_basic_challenge() {
    let auth_server = AuthServer::new().await;
    for header in ["Sec-Fetch-Mode: cors", "X-Requested-With: page", "User-Agent: Mozilla/5.0"] {
        let response = auth_server.server.request(&format!("GET /api/v2/server\n{header}")).await;
        assert_eq!((response.status.as_u16(), response.header("www-authenticate")), (401, "Bearer realm=\"Restante\""));
    }
    let response = auth_server.server.request("GET /m/test?x=1\nAccept: text/html\nSec-Fetch-Mode: navigate").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "./../login?next=m%2Ftest%3Fx%3D1"));
}

#[tokio::test]
async fn login_form_sets_and_clears_cookie() {
    let auth_server = AuthServer::new().await;
    let page = auth_server.server.request("GET /login?next=m%2Ftest%22").await;
    assert!(page.text().contains("name=\"next\" value=\"m/test&quot;\""), "{}", page.text());
    assert!(page.header("content-security-policy").contains("form-action 'self'"));
    assert_eq!((page.header("cache-control"), page.header("x-frame-options")), ("no-store", "DENY"));

    let refused = log_in(&auth_server, "ann", "wrong", "m/test").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text().contains("The user name or the password is wrong.") && refused.text().contains("\"ann\""));
    assert_eq!(refused.header("set-cookie"), "");

    let response = log_in(&auth_server, "ann", "secret", "m/test").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "./m/test"));
    let set = response.header("set-cookie");
    assert!(set.starts_with("restante=") && set.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"), "{set}");
    let cookie = format!("Cookie: x=y; {}", cookie(&response));

    let about = auth_server.server.request(&format!("GET /api/v2/server\n{cookie}")).await.json();
    assert_eq!((&about["user"], &about["locked"]), (&"ann".into(), &true.into()));
    // A request that changes something must prove that it comes from a page of this server.
    let delete = format!("DELETE /api/v1/mailbox/test\n{cookie}");
    let table = [
        ("", 403),
        ("Origin: http://evil.example", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-origin", 200),
        ("Origin: http://localhost:9000", 200),
    ];
    for (header, expected) in table {
        let request = format!("{delete}\n{header}");
        assert_eq!(auth_server.server.request(request.trim_end()).await.status.as_u16(), expected, "{header}");
    }
    let out = auth_server.server.request(&format!("POST /logout\n{cookie}\nOrigin: http://localhost:9000")).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "./login"));
    assert!(out.header("set-cookie").starts_with("restante=; Path=/; Max-Age=0;"));
    assert_eq!(
        auth_server.server.request(&format!("GET /api/v2/server\n{cookie}")).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn token_login_sets_secure_cookie_over_tls() {
    let settings = Settings { base_path: "/base".to_owned(), ..Settings::default() };
    let auth_server = AuthServer::with(settings).await;
    let form = format!("user=&password={}&next=//evil.example", auth_server.limited);
    let request = "POST /base/login\nContent-Type: application/x-www-form-urlencoded";
    let response = auth_server.server.request_with(request, form, Peer { tls: true, ..Peer::default() }).await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, ".///evil.example"));
    assert!(
        response.header("set-cookie").contains("; Path=/base;") && response.header("set-cookie").ends_with("; Secure")
    );
    let cookie = cookie(&response);
    for (mailbox, status) in [("ci-1", 200), ("test", 403)] {
        let response =
            auth_server.server.request(&format!("GET /base/api/v1/mailbox/{mailbox}\nCookie: {cookie}")).await;
        assert_eq!(response.status.as_u16(), status, "{mailbox}");
    }
    let mailboxes =
        auth_server.server.request(&format!("GET /api/v2/mailboxes\nCookie: restante=old; {cookie}")).await.json();
    assert_eq!(mailboxes["mailboxes"].as_array().map(Vec::len), Some(1), "{mailboxes}");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_token_is_revoked() {
    let auth_server = AuthServer::with(Settings { max_message_bytes: 1000, ..Settings::default() }).await;
    let start = tokio::time::Instant::now();
    let get = async |path: &str| {
        let response = auth_server
            .server
            .request(&with_authorization(&format!("GET /api/{path}"), &format!("Bearer {}", auth_server.reader)))
            .await;
        assert!(response.header("www-authenticate").starts_with("Bearer"));
        (response.problem(401), start.elapsed().as_secs())
    };
    let revoke = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        auth_server.revoke("reader").await;
        let send = with_authorization(
            "POST /api/v2/mailbox/new\nContent-Type: message/rfc822",
            &format!("Bearer {}", auth_server.writer),
        );
        auth_server.server.request_with(&send, "Subject: x\r\n\r\n", Peer::default()).await
    };
    let (mail, none, _) =
        tokio::join!(get("v2/mailbox/new/wait?timeout=10m"), get("v1/mailbox/none/latest?wait=10m"), revoke);
    assert_eq!(mail, ("The token or the login has expired, or was revoked.".to_owned(), 1), "when a message arrives");
    assert_eq!(
        none,
        ("The token or the login has expired, or was revoked.".to_owned(), 10),
        "soon, even without a message"
    );
}

#[tokio::test]
async fn without_auth_there_is_no_login() {
    let server = TestServer::new();
    for request in ["GET /login", "POST /login", "POST /logout"] {
        assert_eq!(server.request(request).await.problem(404), "There is nothing at this path.");
    }
    let about = server.request("GET /api/v2/server").await.json();
    assert_eq!((&about["user"], &about["locked"]), (&serde_json::Value::Null, &false.into()));
}
