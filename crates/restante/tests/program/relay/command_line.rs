//! The commands of the relay, with Postfix as the receiving server.

use std::process::{Command, Stdio};

use super::postfix::Postfix;
use super::queue::start;
use crate::support::Server;

/// Runs the program. Returns its exit code and its output.
fn run(server: &Server, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    command.env_clear().env("RESTANTE_SERVER", server.url("")).stdin(Stdio::null()).args(arguments);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn messages_are_released_and_entries_are_changed() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let succeed = |arguments: &[&str]| {
        let (code, output) = run(&server, arguments);
        assert_eq!(code, 0, "{arguments:?}: {output}");
        output
    };
    server.deliver("ann@example.org", b"Subject: Hello\r\n\r\nHello\r\n");
    assert!(succeed(&["release", "latest", "--wait"]).contains("delivered"));
    postfix.wait_for(1);

    postfix.reply_to("bob@example.org", "550 5.1.1 no such user");
    let (code, output) = run(&server, &["release", "latest", "--to", "bob@example.org", "--wait"]);
    assert!(code == 1 && output.contains("no such user"), "{code}: {output}");
    let failed = succeed(&["relay", "list", "--state", "failed"]);
    assert!(failed.contains("bob@example.org") && !failed.contains("ann@example.org"), "{failed}");
    let id = failed.split('\t').next().unwrap();
    let shown = succeed(&["relay", "show", id]);
    assert!(shown.contains("RCPT TO:<bob@example.org>") && shown.contains("550 5.1.1"), "{shown}");
    assert!(succeed(&["relay", "targets"]).contains("postfix"));

    postfix.reply_to("bob@example.org", "450 4.2.0 try again");
    succeed(&["relay", "retry", id]);
    let is_queued = || run(&server, &["relay", "list", "--state", "queued"]).1.contains("450 4.2.0");
    crate::support::durability::eventually("the entry does not wait", is_queued);
    succeed(&["relay", "cancel", id]);
    assert!(succeed(&["relay", "list", "--state", "cancelled"]).contains("bob@example.org"));
    assert_eq!(run(&server, &["relay", "cancel", id]).0, 1, "a cancelled entry was cancelled");
    assert_eq!(postfix.mails().len(), 1);
}
