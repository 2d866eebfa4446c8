//! Compares live events with their description.

use super::*;
use crate::tests::support::events::EventServer;

#[tokio::test(start_paused = true)]
async fn events_match_description() {
    let document = document().await;
    let checker = Checker { document: &document };
    let has_events = |(_, _, operation): &(&str, &str, &Value)| operation["x-frame"].is_object();
    let subscriptions: Vec<_> = operations(&document).into_iter().filter(has_events).collect();
    assert_eq!(subscriptions.len(), 6);
    for (_, path, operation) in subscriptions {
        let frame = &operation["x-frame"];
        let path = path.replace("{name}", "bob");
        let server = EventServer::new();
        let id = server.deliver("bob", "one").await;
        send_request(&server.router, &format!("DELETE /api/v1/mailbox/bob/{id}"), Body::empty(), Peer::default()).await;
        server.deliver("bob", "two").await;
        let mut events: Vec<Value> = Vec::new();
        if operation["responses"]["101"].is_object() {
            let mut client = server.websocket(&path).await;
            server.deliver("bob", "three").await;
            let texts = [client.next().await, client.next().await];
            events.extend(texts.iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON")));
        }
        if operation["responses"]["200"].is_object() {
            let mut stream = server.stream(&path, "").await;
            let id = server.deliver("bob", "three").await;
            send_request(&server.router, &format!("DELETE /api/v1/mailbox/bob/{id}"), Body::empty(), Peer::default())
                .await;
            for _ in 0..3 {
                let (_, _, data) = stream.event().await.expect("an event");
                events.push(data);
            }
        }
        for data in events {
            assert_eq!(checker.problems(frame, &data), [""; 0], "{path} {data}");
        }
    }
}
