//! The memory budget of large responses. When it is used up, small responses are still sent.

use std::time::Duration;

use axum::response::Response;
use tokio::time::{Instant, sleep};

use super::*;

/// Sends a request without reading the response.
async fn unread(server: &TestServer, target: &str) -> Response {
    let request =
        Request::builder().uri(target).header("Host", "localhost:9000").body(Body::empty()).expect("a request");
    server.router.clone().oneshot(request).await.expect("a response")
}

const ATTACHMENT: &str = "Content-Type: image/png\r\nContent-Disposition: attachment; filename=a\r\n\r\n";

/// Creates a server with a mailbox `small` that contains an ordinary message, three with messages whose responses
/// count, and `huge` with one that counts for half of the budget.
async fn server(cache_bytes: usize) -> TestServer {
    let server = TestServer::with(Settings { cache_bytes, ..Settings::default() });
    server.add_message(0, "small", "Subject: x\r\n\r\nHello\r\n").await;
    server.add_message(1, "large", &format!("Subject: x\r\n\r\n{}\r\n", "0123456789\r\n".repeat(50_000))).await;
    server.add_message(2, "file", &format!("{ATTACHMENT}{}", "x".repeat(MIB))).await;
    server.add_message(3, "escaped", &format!("Content-Type: text/html\r\n\r\n{}", "\x01".repeat(200_000))).await;
    server.add_message(4, "huge", &"x".repeat(33 * MIB)).await;
    server
}

const MIB: usize = 1 << 20;

const HUGE: &str = "/api/v1/mailbox/huge/latest/source";
const LARGE: [&str; 8] = [
    "/api/v1/mailbox/large/latest",
    "/api/v1/mailbox/large/latest/source",
    "/mailbox/dattach/file/latest/0/a",
    "/api/v2/mailbox/file/latest/attachments.zip",
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
async fn unread_responses_use_only_the_budget() {
    let server = server(0).await;
    let held = [unread(&server, HUGE).await, unread(&server, HUGE).await];
    for target in LARGE {
        let start = Instant::now();
        let response = server.request(&format!("GET {target}")).await;
        response.problem(503);
        assert_eq!(response.header("retry-after"), "5", "{target}");
        assert!(start.elapsed() < Duration::from_secs(10), "{target}: {:?}", start.elapsed());
    }
    for target in SMALL {
        assert_eq!(server.request(&format!("GET {target}")).await.status, 200, "{target}");
    }
    let attachment = server.request("GET /mailbox/dattach/file/latest/0/a\nIf-None-Match: *").await;
    assert_eq!(attachment.status, 304, "it has no content");
    drop(held);
    for target in LARGE {
        assert_eq!(server.request(&format!("GET {target}")).await.status, 200, "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn response_waits_for_memory() {
    let server = server(0).await;
    for target in LARGE {
        let held = [unread(&server, HUGE).await, unread(&server, HUGE).await];
        let release = tokio::spawn(async move {
            sleep(Duration::from_secs(2)).await;
            drop(held);
        });
        let response = server.request(&format!("GET {target}")).await;
        assert_eq!(response.status, 200, "{target}");
        release.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn cached_responses_need_no_further_memory() {
    let server = server(16 * MIB).await;
    server.add_message(5, "rest", &"x".repeat(15 * MIB)).await;
    let get = async |host: &str| server.request(&format!("GET /api/v1/mailbox/large/latest\nHost: {host}")).await;
    let first = get("localhost").await;
    let held = [unread(&server, HUGE).await, unread(&server, HUGE).await];
    let rest = unread(&server, "/api/v1/mailbox/rest/latest/source").await;
    assert_eq!(get("localhost").await.body, first.body);
    get("127.0.0.1").await.problem(503);
    drop((held, rest));
}
