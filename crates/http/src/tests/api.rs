//! The handlers of version 1 of the REST API, compared byte for byte.

use super::*;

fn assert_success(answer: &TestResponse) {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(answer.header("expires"), "-1");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
}

#[tokio::test]
async fn a_listing() {
    let house = TestServer::with_two_messages().await;
    // The second response comes from the cache.
    for _ in 0..2 {
        let answer = house.request("GET /api/v1/mailbox/test").await;
        assert_success(&answer);
        assert_eq!(answer.text(), format!("[{{{}}},{{{}}}]\n", summary(0, 53), summary(1, 59)));
    }
}

#[tokio::test]
async fn a_listing_of_many() {
    let house = TestServer::new();
    for number in 0..2000 {
        house.put(number, "test", "\r\n").await;
    }
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.numbers(), (0..2000).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_unused_mailbox_is_empty() {
    let house = TestServer::new();
    let answer = house.request("GET /api/v1/mailbox/nobody").await;
    assert_success(&answer);
    assert_eq!(answer.text(), "[]\n");
    let answer = house.request("DELETE /api/v1/mailbox/nobody").await;
    assert_success(&answer);
    assert_eq!(answer.text(), "\"OK\"\n");
}

#[tokio::test]
async fn a_message() {
    let house = TestServer::with_everything().await;
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
        let answer = house.request(&format!("GET /api/v1/mailbox/test/{id}")).await;
        assert_success(&answer);
        assert_eq!(answer.text(), expected);
    }
}

#[tokio::test]
async fn a_source_is_byte_exact() {
    let house = TestServer::new();
    let odd = "A: b\nno such\r line\r\n\r\n.\r\n\u{0}Grüße";
    house.put(0, "test", odd).await;
    for id in ["latest", "1794699770123456"] {
        let answer = house.request(&format!("GET /api/v1/mailbox/test/{id}/source")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/plain");
        assert_eq!(answer.header("expires"), "-1");
        assert_eq!(answer.text(), format!("Return-Path: <a@example.org>\r\n{odd}"));
        assert_eq!(answer.header("content-length"), answer.body.len().to_string());
        let listed = house.request("GET /api/v1/mailbox/test").await.json();
        assert_eq!(listed[0]["size"], answer.body.len());
    }
}

#[tokio::test]
async fn deleting() {
    let house = TestServer::with_two_messages().await;
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
        let answer = house.request(&format!("DELETE /api/v1/mailbox/{target}")).await;
        if status == 200 {
            assert_success(&answer);
            assert_eq!(answer.text(), "\"OK\"\n", "{target}");
        } else {
            assert_eq!(answer.problem(status), "The mailbox has no such message.", "{target}");
        }
    }
}

#[tokio::test]
async fn what_is_deleted_is_gone_also_from_the_cache() {
    let house = TestServer::with_two_messages().await;
    let one = format!("GET /api/v1/mailbox/test/{}", id(0));
    assert_eq!(house.request(&one).await.status, 200);
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.numbers(), [0, 1]);
    house.request("DELETE /api/v1/mailbox/test").await;
    house.request(&one).await.problem(404);
    house.request("GET /api/v1/mailbox/test/latest").await.problem(404);
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.text(), "[]\n");
}

#[tokio::test]
async fn marking() {
    let house = TestServer::with_two_messages().await;
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
        let answer = house.request_with(&request, body.to_owned(), Peer::default()).await;
        if status == 200 {
            assert_success(&answer);
            assert_eq!(answer.text(), "\"OK\"\n");
        } else {
            answer.problem(status);
        }
        let message = house.request("GET /api/v1/mailbox/test/latest").await.json();
        assert_eq!(message["seen"], seen, "after {body:.40}");
        let listed = house.request("GET /api/v1/mailbox/test").await.json();
        assert_eq!(listed[1]["seen"], seen, "after {body:.40}");
    }
}

#[tokio::test]
async fn names_in_all_the_forms_that_clients_send() {
    let house = TestServer::new();
    house.put(0, "james", "\r\n").await;
    house.put(1, "a/b", "\r\n").await;
    house.put(2, "jöran", "\r\n").await;
    house.put(3, "a%b", "\r\n").await;
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
            let answer = house.request(&format!("GET /api/v1/mailbox/{path}")).await;
            assert_eq!(answer.json()["id"], id(number).to_string(), "{path}");
        }
        assert_eq!(house.request(&format!("GET /api/v1/mailbox/{name}")).await.numbers(), [number], "{name}");
    }
}

#[tokio::test]
async fn names_that_are_none() {
    let house = TestServer::new();
    for name in ["%20", "..%2F..%2Fetc", "a%20b", "%00", "%FF", "%22a%20b%22", &"a".repeat(256)] {
        let path = format!("/api/v1/mailbox/{name}");
        for request in [format!("GET {path}"), format!("DELETE {path}"), format!("GET {path}/latest/source")] {
            let detail = house.request(&request).await.problem(400);
            assert!(
                detail.starts_with("This is not a mailbox name: ") || detail == "The path is not UTF-8.",
                "{detail}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_there() {
    let house = TestServer::with_two_messages().await;
    let zero = format!("test/0{}", id(0));
    for path in ["test/1", "test/x", "test/LATEST", "empty/latest", "test/-1", "test/1/source", "test/%20", &zero] {
        let detail = house.request(&format!("GET /api/v1/mailbox/{path}")).await.problem(404);
        assert_eq!(detail, "The mailbox has no such message.", "{path}");
    }
    for path in ["/api/v1/mailbox/", "/api/v1/mailbox", "/api/v1/mailbox/test/", "/api/v3/x", "/api", "/x", "/X/"] {
        for method in ["GET", "DELETE", "OPTIONS"] {
            let detail = house.request(&format!("{method} {path}")).await.problem(404);
            assert_eq!(detail, "There is nothing at this path.", "{path}");
        }
    }
}

#[tokio::test]
async fn methods_that_a_path_does_not_have() {
    let house = TestServer::with_two_messages().await;
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
        let answer = house.request(request).await;
        answer.problem(405);
        assert_eq!(answer.header("allow"), allow, "{request}");
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let house = TestServer::with_two_messages().await;
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
        let get = house.request(&format!("GET {path}")).await;
        let head = house.request(&format!("HEAD {path}")).await;
        assert_eq!((head.status, &head.headers), (get.status, &get.headers), "{path}");
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn a_client_that_knows_the_answer_gets_none() {
    let house = TestServer::with_two_messages().await;
    for path in ["test", "test?limit=1", "test/latest", "test/latest/source", "empty"] {
        let first = house.request(&format!("GET /api/v1/mailbox/{path}")).await;
        let tag = first.header("etag");
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "{tag}");
        for known in [tag, "*", &format!("W/{tag}"), &format!("\"x\", {tag}")] {
            for method in ["GET", "HEAD"] {
                let again = house.request(&format!("{method} /api/v1/mailbox/{path}\nIf-None-Match: {known}")).await;
                assert_eq!(again.status, 304, "{path} {known}");
                assert!(again.body.is_empty());
                let mut expected = first.headers.clone();
                expected.remove("content-length");
                assert_eq!(again.headers, expected, "{path} {known}");
            }
        }
        let other = house.request(&format!("GET /api/v1/mailbox/{path}\nIf-None-Match: \"x\"")).await;
        assert_eq!((other.status, other.body), (first.status, first.body));
    }
}

#[tokio::test]
async fn every_change_changes_the_tag() {
    let house = TestServer::with_two_messages().await;
    let mut tags = Vec::new();
    let mut look = async || {
        let tag = house.request("GET /api/v1/mailbox/test").await.header("etag").to_owned();
        assert!(!tags.contains(&tag), "{tag} again");
        tags.push(tag);
    };
    look().await;
    house.request("PATCH /api/v1/mailbox/test/latest").await;
    look().await;
    house.put(2, "test", "\r\n").await;
    look().await;
    house.request(&format!("DELETE /api/v1/mailbox/test/{}", id(2))).await;
    look().await;
    house.request("DELETE /api/v1/mailbox/test").await;
    look().await;
    house.put(3, "test", "\r\n").await;
    look().await;

    let tag = house.request("GET /api/v1/mailbox/test/latest").await.header("etag").to_owned();
    house.request("PATCH /api/v1/mailbox/test/latest").await;
    assert_ne!(house.request("GET /api/v1/mailbox/test/latest").await.header("etag"), tag);
}

#[tokio::test]
async fn a_known_tag_does_not_bring_back_the_deleted() {
    let house = TestServer::with_two_messages().await;
    let path = format!("GET /api/v1/mailbox/test/{}", id(0));
    let tag = house.request(&path).await.header("etag").to_owned();
    house.request("DELETE /api/v1/mailbox/test").await;
    house.request(&format!("{path}\nIf-None-Match: {tag}")).await.problem(404);
    house.request(&format!("{path}\nIf-None-Match: *")).await.problem(404);
}

#[tokio::test]
async fn pages() {
    let house = TestServer::new();
    for number in 0..5 {
        house.put(number, "test", "\r\n").await;
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
        let answer = house.request(&format!("GET /api/v1/mailbox/test{query}")).await;
        assert_success(&answer);
        assert_eq!(answer.numbers(), expected, "{query}");
    }
    for query in ["limit=", "limit=x", "limit=-1", "limit=1e3", "before=latest", "after=%20", "limit=1&limit=1"] {
        let answer = house.request(&format!("GET /api/v1/mailbox/test?{query}")).await;
        assert_eq!(answer.numbers(), [0, 1, 2, 3, 4], "{query} is ignored");
    }
}

#[tokio::test]
async fn the_base_path_and_the_root() {
    let like_our_own = [
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
    for base in ["/mail", "/a/b"].into_iter().chain(like_our_own) {
        let house = TestServer::with(Settings { base_path: base.to_owned(), ..Settings::default() });
        house.put(0, "test", MAIL).await;
        for prefix in ["", base] {
            let listed = house.request(&format!("GET {prefix}/api/v1/mailbox/test")).await;
            assert_eq!(listed.numbers(), [0], "{prefix}");
            let message = house.request(&format!("GET {prefix}/api/v1/mailbox/test/latest")).await.json();
            let link = message["attachments"][0]["view-link"].as_str().unwrap_or_default().to_owned();
            assert_eq!(
                link,
                format!("http://localhost:9000{base}/mailbox/vattach/test/{}/0/.._logo%22%3Cb%3E.png", id(0))
            );
            let target = link.strip_prefix("http://localhost:9000").unwrap_or_default();
            assert_eq!(house.request(&format!("GET {target}")).await.text(), "abc");
            assert_eq!(
                house.request(&format!("GET {prefix}/")).await.header("content-type"),
                "text/html; charset=utf-8"
            );
        }
        let bare = house.request(&format!("GET {base}")).await;
        assert_eq!((bare.status.as_u16(), bare.header("location")), (308, format!("{base}/").as_str()));
        house.request(&format!("GET {base}x/api/v1/mailbox/test")).await.problem(404);
        assert_eq!(house.request(&format!("GET {base}/livez")).await.text(), "ok\n");
        assert_eq!(house.request(&format!("GET {base}/readyz")).await.text(), "ok\n");
        assert!(house.request(&format!("GET {base}/metrics")).await.text().contains("\nrestante_store_up 1\n"));
    }
}

#[tokio::test]
async fn robots_are_sent_away() {
    let house = TestServer::new();
    let robots = house.request("GET /robots.txt").await;
    assert_eq!(robots.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(robots.text(), "User-agent: *\nDisallow: /\n");
}

#[tokio::test]
async fn what_a_supervisor_asks() {
    let house = TestServer::new();
    for path in ["/livez", "/readyz"] {
        // A kubelet calls the server by its IP address.
        let answer = house.request(&format!("GET {path}\nHost: 10.1.2.3:9000")).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "ok\n"), "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-store");
        house.request(&format!("POST {path}")).await.problem(405);
    }
}
