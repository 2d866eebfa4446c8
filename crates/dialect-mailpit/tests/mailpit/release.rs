//! Release of messages, with a relay.

use std::time::Duration;

use restante_auth::Scope;
use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::messages::add_copies;
use crate::support::relay_server::RelayServer;

#[tokio::test]
async fn messages_are_released_to_allowed_recipients() {
    let server = RelayServer::started().await;
    let id = server.deliver("bob", "").await;
    let many: Vec<String> = (0..101).map(|number| format!("qa{number}@example.org")).collect();
    let table = [
        (json!({"To": ["ann@example.org"]}), 200, "ok"),
        (json!({"to": ["Ann <ann@example.org>", "QA@example.org"]}), 200, "ok"),
        (json!({"To": ["x@y.org"]}), 400, "Failed: 1 Address do not match the allowlist: x@y.org"),
        (
            json!({"To": ["boss@example.org", "x@y.org", "ann@example.org", "Z <z@y.org>"]}),
            400,
            "Failed: 2 Addresses do not match the allowlist: x@y.org, Z <z@y.org>",
        ),
        (json!({"To": ["boss@example.org"]}), 400, "Failed: 1 Address found on blocklist: boss@example.org"),
        (json!({"To": ["x@y.org", "abc"]}), 400, "Invalid email address: abc"),
        (json!({"To": ["a@example.org>\r\nDATA"]}), 400, "Invalid email address: a@example.org>\r\nDATA"),
        (json!({"To": []}), 400, "No valid addresses found"),
        (json!({}), 400, "No valid addresses found"),
        (json!({"To": many}), 400, "SMTP error: there are more than 100 recipients"),
    ];
    for (body, status, text) in table {
        let response = server.post(&format!("POST /api/v1/message/{id}/release"), &body.to_string()).await;
        assert_eq!((response.status.as_u16(), response.text()), (status, text), "{body}");
    }
    let entries = server.post("GET /api/v2/relay/entries", "").await.json()["entries"].take();
    let recipients = |entry: &Value| -> Vec<String> {
        let recipients = entry["recipients"].as_array().unwrap().iter();
        recipients.map(|recipient| recipient["address"].as_str().unwrap().to_owned()).collect()
    };
    let released: Vec<Vec<String>> = entries.as_array().unwrap().iter().map(recipients).collect();
    assert_eq!(released, [vec!["ann@example.org", "QA@example.org"], vec!["ann@example.org"]]);

    for id in ["latest", "xxx", "17"] {
        let response =
            server.post(&format!("POST /api/v1/message/{id}/release"), r#"{"To":["ann@example.org"]}"#).await;
        assert_eq!((response.status.as_u16(), response.text()), (404, "404 page not found"), "{id}");
    }
}

#[tokio::test]
async fn webui_describes_the_relay() {
    let server = RelayServer::started().await;
    let webui = server.post("GET /api/v1/webui", "").await.json();
    let expected = json!({
        "Enabled": true, "SMTPServer": "127.0.0.1:25", "ReturnPath": "", "AllowedRecipients": r"^.*@example\.org$",
        "BlockedRecipients": "^boss@.*$", "OverrideFrom": "", "PreserveMessageIDs": true,
        "RecipientAllowlist": r"^.*@example\.org$",
    });
    assert_eq!(webui["MessageRelay"], expected);
}

#[tokio::test]
async fn release_requires_the_scopes_relay_and_read() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let message = add_copies(&accounts.server, 0, &["bob"], &[]).await;
    let table: [(&[Scope], &[&str], u16); 5] = [
        (&[Scope::Read, Scope::Write, Scope::Admin], &[], 403),
        (&[Scope::Relay], &[], 403),
        (&[Scope::Relay, Scope::Read], &["carl"], 404),
        // No relay is configured.
        (&[Scope::Relay, Scope::Read], &["bob"], 400),
        (&[Scope::Relay, Scope::Read], &[], 400),
    ];
    for (scopes, mailboxes, status) in table {
        let token = accounts.token_with(scopes, mailboxes).await;
        let request = format!("POST /api/v1/message/{message}/release\n{token}");
        let response = accounts.server.request_body(&request, r#"{"To":["ann@example.org"]}"#).await;
        assert_eq!(response.status.as_u16(), status, "{scopes:?} {mailboxes:?}");
    }
}
