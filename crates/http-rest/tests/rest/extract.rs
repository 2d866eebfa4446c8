//! The JSON of extracts: links, codes, unsubscribe links and parts. The extraction itself is tested in
//! `restante_extract`.

use serde_json::{Value, json};

use crate::support::*;

const SIGN_UP: &str = "\
Subject: Welcome\r\n\
List-Unsubscribe: <mailto:off@example.org>, <https://example.org/off?u=1>\r\n\
List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\
List-Id: Shop news <news.example.org>\r\n\
Content-Type: multipart/alternative; boundary=b\r\n\
\r\n\
--b\r\n\
\r\n\
Your \"code\" is 482913. See https://example.org/help.\r\n\
--b\r\n\
Content-Type: text/html; charset=utf-8\r\n\
\r\n\
<a href=\"https://example.org/v?x=1&amp;y=2\"><img src=cid:a alt=\"Verify now\"></a> Order 77120945\r\n\
--b--\r\n";

async fn server() -> TestServer {
    let server = TestServer::new();
    server.add_message(0, "test", SIGN_UP).await;
    server
}

async fn extract(server: &TestServer, kind: &str) -> Value {
    let response = server.request(&format!("GET /api/v2/mailbox/test/latest/{kind}")).await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/json; charset=utf-8"));
    assert!(response.text().ends_with("}\n"), "{}", response.text());
    response.json()
}

#[tokio::test]
async fn links_are_in_message_order() {
    let link = |href: &str, text: &str, alt: Option<&str>, location: &str, kind: &str| json!({"href": href, "text": text, "image-alt": alt, "where": location, "kind": kind, "main": location == "html"});
    let (help, off, mail) = ("https://example.org/help", "https://example.org/off?u=1", "mailto:off@example.org");
    let expected = json!({"links": [
        link("https://example.org/v?x=1&y=2", "Verify now", Some("Verify now"), "html", "http"),
        link(help, help, None, "text", "http"),
        link(mail, mail, None, "header", "mailto"),
        link(off, off, None, "header", "http"),
    ]});
    assert_eq!(extract(&server().await, "links").await, expected);
}

#[tokio::test]
async fn codes_have_surrounding_text() {
    let codes = extract(&server().await, "codes").await;
    let first = &codes["codes"][0];
    assert!(first["score"].as_f64().is_some_and(|score| (0.5..=1.0).contains(&score)), "{codes}");
    let expected = json!({
        "code": "482913",
        "score": first["score"],
        "before": "Your \"code\" is",
        "after": ". See https://example.org/help.",
        "where": "text",
    });
    assert_eq!(*first, expected);
    assert_eq!(codes["codes"].as_array().map(Vec::len), Some(1), "an order number is not a code: {codes}");
}

#[tokio::test]
async fn code_of_the_header_is_first_and_its_defects_are_listed() {
    let server = TestServer::new();
    let origin = "https://example.org";
    let field = format!("OTP-Token: \"731946\"; origin=\"{origin}\"");
    let header = |origin: Option<&str>| {
        let mut code = json!({"code": "731946", "score": 1, "before": "", "after": "", "where": "header"});
        if let Some(origin) = origin {
            code["origin"] = origin.into();
        }
        Some(code)
    };
    let [malformed, not_in_text] = ["Malformed OTP-Token", "OTP-Token Not in Text"];
    let table: [(String, &str, Option<Value>, &[&str]); 6] = [
        (field.clone(), "731 946", header(Some(origin)), &[]),
        (field.clone(), "482913", header(Some(origin)), &[not_in_text]),
        ("OTP-Token: \"731946\"".to_owned(), "731946", header(None), &[malformed]),
        (format!("{field}\r\n{field}"), "731946", None, &[malformed]),
        ("OTP-Token: \"731946\"; origin=\"javascript:alert(1)\"".to_owned(), "731946", None, &[malformed]),
        (format!("OTP-Token: \"{}\"", "7".repeat(100 << 10)), "731946", None, &[malformed]),
    ];
    for (number, (header, code, expected, defects)) in table.into_iter().enumerate() {
        let message = format!("Subject: Hello\r\n{header}\r\n\r\nYour code is {code}.\r\n");
        server.add_message(number as u64, "test", &message).await;
        let codes = extract(&server, "codes").await;
        let codes = codes["codes"].as_array().expect("a list");
        let text_code = codes.iter().find(|code| code["where"] == "text");
        assert_eq!(codes.first(), expected.as_ref().or(text_code), "{header:.80}");
        assert_eq!(codes.len(), if defects == [not_in_text] { 2 } else { 1 }, "{header:.80}");
        let details = server.request("GET /api/v2/mailbox/test/latest").await.json();
        assert_eq!(details["code"], codes[0]);
        let names: Vec<_> = details["defects"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, defects, "{header:.80}");
    }
}

#[tokio::test]
async fn unsubscribe_links() {
    let expected = json!({
        "one-click": true,
        "links": [
            {"href": "mailto:off@example.org", "kind": "mailto"},
            {"href": "https://example.org/off?u=1", "kind": "https"},
        ],
        "list-id": "news.example.org",
    });
    assert_eq!(extract(&server().await, "unsubscribe").await, expected);
    let expected_none = json!({"one-click": false, "links": [], "list-id": null});
    assert_eq!(extract(&TestServer::with_two_messages().await, "unsubscribe").await, expected_none);
}

#[tokio::test]
async fn parts_form_a_tree_and_have_content() {
    let server = TestServer::with_everything().await;
    let parts = extract(&server, "parts").await;
    let parts = parts["parts"].as_array().expect("a list");
    let describe = |part: &Value| {
        let [index, parent, depth] = ["index", "parent", "depth"].map(|name| part[name].to_string());
        let [kind, role] = ["content-type", "role"].map(|name| part[name].as_str().unwrap_or_default());
        format!("{index} in {parent} at {depth}: {kind} as {role}")
    };
    let tree = [
        "0 in null at 0: multipart/mixed as container",
        "1 in 0 at 1: multipart/related as container",
        "2 in 1 at 2: multipart/alternative as container",
        "3 in 2 at 3: text/plain as text",
        "4 in 2 at 3: text/html as html",
        "5 in 1 at 2: image/png as inline",
        "6 in 0 at 1: application/pdf as attachment",
    ];
    assert_eq!(parts.iter().map(describe).collect::<Vec<_>>(), tree);
    let image = json!({
        "index": 5, "parent": 1, "depth": 2, "content-type": "image/png", "charset": null, "encoding": "base64",
        "disposition": "inline", "filename": "../logo\"<b>.png", "content-id": "logo@x", "size": 3, "role": "inline",
    });
    assert_eq!(parts[5], image);
    for part in parts {
        let response = server.request(&format!("GET /api/v2/mailbox/test/latest/parts/{}", part["index"])).await;
        assert_eq!((response.status.as_u16(), json!(response.body.len())), (200, part["size"].clone()), "{part}");
        assert!(response.header("content-security-policy").starts_with("sandbox; default-src 'none'"), "{part}");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn parts_are_served_as_files() {
    let server = TestServer::with_everything().await;
    let table = [
        ("0", "application/octet-stream", "inline; filename=\"part-0.bin\""),
        ("3", "text/plain; charset=iso-8859-1", "inline; filename=\"part-3.txt\""),
        ("4", "text/html; charset=utf-8", "inline; filename=\"part-4.html\""),
        ("6", "application/pdf", "inline; filename=\"attachment-1.pdf\""),
    ];
    for (index, kind, disposition) in table {
        let response = server.request(&format!("GET /api/v2/mailbox/test/latest/parts/{index}")).await;
        assert_eq!((response.header("content-type"), response.header("content-disposition")), (kind, disposition));
    }
    let text = server.request("GET /api/v2/mailbox/test/latest/parts/3").await;
    assert!(text.body.starts_with(b"Gr\xfc\xdfe <"), "{:?}", text.body);
    for index in ["7", "-1", "x", "99999999999999999999"] {
        let detail = server.request(&format!("GET /api/v2/mailbox/test/latest/parts/{index}")).await.problem(404);
        assert_eq!(detail, "The message has no such part.", "{index}");
    }
}

#[tokio::test]
async fn matching_etag_gets_304() {
    let server = server().await;
    let mut tags = Vec::new();
    for path in ["links", "codes", "unsubscribe", "parts", "parts/0", "parts/1"] {
        let request = format!("GET /api/v2/mailbox/test/{}/{path}", id(0));
        let first = server.request(&request).await;
        let tag = first.header("etag").to_owned();
        let again = server.request(&format!("{request}\nIf-None-Match: {tag}")).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
        let cached = server.request(&request).await;
        assert_eq!(cached.body, first.body, "{path}");
        assert!(!tags.contains(&tag), "{path} has the tag of another response");
        tags.push(tag);
    }
}

#[tokio::test]
async fn missing_messages_are_404() {
    let server = server().await;
    for path in ["links", "codes", "unsubscribe", "parts", "parts/0"] {
        server.request(&format!("GET /api/v2/mailbox/test/1/{path}")).await.problem(404);
        server.request(&format!("GET /api/v2/mailbox/a%20b/1/{path}")).await.problem(400);
        server.request(&format!("POST /api/v2/mailbox/test/latest/{path}")).await.problem(405);
    }
}

#[tokio::test]
async fn repetitive_message_has_short_extracts() {
    let server = TestServer::new();
    let body = "<a href=http://x/?code=482913>482913 </a><td>1".repeat(200_000);
    server.add_message(0, "test", &format!("Content-Type: text/html\r\n\r\n{body}")).await;
    assert_eq!(extract(&server, "links").await["links"].as_array().map(Vec::len), Some(1));
    assert!(extract(&server, "codes").await["codes"].as_array().is_some_and(|codes| codes.len() <= 20));
}
