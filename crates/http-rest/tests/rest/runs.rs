//! Leased runs: who may lease them, and that their tokens are limited to them, with and without authentication.

use std::time::Duration;

use restante_auth::Scope;
use serde_json::Value;

use crate::support::accounts::Accounts;
use crate::support::*;

const LEASE: &str = "POST /api/v2/runs\nContent-Type: application/json";

async fn lease(server: &TestServer, headers: &str, body: &str) -> TestResponse {
    server.request_with(&format!("{LEASE}{headers}"), body.to_owned(), Peer::default()).await
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap()
}

fn bearer(run: &Value) -> String {
    format!("\nAuthorization: Bearer {}", text(run, "token"))
}

fn seconds_left(run: &Value) -> i64 {
    let expires: Timestamp = text(run, "expires").parse().unwrap();
    expires.duration_since(Timestamp::now()).as_secs()
}

#[tokio::test]
async fn run_describes_how_to_use_it() {
    let server = TestServer::new();
    let response = lease(&server, "\nHost: [::1]:9000", "").await;
    assert_eq!((response.status.as_u16(), response.header("cache-control")), (201, "no-store"));
    let run = response.json();
    let (project, token) = (text(&run, "project"), text(&run, "token"));
    assert!(project.starts_with("run-") && token.starts_with("rst_run_"), "{run}");
    assert_eq!(run["domain"], format!("{project}.test"));
    assert_eq!(run["address"], format!("*@{project}.test"));
    let smtp = serde_json::json!({ "host": "::1", "port": null, "tls": "", "username": project, "password": token });
    assert_eq!(run["smtp"], smtp);
    // The body, and the remaining seconds or the problem.
    let table = [
        ("", Ok(3600)),
        ("{}", Ok(3600)),
        (r#"{"expires-in":"90s"}"#, Ok(90)),
        (r#"{"expires-in":"24h"}"#, Ok(86_400)),
        (r#"{"expires-in":"25h"}"#, Err("expires-in")),
        (r#"{"expires-in":"0s"}"#, Err("1s to 24h")),
        (r#"{"expires-in":"soon"}"#, Err("expires-in")),
        (r#"{"expires-in":60}"#, Err("expected a string")),
        (r#"{"minutes":60}"#, Err("unknown field `minutes`")),
        ("[", Err("JSON")),
    ];
    for (body, expected) in table {
        let response = lease(&server, "", body).await;
        match expected {
            Ok(seconds) => assert!((seconds - 5..=seconds).contains(&seconds_left(&response.json())), "{body}"),
            Err(reason) => assert!(response.problem(422).contains(reason), "{body}: {}", response.text()),
        }
    }
}

/// A request with the token of a run sees only the run, although requests without credentials may do everything.
#[tokio::test]
async fn tokens_are_limited_to_their_runs_without_authentication() {
    let server = TestServer::new();
    let [first, second] = [lease(&server, "", "").await.json(), lease(&server, "", "").await.json()];
    let mailbox = |run: &Value| format!("{}:bob", text(run, "project"));
    for (number, mailbox) in (0..).zip([&mailbox(&first), &mailbox(&second), "bob"]) {
        server.add_message(number, mailbox, "\r\n").await;
    }
    let forged = first["token"].as_str().unwrap().replace("rst_run_", "rst_run_x");
    // The numbers of the messages in the mailboxes of both runs and in `bob`, or the status of a refusal.
    let table = [
        (bearer(&first), [Ok(vec![0]), Err(403), Ok(vec![0])]),
        (bearer(&second), [Err(403), Ok(vec![1]), Ok(vec![1])]),
        (String::new(), [Ok(vec![0]), Ok(vec![1]), Ok(vec![2])]),
        // Other credentials are ignored, as always without authentication.
        ("\nAuthorization: Bearer rst_x".to_owned(), [Ok(vec![0]), Ok(vec![1]), Ok(vec![2])]),
        (format!("\nAuthorization: Bearer {forged}"), [Err(401), Err(401), Err(401)]),
    ];
    for (header, expected) in table {
        for (mailbox, expected) in [mailbox(&first), mailbox(&second), "bob".to_owned()].iter().zip(expected) {
            let response = server.request(&format!("GET /api/v1/mailbox/{mailbox}{header}")).await;
            let status = response.status.as_u16();
            let found = if status == 200 { Ok(response.numbers()) } else { Err(status) };
            assert_eq!(found, expected, "{mailbox} {header}");
        }
    }
    let (names, header) = (mailbox(&first), bearer(&first));
    assert_eq!(server.request(&format!("GET /metrics{header}")).await.status, 403);
    // The token as the password of any user, and as a parameter of event streams.
    let basic =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("x:{}", text(&second, "token")));
    let response = server.request(&format!("GET /api/v1/mailbox/{names}\nAuthorization: Basic {basic}")).await;
    assert_eq!(response.status, 403);
    let stream = format!("GET /api/v2/events/{names}?access_token={}", text(&second, "token"));
    assert_eq!(server.request(&stream).await.status, 403);

    // The end of a run deletes its mail only.
    let delete = |run: &str, header: &str| format!("DELETE /api/v2/runs/{run}{header}");
    let second_project = text(&second, "project");
    assert_eq!(server.request(&delete(second_project, &header)).await.status, 403);
    for (name, header) in [("current", ""), ("shop", ""), ("run-nlwgeqbahfexnkvrzwlm3q", &*header)] {
        server.request(&delete(name, header)).await.problem(404);
    }
    assert_eq!(server.request(&delete("current", &header)).await.status, 200);
    let count = async |mailbox: &str| server.request(&format!("GET /api/v1/mailbox/{mailbox}")).await.numbers().len();
    assert_eq!((count(&names).await, count(&mailbox(&second)).await, count("bob").await), (0, 1, 1));
    assert_eq!(server.request(&delete(second_project, "")).await.status, 200);
    assert_eq!((count(&mailbox(&second)).await, count("bob").await), (0, 1));
}

#[tokio::test]
async fn runs_are_leased_by_clients_that_read_and_write() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = &accounts.server;
    let table: [(&[Scope], &[&str], u16); 4] = [
        (&[Scope::Read, Scope::Write], &[], 201),
        (&[Scope::Read, Scope::Write], &["shop:*"], 201),
        (&[Scope::Read], &[], 403),
        (&[Scope::Write], &[], 403),
    ];
    for (scopes, mailboxes, status) in table {
        let header = accounts.token_with(scopes, mailboxes).await;
        let response = lease(server, &format!("\n{header}"), "").await;
        assert_eq!(response.status, status, "{scopes:?} {mailboxes:?}");
    }
    lease(server, "", "").await.problem(401);
    // A run that is leased with the token of another one ends with it.
    let header = accounts.token_with(&[Scope::Read, Scope::Write], &[]).await;
    let outer = lease(server, &format!("\n{header}"), r#"{"expires-in":"10m"}"#).await.json();
    let inner = lease(server, &bearer(&outer), "").await.json();
    assert_eq!(inner["expires"], outer["expires"]);
    assert_ne!(inner["project"], outer["project"]);
    let shorter = lease(server, &bearer(&outer), r#"{"expires-in":"1m"}"#).await.json();
    assert!(seconds_left(&shorter) <= 60);
}

#[tokio::test]
async fn expired_token_is_refused() {
    let server = TestServer::new();
    let run = lease(&server, "", r#"{"expires-in":"1s"}"#).await.json();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let response = server.request(&format!("GET /api/v2/messages{}", bearer(&run))).await;
    assert_eq!(response.problem(401), "The token or the login has expired, or was revoked.");
}
