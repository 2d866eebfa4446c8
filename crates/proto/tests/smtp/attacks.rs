//! Attacks by name, where a conversation cannot show all of it: what the session holds, and what it makes the driver
//! hold, while it is under attack.

use std::sync::Arc;

use restante_mail::envelope::Refusal;
use restante_proto::smtp::{Action, Dialect, Session, Settings};
use restante_proto::{Scope, Speaker};

use crate::driver::{Driver, Policy, Wants, default_settings};

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
fn endless_line() {
    let mut driver = driver(default_settings());
    for _ in 0..1_000 {
        // The driver checks that no more than a line's worth is left to keep.
        driver.feed(&[b'x'; 10_000]);
    }
    assert_eq!(driver.replies(), "");
    driver.feed(b"\r\nNOOP\r\n");
    assert_eq!(driver.replies(), "500 5.5.2 Line too long\r\n250 2.0.0 Ok\r\n");
}

#[test]
fn an_endless_first_line_is_not_read_to_its_end() {
    let mut driver = Driver::new(default_settings(), Policy::default());
    driver.replies();
    driver.feed(&[b'x'; 600]);
    assert_eq!(driver.replies(), "421 4.7.0 mx.test Line too long, closing\r\n");
    assert_eq!(driver.wants, Wants::Close);
}

#[test]
fn endless_data() {
    let mut driver = in_data(Settings { max_message_bytes: 100_000, ..default_settings() });
    for _ in 0..1_000 {
        driver.feed(&[b'x'; 10_000]);
        assert!(driver.session.receiving() <= 100_000);
    }
    assert_eq!(driver.session.receiving(), 0);
    driver.feed(b"\r\n.\r\n");
    assert_eq!(driver.replies(), "552 5.3.4 Mail too long\r\n");
    assert_eq!(driver.wants, Wants::Input);
    assert!(driver.delivered.is_empty());
}

#[test]
fn endless_chunk() {
    let mut driver = driver(Settings { max_message_bytes: 100_000, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nBDAT 18446744073709551615 LAST\r\n");
    for _ in 0..1_000 {
        driver.feed(&[b'x'; 10_000]);
        assert_eq!(driver.session.receiving(), 0);
    }
}

#[test]
fn endless_commands() {
    let mut driver = driver(Settings { max_bad_commands: 5, ..default_settings() });
    driver.feed(&b"BOGUS\r\n".repeat(1_000));
    assert_eq!(driver.replies().lines().count(), 5);
    assert_eq!(driver.wants, Wants::Close);
}

#[test]
fn smtp_smuggling_by_bare_lf() {
    for end in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r\n.\0\r\n", "\r\0\n.\r\n"] {
        let mut driver = in_data(default_settings());
        driver.feed(format!("one{end}MAIL FROM:<evil@x.test>\r\nRCPT TO:<victim@y.test>\r\nDATA\r\n").as_bytes());
        assert_eq!(driver.replies(), "", "{end:?} ended the mail");
        driver.feed(b"two\r\n.\r\n");
        assert_eq!(driver.replies(), "250 2.0.0 Mail accepted\r\n", "{end:?}");
        assert_eq!(driver.delivered.len(), 1, "{end:?}");
    }
}

#[test]
fn starttls_injection() {
    let mut driver = driver(Settings { starttls: true, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test>\r\nSTARTTLS\r\nEHLO evil.test\r\nMAIL FROM:<evil@x.test>\r\n");
    assert_eq!(driver.replies(), "250 2.1.0 Sender ok\r\n220 2.0.0 Ready to start TLS\r\n");
    assert_eq!(driver.wants, Wants::Tls);
    // Nothing is obeyed until the handshake is done, also not what comes in a later read.
    driver.feed(b"EHLO evil.test\r\nMAIL FROM:<evil");
    assert_eq!(driver.replies(), "");
    driver.session.tls_started();
    assert_eq!(driver.session.envelope(), None);
    driver.feed(b"RCPT TO:<b@y.test>\r\nSTARTTLS\r\n");
    assert_eq!(driver.replies(), "503 5.5.1 Say hello first\r\n503 5.5.1 TLS is already on\r\n");
}

#[test]
fn reply_injection_by_the_peers_name_and_by_refusals() {
    let mut session = Session::new(Arc::new(default_settings()), None, true);
    session.step(b"EHLO evil\r250-STARTTLS\r\nEHLO client.test\r\nMAIL FROM:<a@x.test>\r\n");
    session.sender(Err(Refusal::new(250, "denied\r\n250 Ok")));
    let replies = String::from_utf8(session.replies().clone()).unwrap();
    assert!(replies.starts_with("500 5.5.2 Control character in the command\r\n250-mx.test greets client.test\r\n"));
    assert!(replies.ends_with("\r\n550 denied  250 Ok\r\n"));
}

#[test]
fn passwords_stay_out_of_the_record() {
    let mut driver = Driver::new(default_settings(), Policy::default());
    driver.session.record(Scope::Everything);
    driver.feed(b"AUTH LOGIN\r\naHVudGVyMg==\r\naHVudGVyMg==\r\nEHLO client.test\r\n");
    driver
        .feed(b"AUTH PLAIN AGEAaHVudGVyMg==\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\nhunter2\r\n.\r\n");
    let record = driver.record();
    assert!(record.iter().all(|(_, line)| !line.contains("aHVudGVyMg") && !line.contains("hunter2")));
    let said: Vec<&str> =
        record.iter().filter(|(who, _)| *who == Speaker::Client).map(|(_, line)| line.as_str()).collect();
    assert_eq!(
        said,
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
    assert_eq!(driver.record(), []);
}

#[test]
fn a_lie_about_the_size_costs_nothing() {
    let mut driver = driver(Settings { max_message_bytes: 1 << 30, ..default_settings() });
    driver.feed(b"MAIL FROM:<a@x.test> SIZE=1000000000\r\nRCPT TO:<b@y.test>\r\nDATA\r\n");
    assert_eq!(driver.session.receiving(), 0);
    driver.feed(b"x\r\n.\r\n");
    // The driver checks that a delivered mail takes no more than its own length.
    assert_eq!(driver.delivered[0].1, b"x\r\n");
}

#[test]
fn the_end_comes_from_the_driver_too() {
    type End = fn(&mut Session);
    let endings: [(End, &str); 3] = [
        (Session::time_out, "421 4.4.2 mx.test Waited too long for you, closing\r\n"),
        (Session::shut_down, "421 4.3.2 mx.test Shutting down\r\n"),
        (Session::refuse_busy, "421 4.7.0 mx.test Too many connections, try again later\r\n"),
    ];
    for (end, text) in endings {
        let mut session = Session::new(Arc::new(default_settings()), None, false);
        session.step(b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\n");
        session.replies().clear();
        end(&mut session);
        // An answer that comes too late changes nothing.
        session.sender(Ok(()));
        assert_eq!(session.step(b"NOOP\r\n"), (6, Action::Close));
        assert_eq!(session.replies().as_slice(), text.as_bytes());
    }
}

#[test]
fn very_many_commands_in_one_read_are_answered_in_portions() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    let input = b"EHLO x\r\n".repeat(5_000);
    let (mut at, mut portions) = (0, 0);
    while at < input.len() {
        let (consumed, action) = session.step(&input[at..]);
        at += consumed;
        assert!(session.replies().len() < 20_000);
        session.replies().clear();
        portions += usize::from(action == Action::Write);
    }
    assert!(portions > 10, "{portions}");
}

#[test]
fn octets_that_are_thrown_away_are_counted_too() {
    let mut driver = in_data(Settings { max_message_bytes: 100, ..default_settings() });
    assert_eq!(driver.session.transferred(), Some(0));
    driver.feed(&[b'x'; 1_000]);
    assert_eq!((driver.session.transferred(), driver.session.receiving()), (Some(1_000), 0));
    driver.feed(b"\r\n.\r\nBDAT 1000\r\n12345");
    assert_eq!(driver.session.transferred(), Some(5));
    driver.feed(&[b'x'; 995]);
    assert_eq!(driver.session.transferred(), None);
}

#[test]
fn an_open_question_stops_the_session() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    let input = b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\nQUIT\r\n";
    let (consumed, action) = session.step(input);
    assert_eq!(action, Action::Sender);
    assert_eq!(session.envelope().unwrap().peer.helo, "client.test");
    assert_eq!(session.step(&input[consumed..]), (0, Action::Read));
    // Answers to questions that were not asked are ignored.
    session.recipient(Ok(()));
    session.delivered(Ok(()));
    session.authenticated(Ok(true));
    session.tls_started();
    session.sender(Ok(()));
    assert_eq!(session.step(&input[consumed..]), (6, Action::Quit));
}

#[test]
fn a_mail_that_cannot_be_stored_is_refused_and_the_session_lives_on() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    session.step(b"HELO client.test\r\nMAIL FROM:<a@x.test>\r\n");
    session.sender(Ok(()));
    session.step(b"RCPT TO:<b@y.test>\r\n");
    session.recipient(Ok(()));
    let (_, action) = session.step(b"DATA\r\nx\r\n.\r\n");
    assert!(matches!(action, Action::Deliver { .. }));
    session.replies().clear();
    session.delivered(Err(Refusal::new(451, "4.3.0 Cannot store the mail now")));
    assert_eq!(session.step(b"DATA\r\n"), (6, Action::Read));
    let replies = String::from_utf8(session.replies().clone()).unwrap();
    assert_eq!(replies, "451 4.3.0 Cannot store the mail now\r\n503 5.5.1 Need MAIL first\r\n");
}

/// A session up to the question that the last of these lines leads to.
fn asked(settings: Settings, lines: &[&str]) -> (Session, Action) {
    let mut session = Session::new(Arc::new(settings), None, false);
    let mut asked = Action::Read;
    for line in lines {
        match asked {
            Action::Sender => session.sender(Ok(())),
            Action::Recipient(_) => session.recipient(Ok(())),
            _ => {}
        }
        asked = session.step(format!("{line}\r\n").as_bytes()).1;
    }
    session.replies().clear();
    (session, asked)
}

#[test]
fn a_refusal_by_421_ends_the_session_behind_the_reply() {
    let bye = || Err(Refusal::new(421, "Come back tomorrow"));
    let mail = ["EHLO client.test", "MAIL FROM:<a@x.test>", "RCPT TO:<b@y.test>", "DATA\r\nx\r\n."];
    let login = ["EHLO client.test", "AUTH PLAIN AGEAYg=="];
    for lines in [&mail[..2], &mail[..3], &mail[..], &login[..]] {
        let (mut session, asked) = asked(default_settings(), lines);
        match asked {
            Action::Sender => session.sender(bye()),
            Action::Recipient(_) => session.recipient(bye()),
            Action::Deliver { .. } => session.delivered(bye()),
            Action::Authenticate { .. } => session.authenticated(bye().map(|()| true)),
            other => panic!("{other:?}"),
        }
        // What was sent in advance is not obeyed any more.
        assert_eq!(session.step(b"RSET\r\nNOOP\r\n").1, Action::Close, "{lines:?}");
        assert_eq!(session.replies().as_slice(), b"421 Come back tomorrow\r\n", "{lines:?}");
    }
    let settings = Settings { dialect: Dialect::Lmtp, ..default_settings() };
    let lines = ["LHLO client.test", "MAIL FROM:<a@x.test>", "RCPT TO:<b@y.test>", "RCPT TO:<c@y.test>", mail[3]];
    let (mut session, _) = asked(settings, &lines);
    session.delivered(bye());
    assert_eq!(session.step(b"NOOP\r\n").1, Action::Close);
    assert_eq!(session.replies().as_slice(), b"421 Come back tomorrow\r\n421 Come back tomorrow\r\n");
}

#[test]
fn a_login_that_cannot_be_checked_gets_the_reason() {
    let mut session = Session::new(Arc::new(default_settings()), None, false);
    let (_, action) = session.step(b"EHLO client.test\r\nAUTH PLAIN AGEAYg==\r\n");
    assert!(matches!(action, Action::Authenticate { .. }));
    session.replies().clear();
    session.authenticated(Err(Refusal::new(454, "4.7.0 Try again later")));
    assert_eq!(session.replies().as_slice(), b"454 4.7.0 Try again later\r\n");
}
