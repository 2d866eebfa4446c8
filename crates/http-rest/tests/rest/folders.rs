//! Folders of mailboxes: their names in paths, parameters and lists, and the rights to them.

use serde_json::json;

use crate::support::accounts::Accounts;
use crate::support::*;

const NAMES: [&str; 6] = ["bob", "bob,Sent", "bob,sent", "bob,Archive/2024", "bob-x", "ann,Drafts"];

async fn add_messages(server: &TestServer) {
    for (number, name) in (0..).zip(NAMES) {
        server.add_message(number, name, "\r\n").await;
    }
}

/// Returns the names in the list of mailboxes.
async fn names(server: &TestServer, query: &str, header: &str) -> Vec<String> {
    let list = server.request(&format!("GET /api/v2/mailboxes{query}\n{header}")).await.json();
    let names = list["mailboxes"].as_array().expect("a list").iter().map(|mailbox| mailbox["name"].as_str());
    names.map(|name| name.expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn folder_follows_its_owner_in_the_list() {
    let server = TestServer::new();
    add_messages(&server).await;
    let bob = ["bob", "bob,Archive/2024", "bob,Sent", "bob,sent"];
    assert_eq!(names(&server, "", "").await, [&["ann,Drafts"], &bob[..], &["bob-x"]].concat());
    let table: [(&str, &[&str]); 5] = [
        ("?prefix=BOB,", &bob[1..]),
        ("?prefix=Bob%2CSe", &bob[2..3]),
        ("?prefix=bob,se", &bob[3..]),
        ("?prefix=bob&limit=2&after=bob,Archive/2024", &bob[2..]),
        ("?prefix=bob,archive", &[]),
    ];
    for (query, expected) in table {
        assert_eq!(names(&server, query, "").await, expected, "{query}");
    }
}

#[tokio::test]
async fn folder_is_a_mailbox() {
    let server = TestServer::new();
    add_messages(&server).await;
    for (name, number) in [
        ("bob", 0),
        ("bob,Sent", 1),
        ("BOB%2Bx@x.org,Sent", 1),
        ("bob%2Csent", 2),
        ("bob,Archive%2F2024", 3),
        ("Ann%2CDrafts", 5),
    ] {
        let path = format!("/api/v1/mailbox/{name}");
        assert_eq!(server.request(&format!("GET {path}")).await.numbers(), [number], "{name}");
        assert_eq!(server.request(&format!("GET {path}/{}/source", id(number))).await.status, 200, "{name}");
        let listed = server.request(&format!("GET /api/v2/messages?mailbox={name}")).await.json();
        assert_eq!(listed["messages"].as_array().map(Vec::len), Some(1), "{name}");
    }
    let latest = server.request("GET /api/v1/mailbox/Bob,Archive%2F2024/latest").await.json();
    assert_eq!(latest["mailbox"], "bob,Archive/2024");
    let message = format!("/api/v1/mailbox/bob,sent/{}", id(2));
    assert_eq!(server.request(&format!("PATCH {message}")).await.status, 200);
    assert_eq!(server.request(&format!("GET {message}")).await.json()["seen"], true);
    assert_eq!(server.request(&format!("DELETE {message}")).await.status, 200);
    assert_eq!(server.request(&format!("GET {message}")).await.status, 404);
    // The folders are kept.
    assert_eq!(server.request("DELETE /api/v1/mailbox/bob").await.status, 200);
    assert_eq!(names(&server, "?prefix=bob", "").await, ["bob,Archive/2024", "bob,Sent", "bob-x"]);
    assert_eq!(server.request("DELETE /api/v2/mailboxes?prefix=Bob,S").await.json(), json!({"deleted": 1}));
    assert_eq!(names(&server, "?prefix=bob", "").await, ["bob,Archive/2024", "bob-x"]);
}

#[tokio::test]
async fn wrong_names_of_folders_are_refused() {
    let server = TestServer::new();
    let names =
        ["bob,", ",Sent", ",", "bob,INBOX", "bob,a%2F%2Fb", "bob,%20a", "bob,a*", "bob,a%25", "bob,%00", "a%20b,c"];
    for name in names {
        for request in ["GET", "DELETE"].map(|method| format!("{method} /api/v1/mailbox/{name}")) {
            let detail = server.request(&request).await.problem(400);
            assert!(detail.starts_with("This is not a mailbox name: "), "{request} {detail}");
        }
    }
    let request = "POST /api/v2/mailbox/bob,Sent\nContent-Type: message/rfc822";
    let refused = server.request_with(request, "Subject: x\r\n\r\n", Peer::default()).await;
    assert_eq!(refused.problem(400), "There is no address for a mailbox with this name.");
}

#[tokio::test]
async fn grant_of_a_mailbox_covers_its_folders() {
    let accounts = Accounts::with_search();
    add_messages(&accounts.server).await;
    accounts.server.add_message(6, "shop:bob,Sent", "\r\n").await;
    accounts.server.add_message(7, "shop:bob", "\r\n").await;
    let (bob, shop) = (accounts.token(&["bob"]).await, accounts.token(&["shop:*"]).await);
    let server = &accounts.server;
    assert_eq!(names(server, "", &bob).await, ["bob", "bob,Archive/2024", "bob,Sent", "bob,sent"]);
    assert_eq!(names(server, "", &shop).await, ["bob", "bob,Sent"]);
    // The request, and the status with both tokens.
    let table = [
        ("bob,Sent", 200, 200),
        ("shop:Bob,Sent", 403, 200),
        ("ann,Drafts", 403, 200),
        ("ann,bob", 403, 200),
        ("bob-x,Sent", 403, 200),
        ("acme:bob,Sent", 403, 403),
    ];
    for (name, with_bob, with_shop) in table {
        for (header, status) in [(&bob, with_bob), (&shop, with_shop)] {
            let response = server.request(&format!("GET /api/v1/mailbox/{name}\n{header}")).await;
            assert_eq!(response.status.as_u16(), status, "{name} {header}");
        }
    }
    let queries = [
        ("bob,Sent", &bob, vec!["bob,Sent"]),
        ("BOB,Se*", &bob, vec!["bob,Sent"]),
        ("bob,*", &bob, vec!["bob,Archive/2024", "bob,sent", "bob,Sent"]),
        ("bob", &shop, vec!["bob"]),
        ("bob,Sent", &shop, vec!["bob,Sent"]),
        ("shop:bob,Sent", &shop, vec!["bob,Sent"]),
        ("ann,*", &bob, vec![]),
    ];
    for (query, header, expected) in queries {
        let found = server.request(&format!("GET /api/v2/search?q=mailbox:{query}\n{header}")).await.json();
        let found: Vec<_> =
            found["messages"].as_array().unwrap().iter().map(|hit| hit["mailbox"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
}
