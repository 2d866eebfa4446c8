//! Tests that a token for some mailboxes reveals nothing about others, and that requests with a login session end when
//! the session ends.

use std::time::Duration;

use futures_util::stream;
use restante_journal::{Chunk, Recipient, Side};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::support::accounts::Accounts;
use crate::support::sessions::{chunk, session_info, transaction};
use crate::support::*;

/// Longer than anything here takes, and shorter than the interval at which files are checked.
const SOON: Duration = Duration::from_secs(8);
const EXPIRED: &str = "The token or the login has expired, or was revoked.";

/// Returns the names on each page of the list of mailboxes, and the text of all responses.
async fn pages(accounts: &Accounts, query: &str, header: &str) -> (Vec<Vec<String>>, String) {
    let (mut pages, mut responses, mut after) = (Vec::new(), String::new(), String::new());
    loop {
        let response = accounts.server.request(&format!("GET /api/v2/mailboxes?{query}&after={after}\n{header}")).await;
        responses.push_str(response.text());
        let list = response.json();
        let names = list["mailboxes"].as_array().unwrap().iter();
        pages.push(names.map(|mailbox| mailbox["name"].as_str().unwrap().to_owned()).collect());
        match list["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return (pages, responses),
        }
    }
}

#[tokio::test]
async fn mailbox_list_contains_only_permitted_mailboxes() {
    // The patterns of a token, a query, and the expected pages.
    type Row = (&'static [&'static str], &'static str, &'static [&'static [&'static str]]);
    let accounts = Accounts::new(Duration::from_hours(1));
    let names = ["a-ci", "aa", "ci", "ci-1", "ci-2", "ci-3", "m-ci", "zz"];
    for (number, name) in (0..).zip(names) {
        accounts.server.add_message(number, name, "\r\n").await;
    }
    let table: [Row; 9] = [
        (&["ci-*"], "limit=1", &[&["ci-1"], &["ci-2"], &["ci-3"]]),
        (&["ci-*"], "limit=2", &[&["ci-1", "ci-2"], &["ci-3"]]),
        (&["ci-*"], "limit=3", &[&["ci-1", "ci-2", "ci-3"]]),
        (&["ci-*"], "limit=1&prefix=c", &[&["ci-1"], &["ci-2"], &["ci-3"]]),
        (&["ci-*"], "limit=1&prefix=ci-2", &[&["ci-2"]]),
        (&["ci-*"], "limit=1&prefix=z", &[&[]]),
        (&["*-ci"], "limit=1", &[&["a-ci"], &["m-ci"]]),
        (&["zz", "ci-?", "a*"], "limit=2", &[&["a-ci", "aa"], &["ci-1", "ci-2"], &["ci-3", "zz"]]),
        (&["nothing"], "limit=1", &[&[]]),
    ];
    for (patterns, query, expected) in table {
        let header = accounts.token(patterns).await;
        let (pages, responses) = pages(&accounts, query, &header).await;
        assert_eq!(pages, expected, "{patterns:?} {query}");
        for name in names.iter().filter(|name| !pages.concat().contains(&(**name).to_owned())) {
            assert!(!responses.contains(&format!("\"{name}\"")), "{patterns:?} {query}: {responses}");
        }
    }
}

#[tokio::test]
async fn permitted_mailbox_is_found_among_many() {
    let accounts = Accounts::new(Duration::from_hours(1));
    for number in 0..5000 {
        accounts.server.add_message(number, &format!("other-{number:04}"), "\r\n").await;
    }
    accounts.server.add_message(5000, "zz-ci", "\r\n").await;
    let (some, none) = (accounts.token(&["*-ci"]).await, accounts.token(&["*-qa"]).await);
    assert_eq!(pages(&accounts, "limit=1", &some).await.0, [["zz-ci"]]);
    assert_eq!(pages(&accounts, "limit=1", &none).await.0, [[""; 0]]);
}

#[tokio::test]
async fn transcript_hides_other_recipients() {
    let accounts = Accounts::new(Duration::from_hours(1));
    accounts.server.add_message(0, "ci-1", "Subject: one\r\n\r\nHello\r\n").await;
    let lines = [
        (1, Side::Client, "MAIL FROM:<a@example.org>"),
        (2, Side::Server, "250 2.1.0 Sender ok"),
        (3, Side::Client, "rcpt to:<Bob@example.org> NOTIFY=NEVER"),
        (4, Side::Server, "250 2.1.5 Recipient ok"),
        (5, Side::Client, "RCPT TO:<ci-1@example.org>"),
        (6, Side::Server, "250 2.1.5 Recipient ok"),
        (7, Side::Client, "RCPT TO:eve@example.org"),
        (8, Side::Server, "550 5.1.1-No eve@example.org"),
        (9, Side::Server, "550 5.1.1 here"),
        (10, Side::Client, "VRFY mallory"),
        (11, Side::Server, "252 2.1.5 Send some mail"),
        (12, Side::Client, "DATA"),
        (13, Side::Server, "354 Go on"),
    ];
    let recipient = |name: &str| Recipient { address: format!("{name}@example.org"), parameters: format!("X={name}") };
    let stored = transaction(&[("ci-1", id(0)), ("bob", 7)]);
    let transaction = Some(restante_journal::Transaction { to: vec![recipient("Bob"), recipient("ci-1")], ..stored });
    accounts.journal.append(Chunk { transaction, ..chunk(FIRST, 1, session_info(FIRST), &lines) });

    let path = format!("GET /api/v2/mailbox/ci-1/{}/transcript", id(0));
    let transcript = async |header: &str| accounts.server.request(&format!("{path}\n{header}")).await.json();
    let limited = transcript(&accounts.token(&["ci-*"]).await).await;
    let shown = &limited["session"]["transactions"][0];
    assert_eq!((&shown["to"], &shown["parameters"]["rcpt"]), (&json!(["ci-1@example.org"]), &json!(["X=ci-1"])));
    assert_eq!(shown["messages"], json!([{"mailbox": "ci-1", "id": id(0).to_string()}]));
    let lines_shown: Vec<&str> =
        limited["lines"].as_array().unwrap().iter().map(|l| l["text"].as_str().unwrap()).collect();
    let expected = [
        "MAIL FROM:<a@example.org>",
        "250 2.1.0 Sender ok",
        "RCPT TO:<ci-1@example.org>",
        "250 2.1.5 Recipient ok",
        "DATA",
        "354 Go on",
    ];
    assert_eq!(lines_shown, expected);
    let complete = transcript(&accounts.token(&[]).await).await;
    assert_eq!(complete["lines"].as_array().unwrap().len(), lines.len());
    assert_eq!(complete["session"]["transactions"][0]["to"], json!(["Bob@example.org", "ci-1@example.org"]));
}

#[tokio::test]
async fn long_requests_end_with_logout() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let (cookie, other) = (accounts.log_in().await, accounts.log_in().await);
    let get = |request: &str| {
        let request = format!("{request}\n{cookie}");
        async { accounts.server.request(&{ request }).await }
    };
    let (sender, rest) = oneshot::channel();
    let upload = async {
        let rest = async { Ok::<_, std::io::Error>(rest.await.unwrap()) };
        let body = Body::from_stream(stream::once(rest));
        let request = format!("POST /api/v2/mailbox/bob\nContent-Type: message/rfc822\n{cookie}");
        accounts.server.request_with(&request, body, Peer::default()).await
    };
    let log_out = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        accounts.log_out(&cookie).await;
        sender.send("Subject: late\r\n\r\n").unwrap();
    };
    let all = async {
        tokio::join!(
            get("GET /api/v2/mailbox/none/wait?timeout=10m"),
            get("GET /api/v1/mailbox/none/latest?wait=10m"),
            get("GET /api/v2/events"),
            upload,
            log_out
        )
    };
    let (waited, latest, streamed, uploaded, ()) = timeout(SOON, all).await.expect("they end with the logout");
    for response in [waited, latest, uploaded] {
        assert_eq!(response.problem(401), EXPIRED);
    }
    assert_eq!(streamed.text(), "retry: 1000\n\n: the credentials are no longer valid\n\n");
    // Another login of the same user is still valid, and nothing was stored.
    let list = accounts.server.request(&format!("GET /api/v1/mailbox/bob\n{other}")).await;
    assert_eq!((list.status, list.text().trim_end()), (StatusCode::OK, "[]"));
}

#[tokio::test]
async fn long_requests_end_with_session_expiry() {
    let accounts = Accounts::new(Duration::from_secs(2));
    let cookie = accounts.log_in().await;
    let wait = format!("GET /api/v2/mailbox/none/wait?timeout=10m\n{cookie}");
    let events = format!("GET /api/v2/events\n{cookie}");
    let both = async { tokio::join!(accounts.server.request(&wait), accounts.server.request(&events)) };
    let (waited, streamed) = timeout(SOON, both).await.expect("they end when the session expires");
    assert_eq!(waited.problem(401), EXPIRED);
    assert!(streamed.text().ends_with(": the credentials are no longer valid\n\n"), "{}", streamed.text());
}
