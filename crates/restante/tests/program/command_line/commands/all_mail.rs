//! The commands for the messages of all mailboxes: `list`, `wait`, `watch`, `tag` and `delete` without a mailbox.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{restante, run, run_successfully};
use crate::support::Server;

/// Returns the columns of each line.
fn columns(output: &str) -> Vec<Vec<&str>> {
    output.lines().map(|line| line.split('\t').collect()).collect()
}

#[test]
fn messages_are_listed_tagged_and_deleted() {
    let server = Server::start(&[]);
    run_successfully(
        &server,
        &[
            "send",
            "--smtp",
            &server.smtp.to_string(),
            "--to",
            "ann@x.org,bob@x.org",
            "--text",
            "Hi",
            "--subject",
            "First",
        ],
    );
    server.deliver("carl@x.org", b"Subject: Your =?utf-8?B?4oCu?= code\r\n\r\nIt is 123456\r\n");

    let list = run_successfully(&server, &["list"]);
    let rows = columns(&list);
    assert_eq!(
        rows.iter().map(|row| (row[3], row[4])).collect::<Vec<_>>(),
        [("ann,bob", "First"), ("carl", "Your \\u{202e} code")]
    );
    let (first, second) = (rows[0][0], rows[1][0]);
    assert_eq!(columns(&run_successfully(&server, &["list", "--limit", "1"])), rows[1..]);
    assert_eq!(columns(&run_successfully(&server, &["wait", "--after", first])), rows[1..]);
    assert_eq!(run_successfully(&server, &["codes"]), "123456\n");
    assert!(run_successfully(&server, &["get", "--message", first]).contains("\nSubject: First\n"));
    assert!(run_successfully(&server, &["source", "--message", first]).contains("\r\nSubject: First\r\n"));

    run_successfully(&server, &["tag", first, "Run 7", "checked"]);
    run_successfully(&server, &["tag", first, "CHECKED", "--remove"]);
    assert_eq!(run_successfully(&server, &["tag", first]), "Run 7\n");
    assert_eq!(columns(&run_successfully(&server, &["list"]))[0][6], "Run 7");

    let (code, out, stderr) = run(restante(&server).args(["delete", "--query", "subject:first"]));
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(stderr, "restante: The command would delete 1 message: add --yes to delete without a question.\n");
    assert_eq!(
        run_successfully(&server, &["delete", "--query", "subject:first", "--yes", "--json"]),
        "{\"deleted\":1}\n"
    );
    assert_eq!((server.count("ann"), server.count("bob"), server.count("carl")), (0, 0, 1));
    run_successfully(&server, &["delete", "--message", second]);
    let (code, _, stderr) = run(restante(&server).arg("list"));
    assert_eq!((code, stderr.as_str()), (1, "restante: There are no messages.\n"));
}

/// Starts `restante watch`. Returns the process and its standard output.
fn start_watch(server: &Server, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command = restante(server);
    let mut child = command.arg("watch").args(args).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

#[test]
fn watch_ends_after_a_number_of_messages() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", b"Subject: Old\r\n\r\nHi\r\n");
    let (mut child, output) = start_watch(&server, &["--count", "3", "--timeout", "2m"]);
    // The command may still be starting, so messages are delivered until it has printed enough.
    let mut number = 0;
    while child.try_wait().unwrap().is_none() {
        server.deliver("ann@x.org", format!("Subject: number {number}\r\n\r\nHi\r\n").as_bytes());
        number += 1;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
    let numbers: Vec<u32> = lines.iter().map(|line| columns(line)[0][4]["number ".len()..].parse().unwrap()).collect();
    assert_eq!(numbers, [numbers[0], numbers[0] + 1, numbers[0] + 2], "{lines:?}");
}

#[test]
fn interrupt_ends_watch_successfully() {
    let server = Server::start(&[]);
    let (mut child, mut output) = start_watch(&server, &["--json"]);
    let line = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line
        });
        while !reader.is_finished() {
            server.deliver("ann@x.org", b"Subject: x\r\n\r\nHi\r\n");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        reader.join().unwrap()
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["mailboxes"][0], "ann");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
