//! Changes of many messages in one request.

use axum::body::Body;

use super::{Peer, TestResponse, TestServer, id};

async fn post(house: &TestServer, path: &str, body: impl Into<Body>) -> TestResponse {
    let request = format!("POST /api/v2/mailbox/{path}\nContent-Type: application/json");
    house.request_with(&request, body, Peer::default()).await
}

async fn house() -> TestServer {
    let house = TestServer::new();
    for number in 0..4 {
        house.put(number, "test", "Subject: x\r\n\r\n").await;
    }
    house
}

/// Returns the ids of these messages, one of a message that does not exist, and a text that is not an id.
fn ids(numbers: &[u64]) -> String {
    let known = numbers.iter().map(|&number| id(number).to_string());
    let ids: Vec<_> = known.chain(["17".to_owned(), "latest".to_owned()]).collect();
    serde_json::json!(ids).to_string()
}

#[tokio::test]
async fn many_are_deleted() {
    let house = house().await;
    let answer = post(&house, "Test+x@example.org/delete", format!("{{\"ids\":{}}}", ids(&[0, 2, 2]))).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "{\"deleted\":2}\n"));
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.numbers(), [1, 3]);
    let again = post(&house, "test/delete", format!("{{\"ids\":{}}}", ids(&[0]))).await;
    assert_eq!(again.text(), "{\"deleted\":0}\n");
}

#[tokio::test]
async fn many_are_marked() {
    let house = house().await;
    for (numbers, seen, marked) in [(&[0, 1, 2][..], true, 3), (&[1], false, 1), (&[], true, 0)] {
        let body = format!("{{\"seen\":{seen},\"ids\":{}}}", ids(numbers));
        let answer = post(&house, "test/mark", body).await;
        assert_eq!(answer.text(), format!("{{\"marked\":{marked}}}\n"));
    }
    let list = house.request("GET /api/v1/mailbox/test").await.json();
    let seen: Vec<_> = list.as_array().unwrap().iter().map(|one| one["seen"].as_bool().unwrap()).collect();
    assert_eq!(seen, [true, false, true, false]);
}

#[tokio::test]
async fn what_is_no_list_of_ids_changes_nothing() {
    let house = house().await;
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
    for (path, body, status, words) in table {
        let problem = post(&house, path, body.clone()).await.problem(status);
        assert!(problem.contains(words), "{path} {problem}");
    }
    let text = "POST /api/v2/mailbox/test/delete\nContent-Type: text/plain";
    house.request_with(text, "{\"ids\":[]}", Peer::default()).await.problem(415);
    let foreign = "POST /api/v2/mailbox/test/delete\nOrigin: http://evil.example";
    house.request_with(foreign, format!("{{\"ids\":{}}}", ids(&[0])), Peer::default()).await.problem(403);
    assert_eq!(house.request("GET /api/v1/mailbox/test").await.numbers(), [0, 1, 2, 3]);
}
