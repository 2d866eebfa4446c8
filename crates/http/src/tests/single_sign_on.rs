//! Accounts that are managed elsewhere: users of an authenticating proxy, and logins with an identity provider that cannot be
//! reached. Logins with a real provider are tested in `crates/restante/tests/program/http/oidc.rs`.

use std::net::TcpListener;

use restante_auth::oidc::OidcSettings;
use restante_auth::{AuthService, UserHeaders};
use restante_settings::AllowList;

use super::*;

const GRANTS: &str = "groups=qa -> read,write shop:*; groups=ops -> all; user=root -> all";

fn server(auth: restante_auth::Settings, settings: Settings) -> TestServer {
    let auth = restante_auth::Settings {
        session_time: std::time::Duration::from_hours(1),
        grants: GRANTS.parse().unwrap(),
        ..auth
    };
    let auth = AuthService::open(auth).unwrap();
    TestServer::with(Settings { auth: Some(auth).filter(|auth| auth.is_enabled()), ..settings })
}

/// A server behind an authenticating proxy at 10.0.0.1.
fn server_behind_proxy() -> TestServer {
    let headers = UserHeaders { user: "x-forwarded-user".to_owned(), groups: "x-forwarded-groups".to_owned() };
    let settings = Settings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        cors: Some(AllowList::Only(vec!["https://app.example".to_owned()])),
        ..Settings::default()
    };
    server(restante_auth::Settings { headers, ..restante_auth::Settings::default() }, settings)
}

/// A server with an identity provider that cannot be reached, and perhaps with the user `ann`.
fn server_with_provider(has_users: bool) -> TestServer {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let oidc = OidcSettings {
        issuer: format!("http://{closed}"),
        client_id: "restante".to_owned(),
        client_secret: None,
        scopes: "openid".to_owned(),
    };
    let hash = || restante_auth::PasswordHash::parse_or_plain("secret").unwrap();
    let credentials = has_users.then(|| ("ann".to_owned(), hash())).into_iter().collect();
    let auth = restante_auth::Settings { oidc, credentials, ..restante_auth::Settings::default() };
    server(auth, Settings::default())
}

#[tokio::test]
async fn users_of_a_proxy_have_the_rights_of_their_groups() {
    let server = server_behind_proxy();
    let (proxy, other) = ([10, 0, 0, 1], [192, 0, 2, 1]);
    let (ann, qa) = ("X-Forwarded-User: ann", "X-Forwarded-Groups: dev, qa");
    let root = "X-Forwarded-User: root";
    // The address of the peer, the header, and the status of GET and DELETE for a mailbox of the project, and for another one.
    let table: &[([u8; 4], &[&str], [u16; 3])] = &[
        (proxy, &[ann, qa], [200, 200, 403]),
        (proxy, &[root], [200, 200, 200]),
        (proxy, &["X-Forwarded-User: ops", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Groups: ops"], [200, 200, 200]),
        // The user has no rule, or there is no user, or it is not certain which one.
        (proxy, &[ann], [403, 403, 403]),
        (proxy, &[qa], [401, 401, 401]),
        (proxy, &[ann, root, qa], [401, 401, 401]),
        (proxy, &[ann, qa, "X-Forwarded-Groups: ops"], [403, 403, 403]),
        // Other peers cannot name a user, not even with the address of the proxy.
        (other, &[root], [401, 401, 401]),
        (other, &[root, "X-Forwarded-For: 10.0.0.1"], [401, 401, 401]),
        // A page of another origin can use a token, but not the login of the user.
        (proxy, &[root, "Origin: https://app.example"], [401, 401, 401]),
        (proxy, &[root, "Origin: https://evil.example"], [403, 403, 403]),
    ];
    for (peer, headers, expected) in table {
        let requests =
            ["GET /api/v1/mailbox/shop:a", "DELETE /api/v1/mailbox/shop:a", "GET /api/v1/mailbox/acme:other"]
                .into_iter();
        for (request, expected) in requests.zip(expected) {
            let mut request = format!("{request}\n{}", headers.join("\n"));
            if !request.contains("\nOrigin:") {
                request += "\nOrigin: http://localhost:9000";
            }
            let response = server.request_with(&request, "", Some((*peer).into()).into()).await;
            assert_eq!(response.status.as_u16(), *expected, "{peer:?} {request}");
        }
    }
    let proxy: Peer = Some(proxy.into()).into();
    // A request that changes something must prove that it comes from a page of this server, as with a cookie.
    let delete = format!("DELETE /api/v1/mailbox/other\n{root}");
    assert_eq!(server.request_with(&delete, "", proxy).await.status, StatusCode::FORBIDDEN);
    let about = server.request_with(&format!("GET /api/v2/server\n{ann}\n{qa}"), "", proxy).await.json();
    assert_eq!((&about["user"], &about["locked"]), (&"ann".into(), &true.into()));
    let denied = server.request_with(&format!("GET /api/v2/server\n{ann}"), "", proxy).await;
    assert_eq!(denied.problem(403), "Your account has no access to this server.");
    assert_eq!(denied.header("www-authenticate"), "");
    let page = format!("GET /m/test\n{ann}<b>\nAccept: text/html\nSec-Fetch-Mode: navigate");
    let page = server.request_with(&page, "", proxy).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text().contains("You are logged in as ann&lt;b&gt;. Your account has no access to this server."));
    assert!(page.text().contains("href=\"./../assets/") && !page.text().contains("logout"), "{}", page.text());
}

#[tokio::test]
async fn login_page_offers_single_sign_on() {
    let (link, field) = ("href=\"./login/oidc?next=m%2Ftest\"", "type=\"password\"");
    for (has_users, has_field) in [(true, true), (false, false)] {
        let page = server_with_provider(has_users).request("GET /login?next=m%2Ftest").await;
        assert_eq!((page.text().contains(link), page.text().contains(field)), (true, has_field), "{}", page.text());
    }
    let server = server_with_provider(true);
    assert_eq!(server.request("GET /api/v2/server").await.status, StatusCode::UNAUTHORIZED);
    // The password of a user is still accepted.
    let request = "POST /login\nContent-Type: application/x-www-form-urlencoded\nOrigin: http://localhost:9000";
    let response = server.request_with(request, "user=ann&password=secret", Peer::default()).await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "./"));
    let cookie = response.header("set-cookie").split(';').next().unwrap();
    let out = server.request(&format!("POST /logout\nCookie: {cookie}\nOrigin: http://localhost:9000")).await;
    assert_eq!(out.header("location"), "./login", "only accounts of the provider are logged out there");

    let proxy_only = server_behind_proxy();
    assert!(!proxy_only.request("GET /login").await.text().contains("single sign-on"));
    for path in ["/login/oidc", "/login/oidc/callback", "/logout/oidc"] {
        assert_eq!(proxy_only.request(&format!("GET {path}")).await.problem(404), "There is nothing at this path.");
        assert_eq!(TestServer::new().request(&format!("GET {path}")).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn errors_of_single_sign_on_are_pages() {
    let server = server_with_provider(false);
    let navigation =
        "Accept: text/html\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\nSec-Fetch-Site: cross-site";
    let page = server.request("GET /login/oidc").await;
    assert_eq!((page.status, page.header("set-cookie")), (StatusCode::BAD_GATEWAY, ""));
    assert!(
        page.text().contains("The identity provider could not be used.") && page.text().contains("href=\"./../login\"")
    );
    // The provider redirects from another site, but the login must have been started by this browser.
    let callback = format!("GET /login/oidc/callback?code=x&state=y\n{navigation}\nCookie: restante-login=forged");
    let page = server.request(&callback).await;
    assert_eq!((page.status, page.header("set-cookie")), (StatusCode::FORBIDDEN, ""));
    assert!(page.text().contains("The login was not completed.") && page.text().contains("href=\"./../../login\""));
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    // Other sites can neither start nor end a login.
    for path in ["/login/oidc", "/logout/oidc"] {
        assert_eq!(server.request(&format!("GET {path}\n{navigation}")).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let out = server.request("GET /logout/oidc").await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "./../login"));
}
