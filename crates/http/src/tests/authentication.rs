//! Authentication, and what the credentials allow, request by request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_auth::tokens::{self, RequestedAccess};
use restante_auth::{AuthService, Scope, users};
use restante_testdir::TestDir;

use super::*;

/// A server with authentication: user `ann` with the password `secret`, tokens, and one message each in `test` and
/// `ci-1`.
pub(super) struct AuthServer {
    pub(super) house: TestServer,
    locks: Arc<AuthService>,
    dir: TestDir,
    pub(super) reader: String,
    pub(super) writer: String,
    pub(super) admin: String,
    limited: String,
}

impl AuthServer {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        Self::with_info(settings, ServerInfo::default()).await
    }

    /// Creates a server with these descriptions.
    pub(super) async fn with_info(settings: Settings, info: ServerInfo) -> Self {
        let dir = TestDir::new();
        let (people, programs) = (dir.path().join("users"), dir.path().join("tokens.toml"));
        users::add(&people, "ann", "secret").unwrap();
        let token = |name: &str, scopes: &[Scope], mailboxes: &[&str]| {
            let (scopes, mailboxes) = (scopes.iter().copied().collect(), mailboxes.iter().map(ToString::to_string));
            let wish = RequestedAccess { name: name.to_owned(), scopes, mailboxes: mailboxes.collect(), expires: None };
            tokens::create(&programs, wish).unwrap().1
        };
        let reader = token("reader", &[Scope::Read], &[]);
        let writer = token("writer", &[Scope::Write], &[]);
        let admin = token("admin", &[Scope::Admin], &[]);
        let limited = token("limited", &[Scope::Read, Scope::Write, Scope::Admin], &["ci-*"]);
        let auth = restante_auth::Settings {
            users: Some(people),
            tokens: Some(programs),
            session_time: std::time::Duration::from_hours(1),
            secret: None,
        };
        let locks = AuthService::open(auth).unwrap();
        let house = TestServer::with_info(Settings { auth: Some(locks.clone()), ..settings }, info);
        house.put(0, "test", "Subject: one\r\n\r\nHello\r\n").await;
        house.put(1, "ci-1", "Subject: two\r\n\r\nHello\r\n").await;
        Self { house, locks, dir, reader, writer, admin, limited }
    }

    /// Returns the status of a request with this `Authorization`.
    async fn status(&self, request: &str, authorization: &str) -> u16 {
        self.house.request(&with(request, authorization)).await.status.as_u16()
    }

    /// Logs in with the form, and returns the response.
    async fn log_in(&self, user: &str, password: &str, next: &str) -> TestResponse {
        let form = format!("user={user}&password={password}&next={next}");
        let request = "POST /login\nContent-Type: application/x-www-form-urlencoded\nOrigin: http://localhost:9000";
        self.house.request_with(request, form, Peer::default()).await
    }
}

fn with(request: &str, authorization: &str) -> String {
    if authorization.is_empty() { request.to_owned() } else { format!("{request}\nAuthorization: {authorization}") }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn cookie(answer: &TestResponse) -> String {
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn who_may_do_what() {
    let locked = AuthServer::new().await;
    let bearer = |token: &str| format!("Bearer {token}");
    let columns = [
        String::new(),
        basic("ann", "secret"),
        bearer(&locked.reader),
        bearer(&locked.writer),
        bearer(&locked.admin),
        bearer(&locked.limited),
    ];
    #[rustfmt::skip] // One row per request: nobody, a user, and tokens to read, to write, for all mailboxes, and for ci-* only.
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
            assert_eq!(locked.status(request, authorization).await, *expected, "{request} {authorization}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_none() {
    let locked = AuthServer::new().await;
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
        let answer = locked.house.request(&with(request, authorization)).await;
        assert_eq!(answer.problem(401), sentence, "{authorization}");
        assert!(answer.header("www-authenticate").contains("Basic realm=\"Restante\""), "{authorization}");
    }
    // A token is accepted as the password with any user name, and in the query only if there is no other way.
    assert_eq!(locked.status(request, &basic("", &locked.reader)).await, 200);
    let token = &locked.reader;
    assert_eq!(locked.status(&format!("{request}?access_token={token}"), "").await, 401);
    assert_eq!(locked.status(&format!("GET /api/v2/monitor/messages?access_token={token}"), "").await, 426);
    assert_eq!(locked.status(&format!("GET /api/v1/monitor/messages/test?access_token={token}"), "").await, 426);
}

#[tokio::test]
async fn pages_are_never_asked_by_a_window_of_the_browser() {
    let locked = AuthServer::new().await;
    for header in ["Sec-Fetch-Mode: cors", "X-Requested-With: page", "User-Agent: Mozilla/5.0"] {
        let answer = locked.house.request(&format!("GET /api/v2/server\n{header}")).await;
        assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (401, "Bearer realm=\"Restante\""));
    }
    let answer = locked.house.request("GET /m/test?x=1\nAccept: text/html\nSec-Fetch-Mode: navigate").await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "./../login?next=m%2Ftest%3Fx%3D1"));
}

#[tokio::test]
async fn the_form() {
    let locked = AuthServer::new().await;
    let page = locked.house.request("GET /login?next=m%2Ftest%22").await;
    assert!(page.text().contains("name=\"next\" value=\"m/test&quot;\""), "{}", page.text());
    assert!(page.header("content-security-policy").contains("form-action 'self'"));
    assert_eq!((page.header("cache-control"), page.header("x-frame-options")), ("no-store", "DENY"));

    let refused = locked.log_in("ann", "wrong", "m/test").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text().contains("The user name or the password is wrong.") && refused.text().contains("\"ann\""));
    assert_eq!(refused.header("set-cookie"), "");

    let answer = locked.log_in("ann", "secret", "m/test").await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "./m/test"));
    let set = answer.header("set-cookie");
    assert!(set.starts_with("restante=") && set.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"), "{set}");
    let cookie = format!("Cookie: x=y; {}", cookie(&answer));

    let about = locked.house.request(&format!("GET /api/v2/server\n{cookie}")).await.json();
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
        assert_eq!(locked.house.request(request.trim_end()).await.status.as_u16(), expected, "{header}");
    }
    let out = locked.house.request(&format!("POST /logout\n{cookie}\nOrigin: http://localhost:9000")).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "./login"));
    assert!(out.header("set-cookie").starts_with("restante=; Path=/; Max-Age=0;"));
    assert_eq!(locked.house.request(&format!("GET /api/v2/server\n{cookie}")).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_opens_the_pages_too_and_cookies_are_secure_where_the_connection_is() {
    let settings = Settings { base_path: "/base".to_owned(), ..Settings::default() };
    let locked = AuthServer::with(settings).await;
    let form = format!("user=&password={}&next=//evil.example", locked.limited);
    let request = "POST /base/login\nContent-Type: application/x-www-form-urlencoded";
    let answer = locked.house.request_with(request, form, Peer { tls: true, ..Peer::default() }).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, ".///evil.example"));
    assert!(answer.header("set-cookie").contains("; Path=/base;") && answer.header("set-cookie").ends_with("; Secure"));
    let cookie = cookie(&answer);
    for (mailbox, status) in [("ci-1", 200), ("test", 403)] {
        let answer = locked.house.request(&format!("GET /base/api/v1/mailbox/{mailbox}\nCookie: {cookie}")).await;
        assert_eq!(answer.status.as_u16(), status, "{mailbox}");
    }
    let mailboxes =
        locked.house.request(&format!("GET /api/v2/mailboxes\nCookie: restante=old; {cookie}")).await.json();
    assert_eq!(mailboxes["mailboxes"].as_array().map(Vec::len), Some(1), "{mailboxes}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_nothing_when_they_are_not_let_in_any_more() {
    let locked = AuthServer::with(Settings { max_message_bytes: 1000, ..Settings::default() }).await;
    let began = tokio::time::Instant::now();
    let ask = async |path: &str| {
        let answer =
            locked.house.request(&with(&format!("GET /api/{path}"), &format!("Bearer {}", locked.reader))).await;
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
        (answer.problem(401), began.elapsed().as_secs())
    };
    let revoke = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        tokens::revoke(&locked.dir.path().join("tokens.toml"), "reader").unwrap();
        locked.locks.authenticator.reload().await;
        let send = with("POST /api/v2/mailbox/new\nContent-Type: message/rfc822", &format!("Bearer {}", locked.writer));
        locked.house.request_with(&send, "Subject: x\r\n\r\n", Peer::default()).await
    };
    let (mail, none, _) =
        tokio::join!(ask("v2/mailbox/new/wait?timeout=10m"), ask("v1/mailbox/none/latest?wait=10m"), revoke);
    assert_eq!(mail, ("The token or the login has expired, or was revoked.".to_owned(), 1), "when the mail comes");
    assert_eq!(
        none,
        ("The token or the login has expired, or was revoked.".to_owned(), 10),
        "soon, also when nothing comes"
    );
}

#[tokio::test]
async fn without_locks_there_is_no_form_and_nobody_is_asked() {
    let house = TestServer::new();
    for request in ["GET /login", "POST /login", "POST /logout"] {
        assert_eq!(house.request(request).await.problem(404), "There is nothing at this path.");
    }
    let about = house.request("GET /api/v2/server").await.json();
    assert_eq!((&about["user"], &about["locked"]), (&serde_json::Value::Null, &false.into()));
}
