//! Changes of many messages in one request.

use axum::body::Body;

use crate::support::{Peer, TestResponse, TestServer, id};

async fn post(server: &TestServer, path: &str, body: impl Into<Body>) -> TestResponse {
    let request = format!("POST /api/v2/mailbox/{path}\nContent-Type: application/json");
    server.request_with(&request, body, Peer::default()).await
}

async fn server() -> TestServer {
    let server = TestServer::new();
    for number in 0..4 {
        server.add_message(number, "test", "Subject: x\r\n\r\n").await;
    }
    server
}

/// Returns the ids of these messages, one of a message that does not exist, and a text that is not an id.
fn ids(numbers: &[u64]) -> String {
    let known = numbers.iter().map(|&number| id(number).to_string());
    let ids: Vec<_> = known.chain(["17".to_owned(), "latest".to_owned()]).collect();
    serde_json::json!(ids).to_string()
}

#[tokio::test]
async fn deletes_many_messages() {
    let server = server().await;
    let response = post(&server, "Test+x@example.org/delete", format!("{{\"ids\":{}}}", ids(&[0, 2, 2]))).await;
    assert_eq!((response.status.as_u16(), response.text()), (200, "{\"deleted\":2}\n"));
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.numbers(), [1, 3]);
    let again = post(&server, "test/delete", format!("{{\"ids\":{}}}", ids(&[0]))).await;
    assert_eq!(again.text(), "{\"deleted\":0}\n");
}

#[tokio::test]
async fn marks_many_messages() {
    let server = server().await;
    for (numbers, seen, marked) in [(&[0, 1, 2][..], true, 3), (&[1], false, 1), (&[], true, 0)] {
        let body = format!("{{\"seen\":{seen},\"ids\":{}}}", ids(numbers));
        let response = post(&server, "test/mark", body).await;
        assert_eq!(response.text(), format!("{{\"marked\":{marked}}}\n"));
    }
    let list = server.request("GET /api/v1/mailbox/test").await.json();
    let seen: Vec<_> = list.as_array().unwrap().iter().map(|message| message["seen"].as_bool().unwrap()).collect();
    assert_eq!(seen, [true, false, true, false]);
}

#[tokio::test]
async fn invalid_bodies_change_nothing() {
    let server = server().await;
    let (delete, mark) = ("test/delete", "test/mark");
    let table = [
        (delete, String::new(), 422, "must be {\"ids\":"),
        (delete, "[]".to_owned(), 422, "must be {\"ids\":"),
        (delete, format!("{{\"ids\":[{}]}}", id(0)), 422, "with ids as strings"),
        (delete, "{\"ids\":".to_owned(), 422, "not valid JSON"),
        (mark, format!("{{\"ids\":{}}}", ids(&[0])), 422, "\"seen\""),
        (mark, format!("{{\"ids\":{},\"seen\":1}}", ids(&[0])), 422, "\"seen\""),
        (delete, " ".repeat(1024 * 1024 + 1), 413, "too large"),
        ("a%20b/delete", "{\"ids\":[]}".to_owned(), 400, "not a mailbox name"),
    ];
    for (path, body, status, expected) in table {
        let problem = post(&server, path, body.clone()).await.problem(status);
        assert!(problem.contains(expected), "{path} {problem}");
    }
    let text = "POST /api/v2/mailbox/test/delete\nContent-Type: text/plain";
    server.request_with(text, "{\"ids\":[]}", Peer::default()).await.problem(415);
    let foreign = "POST /api/v2/mailbox/test/delete\nOrigin: http://evil.example";
    server.request_with(foreign, format!("{{\"ids\":{}}}", ids(&[0])), Peer::default()).await.problem(403);
    assert_eq!(server.request("GET /api/v1/mailbox/test").await.numbers(), [0, 1, 2, 3]);
}
