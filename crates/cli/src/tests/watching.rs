//! `restante watch` with streams that end, resume, and contain hostile texts.

use std::time::Duration;

use super::all_mail::entry;
use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

macro_rules! stored {
    ($position:literal, $id:literal, $subject:literal) => {
        concat!(
            "event: message-stored\nid: ",
            $position,
            "\ndata: {\"variant\":\"message-stored\",\"identifier\":null,\"header\":{},\"message\":",
            entry!($id, $subject),
            "}\n\n"
        )
    };
}

const NEWEST: CannedResponse =
    ("GET /api/v2/messages?limit=1", 200, concat!(r#"{"messages":["#, entry!("5", "Five"), r#"],"next":"5"}"#));
/// The first stream: recent messages, a new one, the deletion of one, and an event that is not complete.
const FIRST_STREAM: CannedResponse = (
    "GET /api/v2/events",
    200,
    concat!(
        "retry: 1000\n\n",
        stored!("1-4", "4", "Four"),
        stored!("1-5", "5", "Five"),
        stored!("1-6", "6", "Six \\u001b[2J\\u202e\\tx"),
        "event: message-deleted\nid: 1-7\ndata: {\"variant\":\"message-deleted\",\"message\":{\"id\":\"6\"}}\n\n",
        "event: message-stored\nid: 1-8\ndata: {\"message\":"
    ),
);
/// What follows after the last complete event of the first stream. Then the server has forgotten the position.
const SECOND_STREAM: CannedResponse = (
    "GET /api/v2/events?lastEventId=1-7",
    200,
    concat!("retry: 1000\n\n", stored!("1-8", "8", "Eight"), "event: lagged\ndata: {}\n\n"),
);
const THIRD_STREAM: CannedResponse = (
    "GET /api/v2/events?lastEventId=1-8",
    200,
    concat!(
        "retry: 1000\n\nevent: lagged\ndata: {}\n\n",
        stored!("2-1", "8", "Eight"),
        stored!("2-2", "9", "Nine"),
        ":\nid: 2-3\n\n"
    ),
);

fn subjects(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.split('\t').nth(4)).collect()
}

#[test]
fn prints_new_messages_once_across_streams() {
    const RESPONSES: &[CannedResponse] = &[NEWEST, FIRST_STREAM, SECOND_STREAM, THIRD_STREAM];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::pipe(), &["watch", "--count", "3"]);
    assert_eq!(result, Ok(()));
    assert_eq!(subjects(&output), ["Six \\u{1b}[2J\\u{202e}\\tx", "Eight", "Nine"]);
    let first = "6\t2026-01-02T03:04:05.000006+00:00\tShop <shop@x.org>\tann,bob\tSix ";
    assert!(output.starts_with(first) && output.lines().next().unwrap().ends_with("\t2\trun7,b c"), "{output}");

    let (output, _) = server.run(OutputStyle::pipe(), &["watch", "--count", "2", "--json"]);
    assert!(!output.contains(['\u{1b}', '\u{202e}']), "{output:?}");
    let entries: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect::<Vec<_>>(), ["6", "8"]);

    let (output, _) = server.run(OutputStyle::terminal(100, false), &["watch", "--count", "1"]);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "ID                TIME      FROM                    MAILBOXES        SUBJECT");
    // The time of day depends on the time zone.
    let (start, end) = lines[1].split_at(26);
    assert!(start.starts_with("6                 ") && start.ends_with(":05"), "{start:?}");
    assert_eq!(end, "  Shop <shop@x.org>       ann, bob         Six \\u{1b}[2J\\u{202e}\\tx (2 at…");
}

#[test]
fn filters_by_mailbox_tag_and_query() {
    const RESPONSES: &[CannedResponse] = &[
        NEWEST,
        (
            "GET /api/v2/events/ann%20b",
            200,
            concat!(
                stored!("1-6", "6", "Six"),
                "event: message-stored\nid: 1-7\ndata: {\"message\":{\"id\":\"7\",\"subject\":\"Seven\",\"tags\":[\"run7\"]}}\n\n",
                stored!("1-8", "8", "Eight"),
                stored!("1-9", "9", "Nine"),
            ),
        ),
        // The query is checked before the first message. Then only the messages with the tags are checked.
        ("GET /api/v2/wait?timeout=0&after=4&match=i", 408, r#"{"detail":"None.","messages":[]}"#),
        ("GET /api/v2/wait?timeout=0&after=5&match=i", 200, r#"{"messages":[{"id":"6"}]}"#),
        ("GET /api/v2/wait?timeout=0&after=7&match=i", 200, r#"{"messages":[{"id":"9"}]}"#),
        ("GET /api/v2/wait?timeout=0&after=8&match=i", 200, r#"{"messages":[{"id":"9"}]}"#),
        ("GET /api/v2/wait?timeout=0&after=4&match=%28", 400, r#"{"detail":"A ) is missing."}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let args = ["watch", "--mailbox", "ann b", "--tag", "RUN7", "--tag", "b c", "-q", "i", "--count", "2"];
    let (output, result) = server.run(OutputStyle::pipe(), &args);
    assert_eq!((subjects(&output), result), (vec!["Six", "Nine"], Ok(())));
    let invalid = Err(CommandError::Usage("A ) is missing.".to_owned()));
    assert_eq!(server.run(OutputStyle::pipe(), &["watch", "--query", "("]), (String::new(), invalid));
}

#[test]
fn ends_after_the_time_limit() {
    const RESPONSES: &[CannedResponse] = &[NEWEST, FIRST_STREAM, ("GET /api/v2/events?lastEventId=1-7", 503, "")];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::pipe(), &["watch", "--count", "2", "--timeout", "3s"]);
    assert_eq!(subjects(&output).len(), 1, "{output}");
    assert_eq!(result, Err(CommandError::not_found("Only 1 of 2 messages arrived in time.")));
    let (_, result) = server.run(OutputStyle::pipe(), &["watch", "--tag", "other", "--timeout", "10ms"]);
    assert_eq!(result, Err(CommandError::not_found("No message arrived in time.")));
    let (output, result) = server.run(OutputStyle::pipe(), &["watch", "--timeout", "3s"]);
    assert_eq!((subjects(&output).len(), result), (1, Ok(())));
}

#[test]
fn reports_errors_of_the_stream() {
    let table: &[(&'static [CannedResponse], u8, &str)] = &[
        (&[("GET /api/v2/messages?limit=1", 401, r#"{"detail":"Log in first."}"#)], 4, "Log in first."),
        (&[NEWEST, ("GET /api/v2/events", 403, r#"{"detail":"Not allowed."}"#)], 4, "Not allowed."),
        (&[NEWEST, ("GET /api/v2/events", 503, r#"{"detail":"Too many."}"#)], 5, "Too many."),
        (
            &[NEWEST, FIRST_STREAM, ("GET /api/v2/events?lastEventId=1-7", 401, r#"{"detail":"Log in again."}"#)],
            4,
            "Log in again.",
        ),
        (
            &[NEWEST, ("GET /api/v2/events", 200, "event: message-stored\ndata: {\n\n")],
            5,
            "The response of the server is not as expected: ",
        ),
        (
            &[NEWEST, ("GET /api/v2/events", 200, "event: message-stored\ndata: {}\n\n")],
            5,
            "The response of the server is not as expected: ",
        ),
    ];
    for (responses, code, message) in table {
        let (_, result) = FakeServer::new(responses).run(OutputStyle::pipe(), &["watch", "--timeout", "1m"]);
        let error = result.unwrap_err();
        assert_eq!(error.exit_code(), *code, "{error}");
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn an_endless_event_is_an_error() {
    let line = format!("data: {}", "x".repeat(5 * 1024 * 1024)).leak();
    let responses = [NEWEST, ("GET /api/v2/events", 200, &*line)];
    let server = FakeServer::new(Vec::from(responses).leak());
    let (_, result) = server.run(OutputStyle::pipe(), &["watch", "--timeout", "1m"]);
    assert_eq!(result.unwrap_err().to_string(), "The response of the server is not as expected: an event is too long.");
}

#[test]
fn a_server_that_returns_is_used_again() {
    let server = FakeServer::new(&[NEWEST, FIRST_STREAM]);
    let (sender, receiver) = std::sync::mpsc::channel();
    let url = server.url.clone();
    std::thread::spawn(move || {
        let args = ["watch", "--count", "2", "--timeout", "1m", "--server", &url];
        let _ = sender.send(super::fake::run(OutputStyle::pipe(), &args));
    });
    // The fake server responds with status 500 to the second connection, until it has a response for it.
    while !server.requests().contains("lastEventId=1-7") {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.add_response(SECOND_STREAM);
    let (output, result) = receiver.recv().unwrap();
    assert_eq!((subjects(&output).len(), result), (2, Ok(())));
}

#[test]
fn a_query_that_fails_temporarily_is_sent_again() {
    const NONE: CannedResponse =
        ("GET /api/v2/wait?timeout=0&after=4&match=i", 408, r#"{"detail":"None.","messages":[]}"#);
    let server = FakeServer::new(&[NEWEST, FIRST_STREAM, NONE]);
    // The fake server responds with status 500 to the query for message 6, until it has a response for it.
    let (_, result) = server.run(OutputStyle::pipe(), &["watch", "-q", "i", "--count", "1", "--timeout", "300ms"]);
    assert_eq!(result, Err(CommandError::not_found("Only 0 of 1 message arrived in time.")));
    let (sender, receiver) = std::sync::mpsc::channel();
    let (url, earlier) = (server.url.clone(), server.requests().matches("after=5").count());
    assert!(earlier >= 2, "the query was sent again");
    std::thread::spawn(move || {
        let args = ["watch", "-q", "i", "--count", "1", "--timeout", "1m", "--server", &url];
        let _ = sender.send(super::fake::run(OutputStyle::pipe(), &args));
    });
    while server.requests().matches("after=5").count() == earlier {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.add_response(("GET /api/v2/wait?timeout=0&after=5&match=i", 200, r#"{"messages":[{"id":"6"}]}"#));
    let (output, result) = receiver.recv().unwrap();
    assert_eq!((subjects(&output).len(), result), (1, Ok(())));
}
