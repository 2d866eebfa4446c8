//! The handlers of version 1 of the REST API, compared byte for byte.

use crate::support::*;

fn assert_success(response: &TestResponse) {
    assert_eq!(response.status, 200, "{:?}", response.body);
    assert_eq!(response.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(response.header("expires"), "-1");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    assert_eq!(response.header("content-length"), response.body.len().to_string());
    assert!(response.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
}

#[tokio::test]
async fn lists_messages() {
    let server = TestServer::with_two_messages().await;
    // The second response comes from the cache.
    for _ in 0..2 {
        let response = server.request("GET /api/v1/mailbox/test").await;
        assert_success(&response);
        assert_eq!(response.text(), format!("[{{{}}},{{{}}}]\n", summary(0, 53), summary(1, 59)));
    }
}

#[tokio::test]
async fn lists_many_messages() {
    let server = TestServer::new();
    for number in 0..2000 {
        server.add_message(number, "test", "\r\n").await;
    }
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.numbers(), (0..2000).collect::<Vec<_>>());
}

#[tokio::test]
async fn unused_mailbox_is_empty() {
    let server = TestServer::new();
    let response = server.request("GET /api/v1/mailbox/nobody").await;
    assert_success(&response);
    assert_eq!(response.text(), "[]\n");
    let response = server.request("DELETE /api/v1/mailbox/nobody").await;
    assert_success(&response);
    assert_eq!(response.text(), "\"OK\"\n");
}

#[tokio::test]
async fn returns_message() {
    let server = TestServer::with_everything().await;
    let rest = concat!(
        r#""body":{"text":"Grüße <\"x\"> http://example.org/?a&b","#,
        r#""html":"<p>Grüße</p><img src=\"cid:logo@x\"><img src=\"http://tracker.example/x\"><script>alert(1)</script>"},"#,
        r#""header":{"Return-Path":["<a@example.org>"],"From":["A <a@example.org>"],"#,
        r#""Subject":["=?utf-8?q?Gr=C3=BC=C3=9Fe?="],"X-Twice":["one two","three"],"#,
        r#""Content-Type":["multipart/mixed; boundary=b"]},"#,
        r#""attachments":[{"filename":".._logo\"<b>.png","content-type":"image/png","#,
        r#""download-link":"http://localhost:9000/mailbox/dattach/test/1794699770123456/0/.._logo%22%3Cb%3E.png","#,
        r#""view-link":"http://localhost:9000/mailbox/vattach/test/1794699770123456/0/.._logo%22%3Cb%3E.png","#,
        r#""md5":"900150983cd24fb0d6963f7d28e17f72"},"#,
        r#"{"filename":"attachment-1.pdf","content-type":"application/pdf","#,
        r#""download-link":"http://localhost:9000/mailbox/dattach/test/1794699770123456/1/attachment-1.pdf","#,
        r#""view-link":"http://localhost:9000/mailbox/vattach/test/1794699770123456/1/attachment-1.pdf","#,
        r#""md5":"900150983cd24fb0d6963f7d28e17f72"}]}"#,
    );
    let expected = format!("{{{},{rest}\n", summary(0, MAIL.len() + 30));
    for id in ["latest", "latest", "1794699770123456"] {
        let response = server.request(&format!("GET /api/v1/mailbox/test/{id}")).await;
        assert_success(&response);
        assert_eq!(response.text(), expected);
    }
}

#[tokio::test]
async fn source_is_byte_exact() {
    let server = TestServer::new();
    let unusual = "A: b\nno such\r line\r\n\r\n.\r\n\u{0}Grüße";
    server.add_message(0, "test", unusual).await;
    for id in ["latest", "1794699770123456"] {
        let response = server.request(&format!("GET /api/v1/mailbox/test/{id}/source")).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), "text/plain");
        assert_eq!(response.header("expires"), "-1");
        assert_eq!(response.text(), format!("Return-Path: <a@example.org>\r\n{unusual}"));
        assert_eq!(response.header("content-length"), response.body.len().to_string());
        let listed = server.request("GET /api/v1/mailbox/test").await.json();
        assert_eq!(listed[0]["size"], response.body.len());
    }
}

#[tokio::test]
async fn deletes_messages() {
    let server = TestServer::with_two_messages().await;
    let (one, two) = (id(0), id(1));
    for (target, status) in [
        // It would race with arriving messages.
        ("test/latest".to_owned(), 404),
        ("test/latest/source".to_owned(), 404),
        (format!("test/{one}"), 200),
        (format!("test/{one}"), 404),
        (format!("test/{two}/source"), 200),
        (format!("test/{two}"), 404),
        (format!("other/{two}"), 404),
        ("test".to_owned(), 200),
    ] {
        let response = server.request(&format!("DELETE /api/v1/mailbox/{target}")).await;
        if status == 200 {
            assert_success(&response);
            assert_eq!(response.text(), "\"OK\"\n", "{target}");
        } else {
            assert_eq!(response.problem(status), "The mailbox has no such message.", "{target}");
        }
    }
}

#[tokio::test]
async fn deleted_messages_are_not_served_from_cache() {
    let server = TestServer::with_two_messages().await;
    let one = format!("GET /api/v1/mailbox/test/{}", id(0));
    assert_eq!(server.request(&one).await.status, 200);
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.numbers(), [0, 1]);
    server.request("DELETE /api/v1/mailbox/test").await;
    server.request(&one).await.problem(404);
    server.request("GET /api/v1/mailbox/test/latest").await.problem(404);
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.text(), "[]\n");
}

#[tokio::test]
async fn marks_messages() {
    let server = TestServer::with_two_messages().await;
    let json = "\nContent-Type: application/json";
    // The message, headers, body, status, and the value of `seen` afterwards.
    let table = [
        ("latest", json, "{\"seen\":true}", 200, true),
        ("latest", json, " {\"seen\" : false, \"other\": 1}\n", 200, false),
        ("latest", "", "", 200, true),
        ("latest", "\nContent-Type: application/JSON; charset=utf-8", "{\"seen\":false}", 200, false),
        ("latest", "\nContent-Type: application/merge-patch+json", "{\"seen\":true}", 200, true),
        ("latest", "", "{\"seen\":false}", 200, false),
        ("latest", "\nContent-Type: text/plain", "", 200, true),
        ("latest", "\nContent-Type: text/plain", "{\"seen\":false}", 200, false),
        ("latest", "\nContent-Type: application/x-www-form-urlencoded", "{\"seen\": true}", 200, true),
        ("latest", "\nContent-Type: application/x-www-form-urlencoded", "seen=false", 422, true),
        ("latest", json, "{\"seen\":fals", 422, true),
        ("latest", json, "{\"seen\":false} x", 422, true),
        ("latest", json, "{\"seen\":\"false\"}", 422, true),
        ("latest", json, "{\"Seen\":false}", 200, false),
        ("latest", json, "{}", 200, false),
        ("latest", json, "{\"seen\":null}", 200, false),
        ("latest", json, "null\n", 200, false),
        ("latest", json, " ", 200, true),
        ("latest", json, "[false]", 422, true),
        ("latest", json, &"[".repeat(10_000), 422, true),
        ("latest", json, &" ".repeat(70_000), 413, true),
        ("1", json, "{\"seen\":false}", 404, true),
        ("1", json, "{}", 404, true),
        ("x", json, "{\"seen\":false}", 404, true),
    ];
    for (message, headers, body, status, seen) in table {
        let request = format!("PATCH /api/v1/mailbox/test/{message}{headers}");
        let response = server.request_with(&request, body.to_owned(), Peer::default()).await;
        if status == 200 {
            assert_success(&response);
            assert_eq!(response.text(), "\"OK\"\n");
        } else {
            response.problem(status);
        }
        let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
        assert_eq!(message["seen"], seen, "after {body:.40}");
        let listed = server.request("GET /api/v1/mailbox/test").await.json();
        assert_eq!(listed[1]["seen"], seen, "after {body:.40}");
    }
}

#[tokio::test]
async fn accepts_all_forms_of_names() {
    let server = TestServer::new();
    server.add_message(0, "james", "\r\n").await;
    server.add_message(1, "a/b", "\r\n").await;
    server.add_message(2, "jöran", "\r\n").await;
    server.add_message(3, "a%b", "\r\n").await;
    let table = [
        ("james", 0),
        ("JAMES", 0),
        ("James+Spam@x.org", 0),
        ("James%2BSpam%40x.org", 0),
        ("%6aames", 0),
        ("a%2Fb", 1),
        ("a%2fb", 1),
        ("j%C3%B6ran", 2),
        ("J%C3%96RAN@x.org", 2),
        ("jöran", 2),
        ("a%25b", 3),
        // The domain does not matter under local naming, and a final dot is dropped.
        ("james%40b%40c", 0),
        ("james@", 0),
        ("james.", 0),
    ];
    for (name, number) in table {
        for path in [format!("{name}/latest"), format!("{name}/{}", id(number))] {
            let response = server.request(&format!("GET /api/v1/mailbox/{path}")).await;
            assert_eq!(response.json()["id"], id(number).to_string(), "{path}");
        }
        assert_eq!(server.request(&format!("GET /api/v1/mailbox/{name}")).await.numbers(), [number], "{name}");
    }
}

#[tokio::test]
async fn rejects_invalid_names() {
    let server = TestServer::new();
    for name in ["%20", "..%2F..%2Fetc", "a%20b", "%00", "%FF", "%22a%20b%22", &"a".repeat(256)] {
        let path = format!("/api/v1/mailbox/{name}");
        for request in [format!("GET {path}"), format!("DELETE {path}"), format!("GET {path}/latest/source")] {
            let detail = server.request(&request).await.problem(400);
            assert!(
                detail.starts_with("This is not a mailbox name: ") || detail == "The path is not UTF-8.",
                "{detail}"
            );
        }
    }
}

#[tokio::test]
async fn missing_messages_and_paths_are_404() {
    let server = TestServer::with_two_messages().await;
    let zero = format!("test/0{}", id(0));
    for path in ["test/1", "test/x", "test/LATEST", "empty/latest", "test/-1", "test/1/source", "test/%20", &zero] {
        let detail = server.request(&format!("GET /api/v1/mailbox/{path}")).await.problem(404);
        assert_eq!(detail, "The mailbox has no such message.", "{path}");
    }
    for path in ["/api/v1/mailbox/", "/api/v1/mailbox", "/api/v1/mailbox/test/", "/api/v3/x", "/api", "/x", "/X/"] {
        for method in ["GET", "DELETE", "OPTIONS"] {
            let detail = server.request(&format!("{method} {path}")).await.problem(404);
            assert_eq!(detail, "There is nothing at this path.", "{path}");
        }
    }
}

#[tokio::test]
async fn unsupported_methods_are_405() {
    let server = TestServer::with_two_messages().await;
    let table = [
        ("POST /api/v1/mailbox/test", "GET,HEAD,DELETE"),
        ("PATCH /api/v1/mailbox/test", "GET,HEAD,DELETE"),
        ("OPTIONS /api/v1/mailbox/test", "GET,HEAD,DELETE"),
        ("PUT /api/v1/mailbox/test/latest", "GET,HEAD,PATCH,DELETE"),
        ("PATCH /api/v1/mailbox/test/latest/source", "GET,HEAD,DELETE"),
        ("DELETE /mailbox/dattach/test/1/0/a", "GET,HEAD"),
        ("POST /", "GET,HEAD"),
        ("BREW /api/v1/mailbox/test", "GET,HEAD,DELETE"),
    ];
    for (request, allow) in table {
        let response = server.request(request).await;
        response.problem(405);
        assert_eq!(response.header("allow"), allow, "{request}");
        assert!(response.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let server = TestServer::with_two_messages().await;
    for path in [
        "/api/v1/mailbox/test",
        "/api/v1/mailbox/test/latest",
        "/api/v1/mailbox/test/latest/source",
        "/api/v1/mailbox/test/none",
        "/api/v1/mailbox/a%20b",
        "/nothing",
        "/",
        "/robots.txt",
        "/livez",
        "/readyz",
    ] {
        let get = server.request(&format!("GET {path}")).await;
        let head = server.request(&format!("HEAD {path}")).await;
        assert_eq!((head.status, &head.headers), (get.status, &get.headers), "{path}");
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn matching_etag_gets_304() {
    let server = TestServer::with_two_messages().await;
    for path in ["test", "test?limit=1", "test/latest", "test/latest/source", "empty"] {
        let first = server.request(&format!("GET /api/v1/mailbox/{path}")).await;
        let tag = first.header("etag");
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "{tag}");
        for known in [tag, "*", &format!("W/{tag}"), &format!("\"x\", {tag}")] {
            for method in ["GET", "HEAD"] {
                let again = server.request(&format!("{method} /api/v1/mailbox/{path}\nIf-None-Match: {known}")).await;
                assert_eq!(again.status, 304, "{path} {known}");
                assert!(again.body.is_empty());
                let mut expected = first.headers.clone();
                expected.remove("content-length");
                assert_eq!(again.headers, expected, "{path} {known}");
            }
        }
        let other = server.request(&format!("GET /api/v1/mailbox/{path}\nIf-None-Match: \"x\"")).await;
        assert_eq!((other.status, other.body), (first.status, first.body));
    }
}

#[tokio::test]
async fn every_change_changes_the_etag() {
    let server = TestServer::with_two_messages().await;
    let mut tags = Vec::new();
    let mut check_tag = async || {
        let tag = server.request("GET /api/v1/mailbox/test").await.header("etag").to_owned();
        assert!(!tags.contains(&tag), "{tag} again");
        tags.push(tag);
    };
    check_tag().await;
    server.request("PATCH /api/v1/mailbox/test/latest").await;
    check_tag().await;
    server.add_message(2, "test", "\r\n").await;
    check_tag().await;
    server.request(&format!("DELETE /api/v1/mailbox/test/{}", id(2))).await;
    check_tag().await;
    server.request("DELETE /api/v1/mailbox/test").await;
    check_tag().await;
    server.add_message(3, "test", "\r\n").await;
    check_tag().await;

    let tag = server.request("GET /api/v1/mailbox/test/latest").await.header("etag").to_owned();
    server.request("PATCH /api/v1/mailbox/test/latest").await;
    assert_ne!(server.request("GET /api/v1/mailbox/test/latest").await.header("etag"), tag);
}

#[tokio::test]
async fn deleted_message_is_404_despite_etag() {
    let server = TestServer::with_two_messages().await;
    let path = format!("GET /api/v1/mailbox/test/{}", id(0));
    let tag = server.request(&path).await.header("etag").to_owned();
    server.request("DELETE /api/v1/mailbox/test").await;
    server.request(&format!("{path}\nIf-None-Match: {tag}")).await.problem(404);
    server.request(&format!("{path}\nIf-None-Match: *")).await.problem(404);
}

#[tokio::test]
async fn pages_of_a_listing() {
    let server = TestServer::new();
    for number in 0..5 {
        server.add_message(number, "test", "\r\n").await;
    }
    let [one, three] = [id(1), id(3)];
    let table = [
        (String::new(), vec![0, 1, 2, 3, 4]),
        ("?".to_owned(), vec![0, 1, 2, 3, 4]),
        ("?unknown=x&%FF&=&limit2=1".to_owned(), vec![0, 1, 2, 3, 4]),
        ("?limit=2".to_owned(), vec![3, 4]),
        ("?limit=0".to_owned(), vec![]),
        ("?limit=99".to_owned(), vec![0, 1, 2, 3, 4]),
        (format!("?before={three}"), vec![0, 1, 2]),
        (format!("?before={three}&limit=2"), vec![1, 2]),
        (format!("?after={one}"), vec![2, 3, 4]),
        (format!("?after={one}&limit=2"), vec![2, 3]),
        (format!("?after={one}&before={three}"), vec![2]),
        (format!("?after={three}&before={one}"), vec![]),
        (format!("?%61fter={one}&limit=%32"), vec![2, 3]),
        ("?after=0&limit=1".to_owned(), vec![0]),
    ];
    for (query, expected) in table {
        let response = server.request(&format!("GET /api/v1/mailbox/test{query}")).await;
        assert_success(&response);
        assert_eq!(response.numbers(), expected, "{query}");
    }
    for query in ["limit=", "limit=x", "limit=-1", "limit=1e3", "before=latest", "after=%20", "limit=1&limit=1"] {
        let response = server.request(&format!("GET /api/v1/mailbox/test?{query}")).await;
        assert_eq!(response.numbers(), [0, 1, 2, 3, 4], "{query} is ignored");
    }
}

#[tokio::test]
async fn serves_below_base_path_and_root() {
    let equal_to_own_paths = [
        "/api",
        "/api/v1/mailbox",
        "/api/v1/monitor/messages",
        "/api/v2/events",
        "/api/v2/server",
        "/assets",
        "/debug",
        "/debug/vars",
        "/favicon.ico",
        "/livez",
        "/m",
        "/m/james",
        "/metrics",
        "/monitor",
        "/robots.txt",
        "/serve",
        "/serve/greeting",
        "/serve/status",
        "/status",
    ];
    for base in ["/mail", "/a/b"].into_iter().chain(equal_to_own_paths) {
        let server = TestServer::with(Settings { base_path: base.to_owned(), ..Settings::default() });
        server.add_message(0, "test", MAIL).await;
        for prefix in ["", base] {
            let listed = server.request(&format!("GET {prefix}/api/v1/mailbox/test")).await;
            assert_eq!(listed.numbers(), [0], "{prefix}");
            let message = server.request(&format!("GET {prefix}/api/v1/mailbox/test/latest")).await.json();
            let link = message["attachments"][0]["view-link"].as_str().unwrap_or_default().to_owned();
            assert_eq!(
                link,
                format!("http://localhost:9000{base}/mailbox/vattach/test/{}/0/.._logo%22%3Cb%3E.png", id(0))
            );
            let target = link.strip_prefix("http://localhost:9000").unwrap_or_default();
            assert_eq!(server.request(&format!("GET {target}")).await.text(), "abc");
            assert_eq!(
                server.request(&format!("GET {prefix}/")).await.header("content-type"),
                "text/html; charset=utf-8"
            );
        }
        let bare = server.request(&format!("GET {base}")).await;
        assert_eq!((bare.status.as_u16(), bare.header("location")), (308, format!("{base}/").as_str()));
        server.request(&format!("GET {base}x/api/v1/mailbox/test")).await.problem(404);
        assert_eq!(server.request(&format!("GET {base}/livez")).await.text(), "ok\n");
        assert_eq!(server.request(&format!("GET {base}/readyz")).await.text(), "ok\n");
        assert!(server.request(&format!("GET {base}/metrics")).await.text().contains("\nrestante_store_up 1\n"));
    }
}

#[tokio::test]
async fn robots_txt_disallows_everything() {
    let server = TestServer::new();
    let robots = server.request("GET /robots.txt").await;
    assert_eq!(robots.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(robots.text(), "User-agent: *\nDisallow: /\n");
}

#[tokio::test]
async fn health_checks_succeed() {
    let server = TestServer::new();
    for path in ["/livez", "/readyz"] {
        // A kubelet calls the server by its IP address.
        let response = server.request(&format!("GET {path}\nHost: 10.1.2.3:9000")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "ok\n"), "{path}");
        assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(response.header("cache-control"), "no-store");
        server.request(&format!("POST {path}")).await.problem(405);
    }
}
