//! The JSON of the HTML check, in our API and in that of Mailpit. The check itself is tested in `restante_html_check`.

use serde_json::{Value, json};

use crate::support::*;

const NEWSLETTER: &str = "\
Subject: News\r\n\
Content-Type: text/html; charset=utf-8\r\n\
\r\n\
<html><head><style>\r\n\
.button { display: grid }\r\n\
@media screen { p { opacity: 0 } }\r\n\
</style></head>\r\n\
<body><p>News</p><a class=\"button\" href=\"https://example.org/\">Read</a><script>x()</script></body></html>\r\n";

async fn server() -> TestServer {
    let server = TestServer::new();
    server.add_message(0, "test", "Subject: Text\r\n\r\nHello\r\n").await;
    server.add_message(1, "test", NEWSLETTER).await;
    server
}

/// Returns the entry of a feature.
fn find<'a>(list: &'a Value, key: &str, slug: &str) -> &'a Value {
    list.as_array().and_then(|entries| entries.iter().find(|entry| entry[key] == slug)).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn features_have_lines_and_support() {
    let server = server().await;
    let check = server.request("GET /api/v2/messages/latest/html-check").await.json();
    assert_eq!((&check["elements"], &check["truncated"]), (&json!(5), &json!(false)), "{check}");
    assert_eq!(check["score"]["unsupported"].as_f64(), Some(20.0), "one of five elements is a script: {check}");

    let grid = find(&check["features"], "slug", "css-display-grid");
    assert_eq!((&grid["count"], &grid["lines"], &grid["title"]), (&json!(1), &json!([2]), &json!("display:grid")));
    assert_eq!(grid["url"], "https://www.caniemail.com/features/css-display-grid/");
    let outlook = grid["clients"].as_array().and_then(|clients| {
        clients.iter().find(|client| client["family"] == "outlook" && client["platform"] == "windows")
    });
    assert_eq!(outlook.map(|client| &client["support"]), Some(&json!("no")), "{grid}");

    let opacity = find(&check["features"], "slug", "css-opacity");
    assert_eq!((&opacity["count"], &opacity["lines"]), (&json!(1), &json!([3])), "{check}");
    let script = find(&check["features"], "slug", "html-script");
    assert_eq!((&script["url"], script["score"]["unsupported"].as_f64()), (&Value::Null, Some(100.0)), "{check}");

    let worst = &check["clients"][0];
    assert!(worst["unsupported"].as_u64() > Some(0) && worst["family-name"].is_string(), "{worst}");
}

#[tokio::test]
async fn messages_without_html_are_not_checked() {
    let server = TestServer::with_two_messages().await;
    let response = server.request("GET /api/v2/messages/latest/html-check").await;
    assert_eq!(response.problem(404), "The message has no HTML.");
    let response = server.request("GET /api/v1/message/latest/html-check").await;
    assert_eq!((response.status.as_u16(), response.text()), (400, "message does not contain HTML"));
}

/// Mailpit shows such a file as the HTML of the message.
#[tokio::test]
async fn mailpit_checks_inline_files() {
    let source = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n\
        --b\r\nContent-Type: text/html\r\nContent-Disposition: inline; filename=a.html\r\n\r\n<video>\r\n--b--\r\n";
    let server = TestServer::new();
    server.add_message(1, "test", source).await;
    let check = server.request("GET /api/v1/message/latest/html-check").await.json();
    assert_eq!(check["Warnings"][0]["Slug"], "html-video", "{check}");
}

#[tokio::test]
async fn mailpit_check_has_the_features_that_mailpit_finds() {
    let server = server().await;
    let check = server.request("GET /api/v1/message/latest/html-check").await.json();
    let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>().join(" "));
    assert_eq!(keys(&check).as_deref(), Some("Platforms Total Warnings"));
    assert_eq!(keys(&check["Total"]).as_deref(), Some("Nodes Partial Supported Tests Unsupported"));
    assert_eq!((&check["Total"]["Nodes"], check["Total"]["Unsupported"].as_f64()), (&json!(5), Some(20.0)), "{check}");
    assert_eq!(check["Platforms"]["mobile-webmail"], json!(["Gmail"]));

    let mut slugs: Vec<_> =
        check["Warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["Slug"].as_str()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["css-display", "css-display-grid", "html-body", "html-script", "html-style"]);

    let grid = find(&check["Warnings"], "Slug", "css-display-grid");
    let members = "Category Description Keywords NotesByNumber Results Score Slug Tags Title URL";
    assert_eq!(keys(grid).as_deref(), Some(members));
    assert_eq!((&grid["Score"]["Found"], &grid["Category"]), (&json!(1), &json!("css")));
    let gmail = find(&grid["Results"], "Family", "gmail");
    assert_eq!(keys(gmail).as_deref(), Some("Family Name NoteNumber Platform Support Version"));
    assert!(gmail["Name"].as_str().is_some_and(|name| name.starts_with("Gmail Android (")), "{gmail}");
}

#[tokio::test]
async fn mailpit_check_of_an_unknown_message() {
    let response = server().await.request("GET /api/v1/message/17/html-check").await;
    assert_eq!((response.status.as_u16(), response.text()), (404, "404 page not found"));
}
