//! The tags of messages.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::messages::add_copies;

async fn all_tags(server: &TestServer, header: &str) -> Value {
    server.request(&format!("GET /api/v1/tags{header}")).await.json()
}

/// Sends a change and returns the status and the text of the response.
async fn change(server: &TestServer, request: &str, body: &str) -> (u16, String) {
    let response = server.request_body(request, body.to_owned()).await;
    assert_eq!(response.header("content-type"), "text/plain", "{}", response.text());
    (response.status.as_u16(), response.text().to_owned())
}

fn ok() -> (u16, String) {
    (200, "ok".to_owned())
}

fn error(text: &str) -> (u16, String) {
    (400, text.to_owned())
}

#[tokio::test]
async fn tags_of_messages_are_set() {
    let server = server();
    assert_eq!(all_tags(&server, "").await, json!([]));
    add_copies(&server, 0, &["bob", "carl"], &["old"]).await;
    add_copies(&server, 1, &["bob"], &["b"]).await;
    let body =
        json!({"IDs": [id(0).to_string(), "nope", "1"], "Tags": [" zeta ", "Alpha beta", "a/b", "alpha  beta", "!"]});
    assert_eq!(change(&server, "PUT /api/v1/tags", &body.to_string()).await, ok());
    assert_eq!(all_tags(&server, "").await, json!(["a b", "Alpha beta", "b", "zeta"]));
    let body = format!(r#"{{"ids":["{}"]}}"#, id(0));
    assert_eq!(change(&server, "PUT /api/v1/tags", &body).await, ok());
    assert_eq!(all_tags(&server, "").await, json!(["b"]));
    assert_eq!(change(&server, "PUT /api/v1/tags", "{}").await, ok());
    assert_eq!(change(&server, "PUT /api/v1/tags", "").await, error("EOF"));
    let many: Vec<String> = (0..21).map(|number| number.to_string()).collect();
    let body = json!({"IDs": [id(0).to_string()], "Tags": many}).to_string();
    assert_eq!(change(&server, "PUT /api/v1/tags", &body).await, error("a message has at most 20 tags"));
    let many = vec!["1"; 20_001];
    let body = json!({"IDs": many, "Tags": ["x"]}).to_string();
    assert_eq!(change(&server, "PUT /api/v1/tags", &body).await, error("at most 20000 IDs are allowed"));
}

#[tokio::test]
async fn tags_are_renamed_in_all_messages() {
    let server = server();
    add_copies(&server, 0, &["bob", "carl"], &["zeta", "other"]).await;
    add_copies(&server, 1, &["bob"], &["ZETA"]).await;
    // More messages than one batch contains.
    for number in 2..230 {
        add_copies(&server, number, &["dora"], &[]).await;
    }
    let table = [
        ("zeta", r#"{"Name":"Other"}"#, error("tag already exists: Other")),
        ("zeta", r#"{"Name":"!!"}"#, error("invalid tag name: ")),
        ("zeta", "{}", error("invalid tag name: ")),
        ("nope", r#"{"Name":"q"}"#, error("tag not found: nope")),
        ("nope", r#"{"Name":"nope"}"#, ok()),
        ("zeta", r#"{"name":"new/name"}"#, ok()),
        ("other", r#"{"Name":"third"}"#, ok()),
        ("third", r#"{"Name":"THIRD"}"#, ok()),
    ];
    for (tag, body, expected) in table {
        assert_eq!(change(&server, &format!("PUT /api/v1/tags/{tag}"), body).await, expected, "{tag} {body}");
    }
    let message = server.request(&format!("GET /api/v2/messages/{}", id(0))).await.json();
    assert_eq!(message["tags"], json!(["new name", "THIRD"]));
    let info = server.request("GET /api/v1/info").await.json();
    assert_eq!(info["Tags"]["new name"], json!(2));
    assert_eq!(all_tags(&server, "").await.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn renamed_tag_has_the_new_spelling() {
    let server = server();
    add_copies(&server, 0, &["bob", "carl"], &["name"]).await;
    add_copies(&server, 1, &["bob"], &["name"]).await;
    for spelling in ["Name", "NAME", "nAmE"] {
        let body = json!({"Name": spelling}).to_string();
        assert_eq!(change(&server, "PUT /api/v1/tags/name", &body).await, ok());
        assert_eq!(all_tags(&server, "").await, json!([spelling]));
        let list = server.request("GET /api/v1/messages").await.json();
        for message in list["messages"].as_array().unwrap() {
            assert_eq!(message["Tags"], json!([spelling]));
        }
    }
}

#[tokio::test]
async fn tags_beyond_the_limit_of_lists_are_changed() {
    let server = server();
    add_many_tags(&server).await;
    assert_eq!(all_tags(&server, "").await.as_array().map(Vec::len), Some(10_000));
    let rename = async |tag: &str, name: &str| {
        change(&server, &format!("PUT /api/v1/tags/{tag}"), &json!({"Name": name}).to_string()).await
    };
    assert_eq!(rename("t000%2000", "T500 19").await, error("tag already exists: T500 19"));
    assert_eq!(rename("t500%2019", "a").await, ok());
    assert_eq!(all_tags(&server, "").await[0], "a");
    assert_eq!(change(&server, "DELETE /api/v1/tags/t500%2018", "").await, ok());
    assert_eq!(change(&server, "DELETE /api/v1/tags/t500%2018", "").await, error("tag not found: t500 18"));
}

/// Adds 501 messages with 20 tags each, more than a list has.
async fn add_many_tags(server: &TestServer) {
    for message in 0..=500 {
        let tags: Vec<String> = (0..20).map(|number| format!("t{message:03} {number:02}")).collect();
        add_copies(server, message, &["bob"], &tags.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
}

/// A name that would be in the list is known without a search of all messages.
#[tokio::test(start_paused = true)]
async fn messages_are_searched_only_for_tags_after_the_list() {
    let accounts = Accounts::new(Duration::from_hours(1));
    add_many_tags(&accounts.server).await;
    let token = accounts.token(&[]).await;
    let delete = async |tag: &str| change(&accounts.server, &format!("DELETE /api/v1/tags/{tag}\n{token}"), "").await;
    let permit = accounts.state.messages.scan_permits.clone().acquire_owned().await.unwrap();
    assert_eq!(delete("none").await, error("tag not found: none"));
    let search = async {
        let start = tokio::time::Instant::now();
        (delete("zeta").await, start.elapsed().as_secs())
    };
    let release = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(permit);
    };
    assert_eq!(tokio::join!(search, release).0, (error("tag not found: zeta"), 1));
}

/// The overview of such a token has only the newest 20,000 messages.
#[tokio::test]
async fn limited_token_changes_tags_of_old_messages() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    add_copies(server, 0, &["bob"], &["old"]).await;
    add_copies(server, 1, &["carl"], &["hidden"]).await;
    for number in 2..=20_002 {
        add_copies(server, number, &["carl"], &[]).await;
    }
    let token = accounts.token(&["bob"]).await;
    let rename = async |tag: &str| {
        change(server, &format!("PUT /api/v1/tags/{tag}\n{token}"), &json!({"Name": "new"}).to_string()).await
    };
    assert_eq!(rename("hidden").await, error("tag not found: hidden"));
    assert_eq!(rename("old").await, ok());
    assert_eq!(rename("old").await, error("tag not found: old"));
}

#[tokio::test]
async fn tags_are_deleted() {
    let server = server();
    add_copies(&server, 0, &["bob", "carl"], &["two words", "other"]).await;
    assert_eq!(change(&server, "DELETE /api/v1/tags/nope", "").await, error("tag not found: nope"));
    assert_eq!(change(&server, "DELETE /api/v1/tags/Two%20words", "").await, ok());
    assert_eq!(all_tags(&server, "").await, json!(["other"]));
    assert_eq!(server.request("GET /api/v2/usage").await.json()["messages"], 1);
}

#[tokio::test]
async fn token_changes_only_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    add_copies(server, 0, &["bob", "carl"], &["a"]).await;
    add_copies(server, 1, &["carl"], &["b"]).await;
    let (bob, carl) = (accounts.token(&["bob"]).await, accounts.token(&["carl"]).await);
    assert_eq!(all_tags(server, &format!("\n{bob}")).await, json!(["a"]));
    let body = json!({"IDs": [id(0).to_string(), id(1).to_string()], "Tags": ["c"]}).to_string();
    assert_eq!(change(server, &format!("PUT /api/v1/tags\n{bob}"), &body).await, ok());
    assert_eq!(all_tags(server, &format!("\n{bob}")).await, json!(["c"]));
    assert_eq!(all_tags(server, &format!("\n{carl}")).await, json!(["a", "b"]));
    assert_eq!(change(server, &format!("DELETE /api/v1/tags/b\n{bob}"), "").await, error("tag not found: b"));
    assert_eq!(change(server, &format!("PUT /api/v1/tags/a\n{carl}"), r#"{"Name":"d"}"#).await, ok());
    assert_eq!(all_tags(server, &format!("\n{carl}")).await, json!(["b", "d"]));
    assert_eq!(all_tags(server, &format!("\n{bob}")).await, json!(["c"]));
}
