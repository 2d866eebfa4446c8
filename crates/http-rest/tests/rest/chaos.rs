//! Simulated failures of SMTP.

use std::time::Duration;

use restante_auth::Scope;
use serde_json::{Value, json};

use crate::support::accounts::Accounts;
use crate::support::chaos::chaos_server;
use crate::support::*;

const CHAOS: &str = "/api/v2/chaos";

async fn set(server: &TestServer, header: &str, body: &str) -> TestResponse {
    let request = format!("PUT {CHAOS}\nContent-Type: application/json\n{header}");
    server.request_with(&request, body.to_owned(), Peer::default()).await
}

fn failures(sender: (u16, u8), recipient: (u16, u8), authentication: (u16, u8)) -> Value {
    let failure = |(code, probability)| json!({ "code": code, "probability": probability });
    json!({ "sender": failure(sender), "recipient": failure(recipient), "authentication": failure(authentication) })
}

#[tokio::test]
async fn simulated_failures_are_read_and_replaced() {
    let server = chaos_server();
    let response = server.request(&format!("GET {CHAOS}")).await;
    assert_eq!(response.json(), failures((450, 5), (451, 0), (535, 0)));
    assert_eq!(response.header("cache-control"), "no-store");
    let table = [
        ("{\"recipient\":{\"code\":550,\"probability\":100}}", failures((451, 0), (550, 100), (535, 0))),
        ("{\"authentication\":{\"probability\":7},\"sender\":{}}", failures((451, 0), (451, 0), (535, 7))),
        ("{\"sender\":{\"code\":599,\"probability\":1}}", failures((599, 1), (451, 0), (535, 0))),
        ("{}", failures((451, 0), (451, 0), (535, 0))),
    ];
    for (body, expected) in table {
        let response = set(&server, "", body).await;
        assert_eq!((response.status.as_u16(), response.json()), (200, expected.clone()), "{body}");
        assert_eq!(server.request(&format!("GET {CHAOS}")).await.json(), expected);
    }
}

#[tokio::test]
async fn invalid_simulated_failures_change_nothing() {
    let server = chaos_server();
    let shape =
        "must be {\"sender\": {\"code\": 451, \"probability\": 5}, \"recipient\": {…}, \"authentication\": {…}}, with";
    let (code, probability) = ("error code must be between 400 and 599.", "probability must be between 0 and 100.");
    let table = [
        ("", shape.to_owned()),
        ("[]", shape.to_owned()),
        ("null", shape.to_owned()),
        ("{\"Sender\":{}}", shape.to_owned()),
        ("{\"sender\":null}", shape.to_owned()),
        ("{\"sender\":[451,5]}", shape.to_owned()),
        ("{\"sender\":{\"code\":\"451\"}}", shape.to_owned()),
        ("{\"sender\":{\"probability\":0.5}}", shape.to_owned()),
        ("{\"sender\":{\"error-code\":451}}", shape.to_owned()),
        ("{\"sender\":{\"code\":399}}", format!("The member sender.code is invalid: {code}")),
        ("{\"recipient\":{\"code\":600}}", format!("The member recipient.code is invalid: {code}")),
        (
            "{\"sender\":{\"code\":450},\"authentication\":{\"probability\":101}}",
            format!("The member authentication.probability is invalid: {probability}"),
        ),
        ("{\"sender\":{\"probability\":-1}}", format!("The member sender.probability is invalid: {probability}")),
    ];
    for (body, expected) in table {
        let problem = set(&server, "", body).await.problem(422);
        assert!(problem.contains(&expected), "{body}: {problem}");
    }
    assert_eq!(server.request(&format!("GET {CHAOS}")).await.json(), failures((450, 5), (451, 0), (535, 0)));
}

#[tokio::test]
async fn simulated_failures_are_disabled_by_default() {
    let server = TestServer::new();
    for response in [server.request(&format!("GET {CHAOS}")).await, set(&server, "", "{}").await] {
        assert_eq!(response.problem(404), "Simulated failures are disabled by the setting chaos.enabled.");
    }
}

/// All clients are affected.
#[tokio::test]
async fn simulated_failures_are_set_by_administrators() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let refused = [
        (&[Scope::Read, Scope::Write, Scope::Relay][..], &[][..], "."),
        (&Scope::ALL[..], &["ci-*"][..], " for all mailboxes."),
    ];
    for (scopes, mailboxes, end) in refused {
        let token = accounts.token_with(scopes, mailboxes).await;
        let problem = set(&accounts.server, &token, "{}").await.problem(403);
        assert_eq!(problem, format!("The credentials do not allow this: it needs the scope admin{end}"));
        accounts.server.request(&format!("GET {CHAOS}\n{token}")).await.problem(404);
    }
    let token = accounts.token_with(&[Scope::Admin], &[]).await;
    set(&accounts.server, &token, "{}").await.problem(404);
    accounts.server.request(&format!("GET {CHAOS}\n{token}")).await.problem(403);
}
