//! Messages that match a query.

use std::time::Duration;

use restante_mail::address::{Address, Alphabet};
use restante_mail::details::DetailFields;
use restante_mail::envelope::{self, Envelope, Recipient};
use restante_mail::naming::Naming;
use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::auth_server::AuthServer;
use crate::support::messages::{add_copies, search_server, wait_until_indexed};

const SEARCH: &str = "/api/v1/search";

/// More messages than a search reads to find words.
const MANY: u64 = 2050;

/// Returns the subjects of the messages that match a query, which is encoded.
async fn subjects(server: &TestServer, query: &str) -> Vec<String> {
    let response = server.request(&format!("GET {SEARCH}?limit=500&query={query}")).await;
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    assert_eq!(response.header("content-type"), "application/json");
    let messages = response.json()["messages"].as_array().unwrap().clone();
    messages.iter().map(|message| message["Subject"].as_str().unwrap().to_owned()).collect()
}

/// Returns the numbers of messages in the response to a search.
async fn totals(server: &TestServer, query: &str) -> Value {
    let list = server.request(&format!("GET {SEARCH}?{query}")).await.json();
    let names = ["total", "unread", "count", "messages_count", "messages_unread", "start"];
    names.iter().map(|name| list[name].clone()).collect()
}

/// Creates a server with three messages: an order, an invoice with a file, and news in HTML.
async fn server_with_messages() -> TestServer {
    let server = server();
    let from = |name: &str| json!({ "Name": name, "Email": format!("{}@shop.example", name.to_lowercase()) });
    server
        .send(&json!({
            "From": from("Ann"), "To": [{ "Email": "bob@x.example" }], "Subject": "Order 7",
            "Text": "Your order, (number 7), is complete.", "Tags": ["Orders"],
        }))
        .await;
    server
        .send(&json!({
            "From": from("Ann"), "To": [{ "Email": "bob@x.example" }], "Cc": [{ "Email": "cid@x.example" }],
            "Bcc": ["eve@x.example"], "ReplyTo": [{ "Email": "help@shop.example" }], "Subject": "Invoice",
            "Text": "Attached.", "Attachments": [{ "Filename": "Invoice-7.pdf", "Content": "eA==" }],
        }))
        .await;
    server
        .send(&json!({
            "From": from("News"), "To": [{ "Name": "Dan", "Email": "dan@y.example" }], "Subject": "This week",
            "Text": "Plain", "HTML": "<p>Read <a href='https://news.example/7'>more</a></p>",
        }))
        .await;
    server
}

#[tokio::test]
async fn finds_messages() {
    let server = server_with_messages().await;
    let table: [(&str, &[&str]); 22] = [
        ("shop.example", &["This week", "Invoice", "Order 7"]),
        ("from:ann", &["Invoice", "Order 7"]),
        ("FROM:ann+-subject:invoice", &["Order 7"]),
        ("to:dan", &["This week"]),
        ("cc:cid", &["Invoice"]),
        ("bcc:eve", &["Invoice"]),
        ("reply-to:help", &["Invoice"]),
        ("addressed:x.example", &["Invoice", "Order 7"]),
        ("tag:orders", &["Order 7"]),
        ("-is:tagged", &["This week", "Invoice"]),
        ("has:attachment", &["Invoice"]),
        ("complete", &["Order 7"]),
        ("plete", &["Order 7"]),
        ("%22order+number+7+is%22", &["Order 7"]),
        ("invoice-7.pdf", &["Invoice"]),
        ("news.example/7", &["This week"]),
        ("plain", &[]),
        ("-complete", &["This week", "Invoice"]),
        ("!complete+from:ann", &["Invoice"]),
        ("after:2026-01-01+is:unread", &["This week", "Invoice", "Order 7"]),
        ("before:2020-01-01", &[]),
        ("before:soon+plete", &["Order 7"]),
    ];
    for (query, expected) in table {
        assert_eq!(subjects(&server, query).await, expected, "{query}");
    }
}

/// Creates a server whose response cache has this size.
fn server_with_cache(cache_bytes: usize) -> TestServer {
    server_with(Settings { max_message_bytes: 100_000, cache_bytes, ..Settings::default() })
}

/// A small cache has the texts of the newest messages only.
#[tokio::test]
async fn cached_texts_are_searched_like_sources() {
    for cache_bytes in [0, 4000, 1 << 20] {
        let server = server_with_cache(cache_bytes);
        for number in 0..20 {
            let text = format!("Number {number}, {} Grüße", if number % 2 == 0 { "even" } else { "odd" });
            server
                .send(&json!({ "From": { "Email": "a@x.example" }, "To": [{ "Email": "bob@x.example" }],
                "Subject": number.to_string(), "Text": text, "HTML": format!("<p>{text}</p>") }))
                .await;
        }
        for _ in 0..3 {
            let table = [("ven", 10), ("-even", 10), ("%22number+7+odd%22", 1), ("gr%C3%BC%C3%9F+er+1", 11), ("p", 20)];
            for (query, expected) in table {
                assert_eq!(subjects(&server, query).await.len(), expected, "{cache_bytes} {query}");
            }
        }
    }
}

#[tokio::test]
async fn recipients_of_deleted_copies_are_not_found_in_cached_texts() {
    let server = server_with_cache(1 << 20);
    server
        .send(&json!({
            "From": { "Email": "a@x.example" }, "To": [{ "Email": "bob@x.example" }], "Bcc": ["eve@x.example"],
            "Subject": "Hello", "Text": "Some words.",
        }))
        .await;
    assert_eq!(subjects(&server, "words").await, ["Hello"]);
    assert_eq!(subjects(&server, "eve@x.example+words").await, ["Hello"]);
    assert_eq!(server.request("DELETE /api/v1/mailbox/eve").await.status, 200);
    assert_eq!(subjects(&server, "words").await, ["Hello"]);
    for query in ["eve@x.example", "eve@x.example+words"] {
        assert!(subjects(&server, query).await.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn pages_have_totals() {
    let server = server();
    for number in 0..5 {
        add_copies(&server, number, &["bob", "cid"], if number < 3 { &["low"] } else { &[] }).await;
    }
    let body = json!({ "Read": true, "IDs": [id(0).to_string(), id(4).to_string()] }).to_string();
    server.request_body("PUT /api/v1/messages", body).await;
    let before = id(2) / 1000;
    let table = [
        ("query=tag:low".to_owned(), json!([5, 3, 3, 3, 2, 0])),
        ("query=tag:low&start=1&limit=1".to_owned(), json!([5, 3, 1, 3, 2, 1])),
        ("query=tag:low&start=7".to_owned(), json!([5, 3, 0, 3, 2, 7])),
        ("query=tag:low&limit=0".to_owned(), json!([5, 3, 0, 3, 2, 0])),
        ("query=tag:low&limit=-1&start=x".to_owned(), json!([5, 3, 3, 3, 2, 0])),
        (format!("query=tag:low&before={before}"), json!([5, 3, 2, 2, 1, 0])),
        ("query=subject:nothing".to_owned(), json!([5, 3, 0, 0, 0, 0])),
    ];
    for (query, expected) in table {
        assert_eq!(totals(&server, &query).await, expected, "{query}");
    }
    let page = server.request(&format!("GET {SEARCH}?query=tag:low&start=1&limit=1")).await.json();
    assert_eq!(page["messages"][0]["Subject"], "number 1");
    assert_eq!(page["tags"], json!(["low"]));
}

#[tokio::test]
async fn latest_message_can_be_one_that_matches() {
    let server = server_with_messages().await;
    let table = [
        ("", Some("This week")),
        ("?query=", Some("This week")),
        ("?query=from:ann", Some("Invoice")),
        ("?query=complete", Some("Order 7")),
        ("?query=nothing", None),
    ];
    for (query, subject) in table {
        let message = server.request(&format!("GET /api/v1/message/latest{query}")).await;
        let raw = server.request(&format!("GET /api/v1/message/latest/raw{query}")).await;
        let view = server.request(&format!("GET /view/latest.txt{query}")).await;
        match subject {
            Some(subject) => {
                assert_eq!(message.json()["Subject"], subject, "{query}");
                assert!(raw.text().contains(&format!("\nSubject: {subject}\r\n")), "{query}");
                assert_eq!(view.status, 200, "{query}");
            }
            None => {
                for response in [message, raw, view] {
                    assert_eq!((response.status.as_u16(), response.text()), (404, "Message not found"), "{query}");
                }
            }
        }
    }
    let id =
        server.request("GET /api/v1/message/latest?query=from:ann").await.json()["ID"].as_str().unwrap().to_owned();
    let other = server.request(&format!("GET /api/v1/message/{id}?query=nothing")).await;
    assert_eq!(other.json()["Subject"], "Invoice", "a query selects only the latest message");
}

#[tokio::test]
async fn dates_are_in_the_requested_zone() {
    let server = server();
    // 2026-11-14 23:42:50 in UTC.
    add_copies(&server, 0, &["bob"], &[]).await;
    for (zone, expected) in [("UTC", 0), ("Pacific%2FAuckland", 1), ("America%2FNew_York", 0)] {
        assert_eq!(totals(&server, &format!("query=after:2026-11-15&tz={zone}")).await[2], expected, "{zone}");
    }
}

#[tokio::test]
async fn deletes_matching_messages() {
    let server = server_with_messages().await;
    let table: [(&str, &[&str]); 4] = [
        ("query=nothing", &["This week", "Invoice", "Order 7"]),
        ("query=complete&tz=UTC", &["This week", "Invoice"]),
        ("query=-from:ann+before:2199-01-01", &["Invoice"]),
        ("query=-nothing", &[]),
    ];
    for (query, left) in table {
        let response = server.request(&format!("DELETE {SEARCH}?{query}")).await;
        assert_eq!((response.text(), response.header("content-type")), ("ok", "text/plain"), "{query}");
        assert_eq!(subjects(&server, "after:2000-01-01").await, left, "{query}");
    }
}

#[tokio::test]
async fn invalid_searches_are_refused() {
    let server = server_with_messages().await;
    let many = format!("query={}", "a+".repeat(65));
    let table = [
        ("", "Error: no search query"),
        ("q=x", "Error: no search query"),
        ("query=", "Error: no search query"),
        ("query=+%20", "Error: no search query"),
        (&many, "Error: the search query has more than 64 terms"),
        ("query=%ff", "The query is not percent-encoded UTF-8."),
    ];
    for method in ["GET", "DELETE"] {
        for (query, expected) in table {
            let response = server.request(&format!("{method} {SEARCH}?{query}")).await;
            assert_eq!((response.status.as_u16(), response.text()), (400, expected), "{method} {query}");
        }
    }
    let invalid = [
        "before:soon",
        "from:ann+-after:yesterday",
        "before:2026-11-16&tz=Mars%2FOlympus",
        "-has:atachment",
        "!is:tagge",
        "-larger:10g",
        "-smaller:0",
    ];
    for query in invalid {
        let response = server.request(&format!("DELETE {SEARCH}?query={query}")).await;
        assert_eq!(response.status, 400, "{query}");
        assert!(
            response.text().starts_with("Error: a term of the search query is invalid: "),
            "{query}: {}",
            response.text()
        );
    }
    assert_eq!(subjects(&server, "-nothing").await.len(), 3);
}

#[tokio::test]
async fn limited_token_finds_and_deletes_only_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    for number in 0..4 {
        add_copies(server, number, if number < 2 { &["ann", "ci-1"] } else { &["ann"] }, &[]).await;
    }
    let (limited, all) = (accounts.token(&["ci-*"]).await, accounts.token(&["*"]).await);
    let find = async |query: &str, token: &str| {
        let list = server.request(&format!("GET {SEARCH}?query={query}\n{token}")).await.json();
        [list["messages_count"].as_u64().unwrap(), list["total"].as_u64().unwrap()]
    };
    assert_eq!(find("gr%C3%BC%C3%9Fe", &limited).await, [2, 2]);
    assert_eq!(find("bcc:ann", &limited).await, [0, 2], "recipients of other mailboxes are not visible");
    assert_eq!(find("subject:number", &all).await, [4, 4]);
    let response = server.request(&format!("DELETE {SEARCH}?query=subject:number+gr%C3%BC%C3%9Fe\n{limited}")).await;
    assert_eq!(response.text(), "ok");
    assert_eq!(find("subject:number", &limited).await, [0, 0]);
    assert_eq!(find("subject:number", &all).await, [4, 4]);
    assert_eq!(find("bcc:ci-1", &all).await, [0, 4]);
}

#[tokio::test]
async fn searches_need_scopes() {
    let auth = AuthServer::new().await;
    let requests = [("GET", &auth.writer), ("DELETE", &auth.reader), ("DELETE", &auth.writer)];
    for (method, token) in requests {
        let request = format!("{method} {SEARCH}?query=hello\nAuthorization: Bearer {token}");
        assert_eq!(auth.server.request(&request).await.status, 403, "{request}");
    }
}

/// A message is not deleted because the value that an excluded term compares is longer than the stored one.
#[tokio::test]
async fn excluded_terms_apply_to_long_values() {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let mailroom = Arc::new(mailroom);
    let server = TestServer { store, router: router(mailroom.clone(), Settings::default()) };
    let recipient =
        |address: &str| Recipient::new(Address::parse(address, Alphabet::Ascii).unwrap(), Naming::Local).unwrap();
    let many = |count: usize| (0..count).map(|number| format!("p{number}@x.org")).collect::<Vec<_>>().join(",");
    let headers = [
        format!("Subject: {} keep", "x".repeat(5000)),
        format!("Reply-To: {},keep@x.org", many(200)),
        format!("To: {},keep@x.org", many(1000)),
        format!("Message-ID: <{}keep@x.org>", "x".repeat(2000)),
        format!("Cc: {},keep@x.org", many(200)),
    ];
    for header in headers {
        let envelope = Envelope {
            peer: envelope::Peer { ip: None, helo: "client.test".into() },
            login: None,
            key: None,
            listener: None,
            from: None,
            recipients: vec![recipient("bob@x.org"), recipient("hidden@x.org")],
        };
        mailroom.deliver(&envelope, format!("{header}\r\n\r\nHi\r\n").into()).await.unwrap();
    }
    for field in ["subject", "reply-to", "to", "message-id", "cc"] {
        assert_eq!(totals(&server, &format!("query=-{field}:keep")).await[3], 4, "{field}");
    }
    // The last one deletes all messages but that with the long subject.
    for (query, left) in [("-bcc:hidden", 5), ("-hidden@x.org", 5), ("-subject:keep", 1)] {
        assert_eq!(server.request(&format!("DELETE {SEARCH}?query={query}")).await.text(), "ok", "{query}");
        assert_eq!(totals(&server, "query=after:2000-01-01").await[3], left, "{query}");
    }
}

/// Otherwise a list, which waits for a scan permit while it holds a work permit, and a search could wait for each other.
#[tokio::test(start_paused = true)]
async fn search_holds_no_scan_permit_while_it_waits_for_a_work_permit() {
    let accounts = Accounts::new(Duration::from_hours(1));
    for number in 0..500 {
        add_copies(&accounts.server, number, &["ann"], if number < 100 { &["old"] } else { &[] }).await;
    }
    let count = u32::try_from(accounts.state.renderer.work_permits.available_permits()).unwrap();
    let permits_held = accounts.state.renderer.work_permits.clone().acquire_many_owned(count).await.unwrap();
    let token = accounts.token(&["*"]).await;
    let search = async {
        let response = accounts.server.request(&format!("GET {SEARCH}?query=tag:old+gr%C3%BC%C3%9Fe\n{token}")).await;
        response.json()["messages_count"].clone()
    };
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let available = accounts.state.messages.scan_permits.available_permits();
        drop(permits_held);
        available
    };
    assert_eq!(tokio::join!(search, other), (json!(100), 1));
}

#[tokio::test]
async fn searches_that_take_too_long_are_refused_and_change_nothing() {
    let server =
        TestServer::build(Policy::default(), Settings::default(), |server| server.max_compared_bytes = 100_000);
    for number in 0..10 {
        add_copies(&server, number, &["bob"], &[]).await;
    }
    let (few, many) = ("-subject:x+-gr%C3%BC", "-subject:x+".repeat(60) + "-hidden+gr%C3%BC");
    assert_eq!(totals(&server, &format!("query={few}")).await[3], 0);
    let requests = [
        format!("GET {SEARCH}?query={many}"),
        format!("DELETE {SEARCH}?query={many}"),
        format!("GET /view/latest.txt?query={many}+nothing"),
    ];
    for request in requests {
        let response = server.request(&request).await;
        assert_eq!(response.status, 503, "{request}");
        assert!(response.text().starts_with("The search takes too long."), "{request}: {}", response.text());
    }
    let body = json!({ "Read": true, "Search": many.replace("%C3%BC", "ü").replace('+', " ") }).to_string();
    assert_eq!(server.request_body("PUT /api/v1/messages", body).await.status, 503);
    assert_eq!(totals(&server, "query=is:unread").await[3], 10);
}

/// Comparing many terms with long headers takes long, so it does not run on the network threads.
#[tokio::test(start_paused = true)]
async fn long_queries_wait_for_a_work_permit() {
    let accounts = Accounts::new(Duration::from_hours(1));
    for number in 0..20 {
        add_copies(&accounts.server, number, &["ann"], &[]).await;
    }
    let count = u32::try_from(accounts.state.renderer.work_permits.available_permits()).unwrap();
    let permits_held = accounts.state.renderer.work_permits.clone().acquire_many_owned(count).await.unwrap();
    let token = accounts.token(&["*"]).await;
    let search = async |terms: usize| {
        let query = "-to:nobody+".repeat(terms);
        accounts.server.request(&format!("GET {SEARCH}?query={query}\n{token}")).await
    };
    assert_eq!(search(1).await.json()["messages_count"], 20);
    let to: Vec<String> = (0..500).map(|number| format!("<{number}@example.org>")).collect();
    let message = NewMessage {
        received: Timestamp::now(),
        headline: Headline::new("", to.iter().map(String::as_str), ""),
        body: MAIL.into(),
        copies: vec![NewCopy {
            mailbox: "ann".to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::new(&DetailFields::default()),
            trace: None,
        }],
    };
    accounts.server.store.append(message).await.unwrap();
    assert_eq!(search(64).await.status, 503);
    drop(permits_held);
    assert_eq!(search(64).await.json()["messages_count"], 21);
}

/// Adds [`MANY`] messages. The even ones are tagged.
async fn add_many(server: &TestServer) {
    for number in 0..MANY {
        add_copies(server, number, &["bob"], if number % 2 == 0 { &["even"] } else { &[] }).await;
    }
}

/// Words are searched in the newest messages only, so nothing is changed by a query with words that would apply to more.
#[tokio::test]
async fn undecided_searches_change_nothing() {
    let server = server();
    add_many(&server).await;
    assert_eq!(totals(&server, "query=example.org").await[3], MANY, "the summary has this word");
    assert_eq!(totals(&server, "query=gr%C3%BC%C3%9Fe").await[3], 2000);
    for query in ["gr%C3%BC%C3%9Fe", "subject:number+-alert"] {
        let response = server.request(&format!("DELETE {SEARCH}?query={query}")).await;
        assert_eq!(response.status, 503, "{query}: {}", response.text());
        assert!(response.text().starts_with("There are more messages than are searched for words"));
    }
    let body = json!({ "Read": true, "Search": "-alert" }).to_string();
    assert_eq!(server.request_body("PUT /api/v1/messages", body).await.status, 503);
    assert_eq!(totals(&server, "query=is:unread").await[3], MANY);
    // The other terms select few messages.
    let delete = format!("DELETE {SEARCH}?query=tag:even+-alert");
    assert_eq!(server.request(&delete).await.text(), "ok");
    assert_eq!(totals(&server, "query=-tag:even").await, json!([MANY / 2, MANY / 2, 50, MANY / 2, MANY / 2, 0]));
    assert_eq!(totals(&server, "query=tag:even").await[3], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn index_finds_older_messages() {
    let server = search_server();
    add_many(&server).await;
    wait_until_indexed(&server, "").await;
    assert_eq!(totals(&server, "query=gr%C3%BC%C3%9Fe").await[3], MANY);
    assert_eq!(totals(&server, "query=tag:even+gr%C3%BC%C3%9Fe").await[3], MANY / 2);
    assert_eq!(totals(&server, "query=-nothing").await[3], MANY);
    assert_eq!(server.request(&format!("DELETE {SEARCH}?query=gr%C3%BC%C3%9Fe")).await.status, 503);
}
