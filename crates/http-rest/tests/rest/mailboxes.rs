//! The list of mailboxes, and the usage.

use std::time::Duration;

use restante_store::Store as _;
use serde_json::json;

use crate::support::accounts::Accounts;
use crate::support::messages::add_copies;
use crate::support::*;

/// Returns the names in a list, and its `next`.
async fn names(server: &TestServer, query: &str) -> (Vec<String>, Option<String>) {
    let response = server.request(&format!("GET /api/v2/mailboxes{query}")).await;
    assert_eq!(response.status, 200, "{query}: {:?}", response.body);
    let list = response.json();
    let mailboxes = list["mailboxes"].as_array().expect("a list").iter();
    let names = mailboxes.map(|mailbox| mailbox["name"].as_str().expect("a name").to_owned()).collect();
    (names, list["next"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn lists_mailboxes_with_newest_message() {
    let server = TestServer::with_two_messages().await;
    server.add_message(2, "a\"b", "\r\n").await;
    server.request(&format!("PATCH /api/v1/mailbox/test/{}", id(0))).await;
    let response = server.request("GET /api/v2/mailboxes").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("expires"), "-1");
    let expected = concat!(
        r#"{"mailboxes":[{"name":"a\"b","messages":1,"unseen":1,"bytes":32,"newest":{"id":"1794699772123456","#,
        r#""date":"2026-11-14T23:42:52.123456+00:00","posix-millis":1794699772123}},"#,
        r#"{"name":"test","messages":2,"unseen":1,"bytes":112,"newest":{"id":"1794699771123456","#,
        r#""date":"2026-11-14T23:42:51.123456+00:00","posix-millis":1794699771123}}],"next":null}"#,
        "\n"
    );
    assert_eq!(response.text(), expected);
}

#[tokio::test]
async fn empty_server_lists_no_mailboxes() {
    let server = TestServer::new();
    assert_eq!(server.request("GET /api/v2/mailboxes").await.text(), "{\"mailboxes\":[],\"next\":null}\n");
    server.request("POST /api/v2/mailboxes").await.problem(405);
}

#[tokio::test]
async fn list_is_served_below_base_path() {
    let server = TestServer::with(Settings { base_path: "/mail".to_owned(), ..Settings::default() });
    for path in ["/api/v2/mailboxes", "/mail/api/v2/mailboxes"] {
        assert_eq!(server.request(&format!("GET {path}")).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn pages_and_prefixes() {
    let server = TestServer::new();
    for (number, mailbox) in (0..).zip(["bob", "ann", "anna", "a_b", "axb", "a%b", "jörg", "x@y.org"]) {
        server.add_message(number, mailbox, "\r\n").await;
    }
    let table: [(&str, &[&str], Option<&str>); 17] = [
        ("", &["a%b", "a_b", "ann", "anna", "axb", "bob", "jörg", "x@y.org"], None),
        ("?prefix=&after=", &["a%b", "a_b", "ann", "anna", "axb", "bob", "jörg", "x@y.org"], None),
        ("?limit=2", &["a%b", "a_b"], Some("a_b")),
        ("?limit=2&after=a_b", &["ann", "anna"], Some("anna")),
        ("?limit=8", &["a%b", "a_b", "ann", "anna", "axb", "bob", "jörg", "x@y.org"], None),
        ("?limit=7&other=1", &["a%b", "a_b", "ann", "anna", "axb", "bob", "jörg"], Some("jörg")),
        ("?after=j%C3%B6rg", &["x@y.org"], None),
        ("?after=x%40y.org", &[], None),
        ("?prefix=ann", &["ann", "anna"], None),
        ("?prefix=ann&limit=1", &["ann"], Some("ann")),
        ("?prefix=ann&limit=1&after=ann", &["anna"], None),
        ("?prefix=ANN", &["ann", "anna"], None),
        ("?prefix=a_", &["a_b"], None),
        ("?prefix=a%25", &["a%b"], None),
        // An uppercase letter, precomposed and decomposed.
        ("?prefix=J%C3%96", &["jörg"], None),
        ("?prefix=Jo%CC%88", &["jörg"], None),
        ("?prefix=nobody", &[], None),
    ];
    for (query, expected, next) in table {
        let (found, next_page) = names(&server, query).await;
        assert_eq!(
            (found.iter().map(String::as_str).collect(), next_page.as_deref()),
            (expected.to_vec(), next),
            "{query}"
        );
    }
}

#[tokio::test]
async fn rejects_invalid_parameters() {
    let server = TestServer::new();
    let table = [
        ("limit=x", "The parameter limit must be a whole number."),
        ("limit=-1", "The parameter limit must be a whole number."),
        ("limit=", "The parameter limit must be a whole number."),
        ("limit=0", "The parameter limit must be at least 1."),
        ("limit=1&limit=2", "The parameter limit is given twice."),
        ("prefix=a&prefix=a", "The parameter prefix is given twice."),
        ("after=a&after=b", "The parameter after is given twice."),
    ];
    for (query, detail) in table {
        assert_eq!(server.request(&format!("GET /api/v2/mailboxes?{query}")).await.problem(400), detail, "{query}");
    }
}

/// The maximum number of mailboxes with the longest names exceeds the size of a small response.
#[tokio::test]
async fn long_list_is_paged() {
    let server = TestServer::new();
    let all: Vec<String> = (0..1100).map(|number| format!("{number:04}{}", "x".repeat(300))).collect();
    for (number, mailbox) in (0..).zip(&all) {
        server.add_message(number, mailbox, "\r\n").await;
    }
    for (limit, size) in [("", 100), ("limit=1000", 1000), ("limit=1100", 1000), ("limit=18446744073709551615", 1000)] {
        let (first, next) = names(&server, &format!("?{limit}")).await;
        assert_eq!((first.as_slice(), next.as_ref()), (&all[..size], all.get(size - 1)), "{limit}");
    }
    let mut found = Vec::new();
    let mut after = Some(String::new());
    while let Some(name) = after {
        let (step, next) = names(&server, &format!("?limit=300&after={name}")).await;
        found.extend(step);
        after = next;
    }
    assert_eq!(found, all);
}

#[tokio::test]
async fn usage_counts_what_the_client_may_read() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let (server, usage) = (&accounts.server, async |header: &str| {
        let response = accounts.server.request(&format!("GET /api/v2/usage\n{header}")).await;
        assert_eq!(response.header("cache-control"), "no-store");
        response.json()
    });
    let (all, limited, other) =
        (accounts.token(&[]).await, accounts.token(&["ci-*"]).await, accounts.token(&["x"]).await);
    assert_eq!(usage(&all).await, json!({ "messages": 0, "copies": 0, "bytes": 0, "mailboxes": 0 }));
    add_copies(server, 0, &["ann", "ci-1", "ci-2"], &[]).await;
    add_copies(server, 1, &["ci-1"], &[]).await;
    let total = server.store.usage().await.unwrap().bytes;
    assert_eq!(usage(&all).await, json!({ "messages": 2, "copies": 4, "bytes": total, "mailboxes": 3 }));
    let listed = server.request(&format!("GET /api/v2/mailboxes\n{limited}")).await.json();
    let bytes: u64 =
        listed["mailboxes"].as_array().unwrap().iter().map(|mailbox| mailbox["bytes"].as_u64().unwrap()).sum();
    assert_eq!(usage(&limited).await, json!({ "messages": null, "copies": 3, "bytes": bytes, "mailboxes": 2 }));
    assert_eq!(usage(&other).await, json!({ "messages": null, "copies": 0, "bytes": 0, "mailboxes": 0 }));
}

/// Only one request at a time reads many mailboxes for a token for some of them.
#[tokio::test(start_paused = true)]
async fn usage_of_many_mailboxes_waits_for_a_permit() {
    let accounts = Accounts::new(Duration::from_hours(1));
    for number in 0..2500 {
        accounts.server.add_message(number, &format!("ci-{number}"), "\r\n").await;
    }
    accounts.server.add_message(2500, "qa-1", "\r\n").await;
    let (many, few) = (accounts.token(&["ci-*"]).await, accounts.token(&["qa-*"]).await);
    let usage = async |header: &str| accounts.server.request(&format!("GET /api/v2/usage\n{header}")).await;
    let permit = accounts.state.messages.scan_permits.clone().acquire_owned().await.unwrap();
    usage(&many).await.problem(503);
    assert_eq!(usage(&few).await.json()["mailboxes"], 1);
    drop(permit);
    assert_eq!(usage(&many).await.json()["mailboxes"], 2500);
    // A pattern that begins with a wildcard needs the permit once for all batches.
    let wildcard = accounts.token(&["*-1*"]).await;
    assert_eq!(usage(&wildcard).await.json()["mailboxes"], 1112);
}
