//! The output of commands that read messages.

use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

macro_rules! record {
    ($id:literal, $subject:literal) => {
        concat!(
            r#"{"mailbox":"ann","id":""#,
            $id,
            r#"","from":"Shop <shop@x.org>","to":["<ann@x.org>"],"subject":""#,
            $subject,
            r#"","date":"2026-01-02T03:04:05.000006+00:00","posix-millis":1767323045000,"size":4711,"seen":false}"#
        )
    };
}

#[test]
fn lists_messages() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v1/mailbox/ann?after=0&limit=1000",
            200,
            concat!("[", record!("1", "One"), ",", record!("20", "Your code, at last"), "]\n"),
        ),
        ("GET /api/v1/mailbox/ann?limit=1", 200, concat!("[", record!("20", "Two"), "]\n")),
        ("GET /api/v1/mailbox/nobody?after=0&limit=1000", 200, "[]\n"),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::terminal(50, false), &["list", "ann"]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        output,
        "ID  WHEN        FROM         SUBJECT          SIZE\n\
         1   2026-01-02  Shop <shop…  One              4.6k\n\
         20  2026-01-02  Shop <shop…  Your code, at …  4.6k\n"
    );
    let (output, _) = server.run(OutputStyle::pipe(), &["list", "ann", "--limit", "1"]);
    assert_eq!(output, "20\t2026-01-02T03:04:05.000006+00:00\tShop <shop@x.org>\tTwo\t4711\n");
    let (output, _) = server.run(OutputStyle::pipe(), &["list", "ann", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&output).unwrap()[1]["id"], "20");

    let (output, result) = server.run(OutputStyle::pipe(), &["list", "nobody"]);
    assert_eq!((output.as_str(), result), ("", Err(CommandError::not_found("Mailbox nobody is empty."))));
    let (output, result) = server.run(OutputStyle::pipe(), &["list", "nobody", "--json"]);
    assert_eq!((output.as_str(), result.unwrap_err().exit_code()), ("[]\n", 1));
}

#[test]
fn lists_mailboxes_of_all_pages() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/mailboxes?limit=1000",
            200,
            r#"{"mailboxes":[{"name":"ann","messages":3,"unseen":1,"bytes":2048,"newest":{"id":"1","date":"2026-01-02T03:04:05Z"}}],"next":"ann"}"#,
        ),
        ("GET /api/v2/mailboxes?limit=1000&after=ann", 200, r#"{"mailboxes":[],"next":"b"}"#),
        (
            "GET /api/v2/mailboxes?limit=1000&after=b",
            200,
            r#"{"mailboxes":[{"name":"bob","messages":1,"unseen":0,"bytes":7,"newest":{"id":"1","date":"2026-01-02T03:04:05Z"}}],"next":null}"#,
        ),
    ];
    let (output, result) = FakeServer::new(RESPONSES).run(OutputStyle::terminal(80, false), &["mailboxes"]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        output,
        "MAILBOX  MESSAGES  UNSEEN  SIZE  NEWEST\n\
         ann             3       1  2.0k  2026-01-02\n\
         bob             1       0     7  2026-01-02\n"
    );
}

#[test]
fn waits_for_messages() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/mailbox/ann/wait?timeout=1500ms&after=7&count=2&match=subject%3Acode",
            200,
            concat!(r#"{"messages":["#, record!("8", "Code"), ",", record!("9", "Code"), "]}\n"),
        ),
        (
            "GET /api/v2/mailbox/ann/wait?timeout=30000ms",
            408,
            concat!(r#"{"detail":"1 of 2 came.","messages":["#, record!("8", "Code"), "]}\n"),
        ),
        ("GET /api/v2/mailbox/ann/wait?timeout=1000ms&expect=none", 204, ""),
        (
            "GET /api/v2/mailbox/bob/wait?timeout=1000ms&expect=none",
            409,
            concat!(r#"{"detail":"One came.","messages":["#, record!("8", "Code"), "]}\n"),
        ),
        ("GET /api/v2/mailbox/ann/wait?timeout=0ms&match=-a", 408, r#"{"detail":"None came."}"#),
        ("GET /api/v2/mailbox/ann/wait?timeout=30000ms&match=%28", 400, r#"{"detail":"A ) is missing."}"#),
        // There is a newer matching message than the two that the command waited for.
        (
            "GET /api/v2/mailbox/ann/wait?timeout=0&count=1000&after=9&match=subject%3Acode",
            408,
            concat!(r#"{"detail":"1 of 1000 came.","messages":["#, record!("12", "Code"), "]}\n"),
        ),
        ("GET /api/v2/mailbox/ann/12/codes", 200, r#"{"codes":[{"code":"123456","score":0.9}]}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let line = |id: &str| format!("{id}\t2026-01-02T03:04:05.000006+00:00\tShop <shop@x.org>\tCode\t4711\n");
    let found = ["wait", "ann", "--timeout", "1.5s", "--after", "7", "--count", "2", "--match", "subject:code"];
    let with_codes = [&found[..], &["--codes"]].concat();
    let nothing = |detail: &str| Err(CommandError::not_found(detail));
    let cases: &[(&[&str], String, Result<(), CommandError>)] = &[
        (&found, line("8") + &line("9"), Ok(())),
        (&with_codes, "123456\n".to_owned(), Ok(())),
        (&["wait", "ann"], line("8"), nothing("1 of 2 came.")),
        (&["wait", "ann", "--none", "--timeout", "1"], String::new(), Ok(())),
        (&["wait", "ann", "--none", "--timeout", "1", "--json"], "{\"messages\":[]}\n".to_owned(), Ok(())),
        (&["wait", "bob", "--none", "--timeout", "1"], line("8"), nothing("One came.")),
        (&["wait", "ann", "--match", "-a", "--timeout", "0"], String::new(), nothing("None came.")),
        (&["wait", "ann", "--match", "("], String::new(), Err(CommandError::Usage("A ) is missing.".to_owned()))),
    ];
    for (args, output, expected) in cases {
        let (printed, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!((&printed, &result), (output, expected), "{args:?}");
    }
}

#[test]
fn search_requests_pages_up_to_the_limit() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/search?limit=3&q=the+code",
            200,
            concat!(
                r#"{"messages":["#,
                r#"{"mailbox":"ann","id":"9","from":"x","subject":"Code","date":"2026-01-02T03:04:05Z","snippet":[{"text":"the\nnew ","hit":false},{"text":"code","hit":true},{"text":"\u001b[2J is","hit":false}]},"#,
                record!("8", "Old code"),
                r#"],"next":"8","complete":true}"#
            ),
        ),
        (
            "GET /api/v2/search?limit=1&q=the+code&before=8",
            200,
            concat!(r#"{"messages":["#, record!("7", "Older"), r#"],"next":"7","complete":false}"#),
        ),
        ("GET /api/v2/search?limit=50&q=no&mailbox=ann", 200, r#"{"messages":[],"next":null,"complete":true}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::terminal(70, false), &["search", "the", "code", "--limit", "3"]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        output,
        "MAILBOX  ID  WHEN        FROM               SUBJECT\n\
         ann      9   2026-01-02  x                  Code\n    \
             the new code\\u{1b}[2J is\n\
         ann      8   2026-01-02  Shop <shop@x.org>  Old code\n\
         ann      7   2026-01-02  Shop <shop@x.org>  Older\n"
    );
    let (output, _) = server.run(OutputStyle::terminal(20, true), &["search", "the", "code", "--limit", "3"]);
    assert!(output.contains("\x1b[2mthe new \x1b[0m\x1b[1;33mcode\x1b[0m\x1b[2m\\u{…\x1b[0m\n"), "{output:?}");
    let (output, _) = server.run(OutputStyle::pipe(), &["search", "the code", "--limit", "3", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(document["messages"].as_array().unwrap().len(), 3);
    assert_eq!((&document["next"], &document["complete"]), (&"7".into(), &false.into()));
    let (_, result) = server.run(OutputStyle::pipe(), &["search", "no", "--mailbox", "ann"]);
    assert_eq!(result, Err(CommandError::not_found("No message matches.")));
}

#[test]
fn prints_codes() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v2/mailbox/ann/latest/codes",
            200,
            r#"{"codes":[{"code":"123456","score":0.97,"before":"code is","after":"valid","where":"text"},{"code":"2026","score":0.1,"before":"","after":"","where":"text"}]}"#,
        ),
        ("GET /api/v2/mailbox/ann/7/codes", 200, r#"{"codes":[]}"#),
        ("GET /api/v1/mailbox/ann?limit=1", 200, concat!("[", record!("7", "No code"), "]")),
        (
            "GET /api/v2/mailbox/ann/10/codes",
            200,
            r#"{"codes":[{"code":"987","score":0.9,"before":"","after":"","where":"text"}]}"#,
        ),
        (
            "GET /api/v2/mailbox/ann/11/codes",
            200,
            r#"{"codes":[{"code":"731946","score":1,"before":"","after":"","where":"header","origin":"https://shop.test"}]}"#,
        ),
    ];
    let server = FakeServer::new(RESPONSES);
    let (output, result) = server.run(OutputStyle::pipe(), &["codes", "ann"]);
    assert_eq!((output.as_str(), result), ("123456\n", Ok(())));
    let (output, _) = server.run(OutputStyle::terminal(80, false), &["codes", "ann"]);
    assert_eq!(output, "CODE    SCORE  CONTEXT\n123456   0.97  code is 123456 valid\n2026     0.10  2026\n");
    let (output, _) = server.run(OutputStyle::terminal(80, false), &["codes", "ann", "11"]);
    assert_eq!(output, "CODE    SCORE  CONTEXT\n731946   1.00  OTP-Token for https://shop.test\n");
    let (_, result) = server.run(OutputStyle::pipe(), &["codes", "ann", "7"]);
    assert_eq!(result, Err(CommandError::not_found("Message 7 has no codes.")));
}

/// The newest message with a code is used, and the command waits if there is none. Ids are compared as numbers.
#[test]
fn waits_for_codes() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v1/mailbox/ann?limit=1000",
            200,
            concat!("[", record!("8", "Old"), ",", record!("9", "Code"), ",", record!("10", "No code"), "]"),
        ),
        ("GET /api/v2/mailbox/ann/8/codes", 200, r#"{"codes":[{"code":"111","score":0.9}]}"#),
        ("GET /api/v2/mailbox/ann/9/codes", 200, r#"{"codes":[{"code":"987","score":0.9}]}"#),
        ("GET /api/v2/mailbox/ann/10/codes", 200, r#"{"codes":[]}"#),
        // This message is deleted right after it is listed.
        ("GET /api/v1/mailbox/bob?limit=1000", 200, concat!("[", record!("10", "Gone"), "]")),
        ("GET /api/v2/mailbox/bob/10/codes", 404, r#"{"detail":"There is no such message."}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let no_message = || Err(CommandError::not_found("No message with codes arrived in time."));
    let cases: &[(&[&str], &str, Result<(), CommandError>)] = &[
        (&["codes", "ann", "--after", "0"], "987\n", Ok(())),
        (&["codes", "ann", "--wait", "30s"], "987\n", Ok(())),
        (&["codes", "ann", "--after", "8"], "987\n", Ok(())),
        (&["codes", "ann", "--after", "9"], "", no_message()),
        (&["codes", "bob", "--after", "9"], "", no_message()),
    ];
    for (args, output, expected) in cases {
        let (printed, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!((printed.as_str(), &result), (*output, expected), "{args:?}");
    }
    assert!(server.requests().contains("GET /api/v2/mailbox/ann/10/codes"), "10 comes after 9");
    // The timeout in the request depends on the clock, so the fake server has no response for it and repeats the
    // request in its error.
    for after in ["9", "10"] {
        let (_, result) = server.run(OutputStyle::pipe(), &["codes", "ann", "--wait", "30s", "--after", after]);
        let request = result.unwrap_err().to_string();
        assert!(
            request.starts_with("GET /api/v2/mailbox/ann/wait?timeout=") && request.ends_with("&after=10"),
            "{request}"
        );
    }
}

#[test]
fn prints_links() {
    const RESPONSES: &[CannedResponse] = &[(
        "GET /api/v2/mailbox/ann/latest/links",
        200,
        r#"{"links":[{"href":"https://x.org/confirm?a=1","text":"Confirm","image-alt":null,"where":"html","kind":"http"},{"href":"https://x.org/","text":"","image-alt":"Logo\u009b1m","where":"html","kind":"http"}]}"#,
    )];
    let server = FakeServer::new(RESPONSES);
    let all = "https://x.org/confirm?a=1\nhttps://x.org/\n";
    let cases: &[(&[&str], &str)] = &[
        (&["links", "ann"], all),
        (&["links", "ann", "--match", "CONFIRM"], "https://x.org/confirm?a=1\n"),
        (&["links", "ann", "--match", "logo"], "https://x.org/\n"),
    ];
    for (args, expected) in cases {
        assert_eq!(server.run(OutputStyle::pipe(), args), ((*expected).to_owned(), Ok(())), "{args:?}");
    }
    let (output, _) = server.run(OutputStyle::terminal(80, false), &["links", "ann"]);
    assert_eq!(output, "https://x.org/confirm?a=1\n    Confirm\nhttps://x.org/\n    Logo\\u{9b}1m\n");
    let (_, result) = server.run(OutputStyle::pipe(), &["links", "ann", "--match", "reset"]);
    assert_eq!(result, Err(CommandError::not_found("The newest message has no such links.")));
}

#[test]
fn prints_a_message() {
    const RESPONSES: &[CannedResponse] = &[(
        "GET /api/v2/mailbox/ann/latest",
        200,
        r#"{"text":"Hi\r\n\u001b]0;gotcha\u0007there\r\n","headers":[{"name":"Received","value":"from x"},{"name":"subject","value":"=?x","decoded":"Grüße \u202egpj"},{"name":"From","value":"a@x.org"}],"attachments":[{"index":0,"filename":"a\nb.pdf","content-type":"application/pdf","size":4096}]}"#,
    )];
    let server = FakeServer::new(RESPONSES);
    let text = "\nHi\n\\u{1b}]0;gotcha\\u{7}there\n\n   ATTACHMENT  TYPE             SIZE\n0  a\\nb.pdf    application/pdf  4.0k\n";
    let (output, result) = server.run(OutputStyle::terminal(80, false), &["get", "ann"]);
    assert_eq!(result, Ok(()));
    assert_eq!(output, format!("From: a@x.org\nsubject: Grüße \\u{{202e}}gpj\n{text}"));
    let (output, _) = server.run(OutputStyle::terminal(80, false), &["get", "ann", "--headers"]);
    assert!(output.starts_with("Received: from x\nsubject: Grüße"), "{output}");
}

#[test]
fn matches_regular_expressions() {
    const RESPONSES: &[CannedResponse] = &[
        (
            "GET /api/v1/mailbox/ann?after=0&limit=1000",
            200,
            concat!("[", record!("1", "Your code"), ",", record!("2", "Hello"), "]"),
        ),
        ("GET /api/v1/mailbox/ann/1/source", 200, "A: b\r\n\r\nFrom x\r\n"),
        ("POST /api/v2/mailbox/ann/delete", 200, r#"{"deleted":1}"#),
    ];
    let server = FakeServer::new(RESPONSES);
    let cases: &[(&[&str], &str)] = &[
        (&[], "1\n2\n"),
        (&["--subject", "^Your"], "1\n"),
        (&["--subject", "(?i)hello|CODE"], "1\n2\n"),
        (&["--from", "^shop@x\\.org$"], "1\n2\n"),
        (&["--to", "^ann@", "--subject", "lo$"], "2\n"),
        (&["--from", "Shop"], ""),
        (&["--to", "bob"], ""),
        (&["--maxage", "1h"], ""),
        (&["--output", "mbox", "--subject", "code"], "From shop@x.org Fri Jan  2 03:04:05 2026\nA: b\n\n>From x\n\n"),
    ];
    for (args, expected) in cases {
        let (output, result) = server.run(OutputStyle::pipe(), &[&["match", "ann"], *args].concat());
        assert_eq!(output, *expected, "{args:?}");
        assert_eq!(result, if expected.is_empty() { Err(CommandError::NotFound(None)) } else { Ok(()) }, "{args:?}");
    }
    assert!(!server.requests().contains("POST"));
    assert_eq!(
        server.run(OutputStyle::pipe(), &["match", "ann", "--delete", "--subject", "code"]),
        ("1\n".to_owned(), Ok(()))
    );
    assert!(server.requests().ends_with("{\"ids\":[\"1\"]}"), "{}", server.requests());
}

/// An empty mailbox is a success only for `client mbox`, as with Inbucket's client.
#[test]
fn exit_code_of_an_empty_mailbox() {
    const RESPONSES: &[CannedResponse] = &[("GET /api/v1/mailbox/ann?after=0&limit=1000", 200, "[]")];
    let server = FakeServer::new(RESPONSES);
    assert_eq!(server.run(OutputStyle::pipe(), &["client", "mbox", "ann"]), (String::new(), Ok(())));
    assert_eq!(server.run(OutputStyle::pipe(), &["client", "match", "ann"]).1, Err(CommandError::NotFound(None)));
    assert_eq!(server.run(OutputStyle::pipe(), &["mbox", "ann"]).1, Err(CommandError::NotFound(None)));
}
