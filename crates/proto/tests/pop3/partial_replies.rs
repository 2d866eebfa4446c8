//! Long replies are sent in parts: the queued size is limited, and nothing is lost between parts.

use std::sync::Arc;

use restante_mail::message::{MessageId, Source};
use restante_proto::pop3::{Action, Maildrop, Session};

use super::driver::{Driver, TIMESTAMP, default_settings};

/// The largest size of the queued replies.
const MAX_QUEUED_BYTES: usize = 80_000;

/// Returns a session with this mailbox open and no queued replies.
fn open(maildrop: Maildrop) -> Session {
    let mut session = Session::new(Arc::new(default_settings()), TIMESTAMP.to_owned(), false);
    let (_, action) = session.step(b"USER james\r\nPASS x\r\n");
    assert!(matches!(action, Action::Open { .. }));
    session.opened(Ok(maildrop));
    session.replies().clear();
    session
}

/// Returns all replies until input is needed, and the number of parts.
fn drain(session: &mut Session, input: &[u8]) -> (Vec<u8>, usize) {
    let (mut replies, mut parts, mut pos) = (Vec::new(), 0, 0);
    loop {
        let (consumed, action) = session.step(&input[pos..]);
        pos += consumed;
        parts += 1;
        assert!(session.replies().len() < MAX_QUEUED_BYTES);
        replies.append(session.replies());
        match action {
            Action::Write => {}
            Action::Read => return (replies, parts),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn large_listing_is_sent_in_parts() {
    let mut session = open((1..=100_000).map(|number| (MessageId::from(number), 2 * number)).collect());
    let (sizes, parts) = drain(&mut session, b"LIST\r\n");
    assert!(parts > 10, "{parts}");
    let sizes = String::from_utf8(sizes).unwrap();
    let lines: Vec<&str> = sizes.split_terminator("\r\n").collect();
    assert_eq!(lines[0], "+OK 100000 messages (10000100000 octets)");
    assert!((1..=100_000).all(|number| lines[number] == format!("{number} {}", 2 * number)));
    assert_eq!(lines[100_001..], ["."]);

    let (ids, _) = drain(&mut session, b"DELE 99999\r\nUIDL\r\nSTAT\r\n");
    let ids = String::from_utf8(ids).unwrap();
    assert!(ids.ends_with("\r\n99998 99998\r\n100000 100000\r\n.\r\n+OK 99999 9999900002\r\n"));
}

#[test]
fn large_message_is_in_memory_only_while_it_is_sent() {
    let body = b".a line\r\n\n.\n".repeat(100_000);
    let source = Source { trace: b"Received: x\r\n"[..].into(), body: body.into() };
    let text = source.to_bytes();
    let mut session = open([(MessageId::from(7), text.len() as u64)].into_iter().collect());
    assert_eq!(session.step(b"RETR 1\r\n"), (8, Action::Fetch(MessageId::from(7))));
    assert_eq!(session.sending_bytes(), 0);
    session.fetched(Ok(Some(source)));
    assert_eq!(session.sending_bytes(), text.len());
    // Input that arrives meanwhile waits until the reply is complete.
    assert_eq!(session.step(b"NOOP\r\n"), (0, Action::Write));
    let mut replies = std::mem::take(session.replies());
    let (rest, parts) = drain(&mut session, b"NOOP\r\n");
    assert!(parts > 10, "{parts}");
    assert_eq!(session.sending_bytes(), 0);
    replies.extend(rest);
    let expected = text.split_inclusive(|byte| *byte == b'\n').fold(Vec::new(), |mut stuffed, line| {
        stuffed.extend_from_slice(if line.starts_with(b".") { b"." } else { b"" });
        stuffed.extend_from_slice(line);
        stuffed
    });
    let head = format!("+OK {} octets\r\n", text.len());
    assert!(replies == [head.as_bytes(), &expected, b"\r\n.\r\n+OK\r\n"].concat());
}

#[test]
fn replies_are_complete_wherever_parts_end() {
    // Each reply must be complete, wherever the parts end.
    for length in [0, 1, 40, 8_000, 65_000, 65_536, 70_000] {
        let mut driver = Driver::new(default_settings());
        driver.deliver(&vec![b'x'; length]);
        driver.feed(b"USER james\r\nPASS x\r\n");
        driver.replies();
        driver.feed(b"RETR 1\r\n");
        let single = driver.replies();
        let times = 1 + 200_000 / single.len();
        driver.feed(&b"RETR 1\r\n".repeat(times));
        assert!(driver.replies() == single.repeat(times), "{length}");
    }
}
