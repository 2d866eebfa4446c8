//! `restante release` and `restante relay`.

use serde_json::Value;

use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

macro_rules! entry {
    ($id:literal, $state:literal, $reply:literal, $more:literal) => {
        concat!(
            r#"{"id":""#,
            $id,
            r#"","message":"1794","mailbox":"james","target":"main","sender":"a@x.org","recipients":[{"address":"b@y.org","state":"waiting","reply":""},{"address":"c@y.org","state":"failed","reply":"550 \u001b[2Jno"}],"origin":"release","by":"ci","state":""#,
            $state,
            r#"","attempts":2,"created":"2026-01-02T03:04:05.000000+00:00","expires":"2026-01-03T03:04:05.000000+00:00","next-attempt":null,"last-attempt":"2026-01-02T03:05:05.000000+00:00","last-reply":""#,
            $reply,
            "\"",
            $more,
            "}"
        )
    };
    ($id:literal, $state:literal, $reply:literal) => {
        entry!($id, $state, $reply, "")
    };
}

const RESPONSES: &[CannedResponse] = &[
    ("POST /api/v2/messages/1794/release", 202, entry!("7", "queued", "")),
    ("POST /api/v2/messages/1795/release", 202, entry!("8", "queued", "")),
    ("POST /api/v2/messages/1796/release", 202, entry!("9", "queued", "")),
    (
        "POST /api/v2/messages/1797/release",
        403,
        r#"{"detail":"The relay target does not allow these recipients: x@y.org."}"#,
    ),
    ("POST /api/v2/messages/1798/release", 422, r#"{"detail":"Name one of the relay targets: main, other."}"#),
    ("POST /api/v2/messages/1799/release", 404, r#"{"detail":"There is no such message."}"#),
    ("GET /api/v2/relay/entries/7", 200, entry!("7", "delivered", "250 ok", r#","transcript":[]"#)),
    ("GET /api/v2/relay/entries/8", 200, entry!("8", "failed", "550 no", r#","transcript":[]"#)),
    (
        "GET /api/v2/relay/entries/9",
        200,
        entry!(
            "9",
            "queued",
            "450 later",
            r#","transcript":[{"after-millis":1012,"from":"server","text":"220 hello \u001b[2J"},{"after-millis":2000,"from":"client","text":"EHLO x"}]"#
        ),
    ),
    ("GET /api/v2/relay/entries/6", 404, r#"{"detail":"There is no such relay entry."}"#),
    (
        "GET /api/v2/relay/entries?limit=50",
        200,
        concat!(
            r#"{"entries":["#,
            entry!("9", "queued", "450 later"),
            ",",
            entry!("7", "delivered", ""),
            r#"],"next":null}"#
        ),
    ),
    (
        "GET /api/v2/relay/entries?limit=1000",
        200,
        concat!(r#"{"entries":["#, entry!("9", "queued", ""), r#"],"next":"5"}"#),
    ),
    ("GET /api/v2/relay/entries?limit=999&before=5", 200, r#"{"entries":[],"next":"3"}"#),
    (
        "GET /api/v2/relay/entries?limit=999&before=3",
        200,
        concat!(r#"{"entries":["#, entry!("2", "queued", ""), r#"],"next":null}"#),
    ),
    ("GET /api/v2/relay/entries?limit=50&message=1794&target=main&state=failed", 200, r#"{"entries":[],"next":null}"#),
    (
        "GET /api/v2/relay",
        200,
        r#"{"targets":[{"name":"main","host":"smtp.example.org","port":587,"allowed":["*@example.org","qa@x.org"],"blocked":[],"state":"ready","paused-until":null,"last-error":null,"entries":{"queued":1,"sending":0,"delivered":12,"failed":0,"cancelled":0}},{"name":"v6","host":"::1","port":25,"allowed":["*"],"blocked":[],"state":"paused","paused-until":"2026-01-02T03:04:05.000000+00:00","last-error":"connection refused","entries":{"queued":0,"sending":0,"delivered":0,"failed":0,"cancelled":0}}]}"#,
    ),
    ("POST /api/v2/relay/retry", 200, r#"{"retried":2}"#),
    ("POST /api/v2/relay/cancel", 200, r#"{"cancelled":0}"#),
];

const ROW_7: &str = "7\t2026-01-02T03:04:05.000000+00:00\tdelivered\tmain\t1794\tb@y.org,c@y.org\t2";
const ROW_9: &str = "9\t2026-01-02T03:04:05.000000+00:00\tqueued\tmain\t1794\tb@y.org,c@y.org\t2";

fn nothing(message: &str) -> Result<(), CommandError> {
    Err(CommandError::not_found(message))
}

#[test]
fn releases_a_message() {
    let server = FakeServer::new(RESPONSES);
    let (output, result) =
        server.run(OutputStyle::pipe(), &["release", "1794", "--to", "b@y.org", "--to", "c@y.org", "--target", "main"]);
    assert_eq!((output, result), (ROW_7.replace("delivered", "queued") + "\n", Ok(())));
    assert!(server.requests().ends_with(r#"{"target":"main","to":["b@y.org","c@y.org"]}"#), "{}", server.requests());
    assert_eq!(server.run(OutputStyle::pipe(), &["release", "1794"]).1, Ok(()));
    assert!(server.requests().ends_with("{}"), "{}", server.requests());
    let (output, _) = server.run(OutputStyle::pipe(), &["release", "1794", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["id"], "7");
}

#[test]
fn waits_until_a_message_was_sent() {
    let server = FakeServer::new(RESPONSES);
    let table = [
        ("1794", ROW_7.to_owned() + "\t250 ok\n", Ok(())),
        (
            "1795",
            ROW_7.replace("7\t2", "8\t2").replace("delivered", "failed") + "\t550 no\n",
            nothing("The message was not delivered to all recipients: 550 no"),
        ),
        (
            "1796",
            ROW_9.to_owned() + "\t450 later\n",
            nothing("The message was not sent in time, and is still in the queue: 450 later"),
        ),
    ];
    for (id, output, expected) in table {
        let args = ["release", id, "--wait", "--timeout", "0"];
        assert_eq!(server.run(OutputStyle::pipe(), &args), (output, expected), "{id}");
    }
}

#[test]
fn refused_releases_have_exit_codes() {
    let server = FakeServer::new(RESPONSES);
    let table = [
        ("1797", 4, "The relay target does not allow these recipients: x@y.org."),
        ("1798", 2, "Name one of the relay targets: main, other."),
        ("1799", 1, "There is no such message."),
    ];
    for (id, code, message) in table {
        let (output, result) = server.run(OutputStyle::pipe(), &["release", id, "--wait"]);
        let error = result.unwrap_err();
        assert_eq!((output.as_str(), error.exit_code(), error.to_string().as_str()), ("", code, message));
    }
}

#[test]
fn lists_entries_oldest_first() {
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::terminal(100, false), &["relay", "list"]);
    assert_eq!(
        output,
        "ID  WHEN        STATE      TARGET  MESSAGE  TO                TRIES  REPLY\n\
         7   2026-01-02  delivered  main    1794     b@y.org, c@y.org      2\n\
         9   2026-01-02  queued     main    1794     b@y.org, c@y.org      2  450 later\n"
    );
    assert_eq!(result, Ok(()));
    let (output, _) = server.run(OutputStyle::pipe(), &["relay", "list", "--limit", "1000"]);
    assert_eq!(output, format!("{}\n{ROW_9}\n", ROW_9.replacen('9', "2", 1)));
    let (output, _) = server.run(OutputStyle::pipe(), &["relay", "list", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["entries"][0]["id"], "9");
    let args = ["relay", "list", "--state", "failed", "--target", "main", "--message", "1794"];
    assert_eq!(server.run(OutputStyle::pipe(), &args), (String::new(), nothing("No entry matches.")));
}

#[test]
fn shows_an_entry_with_its_transcript() {
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::terminal(80, false), &["relay", "show", "9"]);
    assert_eq!(
        output,
        "Entry: 9\n\
         State: queued\n\
         Message: 1794\n\
         Mailbox: james\n\
         Target: main\n\
         Origin: release by ci\n\
         Sender: a@x.org\n\
         Created: 2026-01-02T03:04:05.000000+00:00\n\
         Expires: 2026-01-03T03:04:05.000000+00:00\n\
         Attempts: 2\n\
         Last attempt: 2026-01-02T03:05:05.000000+00:00\n\
         Last reply: 450 later\n\
         \n\
         RECIPIENT  STATE    REPLY\n\
         b@y.org    waiting\n\
         c@y.org    failed   550 \\u{1b}[2Jno\n\
         \n   \
            1.012 S: 220 hello \\u{1b}[2J\n   \
            2.000 C: EHLO x\n"
    );
    assert_eq!(result, Ok(()));
    assert_eq!(server.run(OutputStyle::pipe(), &["relay", "show", "6"]).1, nothing("There is no such relay entry."));
}

#[test]
fn lists_targets() {
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::pipe(), &["relay", "targets"]);
    assert_eq!(
        output,
        "main\tsmtp.example.org:587\tready\t1\t0\t12\t0\t0\t*@example.org,qa@x.org\n\
         v6\t[::1]:25\tpaused\t0\t0\t0\t0\t0\t*\tconnection refused\n"
    );
    assert_eq!(result, Ok(()));
    let empty = FakeServer::new(&[("GET /api/v2/relay", 200, r#"{"targets":[]}"#)]);
    let none = nothing("The server has no relay targets: set relay.targets.");
    assert_eq!(empty.run(OutputStyle::pipe(), &["relay", "targets"]), (String::new(), none));
}

#[test]
fn retries_and_cancels_entries() {
    type Row = (&'static [&'static str], &'static str, &'static str, Result<(), CommandError>);
    let server = FakeServer::new(RESPONSES);
    let table: [Row; 6] = [
        (&["relay", "retry", "9", "7", "7"], r#"{"ids":["7","9"]}"#, "Retrying 2 entries.\n", Ok(())),
        (
            &["relay", "retry", "7", "8", "9"],
            r#"{"ids":["7","8","9"]}"#,
            "Retrying 2 entries.\n",
            nothing("One of the entries does not exist, is being sent, or was delivered."),
        ),
        (&["relay", "retry", "--target", "main"], r#"{"target":"main"}"#, "Retrying 2 entries.\n", Ok(())),
        (
            &["relay", "cancel", "--all"],
            r#"{"all":true}"#,
            "Cancelled 0 entries.\n",
            nothing("There is no entry to cancel."),
        ),
        (
            &["relay", "cancel", "7", "8"],
            r#"{"ids":["7","8"]}"#,
            "Cancelled 0 entries.\n",
            nothing("2 of the entries do not exist, or do not wait."),
        ),
        (&["relay", "retry", "--all", "--json"], r#"{"all":true}"#, "{\n  \"retried\": 2\n}\n", Ok(())),
    ];
    for (args, body, output, expected) in table {
        assert_eq!(server.run(OutputStyle::terminal(80, false), args), (output.to_owned(), expected), "{args:?}");
        assert!(server.requests().ends_with(body), "{args:?} {}", server.requests());
    }
}
