//! Changes of many messages.

use std::time::Duration;

use restante_store::Page;
use serde_json::json;

use crate::support::accounts::Accounts;
use crate::support::auth_server::AuthServer;
use crate::support::messages::add_copies;
use crate::support::*;

const MESSAGES: &str = "/api/v1/messages";

/// Sends a request with a body of any content type.
async fn send(server: &TestServer, request: &str, body: &str) -> TestResponse {
    server.request_with(request, body.to_owned(), Peer::default()).await
}

/// Returns the numbers of the messages in a mailbox, and those of the unread ones.
async fn state(server: &TestServer, mailbox: &str) -> (Vec<u64>, Vec<u64>) {
    let copies = server.store.list(&mailbox.to_owned().into(), Page::ALL).await.unwrap().messages;
    let number = |copy: &restante_mail::message::Summary| (copy.message.number() - FIRST) / 1_000_000;
    (copies.iter().map(number).collect(), copies.iter().filter(|copy| !copy.seen).map(number).collect())
}

/// Adds messages 0 to 5. The even ones have copies in `ann` and `bob`, the others only in `bob`.
async fn server_with_messages() -> TestServer {
    let server = TestServer::new();
    for number in 0..6 {
        add_copies(&server, number, if number % 2 == 0 { &["ann", "bob"] } else { &["bob"] }, &[]).await;
    }
    server
}

fn ids(numbers: &[u64]) -> serde_json::Value {
    json!(numbers.iter().map(|&number| id(number).to_string()).collect::<Vec<_>>())
}

#[tokio::test]
async fn marks_messages() {
    let server = server_with_messages().await;
    let table: [(serde_json::Value, &[u64]); 8] = [
        (json!({ "Read": true, "IDs": ids(&[1, 2, 2]) }), &[0, 3, 4, 5]),
        (json!({ "read": true, "ids": ["17", "latest", ""] }), &[0, 3, 4, 5]),
        (json!({ "IDs": ids(&[1]) }), &[0, 1, 3, 4, 5]),
        (json!({ "Read": true }), &[]),
        (json!({ "Read": false, "IDs": [], "Search": null }), &[0, 1, 2, 3, 4, 5]),
        (json!({ "Read": true, "Search": "subject:number" }), &[]),
        (json!({ "Read": false, "Search": "subject:3" }), &[3]),
        (json!({ "Read": true, "Search": "is:unread subject:4" }), &[3]),
    ];
    for (body, unread) in table {
        let response = send(&server, &format!("PUT {MESSAGES}"), &body.to_string()).await;
        assert_eq!((response.text(), response.header("content-type")), ("ok", "text/plain"), "{body}");
        assert_eq!(state(&server, "bob").await, (vec![0, 1, 2, 3, 4, 5], unread.to_vec()), "{body}");
    }
}

#[tokio::test]
async fn deletes_messages() {
    let server = server_with_messages().await;
    let table: [(String, &[u64]); 4] = [
        (json!({ "IDs": ids(&[1, 2, 9]) }).to_string(), &[0, 3, 4, 5]),
        (json!({ "IDs": ["17", "x"] }).to_string(), &[0, 3, 4, 5]),
        (format!("{} trailing", json!({ "ids": ids(&[0]) })), &[3, 4, 5]),
        (json!({ "IDs": [] }).to_string(), &[]),
    ];
    for (body, expected) in table {
        let response = send(&server, &format!("DELETE {MESSAGES}\nContent-Type: text/plain"), &body).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "ok"), "{body}");
        assert_eq!(state(&server, "bob").await.0, expected, "{body}");
    }
    for body in ["", " ", "{}", "null", "{\"IDs\":null}", "{\"other\":[\"1\"]}"] {
        let server = server_with_messages().await;
        assert_eq!(send(&server, &format!("DELETE {MESSAGES}"), body).await.text(), "ok", "{body}");
        assert_eq!((state(&server, "ann").await.0, state(&server, "bob").await.0), (vec![], vec![]), "{body}");
    }
}

#[tokio::test]
async fn form_counts_as_no_body() {
    for kind in ["application/x-www-form-urlencoded", "Multipart/Form-Data; boundary=b"] {
        let server = server_with_messages().await;
        let response = send(&server, &format!("DELETE {MESSAGES}\nContent-Type: {kind}"), "ids=1").await;
        assert_eq!((response.text(), state(&server, "bob").await.0), ("ok", vec![]), "{kind}");
    }
}

#[tokio::test]
async fn invalid_requests_change_nothing() {
    let server = server_with_messages().await;
    let many = json!({ "IDs": (0..20_001).map(|id: u64| id.to_string()).collect::<Vec<_>>() }).to_string();
    let table = [
        ("PUT", "", "EOF"),
        ("PUT", "{", "unexpected EOF"),
        ("PUT", "{\"IDs\":[\"1\"],\"Search\":\"x\"}", "You may specify either IDs or a search query, not both"),
        ("PUT", "{\"Search\":\"number before:soon\"}", "Error: a term of the search query is invalid: before:soon"),
        ("PUT", &many, "Error: a request may have at most 20000 IDs"),
        ("DELETE", "[]", "json: cannot unmarshal: invalid type: sequence, expected struct DeleteRequest"),
        ("PUT", "{\"Search\":\"to:\"}", "Error: a term of the search query is invalid: to:"),
        ("PUT", "{\"Search\":\"\\\",\\\"\"}", "Error: no search query"),
        ("DELETE", "ids=1", "invalid JSON: expected value"),
        ("DELETE", "\u{feff}{\"IDs\":[\"1\"]}", "invalid JSON: expected value"),
        ("DELETE", "{\"IDs\":\"1\"}", "json: cannot unmarshal: invalid type: string"),
        ("DELETE", "{\"IDs\":[1]}", "json: cannot unmarshal: invalid type: integer"),
        ("DELETE", &many, "Error: a request may have at most 20000 IDs"),
    ];
    for (method, body, expected) in table {
        let response = send(&server, &format!("{method} {MESSAGES}"), body).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (400, "text/plain"), "{body}");
        assert!(response.text().starts_with(expected), "{method} {body}: {}", response.text());
    }
    let large = format!("{{\"IDs\":[\"{}\"]}}", "1".repeat(1 << 20));
    assert_eq!(send(&server, &format!("DELETE {MESSAGES}"), &large).await.status, 413);
    let all = vec![0, 1, 2, 3, 4, 5];
    assert_eq!(state(&server, "bob").await, (all.clone(), all));
}

type Numbers = &'static [u64];

#[tokio::test]
async fn limited_token_changes_only_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    for number in 0..3 {
        add_copies(server, number, if number < 2 { &["ann", "ci-1"] } else { &["ann"] }, &[]).await;
    }
    let limited = accounts.token(&["ci-*"]).await;
    let all = vec![0, 1, 2];
    let table: [(&str, serde_json::Value, (Numbers, Numbers)); 6] = [
        ("PUT", json!({ "Read": true, "IDs": ids(&[0, 2]) }), (&[0, 1], &[1])),
        ("PUT", json!({ "Read": true }), (&[0, 1], &[])),
        ("PUT", json!({ "Read": false, "Search": "subject:1" }), (&[0, 1], &[1])),
        ("PUT", json!({ "Read": false }), (&[0, 1], &[0, 1])),
        ("DELETE", json!({ "IDs": ids(&[0, 2]) }), (&[1], &[1])),
        ("DELETE", json!({}), (&[], &[])),
    ];
    for (method, body, (left, unread)) in table {
        let response = send(server, &format!("{method} {MESSAGES}\n{limited}"), &body.to_string()).await;
        assert_eq!(response.text(), "ok", "{method} {body}");
        assert_eq!(state(server, "ci-1").await, (left.to_vec(), unread.to_vec()), "{method} {body}");
        assert_eq!(state(server, "ann").await, (all.clone(), all.clone()), "{method} {body}");
    }
}

#[tokio::test]
async fn changes_need_scopes() {
    let auth = AuthServer::new().await;
    let table = [
        ("PUT", "{\"Read\":true}", &auth.reader),
        ("PUT", "{\"Read\":true,\"Search\":\"number\"}", &auth.writer),
        ("DELETE", "", &auth.reader),
    ];
    for (method, body, token) in table {
        let response = send(&auth.server, &format!("{method} {MESSAGES}\nAuthorization: Bearer {token}"), body).await;
        assert_eq!(response.status, 403, "{method} {body}");
    }
    assert_eq!(state(&auth.server, "test").await, (vec![0], vec![0]));
}

#[tokio::test]
async fn other_sites_change_nothing() {
    let server = server_with_messages().await;
    for header in ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"] {
        let response = send(&server, &format!("DELETE {MESSAGES}\nContent-Type: text/plain\n{header}"), "{}").await;
        assert_eq!(response.status, 403, "{header}");
    }
    assert_eq!(state(&server, "bob").await.0.len(), 6);
}
