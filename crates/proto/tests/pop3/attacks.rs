//! Attacks that a conversation file cannot show completely: the memory that the session uses and makes the driver use,
//! its transcript, and results of actions that no conversation has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Source};
use restante_proto::pop3::{Action, Proof, Refusal, Session, Settings};
use restante_proto::{Speaker, TranscriptScope};

use super::driver::{Driver, Needs, TIMESTAMP, default_settings};

fn session() -> Session {
    Session::new(Arc::new(default_settings()), TIMESTAMP.to_owned(), false)
}

/// Returns a session with one message in its mailbox and no queued replies.
fn logged_in() -> Session {
    let mut session = session();
    session.step(b"USER james\r\nPASS x\r\n");
    session.opened(Ok([(MessageId::from(7), 3)].into_iter().collect()));
    session.replies().clear();
    session
}

fn text(session: &mut Session) -> String {
    String::from_utf8(std::mem::take(session.replies())).unwrap()
}

#[test]
fn endless_line_is_discarded() {
    let mut driver = Driver::new(default_settings());
    driver.replies();
    driver.feed(b"USER james\r\nPASS x\r\n");
    driver.replies();
    for _ in 0..1_000 {
        // The driver checks that no more than one line is left unread.
        driver.feed(&[b'x'; 10_000]);
    }
    assert_eq!(driver.replies(), b"");
    driver.feed(b"\r\nQUIT\r\n");
    assert_eq!(driver.replies(), b"-ERR Line too long\r\n+OK Bye\r\n");
}

#[test]
fn endless_first_line_ends_the_session() {
    let mut driver = Driver::new(default_settings());
    driver.replies();
    driver.feed(&[b'x'; 300]);
    assert_eq!(driver.replies(), b"-ERR Line too long, closing\r\n");
    assert_eq!(driver.needs, Needs::Close);
}

#[test]
fn too_many_bad_commands_end_the_session() {
    let mut driver = Driver::new(Settings { max_bad_commands: 5, ..default_settings() });
    driver.replies();
    driver.feed(&b"BOGUS\r\n".repeat(1_000));
    assert_eq!(driver.replies().split(|byte| *byte == b'\n').count(), 6);
    assert_eq!(driver.needs, Needs::Close);
}

#[test]
fn resets_of_a_large_mailbox_are_fast() {
    const COUNT: usize = 100_000;
    let mut session = session();
    session.step(b"USER james\r\nPASS x\r\n");
    session.opened(Ok((1..=COUNT as u64).map(|id| (MessageId::from(id), 1)).collect()));
    let input = b"RSET\r\nSTAT\r\n".repeat(COUNT);
    let (started, mut rest) = (Instant::now(), &input[..]);
    while !rest.is_empty() {
        let (consumed, _) = session.step(rest);
        rest = &rest[consumed..];
        session.replies().clear();
    }
    // A session that iterated over the mailbox each time would need many minutes.
    assert!(started.elapsed() < Duration::from_mins(1));
}

#[test]
fn zero_disables_the_limit_on_bad_commands() {
    let mut driver = Driver::new(Settings { max_bad_commands: 0, ..default_settings() });
    driver.feed(&b"BOGUS\r\n".repeat(1_000));
    assert_eq!(driver.needs, Needs::Input);
}

#[test]
fn reasons_cannot_inject_replies() {
    let mut session = session();
    session.step(b"USER james\r\nPASS x\r\n");
    session.replies().clear();
    session.opened(Err(Refusal::InvalidName("no\r\n+OK 0 messages".to_owned())));
    assert_eq!(text(&mut session), "-ERR [AUTH] Bad mailbox name: no  +OK 0 messages\r\n");
}

#[test]
fn login_opens_the_requested_mailbox() {
    let opened = |input: &[u8]| match session().step(input).1 {
        Action::Open { mailbox, user, proof } => (mailbox, user, proof),
        other => panic!("{other:?}"),
    };
    let (mailbox, user, proof) = opened(b"USER james@x.test\r\nPASS a b \r\n");
    assert_eq!((mailbox.as_str(), user.as_str()), ("james@x.test", "james@x.test"));
    assert!(matches!(proof, Proof::Password(secret) if secret.expose() == "a b "));
    let (mailbox, user, proof) = opened(b"AUTH PLAIN amFtZXMAYWRtaW4Ac2VjcmV0\r\n");
    assert_eq!((mailbox.as_str(), user.as_str()), ("james", "admin"));
    assert!(matches!(proof, Proof::Password(secret) if secret.expose() == "secret"));
    let (.., proof) = opened(b"APOP james 000102030405060708090a0b0c0d0e0f\r\n");
    let digest = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    assert_eq!(proof, Proof::Apop { timestamp: TIMESTAMP.to_owned(), digest });
}

#[test]
fn transcript_contains_no_secrets_and_messages() {
    use Speaker::{Client, Server};
    let mut driver = Driver::new(default_settings());
    driver.session.start_recording(TranscriptScope::Everything);
    driver.deliver(b"hunter2\r\n");
    driver.feed(b"PASS hunter2\r\nhunter2\r\nAUTH PLAIN\r\nhunter2\r\nAPOP james 000102030405060708090a0b0c0d0e0f\r\n");
    driver.feed(b"RETR 1\r\nTOP 1 0\r\nQUIT\r\n");
    let transcript = driver.take_transcript();
    assert!(transcript.iter().all(|(_, line)| !line.contains("hunter2") && !line.contains("0001")));
    let lines: Vec<(Speaker, &str)> = transcript.iter().map(|(side, line)| (*side, line.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Client, "PASS ***"),
            (Server, "-ERR Need USER first"),
            (Client, "*** (7 octets)"),
            (Server, "-ERR Unknown command"),
            (Client, "AUTH PLAIN"),
            (Server, "+ "),
            (Client, "***"),
            (Server, "-ERR Cannot decode the response"),
            (Client, "APOP james ***"),
            (Server, "+OK 1 message (101 octets)"),
            (Client, "RETR 1"),
            (Server, "+OK 101 octets"),
            (Server, "(101 octets of mail)"),
            (Server, "."),
            (Client, "TOP 1 0"),
            (Server, "+OK Top of the message follows"),
            (Server, "(101 octets of mail)"),
            (Server, "."),
            (Client, "QUIT"),
            (Server, "+OK Bye"),
        ]
    );
    assert_eq!(driver.take_transcript(), []);
}

#[test]
fn driver_can_end_the_session() {
    type End = fn(&mut Session);
    let ends: [(End, &str); 3] = [
        (Session::time_out, ""),
        (Session::shut_down, "-ERR [SYS/TEMP] mx.test is shutting down\r\n"),
        (Session::refuse_busy, "-ERR [SYS/TEMP] mx.test has too many connections, try again later\r\n"),
    ];
    for (end_session, last_reply) in ends {
        let mut session = logged_in();
        session.step(b"DELE 1\r\n");
        session.replies().clear();
        end_session(&mut session);
        // Nothing is deleted, and no command is executed any more.
        assert_eq!(session.step(b"QUIT\r\n"), (6, Action::Close));
        assert_eq!(text(&mut session), last_reply);
    }
}

#[test]
fn shutdown_within_a_message_sends_no_reply() {
    let mut session = logged_in();
    session.step(b"RETR 1\r\n");
    session.fetched(Ok(Some(Source { trace: b""[..].into(), body: vec![b'x'; 1_000_000].into() })));
    session.step(b"");
    session.replies().clear();
    session.shut_down();
    assert_eq!((text(&mut session).as_str(), session.sending_bytes()), ("", 0));
    assert_eq!(session.step(b""), (0, Action::Close));
}

#[test]
fn pending_action_stops_the_session() {
    let mut session = session();
    let input = b"USER james\r\nPASS x\r\nQUIT\r\n";
    let (consumed, action) = session.step(input);
    assert!(matches!(action, Action::Open { .. }));
    assert_eq!(session.step(&input[consumed..]), (0, Action::Read));
    // Results of actions that were not requested are ignored.
    session.fetched(Ok(None));
    session.deleted(Ok(()));
    session.tls_started();
    assert_eq!(session.step(&input[consumed..]), (0, Action::Read));
    session.opened(Ok([].into_iter().collect()));
    session.opened(Err(Refusal::WrongCredentials));
    assert_eq!(session.step(&input[consumed..]), (6, Action::Quit));
}

#[test]
fn store_errors_get_a_reply() {
    let mut session = session();
    session.step(b"USER james\r\nPASS x\r\n");
    session.replies().clear();
    session.opened(Err(Refusal::Unavailable));
    let unavailable = "-ERR [SYS/TEMP] The mailbox cannot be read now, try again later\r\n";
    assert_eq!(text(&mut session), unavailable);

    let mut session = logged_in();
    session.step(b"RETR 1\r\n");
    session.fetched(Err(Refusal::Unavailable));
    assert_eq!(text(&mut session), unavailable);
    assert_eq!(session.step(b"DELE 1\r\nQUIT\r\n"), (14, Action::Delete(vec![MessageId::from(7)])));
    session.replies().clear();
    session.deleted(Err(Refusal::Unavailable));
    assert_eq!(session.step(b"STAT\r\n"), (6, Action::Quit));
    assert_eq!(text(&mut session), "-ERR [SYS/TEMP] Some deleted messages are not removed\r\n");
}

#[test]
fn driver_errors_are_refusals_in_the_transcript() {
    type Completion = fn(&mut Session);
    let opening = || {
        let mut session = session();
        session.step(b"USER james\r\nPASS x\r\n");
        session
    };
    let fetching = || {
        let mut session = logged_in();
        session.step(b"RETR 1\r\n");
        session
    };
    let deleting = || {
        let mut session = logged_in();
        session.step(b"DELE 1\r\nQUIT\r\n");
        session
    };
    let table: [(Session, Completion, usize); 9] = [
        (opening(), |session| session.opened(Err(Refusal::WrongCredentials)), 1),
        (opening(), |session| session.opened(Err(Refusal::NotPermitted)), 1),
        (opening(), |session| session.opened(Err(Refusal::InvalidName("no".to_owned()))), 1),
        (fetching(), |session| session.fetched(Err(Refusal::Unavailable)), 1),
        (fetching(), |session| session.fetched(Ok(None)), 1),
        (deleting(), |session| session.deleted(Err(Refusal::Unavailable)), 1),
        (deleting(), |session| session.deleted(Ok(())), 0),
        (session(), Session::shut_down, 1),
        (session(), Session::refuse_busy, 1),
    ];
    for (mut session, complete_action, refusals) in table {
        session.replies().clear();
        session.start_recording(TranscriptScope::Refusals);
        complete_action(&mut session);
        let replies = text(&mut session);
        assert_eq!(replies.starts_with("-ERR "), refusals == 1, "{replies}");
        assert_eq!(session.transcript().unwrap().lines().count(), refusals, "{replies}");
    }
}

#[test]
fn sizes_are_those_of_the_stored_message() {
    let mut driver = Driver::new(default_settings());
    driver.deliver(b"\r\n.\r\n.");
    let size = driver.messages[0].1.len();
    driver.feed(b"USER james\r\nPASS x\r\nSTAT\r\nLIST 1\r\nUIDL 1\r\nRETR 1\r\n");
    let lines = driver.replies();
    let lines = String::from_utf8(lines).unwrap();
    let expected = format!(
        "+OK 1 message ({size} octets)\r\n+OK 1 {size}\r\n+OK 1 {size}\r\n+OK 1 {}\r\n+OK {size} octets\r\n",
        driver.messages[0].0
    );
    assert!(lines.contains(&expected), "{lines}");
}
