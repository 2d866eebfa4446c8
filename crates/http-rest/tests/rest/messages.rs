//! Messages as a whole: the list, one message, changes and deletions, for all clients and for those that may access only
//! some mailboxes.

use std::time::Duration;

use restante_mail::details::DetailFields;
use restante_search::Search;
use serde_json::{Value, json};

use crate::support::accounts::Accounts;
use crate::support::auth_server::AuthServer;
use crate::support::messages::{LIST, NOT_FOUND, add_copies, numbers, search_server, wait_until_indexed};
use crate::support::*;

/// The numbers of the messages on a page, and that of `next`.
type Page = (&'static [u64], Option<u64>);

/// Returns the entry of a message that [`add_copies`] stored in mailbox `bob`.
fn entry(number: u64) -> Value {
    let second = 50 + number;
    json!({
        "id": id(number).to_string(),
        "from": "Änne <a@example.org>",
        "to": ["<all@example.org>"],
        "cc": ["<cc@example.org>"],
        "recipients": ["bob@example.org"],
        "mailboxes": ["bob"],
        "subject": format!("number {number}"),
        "snippet": "Hello \"all\"",
        "received": format!("2026-11-14T23:42:{second}.123456+00:00"),
        "size": source_size(),
        "attachments": 2,
        "seen": false,
        "tags": ["run 7"],
    })
}

/// Returns the size of the source of a message in mailbox `bob`.
fn source_size() -> usize {
    let fields = DetailFields {
        sender: "ann@example.org",
        helo: "laptop",
        ip: Some([127, 0, 0, 1].into()),
        host: "mx",
        ..DetailFields::default()
    };
    let received = Timestamp::from_microsecond(FIRST.cast_signed()).unwrap();
    Details::new(&fields).trace(&"bob".to_owned().into(), received).len() + MAIL.len()
}

async fn patch(server: &TestServer, target: &str, body: &str) -> TestResponse {
    server.request_with(&format!("PATCH {LIST}/{target}"), body.to_owned(), Peer::default()).await
}

#[tokio::test]
async fn list_contains_all_fields() {
    let server = TestServer::new();
    assert_eq!(server.request(&format!("GET {LIST}")).await.text(), "{\"messages\":[],\"next\":null}\n");
    add_copies(&server, 0, &["bob"], &["run 7"]).await;
    let response = server.request(&format!("GET {LIST}")).await;
    assert_eq!(response.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(response.header("expires"), "-1");
    assert_eq!(response.json(), json!({ "messages": [entry(0)], "next": null }));
    assert!(response.text().starts_with(&format!("{{\"messages\":[{{\"id\":\"{FIRST}\",\"from\":")));
}

#[tokio::test]
async fn copies_are_one_message() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["ann", "bob", "eve"], &["run 7"]).await;
    let bob = message.number() + 1;
    server.request_with(&format!("PATCH /api/v1/mailbox/bob/{bob}"), "", Peer::default()).await;
    let list = server.request(&format!("GET {LIST}")).await.json();
    let whole = server.request(&format!("GET {LIST}/{message}")).await.json();
    assert_eq!(list["messages"].as_array().unwrap().len(), 1);
    for found in [&list["messages"][0], &whole] {
        assert_eq!(found["mailboxes"], json!(["ann", "bob", "eve"]));
        assert_eq!(found["recipients"], json!(["ann@example.org", "bob@example.org", "eve@example.org"]));
        assert_eq!(found["seen"], false, "not all copies are seen");
    }
    let copy = |offset: u64, mailbox: &str| {
        json!({
            "mailbox": mailbox,
            "id": (message.number() + offset).to_string(),
            "number": 1,
            "recipients": [format!("{mailbox}@example.org")],
            "seen": mailbox == "bob",
            "tags": ["run 7"],
        })
    };
    assert_eq!(whole["copies"], json!([copy(0, "ann"), copy(1, "bob"), copy(2, "eve")]));
    // A message exists for as long as one of its copies does, under the same id.
    server.request(&format!("DELETE /api/v1/mailbox/ann/{message}")).await;
    let rest = server.request(&format!("GET {LIST}/{message}")).await.json();
    assert_eq!((&rest["id"], &rest["mailboxes"]), (&message.to_string().into(), &json!(["bob", "eve"])));
    let by_copy = server.request(&format!("GET {LIST}/{bob}")).await.json();
    assert_eq!(by_copy, rest, "the id of a copy stands for its message");
}

#[tokio::test]
async fn pages_of_the_list() {
    let server = TestServer::new();
    for number in 0..5 {
        add_copies(&server, number, &["ann", "bob"], &[]).await;
    }
    let table: [(String, Page); 9] = [
        (String::new(), (&[4, 3, 2, 1, 0], None)),
        ("limit=2".to_owned(), (&[4, 3], Some(3))),
        (format!("limit=2&before={}", id(3)), (&[2, 1], Some(1))),
        (format!("limit=2&before={}", id(1)), (&[0], None)),
        (format!("limit=5&before={}", id(0)), (&[], None)),
        (format!("after={}", id(2)), (&[4, 3], None)),
        (format!("limit=1&after={}", id(2)), (&[4], Some(4))),
        (format!("limit=1&after={}&before={}", id(2), id(4)), (&[3], None)),
        ("limit=1001&unknown=1".to_owned(), (&[4, 3, 2, 1, 0], None)),
    ];
    for (query, (expected, next)) in table {
        let response = server.request(&format!("GET {LIST}?{query}")).await;
        assert_eq!(numbers(&response), (expected.to_vec(), next), "{query}");
    }
}

/// Stores messages with this number of copies each, in the mailboxes `ci-0`, `ci-1` and so on.
async fn add_large_messages(server: &TestServer, messages: u64, copies: usize) {
    let mailboxes: Vec<String> = (0..copies).map(|number| format!("ci-{number}")).collect();
    let mailboxes: Vec<&str> = mailboxes.iter().map(String::as_str).collect();
    for number in 0..messages {
        add_copies(server, number, &mailboxes, &[]).await;
    }
}

/// A page has at most about 20,000 copies.
#[tokio::test]
async fn page_of_messages_with_many_copies_is_shorter() {
    let accounts = Accounts::new(Duration::from_hours(1));
    add_large_messages(&accounts.server, 130, 200).await;
    for token in [accounts.token(&[]).await, accounts.token(&["ci-*"]).await] {
        let list = async |query: &str| {
            numbers(&accounts.server.request(&format!("GET {LIST}?limit=1000{query}\n{token}")).await)
        };
        assert_eq!(list("").await, ((30..130).rev().collect(), Some(30)));
        assert_eq!(list(&format!("&before={}", id(30))).await, ((0..30).rev().collect(), None));
        assert_eq!(list("&mailbox=ci-7").await.0.len(), 130);
    }
}

/// A search finds each message once, so that a page is complete even if messages have many copies.
#[tokio::test(flavor = "multi_thread")]
async fn search_finds_messages_with_many_copies() {
    let server = search_server();
    add_large_messages(&server, 40, 100).await;
    wait_until_indexed(&server, "").await;
    for query in ["q=number", "q=is:unseen", "q=number+-mailbox:ci-99"] {
        let list = async |more: &str| numbers(&server.request(&format!("GET {LIST}?{query}{more}")).await);
        assert_eq!(list("&limit=1000").await, ((0..40).rev().collect(), None), "{query}");
        assert_eq!(list("&limit=39").await, ((1..40).rev().collect(), Some(1)), "{query}");
        assert_eq!(list(&format!("&limit=39&before={}", id(1))).await, (vec![0], None), "{query}");
    }
}

/// Otherwise many requests could hold long pages in memory while they wait.
#[tokio::test(start_paused = true)]
async fn long_page_waits_for_permit_before_it_is_read() {
    let accounts = Accounts::with_search();
    add_copies(&accounts.server, 0, &["ci-1"], &[]).await;
    let token = accounts.token(&["ci-*"]).await;
    let count = u32::try_from(accounts.state.renderer.work_permits.available_permits()).unwrap();
    let permits_held = accounts.state.renderer.work_permits.clone().acquire_many_owned(count).await.unwrap();
    let list = async |query: &str| accounts.server.request(&format!("GET {LIST}?{query}\n{token}")).await;
    for query in ["limit=201", "limit=1000&q=number"] {
        list(query).await.problem(503);
    }
    assert_eq!(numbers(&list("limit=200").await), (vec![0], None));
    drop(permits_held);
    assert_eq!(numbers(&list("limit=1000").await), (vec![0], None));
}

#[tokio::test]
async fn limits_of_the_list() {
    let server = TestServer::new();
    for number in 0..1005 {
        add_copies(&server, number, &["bob"], &[]).await;
    }
    for (query, count) in
        [("", 50), ("limit=200", 200), ("limit=1000", 1000), ("limit=1001", 1000), ("limit=99999", 1000)]
    {
        for mailbox in ["", "&mailbox=bob"] {
            let response = server.request(&format!("GET {LIST}?{query}{mailbox}")).await;
            let expected = ((1005 - count..1005).rev().collect(), Some(1005 - count));
            assert_eq!(numbers(&response), expected, "{query}{mailbox}");
        }
    }
}

#[tokio::test]
async fn rejects_invalid_parameters() {
    let server = search_server();
    let long = format!("tag={}", "x".repeat(65));
    let many = "tag=x&".repeat(21);
    let table = [
        ("limit=0", "The parameter limit must be at least 1."),
        ("limit=abc", "The parameter limit must be a whole number."),
        ("limit=-1", "The parameter limit must be a whole number."),
        ("limit=1&limit=2", "The parameter limit is given twice."),
        ("before=latest", "The parameter before must be a whole number."),
        ("before=", "The parameter before must be a whole number."),
        ("after=99999999999999999999", "The parameter after must be a whole number."),
        ("q=(x", "of the query"),
        ("q=a&q=b", "The parameter q is given twice."),
        ("q=%FF", "The query is not percent-encoded UTF-8."),
        ("tag=", "The parameter tag is invalid: a tag must not be empty."),
        ("tag=a&tag=b%22", "The parameter tag is invalid: a tag must not contain '\"'"),
        (long.as_str(), "The parameter tag is invalid: a tag has at most 64 characters."),
        (many.as_str(), "The parameter tag must not be given more than 20 times."),
    ];
    for (query, expected) in table {
        let sentence = server.request(&format!("GET {LIST}?{query}")).await.problem(400);
        assert!(sentence.contains(expected), "{query}: {sentence}");
    }
    let missing =
        "One of the parameters mailbox, q and tag is required. DELETE /api/v2/mailboxes deletes all messages.";
    for query in ["", "?"] {
        assert_eq!(server.request(&format!("DELETE {LIST}{query}")).await.problem(400), missing, "{query}");
    }
    let unknown = "Unknown parameter query. Accepted parameters: mailbox, q, tag.";
    assert_eq!(server.request(&format!("DELETE {LIST}?q=x&query=y")).await.problem(400), unknown);
    server.request(&format!("DELETE {LIST}?q=(x")).await.problem(400);
}

#[tokio::test]
async fn list_is_cached_until_a_change() {
    let server = TestServer::new();
    add_copies(&server, 0, &["bob"], &[]).await;
    let request = format!("GET {LIST}?limit=2");
    let first = server.request(&request).await;
    let conditional = format!("{request}\nIf-None-Match: {}", first.header("etag"));
    assert_eq!(server.request(&conditional).await.status, 304);
    assert_eq!(server.request(&request).await.body, first.body);
    let changes = [
        format!("PATCH {LIST}/{}", id(0)),
        format!("PATCH /api/v1/mailbox/bob/{}", id(0)),
        format!("DELETE {LIST}/{}", id(0)),
    ];
    let (mut last, bodies) = (first, ["{\"tags\":[\"new\"]}", "{\"seen\":true}", ""]);
    for (change, body) in changes.iter().zip(bodies) {
        assert_eq!(server.request_with(change, body, Peer::default()).await.status, 200, "{change}");
        let conditional = format!("{request}\nIf-None-Match: {}", last.header("etag"));
        let next = server.request(&conditional).await;
        assert_eq!(next.status, 200, "{change}");
        assert_ne!(next.body, last.body, "{change}");
        assert_eq!(server.request(&request).await.body, next.body, "{change}");
        last = next;
    }
}

#[tokio::test]
async fn one_message() {
    let server = TestServer::new();
    assert_eq!(server.request(&format!("GET {LIST}/latest")).await.problem(404), NOT_FOUND);
    add_copies(&server, 0, &["bob"], &["run 7"]).await;
    add_copies(&server, 1, &["ann"], &[]).await;
    let response = server.request(&format!("GET {LIST}/{}", id(0))).await;
    let mut expected = entry(0);
    expected["sender"] = "ann@example.org".into();
    expected["client"] = json!({ "ip": "127.0.0.1", "helo": "laptop", "login": "ci" });
    expected["copies"] = json!([{
        "mailbox": "bob",
        "id": id(0).to_string(),
        "number": 1,
        "recipients": ["bob@example.org"],
        "seen": false,
        "tags": ["run 7"],
    }]);
    assert_eq!(response.json(), expected);
    let conditional = format!("GET {LIST}/{}\nIf-None-Match: {}", id(0), response.header("etag"));
    assert_eq!(server.request(&conditional).await.status, 304);
    patch(&server, &id(0).to_string(), "{\"seen\":true}").await;
    assert_eq!(server.request(&conditional).await.status, 200);
    let latest = server.request(&format!("GET {LIST}/latest")).await.json();
    assert_eq!(latest["mailboxes"], json!(["ann"]));
    // A message that was stored by another program has no details.
    server.add_message(2, "eve", MAIL).await;
    let bare = server.request(&format!("GET {LIST}/latest")).await.json();
    assert_eq!((&bare["sender"], &bare["client"]), (&"".into(), &json!({ "ip": null, "helo": "", "login": null })));
    for wrong in ["17", "Latest", "x", "0", "01", "99999999999999999999", "1%2F2"] {
        assert_eq!(server.request(&format!("GET {LIST}/{wrong}")).await.problem(404), NOT_FOUND, "{wrong}");
    }
}

#[tokio::test]
async fn resources_are_those_of_the_first_copy() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let message = add_copies(&accounts.server, 0, &["ann", "ci-1"], &[]).await;
    let second = message.number() + 1;
    let (all, limited) = (accounts.token(&[]).await, accounts.token(&["ci-*"]).await);
    let table = [
        ("details", "/api/v2/mailbox/{name}/{id}"),
        ("source", "/api/v1/mailbox/{name}/{id}/source"),
        ("html", "/serve/mailbox/{name}/{id}/html"),
        ("html?scheme=dark&remote=1", "/serve/mailbox/{name}/{id}/html?scheme=dark&remote=1"),
        ("links", "/api/v2/mailbox/{name}/{id}/links"),
        ("codes", "/api/v2/mailbox/{name}/{id}/codes"),
        ("unsubscribe", "/api/v2/mailbox/{name}/{id}/unsubscribe"),
        ("html-check", "/api/v2/mailbox/{name}/{id}/html-check"),
        ("parts", "/api/v2/mailbox/{name}/{id}/parts"),
        ("parts/3", "/api/v2/mailbox/{name}/{id}/parts/3"),
        ("parts/99", "/api/v2/mailbox/{name}/{id}/parts/99"),
        ("attachments/0", "/mailbox/vattach/{name}/{id}/0/x"),
        ("attachments/x", "/mailbox/vattach/{name}/{id}/x/x"),
        ("transcript", "/api/v2/mailbox/{name}/{id}/transcript"),
    ];
    for (resource, path_of_copy) in table {
        for (header, mailbox, copy) in [(&all, "ann", message.number()), (&limited, "ci-1", second)] {
            let path = path_of_copy.replace("{name}", mailbox).replace("{id}", &copy.to_string());
            let expected = accounts.server.request(&format!("GET {path}\n{header}")).await;
            for id in [message.to_string(), "latest".to_owned()] {
                let request = format!("GET {LIST}/{id}/{resource}\n{header}");
                let response = accounts.server.request(&request).await;
                assert_eq!((response.status, &response.body), (expected.status, &expected.body), "{request}");
                assert_eq!(response.headers, expected.headers, "{request}");
            }
        }
        let request = format!("GET {LIST}/17/{resource}\n{all}");
        assert_eq!(accounts.server.request(&request).await.problem(404), NOT_FOUND);
    }
}

#[tokio::test]
async fn limited_token_sees_only_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    let shared = add_copies(server, 0, &["ann", "ci-1", "ci-2", "eve"], &[]).await;
    let hidden = add_copies(server, 1, &["ann", "eve"], &[]).await;
    let limited = accounts.token(&["ci-*"]).await;
    let list = server.request(&format!("GET {LIST}\n{limited}")).await;
    assert_eq!(numbers(&list), (vec![0], None));
    let conditional = format!("GET {LIST}\n{limited}\nIf-None-Match: {}", list.header("etag"));
    assert_eq!(server.request(&conditional).await.status, 304);
    for target in [shared.to_string(), "latest".to_owned()] {
        let response = server.request(&format!("GET {LIST}/{target}\n{limited}")).await;
        let message = response.json();
        assert_eq!(message["mailboxes"], json!(["ci-1", "ci-2"]));
        assert_eq!(message["recipients"], json!(["ci-1@example.org", "ci-2@example.org"]));
        assert_eq!(message["copies"].as_array().unwrap().len(), 2);
        assert!(!response.text().contains("eve"), "{}", response.text());
    }
    for method in ["GET", "DELETE"] {
        let request = format!("{method} {LIST}/{hidden}\n{limited}");
        assert_eq!(server.request(&request).await.problem(404), NOT_FOUND, "{method}");
    }
    let request = format!("PATCH {LIST}/{hidden}\n{limited}");
    assert_eq!(server.request_with(&request, "{\"seen\":true}", Peer::default()).await.problem(404), NOT_FOUND);

    // Changes and deletions apply only to permitted copies.
    let body = "{\"seen\":true,\"tags\":[\"mine\"]}";
    let request = format!("PATCH {LIST}/{shared}\n{limited}");
    let changed = server.request_with(&request, body, Peer::default()).await.json();
    assert_eq!((&changed["seen"], &changed["tags"]), (&true.into(), &json!(["mine"])));
    assert_eq!(changed["mailboxes"], json!(["ci-1", "ci-2"]));
    let all = accounts.token(&[]).await;
    let message = server.request(&format!("GET {LIST}/{shared}\n{all}")).await.json();
    let seen: Vec<bool> = message["copies"].as_array().unwrap().iter().map(|c| c["seen"] == true).collect();
    assert_eq!((seen, &message["seen"]), (vec![false, true, true, false], &false.into()));
    assert_eq!(server.request(&format!("DELETE {LIST}/{shared}\n{limited}")).await.text(), "\"OK\"\n");
    let rest = server.request(&format!("GET {LIST}/{shared}\n{all}")).await.json();
    assert_eq!(rest["mailboxes"], json!(["ann", "eve"]));
    assert_eq!(server.request(&format!("DELETE {LIST}/{shared}\n{limited}")).await.problem(404), NOT_FOUND);
    assert_eq!(server.request(&format!("GET {LIST}/latest\n{limited}")).await.problem(404), NOT_FOUND);
}

#[tokio::test]
async fn limited_token_gets_pages() {
    let accounts = Accounts::new(Duration::from_hours(1));
    for number in 0..30 {
        let mailboxes: &[&str] = if number % 3 == 0 { &["ann", "ci-1"] } else { &["ann"] };
        add_copies(&accounts.server, number, mailboxes, &[]).await;
    }
    let limited = accounts.token(&["ci-*"]).await;
    let (mut found, mut before) = (Vec::new(), String::new());
    loop {
        let request = format!("GET {LIST}?limit=3{before}\n{limited}");
        let (messages, next) = numbers(&accounts.server.request(&request).await);
        assert!(messages.len() == 3 || next.is_none(), "{messages:?}");
        found.extend(messages);
        let Some(next) = next else { break };
        before = format!("&before={}", id(next));
    }
    assert_eq!(found, [27, 24, 21, 18, 15, 12, 9, 6, 3, 0]);
    let request = format!("GET {LIST}?after={}\n{limited}", id(21));
    assert_eq!(numbers(&accounts.server.request(&request).await), (vec![27, 24], None));
}

/// The number of messages that one request reads is limited, so a page can be empty and not the last one.
#[tokio::test]
async fn limited_token_finds_old_messages_in_several_pages() {
    let accounts = Accounts::new(Duration::from_hours(1));
    accounts.server.add_message(0, "ci-1", "\r\n").await;
    accounts.server.add_message(1, "dev-1", "\r\n").await;
    for number in 2..=20_600 {
        accounts.server.add_message(number, "other", "\r\n").await;
    }
    let limited = accounts.token(&["ci-*"]).await;
    let response = accounts.server.request(&format!("GET {LIST}\n{limited}")).await;
    let (messages, next) = numbers(&response);
    assert!(messages.is_empty());
    let number = next.expect("a cursor");
    assert!((1..=601).contains(&number), "{number}");
    let next = response.json()["next"].as_str().unwrap().to_owned();
    assert!(next.ends_with("000") && next.parse::<u64>().unwrap() > id(number), "{next} is not the id of a message");
    let request = format!("GET {LIST}?before={next}\n{limited}");
    assert_eq!(numbers(&accounts.server.request(&request).await), (vec![0], None));

    // The latest message is found nevertheless.
    for (header, expected) in [(limited, "ci-1"), (accounts.token(&["*-1"]).await, "dev-1")] {
        let latest = accounts.server.request(&format!("GET {LIST}/latest\n{header}")).await.json();
        assert_eq!(latest["mailboxes"], json!([expected]));
    }
    let none = accounts.token(&["ci-7", "x*"]).await;
    assert_eq!(accounts.server.request(&format!("GET {LIST}/latest\n{none}")).await.problem(404), NOT_FOUND);
}

#[tokio::test]
async fn changes_marks_and_tags() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["ann", "bob"], &["old"]).await.to_string();
    let table: [(&str, (bool, &[&str])); 5] = [
        ("{\"seen\":true}", (true, &["old"])),
        ("{\"tags\":[\" Run 7 \",\"run 7\",\"größe\"]}", (true, &["Run 7", "größe"])),
        ("{\"tags\":[],\"seen\":false}", (false, &[])),
        ("{\"tags\":[\"a-b_c.d@e\"],\"seen\":true}", (true, &["a-b_c.d@e"])),
        ("{\"seen\":true}", (true, &["a-b_c.d@e"])),
    ];
    for (body, (seen, tags)) in table {
        for target in [message.as_str(), "latest"] {
            let response = patch(&server, target, body).await;
            let changed = response.json();
            assert_eq!((&changed["seen"], &changed["tags"]), (&seen.into(), &json!(tags)), "{body}");
            assert_eq!(response.header("cache-control"), "no-store");
        }
        let whole = server.request(&format!("GET {LIST}/{message}")).await.json();
        for copy in whole["copies"].as_array().unwrap() {
            assert_eq!((&copy["seen"], &copy["tags"]), (&seen.into(), &json!(tags)), "{body}");
        }
    }
    assert_eq!(patch(&server, "17", "{\"seen\":true}").await.problem(404), NOT_FOUND);
}

#[tokio::test]
async fn rejects_invalid_changes() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["bob"], &["old"]).await.to_string();
    let shape = "The body of the request must be {\"seen\": true, \"tags\": [\"…\"]}, with one of these members or both, and no \
                 others.";
    let many = json!({ "tags": (0..21).map(|number| number.to_string()).collect::<Vec<_>>() }).to_string();
    let long = json!({ "tags": ["x".repeat(65)] }).to_string();
    let table = [
        ("", shape),
        ("{}", shape),
        ("[]", shape),
        ("null", shape),
        ("{\"seen\":1}", shape),
        ("{\"seen\":\"true\"}", shape),
        ("{\"seen\":null}", shape),
        ("{\"Seen\":true}", shape),
        ("{\"seen\":true,\"tag\":[]}", shape),
        ("{\"tags\":\"a\"}", shape),
        ("{\"tags\":[1]}", shape),
        ("{\"tags\":null,\"seen\":true}", shape),
        ("{\"tags\":[\" \"],\"seen\":true}", "The member tags is invalid: a tag must not be empty."),
        ("{\"tags\":[\"a,b\"]}", "The member tags is invalid: a tag must not contain ','"),
        (long.as_str(), "The member tags is invalid: a tag has at most 64 characters."),
        (many.as_str(), "The member tags is invalid: a message has at most 20 tags."),
        ("{", "The body of the request is not valid JSON"),
    ];
    for (body, expected) in table {
        let sentence = patch(&server, &message, body).await.problem(422);
        assert!(sentence.starts_with(expected), "{body}: {sentence}");
    }
    let request = format!("PATCH {LIST}/{message}\nContent-Type: text/plain");
    server.request_with(&request, "{\"seen\":true}", Peer::default()).await.problem(415);
    let large = json!({ "tags": ["x".repeat(1 << 16)] }).to_string();
    patch(&server, &message, &large).await.problem(413);
    assert_eq!(server.request(&format!("GET {LIST}/latest")).await.json()["tags"], json!(["old"]));
    assert_eq!(server.request(&format!("GET {LIST}/latest")).await.json()["seen"], false);
}

/// A change shows the message only to clients that may read it.
#[tokio::test]
async fn change_without_read_scope_shows_nothing() {
    let auth = AuthServer::new().await;
    let request = |token: &str| format!("PATCH {LIST}/{}\nAuthorization: Bearer {token}", id(0));
    let change = async |token| auth.server.request_with(&request(token), "{\"seen\":true}", Peer::default()).await;
    assert_eq!(change(&auth.writer).await.text(), "\"OK\"\n");
    let reader = change(&auth.reader).await;
    assert_eq!(reader.problem(403), "The credentials do not allow this: it needs the scope write.");
    let message = auth.server.request(&format!("GET {LIST}/{}\nAuthorization: Bearer {}", id(0), auth.reader)).await;
    assert_eq!(message.json()["seen"], true);
}

#[tokio::test]
async fn deletes_one_message() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["ann", "bob"], &[]).await;
    add_copies(&server, 1, &["ann"], &[]).await;
    assert_eq!(server.request(&format!("DELETE {LIST}/latest")).await.problem(404), NOT_FOUND);
    assert_eq!(server.request(&format!("DELETE {LIST}/{message}")).await.text(), "\"OK\"\n");
    assert_eq!(server.request(&format!("DELETE {LIST}/{message}")).await.problem(404), NOT_FOUND);
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![1], None));
    assert_eq!(server.request("GET /api/v1/mailbox/bob").await.text(), "[]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_messages_once() {
    let server = search_server();
    for number in 0..12 {
        let mailboxes: &[&str] = if number % 2 == 0 { &["ann", "bob", "eve", "joe"] } else { &["bob"] };
        add_copies(&server, number, mailboxes, &[]).await;
    }
    wait_until_indexed(&server, "").await;
    for limit in [1, 2, 5, 12, 50] {
        let (mut found, mut before) = (Vec::new(), String::new());
        loop {
            let request = format!("GET {LIST}?q=subject:number&limit={limit}{before}");
            let (messages, next) = numbers(&server.request(&request).await);
            assert!(messages.len() <= limit);
            found.extend(messages);
            let Some(next) = next else { break };
            before = format!("&before={}", id(next));
        }
        assert_eq!(found, (0..12).rev().collect::<Vec<_>>(), "{limit}");
    }
    let table = [
        ("q=mailbox:joe&limit=3".to_owned(), (vec![10, 8, 6], Some(6))),
        (format!("q=number&after={}", id(9)), (vec![11, 10], None)),
        (format!("q=number&after={}&limit=1", id(9)), (vec![11], Some(11))),
        ("q=%22number+3%22".to_owned(), (vec![3], None)),
        ("q=nothing".to_owned(), (vec![], None)),
        ("q=&limit=1".to_owned(), (vec![11], Some(11))),
    ];
    for (query, expected) in table {
        assert_eq!(numbers(&server.request(&format!("GET {LIST}?{query}")).await), expected, "{query}");
    }
    let message = server.request(&format!("GET {LIST}?q=%22number+0%22")).await.json();
    assert_eq!(message["messages"][0]["mailboxes"], json!(["ann", "bob", "eve", "joe"]), "not only matching copies");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_matching_messages() {
    let server = search_server();
    for number in 0..10 {
        add_copies(&server, number, if number < 5 { &["ann", "bob"] } else { &["bob"] }, &[]).await;
    }
    wait_until_indexed(&server, "").await;
    let delete = async |query: &str| server.request(&format!("DELETE {LIST}?{query}")).await.text().to_owned();
    assert_eq!(delete("q=nothing").await, "{\"deleted\":0}\n");
    assert_eq!(delete("q=%22number+7%22").await, "{\"deleted\":1}\n");
    assert_eq!(delete("q=mailbox:ann").await, "{\"deleted\":5}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![9, 8, 6, 5], None));
    assert_eq!(delete("q=number").await, "{\"deleted\":4}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_more_than_one_batch() {
    let server = search_server();
    for number in 0..450 {
        add_copies(&server, number, &["ann", "bob"], &[]).await;
    }
    wait_until_indexed(&server, "").await;
    let response = server.request(&format!("DELETE {LIST}?q=subject:number")).await;
    assert_eq!(response.text(), "{\"deleted\":450}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn limited_token_finds_and_deletes_only_its_copies() {
    let accounts = Accounts::with_search();
    for number in 0..4 {
        add_copies(&accounts.server, number, if number < 2 { &["ann", "ci-1"] } else { &["ann"] }, &[]).await;
    }
    let (all, limited) = (accounts.token(&[]).await, accounts.token(&["ci-*"]).await);
    wait_until_indexed(&accounts.server, &format!("\n{all}")).await;
    let get = async |request: &str, header: &str| accounts.server.request(&format!("{request}\n{header}")).await;
    let found = get(&format!("GET {LIST}?q=number"), &limited).await;
    assert_eq!(numbers(&found), (vec![1, 0], None));
    assert!(!found.text().contains("ann@"), "{}", found.text());
    assert_eq!(get(&format!("DELETE {LIST}?q=mailbox:ann"), &limited).await.text(), "{\"deleted\":0}\n");
    assert_eq!(get(&format!("DELETE {LIST}?q=number"), &limited).await.text(), "{\"deleted\":2}\n");
    let rest = get(&format!("GET {LIST}"), &all).await;
    assert_eq!(numbers(&rest), (vec![3, 2, 1, 0], None));
    assert_eq!(rest.json()["messages"][3]["mailboxes"], json!(["ann"]));
}

/// A client that may not read could otherwise find out what messages contain.
#[tokio::test]
async fn deletion_by_query_needs_read_scope() {
    let auth = AuthServer::new().await;
    let delete = async |token: &str| {
        auth.server.request(&format!("DELETE {LIST}?q=hello\nAuthorization: Bearer {token}")).await.problem(403)
    };
    assert_eq!(delete(&auth.writer).await, "The credentials do not allow this: it needs the scope read.");
    assert_eq!(delete(&auth.reader).await, "The credentials do not allow this: it needs the scope write.");
    let list = auth.server.request(&format!("GET {LIST}\nAuthorization: Bearer {}", auth.reader)).await;
    assert_eq!(numbers(&list), (vec![1, 0], None));
}

/// Filters by tags. It needs the term `tag:` of the query language.
#[tokio::test(flavor = "multi_thread")]
async fn finds_and_deletes_messages_by_tag() {
    let server = search_server();
    for (number, tags) in [&["run 7"][..], &["run 7", "smoke"], &["Run 7", "slow"], &["smoke"], &[]].iter().enumerate()
    {
        add_copies(&server, number as u64, &["ann", "bob"], tags).await;
    }
    wait_until_indexed(&server, "").await;
    let table = [
        ("tag=run%207", vec![2, 1, 0]),
        ("tag=smoke", vec![3, 1]),
        ("tag=smoke&tag=RUN+7", vec![1]),
        ("tag=run", vec![]),
        ("q=%22number+1%22+or+%22number+3%22&tag=run%207", vec![1]),
        ("q=tag:slow", vec![2]),
    ];
    for (query, expected) in table {
        assert_eq!(numbers(&server.request(&format!("GET {LIST}?{query}")).await), (expected, None), "{query}");
    }
    patch(&server, &id(0).to_string(), "{\"tags\":[\"smoke\"]}").await;
    assert_eq!(numbers(&server.request(&format!("GET {LIST}?tag=smoke")).await), (vec![3, 1, 0], None));
    assert_eq!(server.request(&format!("DELETE {LIST}?tag=smoke")).await.text(), "{\"deleted\":3}\n");
    assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![4, 2], None));
}

/// Nothing is deleted if the search cannot say what matches.
#[tokio::test(start_paused = true)]
async fn unavailable_index_deletes_nothing() {
    let disabled = TestServer::new();
    add_copies(&disabled, 0, &["ann"], &[]).await;
    for method in ["GET", "DELETE"] {
        let response = disabled.request(&format!("{method} {LIST}?q=number")).await;
        assert_eq!(response.problem(404), "The search is disabled by the setting search.enabled.");
    }
    // The index is not started, so it stays incomplete.
    let services =
        restante_http::Services { search: Some(Arc::new(Search::new(None))), ..restante_http::Services::default() };
    let server = TestServer::with(Settings { services, ..Settings::default() });
    add_copies(&server, 0, &["ann"], &[]).await;
    server.request(&format!("DELETE {LIST}?q=number")).await.problem(503);
    for server in [disabled, server] {
        assert_eq!(numbers(&server.request(&format!("GET {LIST}")).await), (vec![0], None));
    }
}
