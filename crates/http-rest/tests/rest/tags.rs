//! The tags of all messages: the list of them, and changes of a tag in all messages.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::accounts::Accounts;
use crate::support::messages::{LIST, add_copies};
use crate::support::*;

const TAGS: &str = "/api/v2/tags";

/// Returns all tags with the number of their messages.
async fn tags(server: &TestServer, header: &str) -> Value {
    let response = server.request(&format!("GET {TAGS}\n{header}")).await;
    assert_eq!(response.header("cache-control"), "no-store");
    let list = response.json();
    let tags = list["tags"].as_array().unwrap().iter();
    tags.map(|tag| json!([tag["name"], tag["count"]])).collect()
}

async fn rename(server: &TestServer, tag: &str, body: &str) -> TestResponse {
    let request = format!("PATCH {TAGS}/{tag}\nContent-Type: application/json");
    server.request_with(&request, body.to_owned(), Peer::default()).await
}

#[tokio::test]
async fn tags_are_listed_with_the_number_of_messages() {
    let server = TestServer::new();
    assert_eq!(server.request(&format!("GET {TAGS}")).await.text(), "{\"tags\":[]}\n");
    add_copies(&server, 0, &["ann", "bob"], &["run 7", "Billing"]).await;
    add_copies(&server, 1, &["bob"], &["run 7", "auth"]).await;
    add_copies(&server, 2, &["bob"], &["RUN 7"]).await;
    add_copies(&server, 3, &["bob"], &[]).await;
    assert_eq!(tags(&server, "").await, json!([["auth", 1], ["Billing", 1], ["run 7", 3]]));
}

#[tokio::test]
async fn tag_is_renamed_in_all_messages() {
    let server = TestServer::new();
    add_copies(&server, 0, &["ann", "bob"], &["run 7", "other"]).await;
    add_copies(&server, 1, &["bob"], &["RUN 7"]).await;
    // More messages than one batch has.
    for number in 2..230 {
        add_copies(&server, number, &["dora"], &["many"]).await;
    }
    let table = [
        ("run%207", "{\"name\":\"Größe\"}", "{\"name\":\"Größe\",\"changed\":2}\n"),
        ("gr%C3%B6%C3%9Fe", "{\"name\":\" run 8 \"}", "{\"name\":\"run 8\",\"changed\":2}\n"),
        ("Run%208", "{\"name\":\"RUN 8\"}", "{\"name\":\"RUN 8\",\"changed\":2}\n"),
        ("RUN%208", "{\"name\":\"RUN 8\"}", "{\"name\":\"RUN 8\",\"changed\":2}\n"),
        ("many", "{\"name\":\"all\"}", "{\"name\":\"all\",\"changed\":228}\n"),
    ];
    for (tag, body, expected) in table {
        let response = rename(&server, tag, body).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, expected), "{tag} {body}");
        assert_eq!(response.header("cache-control"), "no-store");
    }
    assert_eq!(tags(&server, "").await, json!([["all", 228], ["other", 1], ["RUN 8", 2]]));
    assert_eq!(server.request(&format!("GET {LIST}/{}", id(0))).await.json()["tags"], json!(["RUN 8", "other"]));
}

#[tokio::test]
async fn tag_is_removed_from_all_messages() {
    let server = TestServer::new();
    add_copies(&server, 0, &["ann", "bob"], &["run 7", "other"]).await;
    add_copies(&server, 1, &["bob"], &["RUN 7"]).await;
    let delete = async |tag: &str| server.request(&format!("DELETE {TAGS}/{tag}")).await;
    assert_eq!(delete("run%207").await.text(), "{\"changed\":2}\n");
    assert_eq!(delete("run%207").await.problem(404), "No message has this tag.");
    assert_eq!(tags(&server, "").await, json!([["other", 1]]));
    assert_eq!(server.request("GET /api/v2/usage").await.json()["messages"], 2);
}

#[tokio::test]
async fn rejects_invalid_changes_of_tags() {
    let server = TestServer::new();
    add_copies(&server, 0, &["bob"], &["one", "two"]).await;
    let shape = "must be {\"name\": \"…\"}, and no other members";
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(65));
    let table = [
        ("one", "", 422, shape),
        ("one", "[]", 422, shape),
        ("one", "\"new\"", 422, shape),
        ("one", "{}", 422, shape),
        ("one", "{\"name\":null}", 422, shape),
        ("one", "{\"name\":\"new\",\"count\":1}", 422, shape),
        ("one", "{\"name\":", 422, "not valid JSON"),
        ("one", "{\"name\":\" \"}", 422, "The member name is invalid: a tag must not be empty."),
        ("one", "{\"name\":\"a,b\"}", 422, "The member name is invalid: a tag must not contain ','"),
        ("one", &long, 422, "The member name is invalid: a tag has at most 64 characters."),
        ("one", "{\"name\":\"TWO\"}", 409, "There is another tag with this name."),
        ("none", "{\"name\":\"new\"}", 404, "No message has this tag."),
        ("none", "{\"name\":\"two\"}", 404, "No message has this tag."),
        ("a%2Fb", "{\"name\":\"new\"}", 404, "No message has this tag."),
        ("%FF", "{\"name\":\"new\"}", 400, "The path is not UTF-8."),
    ];
    for (tag, body, status, expected) in table {
        let problem = rename(&server, tag, body).await.problem(status);
        assert!(problem.contains(expected), "{tag} {body}: {problem}");
    }
    server.request(&format!("DELETE {TAGS}/%FF")).await.problem(400);
    assert_eq!(tags(&server, "").await, json!([["one", 1], ["two", 1]]));
}

#[tokio::test]
async fn limited_token_changes_only_tags_of_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    add_copies(server, 0, &["bob", "carl"], &["a"]).await;
    add_copies(server, 1, &["carl"], &["b"]).await;
    let (bob, carl) = (accounts.token(&["bob"]).await, accounts.token(&["carl"]).await);
    assert_eq!(tags(server, &bob).await, json!([["a", 1]]));
    // The name of a tag that the client cannot see is free.
    assert_eq!(
        rename(server, &format!("a\n{bob}"), "{\"name\":\"b\"}").await.text(),
        "{\"name\":\"b\",\"changed\":1}\n"
    );
    assert_eq!(tags(server, &bob).await, json!([["b", 1]]));
    assert_eq!(tags(server, &carl).await, json!([["a", 1], ["b", 1]]));
    assert_eq!(server.request(&format!("DELETE {TAGS}/a\n{bob}")).await.problem(404), "No message has this tag.");
    assert_eq!(server.request(&format!("DELETE {TAGS}/b\n{bob}")).await.text(), "{\"changed\":1}\n");
    assert_eq!(tags(server, &carl).await, json!([["a", 1], ["b", 1]]));
}
