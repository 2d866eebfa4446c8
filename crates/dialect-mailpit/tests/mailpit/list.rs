//! The list of all messages.

use std::time::Duration;

use restante_mail::message::Summary;
use restante_store::{CopyKey, CopyUpdate, MessageSelector};
use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::messages::add_copies;

const LIST: &str = "GET /api/v1/messages";

async fn mark_as_read(server: &TestServer, copy: &Summary) {
    let update = CopyUpdate { seen: Some(true), ..CopyUpdate::new(copy.into()) };
    server.store.update_copies(vec![update]).await.unwrap();
}

/// Returns a list, and the numbers of its messages.
async fn list(server: &TestServer, query: &str) -> (Value, Vec<u64>) {
    let response = server.request(&format!("{LIST}{query}")).await;
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    assert_eq!(response.header("content-type"), "application/json");
    let list = response.json();
    let number = |message: &Value| (message["ID"].as_str().unwrap().parse::<u64>().unwrap() - FIRST) / 1_000_000;
    let numbers = list["messages"].as_array().unwrap().iter().map(number).collect();
    (list, numbers)
}

fn totals(list: &Value) -> Value {
    let names = ["total", "unread", "count", "messages_count", "messages_unread", "start"];
    names.iter().map(|name| list[name].clone()).collect()
}

#[tokio::test]
async fn list_has_totals_tags_and_messages() {
    let server = server();
    let (empty, _) = list(&server, "").await;
    let expected = json!({
        "total": 0, "unread": 0, "count": 0, "messages_count": 0, "messages_unread": 0, "start": 0, "tags": [], "messages": [],
    });
    assert_eq!(empty, expected);
    add_copies(&server, 0, &["bob", "cid"], &["run 7", "Alpha"]).await;
    add_copies(&server, 1, &["bob"], &["beta"]).await;
    let (found, numbers) = list(&server, "").await;
    assert_eq!(numbers, [1, 0], "each message once, the newest first");
    assert_eq!(totals(&found), json!([2, 2, 2, 2, 2, 0]));
    assert_eq!(found["tags"], json!(["Alpha", "beta", "run 7"]));
    let first = &found["messages"][1];
    assert_eq!(first["Tags"], json!(["Alpha", "run 7"]));
    assert_eq!(first["From"], json!({"Name": "Änne", "Address": "a@example.org"}));
    assert_eq!(first["To"], json!([{"Name": "", "Address": "all@example.org"}]));
    assert_eq!(first["Cc"], json!([{"Name": "", "Address": "cc@example.org"}]));
    let hidden = ["bob@example.org", "cid@example.org"].map(|address| json!({"Name": "", "Address": address}));
    assert_eq!(first["Bcc"], json!(hidden));
    assert_eq!((&first["ReplyTo"], &first["Username"]), (&json!([]), &json!("ci")));
    assert_eq!(first["Created"], "2026-11-14T23:42:50.123Z");
}

#[tokio::test]
async fn list_follows_changes() {
    let server = server();
    let id = add_copies(&server, 0, &["bob", "cid"], &["one"]).await;
    add_copies(&server, 1, &["bob"], &[]).await;
    let copies = server.store.find_message(MessageSelector::Id(id)).await.unwrap().unwrap().into_copies();
    for (copy, unread, is_read) in [(&copies[0], 2, false), (&copies[1], 1, true)] {
        mark_as_read(&server, copy).await;
        let (found, _) = list(&server, "").await;
        assert_eq!((&found["unread"], &found["messages"][1]["Read"]), (&json!(unread), &json!(is_read)));
    }
    server.store.remove_copies(copies.iter().map(CopyKey::from).collect()).await.unwrap();
    let (found, numbers) = list(&server, "").await;
    assert_eq!((totals(&found), &found["tags"]), (json!([1, 1, 1, 1, 1, 0]), &json!([])));
    assert_eq!(numbers, [1]);
}

#[tokio::test]
async fn list_has_pages() {
    let server = server();
    for number in 0..7 {
        add_copies(&server, number, &["ann", "bob"], &[]).await;
    }
    let table: [(&str, &[u64], u64); 11] = [
        ("?limit=3", &[6, 5, 4], 0),
        ("?limit=3&start=3", &[3, 2, 1], 3),
        ("?limit=3&start=6", &[0], 6),
        // The offset is known from the request before.
        ("?limit=2&start=6", &[0], 6),
        ("?limit=2&start=5", &[1, 0], 5),
        ("?start=7", &[], 7),
        ("?start=100000", &[], 100_000),
        ("?limit=0&start=3", &[6, 5, 4, 3, 2, 1, 0], 3),
        ("?limit=x&start=-1", &[6, 5, 4, 3, 2, 1, 0], 0),
        ("?before=2026-11-14T23:42:53Z&limit=2", &[2, 1], 0),
        ("?before=2026-11-14T23:42:53Z&limit=2&start=1", &[1, 0], 1),
    ];
    for (query, expected, start) in table {
        let (found, numbers) = list(&server, query).await;
        assert_eq!(numbers, expected, "{query}");
        assert_eq!(totals(&found), json!([7, 7, expected.len(), 7, 7, start]), "{query}");
    }
    let response = server.request(&format!("{LIST}?start=100001")).await;
    let expected = "start must be at most 100000; use before to list older messages";
    assert_eq!((response.status.as_u16(), response.text()), (400, expected));
}

#[tokio::test]
async fn offsets_are_correct_in_long_lists() {
    let server = server();
    for number in 0..450 {
        add_copies(&server, number, &["bob"], &[]).await;
    }
    // The second and the third request use the offsets that the first has passed.
    for start in [420, 410, 449, 200, 199, 0] {
        let (_, numbers) = list(&server, &format!("?start={start}&limit=2")).await;
        let expected: Vec<u64> = (0..450).rev().skip(start).take(2).collect();
        assert_eq!(numbers, expected, "{start}");
    }
    add_copies(&server, 450, &["bob"], &[]).await;
    assert_eq!(list(&server, "?start=420&limit=1").await.1, [30], "the list has changed");
}

#[tokio::test]
async fn limited_token_sees_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    for (number, mailboxes) in [(0, &["ann", "bob"][..]), (1, &["bob"]), (2, &["ann"]), (3, &["ann", "bob"])] {
        add_copies(server, number, mailboxes, &[&format!("tag {number}")]).await;
    }
    let header = accounts.token(&["ann"]).await;
    let request = |query: &str| format!("{query}\n{header}");
    let (found, numbers) = list(server, &request("")).await;
    assert_eq!(numbers, [3, 2, 0]);
    assert_eq!(totals(&found), json!([3, 3, 3, 3, 3, 0]));
    assert_eq!(found["tags"], json!(["tag 0", "tag 2", "tag 3"]));
    assert_eq!(found["messages"][0]["Bcc"], json!([{"Name": "", "Address": "ann@example.org"}]));
    assert!(!found.to_string().contains("bob@example.org"));
    for (query, expected) in [("?start=1&limit=1", &[2][..]), ("?start=3", &[]), ("?before=2026-11-14T23:42:52Z", &[0])]
    {
        assert_eq!(list(server, &request(query)).await.1, expected, "{query}");
    }
    // Another copy that the token does not cover is unread.
    let newest = server.store.find_message(MessageSelector::Latest).await.unwrap().unwrap();
    mark_as_read(server, newest.first()).await;
    let (found, _) = list(server, &request("")).await;
    assert_eq!((&found["unread"], &found["messages"][0]["Read"]), (&json!(2), &json!(true)));
    assert_eq!(server.request(LIST).await.status, 401);
}
