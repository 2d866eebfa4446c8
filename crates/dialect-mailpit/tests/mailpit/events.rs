//! Live events over WebSocket.

use std::time::Duration;

use restante_teststore::SharedStore;
use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;
use crate::support::events::{EventServer, WebSocketClient};

const EVENTS: &str = "/api/events";

#[tokio::test(start_paused = true)]
async fn stored_and_deleted_messages_are_events() {
    let server = EventServer::new();
    server.deliver("bob", "before").await;
    let mut socket = server.websocket(EVENTS).await;
    let stats = |total: u64| json!({"Total": total, "Unread": total, "Version": restante_dialect_mailpit::VERSION});
    assert_eq!(socket.json().await, json!({"Type": "stats", "Data": stats(1)}));
    let id = server.deliver_to(&["bob", "carl"], "hello").await.to_string();
    let new = socket.json().await;
    assert_eq!(
        (&new["Type"], &new["Data"]["ID"], &new["Data"]["Subject"]),
        (&json!("new"), &json!(id), &json!("hello"))
    );
    assert_eq!((&new["Data"]["To"], &new["Data"]["Cc"], &new["Data"]["Read"]), (&json!([]), &json!([]), &json!(false)));
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
    assert_eq!(socket.json().await["Type"], "stats");
    for mailbox in ["bob", "carl"] {
        send_request(&server.router, &format!("DELETE /api/v1/mailbox/{mailbox}"), Body::empty(), Peer::default())
            .await;
    }
    // One event, after the last copy is deleted.
    assert_eq!(socket.json().await, json!({"Type": "delete", "Data": {"ID": id.to_string()}}));
    assert_eq!(socket.json().await, json!({"Type": "truncate", "Data": null}));
    assert_eq!(socket.json().await["Type"], "stats");
}

#[tokio::test(start_paused = true)]
async fn token_gets_events_of_its_copies() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let server = EventServer::with(Settings { auth: Some(accounts.auth.clone()), ..Settings::default() });
    let token = accounts.token(&["bob"]).await;
    let mut socket = server.websocket_with(EVENTS, &token).await;
    assert_eq!(next_stats(&mut socket).await["Total"], 0);
    let id = server.deliver_to(&["carl", "bob"], "both").await;
    let hidden = server.deliver("carl", "hidden").await;
    assert_eq!(socket.json().await["Data"]["Subject"], "both");
    for id in [hidden, id] {
        let body = json!({"IDs": [id.to_string()], "Read": true}).to_string();
        let request = format!("PUT /api/v1/messages\n{}", accounts.token(&["*"]).await);
        send_request(&server.router, &request, body.into(), Peer::default()).await;
    }
    assert_eq!(socket.json().await, json!({"Type": "update", "Data": {"ID": id.to_string(), "Read": true}}));
    assert_eq!(next_stats(&mut socket).await["Total"], 1);
}

/// Sends a request with a body.
async fn request(server: &EventServer, request: &str, body: Value) {
    let response = send_request(&server.router, request, body.to_string().into(), Peer::default()).await;
    assert_eq!(response.text(), "ok", "{request}");
}

#[tokio::test(start_paused = true)]
async fn changes_of_many_messages_are_events() {
    let server = EventServer::new();
    let mut ids = Vec::new();
    for number in 0..300 {
        let mailboxes: &[&str] = if number % 3 == 0 { &["bob", "carl", "dora"] } else { &["bob"] };
        ids.push(server.deliver_to(mailboxes, &number.to_string()).await.to_string());
    }
    let mut socket = server.websocket(EVENTS).await;
    let mut next_ids = async |kind: &str, count: usize| {
        let mut found = Vec::new();
        while found.len() < count {
            let event = socket.json().await;
            match event["Type"].as_str() {
                Some("stats") => {}
                Some(found_kind) if found_kind == kind => found.push(event["Data"]["ID"].as_str().unwrap().to_owned()),
                _ => panic!("{event}"),
            }
        }
        found.sort_unstable();
        found
    };
    request(&server, "PUT /api/v1/messages", json!({"Read": true})).await;
    assert_eq!(next_ids("update", 300).await, ids);
    // Every tenth message remains, so that others are between the deleted ones.
    let deleted: Vec<&String> = ids.iter().enumerate().filter(|(index, _)| index % 10 != 0).map(|(_, id)| id).collect();
    request(&server, "DELETE /api/v1/messages", json!({"IDs": deleted})).await;
    assert_eq!(next_ids("delete", 270).await.iter().collect::<Vec<_>>(), deleted);
    let left: Vec<&String> = ids.iter().step_by(10).collect();
    request(&server, "PUT /api/v1/tags", json!({"IDs": [left[0], left[29]], "Tags": ["a"]})).await;
    assert_eq!(next_ids("update", 2).await.iter().collect::<Vec<_>>(), [left[0], left[29]]);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_limited_token_are_counted_every_15_seconds() {
    for (pattern, mailbox) in [("bob", "bob"), ("shop:*", "shop:bob")] {
        let accounts = Accounts::new(Duration::from_hours(1));
        let server = EventServer::with(Settings { auth: Some(accounts.auth.clone()), ..Settings::default() });
        let token = accounts.token(&[pattern]).await;
        let mut socket = server.websocket_with(EVENTS, &token).await;
        let start = tokio::time::Instant::now();
        for (number, seconds) in [(0, 2), (1, 17), (2, 32)] {
            if number > 0 {
                server.deliver_in(mailbox, "hello").await;
                assert_eq!(socket.json().await["Type"], "new");
            }
            assert_eq!(next_stats(&mut socket).await["Total"], number);
            assert_eq!(start.elapsed().as_secs(), seconds, "{pattern}");
        }
    }
}

/// Waits for the next event, which is statistics, and returns them.
async fn next_stats(socket: &mut WebSocketClient) -> Value {
    loop {
        match socket.next().await.as_str() {
            "nothing" => {}
            text => {
                let mut event: Value = serde_json::from_str(text).unwrap();
                assert_eq!(event["Type"], "stats", "{event}");
                return event["Data"].take();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statistics_follow_when_the_store_works_again() {
    let node = SharedStore::new(Limits::default()).node().await;
    let server = EventServer::with_store(node.clone(), Settings::default());
    server.deliver("bob", "hello").await;
    let mut socket = server.websocket(EVENTS).await;
    assert_eq!(next_stats(&mut socket).await["Total"], 1);
    node.fail_lists(true);
    send_request(&server.router, "DELETE /api/v1/mailbox/bob", Body::empty(), Peer::default()).await;
    assert_eq!(socket.json().await, json!({"Type": "prune", "Data": null}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    node.fail_lists(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(socket.json().await, json!({"Type": "truncate", "Data": null}));
    assert_eq!(next_stats(&mut socket).await["Total"], 0);
}

#[tokio::test]
async fn websocket_is_required() {
    assert_eq!(server().request(&format!("GET {EVENTS}")).await.status, 426);
}
