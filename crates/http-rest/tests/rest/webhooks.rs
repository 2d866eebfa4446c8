//! The targets of webhooks, their queue, and what a grant allows.

use restante_auth::Scope;
use restante_queue::EntryState;
use serde_json::{Value, json};

use crate::support::webhook_server::{PAYLOAD, WebhookServer};
use crate::support::*;

#[tokio::test]
async fn lists_targets_without_secrets() {
    let server = WebhookServer::new().await;
    server.add_entry("bob", 0, "stored").await;
    let target = |index: usize, url: &str, filters: Value, queued: u64| {
        json!({
            "name": server.targets[index], "url": url, "filters": filters, "state": "active", "next-attempt": null,
            "last-error": null,
            "entries": { "queued": queued, "sending": 0, "delivered": 0, "failed": 0, "cancelled": 0 },
        })
    };
    let targets = |queued| {
        let filters = json!([
            { "events": ["stored"], "mailboxes": ["ci-*"] },
            { "events": ["deleted"], "mailboxes": [] },
        ]);
        let all = json!([{ "events": ["stored", "deleted"], "mailboxes": [] }]);
        let other = target(1, "http://other.example.org:8080", all, 0);
        json!({ "targets": [target(0, "https://ci.example.org", filters, queued), other] })
    };
    let response = server.get(&server.all, "").await;
    assert_eq!(response.json(), targets(1));
    assert!(!response.text().contains("secret"), "{}", response.text());
    // A token for some mailboxes sees neither the names of others nor how many entries there are.
    let limited = server.accounts.token(&["ci-*"]).await;
    let mut expected = targets(0);
    for target in expected["targets"].as_array_mut().unwrap() {
        target["filters"] = json!([]);
    }
    assert_eq!(server.get(&limited, "").await.json(), expected);
}

#[tokio::test]
async fn entry_has_its_payload_and_last_reply() {
    let server = WebhookServer::new().await;
    server.add_entry("bob", 0, "stored").await;
    let at: Timestamp = "2026-11-14T23:43:00Z".parse().unwrap();
    server.attempt(EntryState::Queued, at, PAYLOAD).await;
    let mut entry = server.get(&server.all, "/entries/1").await.json();
    assert!(entry["created"].take().as_str() < entry["expires"].take().as_str());
    let mut expected = json!({
        "id": "1", "message": "17", "mailbox": "bob", "target": server.targets[0], "event": "stored",
        "webhook-id": "stored-17-bob", "state": "queued", "attempts": 1, "created": null, "expires": null,
        "next-attempt": "2026-11-14T23:43:10.000000+00:00", "last-attempt": "2026-11-14T23:43:00.000000+00:00",
        "last-reply": "the target responded 500", "payload": PAYLOAD,
    });
    assert_eq!(entry, expected);
    let mut listed = server.get(&server.all, "/entries").await.json()["entries"][0].clone();
    listed["created"].take();
    listed["expires"].take();
    expected.as_object_mut().unwrap().remove("payload");
    assert_eq!(listed, expected);

    for missing in ["9", "0", "x", "01", "99999999999999999999"] {
        let problem = server.get(&server.all, &format!("/entries/{missing}")).await.problem(404);
        assert_eq!(problem, "There is no such entry in the webhook queue, or it is not stored any more.");
    }
}

#[tokio::test]
async fn delivered_entry_has_no_payload() {
    let server = WebhookServer::new().await;
    server.add_entry("bob", 0, "deleted").await;
    server.attempt(EntryState::Delivered, Timestamp::now(), "").await;
    let entry = server.get(&server.all, "/entries/1").await.json();
    assert_eq!(
        (&entry["event"], &entry["state"], &entry["payload"]),
        (&json!("deleted"), &json!("delivered"), &json!(null))
    );
    assert_eq!(server.post("POST /api/v2/webhooks/retry", r#"{"ids":["1"]}"#).await.text(), "{\"retried\":0}\n");
}

#[tokio::test]
async fn payload_requires_the_scope_read() {
    let server = WebhookServer::new().await;
    server.add_entry("bob", 0, "stored").await;
    for (scopes, expected) in [(&[Scope::Relay][..], json!(null)), (&[Scope::Relay, Scope::Read], json!(PAYLOAD))] {
        let token = server.accounts.token_with(scopes, &["bob"]).await;
        let entry = server.get(&token, "/entries/1").await.json();
        assert_eq!((&entry["mailbox"], &entry["payload"]), (&json!("bob"), &expected));
    }
}

#[tokio::test]
async fn lists_retries_and_cancels_entries() {
    let server = WebhookServer::new().await;
    for (number, target) in [0, 0, 1, 1].into_iter().enumerate() {
        server.add_entry(&format!("m{number}"), target, "stored").await;
    }
    let other = &server.targets[1];
    let target = format!("{{\"target\":\"{other}\"}}");
    let table = [
        ("cancel", r#"{"ids":["1","1","7","x"]}"#, "{\"cancelled\":1}\n"),
        ("cancel", &target, "{\"cancelled\":2}\n"),
        ("retry", r#"{"ids":["1"]}"#, "{\"retried\":1}\n"),
        ("retry", r#"{"target":"none"}"#, "{\"retried\":0}\n"),
        ("cancel", r#"{"all":true}"#, "{\"cancelled\":2}\n"),
        ("retry", &target, "{\"retried\":2}\n"),
    ];
    for (change, body, expected) in table {
        let response = server.post(&format!("POST /api/v2/webhooks/{change}"), body).await;
        assert_eq!(response.text(), expected, "{change} {body}");
    }
    assert_eq!(server.ids(&server.all, "?limit=3").await, ["4", "3", "2"]);
    assert_eq!(server.ids(&server.all, "?limit=3&before=2").await, ["1"]);
    assert_eq!(server.ids(&server.all, "?state=cancelled").await, ["2", "1"]);
    assert_eq!(server.ids(&server.all, &format!("?target={other}&message=17")).await, ["4", "3"]);
    assert_eq!(server.ids(&server.all, "?message=18").await, [""; 0]);
    for query in ["limit=0", "state=new", "before=x"] {
        server.get(&server.all, &format!("/entries?{query}")).await.problem(400);
    }
}

#[tokio::test]
async fn pauses_and_resumes_targets() {
    let server = WebhookServer::new().await;
    let first = format!("{{\"target\":\"{}\"}}", server.targets[0]);
    let table = [
        ("pause", first.as_str(), "{\"paused\":1}\n", ["paused", "active"]),
        ("pause", &first, "{\"paused\":1}\n", ["paused", "active"]),
        ("pause", r#"{"target":"none"}"#, "{\"paused\":0}\n", ["paused", "active"]),
        ("resume", &first, "{\"resumed\":1}\n", ["active", "active"]),
        ("pause", r#"{"all":true}"#, "{\"paused\":2}\n", ["paused", "paused"]),
        ("resume", r#"{"all":true}"#, "{\"resumed\":2}\n", ["active", "active"]),
    ];
    for (change, body, expected, states) in table {
        let response = server.post(&format!("POST /api/v2/webhooks/{change}"), body).await;
        assert_eq!(response.text(), expected, "{change} {body}");
        assert_eq!(server.states().await, states, "{change} {body}");
    }
    for body in ["", "{}", r#"{"ids":["1"]}"#, r#"{"all":false}"#, r#"{"target":"x","all":true}"#] {
        for change in ["pause", "resume"] {
            let problem = server.post(&format!("POST /api/v2/webhooks/{change}"), body).await.problem(422);
            assert!(problem.contains("{\"target\": \"…\"} or {\"all\": true}"), "{problem}");
        }
    }
}

#[tokio::test]
async fn webhooks_require_the_scope_relay() {
    let server = WebhookServer::new().await;
    let without = server.accounts.token_with(&[Scope::Read, Scope::Write, Scope::Admin], &[]).await;
    for (request, body) in [
        ("GET /api/v2/webhooks", ""),
        ("GET /api/v2/webhooks/entries", ""),
        ("GET /api/v2/webhooks/entries/1", ""),
        ("POST /api/v2/webhooks/retry", r#"{"all":true}"#),
        ("POST /api/v2/webhooks/cancel", r#"{"all":true}"#),
        ("POST /api/v2/webhooks/pause", r#"{"all":true}"#),
        ("POST /api/v2/webhooks/resume", r#"{"all":true}"#),
    ] {
        let problem = server.send(&without, request, body).await.problem(403);
        assert_eq!(problem, "The credentials do not allow this: it needs the scope relay.", "{request}");
        // The Content-Type is that of a form of another page.
        let foreign = format!("{request}\n{}\nOrigin: http://evil.example\nContent-Type: text/plain", server.all);
        let response = server.accounts.server.request_with(&foreign, body, Peer::default()).await;
        assert_eq!(response.status, 403, "{request}");
    }
}

#[tokio::test]
async fn limited_token_sees_and_changes_only_events_of_its_mailboxes() {
    let server = WebhookServer::new().await;
    for mailbox in ["ci-1", "bob", "ci-2"] {
        server.add_entry(mailbox, 0, "stored").await;
    }
    let limited = server.accounts.token(&["ci-*"]).await;
    assert_eq!(server.ids(&limited, "").await, ["3", "1"]);
    server.get(&limited, "/entries/2").await.problem(404);
    assert_eq!(server.get(&limited, "/entries/3").await.status, 200);
    let cancelled = server.send(&limited, "POST /api/v2/webhooks/cancel", r#"{"ids":["1","2"]}"#).await;
    assert_eq!(cancelled.text(), "{\"cancelled\":1}\n");
    for change in ["cancel", "retry", "pause", "resume"] {
        for body in [r#"{"all":true}"#.to_owned(), format!("{{\"target\":\"{}\"}}", server.targets[0])] {
            let problem = server.send(&limited, &format!("POST /api/v2/webhooks/{change}"), &body).await.problem(403);
            assert_eq!(problem, "The credentials do not allow this: it needs the scope relay for all mailboxes.");
        }
    }
    assert_eq!(server.states().await, ["active", "active"]);
}

#[tokio::test]
async fn without_webhooks_there_are_no_targets_and_entries() {
    let server = TestServer::with_two_messages().await;
    assert_eq!(server.request("GET /api/v2/webhooks").await.text(), "{\"targets\":[]}\n");
    assert_eq!(server.request("GET /api/v2/webhooks/entries").await.text(), "{\"entries\":[],\"next\":null}\n");
    server.request("GET /api/v2/webhooks/entries/1").await.problem(404);
    for (change, member) in [("retry", "retried"), ("cancel", "cancelled"), ("pause", "paused"), ("resume", "resumed")]
    {
        let request = format!("POST /api/v2/webhooks/{change}\nContent-Type: application/json");
        let response = server.request_with(&request, r#"{"all":true}"#, Peer::default()).await;
        assert_eq!(response.text(), format!("{{\"{member}\":0}}\n"));
    }
}
