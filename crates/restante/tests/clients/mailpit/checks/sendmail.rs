//! The command `sendmail`: its exit codes.

use std::io::Write as _;
use std::process::Stdio;

use super::run;
use crate::mailpit::server::Server;

#[test]
fn sendmail_has_the_exit_codes_of_mailpit() {
    run("sendmail", |checks| {
        let server = Server::start(&checks.program, &[]);
        for (arguments, input, expected) in COMMANDS {
            let mut command = checks.program.command();
            command.arg("sendmail").args(arguments).env("MP_SENDMAIL_SMTP_ADDR", server.smtp().to_string());
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // A command that has already failed does not read it.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            checks.equal(format!("{arguments:?} {input:?}"), child.wait().unwrap().code(), expected);
        }
    });
}

const MAIL: &str = "To: ann@example.test\nSubject: x\n\nText\n";

/// Arguments, standard input and the exit code.
const COMMANDS: [(&[&str], &str, i32); 17] = [
    (&["ann@example.test"], MAIL, 0),
    (&["-t"], MAIL, 0),
    (&["ann@example.test"], "Subject: x", 0),
    (&["ann@example.test"], "\nText\n", 0),
    (&["ann@example.test"], "Status report: good\n\nText\n", 0),
    // Without a header.
    (&["ann@example.test"], "", 11),
    (&["ann@example.test"], "Hello\n", 11),
    (&["ann@example.test"], "Hello\n\nText\n", 11),
    (&["ann@example.test"], " Subject: x\n\nText\n", 11),
    (&["ann@example.test"], "Subject: x\r\nHello\r\n\r\nText\r\n", 11),
    (&["ann@example.test"], "Status report: good\nHello\n", 11),
    // Other mistakes.
    (&["-f", "bad <>"], MAIL, 11),
    (&[], "Subject: x\n\nText\n", 1),
    (&["two words"], MAIL, 1),
    (&["-b"], MAIL, 1),
    (&["-S", "127.0.0.1:1"], MAIL, 1),
    (&["--unknown"], MAIL, 1),
];
