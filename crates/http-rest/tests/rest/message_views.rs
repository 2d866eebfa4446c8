//! Messages for web interfaces: the two JSON forms, the attachment counts, and what they have in common with the
//! preview. The content of the preview is tested in `preview.rs`.

use serde_json::{Map, Value, json};

use crate::support::*;

/// Returns the JSON of the message with everything: its summary, and these fields.
fn with_summary(rest: &Value) -> Value {
    let summary: Value = serde_json::from_str(&format!("{{{}}}", summary(0, MAIL.len() + 30))).unwrap();
    [&summary, rest].into_iter().flat_map(|fields| fields.as_object().unwrap().clone()).collect()
}

/// The paths of all representations of a message.
const FORMS: [&str; 4] = [
    "/serve/mailbox/test/{id}",
    "/serve/mailbox/test/{id}/html",
    "/serve/mailbox/test/{id}/source",
    "/api/v2/mailbox/test/{id}",
];

#[tokio::test]
async fn message_for_inbucket_page() {
    let server = TestServer::with_everything().await;
    let response = server.request("GET /serve/mailbox/test/latest").await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/json; charset=utf-8"));
    assert_eq!(response.header("expires"), "-1");
    assert!(response.text().ends_with("}\n"));
    let mut message = response.json();
    let html = message["html"].take();
    let html = html.as_str().unwrap();
    assert!(html.contains("<p>Grüße</p>") && !html.contains("alert"), "{html}");
    let link = format!("src=\"/mailbox/vattach/test/{}/0/.._logo%22%3Cb%3E.png\"", id(0));
    assert!(html.contains(&link), "{html}");
    let text = message["text"].take();
    let text = text.as_str().unwrap();
    assert!(text.starts_with("Grüße &lt;&quot;x&quot;&gt; <a "), "{text}");
    assert!(text.contains(" href=\"http://example.org/?a&amp;b\""), "{text}");
    assert!(text.contains(" target=\"_blank\"") && text.contains(" rel=\"noopener noreferrer\""), "{text}");
    let expected = json!({
        "header": {
            "Return-Path": ["<a@example.org>"],
            "From": ["A <a@example.org>"],
            "Subject": ["=?utf-8?q?Gr=C3=BC=C3=9Fe?="],
            "X-Twice": ["one two", "three"],
            "Content-Type": ["multipart/mixed; boundary=b"],
        },
        "text": null,
        "html": null,
        "attachments": [
            {"id": "0", "filename": ".._logo\"<b>.png", "content-type": "image/png"},
            {"id": "1", "filename": "attachment-1.pdf", "content-type": "application/pdf"},
        ],
        "errors": [{
            "name": "Malformed Base64",
            "detail": "The part application/pdf cannot be decoded completely. Places with errors: 1.",
            "severe": true,
        }],
    });
    assert_eq!(message, with_summary(&expected));
}

#[tokio::test]
async fn text_lines_become_line_breaks() {
    let server = TestServer::new();
    server.add_message(0, "test", "Subject: x\r\n\r\nHello,\r\n\r\nsee http://example.org/\r\n<b>\r\n").await;
    let message = server.request("GET /serve/mailbox/test/latest").await.json();
    let link = "<a href=\"http://example.org/\" target=\"_blank\" rel=\"noopener noreferrer\">http://example.org/</a>";
    assert_eq!(message["text"], format!("Hello,<br/>\n<br/>\nsee {link}<br/>\n&lt;b&gt;<br/>\n"));
    let message = server.request("GET /api/v2/mailbox/test/latest").await.json();
    assert_eq!(message["text"], "Hello,\n\nsee http://example.org/\n<b>\n");
}

#[tokio::test]
async fn inbucket_links_do_not_depend_on_host() {
    let table = [
        ("", None, "src=\\\"/mailbox/vattach/"),
        ("/mail", None, "src=\\\"/mail/mailbox/vattach/"),
        ("/mail", Some("https://mail.example.org/x"), "src=\\\"https://mail.example.org/x/mailbox/vattach/"),
    ];
    for (base_path, public_url, link) in table {
        let public_url = public_url.map(str::to_owned);
        let server = TestServer::with(Settings { base_path: base_path.to_owned(), public_url, ..Settings::default() });
        server.add_message(0, "test", MAIL).await;
        for host in ["localhost:1", "127.0.0.1:2"] {
            let response = server.request(&format!("GET /serve/mailbox/test/latest\nHost: {host}")).await;
            assert!(response.text().contains(link), "{base_path} {host}: {}", response.text());
        }
    }
}

#[tokio::test]
async fn message_details() {
    let server = TestServer::with_everything().await;
    let response = server.request("GET /api/v2/mailbox/test/latest").await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/json; charset=utf-8"));
    let mut message = response.json();
    let parts = message["parts"].take();
    let expected = json!({
        "text": "Grüße <\"x\"> http://example.org/?a&b",
        "html": true,
        "remote": ["tracker.example"],
        "headers": [
            {"name": "Return-Path", "value": "<a@example.org>"},
            {"name": "From", "value": "A <a@example.org>"},
            {"name": "SUBJECT", "value": "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "decoded": "Grüße"},
            {"name": "X-Twice", "value": "one two"},
            {"name": "x-twice", "value": "three"},
            {"name": "Content-Type", "value": "multipart/mixed; boundary=b"},
        ],
        "attachments": [
            {
                "index": 0, "filename": ".._logo\"<b>.png", "content-type": "image/png", "size": 3,
                "md5": "900150983cd24fb0d6963f7d28e17f72", "content-id": "logo@x",
                "inline": true,
            },
            {
                "index": 1, "filename": "attachment-1.pdf", "content-type": "application/pdf", "size": 3,
                "md5": "900150983cd24fb0d6963f7d28e17f72", "content-id": null,
                "inline": false,
            },
        ],
        "parts": null,
        "defects": [{
            "name": "Malformed Base64",
            "detail": "The part application/pdf cannot be decoded completely. Places with errors: 1.",
            "severe": true,
        }],
        "code": null,
        "main-link": {
            "href": "http://example.org/?a&b", "text": "http://example.org/?a&b", "image-alt": null, "where": "text",
            "kind": "http", "main": true,
        },
        "unsubscribe": {"one-click": false, "links": [], "list-id": null},
    });
    assert_eq!(message, with_summary(&expected));

    // The size of a multipart is not checked. The parts in it are in the following rows.
    let text = "Gr=FC=DFe <\"x\"> http://example.org/?a&b".len();
    let html = MAIL.lines().find(|line| line.starts_with("<p>")).map(str::len);
    let expected = json!([
        [0, "multipart/mixed", null, "7bit", null, null, null, "multipart", null, null],
        [1, "multipart/related", null, "7bit", null, null, null, "multipart", null, null],
        [2, "multipart/alternative", null, "7bit", null, null, null, "multipart", null, null],
        [3, "text/plain", "iso-8859-1", "quoted-printable", null, null, null, "text", null, text],
        [3, "text/html", "utf-8", "7bit", null, null, null, "html", null, html],
        [2, "image/png", null, "base64", "inline", "../logo\"<b>.png", "logo@x", "attachment", 0, 4],
        [1, "application/pdf", null, "base64", null, null, null, "attachment", 1, 5],
    ]);
    let row = |part: &Value| {
        assert_eq!(part.as_object().map(Map::len), Some(10));
        let size = if part["role"] == "multipart" { &Value::Null } else { &part["size"] };
        let names = ["depth", "content-type", "charset", "encoding", "disposition", "filename", "content-id", "role"];
        let fields = names.iter().map(|name| &part[name]).chain([&part["attachment"], size]);
        fields.cloned().collect::<Value>()
    };
    assert_eq!(parts.as_array().unwrap().iter().map(row).collect::<Value>(), expected);
}

#[tokio::test]
async fn rejects_invalid_queries() {
    let server = TestServer::with_everything().await;
    let wrong = "The parameter scheme must be light or dark.";
    let many = (1..=201).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    let table = [
        ("serve/mailbox/test/latest/html?remote=2", "The parameter remote must be 0 or 1."),
        ("serve/mailbox/test/latest/html?remote=", "The parameter remote must be 0 or 1."),
        ("serve/mailbox/test/latest/html?remote=1&remote=1", "The parameter remote is given twice."),
        ("serve/mailbox/test/latest/html?scheme=Dark", wrong),
        ("serve/mailbox/test/latest/html?scheme=%22%3E%3Cscript%3E", wrong),
        ("serve/mailbox/test/1/html?scheme=blue", wrong),
        ("api/v2/mailbox/test/attachments", "The parameter ids is missing."),
        ("api/v2/mailbox/test/attachments?ids=latest", "The parameter ids must be a list of ids separated by commas."),
        ("api/v2/mailbox/test/attachments?ids=1,02", "The parameter ids must be a list of ids separated by commas."),
        ("api/v2/mailbox/test/attachments?ids=1&ids=2", "The parameter ids is given twice."),
        (
            &format!("api/v2/mailbox/test/attachments?ids={many}"),
            "The parameter ids must not contain more than 200 messages.",
        ),
    ];
    for (target, sentence) in table {
        assert_eq!(server.request(&format!("GET /{target}")).await.problem(400), sentence, "{target}");
    }
}

#[tokio::test]
async fn representations_by_id_and_latest_until_deletion() {
    let server = TestServer::with_everything().await;
    server.add_message(1, "test", "Subject: later\r\n\r\nLater\r\n").await;
    let get = async |form: &str, id: &str| server.request(&format!("GET {}", form.replace("{id}", id))).await;
    let (one, two) = (id(0).to_string(), id(1).to_string());
    for form in FORMS {
        let (first, second) = (get(form, &one).await, get(form, &two).await);
        let latest = get(form, "latest").await;
        assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200), "{form}");
        assert_eq!((&latest.body, latest.header("etag")), (&second.body, second.header("etag")), "{form}");
        assert_ne!(first.header("etag"), second.header("etag"), "{form}");
        for absent in ["1", "0", "x", "%20", &format!("0{one}")] {
            assert_eq!(get(form, absent).await.problem(404), "The mailbox has no such message.", "{form} {absent}");
        }
        let elsewhere = form.replace("test", "a%20b").replace("{id}", &one);
        server.request(&format!("GET {elsewhere}")).await.problem(400);
        let by_address = form.replace("test", "Test+x%40example.org").replace("{id}", &one);
        assert_eq!(server.request(&format!("GET {by_address}")).await.body, first.body, "{form}");
        server.request(&format!("DELETE {}", form.replace("{id}", &one))).await.problem(405);
    }
    let source = get("/serve/mailbox/test/{id}/source", &one).await;
    assert_eq!(source.text(), format!("Return-Path: <a@example.org>\r\n{MAIL}"));
    assert_eq!(source.header("content-type"), "text/plain");
    server.request(&format!("DELETE /api/v1/mailbox/test/{one}")).await;
    for form in FORMS {
        get(form, &one).await.problem(404);
    }
}

#[tokio::test]
async fn marking_changes_json_but_not_preview() {
    let server = TestServer::with_everything().await;
    let mut before = Vec::new();
    for form in FORMS {
        before.push(server.request(&format!("GET {}", form.replace("{id}", "latest"))).await);
    }
    server.request("PATCH /api/v1/mailbox/test/latest").await;
    for (form, before) in FORMS.iter().zip(before) {
        let (path, tag) = (form.replace("{id}", "latest"), before.header("etag"));
        let after = server.request(&format!("GET {path}\nIf-None-Match: {tag}")).await;
        if before.header("content-type").starts_with("application/json") {
            assert_eq!((after.status.as_u16(), &after.json()["seen"]), (200, &json!(true)), "{form}");
        } else {
            assert_eq!(after.status, 304, "{form}");
        }
    }
}

#[tokio::test]
async fn attachment_counts() {
    let server = TestServer::new();
    let image = format!("Content-Type: image/png\r\n\r\n{}", "x".repeat(1 << 20));
    for (number, mailbox, body) in
        [(0, "test", MAIL), (1, "test", "Subject: none\r\n\r\nHello\r\n"), (2, "test", &image), (3, "other", &image)]
    {
        server.add_message_with_details(number, mailbox, body).await;
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(id);
    let table = [
        (format!("{a}"), format!("{{\"{a}\":1}}\n")),
        (format!("{c},{b},{a}"), format!("{{\"{a}\":1,\"{b}\":0,\"{c}\":1}}\n")),
        (format!("{a},1,{a},{d},,{b},"), format!("{{\"{a}\":1,\"{b}\":0}}\n")),
        (format!("{a}%2C{b}"), format!("{{\"{a}\":1,\"{b}\":0}}\n")),
        (String::new(), "{}\n".to_owned()),
    ];
    for (ids, expected) in table {
        let response = server.request(&format!("GET /api/v2/mailbox/test/attachments?ids={ids}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, expected.as_str()), "{ids}");
        assert_eq!(response.header("content-type"), "application/json; charset=utf-8");
    }
    let target = format!("/api/v2/mailbox/test/attachments?ids={a},{b}");
    let tag = server.request(&format!("GET {target}")).await.header("etag").to_owned();
    assert_eq!(server.request(&format!("GET {target}\nIf-None-Match: {tag}")).await.status, 304);
    server.request(&format!("DELETE /api/v1/mailbox/test/{a}")).await;
    let response = server.request(&format!("GET {target}\nIf-None-Match: {tag}")).await;
    assert_eq!(response.text(), format!("{{\"{b}\":0}}\n"));
}

#[tokio::test(start_paused = true)]
async fn expensive_work_waits_for_permit() {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let state = Arc::new(Server::new(Arc::new(mailroom), Settings::default()));
    let server = TestServer { store, router: build_router(state.clone()) };
    for (number, mailbox, words) in [(0, "test", 50), (1, "quick", 1)] {
        let html = "<b>Hello</b>".repeat(words);
        server.add_message(number, mailbox, &format!("Content-Type: text/html\r\n\r\n{html}")).await;
    }
    let paths = ["serve/mailbox/{}/latest", "serve/mailbox/{}/latest/html", "api/v2/mailbox/{}/latest"];
    let [slow, quick] = ["test", "quick"].map(|name| paths.map(|path| format!("GET /{}", path.replace("{}", name))));

    let permits = u32::try_from(state.renderer.work_permits.available_permits()).unwrap();
    let permits_held = state.renderer.work_permits.clone().acquire_many_owned(permits).await.unwrap();
    for request in &slow {
        assert_eq!(server.request(request).await.status, 503, "{request}");
    }
    for request in &quick {
        assert_eq!(server.request(request).await.status, 200, "{request}");
    }
    drop(permits_held);
    for request in &slow {
        assert_eq!(server.request(request).await.status, 200, "{request}");
    }
}

#[tokio::test]
async fn long_subject_is_truncated_only_in_lists() {
    let server = TestServer::with(Settings { max_message_bytes: 200_000, ..Settings::default() });
    let subject = "x".repeat(130_000);
    let request = "POST /api/v2/mailbox/test\nContent-Type: message/rfc822";
    let mail = format!("From: ann@example.org\r\nSubject: {subject}\r\n\r\nHello\r\n");
    assert_eq!(server.request_with(request, mail, Peer::default()).await.status, 201);
    let id = server.request("GET /api/v1/mailbox/test").await.json()[0]["id"].as_str().unwrap().to_owned();
    let table = [
        ("/api/v1/mailbox/test", "/0/subject", 4096),
        ("/api/v2/messages", "/messages/0/subject", 4096),
        ("/api/v1/messages", "/messages/0/Subject", 4096),
        ("/api/v1/mailbox/test/latest", "/subject", 130_000),
        ("/serve/mailbox/test/latest", "/subject", 130_000),
        ("/api/v2/mailbox/test/latest", "/subject", 130_000),
        (&format!("/api/v1/message/{id}"), "/Subject", 130_000),
    ];
    for (path, pointer, length) in table {
        let json = server.request(&format!("GET {path}")).await.json();
        let found = json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(found == &subject[..length], "{path}: {}", found.len());
    }
}

#[tokio::test]
async fn deeply_nested_message_shows_its_outer_text() {
    let server = TestServer::new();
    let level = |n| format!("--b{n}_\r\nContent-Type: multipart/mixed; boundary=b{}_\r\n\r\n", n + 1);
    let levels: String = (0..60).map(level).collect();
    let inner = format!("{levels}--b60_\r\n\r\ninner\r\n");
    let outer = "--b0_\r\n\r\nouter text\r\n";
    let start = "Content-Type: multipart/mixed; boundary=b0_\r\n\r\n";
    for (number, source, expected) in
        [(0, format!("{start}{outer}{inner}"), "outer text"), (1, start.to_owned() + &inner, "inner")]
    {
        server.add_message(number, "test", &source).await;
        let table = [
            ("/api/v1/mailbox/test/latest", "/body/text"),
            ("/serve/mailbox/test/latest", "/text"),
            ("/api/v2/mailbox/test/latest", "/text"),
            ("/api/v1/message/latest", "/Text"),
        ];
        for (path, pointer) in table {
            let json = server.request(&format!("GET {path}")).await.json();
            let text = json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            assert!(text.contains(expected), "{path}: {text}");
        }
    }
}
