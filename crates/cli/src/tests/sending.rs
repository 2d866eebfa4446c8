//! Conversations by SMTP, with a mail server that follows a script.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use super::fake::{CannedResponse, FakeServer, run};
use crate::CommandError;
use crate::output::OutputStyle;

/// What the client says next, as a beginning, and what it gets for it.
type Exchange = (&'static str, &'static str);

const HELLO: [Exchange; 2] = [("", "220 mx ready"), ("EHLO ", "250-mx\r\n250-SIZE 1000\r\n250 AUTH PLAIN")];

/// Follows the script, and returns everything that was said to it.
fn script(turns: Vec<Exchange>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let heard = thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut heard = String::new();
        for (expected, reply) in turns {
            let mut line = String::new();
            while !expected.is_empty() && !line.starts_with(expected) {
                line.clear();
                assert_ne!(reader.read_line(&mut line).unwrap(), 0, "waited for {expected:?} after {heard:?}");
                heard.push_str(&line);
            }
            reader.get_mut().write_all(format!("{reply}\r\n").as_bytes()).unwrap();
        }
        heard
    });
    (place, heard)
}

fn send(turns: &[Exchange], args: &[&str]) -> (Result<(), CommandError>, String) {
    let (place, heard) = script([&HELLO[..], turns].concat());
    let flags = ["send", "--smtp", &place, "--from", "ann@x.org", "--to", "bob@x.org"];
    let (_, ended) = run(OutputStyle::pipe(), &[&flags[..], args].concat());
    (ended, heard.join().unwrap())
}

#[test]
fn a_mail_is_handed_over() {
    let turns = [
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
    let (ended, heard) = send(&turns, &args);
    assert_eq!(ended, Ok(()));
    assert!(heard.contains("Subject: Hi\r\n") && heard.contains("\r\n\r\none\r\n..two\r\n.\r\n"), "{heard}");
    assert!(!heard.contains("Bcc"), "{heard}");
}

#[test]
fn a_mail_is_not_taken() {
    let mail = ("MAIL", "250 ok");
    let undelivered = |sentence: &str, for_now, recipient| {
        Some(CommandError::Undelivered { message: sentence.to_owned(), is_temporary: for_now, is_recipient: recipient })
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
    for (turns, code, expected) in table {
        let (ended, _) = send(turns, &["--text", "x"]);
        let mut failure = ended.unwrap_err();
        assert_eq!(failure.exit_code(), *code, "{turns:?} {failure:?}");
        if let CommandError::Undelivered { message: sentence, .. } = &mut failure {
            // The port in front of it is another one every time.
            *sentence = sentence.split_once("says: ").unwrap().1.to_owned();
            assert_eq!(Some(failure), *expected, "{turns:?}");
        }
    }
    let wrong = [("AUTH PLAIN", "535 wrong")];
    let (ended, _) = send(&wrong, &["--text", "x", "--token", "rst_x"]);
    assert!(matches!(ended, Err(CommandError::Unauthorized(_))), "{ended:?}");
}

#[test]
fn a_server_without_extensions_is_asked_again() {
    let turns = vec![
        ("", "220 old"),
        ("EHLO ", "502 what?"),
        ("HELO ", "250 hello"),
        ("MAIL FROM:<ann@x.org>\r\n", "250 ok"),
        ("RCPT", "250 ok"),
        ("DATA", "354 go"),
        (".\r\n", "250 ok"),
        ("QUIT", "221 bye"),
    ];
    let (place, heard) = script(turns);
    let args = ["send", "--smtp", &place, "--from", "ann@x.org", "--to", "bob@x.org", "--token", "unused"];
    assert_eq!(run(OutputStyle::pipe(), &args).1, Ok(()));
    assert!(!heard.join().unwrap().contains("AUTH"));
}

#[test]
fn drafts_that_make_no_mail() {
    let table: &[&[&str]] = &[
        &["--to", "not an address", "--text", "x"],
        &["--to", "a@x.org", "--header", "no colon"],
        &["--to", "a@x.org", "--header", "X-A: b\r\nBcc: evil@x.org"],
        &["--to", "a@x.org", "--subject", "a\nb"],
        &["--subject", "nobody gets it"],
    ];
    for args in table {
        let (_, ended) =
            run(OutputStyle::pipe(), &[&["send", "--smtp", "127.0.0.1:1", "--from", "a@x.org"], *args].concat());
        assert!(matches!(ended, Err(CommandError::Usage(_))), "{args:?} {ended:?}");
    }
    let missing = ["send", "--to", "a@x.org", "--attach", "/nowhere/at/all"];
    assert!(matches!(run(OutputStyle::pipe(), &missing).1, Err(CommandError::Local(_))));
}

/// The server is asked where it takes mail. One that was named has to tell.
#[test]
fn a_named_server_has_to_tell() {
    const LOCKED: &[CannedResponse] = &[("GET /api/v2/server", 401, r#"{"detail":"Log in first."}"#)];
    const BROKEN: &[CannedResponse] = &[("GET /api/v2/server", 503, r#"{"detail":"Not now."}"#)];
    const OTHER: &[CannedResponse] = &[("GET /api/v2/server", 404, "404 page not found\n")];
    const CLOSED: &[CannedResponse] = &[("GET /api/v2/server", 200, r#"{"smtp":{"port":null}}"#)];
    let unknown = "The server does not tell where it takes mail: use --smtp.";
    let table = [(LOCKED, 4, "Log in first."), (BROKEN, 5, "Not now."), (OTHER, 5, unknown), (CLOSED, 5, unknown)];
    for (answers, code, sentence) in table {
        let args = ["send", "--from", "ann@x.org", "--to", "bob@x.org", "--text", "x"];
        let failure = FakeServer::new(answers).run(OutputStyle::pipe(), &args).1.unwrap_err();
        assert_eq!((failure.exit_code(), failure.to_string().as_str()), (code, sentence));
    }
}

/// Nothing is said within the time.
#[test]
fn the_time_limit_is_that_of_the_mail_server_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let args = ["send", "--smtp", &place, "--from", "a@x.org", "--to", "b@x.org", "--text", "x", "--timeout", "50ms"];
    assert_eq!(run(OutputStyle::pipe(), &args).1.unwrap_err().exit_code(), 3);
}
