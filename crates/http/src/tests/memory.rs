//! The memory budget of large responses. When it is used up, small responses are still sent.

use std::time::Duration;

use axum::response::Response;
use tokio::time::{Instant, sleep};

use super::*;

/// Sends a request without reading the response.
async fn unread(house: &TestServer, target: &str) -> Response {
    let request =
        Request::builder().uri(target).header("Host", "localhost:9000").body(Body::empty()).expect("a request");
    house.router.clone().oneshot(request).await.expect("an answer")
}

const ATTACHMENT: &str = "Content-Type: image/png\r\nContent-Disposition: attachment; filename=a\r\n\r\n";

/// Creates a server with a mailbox `small` that contains an ordinary message, three with messages whose responses
/// count, and `huge` with one that counts for half of the budget.
async fn house(cache_bytes: usize) -> TestServer {
    let house = TestServer::with(Settings { cache_bytes, ..Settings::default() });
    house.put(0, "small", "Subject: x\r\n\r\nHello\r\n").await;
    house.put(1, "large", &format!("Subject: x\r\n\r\n{}\r\n", "0123456789\r\n".repeat(50_000))).await;
    house.put(2, "file", &format!("{ATTACHMENT}{}", "x".repeat(MIB))).await;
    house.put(3, "escaped", &format!("Content-Type: text/html\r\n\r\n{}", "\x01".repeat(200_000))).await;
    house.put(4, "huge", &"x".repeat(33 * MIB)).await;
    house
}

const MIB: usize = 1 << 20;

const HUGE: &str = "/api/v1/mailbox/huge/latest/source";
const LARGE: [&str; 7] = [
    "/api/v1/mailbox/large/latest",
    "/api/v1/mailbox/large/latest/source",
    "/mailbox/dattach/file/latest/0/a",
    "/api/v1/mailbox/escaped/latest",
    "/api/v2/mailbox/large/latest",
    "/serve/mailbox/large/latest",
    "/serve/mailbox/large/latest/html",
];
const SMALL: [&str; 6] = [
    "/api/v1/mailbox/large",
    "/api/v1/mailbox/small/latest",
    "/api/v1/mailbox/small/latest/source",
    "/api/v1/mailbox/file/latest",
    "/api/v2/mailbox/file/latest",
    "/serve/mailbox/small/latest/html",
];

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_use_up_the_budget_and_no_more() {
    let house = house(0).await;
    let held = [unread(&house, HUGE).await, unread(&house, HUGE).await];
    for target in LARGE {
        let start = Instant::now();
        let answer = house.request(&format!("GET {target}")).await;
        answer.problem(503);
        assert_eq!(answer.header("retry-after"), "5", "{target}");
        assert!(start.elapsed() < Duration::from_secs(10), "{target}: {:?}", start.elapsed());
    }
    for target in SMALL {
        assert_eq!(house.request(&format!("GET {target}")).await.status, 200, "{target}");
    }
    let attachment = house.request("GET /mailbox/dattach/file/latest/0/a\nIf-None-Match: *").await;
    assert_eq!(attachment.status, 304, "it has no content");
    drop(held);
    for target in LARGE {
        assert_eq!(house.request(&format!("GET {target}")).await.status, 200, "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_a_moment_for_its_turn() {
    let house = house(0).await;
    for target in LARGE {
        let held = [unread(&house, HUGE).await, unread(&house, HUGE).await];
        let leave = tokio::spawn(async move {
            sleep(Duration::from_secs(2)).await;
            drop(held);
        });
        let answer = house.request(&format!("GET {target}")).await;
        assert_eq!(answer.status, 200, "{target}");
        leave.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_needs_no_more_room() {
    let house = house(16 * MIB).await;
    house.put(5, "rest", &"x".repeat(15 * MIB)).await;
    let ask = async |host: &str| house.request(&format!("GET /api/v1/mailbox/large/latest\nHost: {host}")).await;
    let first = ask("localhost").await;
    let held = [unread(&house, HUGE).await, unread(&house, HUGE).await];
    let rest = unread(&house, "/api/v1/mailbox/rest/latest/source").await;
    assert_eq!(ask("localhost").await.body, first.body);
    ask("127.0.0.1").await.problem(503);
    drop((held, rest));
}
