//! Behavior outside of the answers of the API: reply codes of SMTP, exit codes of `sendmail`, and which origins of web pages are
//! accepted. Each table holds for Restante, and for Mailpit if `MAILPIT_BIN` is its path.

use std::io::Write as _;
use std::process::Stdio;

use crate::server::{Program, Server};
use crate::support::{LineConnection, connect};

fn programs() -> impl Iterator<Item = Program> {
    [Program::Restante].into_iter().chain(Program::mailpit())
}

#[test]
fn help_and_vrfy_are_not_implemented() {
    let table = [
        ("HELP", "502"),
        ("HELP MAIL", "502"),
        ("VRFY", "502"),
        ("VRFY bob", "502"),
        ("EXPN staff", "502"),
        ("TEST", "500"),
        ("", "500"),
        ("NOOP", "250"),
        ("RSET", "250"),
    ];
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut connection = LineConnection::new(connect(server.smtp()));
        connection.expect("220");
        for hello in ["", "EHLO client.test"] {
            if !hello.is_empty() {
                connection.command(hello, "250");
            }
            for (command, code) in table {
                connection.command(command, code);
            }
        }
    }
}

#[test]
fn sendmail_has_the_exit_codes_of_mailpit() {
    const MAIL: &str = "To: ann@example.test\nSubject: x\n\nText\n";
    let table: &[(&[&str], &str, i32)] = &[
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
    for program in programs() {
        let server = Server::start(&program, &[]);
        for (arguments, input, expected) in table {
            let mut command = program.command();
            command.arg("sendmail").args(*arguments).env("MP_SENDMAIL_SMTP_ADDR", server.smtp().to_string());
            let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            // A command that has already failed does not read it.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(*expected), "{arguments:?} {input:?} {output:?}");
        }
    }
}

#[test]
fn origins_are_compared_in_any_case_of_letters() {
    let table = [
        (None, 200),
        (Some("http://app.example"), 200),
        (Some("HTTP://APP.EXAMPLE"), 200),
        (Some("hTtPs://App.eXample"), 200),
        (Some("http://App.Example:8080"), 403),
        (Some("http://two.example:8080"), 200),
        (Some("http://two.example"), 403),
        (Some("HTTP://OTHER.EXAMPLE"), 403),
        (Some("http://other.example"), 403),
        (Some("null"), 403),
    ];
    for program in programs() {
        let server = Server::start(&program, &[("MP_API_CORS", "app.example, Two.Example:8080")]);
        let own = format!("HTTP://{}", server.http());
        for (origin, expected) in table.into_iter().chain([(Some(own.as_str()), 200)]) {
            let request = ureq::get(server.url("/api/v1/messages")).config().http_status_as_error(false).build();
            let request = match origin {
                Some(origin) => request.header("Origin", origin),
                None => request,
            };
            assert_eq!(request.call().unwrap().status().as_u16(), expected, "{origin:?}");
        }
    }
}
