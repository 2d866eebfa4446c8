//! The relay: release, the queue, what a grant allows, and requests of web pages of other origins.

use std::time::Duration;

use restante_auth::Scope;
use restante_journal::{Side, TranscriptLine, TranscriptLines};
use restante_queue::{AttemptOutcome, AttemptRecord, Queue as _};
use restante_relay::{EntryState, Origin};
use serde_json::{Value, json};

use crate::support::relay_server::{MAX_WAITING, RelayServer};
use crate::support::*;

fn released_by(name: &str) -> Origin {
    Origin::Release { by: Some(name.to_owned()), subject_prefix: String::new() }
}

#[tokio::test]
async fn releases_a_message() {
    let server = RelayServer::started().await;
    let message = server.deliver("bob@example.org", "").await;
    for (number, (body, recipients)) in [
        ("{}", json!(["bob@example.org"])),
        (
            r#"{"to":["qa@example.org","QA2@Example.org"],"target":"main"}"#,
            json!(["qa@example.org", "QA2@example.org"]),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let response = server.post(&format!("POST /api/v2/messages/{message}/release"), body).await;
        assert_eq!(response.status, 202, "{:?}", response.body);
        let entry = response.json();
        assert_eq!(entry["id"], (number + 1).to_string());
        assert_eq!(entry["message"], message.as_str());
        assert_eq!(
            [&entry["mailbox"], &entry["target"], &entry["origin"], &entry["by"]],
            ["bob", "main", "release", "0"]
        );
        let addresses: Vec<&Value> =
            entry["recipients"].as_array().unwrap().iter().map(|one| &one["address"]).collect();
        assert!(
            json!(addresses).to_string().eq_ignore_ascii_case(&recipients.to_string()),
            "{addresses:?} {recipients}"
        );
    }
    assert_eq!(server.ids(&server.all, "").await, ["2", "1"]);
    assert_eq!(server.ids(&server.all, &format!("?message={message}&target=main")).await, ["2", "1"]);
    assert_eq!(server.ids(&server.all, "?message=1").await, [""; 0]);
}

#[tokio::test]
async fn refuses_invalid_releases() {
    let server = RelayServer::new().await;
    server.start().await;
    let message = server.deliver("bob@example.org", "").await;
    let in_loop = server.deliver("bob@example.org", &"X-Restante-Relay: mx\r\n".repeat(5)).await;
    let many = json!({ "target": "other", "to": vec!["a@x.org"; 101] }).to_string();
    let table = [
        (&message, "{}", 422, "Name one of the relay targets: main, other."),
        (&message, r#"{"target":"none"}"#, 422, "There is no relay target \"none\"."),
        (&message, r#"{"target":"main","to":["a@x.org\r\nRCPT TO:<b@x.org>"]}"#, 422, "is not a valid mail address"),
        (&message, r#"{"target":"main","to":["bob"]}"#, 422, "\"bob\" is not a valid mail address."),
        (&message, &many, 422, "There are more than 100 recipients."),
        (&message, r#"{"target":"main","to":["a@x.org"]}"#, 403, "does not allow these recipients: a@x.org."),
        (&message, r#"{"target":"main","to":["boss@example.org"]}"#, 403, "blocks these recipients: boss@example.org."),
        (&message, r#"{"target":"main","subject-prefix":"a\nb"}"#, 422, "The subject prefix may have up to 100"),
        (&in_loop, r#"{"target":"main"}"#, 409, "The message is in a loop"),
        (&"17".to_owned(), r#"{"target":"main"}"#, 404, "There is no such message."),
        (&"x".to_owned(), r#"{"target":"main"}"#, 404, "There is no such message."),
        (&message, "", 422, "The body of the request must be"),
        (&message, r#"{"to":[]}"#, 422, "The body of the request must be"),
        (&message, r#"{"target":"main","cc":[]}"#, 422, "The body of the request must be"),
    ];
    for (id, body, status, expected) in table {
        let problem = server.post(&format!("POST /api/v2/messages/{id}/release"), body).await.problem(status);
        assert!(problem.contains(expected), "{body}: {problem}");
    }
    let large = " ".repeat(65 * 1024);
    server.post(&format!("POST /api/v2/messages/{message}/release"), &large).await.problem(413);
    assert_eq!(server.ids(&server.all, "").await, [""; 0]);
}

#[tokio::test]
async fn refuses_releases_if_the_queue_is_full() {
    let server = RelayServer::started().await;
    let message = server.deliver("bob@example.org", "").await;
    for _ in 0..MAX_WAITING {
        server.add_entry("bob", "main", &["bob@example.org"], Origin::Forward).await;
    }
    let response = server.post(&format!("POST /api/v2/messages/{message}/release"), "{}").await;
    assert_eq!(response.problem(503), "The relay queue is full; retry later.");
    assert_eq!(response.header("retry-after"), "5");
}

#[tokio::test]
async fn without_targets_nothing_is_released() {
    let server = TestServer::with_two_messages().await;
    let post = async |path: &str, body: &'static str| {
        server.request_with(&format!("POST {path}\nContent-Type: application/json"), body, Peer::default()).await
    };
    let problem = post(&format!("/api/v2/messages/{}/release", id(0)), "{}").await.problem(422);
    assert_eq!(problem, "No relay target is configured: set relay.targets.");
    assert_eq!(server.request("GET /api/v2/relay").await.text(), "{\"targets\":[]}\n");
    assert_eq!(server.request("GET /api/v2/relay/entries").await.text(), "{\"entries\":[],\"next\":null}\n");
    server.request("GET /api/v2/relay/entries/1").await.problem(404);
    assert_eq!(post("/api/v2/relay/retry", "{\"all\":true}").await.text(), "{\"retried\":0}\n");
    assert_eq!(post("/api/v2/relay/cancel", "{\"ids\":[\"1\"]}").await.text(), "{\"cancelled\":0}\n");
}

#[tokio::test]
async fn lists_targets() {
    let server = RelayServer::new().await;
    server.add_entry("bob", "main", &["bob@example.org"], Origin::Forward).await;
    let count = |queued: u64| json!({ "queued": queued, "sending": 0, "delivered": 0, "failed": 0, "cancelled": 0 });
    let target = |name: &str, allowed: Value, blocked: Value, queued: u64| {
        json!({
            "name": name, "host": "127.0.0.1", "port": 25, "allowed": allowed, "blocked": blocked, "state": "ready",
            "paused-until": null, "last-error": null, "entries": count(queued),
        })
    };
    let targets = |queued: u64| {
        let main = target("main", json!(["*@example.org"]), json!(["boss@*"]), queued);
        json!({ "targets": [main, target("other", json!(["*"]), json!([]), 0)] })
    };
    assert_eq!(server.get(&server.all, "/api/v2/relay").await.json(), targets(1));
    // A token for some mailboxes does not see how many entries there are.
    let limited = server.accounts.token(&["ci-*"]).await;
    assert_eq!(server.get(&limited, "/api/v2/relay").await.json(), targets(0));
}

#[tokio::test]
async fn description_of_the_server_names_usable_targets() {
    let server = RelayServer::new().await;
    let table: [(&[Scope], Value); 4] = [
        (&[Scope::Read, Scope::Relay], json!(["main", "other"])),
        (&[Scope::Read], json!([])),
        (&[Scope::Relay], json!([])),
        (&[Scope::Admin, Scope::Write], json!([])),
    ];
    for (scopes, expected) in table {
        let token = server.accounts.token_with(scopes, &[]).await;
        assert_eq!(server.get(&token, "/api/v2/server").await.json()["relay"], expected, "{scopes:?}");
    }
}

#[tokio::test]
async fn lists_entries_in_pages() {
    let server = RelayServer::new().await;
    for number in 0..5 {
        let target = if number % 2 == 0 { "main" } else { "other" };
        server.add_entry("bob", target, &["bob@example.org"], Origin::Forward).await;
    }
    assert_eq!(server.post("POST /api/v2/relay/cancel", r#"{"ids":["2"]}"#).await.text(), "{\"cancelled\":1}\n");
    let table: [(&str, &[&str], Value); 7] = [
        ("", &["5", "4", "3", "2", "1"], json!(null)),
        ("?limit=2", &["5", "4"], json!("4")),
        ("?limit=2&before=4", &["3", "2"], json!("2")),
        ("?limit=2&before=2", &["1"], json!(null)),
        ("?target=other", &["4", "2"], json!(null)),
        ("?state=cancelled&target=other", &["2"], json!(null)),
        ("?before=99999999999999999&limit=5", &["5", "4", "3", "2", "1"], json!(null)),
    ];
    for (query, ids, next) in table {
        assert_eq!(server.ids(&server.all, query).await, ids, "{query}");
        let page = server.get(&server.all, &format!("/api/v2/relay/entries{query}")).await;
        assert_eq!(page.json()["next"], next, "{query}");
    }
    for query in ["limit=0", "state=new", "before=x", "message=latest", "target=main&target=other"] {
        server.get(&server.all, &format!("/api/v2/relay/entries?{query}")).await.problem(400);
    }
}

#[tokio::test]
async fn entry_has_the_transcript_of_its_last_attempt() {
    let server = RelayServer::new().await;
    let id = server.add_entry("bob", "main", &["qa@example.org"], released_by("ci")).await;
    let path = format!("/api/v2/relay/entries/{id}");
    assert_eq!(server.get(&server.all, &path).await.json()["transcript"], json!([]));
    let at: Timestamp = "2026-11-14T23:43:00Z".parse().unwrap();
    let mut transcript = TranscriptLines::default();
    transcript.push(TranscriptLine { micros: 1500, side: Side::Server, text: "220 mx \"ESMTP\"" });
    transcript.push(TranscriptLine { micros: 2000, side: Side::Client, text: "EHLO mx.test" });
    let claimed = server.queue.claim("main", Timestamp::now(), 1).await.unwrap().remove(0);
    let outcome = AttemptOutcome::Attempted {
        state: EntryState::Queued,
        next_attempt: Some(at + Duration::from_secs(10)),
        at,
        payload: claimed.payload,
        reply: "450 later".to_owned(),
        log: transcript.as_bytes().to_vec(),
    };
    server.queue.record(vec![AttemptRecord { id: claimed.id, claim: claimed.claim, outcome }]).await.unwrap();
    let mut entry = server.get(&server.all, &path).await.json();
    assert!(entry["created"].take().as_str() < entry["expires"].take().as_str());
    let expected = json!({
        "id": id, "message": "17", "mailbox": "bob", "target": "main", "sender": "ann@x.org",
        "recipients": [{ "address": "qa@example.org", "state": "waiting", "reply": "" }],
        "origin": "release", "by": "ci", "state": "queued", "attempts": 1, "created": null, "expires": null,
        "next-attempt": "2026-11-14T23:43:10.000000+00:00", "last-attempt": "2026-11-14T23:43:00.000000+00:00",
        "last-reply": "450 later",
        "transcript": [
            {
                "at": "2026-11-14T23:42:59.999500+00:00", "posix-millis": 1_794_699_779_999_i64, "after-millis": 1,
                "from": "server", "text": "220 mx \"ESMTP\"",
            },
            {
                "at": "2026-11-14T23:43:00.000000+00:00", "posix-millis": 1_794_699_780_000_i64, "after-millis": 2,
                "from": "client", "text": "EHLO mx.test",
            },
        ],
    });
    assert_eq!(entry, expected);
    for missing in ["2", "0", "x", "01", "99999999999999999999"] {
        server.get(&server.all, &format!("/api/v2/relay/entries/{missing}")).await.problem(404);
    }
}

#[tokio::test]
async fn retries_and_cancels_entries() {
    let server = RelayServer::new().await;
    for target in ["main", "main", "other", "other"] {
        server.add_entry("bob", target, &["bob@example.org"], Origin::Forward).await;
    }
    let table = [
        ("cancel", r#"{"ids":["1","1","7","x"]}"#, "{\"cancelled\":1}\n"),
        ("cancel", r#"{"ids":["1"]}"#, "{\"cancelled\":0}\n"),
        ("cancel", r#"{"target":"other"}"#, "{\"cancelled\":2}\n"),
        ("retry", r#"{"ids":["1"]}"#, "{\"retried\":1}\n"),
        ("retry", r#"{"target":"other"}"#, "{\"retried\":2}\n"),
        ("cancel", r#"{"all":true}"#, "{\"cancelled\":4}\n"),
        ("retry", r#"{"target":"none"}"#, "{\"retried\":0}\n"),
        ("retry", r#"{"all":true}"#, "{\"retried\":4}\n"),
    ];
    for (change, body, expected) in table {
        let response = server.post(&format!("POST /api/v2/relay/{change}"), body).await;
        assert_eq!(response.text(), expected, "{change} {body}");
    }
    for body in ["", "{}", r#"{"all":false}"#, r#"{"ids":[1]}"#, r#"{"ids":["1"],"all":true}"#, r#"{"target":null}"#] {
        for change in ["cancel", "retry"] {
            server.post(&format!("POST /api/v2/relay/{change}"), body).await.problem(422);
        }
    }
    assert_eq!(server.ids(&server.all, "?state=queued").await.len(), 4);
}

#[tokio::test]
async fn relay_requires_its_scope() {
    let server = RelayServer::started().await;
    let message = server.deliver("bob@example.org", "").await;
    let release = format!("POST /api/v2/messages/{message}/release");
    let requests = [
        (release.as_str(), "{}"),
        ("GET /api/v2/relay", ""),
        ("GET /api/v2/relay/entries", ""),
        ("GET /api/v2/relay/entries/1", ""),
        ("POST /api/v2/relay/retry", r#"{"all":true}"#),
        ("POST /api/v2/relay/cancel", r#"{"all":true}"#),
    ];
    let without = server.accounts.token_with(&[Scope::Read, Scope::Write, Scope::Admin], &[]).await;
    for (request, body) in requests {
        let problem = server.send(&without, request, body).await.problem(403);
        assert_eq!(problem, "The credentials do not allow this: it needs the scope relay.", "{request}");
    }
    let relayer = server.accounts.token_with(&[Scope::Relay], &[]).await;
    let problem = server.send(&relayer, &release, "{}").await.problem(403);
    assert_eq!(problem, "The credentials do not allow this: it needs the scope read.");
    assert_eq!(server.ids(&server.all, "").await, [""; 0]);
    let both = server.accounts.token_with(&[Scope::Read, Scope::Relay], &[]).await;
    assert_eq!(server.send(&both, &release, "{}").await.status, 202);
    assert_eq!(server.ids(&relayer, "").await, ["1"]);
}

#[tokio::test]
async fn limited_token_sees_and_changes_only_entries_of_its_mailboxes() {
    let server = RelayServer::new().await;
    server.add_entry("ci-1", "main", &["ci-1@example.org"], Origin::Forward).await;
    server.add_entry("bob", "main", &["bob@example.org"], Origin::Forward).await;
    server.add_entry("ci-2", "main", &["ci-2@example.org"], Origin::Forward).await;
    server.add_entry("bob", "main", &["bob@example.org"], released_by("ann")).await;
    let limited = server.accounts.token(&["ci-*"]).await;
    assert_eq!(server.ids(&limited, "").await, ["3", "1"]);
    let page = server.get(&limited, "/api/v2/relay/entries?limit=1").await.json();
    assert_eq!((&page["entries"][0]["id"], &page["next"]), (&json!("3"), &json!("3")));
    let page = server.get(&limited, "/api/v2/relay/entries?limit=1&before=3").await.json();
    assert_eq!((&page["entries"][0]["id"], &page["next"]), (&json!("1"), &json!(null)));
    server.get(&limited, "/api/v2/relay/entries/2").await.problem(404);
    assert_eq!(server.get(&limited, "/api/v2/relay/entries/3").await.status, 200);
    let cancelled = server.send(&limited, "POST /api/v2/relay/cancel", r#"{"ids":["1","2","3","4","5"]}"#).await;
    assert_eq!(cancelled.text(), "{\"cancelled\":2}\n");
    assert_eq!(server.ids(&server.all, "?state=cancelled").await, ["3", "1"]);
    let retried = server.send(&limited, "POST /api/v2/relay/retry", r#"{"ids":["1","2"]}"#).await;
    assert_eq!(retried.text(), "{\"retried\":1}\n");
    for body in [r#"{"all":true}"#, r#"{"target":"main"}"#] {
        for change in ["cancel", "retry"] {
            let problem = server.send(&limited, &format!("POST /api/v2/relay/{change}"), body).await.problem(403);
            assert_eq!(problem, "The credentials do not allow this: it needs the scope relay for all mailboxes.");
        }
    }
}

#[tokio::test]
async fn limited_token_finds_its_entries_among_many() {
    let server = RelayServer::new().await;
    server.add_entry("ci-1", "main", &["ci-1@example.org"], Origin::Forward).await;
    // Finished entries do not count against the limit of the queue.
    for _ in 0..500 {
        server.add_entry("bob", "main", &["bob@example.org"], Origin::Forward).await;
        server.post("POST /api/v2/relay/cancel", r#"{"all":true}"#).await;
    }
    let limited = server.accounts.token(&["ci-*"]).await;
    let page = server.get(&limited, "/api/v2/relay/entries?limit=1").await.json();
    assert_eq!((&page["entries"][0]["id"], &page["next"]), (&json!("1"), &json!(null)));
}

#[tokio::test]
async fn limited_token_does_not_see_other_recipients() {
    let server = RelayServer::new().await;
    let limited = server.accounts.token(&["ci-*"]).await;
    // The token that was created second has the name 1.
    let addresses = ["ci-1@example.org", "bob@example.org"];
    let forwarded = server.add_entry("ci-1", "main", &addresses, Origin::Forward).await;
    let own = server.add_entry("ci-1", "main", &addresses, released_by("1")).await;
    for claimed in server.queue.claim("main", Timestamp::now(), 2).await.unwrap() {
        let mut transcript = TranscriptLines::default();
        transcript.push(TranscriptLine { micros: 0, side: Side::Client, text: "RCPT TO:<bob@example.org>" });
        let outcome = AttemptOutcome::Attempted {
            state: EntryState::Failed,
            next_attempt: None,
            at: Timestamp::now(),
            payload: claimed.payload,
            reply: "550 bob".to_owned(),
            log: transcript.as_bytes().to_vec(),
        };
        server.queue.record(vec![AttemptRecord { id: claimed.id, claim: claimed.claim, outcome }]).await.unwrap();
    }
    for (token, id, is_complete) in
        [(&limited, &forwarded, false), (&limited, &own, true), (&server.all, &forwarded, true)]
    {
        let response = server.get(token, &format!("/api/v2/relay/entries/{id}")).await;
        assert_eq!(response.text().contains("bob"), is_complete, "{}", response.text());
        let entry = response.json();
        assert_eq!(entry["recipients"].as_array().unwrap().len(), if is_complete { 2 } else { 1 });
        assert_eq!(entry["transcript"].as_array().unwrap().len(), usize::from(is_complete));
    }
    let list = server.get(&limited, "/api/v2/relay/entries?limit=1&before=2").await;
    assert!(!list.text().contains("bob"), "{}", list.text());
}

#[tokio::test]
async fn limited_token_releases_only_copies_of_its_mailboxes() {
    let server = RelayServer::started().await;
    let other = server.deliver("bob@example.org", "").await;
    let own = server.deliver("ci-1@example.org", "").await;
    let limited = server.accounts.token(&["ci-*"]).await;
    let release = |id: &str| format!("POST /api/v2/messages/{id}/release");
    server.send(&limited, &release(&other), "{}").await.problem(404);
    let entry = server.send(&limited, &release(&own), "{}").await.json();
    assert_eq!((&entry["mailbox"], &entry["by"]), (&json!("ci-1"), &json!("1")));
    let latest = server.send(&limited, &release("latest"), r#"{"to":["qa@example.org"]}"#).await.json();
    assert_eq!(latest["message"], own.as_str());
    assert_eq!(latest["recipients"][0]["address"], "qa@example.org");
}

#[tokio::test]
async fn pages_of_other_origins_cannot_use_the_relay() {
    let server = RelayServer::started().await;
    let message = server.deliver("bob@example.org", "").await;
    let entry = server.add_entry("bob", "main", &["bob@example.org"], Origin::Forward).await;
    let cookie = server.accounts.log_in().await;
    let cookie = cookie.lines().next().unwrap();
    let release = format!("/api/v2/messages/{message}/release");
    let ids = format!("{{\"ids\":[\"{entry}\"]}}");
    let changes = [
        (release.as_str(), "{\"to\":[\"qa@example.org\"]}"),
        ("/api/v2/relay/retry", ids.as_str()),
        ("/api/v2/relay/cancel", ids.as_str()),
    ];
    let origins = [
        "Origin: http://evil.example",
        "Origin: http://localhost:9001",
        "Origin: null",
        "Origin: http://evil.example\nSec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document",
    ];
    let types =
        ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"];
    for credentials in [cookie, &server.all] {
        for (path, body) in changes {
            for (origin, kind) in origins.iter().flat_map(|origin| types.map(|kind| (origin, kind))) {
                let request = format!("POST {path}\n{credentials}\n{origin}\nContent-Type: {kind}");
                let response = server.accounts.server.request_with(&request, body.to_owned(), Peer::default()).await;
                assert_eq!(response.status, 403, "{request}");
            }
            // A form of the own origin is not JSON.
            for kind in &types[1..] {
                let request =
                    format!("POST {path}\n{credentials}\nOrigin: http://localhost:9000\nContent-Type: {kind}");
                let response = server.accounts.server.request_with(&request, body.to_owned(), Peer::default()).await;
                assert_eq!(response.status, 415, "{request}");
            }
            for method in ["GET", "HEAD", "PUT", "DELETE"] {
                let request = format!("{method} {path}\n{credentials}\nOrigin: http://localhost:9000");
                assert_eq!(server.accounts.server.request(&request).await.status, 405, "{request}");
            }
        }
        for path in ["/api/v2/relay", "/api/v2/relay/entries", "/api/v2/relay/entries/1"] {
            for origin in origins {
                let request = format!("GET {path}\n{credentials}\n{origin}");
                assert_eq!(server.accounts.server.request(&request).await.status, 403, "{request}");
            }
        }
    }
    // Browsers send cookies automatically, so a cookie without an origin is not enough for a change.
    for (path, body) in changes {
        let request = format!("POST {path}\n{cookie}\nContent-Type: application/json");
        let response = server.accounts.server.request_with(&request, body.to_owned(), Peer::default()).await;
        assert_eq!(response.status, 403, "{request}");
    }
    assert_eq!(server.ids(&server.all, "").await, [entry.as_str()], "nothing was released");
    assert_eq!(server.ids(&server.all, "?state=cancelled").await, [""; 0], "nothing was cancelled");
    let own = format!("POST {release}\n{cookie}\nOrigin: http://localhost:9000\nContent-Type: application/json");
    assert_eq!(server.accounts.server.request_with(&own, "{}", Peer::default()).await.status, 202);
}
