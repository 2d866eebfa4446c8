//! Tests of sending, with an SMTP server that follows a script.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use super::fake::{CannedResponse, FakeServer, run};
use crate::CommandError;
use crate::output::OutputStyle;

/// The beginning of the next line of the client, and the reply to it.
type Exchange = (&'static str, &'static str);

const HELLO: [Exchange; 2] = [("", "220 mx ready"), ("EHLO ", "250-mx\r\n250-SIZE 1000\r\n250 AUTH PLAIN")];

/// Starts a server that follows the script. It returns everything that the client sent.
fn start_server(exchanges: Vec<Exchange>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let received = thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut received = String::new();
        for (expected, reply) in exchanges {
            let mut line = String::new();
            while !expected.is_empty() && !line.starts_with(expected) {
                line.clear();
                assert_ne!(reader.read_line(&mut line).unwrap(), 0, "waited for {expected:?} after {received:?}");
                received.push_str(&line);
            }
            reader.get_mut().write_all(format!("{reply}\r\n").as_bytes()).unwrap();
        }
        received
    });
    (addr, received)
}

fn send(exchanges: &[Exchange], args: &[&str]) -> (Result<(), CommandError>, String) {
    let (addr, received) = start_server([&HELLO[..], exchanges].concat());
    let flags = ["send", "--smtp", &addr, "--from", "ann@x.org", "--to", "bob@x.org"];
    let (_, result) = run(OutputStyle::pipe(), &[&flags[..], args].concat());
    (result, received.join().unwrap())
}

#[test]
fn sends_a_message() {
    let exchanges = [
        ("AUTH PLAIN AGFubgBzZWNyZXQ=\r\n", "235 ok"),
        ("MAIL FROM:<ann@x.org> SIZE=", "250 ok"),
        ("RCPT TO:<bob@x.org>\r\n", "250 ok"),
        ("RCPT TO:<carl@x.org>\r\n", "250 ok"),
        ("DATA\r\n", "354 go on"),
        (".\r\n", "250 stored"),
        ("QUIT\r\n", "221 bye"),
    ];
    let args =
        ["--bcc", "carl@x.org", "--subject", "Hi", "--text", "one\n.two\n", "--server", "http://ann:secret@x.test"];
    let (result, received) = send(&exchanges, &args);
    assert_eq!(result, Ok(()));
    assert!(received.contains("Subject: Hi\r\n") && received.contains("\r\n\r\none\r\n..two\r\n.\r\n"), "{received}");
    assert!(!received.contains("Bcc"), "{received}");
}

#[test]
fn reports_refusals() {
    let mail = ("MAIL", "250 ok");
    let undelivered = |message: &str, is_temporary, is_recipient| {
        Some(CommandError::Undelivered { message: message.to_owned(), is_temporary, is_recipient })
    };
    let table: &[(&[Exchange], u8, Option<CommandError>)] = &[
        (&[mail, ("RCPT", "550 no such user")], 4, undelivered("550 no such user", false, true)),
        (&[mail, ("RCPT", "452 full")], 5, undelivered("452 full", true, true)),
        (&[("MAIL", "552 too\r\nbig")], 4, undelivered("552 too", false, false)),
        (
            &[mail, ("RCPT", "250 ok"), ("DATA", "354 go"), (".\r\n", "451-later\r\n451 please")],
            5,
            undelivered("451-later 451 please", true, false),
        ),
        (&[mail], 3, None),
    ];
    for (exchanges, code, expected) in table {
        let (result, _) = send(exchanges, &["--text", "x"]);
        let mut error = result.unwrap_err();
        assert_eq!(error.exit_code(), *code, "{exchanges:?} {error:?}");
        if let CommandError::Undelivered { message, .. } = &mut error {
            // The port before the reply varies.
            *message = message.split_once("replied: ").unwrap().1.to_owned();
            assert_eq!(Some(error), *expected, "{exchanges:?}");
        }
    }
    let refused_login = [("AUTH PLAIN", "535 wrong")];
    let (result, _) = send(&refused_login, &["--text", "x", "--token", "rst_x"]);
    assert!(matches!(result, Err(CommandError::Unauthorized(_))), "{result:?}");
}

#[test]
fn falls_back_to_helo() {
    let exchanges = vec![
        ("", "220 old"),
        ("EHLO ", "502 what?"),
        ("HELO ", "250 hello"),
        ("MAIL FROM:<ann@x.org>\r\n", "250 ok"),
        ("RCPT", "250 ok"),
        ("DATA", "354 go"),
        (".\r\n", "250 ok"),
        ("QUIT", "221 bye"),
    ];
    let (addr, received) = start_server(exchanges);
    let args = ["send", "--smtp", &addr, "--from", "ann@x.org", "--to", "bob@x.org", "--token", "unused"];
    assert_eq!(run(OutputStyle::pipe(), &args).1, Ok(()));
    assert!(!received.join().unwrap().contains("AUTH"));
}

#[test]
fn rejects_invalid_drafts() {
    let table: &[&[&str]] = &[
        &["--to", "not an address", "--text", "x"],
        &["--to", "a@x.org", "--header", "no colon"],
        &["--to", "a@x.org", "--header", "X-A: b\r\nBcc: evil@x.org"],
        &["--to", "a@x.org", "--subject", "a\nb"],
        &["--subject", "nobody gets it"],
    ];
    for args in table {
        let (_, result) =
            run(OutputStyle::pipe(), &[&["send", "--smtp", "127.0.0.1:1", "--from", "a@x.org"], *args].concat());
        assert!(matches!(result, Err(CommandError::Usage(_))), "{args:?} {result:?}");
    }
    let missing = ["send", "--to", "a@x.org", "--attach", "/nowhere/at/all"];
    assert!(matches!(run(OutputStyle::pipe(), &missing).1, Err(CommandError::Local(_))));
}

/// The SMTP port is requested from the server. A server given by the user must report it.
#[test]
fn given_server_must_report_its_port() {
    const LOCKED: &[CannedResponse] = &[("GET /api/v2/server", 401, r#"{"detail":"Log in first."}"#)];
    const BROKEN: &[CannedResponse] = &[("GET /api/v2/server", 503, r#"{"detail":"Not now."}"#)];
    const OTHER: &[CannedResponse] = &[("GET /api/v2/server", 404, "404 page not found\n")];
    const CLOSED: &[CannedResponse] = &[("GET /api/v2/server", 200, r#"{"smtp":{"port":null}}"#)];
    let unknown = "The server does not report an SMTP port: use --smtp.";
    let table = [(LOCKED, 4, "Log in first."), (BROKEN, 5, "Not now."), (OTHER, 5, unknown), (CLOSED, 5, unknown)];
    for (responses, code, message) in table {
        let args = ["send", "--from", "ann@x.org", "--to", "bob@x.org", "--text", "x"];
        let error = FakeServer::new(responses).run(OutputStyle::pipe(), &args).1.unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (code, message));
    }
}

/// The server sends nothing within the time limit.
#[test]
fn timeout_applies_to_smtp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let args = ["send", "--smtp", &addr, "--from", "a@x.org", "--to", "b@x.org", "--text", "x", "--timeout", "50ms"];
    assert_eq!(run(OutputStyle::pipe(), &args).1.unwrap_err().exit_code(), 3);
}
