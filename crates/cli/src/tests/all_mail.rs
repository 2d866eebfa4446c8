//! The commands that use all mail, and messages that can be in several mailboxes.

use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

macro_rules! entry {
    ($id:literal, $subject:literal, $more:literal) => {
        concat!(
            r#"{"id":""#,
            $id,
            r#"","from":"Shop <shop@x.org>","to":["<ann@x.org>"],"cc":[],"recipients":["ann@x.org","bob@x.org"],"mailboxes":["ann","bob"],"subject":""#,
            $subject,
            r#"","snippet":"Hi","received":"2026-01-02T03:04:05.000006+00:00","size":4711,"attachments":2,"seen":false,"tags":["run7","b c"]"#,
            $more,
            "}"
        )
    };
    ($id:literal, $subject:literal) => {
        entry!($id, $subject, "")
    };
}
pub(super) use entry;

fn nothing(message: &str) -> Result<(), CommandError> {
    Err(CommandError::not_found(message))
}

#[test]
fn lists_all_mail_oldest_first() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/messages?limit=50",
            200,
            concat!(
                r#"{"messages":["#,
                entry!("30", "Three \\u001b[2J\\u202e\\tx"),
                r#",{"id":"20"}"#,
                r#"],"next":null}"#
            ),
        ),
        (
            "GET /api/v2/messages?limit=1",
            200,
            concat!(r#"{"messages":["#, entry!("30", "Three \\u001b[2J\\u202e\\tx"), r#"],"next":"30"}"#),
        ),
        (
            "GET /api/v2/messages?limit=2&q=from%3Ashop&tag=run7&tag=b+c",
            200,
            concat!(r#"{"messages":["#, entry!("20", "Two"), r#"],"next":null}"#),
        ),
        ("GET /api/v2/messages?limit=50&q=no", 200, r#"{"messages":[],"next":null}"#),
        ("GET /api/v2/messages?limit=50&q=%28", 400, r#"{"detail":"A ) is missing."}"#),
        ("GET /api/v2/messages?limit=50&tag=locked", 403, r#"{"detail":"Not allowed."}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::terminal(80, false), &["list"]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        output,
        "ID  WHEN        FROM             MAILBOXES  SUBJECT             FILES  TAGS\n\
         20  1970-01-01\n\
         30  2026-01-02  Shop <shop@x.o…  ann, bob   Three \\u{1b}[2J\\u…      2  run7, b c\n"
    );
    let (output, result) = server
        .run(OutputStyle::pipe(), &["list", "--limit", "2", "-q", "from:shop", "--tag", "run7", "--tag", " b c "]);
    assert_eq!(
        (output.as_str(), result),
        ("20\t2026-01-02T03:04:05.000006+00:00\tShop <shop@x.org>\tann,bob\tTwo\t2\trun7,b c\n", Ok(()))
    );
    let (output, _) = server.run(OutputStyle::pipe(), &["list", "--json", "--limit", "1"]);
    assert!(!output.contains(['\u{1b}', '\u{202e}']), "{output:?}");
    let document: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&document["messages"][0]["id"], &document["next"]), (&"30".into(), &"30".into()));

    assert_eq!(server.run(OutputStyle::pipe(), &["list", "--query", "no"]).1, nothing("No message matches."));
    let invalid = Err(CommandError::Usage("A ) is missing.".to_owned()));
    assert_eq!(server.run(OutputStyle::pipe(), &["list", "--query", "("]), (String::new(), invalid));
    assert_eq!(server.run(OutputStyle::pipe(), &["list", "--tag", "locked"]).1.unwrap_err().exit_code(), 4);
}

#[test]
fn list_requests_pages_up_to_the_limit() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/messages?limit=200",
            200,
            concat!(r#"{"messages":["#, entry!("4", "Four"), ",", entry!("3", "Three"), r#"],"next":"3"}"#),
        ),
        ("GET /api/v2/messages?limit=199&before=3", 200, r#"{"messages":[],"next":"2"}"#),
        (
            "GET /api/v2/messages?limit=199&before=2",
            200,
            concat!(r#"{"messages":["#, entry!("1", "One"), r#"],"next":null}"#),
        ),
        ("GET /api/v2/messages?limit=1", 200, r#"{"messages":[],"next":null}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::pipe(), &["list", "--limit", "201"]);
    assert_eq!(result, Ok(()));
    let ids: Vec<&str> = output.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(ids, ["1", "3", "4"]);
    let (output, result) = server.run(OutputStyle::pipe(), &["list", "--limit", "1", "--json"]);
    assert_eq!((output.as_str(), result), ("{\"messages\":[],\"next\":null}\n", nothing("There are no messages.")));
}

#[test]
fn reads_messages_without_a_mailbox() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/messages/latest",
            200,
            entry!("7", "Seven", r#","copies":[{"mailbox":"ann","id":"7","number":1},{"mailbox":"bob","id":"7"}]"#),
        ),
        ("GET /api/v2/messages/8", 200, r#"{"id":"8","copies":[]}"#),
        ("GET /api/v2/messages/9", 404, r#"{"detail":"There is no such message."}"#),
        (
            "GET /api/v2/mailbox/ann/7",
            200,
            r#"{"text":"Hi\r\n","headers":[{"name":"Subject","value":"Seven"}],"attachments":[]}"#,
        ),
        ("GET /api/v1/mailbox/ann/7", 200, r#"{"id":"7","body":{"text":"Hi"}}"#),
        ("GET /api/v2/messages/7/source", 200, "A: b\r\n\r\n"),
        ("GET /api/v2/messages/7/codes", 200, r#"{"codes":[{"code":"123456","score":0.9}]}"#),
        ("GET /api/v2/messages/7/links", 200, r#"{"links":[{"href":"https://x.org/"}]}"#),
        ("GET /api/v2/messages/6/codes", 404, r#"{"detail":"There is no such message."}"#),
        (
            "GET /api/v2/messages?limit=200&after=5",
            200,
            concat!(r#"{"messages":["#, entry!("7", "Seven"), ",", entry!("6", "Six"), r#"],"next":null}"#),
        ),
    ];
    let server = FakeServer::new(RESPONSES);
    let cases: &[(&[&str], &str, Result<(), CommandError>)] = &[
        (&["get"], "Subject: Seven\n\nHi\n", Ok(())),
        (&["get", "--json"], "{\"body\":{\"text\":\"Hi\"},\"id\":\"7\"}\n", Ok(())),
        (&["get", "--message", "9"], "", nothing("There is no such message.")),
        (&["source", "--message", "7"], "A: b\r\n\r\n", Ok(())),
        (&["codes", "--message", "7"], "123456\n", Ok(())),
        (&["codes", "--after", "5"], "123456\n", Ok(())),
        (&["links", "--message", "7"], "https://x.org/\n", Ok(())),
        (&["codes", "--message", "6"], "", nothing("There is no such message.")),
    ];
    for (args, output, expected) in cases {
        let (printed, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!((printed.as_str(), &result), (*output, expected), "{args:?}");
    }
    let (_, result) = server.run(OutputStyle::pipe(), &["get", "--message", "8"]);
    assert_eq!(result.unwrap_err().exit_code(), 5, "a message without copies is not an expected response");
}

#[test]
fn waits_for_all_mail() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/wait?timeout=1500ms&after=7&count=2&match=subject%3Acode",
            200,
            concat!(r#"{"messages":["#, entry!("8", "Code"), ",", entry!("9", "Code"), "]}\n"),
        ),
        (
            "GET /api/v2/wait?timeout=0&count=1000&after=9&match=subject%3Acode",
            408,
            r#"{"detail":"None came.","messages":[]}"#,
        ),
        ("GET /api/v2/messages/9/codes", 200, r#"{"codes":[{"code":"123456","score":0.9}]}"#),
        ("GET /api/v2/wait?timeout=30000ms", 408, r#"{"detail":"None came.","messages":[]}"#),
        ("GET /api/v2/wait?timeout=1000ms&expect=none", 204, ""),
    ];
    let server = FakeServer::new(RESPONSES);
    let line =
        |id: &str| format!("{id}\t2026-01-02T03:04:05.000006+00:00\tShop <shop@x.org>\tann,bob\tCode\t2\trun7,b c\n");
    let found = ["wait", "--timeout", "1.5s", "--after", "7", "--count", "2", "--query", "subject:code"];
    let with_codes = [&found[..], &["--codes"]].concat();
    let cases: &[(&[&str], String, Result<(), CommandError>)] = &[
        (&found, line("8") + &line("9"), Ok(())),
        (&with_codes, "123456\n".to_owned(), Ok(())),
        (&["wait"], String::new(), nothing("None came.")),
        (&["wait", "--none", "--timeout", "1"], String::new(), Ok(())),
    ];
    for (args, output, expected) in cases {
        let (printed, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!((&printed, &result), (output, expected), "{args:?}");
    }
}

#[test]
fn prints_and_changes_tags() {
    const RESPONSES: &[CannedResponse] = &[
        ("GET /api/v2/messages/latest", 200, entry!("7", "Seven")),
        ("PATCH /api/v2/messages/7", 200, entry!("7", "Seven")),
        ("GET /api/v2/messages/8", 200, r#"{"id":"8","tags":[]}"#),
        ("PATCH /api/v2/messages/8", 200, r#"{"id":"8","tags":[]}"#),
        ("GET /api/v2/messages/9", 200, r#"{"id":"9","tags":["\u001b]0;x"]}"#),
        ("PATCH /api/v2/messages/10", 404, r#"{"detail":"There is no such message."}"#),
        ("PATCH /api/v2/messages/11", 403, r#"{"detail":"Not allowed."}"#),
        // The token may write, but not read.
        ("PATCH /api/v2/messages/12", 200, "\"OK\"\n"),
    ];
    let cases: &[(&[&str], &str, &str)] = &[
        (&["tag", "7", "Run7", "run7", "x y"], r#"{"tags":["Run7","x y"]}"#, "Message 7 has the tags: run7, b c.\n"),
        (
            &["tag", "latest", "RUN7", "new", "--add"],
            r#"{"tags":["run7","b c","new"]}"#,
            "Message 7 has the tags: run7, b c.\n",
        ),
        (&["tag", "latest", "RUN7", "none", "--remove"], r#"{"tags":["b c"]}"#, "Message 7 has the tags: run7, b c.\n"),
        (&["tag", "8", "--clear"], r#"{"tags":[]}"#, "Message 8 has no tags.\n"),
    ];
    for (args, body, output) in cases {
        let server = FakeServer::new(RESPONSES);
        assert_eq!(server.run(OutputStyle::terminal(80, false), args), ((*output).to_owned(), Ok(())), "{args:?}");
        assert!(server.requests().ends_with(&format!("\r\n\r\n{body}")), "{args:?} {}", server.requests());
        assert_eq!(server.run(OutputStyle::pipe(), args), (String::new(), Ok(())), "{args:?}");
    }
    let server = FakeServer::new(RESPONSES);
    assert_eq!(server.run(OutputStyle::pipe(), &["tag", "latest"]), ("run7\nb c\n".to_owned(), Ok(())));
    assert_eq!(server.run(OutputStyle::pipe(), &["tag", "8"]), (String::new(), nothing("Message 8 has no tags.")));
    assert_eq!(server.run(OutputStyle::pipe(), &["tag", "9"]).0, "\\u{1b}]0;x\n");
    assert!(!server.requests().contains("PATCH"));
    assert!(server.run(OutputStyle::pipe(), &["tag", "7", "a", "--json"]).0.starts_with("{\"attachments\":2,"));
    assert_eq!(server.run(OutputStyle::pipe(), &["tag", "10", "a"]).1, nothing("There is no such message."));
    assert_eq!(server.run(OutputStyle::pipe(), &["tag", "11", "a"]).1.unwrap_err().exit_code(), 4);
    assert_eq!(server.run(OutputStyle::terminal(80, false), &["tag", "12", "a"]), (String::new(), Ok(())));
    let many: Vec<String> = (0..21).map(|number| format!("tag{number}")).collect();
    let args: Vec<&str> = ["tag", "7"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let (_, result) = server.run(OutputStyle::pipe(), &args);
    assert_eq!(result.unwrap_err().to_string(), "The tags cannot be set: a message has at most 20 tags.");
}

#[test]
fn deletes_messages_from_all_mailboxes() {
    const RESPONSES: &[CannedResponse] = &[
        ("DELETE /api/v2/messages/1", 200, "\"OK\""),
        ("DELETE /api/v2/messages/2", 204, ""),
        ("DELETE /api/v2/messages/3", 404, r#"{"detail":"There is no such message."}"#),
        ("DELETE /api/v2/messages/4", 403, r#"{"detail":"Not allowed."}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) =
        server.run(OutputStyle::terminal(80, false), &["delete", "--message", "1", "2", "3", "--message", "1"]);
    assert_eq!((output.as_str(), result), ("Deleted 2 messages.\n", nothing("One of the messages does not exist.")));
    assert_eq!(server.run(OutputStyle::pipe(), &["delete", "--message", "1"]), (String::new(), Ok(())));
    assert_eq!(server.run(OutputStyle::pipe(), &["delete", "--message", "4"]).1.unwrap_err().exit_code(), 4);
}

#[test]
fn deletes_matching_messages_after_a_question() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/messages?limit=200&q=old&tag=run7",
            200,
            concat!(r#"{"messages":["#, entry!("2", "Two"), ",", entry!("1", "One"), r#"],"next":null}"#),
        ),
        ("DELETE /api/v2/messages?q=old&tag=run7", 200, r#"{"deleted":2}"#),
        ("GET /api/v2/messages?limit=200&q=no", 200, r#"{"messages":[],"next":null}"#),
        ("DELETE /api/v2/messages?q=no", 200, r#"{"deleted":0}"#),
        ("DELETE /api/v2/messages?q=%28", 400, r#"{"detail":"A ) is missing."}"#),
    ];
    let matching = ["delete", "--query", "old", "--tag", "run7"];
    let server = FakeServer::new(RESPONSES);
    let refused =
        CommandError::Usage("The command would delete 2 messages: add --yes to delete without a question.".to_owned());
    assert_eq!(server.run(OutputStyle::pipe(), &matching), (String::new(), Err(refused)));
    assert_eq!(server.run_with_answer(&matching, |_| Some(false)), (String::new(), nothing("Nothing was deleted.")));
    assert_eq!(server.run_with_answer(&["delete", "-q", "no"], |_| Some(true)).1, nothing("No message matches."));
    assert!(!server.requests().contains("DELETE"), "{}", server.requests());

    let (output, result) = server.run_with_answer(&matching, |question| Some(question == "Delete 2 messages?"));
    assert_eq!((output.as_str(), result), ("Deleted 2 messages.\n", Ok(())));
    let with_yes = [&matching[..], &["--yes", "--json"]].concat();
    assert_eq!(server.run(OutputStyle::pipe(), &with_yes), ("{\"deleted\":2}\n".to_owned(), Ok(())));
    assert_eq!(server.run(OutputStyle::pipe(), &["delete", "-yq", "no"]).1, nothing("No message matches."));
    assert_eq!(server.run(OutputStyle::pipe(), &["delete", "-y", "--query", "("]).1.unwrap_err().exit_code(), 2);
}
