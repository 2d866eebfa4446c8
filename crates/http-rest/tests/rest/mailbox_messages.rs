//! The list of messages with the parameter `mailbox`, and ids of copies in paths of messages.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::accounts::Accounts;
use crate::support::messages::{LIST, NOT_FOUND, add_copies, numbers, search_server, wait_until_indexed};
use crate::support::*;

/// The names of a mailbox and the reason why they are refused are the same as on this path.
const LISTING: &str = "/api/v1/mailbox";

#[tokio::test]
async fn lists_the_copies_of_a_mailbox() {
    let server = TestServer::new();
    let empty = "{\"messages\":[],\"next\":null,\"mailbox\":\"bob\"}\n";
    for name in ["bob", "BOB", "Bob%2Btag@Example.org"] {
        assert_eq!(server.request(&format!("GET {LIST}?mailbox={name}")).await.text(), empty, "{name}");
    }
    let message = add_copies(&server, 0, &["ann", "bob"], &["run 7"]).await;
    add_copies(&server, 1, &["ann"], &[]).await;
    let copy = message.number() + 1;
    server.request(&format!("PATCH /api/v1/mailbox/bob/{copy}")).await;
    let list = server.request(&format!("GET {LIST}?mailbox=Bob@example.org")).await.json();
    assert_eq!((&list["mailbox"], &list["next"]), (&"bob".into(), &Value::Null));
    let [entry] = &list["messages"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!(entry["id"], copy.to_string());
    assert_eq!(entry["recipients"], json!(["bob@example.org"]));
    assert_eq!(entry["mailboxes"], json!(["bob"]));
    assert_eq!((&entry["seen"], &entry["tags"]), (&true.into(), &json!(["run 7"])));
    let ann = server.request(&format!("GET {LIST}?mailbox=ann")).await;
    assert_eq!(numbers(&ann), (vec![1, 0], None));
    assert_eq!(ann.json()["messages"][1]["seen"], false);
}

#[tokio::test]
async fn pages_of_a_mailbox() {
    let server = TestServer::new();
    for number in 0..10 {
        add_copies(&server, number, if number % 2 == 0 { &["ann", "bob"] } else { &["ann"] }, &[]).await;
    }
    let table = [
        (String::new(), vec![8, 6, 4, 2, 0], None),
        ("&limit=2".to_owned(), vec![8, 6], Some(6)),
        (format!("&limit=2&before={}", id(6) + 1), vec![4, 2], Some(2)),
        (format!("&limit=2&before={}", id(2) + 1), vec![0], None),
        (format!("&after={}", id(4) + 1), vec![8, 6], None),
        (format!("&after={}&limit=1", id(4) + 1), vec![8], Some(8)),
        (format!("&before={}", id(0)), vec![], None),
    ];
    for (query, expected, next) in table {
        let response = server.request(&format!("GET {LIST}?mailbox=bob{query}")).await;
        assert_eq!(numbers(&response), (expected, next), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_the_copies_of_a_mailbox() {
    let server = search_server();
    for number in 0..12 {
        let mailboxes: &[&str] = if number % 2 == 0 { &["ann", "bob", "eve"] } else { &["ann"] };
        add_copies(&server, number, mailboxes, if number < 6 { &["run 7"] } else { &[] }).await;
    }
    wait_until_indexed(&server, "").await;
    let table = [
        ("q=subject:number".to_owned(), vec![10, 8, 6, 4, 2, 0], None),
        ("q=subject:number&limit=4".to_owned(), vec![10, 8, 6, 4], Some(4)),
        (format!("q=subject:number&limit=4&before={}", id(4) + 1), vec![2, 0], None),
        (format!("q=subject:number&after={}", id(6) + 1), vec![10, 8], None),
        ("tag=run+7".to_owned(), vec![4, 2, 0], None),
        ("tag=run+7&q=%22number+2%22".to_owned(), vec![2], None),
        ("q=%22number+3%22".to_owned(), vec![], None),
    ];
    for (query, expected, next) in table {
        let response = server.request(&format!("GET {LIST}?mailbox=bob&{query}")).await;
        assert_eq!(numbers(&response), (expected, next), "{query}");
        assert_eq!(response.json()["mailbox"], "bob", "{query}");
    }
    let list = server.request(&format!("GET {LIST}?mailbox=eve&q=%22number+4%22")).await.json();
    assert_eq!(list["messages"][0]["id"], (id(4) + 2).to_string());
    assert_eq!(list["messages"][0]["mailboxes"], json!(["eve"]));
}

#[tokio::test]
async fn list_of_a_mailbox_is_cached_until_it_changes() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["ann", "bob"], &[]).await;
    let request = format!("GET {LIST}?mailbox=bob");
    let first = server.request(&request).await;
    let conditional = format!("{request}\nIf-None-Match: {}", first.header("etag"));
    add_copies(&server, 1, &["ann"], &[]).await;
    server.request(&format!("PATCH /api/v1/mailbox/ann/{message}")).await;
    assert_eq!(server.request(&conditional).await.status, 304, "only another mailbox has changed");
    let all = server.request(&format!("GET {LIST}")).await;
    assert_ne!(all.header("etag"), first.header("etag"));
    add_copies(&server, 2, &["bob"], &[]).await;
    let second = server.request(&conditional).await;
    assert_eq!(numbers(&second), (vec![2, 0], None));
    assert_eq!(server.request(&request).await.body, second.body);
}

#[tokio::test]
async fn mailbox_is_checked_as_on_other_paths() {
    let accounts = Accounts::with_search();
    add_copies(&accounts.server, 0, &["ann", "ci-1"], &[]).await;
    let limited = accounts.token(&["ci-*"]).await;
    for query in ["", "&q=number", "&tag=x"] {
        for name in ["ann", "ANN@example.org", "nobody", "a..b", "a@b@c", "@example.org", ""] {
            let request = format!("GET {LIST}?mailbox={name}{query}\n{limited}");
            let response = accounts.server.request(&request).await;
            if name.is_empty() {
                assert_eq!(response.problem(400), "This is not a mailbox name: the address is empty.", "{request}");
                continue;
            }
            let expected = accounts.server.request(&format!("GET {LISTING}/{name}\n{limited}")).await;
            assert!([400, 403].contains(&expected.status.as_u16()), "{name}");
            assert_eq!(response.problem(expected.status.as_u16()), expected.problem(expected.status.as_u16()));
        }
    }
    let list = accounts.server.request(&format!("GET {LIST}?mailbox=CI-1\n{limited}")).await;
    assert_eq!(numbers(&list), (vec![0], None));
    assert!(!list.text().contains("ann@"), "{}", list.text());
    let twice = accounts.server.request(&format!("GET {LIST}?mailbox=ci-1&mailbox=ci-2\n{limited}")).await;
    assert_eq!(twice.problem(400), "The parameter mailbox is given twice.");
}

#[tokio::test]
async fn resources_are_those_of_the_copy_with_the_id() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    add_copies(server, 0, &["ann", "bob"], &[]).await;
    let message = add_copies(server, 1, &["ann", "bob", "ci-1"], &[]).await.number();
    add_copies(server, 2, &["ann", "bob"], &[]).await;
    let all = accounts.token(&[]).await;
    let table = [
        ("details", "/api/v2/mailbox/{name}/{id}"),
        ("source", "/api/v1/mailbox/{name}/{id}/source"),
        ("html", "/serve/mailbox/{name}/{id}/html"),
        ("links", "/api/v2/mailbox/{name}/{id}/links"),
        ("parts/3", "/api/v2/mailbox/{name}/{id}/parts/3"),
        ("attachments/0", "/mailbox/vattach/{name}/{id}/0/x"),
        ("transcript", "/api/v2/mailbox/{name}/{id}/transcript"),
    ];
    for (resource, path_of_copy) in table {
        for (copy, mailbox) in (message..).zip(["ann", "bob", "ci-1"]) {
            let path = path_of_copy.replace("{name}", mailbox).replace("{id}", &copy.to_string());
            let expected = server.request(&format!("GET {path}\n{all}")).await;
            let response = server.request(&format!("GET {LIST}/{copy}/{resource}\n{all}")).await;
            assert_eq!((response.status, &response.body), (expected.status, &expected.body), "{mailbox} {resource}");
            assert_eq!(response.headers, expected.headers, "{mailbox} {resource}");
        }
    }
    // A copy that was deleted, and ids between, before and after those of copies.
    server.request(&format!("DELETE /api/v1/mailbox/bob/{}\n{all}", message + 1)).await;
    for missing in [message + 1, message + 3, id(0) - 1, id(0) + 2, id(2) + 2, u64::MAX] {
        for path in ["", "/details"] {
            let request = format!("GET {LIST}/{missing}{path}\n{all}");
            assert_eq!(server.request(&request).await.problem(404), NOT_FOUND, "{request}");
        }
    }
    // The id of the message stays that of its first copy.
    server.request(&format!("DELETE /api/v1/mailbox/ann/{message}\n{all}")).await;
    for id in [message, message + 2] {
        let details = server.request(&format!("GET {LIST}/{id}/details\n{all}")).await.json();
        assert_eq!((&details["mailbox"], &details["id"]), (&"ci-1".into(), &(message + 2).to_string().into()));
    }
}

#[tokio::test]
async fn limited_token_may_use_only_ids_of_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    let message = add_copies(server, 0, &["ann", "bob", "ci-1", "eve", "ci-2"], &[]).await.number();
    let limited = accounts.token(&["ci-*"]).await;
    let table = [(0, Some("ci-1")), (1, None), (2, Some("ci-1")), (3, None), (4, Some("ci-2"))];
    for (index, mailbox) in table {
        let details = server.request(&format!("GET {LIST}/{}/details\n{limited}", message + index)).await;
        let whole = server.request(&format!("GET {LIST}/{}\n{limited}", message + index)).await;
        let Some(mailbox) = mailbox else {
            assert_eq!((details.problem(404), whole.problem(404)), (NOT_FOUND.to_owned(), NOT_FOUND.to_owned()));
            for (method, body) in [("PATCH", "{\"seen\":true}"), ("DELETE", "")] {
                let request = format!("{method} {LIST}/{}\n{limited}", message + index);
                let response = server.request_with(&request, body, Peer::default()).await;
                assert_eq!(response.problem(404), NOT_FOUND, "{request}");
            }
            continue;
        };
        assert_eq!(details.json()["mailbox"], mailbox, "{index}");
        assert_eq!(whole.json()["id"], message.to_string(), "{index}");
        assert_eq!(whole.json()["mailboxes"], json!(["ci-1", "ci-2"]), "{index}");
    }
    // The id of a copy stands for its message: all copies that the token may change.
    let request = format!("PATCH {LIST}/{}\n{limited}", message + 4);
    let changed = server.request_with(&request, "{\"seen\":true}", Peer::default()).await.json();
    assert_eq!((&changed["id"], &changed["seen"]), (&message.to_string().into(), &true.into()));
    assert_eq!(server.request(&format!("DELETE {LIST}/{}\n{limited}", message + 4)).await.status, 200);
    let rest = server.request(&format!("GET {LIST}/{message}\n{}", accounts.token(&[]).await)).await.json();
    assert_eq!(rest["mailboxes"], json!(["ann", "bob", "eve"]));
}

/// Long lists are read in several steps.
#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_complete() {
    let accounts = Accounts::with_search();
    for number in 0..700 {
        add_copies(&accounts.server, number, if number % 7 == 0 { &["ann", "ci-1"] } else { &["ci-1"] }, &[]).await;
    }
    let (all, limited) = (accounts.token(&[]).await, accounts.token(&["ci-*"]).await);
    wait_until_indexed(&accounts.server, &format!("\n{all}")).await;
    for (query, header) in [
        ("", &all),
        ("", &limited),
        ("&mailbox=ci-1", &all),
        ("&mailbox=ci-1", &limited),
        ("&q=subject:number", &all),
        ("&q=subject:number", &limited),
        ("&q=subject:number&mailbox=ci-1", &limited),
    ] {
        for (limit, expected, next) in [(699, 1..700, Some(1)), (700, 0..700, None), (1000, 0..700, None)] {
            let request = format!("GET {LIST}?limit={limit}{query}\n{header}");
            let response = accounts.server.request(&request).await;
            assert_eq!(numbers(&response), (expected.rev().collect(), next), "{request}");
        }
    }
}
