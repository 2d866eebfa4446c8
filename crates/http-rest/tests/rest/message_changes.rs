//! Changes of many messages as a whole: of those that match a query, and of those whose ids are in the body.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream;
use restante_search::Search;
use restante_store::{Page, Store as _};
use restante_teststore::SharedStore;
use tokio::time::{sleep, timeout};

use crate::support::accounts::Accounts;
use crate::support::auth_server::AuthServer;
use crate::support::messages::{LIST, add_copies, numbers, search_server, wait_until_indexed};
use crate::support::*;

async fn send(server: &TestServer, request: &str, body: &str) -> TestResponse {
    let request = format!("{request}\nContent-Type: application/json");
    server.request_with(&request, body.to_owned(), Peer::default()).await
}

/// Marks messages by a query, after all of them are in the index.
async fn mark(server: &TestServer, query: &str, seen: bool) -> TestResponse {
    wait_until_indexed(server, "").await;
    send(server, &format!("PATCH {LIST}{query}"), &format!("{{\"seen\":{seen}}}")).await
}

/// Returns the messages that are not seen in each of these mailboxes, as numbers.
async fn unseen(server: &TestServer, mailboxes: &[&str]) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    for mailbox in mailboxes {
        let listing = server.store.list(&(*mailbox).to_owned().into(), Page::ALL).await.unwrap();
        let copies = listing.messages.iter().filter(|copy| !copy.seen);
        all.push(copies.map(|copy| (copy.message.number() - FIRST) / 1_000_000).collect());
    }
    all
}

/// Adds messages 0 to 5. The even ones have copies in `ann` and `bob`, the others only in `bob`.
async fn add_messages(server: &TestServer) {
    for number in 0..6 {
        let (mailboxes, tags): (&[&str], &[&str]) =
            if number % 2 == 0 { (&["ann", "bob"], &["even"]) } else { (&["bob"], &[]) };
        add_copies(server, number, mailboxes, tags).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_matching_messages() {
    let server = search_server();
    add_messages(&server).await;
    // Each request is followed by one that marks everything as unseen.
    let table: [(&str, u64, &[u64], &[u64]); 8] = [
        ("", 6, &[], &[]),
        ("?mailbox=ann", 3, &[], &[0, 1, 2, 3, 4, 5]),
        ("?mailbox=Bob@example.org", 6, &[0, 2, 4], &[]),
        ("?tag=even", 3, &[], &[1, 3, 5]),
        ("?q=mailbox:ann", 3, &[], &[1, 3, 5]),
        ("?mailbox=bob&tag=even", 3, &[0, 2, 4], &[1, 3, 5]),
        ("?mailbox=ann&q=%22number+2%22", 1, &[0, 4], &[0, 1, 2, 3, 4, 5]),
        ("?q=nothing", 0, &[0, 2, 4], &[0, 1, 2, 3, 4, 5]),
    ];
    for (query, marked, ann, bob) in table {
        for _ in 0..2 {
            let response = mark(&server, query, true).await;
            assert_eq!(response.text(), format!("{{\"marked\":{marked}}}\n"), "{query}");
            assert_eq!(response.header("cache-control"), "no-store");
        }
        assert_eq!(unseen(&server, &["ann", "bob"]).await, [ann, bob], "{query}");
        assert_eq!(mark(&server, "", false).await.text(), "{\"marked\":6}\n");
        assert_eq!(unseen(&server, &["bob"]).await, [[0, 1, 2, 3, 4, 5]]);
    }
    // The query is about the marks that the request changes.
    assert_eq!(mark(&server, "?q=is:unseen", true).await.text(), "{\"marked\":6}\n");
    assert_eq!(mark(&server, "?q=is:unseen", true).await.text(), "{\"marked\":0}\n");
}

#[tokio::test]
async fn marks_more_than_one_batch() {
    let server = TestServer::new();
    for number in 0..450 {
        add_copies(&server, number, if number % 3 == 0 { &["ann", "bob"] } else { &["bob"] }, &[]).await;
    }
    let marks = async |query: &str| send(&server, &format!("PATCH {LIST}{query}"), "{\"seen\":true}").await.json();
    assert_eq!(marks("?mailbox=bob").await["marked"], 450);
    assert_eq!(unseen(&server, &["bob"]).await, [[0; 0]]);
    assert_eq!(unseen(&server, &["ann"]).await[0].len(), 150);
    assert_eq!(marks("").await["marked"], 450);
    assert_eq!(unseen(&server, &["ann"]).await, [[0; 0]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_more_than_one_batch_by_query() {
    let server = search_server();
    for number in 0..450 {
        add_copies(&server, number, if number % 3 == 0 { &["ann", "bob"] } else { &["bob"] }, &[]).await;
    }
    assert_eq!(mark(&server, "?q=is:unseen", true).await.text(), "{\"marked\":450}\n");
    assert_eq!(unseen(&server, &["ann", "bob"]).await, [[0; 0], [0; 0]]);
    assert_eq!(mark(&server, "?q=is:unseen", true).await.text(), "{\"marked\":0}\n");
    assert_eq!(mark(&server, "?mailbox=bob&q=is:seen", false).await.text(), "{\"marked\":450}\n");
    assert_eq!(unseen(&server, &["ann"]).await, [[0; 0]]);

    wait_until_indexed(&server, "").await;
    let deleted = server.request(&format!("DELETE {LIST}?mailbox=bob&q=subject:number")).await;
    assert_eq!(deleted.text(), "{\"deleted\":450}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}?mailbox=bob")).await), (vec![], None));
    let rest = (0..150).rev().map(|number| 3 * number).collect();
    assert_eq!(numbers(&server.request(&format!("GET {LIST}?limit=1000")).await), (rest, None));
    wait_until_indexed(&server, "").await;
    assert_eq!(server.request(&format!("DELETE {LIST}?q=mailbox:ann")).await.text(), "{\"deleted\":150}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_copies_of_a_mailbox() {
    let server = search_server();
    add_messages(&server).await;
    let delete = async |query: &str| {
        wait_until_indexed(&server, "").await;
        server.request(&format!("DELETE {LIST}?{query}")).await.text().to_owned()
    };
    assert_eq!(delete("mailbox=nobody").await, "{\"deleted\":0}\n");
    assert_eq!(delete("mailbox=bob&tag=even&q=%22number+4%22").await, "{\"deleted\":1}\n");
    let list = server.request(&format!("GET {LIST}/{}", id(4))).await.json();
    assert_eq!(list["mailboxes"], serde_json::json!(["ann"]), "the copy in the other mailbox stays");
    assert_eq!(delete("mailbox=bob&tag=even").await, "{\"deleted\":2}\n");
    assert_eq!(delete("mailbox=BOB").await, "{\"deleted\":3}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![4, 2, 0], None));
    assert_eq!(numbers(&server.request(&format!("GET {LIST}?mailbox=bob")).await), (vec![], None));
}

#[tokio::test]
async fn changes_messages_by_id() {
    let server = TestServer::new();
    add_messages(&server).await;
    let ids = |numbers: &[u64]| {
        let known = numbers.iter().map(|number| id(*number).to_string());
        serde_json::json!(known.chain(["17".to_owned(), "latest".to_owned()]).collect::<Vec<_>>())
    };
    let body = format!("{{\"ids\":{},\"seen\":true}}", ids(&[0, 1, 2, 2]));
    assert_eq!(send(&server, &format!("POST {LIST}/mark"), &body).await.text(), "{\"marked\":3}\n");
    assert_eq!(unseen(&server, &["ann", "bob"]).await, [vec![4], vec![3, 4, 5]]);
    let body = format!("{{\"ids\":{},\"seen\":false}}", ids(&[2]));
    assert_eq!(send(&server, &format!("POST {LIST}/mark"), &body).await.text(), "{\"marked\":1}\n");
    assert_eq!(unseen(&server, &["ann", "bob"]).await, [vec![2, 4], vec![2, 3, 4, 5]]);
    let delete = format!("{{\"ids\":{}}}", ids(&[0, 3, 3]));
    assert_eq!(send(&server, &format!("POST {LIST}/delete"), &delete).await.text(), "{\"deleted\":2}\n");
    assert_eq!(send(&server, &format!("POST {LIST}/delete"), &delete).await.text(), "{\"deleted\":0}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![5, 4, 2, 1], None));
}

#[tokio::test]
async fn changes_as_many_messages_as_permitted() {
    let server = TestServer::new();
    for number in 0..450 {
        add_copies(&server, number, &["ann", "bob"], &[]).await;
    }
    let body = |count: u64, seen: &str| {
        let ids: Vec<String> = (0..count).map(|number| id(number).to_string()).collect();
        format!("{{\"ids\":{}{seen}}}", serde_json::json!(ids))
    };
    for (path, seen) in [("mark", ",\"seen\":true"), ("delete", "")] {
        let too_many = send(&server, &format!("POST {LIST}/{path}"), &body(20_001, seen)).await.problem(422);
        assert!(too_many.contains("at most 20,000 ids"), "{too_many}");
        let response = send(&server, &format!("POST {LIST}/{path}"), &body(20_000, seen)).await;
        let expected = if path == "mark" { "{\"marked\":450}\n" } else { "{\"deleted\":450}\n" };
        assert_eq!(response.text(), expected);
        if path == "mark" {
            assert_eq!(unseen(&server, &["ann", "bob"]).await, [[0; 0], [0; 0]]);
        }
    }
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![], None));
}

#[tokio::test]
async fn limited_token_changes_only_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    for number in 0..4 {
        add_copies(server, number, if number % 2 == 0 { &["ann", "ci-1", "ci-2"] } else { &["ann"] }, &[]).await;
    }
    let limited = accounts.token(&["ci-*"]).await;
    let ids = serde_json::json!([id(0).to_string(), id(1).to_string(), (id(2) + 1).to_string()]);
    let table = [
        ("PATCH".to_owned(), String::new(), "{\"seen\":true}".to_owned(), "{\"marked\":2}\n"),
        ("PATCH".to_owned(), "?mailbox=CI-1".to_owned(), "{\"seen\":false}".to_owned(), "{\"marked\":2}\n"),
        ("POST".to_owned(), "/mark".to_owned(), format!("{{\"ids\":{ids},\"seen\":true}}"), "{\"marked\":1}\n"),
        ("POST".to_owned(), "/delete".to_owned(), format!("{{\"ids\":{ids}}}"), "{\"deleted\":1}\n"),
        ("DELETE".to_owned(), "?mailbox=ci-2".to_owned(), String::new(), "{\"deleted\":1}\n"),
    ];
    for (method, path, body, expected) in table {
        let response = send(server, &format!("{method} {LIST}{path}\n{limited}"), &body).await;
        assert_eq!(response.text(), expected, "{method} {path}");
        assert_eq!(unseen(server, &["ann"]).await, [[0, 1, 2, 3]], "{method} {path}");
    }
    assert_eq!(unseen(server, &["ci-1", "ci-2"]).await, [vec![2], vec![]]);
    for (method, body) in [("PATCH", "{\"seen\":true}"), ("DELETE", "")] {
        let refused = send(server, &format!("{method} {LIST}?mailbox=ann\n{limited}"), body).await;
        assert_eq!(refused.problem(403), "The credentials are not for this mailbox.");
    }
    assert_eq!(unseen(server, &["ann"]).await, [[0, 1, 2, 3]]);
}

#[tokio::test]
async fn rejects_invalid_changes_of_many_messages() {
    let server = TestServer::new();
    add_messages(&server).await;
    let seen = "must be {\"seen\": true} or {\"seen\": false}";
    let table = [
        ("PATCH", "", "", 422, seen),
        ("PATCH", "", "[]", 422, seen),
        ("PATCH", "", "{}", 422, seen),
        ("PATCH", "", "{\"seen\":1}", 422, seen),
        ("PATCH", "", "{\"seen\":true,\"tags\":[]}", 422, seen),
        (
            "PATCH",
            "?prefix=x",
            "{\"seen\":true}",
            400,
            "Unknown parameter prefix. Accepted parameters: mailbox, q, tag.",
        ),
        ("PATCH", "?mailbox=", "{\"seen\":true}", 400, "not a mailbox name"),
        ("PATCH", "?mailbox=a..b", "{\"seen\":true}", 400, "not a mailbox name"),
        ("PATCH", "?q=number", "{\"seen\":true}", 404, "search is disabled"),
        ("PATCH", "?q=", "{\"seen\":true}", 400, "The parameter q is blank."),
        ("PATCH", "?q", "{\"seen\":true}", 400, "The parameter q is blank."),
        ("PATCH", "?mailbox=bob&q=+%09", "{\"seen\":true}", 400, "The parameter q is blank."),
        ("PATCH", "?tag=", "{\"seen\":true}", 400, "The parameter tag is invalid"),
        ("DELETE", "?q=", "", 400, "The parameter q is blank."),
        ("DELETE", "?mailbox=bob&q=", "", 400, "The parameter q is blank."),
        ("DELETE", "?mailbox=bob&q=%20", "", 400, "The parameter q is blank."),
        ("DELETE", "?tag=even&q", "", 400, "The parameter q is blank."),
        ("DELETE", "?mailbox=bob&tag=", "", 400, "The parameter tag is invalid"),
        ("DELETE", "", "", 400, "One of the parameters mailbox, q and tag is required."),
        ("DELETE", "?mailbox=bob&limit=1", "", 400, "Unknown parameter limit."),
        ("DELETE", "?mailbox=bob&mailbox=ann", "", 400, "The parameter mailbox is given twice."),
        ("DELETE", "?mailbox=a%20b", "", 400, "not a mailbox name"),
        ("DELETE", "?mailbox=bob&q=number", "", 404, "search is disabled"),
        ("POST", "/mark", "{\"ids\":[]}", 422, "\"seen\": true"),
        ("POST", "/mark", "{\"ids\":[17],\"seen\":true}", 422, "ids as strings"),
        ("POST", "/delete", "{\"id\":[]}", 422, "ids as strings"),
        ("GET", "/mark", "", 405, "does not support this method"),
    ];
    for (method, path, body, status, expected) in table {
        let problem = send(&server, &format!("{method} {LIST}{path}"), body).await.problem(status);
        assert!(problem.contains(expected), "{method} {path} {body}: {problem}");
    }
    assert_eq!(unseen(&server, &["bob"]).await, [[0, 1, 2, 3, 4, 5]]);
}

/// A client that may not read could otherwise find out what messages contain.
#[tokio::test]
async fn changes_by_query_need_both_scopes() {
    let auth = AuthServer::new().await;
    for (method, query) in [("PATCH", ""), ("PATCH", "?q=hello"), ("DELETE", "?mailbox=bob")] {
        for (token, missing) in [(&auth.writer, "read"), (&auth.reader, "write")] {
            let request = format!("{method} {LIST}{query}\nAuthorization: Bearer {token}");
            let problem = send(&auth.server, &request, "{\"seen\":true}").await.problem(403);
            assert!(problem.ends_with(&format!("it needs the scope {missing}.")), "{request} {problem}");
        }
    }
}

/// A client that disconnects does not leave half of the messages unchanged.
#[tokio::test]
async fn changes_by_id_complete_after_a_disconnect() {
    let node = SharedStore::new(Limits::default()).node().await;
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), node.clone(), Extensions::default());
    let router = router(Arc::new(mailroom), Settings::default());
    // More than one batch. The events fit into the feed of the node, which is not read.
    let mut ids = Vec::new();
    for _ in 0..250 {
        let copy = NewCopy {
            mailbox: "bob".to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::default(),
            trace: None,
        };
        let message = NewMessage {
            received: Timestamp::now(),
            headline: Headline::new("a@example.org", ["bob@example.org"], "many"),
            body: MAIL.into(),
            copies: vec![copy],
        };
        ids.push(node.append(message).await.unwrap().stored[0].message.to_string());
    }
    let count = async |is_counted: fn(bool) -> bool| {
        let listing = node.list(&"bob".to_owned().into(), Page::ALL).await.unwrap();
        listing.messages.iter().filter(|copy| is_counted(copy.seen)).count()
    };
    for (path, seen, is_rest) in
        [("mark", ",\"seen\":true", (|seen| !seen) as fn(bool) -> bool), ("delete", "", |_| true)]
    {
        let body = format!("{{\"ids\":{}{seen}}}", serde_json::json!(ids));
        let request = format!("POST {LIST}/{path}\nContent-Type: application/json");
        let mut response = Box::pin(send_request(&router, &request, body.into(), Peer::default()));
        // Dropped after the first messages were changed.
        while count(is_rest).await == 250 {
            assert!(response.as_mut().now_or_never().is_none(), "{path}: it was too fast");
            tokio::task::yield_now().await;
        }
        assert!(count(is_rest).await > 0, "{path}: it was too fast");
        drop(response);
        let complete = async {
            while count(is_rest).await > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(1), complete).await.expect(path);
    }
}

/// The token is revoked while the request arrives.
#[tokio::test]
async fn changes_by_id_do_not_start_with_a_revoked_token() {
    for (path, seen) in [("mark", ",\"seen\":true"), ("delete", "")] {
        let auth = AuthServer::new().await;
        let body = format!("{{\"ids\":[\"{}\"]{seen}}}", id(0));
        let request =
            format!("POST {LIST}/{path}\nContent-Type: application/json\nAuthorization: Bearer {}", auth.writer);
        let auth = Arc::new(auth);
        let revoking = auth.clone();
        let late = stream::once(async move {
            revoking.revoke("writer").await;
            Ok::<_, std::io::Error>(body)
        });
        let response = auth.server.request_with(&request, Body::from_stream(late), Peer::default()).await;
        response.problem(401);
        assert_eq!(unseen(&auth.server, &["test"]).await, [[0]], "{path}");
    }
}

/// Nothing is marked if the search cannot say what matches.
#[tokio::test(start_paused = true)]
async fn incomplete_index_marks_nothing() {
    // The index is not started, so it stays incomplete.
    let services =
        restante_http::Services { search: Some(Arc::new(Search::new(None))), ..restante_http::Services::default() };
    let server = TestServer::with(Settings { services, ..Settings::default() });
    add_messages(&server).await;
    for query in ["q=number", "mailbox=bob&q=number"] {
        send(&server, &format!("PATCH {LIST}?{query}"), "{\"seen\":true}").await.problem(503);
        server.request(&format!("DELETE {LIST}?{query}")).await.problem(503);
    }
    assert_eq!(unseen(&server, &["bob"]).await, [[0, 1, 2, 3, 4, 5]]);
}
