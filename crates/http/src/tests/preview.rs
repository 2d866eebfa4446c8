//! The document for the preview frame, and the headers that isolate it.

use serde_json::json;

use super::*;

const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; \
    style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const POLICY_WITH_REMOTE: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
    img-src data: http: https:; style-src 'unsafe-inline'; font-src data: https:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'";

#[tokio::test]
async fn the_preview_and_its_policy() {
    let house = TestServer::with_everything().await;
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
        let answer = house.request(&format!("GET {path}")).await;
        let again = house.request(&format!("GET {path}\nIf-None-Match: {}", answer.header("etag"))).await;
        assert_eq!((answer.status.as_u16(), again.status.as_u16(), again.body.len()), (200, 304, 0), "{query}");
        for answer in [&answer, &again] {
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
            assert_eq!(answer.header("content-security-policy"), policy, "{query}");
            assert_eq!(answer.header("x-frame-options"), "SAMEORIGIN");
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("x-dns-prefetch-control"), "off");
            assert_eq!(answer.header("cache-control"), "private, no-cache");
        }
        let document = answer.text();
        assert!(document.to_ascii_lowercase().starts_with("<!doctype html>"), "{document}");
        assert!(document.contains("Grüße") && !document.contains("alert"), "{document}");
        assert!(document.contains("src=\"data:image/png;base64,YWJj\""), "{document}");
        let loads = document.contains("src=\"http://tracker.example/x\"");
        assert_eq!(loads, query.contains("remote=1"), "{query}: {document}");
    }
}

#[tokio::test]
async fn a_page_sent_as_a_mail_has_its_images() {
    let house = TestServer::new();
    let mail = "Content-Type: multipart/related; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html\r\n\r\n\
        <img src=\"a.gif\"><img src=\"http://example.org/b.gif\"><p style=\"background:url(a.gif)\">x</p>\r\n\
        --b\r\nContent-Type: image/gif\r\nContent-Location: a.gif\r\n\r\nabc\r\n\
        --b\r\nContent-Type: image/gif\r\nContent-Location: http://example.org/\r\n b.gif\r\n\r\nabc\r\n--b--\r\n";
    house.put(0, "test", mail).await;
    let preview = house.request("GET /serve/mailbox/test/latest/html").await;
    assert_eq!(preview.text().matches("data:image/gif;base64,YWJj").count(), 3, "{}", preview.text());
    let compat = house.request("GET /serve/mailbox/test/latest").await;
    assert_eq!(compat.text().matches("/mailbox/vattach/test/").count(), 2, "{}", compat.text());
    let details = house.request("GET /api/v2/mailbox/test/latest").await;
    assert_eq!(details.json()["remote"], json!([]), "nobody has to be asked for what the mail brings along");
}

#[tokio::test]
async fn a_mail_without_html_is_previewed_as_its_text() {
    let house = TestServer::new();
    house.put(0, "test", "Subject: x\r\n\r\n<script>alert(1)</script>\r\n\r\n  see https://example.org/\r\n").await;
    let answer = house.request("GET /serve/mailbox/test/latest/html").await;
    let document = answer.text();
    assert!(document.contains("&lt;script&gt;alert(1)&lt;/script&gt;\n\n  see <a "), "{document}");
    assert!(document.contains("href=\"https://example.org/\"") && document.contains("pre-wrap"), "{document}");
    let details = house.request("GET /api/v2/mailbox/test/latest").await.json();
    assert_eq!((&details["html"], &details["remote"]), (&json!(false), &json!([])));
    assert_eq!(house.request("GET /serve/mailbox/test/latest").await.json()["html"], "");
}
