//! The request checks: host names, proxies, and web pages of other origins.

use restante_settings::AllowList;

use super::*;

const LIST: &str = "GET /api/v1/mailbox/test";

fn from(ip: &str) -> Peer {
    Peer::from(ip.parse().ok())
}

/// Returns the prefix of links to an attachment in the response to a request with these headers.
async fn base_url(settings: Settings, headers: &str, peer: Peer) -> Result<String, u16> {
    let server = TestServer::with(settings);
    server.add_message(0, "test", "Content-Type: image/png\r\n\r\nx").await;
    let response = server.request_with(&format!("GET /api/v1/mailbox/test/latest{headers}"), Body::empty(), peer).await;
    if response.status != 200 {
        response.problem(response.status.as_u16());
        return Err(response.status.as_u16());
    }
    let link = response.json()["attachments"][0]["download-link"].as_str().expect("a link").to_owned();
    let (base, _) = link.split_once("/mailbox/dattach/").expect("a link to an attachment");
    Ok(base.to_owned())
}

#[tokio::test]
async fn rejects_foreign_hosts() {
    let server = TestServer::new();
    let table = [
        ("localhost", 200),
        ("[::1]:9000", 200),
        ("192.0.2.1", 200),
        ("evil.example", 421),
        ("evil.example:9000", 421),
        ("localhost.evil.example", 421),
        ("a@localhost", 400),
        ("localhost localhost", 400),
    ];
    for (host, status) in table {
        for request in [LIST, "DELETE /api/v1/mailbox/test", "GET /", "GET /nothing", "OPTIONS /"] {
            let response = server.request(&format!("{request}\nHost: {host}")).await;
            if status == 200 {
                assert!(response.status.as_u16() < 410, "{request} {host}");
            } else {
                response.problem(status);
                assert_eq!(response.header("x-content-type-options"), "nosniff");
            }
        }
    }
}

#[tokio::test]
async fn requires_exactly_one_host_header() {
    let server = TestServer::new();
    server.request(&format!("{LIST}\nHost: localhost\nHost: localhost")).await.problem(400);
    let request = Request::get("/api/v1/mailbox/test").body(Body::empty()).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn health_checks_accept_any_host() {
    for base in ["", "/mail", "/live"] {
        let server = TestServer::with(Settings { base_path: base.to_owned(), ..Settings::default() });
        for path in ["/livez".to_owned(), "/readyz".to_owned(), format!("{base}/livez"), format!("{base}/readyz")] {
            let named = server.request(&format!("GET {path}\nHost: pod.cluster.example")).await;
            assert_eq!(named.status, 200, "{path}");
            let request = Request::get(&path).body(Body::empty()).unwrap();
            assert_eq!(server.router.clone().oneshot(request).await.unwrap().status(), 200, "{path}");
        }
        for path in ["/metrics", "/debug/vars", "/serve/status", "/livez/x"] {
            server.request(&format!("GET {base}{path}\nHost: evil.example")).await.problem(421);
        }
    }
    let unusual = TestServer::with(Settings { base_path: "/livez".to_owned(), ..Settings::default() });
    unusual.request("GET /livez\nHost: evil.example").await.problem(421);
    assert_eq!(unusual.request("GET /livez/livez\nHost: evil.example").await.status, 200);
}

#[tokio::test]
async fn absolute_target_takes_precedence_over_host_header() {
    let server = TestServer::new();
    let absolute = server.request("GET http://localhost/api/v1/mailbox/test\nHost: evil.example").await;
    assert_eq!(absolute.status, 200);
    server.request("GET http://evil.example/api/v1/mailbox/test\nHost: localhost").await.problem(421);
}

#[tokio::test]
async fn links_start_with_requested_host() {
    let plain = || Settings::default();
    let based = || Settings { base_path: "/mail".to_owned(), ..plain() };
    let public = || Settings { public_url: Some("https://mail.example.org/x".to_owned()), ..based() };
    let listed = || Settings { hosts: AllowList::Only(vec!["mail.example.org".to_owned()]), ..plain() };
    let behind_proxy = || Settings { trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()], ..listed() };
    let forwarded =
        "\nHost: localhost:9000\nX-Forwarded-Proto: https\nX-Forwarded-Host: evil.example, mail.example.org";
    let spoofed = "\nHost: localhost:9000\nX-Forwarded-Host: evil.example";
    let rebinding = "\nHost: evil.example\nX-Forwarded-Host: localhost";
    let rebinding_to_ip = "\nHost: evil.example\nX-Forwarded-Host: 127.0.0.1:9000";
    let forwarded_unchecked = "\nHost: evil.example\nX-Forwarded-Host: mail.example.org";
    let local = "\nHost: 10.0.0.9:9000\nX-Forwarded-Host: localhost:8080";
    let lines = "\nHost: localhost\nX-Forwarded-Host: evil.example\nX-Forwarded-Host: mail.example.org";
    let nonsense = "\nHost: localhost\nX-Forwarded-Proto: javascript\nX-Forwarded-Host: ,";
    // A trusted address counts if it is at the other end of the socket, not if a PROXY header names it.
    let by_header = Peer { socket_ip: "10.1.2.3".parse().ok(), ..from("192.0.2.1") };
    let named = Peer { socket_ip: "192.0.2.1".parse().ok(), ..from("10.1.2.3") };
    let tls = Peer { tls: true, ..Peer::default() };
    let table = [
        (plain(), "", from("127.0.0.1"), Ok("http://localhost:9000")),
        (plain(), "\nHost: [::1]", tls, Ok("https://[::1]")),
        (based(), "", tls, Ok("https://localhost:9000/mail")),
        (public(), "", from("127.0.0.1"), Ok("https://mail.example.org/x")),
        (public(), "\nHost: mail.example.org", from("127.0.0.1"), Ok("https://mail.example.org/x")),
        (plain(), "\nHost: mail.example.org", from("127.0.0.1"), Err(421)),
        (listed(), "\nHost: mail.example.org:81", from("127.0.0.1"), Ok("http://mail.example.org:81")),
        (behind_proxy(), forwarded, from("10.1.2.3"), Ok("https://mail.example.org")),
        (behind_proxy(), forwarded, from("192.0.2.1"), Ok("http://localhost:9000")),
        (behind_proxy(), forwarded, Peer::default(), Ok("http://localhost:9000")),
        (behind_proxy(), spoofed, from("10.1.2.3"), Err(421)),
        (behind_proxy(), spoofed, from("192.0.2.1"), Ok("http://localhost:9000")),
        (behind_proxy(), rebinding, from("10.1.2.3"), Err(421)),
        (behind_proxy(), rebinding_to_ip, from("10.1.2.3"), Err(421)),
        (behind_proxy(), forwarded_unchecked, from("10.1.2.3"), Err(421)),
        (behind_proxy(), local, from("10.1.2.3"), Ok("http://localhost:8080")),
        (behind_proxy(), lines, from("10.1.2.3"), Ok("http://mail.example.org")),
        (behind_proxy(), nonsense, from("10.1.2.3"), Ok("http://localhost")),
        (behind_proxy(), forwarded, by_header, Ok("https://mail.example.org")),
        (behind_proxy(), forwarded, named, Ok("http://localhost:9000")),
    ];
    for (settings, headers, peer, expected) in table {
        let base = base_url(settings, headers, peer).await;
        assert_eq!(base, expected.map(str::to_owned), "{headers} from {peer:?}");
    }
}

#[tokio::test]
async fn cache_distinguishes_hosts() {
    let server = TestServer::new();
    server.add_message(0, "test", "Content-Type: image/png\r\n\r\nx").await;
    for host in ["localhost:1", "localhost:2", "localhost:1"] {
        let response = server.request(&format!("GET /api/v1/mailbox/test/latest\nHost: {host}")).await;
        assert!(response.text().contains(&format!("http://{host}/mailbox/dattach/")), "{host}");
    }
}

#[tokio::test]
async fn rejects_requests_from_other_origins() {
    let server = TestServer::with_two_messages().await;
    let table = [
        ("", 200),
        ("\nOrigin: http://localhost:9000", 200),
        ("\nOrigin: https://LOCALHOST:9000", 200),
        ("\nSec-Fetch-Site: same-origin", 200),
        ("\nSec-Fetch-Site: none", 200),
        ("\nOrigin: http://localhost:3000", 403),
        ("\nOrigin: http://evil.example", 403),
        ("\nOrigin: http://localhost:9000.evil.example", 403),
        ("\nOrigin: null", 403),
        ("\nOrigin: http://localhost:9000\nOrigin: http://evil.example", 403),
        ("\nSec-Fetch-Site: cross-site", 403),
        ("\nSec-Fetch-Site: cross-site\nOrigin: http://localhost:9000", 403),
        ("\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", 403),
        ("\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image", 403),
        ("\nSec-Fetch-Site: same-site", 403),
        ("\nSec-Fetch-Site: same-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", 403),
        ("\nSec-Fetch-Site: same-site\nOrigin: http://localhost:3000", 403),
        ("\nSec-Fetch-Site: same-site\nOrigin: http://localhost:9000", 200),
        ("\nSec-Fetch-Site: whatever", 403),
    ];
    let requests = [
        "DELETE /api/v1/mailbox/test/1",
        "PATCH /api/v1/mailbox/test/latest",
        "POST /nothing",
        "GET /api/v1/mailbox/test",
        "HEAD /api/v1/mailbox/test",
        "GET /api/v1/mailbox/test/latest",
        "GET /api/v1/mailbox/test/latest/source",
        "GET /api/v1/monitor/messages",
        "GET /api/v1/monitor/messages/test",
        "GET /api/v2/mailboxes",
        "GET /api/v2/mailbox/test/wait?timeout=1ms",
        "GET /api/v2/mailbox/test/attachments",
        "GET /api/v2/mailbox/test/latest",
        "GET /api/v2/mailbox/test/latest/links",
        "GET /api/v2/mailbox/test/latest/codes",
        "GET /api/v2/mailbox/test/latest/unsubscribe",
        "GET /api/v2/mailbox/test/latest/parts",
        "GET /api/v2/mailbox/test/latest/parts/0",
        "GET /api/v2/mailbox/test/latest/transcript",
        "GET /api/v2/search?q=x",
        "GET /api/v2/sessions",
        "GET /api/v2/sessions/1",
        "GET /api/v2/monitor/messages",
        "GET /api/v2/monitor/messages/test",
        "GET /api/v2/server",
        "GET /api/openapi.json",
        "GET /mailbox/dattach/test/latest/0/x",
        "GET /mailbox/vattach/test/latest/0/x",
        "GET /serve/mailbox/test/latest",
        "GET /serve/mailbox/test/latest/html",
        "GET /serve/mailbox/test/latest/source",
        "GET /serve/mailbox/test/latest/attach/0/x",
        "GET /serve/greeting",
        "GET /serve/status",
        "GET /metrics",
        "GET /debug/vars",
    ];
    for (headers, status) in table {
        for request in requests {
            let response = server.request(&format!("{request}{headers}")).await;
            assert_eq!(response.status == 403, status == 403, "{request} {headers}: {}", response.status);
            assert_eq!(response.header("cross-origin-resource-policy"), "same-origin", "{request}");
        }
    }
    // The stream of events does not end, so its body is not read.
    for path in ["/api/v2/events", "/api/v2/events/test"] {
        let request = Request::get(path).header("Host", "localhost").header("Sec-Fetch-Site", "cross-site");
        let response = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 403, "{path}");
    }
    let public = Settings { public_url: Some("https://mail.example.org".to_owned()), ..Settings::default() };
    let server = TestServer::with(public);
    let behind_proxy =
        server.request("DELETE /api/v1/mailbox/test\nHost: 10.0.0.1:9000\nOrigin: https://mail.example.org").await;
    assert_eq!(behind_proxy.status, 200);
}

/// Browsers send Fetch Metadata only to `localhost` and loopback addresses, not to other names of this machine.
#[tokio::test]
async fn browsers_must_use_a_loopback_name_on_the_same_machine() {
    let server = TestServer::with(Settings { hosts: AllowList::Only(vec!["box".to_owned()]), ..Settings::default() });
    let browser = "\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)";
    let table = [
        ("localhost:9000", browser, 200),
        ("a.localhost", browser, 200),
        ("127.0.0.2", browser, 200),
        ("[::1]:9000", browser, 200),
        ("box", browser, 200),
        ("0.0.0.0:9000", browser, 421),
        ("[::]:9000", browser, 421),
        ("[::ffff:127.0.0.1]:9000", browser, 421),
        ("restante:9000", browser, 421),
        ("evil.local:9000", browser, 421),
        ("kubernetes.docker.internal", browser, 421),
        ("0.0.0.0:9000", "\nUser-Agent: curl/8.5.0", 200),
        ("restante:9000", "", 200),
        ("kubernetes.docker.internal", "\nUser-Agent: Go-http-client/1.1", 200),
    ];
    for (host, agent, status) in table {
        let request = format!("{LIST}\nHost: {host}{agent}");
        let response = server.request_with(&request, Body::empty(), from("127.0.0.1")).await;
        assert_eq!(response.status, status, "{host}{agent}");
        // From another machine and with TLS, all of these names are accepted.
        assert_eq!(server.request_with(&request, Body::empty(), from("192.0.2.1")).await.status, 200, "{host}{agent}");
        let tls = Peer { tls: true, ..from("127.0.0.1") };
        assert_eq!(server.request_with(&request, Body::empty(), tls).await.status, 200, "{host}{agent}");
    }
}

#[tokio::test]
async fn any_site_may_link_to_a_page_but_not_frame_it() {
    let table = [
        ("Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", true),
        ("Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe", false),
        ("Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: frame", false),
        ("Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: embed", false),
        ("Sec-Fetch-Mode: navigate", false),
        ("Sec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image", false),
        ("Sec-Fetch-Mode: cors\nSec-Fetch-Dest: empty", false),
        ("Sec-Fetch-Mode: no-cors\nSec-Fetch-Dest: document", false),
    ];
    let pages = [
        "/",
        "/messages/1",
        "/settings",
        "/send",
        "/m/test",
        "/m/test/1",
        "/monitor",
        "/status",
        "/search?q=x",
        "/sessions",
        "/m/",
        "/m/test/",
        "/monitor/",
        "/api/docs",
    ];
    for base_path in ["", "/mail"] {
        let server = TestServer::with(Settings { base_path: base_path.to_owned(), ..Settings::default() });
        for (headers, is_allowed) in table {
            for site in ["cross-site", "same-site"] {
                for page in pages.iter().map(|page| format!("{base_path}{page}")) {
                    let response = server.request(&format!("GET {page}\nSec-Fetch-Site: {site}\n{headers}")).await;
                    assert_eq!(response.status != 403, is_allowed, "{page} {site} {headers}: {}", response.status);
                    assert_eq!(response.header("cross-origin-opener-policy"), "same-origin", "{page}");
                }
            }
        }
        let document = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document";
        server.request(&format!("GET {base_path}/nothing\n{document}")).await.problem(403);
        server.request(&format!("GET {base_path}//m/test\n{document}")).await.problem(403);
        let posted = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document";
        server.request(&format!("POST {base_path}/\n{posted}")).await.problem(403);
    }
}

#[tokio::test]
async fn messages_are_not_served_as_scripts() {
    let mail = "Content-Type: text/javascript\r\nContent-Disposition: attachment; filename=x.js\r\n\r\nalert(1)";
    let refused = [
        "script",
        "worker",
        "sharedworker",
        "serviceworker",
        "audioworklet",
        "paintworklet",
        "style",
        "xslt",
        "manifest",
        "object",
        "embed",
    ];
    let accepted = ["document", "iframe", "image", "font", "video", "empty"];
    for base_path in ["", "/mail", "/assets"] {
        let server = TestServer::with(Settings { base_path: base_path.to_owned(), ..Settings::default() });
        server.add_message(0, "test", mail).await;
        let paths = [
            "/mailbox/vattach/test/latest/0/x.js",
            "/mailbox/dattach/test/latest/0/x.js",
            "/serve/mailbox/test/latest/attach/0/x.js",
            "/api/v1/mailbox/test/latest/source",
            "/serve/mailbox/test/latest/source",
            "/serve/mailbox/test/latest/html",
            "/serve/mailbox/test/latest",
            "/api/v1/mailbox/test",
            "/serve/greeting",
        ];
        for path in paths.iter().flat_map(|path| [(*path).to_owned(), format!("{base_path}{path}")]) {
            for destination in refused {
                server.request(&format!("GET {path}\nSec-Fetch-Dest: {destination}")).await.problem(403);
            }
            for destination in accepted {
                let response = server.request(&format!("GET {path}\nSec-Fetch-Dest: {destination}")).await;
                assert_eq!(response.status, 200, "{path} {destination}");
            }
        }
        let script = format!("/assets/{}/dist/app.js", restante_http_web::embedded_assets::HASH);
        for path in [script.clone(), format!("{base_path}{script}")] {
            assert_eq!(server.request(&format!("GET {path}\nSec-Fetch-Dest: script")).await.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn responses_forbid_framing_by_other_sites() {
    let server = TestServer::with_two_messages().await;
    let table = [
        ("/", "DENY"),
        ("/m/test", "DENY"),
        ("/api/v1/mailbox/test", "SAMEORIGIN"),
        ("/api/v1/mailbox/test/latest/source", "SAMEORIGIN"),
        ("/serve/mailbox/test/latest/html", "SAMEORIGIN"),
        ("/serve/greeting", "SAMEORIGIN"),
        ("/metrics", "SAMEORIGIN"),
        ("/nothing", "SAMEORIGIN"),
        ("/livez", "SAMEORIGIN"),
    ];
    for (path, options) in table {
        let response = server.request(&format!("GET {path}")).await;
        assert_eq!(response.header("x-frame-options"), options, "{path}");
        assert_eq!(response.header("x-dns-prefetch-control"), "off", "{path}");
    }
}
