//! The document for the preview frame, and the headers that isolate it.

use serde_json::json;

use crate::support::*;

const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; \
    style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const POLICY_WITH_REMOTE: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
    img-src data: http: https:; style-src 'unsafe-inline'; font-src data: https:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'";

#[tokio::test]
async fn preview_has_policy() {
    let server = TestServer::with_everything().await;
    let table = [
        ("", POLICY),
        ("?", POLICY),
        ("?remote=0&scheme=light&other=x", POLICY),
        ("?scheme=dark", POLICY),
        ("?remote=1", POLICY_WITH_REMOTE),
        ("?remote=1&scheme=dark", POLICY_WITH_REMOTE),
    ];
    for (query, policy) in table {
        let path = format!("/serve/mailbox/test/latest/html{query}");
        let response = server.request(&format!("GET {path}")).await;
        let again = server.request(&format!("GET {path}\nIf-None-Match: {}", response.header("etag"))).await;
        assert_eq!((response.status.as_u16(), again.status.as_u16(), again.body.len()), (200, 304, 0), "{query}");
        for response in [&response, &again] {
            assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
            assert_eq!(response.header("content-security-policy"), policy, "{query}");
            assert_eq!(response.header("x-frame-options"), "SAMEORIGIN");
            assert_eq!(response.header("referrer-policy"), "no-referrer");
            assert_eq!(response.header("x-content-type-options"), "nosniff");
            assert_eq!(response.header("x-dns-prefetch-control"), "off");
            assert_eq!(response.header("cache-control"), "private, no-cache");
        }
        let document = response.text();
        assert!(document.to_ascii_lowercase().starts_with("<!doctype html>"), "{document}");
        assert!(document.contains("Grüße") && !document.contains("alert"), "{document}");
        assert!(document.contains("src=\"data:image/png;base64,YWJj\""), "{document}");
        let loads = document.contains("src=\"http://tracker.example/x\"");
        assert_eq!(loads, query.contains("remote=1"), "{query}: {document}");
    }
}

#[tokio::test]
async fn preview_embeds_images_by_location() {
    let server = TestServer::new();
    let mail = "Content-Type: multipart/related; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html\r\n\r\n\
        <img src=\"a.gif\"><img src=\"http://example.org/b.gif\"><p style=\"background:url(a.gif)\">x</p>\r\n\
        --b\r\nContent-Type: image/gif\r\nContent-Location: a.gif\r\n\r\nabc\r\n\
        --b\r\nContent-Type: image/gif\r\nContent-Location: http://example.org/\r\n b.gif\r\n\r\nabc\r\n--b--\r\n";
    server.add_message(0, "test", mail).await;
    let preview = server.request("GET /serve/mailbox/test/latest/html").await;
    assert_eq!(preview.text().matches("data:image/gif;base64,YWJj").count(), 3, "{}", preview.text());
    let compat = server.request("GET /serve/mailbox/test/latest").await;
    assert_eq!(compat.text().matches("/mailbox/vattach/test/").count(), 2, "{}", compat.text());
    let details = server.request("GET /api/v2/mailbox/test/latest").await;
    assert_eq!(details.json()["remote"], json!([]), "images in the message are not remote");
}

#[tokio::test]
async fn message_without_html_is_previewed_as_text() {
    let server = TestServer::new();
    server
        .add_message(0, "test", "Subject: x\r\n\r\n<script>alert(1)</script>\r\n\r\n  see https://example.org/\r\n")
        .await;
    let response = server.request("GET /serve/mailbox/test/latest/html").await;
    let document = response.text();
    assert!(document.contains("&lt;script&gt;alert(1)&lt;/script&gt;\n\n  see <a "), "{document}");
    assert!(document.contains("href=\"https://example.org/\"") && document.contains("pre-wrap"), "{document}");
    let details = server.request("GET /api/v2/mailbox/test/latest").await.json();
    assert_eq!((&details["html"], &details["remote"]), (&json!(false), &json!([])));
    assert_eq!(server.request("GET /serve/mailbox/test/latest").await.json()["html"], "");
}
