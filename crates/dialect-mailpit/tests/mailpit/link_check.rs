//! The links of a message.

use serde_json::json;

use super::*;

#[tokio::test]
async fn links_are_listed_without_requests() {
    let server = server();
    let id = server
        .send(&json!({
            "From": {"Email": "a@b.c"},
            "To": [{"Email": "x@y.z"}],
            "Text": "See http://text.example/a and http://html.example",
            "HTML": "<a href=\"http://html.example\">x</a><img src=\"http://not a host/\"><a href=\"http://html.example\">",
        }))
        .await;
    let link = |url: &str, status: &str| json!({"URL": url, "StatusCode": 0, "Status": status});
    let expected = json!({
        "Errors": 1,
        "Links": [
            link("http://html.example", "Not checked"),
            link("http://not a host/", "Invalid URL"),
            link("http://text.example/a", "Not checked"),
        ],
    });
    for id in [id.as_str(), "latest"] {
        assert_eq!(server.request(&format!("GET /api/v1/message/{id}/link-check?follow=true")).await.json(), expected);
    }
    let response = server.request("GET /api/v1/message/1/link-check").await;
    assert_eq!((response.status.as_u16(), response.text()), (404, "404 page not found"));
}

#[tokio::test]
async fn message_without_links_has_an_empty_list() {
    let server = server();
    let id = server.send(&json!({"From": {"Email": "a@b.c"}, "To": [{"Email": "x@y.z"}], "Text": "hello"})).await;
    let report = server.request(&format!("GET /api/v1/message/{id}/link-check")).await.json();
    assert_eq!(report, json!({"Errors": 0, "Links": []}));
}
