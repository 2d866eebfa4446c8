//! The commands `list`, `mailboxes`, `get`, `source`, `tag`, `delete` and `purge`.

use std::io::Read as _;
use std::process::Stdio;

use super::{restante, run, run_successfully};
use crate::support::Server;

/// A message with an escape sequence in the subject that would clear the screen.
const MAIL: &[u8] = b"From: Shop <shop@x.org>\r\nTo: ann@x.org\r\nSubject: Your =?utf-8?B?G1sySuKAruOBqA==?= code\r\n\r\nIt is 123456\r\n\x9b2J\r\n";

#[test]
fn messages_are_listed_read_and_deleted() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", MAIL);
    server.deliver("ann@x.org", b"Subject: Second\r\n\r\nHi\r\n");
    server.deliver("bob@x.org", b"Subject: Other\r\n\r\nHi\r\n");
    let ids = server.ids("ann");

    let list = run_successfully(&server, &["list", "Ann@example.org"]);
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.iter().map(|columns| columns[0]).collect::<Vec<_>>(), ids);
    assert_eq!((lines[0][2], lines[1][3]), ("Shop <shop@x.org>", "Second"));
    assert!(!list.contains(['\x1b', '\u{202e}']), "{list:?}");
    assert_eq!(
        run_successfully(&server, &["list", "ann", "--limit", "1"]),
        format!("{}\n", list.lines().last().unwrap())
    );
    let mailboxes = run_successfully(&server, &["mailboxes"]);
    assert!(mailboxes.starts_with("ann\t2\t2\t") && mailboxes.contains("\nbob\t1\t1\t"), "{mailboxes}");
    assert!(!run_successfully(&server, &["mailboxes", "--prefix", "b"]).contains("ann"));

    let shown = run_successfully(&server, &["get", "ann", &ids[0]]);
    assert!(shown.starts_with("From: Shop <shop@x.org>\nTo: ann@x.org\nSubject: Your "), "{shown}");
    assert!(shown.contains("\n\nIt is 123456\n") && !shown.contains(['\x1b', '\u{9b}', '\u{202e}']), "{shown:?}");
    assert!(run_successfully(&server, &["get", "ann"]).contains("Subject: Second\n"), "not the latest message");
    let json: serde_json::Value = serde_json::from_str(&run_successfully(&server, &["get", "ann", "--json"])).unwrap();
    assert_eq!(json["body"]["text"], "Hi\n");

    let source = restante(&server).args(["source", "ann", &ids[0]]).output().unwrap().stdout;
    assert_eq!(source, server.bytes(&format!("/api/v1/mailbox/ann/{}/source", ids[0])), "the source differs");

    let (code, out, stderr) = run(restante(&server).args(["delete", "ann", &ids[0], "7", "--json"]));
    assert_eq!((code, out.as_str()), (1, "{\"deleted\":1}\n"));
    assert_eq!(stderr, "restante: One of the messages does not exist.\n");
    assert_eq!(server.ids("ann"), ids[1..]);
    assert_eq!(run_successfully(&server, &["purge", "ann"]), "");
    let (code, out, stderr) = run(restante(&server).args(["list", "ann"]));
    assert_eq!((code, out.as_str(), stderr.as_str()), (1, "", "restante: Mailbox ann is empty.\n"));
    assert_eq!(server.count("bob"), 1);
}

#[test]
fn exit_codes_of_errors() {
    let server = Server::start(&["--web-basepath", "/mail"]);
    let url_with_base_path = server.url("/mail/");
    let table: &[(&[&str], i32)] = &[
        (&["get", "ann"], 1),
        (&["get", "ann", "12"], 1),
        (&["source", "ann", "12"], 1),
        (&["get", "ann", "--server", &url_with_base_path], 1),
        (&["get", "a b"], 2),
        (&["get"], 1),
        (&["get", "--message", "12"], 1),
        (&["get", "ann", "--message", "12"], 2),
        (&["list", "--query", "("], 2),
        (&["list", "--tag", "a,b"], 2),
        (&["tag", "12", "a"], 1),
        (&["delete", "--query", "x"], 1),
        (&["delete", "--query", "(", "--yes"], 2),
        (&["watch", "--server", "http://127.0.0.1:1"], 3),
        (&["list", "--smtp-addr", ":25"], 2),
        (&["purge"], 2),
        (&["delete", "ann", "latest"], 2),
        (&["list", "--server", "http://127.0.0.1:1"], 3),
    ];
    for (args, expected) in table {
        let (code, out, stderr) = run(restante(&server).args(*args));
        assert_eq!((code, out.as_str()), (*expected, ""), "{args:?} {stderr}");
        assert!(!stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn closed_output_is_not_an_error() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", &[b"Subject: x\r\n\r\n".as_slice(), &b"0123456789\r\n".repeat(500_000)].concat());
    let mut child =
        restante(&server).args(["source", "ann"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 11];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"Return-Path");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}
