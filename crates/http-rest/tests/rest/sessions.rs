//! Sessions and transcripts. The tests of the complete program check how they are recorded in the journal.

use std::borrow::Cow;

use restante_journal::{Chunk, Journal, SessionEnd, SessionInfo, Side, Tls};
use serde_json::{Value, json};

use crate::support::sessions::{chunk, session_info, transaction};
use crate::support::*;

/// Creates a server with a journal and one message in mailbox `test`.
async fn with_journal() -> (TestServer, Arc<Journal>) {
    let journal = Arc::new(Journal::in_memory(1 << 20));
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let mailroom = mailroom.with_journal(journal.clone());
    let server = TestServer { store, router: router(Arc::new(mailroom), Settings::default()) };
    server.add_message(0, "test", "Subject: one\r\n\r\nHello\r\n").await;
    (server, journal)
}

#[tokio::test]
async fn transcript_of_message() {
    let (server, journal) = with_journal().await;
    let info = SessionInfo {
        helo: Some("client".to_owned()),
        tls: Some(Tls { version: Cow::Borrowed("TLSv1.3"), cipher: Cow::Borrowed("TLS_AES_256_GCM_SHA384") }),
        user: Some("ann".to_owned()),
        ..session_info(FIRST)
    };
    journal.append(chunk(
        FIRST,
        0,
        info.clone(),
        &[(0, Side::Server, "220 mx \"x\""), (1500, Side::Client, "EHLO client")],
    ));
    let transaction_chunk = chunk(FIRST, 1, info.clone(), &[(2_000_000, Side::Client, "MAIL FROM:<a@example.org>")]);
    journal.append(Chunk { transaction: Some(transaction(&[("test", id(0))])), ..transaction_chunk });
    let other = chunk(FIRST, 2, info.clone(), &[(3_000_000, Side::Client, "MAIL FROM:<secret@example.org>")]);
    journal.append(Chunk { transaction: Some(transaction(&[("other", 7)])), ..other });
    let end = Some(SessionEnd {
        at: Some(Timestamp::from_millisecond(1_794_699_775_000).unwrap()),
        reason: Cow::Borrowed("quit"),
    });
    journal.append(chunk(FIRST, 3, SessionInfo { end, refusals: 1, ..info }, &[]));

    let response = server.request(&format!("GET /api/v2/mailbox/test/{}/transcript", id(0))).await;
    assert_eq!((response.status, response.header("cache-control")), (StatusCode::OK, "no-store"));
    assert!(response.body.ends_with(b"}\n"));
    let expected = json!({
        "session": {
            "id": FIRST.to_string(),
            "protocol": "smtp",
            "client": "192.0.2.1",
            "helo": "client",
            "tls": {"version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"},
            "user": "ann",
            "started": "2026-11-14T23:42:50.123456+00:00",
            "started-millis": 1_794_699_770_123_u64,
            "ended-millis": 1_794_699_775_000_u64,
            "ending": "quit",
            "transactions": [{
                "from": "a@example.org",
                "to": ["test@example.org"],
                "parameters": {"mail": "SIZE=22 RET=HDRS", "rcpt": ["NOTIFY=NEVER"]},
                "outcome": "stored",
                "reply": "250 2.0.0 Mail accepted",
                "messages": [{"mailbox": "test", "id": id(0).to_string()}],
            }],
            "transaction-count": null,
            "refused": 1,
        },
        "lines": [
            {"at": "2026-11-14T23:42:50.123456+00:00", "posix-millis": 1_794_699_770_123_u64, "after-millis": 0,
             "from": "server", "text": "220 mx \"x\""},
            {"at": "2026-11-14T23:42:50.124956+00:00", "posix-millis": 1_794_699_770_124_u64, "after-millis": 1,
             "from": "client", "text": "EHLO client"},
            {"at": "2026-11-14T23:42:52.123456+00:00", "posix-millis": 1_794_699_772_123_u64, "after-millis": 2000,
             "from": "client", "text": "MAIL FROM:<a@example.org>"},
        ],
    });
    assert_eq!(response.json(), expected);
    assert_eq!(server.request("GET /api/v2/mailbox/test/latest/transcript").await.json(), expected);
    let complete = server.request(&format!("GET /api/v2/sessions/{FIRST}")).await.json();
    assert_eq!(
        (complete["session"]["transactions"].as_array().unwrap().len(), complete["lines"][3]["after-millis"].as_u64()),
        (2, Some(3000))
    );
}

#[tokio::test]
async fn all_messages_of_a_session_are_counted() {
    let (server, journal) = with_journal().await;
    journal.append(chunk(FIRST, 0, session_info(FIRST), &[]));
    for number in 1..=250 {
        let transaction = Some(transaction(&[("bulk", u64::from(number))]));
        journal.append(Chunk { transaction, ..chunk(FIRST, number, session_info(FIRST), &[]) });
    }
    journal.append(chunk(FIRST, 251, session_info(FIRST), &[]));
    let counts =
        |session: &Value| (session["transaction-count"].as_u64(), session["transactions"].as_array().unwrap().len());
    let list = server.request("GET /api/v2/sessions").await.json();
    assert_eq!(counts(&list["sessions"][0]), (Some(250), 99));
    let complete = server.request(&format!("GET /api/v2/sessions/{FIRST}")).await.json();
    assert_eq!(counts(&complete["session"]), (Some(250), 250));
}

#[tokio::test]
async fn missing_transcripts_are_404() {
    let (server, _) = with_journal().await;
    let response = server.request(&format!("GET /api/v2/mailbox/test/{}/transcript", id(0))).await;
    assert_eq!(response.problem(404), "There is no transcript of the delivery of this message.");
    let response = server.request("GET /api/v2/mailbox/test/7/transcript").await;
    assert_eq!(response.problem(404), "The mailbox has no such message.");
    for id in ["7", "x", "-1", "07"] {
        let response = server.request(&format!("GET /api/v2/sessions/{id}")).await;
        assert_eq!(response.problem(404), "There is no such session, or it is not stored any more.");
    }
    let without = TestServer::with_two_messages().await;
    assert_eq!(without.request("GET /api/v2/sessions").await.text(), "{\"sessions\":[],\"next\":null}\n");
    without.request("GET /api/v2/sessions/7").await.problem(404);
    without.request("GET /api/v2/mailbox/test/latest/transcript").await.problem(404);
}

#[tokio::test]
async fn lists_sessions() {
    let (server, journal) = with_journal().await;
    for session in 1..=60 {
        let refused = u32::from(session % 10 == 0);
        journal.append(chunk(
            session,
            0,
            SessionInfo { refusals: refused, ..session_info(session) },
            &[(0, Side::Server, "220 mx")],
        ));
    }
    let list = async |query: &str| {
        let list = server.request(&format!("GET /api/v2/sessions{query}")).await.json();
        let number = |session: &serde_json::Value| session["id"].as_str().unwrap().parse::<u64>().unwrap();
        let ids: Vec<u64> = list["sessions"].as_array().unwrap().iter().map(number).collect();
        (ids, list["next"].as_str().map(str::to_owned))
    };
    assert_eq!(list("").await, ((11..=60).rev().collect(), Some("11".to_owned())));
    assert_eq!(list("?limit=2").await, (vec![60, 59], Some("59".to_owned())));
    assert_eq!(list("?before=3&refused=false").await, (vec![2, 1], None));
    assert_eq!(list("?refused=true&limit=2").await, (vec![60, 50], Some("50".to_owned())));
    assert_eq!(list("?refused=true&before=20").await, (vec![10], None));
    assert_eq!(list("?limit=1000").await.0.len(), 60);
    let record = &server.request("GET /api/v2/sessions?limit=1").await.json()["sessions"][0];
    assert_eq!((record["refused"].as_u64(), &record["ending"], &record["helo"]), (Some(1), &json!(null), &json!(null)));
    for bad in ["limit=0", "limit=x", "before=x", "refused=1", "refused=true&refused=true"] {
        server.request(&format!("GET /api/v2/sessions?{bad}")).await.problem(400);
    }
}
