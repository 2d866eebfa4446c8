//! The API page.

use super::*;

fn between<'t>(text: &'t str, begin: &str, end: &str) -> BTreeSet<&'t str> {
    text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[tokio::test]
async fn page_contains_every_operation() {
    let document = document().await;
    for base in ["", "/mail"] {
        let server = TestServer::with(Settings { base_path: base.to_owned(), ..Settings::default() });
        let page = server.request(&format!("GET {base}/api/docs")).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").starts_with("default-src 'none'; style-src 'self';"));
        let text = page.text();
        assert!(!text.contains("<script") && !text.contains(" style=") && !text.contains(['\u{1}', '\u{2}']));
        let (anchors, links) = (between(text, " id=\"", "\""), between(text, "href=\"#", "\""));
        assert_eq!(links.difference(&anchors).count(), 0, "{links:?} {anchors:?}");
        for (_, _, operation) in operations(&document) {
            assert!(links.contains(operation["operationId"].as_str().expect("an id")), "{}", operation["operationId"]);
        }
        // All files that the page loads exist, relative to its URL.
        for file in between(text, "href=\"../assets", "\"") {
            assert_eq!(server.request(&format!("GET {base}/assets{file}")).await.status, 200, "{file}");
        }
        assert!(text.contains(&format!("http://localhost:9000{base}/api/v1/mailbox/bob")));
        assert!(text.contains(&format!("ws://localhost:9000{base}/api/v2/monitor/messages")));
    }
}

#[tokio::test]
async fn page_contains_requested_url() {
    let server = TestServer::new();
    let page = server.request("GET /api/docs\nHost: [::1]:81").await;
    assert!(page.text().contains("curl &#39;http://[::1]:81/api/v2/mailboxes&#39;"));
    let public = Settings { public_url: Some("https://mail.example.org/x".to_owned()), ..Settings::default() };
    let page = TestServer::with(public).request("GET /api/docs").await;
    assert!(page.text().contains("curl &#39;https://mail.example.org/x/api/v2/mailboxes&#39;"));
    assert!(page.text().contains("websocat wss://mail.example.org/x/api/v2/monitor/messages"));
}
