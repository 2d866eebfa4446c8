//! Compares live events with their description.

use super::super::monitor::EventServer;
use super::*;

#[tokio::test(start_paused = true)]
async fn what_listeners_are_told_is_described() {
    let document = document().await;
    let checker = Checker { document: &document };
    let listening: Vec<_> = operations(&document).into_iter().filter(|(_, _, it)| it["x-frame"].is_object()).collect();
    assert_eq!(listening.len(), 6);
    for (_, path, operation) in listening {
        let frame = &operation["x-frame"];
        let path = path.replace("{name}", "bob");
        let office = EventServer::new();
        let id = office.deliver("bob", "one").await;
        send_request(&office.router, &format!("DELETE /api/v1/mailbox/bob/{id}"), Body::empty(), Peer::default()).await;
        office.deliver("bob", "two").await;
        let told: Vec<Value> = if operation["responses"]["101"].is_object() {
            let mut ear = office.websocket(&path).await;
            office.deliver("bob", "three").await;
            let told = [ear.next().await, ear.next().await];
            told.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
        } else {
            let mut stream = office.stream(&path, "").await;
            let id = office.deliver("bob", "three").await;
            send_request(&office.router, &format!("DELETE /api/v1/mailbox/bob/{id}"), Body::empty(), Peer::default())
                .await;
            let mut told = Vec::new();
            for _ in 0..3 {
                let (_, _, data) = stream.event().await.expect("an event");
                told.push(data);
            }
            told
        };
        for data in told {
            assert_eq!(checker.problems(frame, &data), [""; 0], "{path} {data}");
        }
    }
}
