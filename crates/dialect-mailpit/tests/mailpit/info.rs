//! The description of the server, and features that are not there.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::messages::add_copies;

#[tokio::test]
async fn info_has_the_fields_and_types_of_mailpit() {
    let server = server();
    server.send(&json!({"From": {"Email": "a@b.c"}, "To": [{"Email": "x@y.z"}], "Tags": ["b", "A"]})).await;
    let response = server.request("GET /api/v1/info").await;
    let mut info = response.json();
    let version = info["Version"].take();
    assert!(version.as_str().is_some_and(|version| version.starts_with("v1.30.5+restante.")), "{version}");
    let stats = &mut info["RuntimeStats"];
    for name in ["Uptime", "Memory", "SMTPAcceptedSize"] {
        assert!(stats[name].take().is_u64(), "{name}");
    }
    assert!(info["DatabaseSize"].take().as_u64().is_some_and(|size| size > 100));
    let expected = json!({
        "Version": null, "LatestVersion": "disabled", "Database": "", "DatabaseSize": null, "Messages": 1, "Unread": 1,
        "Tags": {"A": 1, "b": 1},
        "RuntimeStats": {
            "Uptime": null, "Memory": null, "MessagesDeleted": 0, "SMTPAccepted": 1, "SMTPAcceptedSize": null,
            "SMTPRejected": 0, "SMTPIgnored": 0,
        },
    });
    assert_eq!(info, expected);
}

#[tokio::test]
async fn token_gets_only_the_numbers_of_its_messages() {
    let accounts = Accounts::new(Duration::from_hours(1));
    add_copies(&accounts.server, 0, &["bob"], &["mine"]).await;
    add_copies(&accounts.server, 1, &["carl"], &["other"]).await;
    let token = accounts.token(&["bob"]).await;
    let info = accounts.server.request(&format!("GET /api/v1/info\n{token}")).await.json();
    assert_eq!((&info["Messages"], &info["Tags"]), (&json!(1), &json!({"mine": 1})));
    assert_eq!(info["DatabaseSize"], 0);
    let stats = info["RuntimeStats"].as_object().unwrap();
    assert_eq!((stats.len(), stats.values().all(|value| *value == 0)), (7, true), "{stats:?}");
}

#[tokio::test]
async fn webui_has_the_fields_and_types_of_mailpit() {
    let expected = json!({
        "Label": "",
        "MessageRelay": {
            "Enabled": false, "SMTPServer": "", "ReturnPath": "", "AllowedRecipients": "", "BlockedRecipients": "",
            "OverrideFrom": "", "PreserveMessageIDs": false, "RecipientAllowlist": "",
        },
        "SpamAssassin": false, "ChaosEnabled": false, "DuplicatesIgnored": false, "HideDeleteAllButton": false,
    });
    assert_eq!(server().request("GET /api/v1/webui").await.json(), expected);
}

#[tokio::test]
async fn messages_are_not_released_without_a_relay() {
    let server = server();
    let id = server.send(&json!({"From": {"Email": "a@b.c"}, "To": [{"Email": "x@y.z"}]})).await;
    let table = [
        (id.as_str(), r#"{"To":["a@b.c"]}"#, 400, "SMTP error: this server does not relay messages"),
        (&id, r#"{"To":["abc"]}"#, 400, "Invalid email address: abc"),
        (&id, r#"{"To":[]}"#, 400, "No valid addresses found"),
        (&id, "", 400, "EOF"),
        ("latest", r#"{"To":["a@b.c"]}"#, 404, "404 page not found"),
        ("xxx", r#"{"To":["a@b.c"]}"#, 404, "404 page not found"),
    ];
    for (id, body, status, text) in table {
        let response = server.request_body(&format!("POST /api/v1/message/{id}/release"), body).await;
        assert_eq!((response.status.as_u16(), response.text()), (status, text), "{id} {body}");
    }
    assert_eq!(server.request(&format!("GET /api/v1/message/{id}/sa-check")).await.status, 404);
    assert_eq!(server.request("GET /api/v1/swagger.json").await.status, 404);
}

#[tokio::test]
async fn all_paths_respond_to_options() {
    for path in ["tags", "tags/x", "send", "messages", "info"] {
        let response = server().request(&format!("OPTIONS /api/v1/{path}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, ""), "{path}");
        assert_eq!(response.header("content-type"), "text/plain");
    }
}
