//! Live events over WebSocket.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::tests::grants::Accounts;
use crate::tests::monitor::EventServer;

const EVENTS: &str = "/api/events";

#[tokio::test(start_paused = true)]
async fn stored_and_deleted_messages_are_events() {
    let server = EventServer::new();
    server.deliver("bob", "before").await;
    let mut socket = server.websocket(EVENTS).await;
    let id = server.deliver_to(&["bob", "carl"], "hello").await.to_string();
    let new = socket.json().await;
    assert_eq!(
        (&new["Type"], &new["Data"]["ID"], &new["Data"]["Subject"]),
        (&json!("new"), &json!(id), &json!("hello"))
    );
    assert_eq!((&new["Data"]["To"], &new["Data"]["Cc"], &new["Data"]["Read"]), (&json!([]), &json!([]), &json!(false)));
    let stats = |total: u64| json!({"Total": total, "Unread": total, "Version": crate::dialects::mailpit::VERSION});
    assert_eq!(socket.json().await, json!({"Type": "stats", "Data": stats(2)}));
    let put = async |path: &str, body: Value| {
        let response =
            send_request(&server.router, &format!("PUT {path}"), body.to_string().into(), Peer::default()).await;
        assert_eq!(response.text(), "ok");
    };
    put("/api/v1/messages", json!({"IDs": [id], "Read": true})).await;
    assert_eq!(socket.json().await, json!({"Type": "update", "Data": {"ID": id, "Read": true}}));
    assert_eq!(socket.json().await["Data"]["Unread"], 1);
    put("/api/v1/tags", json!({"IDs": [id], "Tags": ["b", "A"]})).await;
    assert_eq!(socket.json().await, json!({"Type": "update", "Data": {"ID": id, "Tags": ["A", "b"]}}));
    assert_eq!(socket.json().await["Type"], "stats");
    let body = json!({"IDs": [id]}).to_string();
    let deleted = send_request(&server.router, "DELETE /api/v1/messages", body.into(), Peer::default()).await;
    assert_eq!(deleted.text(), "ok");
    assert_eq!(socket.json().await, json!({"Type": "delete", "Data": {"ID": id}}));
    assert_eq!(socket.json().await, json!({"Type": "stats", "Data": stats(1)}));
}

#[tokio::test(start_paused = true)]
async fn message_with_other_copies_is_not_deleted() {
    let server = EventServer::new();
    let id = server.deliver_to(&["bob", "carl"], "first").await;
    let mut socket = server.websocket(EVENTS).await;
    for mailbox in ["bob", "carl"] {
        send_request(&server.router, &format!("DELETE /api/v1/mailbox/{mailbox}"), Body::empty(), Peer::default())
            .await;
    }
    // One event, after the last copy is deleted.
    assert_eq!(socket.json().await, json!({"Type": "delete", "Data": {"ID": id.to_string()}}));
    assert_eq!(socket.json().await, json!({"Type": "truncate", "Data": null}));
    assert_eq!(socket.json().await["Type"], "stats");
}

#[tokio::test]
async fn token_gets_events_of_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = EventServer::with(Settings { auth: Some(accounts.auth.clone()), ..Settings::default() });
    let token = accounts.token(&["bob"]).await;
    let mut socket = server.websocket_with(EVENTS, &token).await;
    let id = server.deliver_to(&["carl", "bob"], "both").await;
    let hidden = server.deliver("carl", "hidden").await;
    assert_eq!(socket.json().await["Data"]["Subject"], "both");
    for id in [hidden, id] {
        let body = json!({"IDs": [id.to_string()], "Read": true}).to_string();
        let request = format!("PUT /api/v1/messages\n{}", accounts.token(&["*"]).await);
        send_request(&server.router, &request, body.into(), Peer::default()).await;
    }
    assert_eq!(socket.json().await, json!({"Type": "update", "Data": {"ID": id.to_string(), "Read": true}}));
    let stats = socket.json().await;
    assert_eq!((&stats["Type"], &stats["Data"]["Total"]), (&json!("stats"), &json!(1)));
}

#[tokio::test]
async fn websocket_is_required() {
    assert_eq!(server().request(&format!("GET {EVENTS}")).await.status, 426);
}
