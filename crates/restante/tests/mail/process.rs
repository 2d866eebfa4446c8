//! The end of the server, as those see it who are in the middle of something, and those who watch over it.

mod support;

use std::net::TcpStream;

use support::promises::eventually;
use support::{Server, Talk, connect};

/// The status line of an answer on a connection of its own; nothing when nobody answers.
fn status(server: &Server, path: &str) -> Option<String> {
    let mut talk = Talk::new(connect(server.http));
    talk.send(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
    talk.line()
}

#[test]
fn whoever_watches_is_told_of_the_end_while_a_mail_is_under_way() {
    let mut server = Server::start(&[]);
    let mut sender = server.talk();
    sender.open_mail("james@x.org");
    sender.say("DATA", "354");
    sender.send("Subject: slow\r\n");
    server.signal("TERM");
    server.logged("shutting down");

    // Who holds the end up is the sender, so that HTTP is there for as long as it takes.
    for (path, expected) in [("/readyz", " 503 "), ("/livez", " 200 ")] {
        let status = status(&server, path);
        assert!(status.as_ref().is_some_and(|line| line.contains(expected)), "{path}: {status:?}");
    }
    eventually("new senders are let in", || TcpStream::connect(server.smtp).is_err());
    assert!(server.lives());

    sender.send("\r\nHi\r\n.\r\n");
    sender.expect("250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.whole_log().contains("cut off"));
}
