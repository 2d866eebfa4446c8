//! Attacks that a conversation file cannot show completely: the memory that the session uses and makes the driver use.

use std::sync::Arc;

use restante_mail::address::Address;
use restante_mail::envelope::{RecipientRefusal, Refusal, SenderRefusal};
use restante_proto::smtp::{Action, LoginRefusal, Session, Settings, StoreRefusal};
use restante_proto::{Speaker, TranscriptScope};

use super::driver::{Driver, Needs, Policy, default_settings, recipient};

fn driver(settings: Settings) -> Driver {
    let mut driver = Driver::new(settings, Policy::default());
    driver.feed(b"EHLO client.test\r\n");
    driver.replies();
    driver
}

fn in_data(settings: Settings) -> Driver {
    let mut driver = driver(settings);
    driver.feed(b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n");
    assert!(driver.replies().ends_with("354 End the mail with a dot on a line of its own\r\n"));
    driver
}

#[test]
fn endless_line_is_discarded() {
    let mut driver = driver(default_settings());
    for _ in 0..1_000 {
        // The driver checks that no more than one line is left unread.
        driver.feed(&[b'x'; 10_000]);
    }
    assert_eq!(driver.replies(), "");
    driver.feed(b"\r\nNOOP\r\n");
    assert_eq!(driver.replies(), "500 5.5.2 Line too long\r\n250 2.0.0 Ok\r\n");
}

#[test]
fn endless_first_line_ends_the_session() {
    let mut driver = Driver::new(default_settings(), Policy::default());
    driver.replies();
    driver.feed(&[b'x'; 600]);
    assert_eq!(driver.replies(), "421 4.7.0 mx.test Line too long, closing\r\n");
    assert_eq!(driver.needs, Needs::Close);
}

#[test]
fn endless_data_is_discarded() {
    let mut driver = in_data(Settings { max_message_bytes: 100_000, ..default_settings() });
    for _ in 0..1_000 {
        driver.feed(&[b'x'; 10_000]);
        assert!(driver.session.buffered_bytes() <= 100_000);
    }
    assert_eq!(driver.session.buffered_bytes(), 0);
    driver.feed(b"\r\n.\r\n");
    assert_eq!(driver.replies(), "552 5.3.4 Mail too long\r\n");
    assert_eq!(driver.needs, Needs::Input);
    assert!(driver.delivered.is_empty());
}

#[test]
fn endless_chunk_is_discarded() {
    let mut driver = driver(Settings { max_message_bytes: 100_000, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nBDAT 18446744073709551615 LAST\r\n");
    for _ in 0..1_000 {
        driver.feed(&[b'x'; 10_000]);
        assert_eq!(driver.session.buffered_bytes(), 0);
    }
}

#[test]
fn too_many_bad_commands_end_the_session() {
    let mut driver = driver(Settings { max_bad_commands: 5, ..default_settings() });
    driver.feed(&b"BOGUS\r\n".repeat(1_000));
    assert_eq!(driver.replies().lines().count(), 5);
    assert_eq!(driver.needs, Needs::Close);
}

#[test]
fn bare_line_ends_do_not_end_a_message() {
    for variant in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r\n.\0\r\n", "\r\0\n.\r\n"] {
        let mut driver = in_data(default_settings());
        driver.feed(format!("one{variant}MAIL FROM:<evil@x.test>\r\nRCPT TO:<victim@y.test>\r\nDATA\r\n").as_bytes());
        assert_eq!(driver.replies(), "", "{variant:?} ended the message");
        driver.feed(b"two\r\n.\r\n");
        assert_eq!(driver.replies(), "250 2.0.0 Mail accepted\r\n", "{variant:?}");
        assert_eq!(driver.delivered.len(), 1, "{variant:?}");
    }
}

#[test]
fn commands_before_tls_are_not_executed() {
    let mut driver = driver(Settings { starttls: true, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test>\r\nSTARTTLS\r\nEHLO evil.test\r\nMAIL FROM:<evil@x.test>\r\n");
    assert_eq!(driver.replies(), "250 2.1.0 Sender ok\r\n220 2.0.0 Ready to start TLS\r\n");
    assert_eq!(driver.needs, Needs::Tls);
    // Nothing is executed until the handshake is done, also not input of a later read.
    driver.feed(b"EHLO evil.test\r\nMAIL FROM:<evil");
    assert_eq!(driver.replies(), "");
    driver.session.tls_started();
    assert_eq!(driver.session.envelope(), None);
    driver.feed(b"RCPT TO:<b@y.test>\r\nSTARTTLS\r\n");
    assert_eq!(driver.replies(), "503 5.5.1 Say hello first\r\n503 5.5.1 TLS is already on\r\n");
}

#[test]
fn names_and_refusals_cannot_inject_replies() {
    let mut session = Session::new(Arc::new(default_settings()), None, true);
    session.step(b"EHLO evil\r250-STARTTLS\r\nEHLO client.test\r\nMAIL FROM:<a@x.test>\r\n");
    session.sender_checked(Err(SenderRefusal::Hook(Refusal::new(250, "denied\r\n250 Ok"))));
    let replies = String::from_utf8(session.replies().clone()).unwrap();
    assert!(replies.starts_with("500 5.5.2 Control character in the command\r\n250-mx.test greets client.test\r\n"));
    assert!(replies.ends_with("\r\n550 denied  250 Ok\r\n"));
}

#[test]
fn transcript_contains_no_passwords() {
    let mut driver = Driver::new(default_settings(), Policy::default());
    driver.session.start_recording(TranscriptScope::Everything);
    driver.feed(b"AUTH LOGIN\r\naHVudGVyMg==\r\naHVudGVyMg==\r\nEHLO client.test\r\n");
    driver
        .feed(b"AUTH PLAIN AGEAaHVudGVyMg==\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\nhunter2\r\n.\r\n");
    let transcript = driver.take_transcript();
    assert!(transcript.iter().all(|(_, line)| !line.contains("aHVudGVyMg") && !line.contains("hunter2")));
    let client_lines: Vec<&str> =
        transcript.iter().filter(|(side, _)| *side == Speaker::Client).map(|(_, line)| line.as_str()).collect();
    assert_eq!(
        client_lines,
        [
            "AUTH LOGIN",
            "*** (12 octets)",
            "*** (12 octets)",
            "EHLO client.test",
            "AUTH PLAIN ***",
            "MAIL FROM:<a@x.test>",
            "RCPT TO:<b@y.test>",
            "DATA",
            "(12 octets of mail)",
        ]
    );
    assert_eq!(driver.take_transcript(), []);
}

#[test]
fn announced_size_allocates_nothing() {
    let mut driver = driver(Settings { max_message_bytes: 1 << 30, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test> SIZE=1000000000\r\nRCPT TO:<b@y.test>\r\nDATA\r\n");
    assert_eq!(driver.session.buffered_bytes(), 0);
    driver.feed(b"x\r\n.\r\n");
    // The driver checks that a delivered message has no spare capacity.
    assert_eq!(driver.delivered[0].1, b"x\r\n");
}

#[test]
fn driver_can_end_the_session() {
    type End = fn(&mut Session);
    let ends: [(End, &str); 3] = [
        (Session::time_out, "421 4.4.2 mx.test Waited too long for you, closing\r\n"),
        (Session::shut_down, "421 4.3.2 mx.test Shutting down\r\n"),
        (Session::refuse_busy, "421 4.7.0 mx.test Too many connections, try again later\r\n"),
    ];
    for (end_session, text) in ends {
        let mut session = Session::new(Arc::new(default_settings()), None, false);
        session.step(b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\n");
        session.replies().clear();
        end_session(&mut session);
        // A late result has no effect.
        session.sender_checked(Ok(()));
        assert_eq!(session.step(b"NOOP\r\n"), (6, Action::Close));
        assert_eq!(session.replies().as_slice(), text.as_bytes());
    }
}

#[test]
fn replies_to_many_commands_are_written_in_parts() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    let input = b"EHLO x\r\n".repeat(5_000);
    let (mut pos, mut parts) = (0, 0);
    while pos < input.len() {
        let (consumed, action) = session.step(&input[pos..]);
        pos += consumed;
        assert!(session.replies().len() < 20_000);
        session.replies().clear();
        parts += usize::from(action == Action::Write);
    }
    assert!(parts > 10, "{parts}");
}

#[test]
fn discarded_octets_are_counted() {
    let mut driver = in_data(Settings { max_message_bytes: 100, ..default_settings() });
    assert_eq!(driver.session.transferred_bytes(), Some(0));
    driver.feed(&[b'x'; 1_000]);
    assert_eq!((driver.session.transferred_bytes(), driver.session.buffered_bytes()), (Some(1_000), 0));
    driver.feed(b"\r\n.\r\nBDAT 1000\r\n12345");
    assert_eq!(driver.session.transferred_bytes(), Some(5));
    driver.feed(&[b'x'; 995]);
    assert_eq!(driver.session.transferred_bytes(), None);
}

#[test]
fn pending_action_stops_the_session() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    let input = b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\nQUIT\r\n";
    let (consumed, action) = session.step(input);
    assert_eq!(action, Action::CheckSender);
    assert_eq!(session.envelope().unwrap().peer.helo, "client.test");
    assert_eq!(session.step(&input[consumed..]), (0, Action::Read));
    // Results of actions that were not requested are ignored.
    session.recipient_checked(recipient(Address::from_parts("b", "y.test")));
    session.delivered(Ok(()));
    session.authenticated(Ok(()));
    session.tls_started();
    session.sender_checked(Ok(()));
    assert_eq!(session.step(&input[consumed..]), (6, Action::Quit));
}

#[test]
fn store_refusal_keeps_the_session_open() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    session.step(b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\n");
    session.sender_checked(Ok(()));
    let (_, action) = session.step(b"RCPT TO:<b@y.test>\r\n");
    let Action::CheckRecipient(to) = action else { panic!("{action:?}") };
    session.recipient_checked(recipient(to));
    let (_, action) = session.step(b"DATA\r\nx\r\n.\r\n");
    assert!(matches!(action, Action::Deliver { .. }));
    session.replies().clear();
    session.delivered(Err(StoreRefusal::Unavailable));
    assert_eq!(session.step(b"DATA\r\n"), (6, Action::Read));
    let replies = String::from_utf8(session.replies().clone()).unwrap();
    assert_eq!(replies, "451 4.3.0 The mail cannot be stored at the moment\r\n503 5.5.1 Need MAIL first\r\n");
}

#[test]
fn hook_refusal_with_421_ends_the_session() {
    let refusal = || Refusal::new(421, "Come back tomorrow");
    let to_sender = b"EHLO client.test\r\nMAIL FROM:<a@x.test>\r\n";
    for is_recipient in [false, true] {
        let mut session = Session::new(Arc::new(default_settings()), None, false);
        assert_eq!(session.step(to_sender).1, Action::CheckSender);
        if is_recipient {
            session.sender_checked(Ok(()));
            session.step(b"RCPT TO:<b@y.test>\r\n");
            session.replies().clear();
            session.recipient_checked(Err(RecipientRefusal::Hook(refusal())));
        } else {
            session.replies().clear();
            session.sender_checked(Err(SenderRefusal::Hook(refusal())));
        }
        // Commands that were sent in advance are not executed.
        assert_eq!(session.step(b"RSET\r\nNOOP\r\n").1, Action::Close, "{is_recipient}");
        assert_eq!(session.replies().as_slice(), b"421 Come back tomorrow\r\n", "{is_recipient}");
    }
}

#[test]
fn refused_login_gets_its_reply() {
    let table = [
        (LoginRefusal::WrongCredentials, "535 5.7.8 Wrong user name or password\r\n"),
        (LoginRefusal::TooManyFailures, "454 4.7.0 Too many logins have failed, try again later\r\n"),
        (LoginRefusal::NotPermitted, "535 5.7.8 The login does not allow this\r\n"),
        (LoginRefusal::Chaos(454), "454 Chaos authentication error\r\n"),
    ];
    for (refusal, expected) in table {
        let mut session = Session::new(Arc::new(default_settings()), None, false);
        let (_, action) = session.step(b"EHLO client.test\r\nAUTH PLAIN AGEAYg==\r\n");
        assert!(matches!(action, Action::Authenticate { .. }));
        session.replies().clear();
        session.authenticated(Err(refusal));
        assert_eq!(String::from_utf8(session.replies().clone()).unwrap(), expected);
    }
}
