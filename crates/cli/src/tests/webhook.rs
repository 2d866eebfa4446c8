//! `restante webhook`. What it shares with `restante relay` is tested there.

use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

macro_rules! entry {
    ($more:literal) => {
        concat!(
            r#"{"id":"7","message":"1794","mailbox":"james","target":"9f86","event":"stored","webhook-id":"stored-1794-x","state":"queued","attempts":2,"created":"2026-01-02T03:04:05.000000+00:00","expires":"2026-01-03T03:04:05.000000+00:00","next-attempt":"2026-01-02T03:06:05.000000+00:00","last-attempt":"2026-01-02T03:05:05.000000+00:00","last-reply":"the target responded 500""#,
            $more,
            "}"
        )
    };
}

const RESPONSES: &[CannedResponse] = &[
    (
        "GET /api/v2/webhooks",
        200,
        r#"{"targets":[{"name":"9f86","url":"https://ci.example.org","filters":[{"events":["stored"],"mailboxes":["ci-*","qa"]},{"events":["stored","deleted"],"mailboxes":[]}],"state":"failing","next-attempt":"2026-01-02T03:06:05.000000+00:00","last-error":"connection refused","entries":{"queued":1,"sending":0,"delivered":12,"failed":0,"cancelled":0}}]}"#,
    ),
    ("GET /api/v2/webhooks/entries?limit=50", 200, concat!(r#"{"entries":["#, entry!(""), r#"],"next":null}"#)),
    ("GET /api/v2/webhooks/entries?limit=50&state=failed", 200, r#"{"entries":[],"next":null}"#),
    ("GET /api/v2/webhooks/entries/7", 200, entry!(r#","payload":"{\"event\":\"message-stored\"}""#)),
    ("GET /api/v2/webhooks/entries/8", 200, entry!(r#","payload":null"#)),
    ("POST /api/v2/webhooks/retry", 200, r#"{"retried":1}"#),
    ("POST /api/v2/webhooks/cancel", 200, r#"{"cancelled":0}"#),
    ("POST /api/v2/webhooks/pause", 200, r#"{"paused":1}"#),
    ("POST /api/v2/webhooks/resume", 200, r#"{"resumed":0}"#),
];

fn nothing(message: &str) -> Result<(), CommandError> {
    Err(CommandError::not_found(message))
}

#[test]
fn lists_targets_and_entries() {
    let server = FakeServer::new(RESPONSES);
    let table: [(&[&str], &str, Result<(), CommandError>); 3] = [
        (
            &["webhook", "targets"],
            "9f86\thttps://ci.example.org\tfailing\t1\t0\t12\t0\t0\t\
             events=stored mailboxes=ci-*|qa,events=stored|deleted\tconnection refused\n",
            Ok(()),
        ),
        (
            &["webhook", "list"],
            "7\t2026-01-02T03:04:05.000000+00:00\tqueued\t9f86\tstored\t1794\tjames\t2\tthe target responded 500\n",
            Ok(()),
        ),
        (&["webhook", "list", "--state", "failed"], "", nothing("No entry matches.")),
    ];
    for (args, output, result) in table {
        assert_eq!(server.run(OutputStyle::pipe(), args), (output.to_owned(), result), "{args:?}");
    }
    let empty = FakeServer::new(&[
        ("GET /api/v2/webhooks", 200, r#"{"targets":[]}"#),
        ("GET /api/v2/webhooks/entries?limit=50", 200, r#"{"entries":[],"next":null}"#),
    ]);
    let none = nothing("The server has no webhook targets: set webhook.urls.");
    assert_eq!(empty.run(OutputStyle::pipe(), &["webhook", "targets"]), (String::new(), none));
    let none = nothing("The webhook queue is empty.");
    assert_eq!(empty.run(OutputStyle::pipe(), &["webhook", "list"]), (String::new(), none));
}

#[test]
fn shows_an_entry_with_its_payload() {
    let server = FakeServer::new(RESPONSES);
    let fields = "Entry: 7\n\
                  State: queued\n\
                  Event: stored\n\
                  Message: 1794\n\
                  Mailbox: james\n\
                  Target: 9f86\n\
                  Webhook id: stored-1794-x\n\
                  Created: 2026-01-02T03:04:05.000000+00:00\n\
                  Expires: 2026-01-03T03:04:05.000000+00:00\n\
                  Attempts: 2\n\
                  Last attempt: 2026-01-02T03:05:05.000000+00:00\n\
                  Next attempt: 2026-01-02T03:06:05.000000+00:00\n\
                  Last reply: the target responded 500\n";
    let (output, result) = server.run(OutputStyle::terminal(80, false), &["webhook", "show", "7"]);
    assert_eq!((output, result), (format!("{fields}\n{{\n  \"event\": \"message-stored\"\n}}\n"), Ok(())));
    let (output, _) = server.run(OutputStyle::terminal(80, false), &["webhook", "show", "8"]);
    assert_eq!(output, fields, "the payload is not stored");
}

#[test]
fn changes_entries_and_targets() {
    type Row = (&'static [&'static str], &'static str, &'static str, Result<(), CommandError>);
    let server = FakeServer::new(RESPONSES);
    let table: [Row; 5] = [
        (&["webhook", "retry", "7"], r#"{"ids":["7"]}"#, "Retrying 1 entry.\n", Ok(())),
        (
            &["webhook", "cancel", "--target", "9f86"],
            r#"{"target":"9f86"}"#,
            "Cancelled 0 entries.\n",
            nothing("There is no entry to cancel."),
        ),
        (&["webhook", "pause", "--target", "9f86"], r#"{"target":"9f86"}"#, "Paused 1 target.\n", Ok(())),
        (&["webhook", "pause", "--all", "--json"], r#"{"all":true}"#, "{\n  \"paused\": 1\n}\n", Ok(())),
        (
            &["webhook", "resume", "--all"],
            r#"{"all":true}"#,
            "Resumed 0 targets.\n",
            nothing("There is no such target."),
        ),
    ];
    for (args, body, output, expected) in table {
        assert_eq!(server.run(OutputStyle::terminal(80, false), args), (output.to_owned(), expected), "{args:?}");
        assert!(server.requests().ends_with(body), "{args:?} {}", server.requests());
    }
}
