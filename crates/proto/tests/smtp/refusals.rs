//! The reason that the session records for each reply that refuses something.

use std::sync::Arc;

use restante_mail::envelope::{RecipientRefusal, Refusal, RefusalReason, SenderRefusal};
use restante_mail::naming::NameError;
use restante_proto::TranscriptScope;
use restante_proto::smtp::{Action, LoginRefusal, Protocol, Session, Settings, StoreRefusal};

use super::driver::{Driver, Policy, default_settings, recipient};

// Commands after which MAIL, RCPT or DATA is expected.
const EHLO: &str = "EHLO client.test\r\n";
const TO_RCPT: &str = "EHLO client.test\r\nMAIL FROM:<a@x.test>\r\n";
const TO_DATA: &str = "EHLO client.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\n";

fn strict() -> Settings {
    Settings { strict: true, max_message_bytes: 20, max_recipients: 1, ..default_settings() }
}

/// Runs the input after `start` and returns the replies to it and the reasons of their refusals.
fn run_session(settings: Settings, start: &str, input: &str) -> (Vec<String>, Vec<RefusalReason>) {
    let policy = Policy { credentials: vec![("a".to_owned(), "secret".to_owned())], ..Policy::default() };
    let mut driver = Driver::new(settings, policy);
    driver.feed(start.as_bytes());
    driver.replies();
    assert_eq!(driver.refusals(), [], "{start:?}");
    driver.feed(input.as_bytes());
    let replies = driver.replies().split_terminator("\r\n").map(str::to_owned).collect();
    (replies, driver.refusals())
}

#[test]
fn session_replies_have_reasons() {
    use RefusalReason::{Address, Auth, Recipients, Size, Syntax};
    let long_line = format!("NOOP {}\r\n", "x".repeat(600));
    let long_login = format!("AUTH PLAIN\r\n{}\r\n", "x".repeat(20_000));
    let table: &[(&str, &str, &str, Option<RefusalReason>)] = &[
        (EHLO, "NOOP\r\n", "250 2.0.0 Ok", None),
        (EHLO, "AUTH LOGIN\r\n", "334 VXNlcm5hbWU6", None),
        (TO_DATA, "DATA\r\nx\r\n.\r\n", "250 2.0.0 Mail accepted", None),
        (EHLO, "NOSUCH\r\n", "500 5.5.1 Unknown command", Some(Syntax)),
        (EHLO, "NOOP\0\r\n", "500 5.5.2 Control character in the command", Some(Syntax)),
        (EHLO, &long_line, "500 5.5.2 Line too long", Some(Syntax)),
        (EHLO, "EXPN a\r\n", "502 5.5.1 Command not implemented", Some(Syntax)),
        (EHLO, "LHLO a\r\n", "502 5.5.1 This is SMTP: use EHLO or HELO", Some(Syntax)),
        (EHLO, "STARTTLS\r\n", "502 5.5.1 TLS is not available", Some(Syntax)),
        (EHLO, "HELO\r\n", "501 5.5.4 Syntax: EHLO, HELO or LHLO, and one host name", Some(Syntax)),
        (EHLO, "MAIL\r\n", "501 5.5.4 Syntax: MAIL FROM:<address> [parameters]", Some(Syntax)),
        (TO_RCPT, "RCPT\r\n", "501 5.5.4 Syntax: RCPT TO:<address> [parameters]", Some(Syntax)),
        (TO_DATA, "BDAT x\r\n", "501 5.5.4 Syntax: BDAT size [LAST]", Some(Syntax)),
        (EHLO, "VRFY\r\n", "501 5.5.4 Syntax: VRFY address", Some(Syntax)),
        (EHLO, "AUTH\r\n", "501 5.5.4 Syntax: AUTH mechanism [initial-response]", Some(Syntax)),
        (TO_DATA, "DATA x\r\n", "501 5.5.4 This command takes no argument", Some(Syntax)),
        (EHLO, "MAIL FROM:<a@x.test> SIZE=x\r\n", "501 5.5.4 Malformed parameter", Some(Syntax)),
        (EHLO, "MAIL FROM:<a@x.test> SIZE=1 SIZE=1\r\n", "501 5.5.4 Parameter given twice", Some(Syntax)),
        (EHLO, "MAIL FROM:<a@x.test> X=1\r\n", "555 5.5.4 Unknown parameter", Some(Syntax)),
        ("", "MAIL FROM:<a@x.test>\r\n", "503 5.5.1 Say hello first", Some(Syntax)),
        (EHLO, "RCPT TO:<b@y.test>\r\n", "503 5.5.1 Need MAIL first", Some(Syntax)),
        (TO_RCPT, "DATA\r\n", "503 5.5.1 Need a valid recipient first", Some(Syntax)),
        (TO_RCPT, "BDAT 1\r\nx", "503 5.5.1 Need a valid recipient first", Some(Syntax)),
        (TO_RCPT, "MAIL FROM:<a@x.test>\r\n", "503 5.5.1 Sender already given", Some(Syntax)),
        (TO_RCPT, "AUTH PLAIN\r\n", "503 5.5.1 No AUTH in the middle of a mail", Some(Syntax)),
        (TO_DATA, "BDAT 1\r\nxDATA\r\n", "503 5.5.1 Only BDAT or RSET once BDAT has begun", Some(Syntax)),
        (EHLO, "AUTH PLAIN AGEAc2VjcmV0\r\nAUTH PLAIN\r\n", "503 5.5.1 Already authenticated", Some(Syntax)),
        (TO_DATA, "RCPT TO:<c@y.test>\r\n", "452 4.5.3 Too many recipients", Some(Recipients)),
        (EHLO, "MAIL FROM:<a@x.test> SIZE=21\r\n", "552 5.3.4 Mail too long", Some(Size)),
        (TO_DATA, "BDAT 21\r\n123456789012345678901", "552 5.3.4 Mail too long", Some(Size)),
        (TO_DATA, "BDAT 21 LAST\r\n123456789012345678901", "552 5.3.4 Mail too long", Some(Size)),
        (EHLO, "MAIL FROM:<a>\r\n", "553 5.1.7 Bad sender: the domain is missing", Some(Address)),
        (TO_RCPT, "RCPT TO:<b>\r\n", "553 5.1.3 Bad recipient: the domain is missing", Some(Address)),
        (
            EHLO,
            "MAIL FROM:<\u{fc}@x.test>\r\n",
            "553 5.6.7 Address is not ASCII; MAIL with SMTPUTF8 allows UTF-8",
            Some(Address),
        ),
        (EHLO, "AUTH PLAIN AGEAYg==\r\n", "535 5.7.8 Wrong user name or password", Some(Auth)),
        (EHLO, "AUTH PLAIN ???\r\n", "501 5.5.2 Cannot decode the response", Some(Syntax)),
        (EHLO, "AUTH NTLM\r\n", "504 5.5.4 Unknown authentication mechanism; EHLO lists the known ones", Some(Syntax)),
        (EHLO, &long_login, "500 5.5.6 Authentication line too long", Some(Syntax)),
        // The client that cancels its login is not refused anything.
        (EHLO, "AUTH PLAIN *\r\n", "501 5.7.0 Authentication cancelled", None),
        // A session that ends does not refuse anything.
        ("", "GET / HTTP/1.1\r\n", "421 4.7.0 mx.test This port does not speak HTTP, closing", None),
        ("", "\x16\x03\x01", "421 4.7.0 mx.test TLS begins with STARTTLS on this port, closing", None),
        ("", &long_line, "421 4.7.0 mx.test Line too long, closing", None),
    ];
    for (start, input, reply, reason) in table {
        let (replies, reasons) = run_session(strict(), start, input);
        assert_eq!(replies.last().map(String::as_str), Some(*reply), "{input:?}");
        assert_eq!(reasons, Vec::from_iter(*reason), "{input:?}");
    }
    let settings = Settings { require_auth: true, ..default_settings() };
    let (replies, reasons) = run_session(settings, EHLO, "MAIL FROM:<a@x.test>\r\n");
    assert_eq!((replies, reasons), (vec!["530 5.7.0 Authentication required".to_owned()], vec![Auth]));
    let settings = Settings { max_bad_commands: 2, ..default_settings() };
    let (replies, reasons) = run_session(settings, EHLO, "NOSUCH\r\nNOSUCH\r\n");
    assert_eq!(replies, ["500 5.5.1 Unknown command", "421 4.7.0 mx.test Too many errors, closing"]);
    assert_eq!(reasons, [Syntax]);
}

#[test]
fn ends_by_the_driver_have_reasons() {
    type End = fn(&mut Session);
    let table: [(End, Option<RefusalReason>); 3] =
        [(Session::time_out, None), (Session::shut_down, None), (Session::refuse_busy, Some(RefusalReason::Busy))];
    for (end, reason) in table {
        let mut session = Session::new(Arc::new(default_settings()), None, false);
        session.start_recording(TranscriptScope::Refusals);
        end(&mut session);
        assert!(session.replies().starts_with(b"421 "));
        assert_eq!(session.transcript().unwrap().lines().count(), 1, "the end is in the transcript");
        assert_eq!(session.take_refusals().collect::<Vec<_>>(), Vec::from_iter(reason));
    }
}

/// Runs a session up to the action that the input leads to. Senders and recipients are accepted on the way.
fn session_at(input: &str, protocol: Protocol) -> (Session, Action) {
    let mut session = Session::new(Arc::new(Settings { protocol, ..default_settings() }), None, false);
    let mut action = Action::Read;
    for line in input.split_inclusive("\r\n") {
        match action {
            Action::CheckSender => session.sender_checked(Ok(())),
            Action::CheckRecipient(to) => session.recipient_checked(recipient(to)),
            _ => {}
        }
        action = session.step(line.as_bytes()).1;
    }
    session.replies().clear();
    (session, action)
}

/// Returns the replies, and the reasons of the refusals. There are none after that.
fn take_results(mut session: Session) -> (String, Vec<RefusalReason>) {
    let reasons = session.take_refusals().collect();
    assert_eq!(session.take_refusals().count(), 0);
    (String::from_utf8(session.replies().clone()).unwrap(), reasons)
}

#[test]
fn sender_and_recipient_refusals_have_reasons() {
    use RefusalReason::{Address, Policy};
    let hook = |code, text: &str| Refusal::new(code, text);
    // A hook may use any code and text. The reason is the same.
    let hooks = [
        (hook(550, "5.2.1 Says a script"), "550 5.2.1 Says a script\r\n"),
        (hook(451, "4.3.0 Says a script"), "451 4.3.0 Says a script\r\n"),
        (hook(452, "4.3.1 No room for this mail at the moment"), "452 4.3.1 No room for this mail at the moment\r\n"),
        (hook(550, "5.1.1 No such user"), "550 5.1.1 No such user\r\n"),
        (hook(550, "5.1 items left"), "550 5.1 items left\r\n"),
        (hook(550, "Mail denied by policy"), "550 Mail denied by policy\r\n"),
        (hook(421, "4.7.0 Go away, says a script"), "421 4.7.0 Go away, says a script\r\n"),
        (hook(421, "Go away"), "421 Go away\r\n"),
        (hook(421, "4.3.2 mx.test Shutting down"), "421 4.3.2 mx.test Shutting down\r\n"),
        (hook(550, "5.7.1 A long\nstory,\r\ntold by a script"), "550 5.7.1 A long story,  told by a script\r\n"),
    ];
    for (refusal, reply) in hooks {
        let (mut session, action) = session_at(TO_RCPT, Protocol::Smtp);
        assert_eq!(action, Action::CheckSender);
        session.sender_checked(Err(SenderRefusal::Hook(refusal.clone())));
        assert_eq!(take_results(session), (reply.to_owned(), vec![Policy]));
        let (mut session, action) = session_at(TO_DATA, Protocol::Smtp);
        assert!(matches!(action, Action::CheckRecipient(_)));
        session.recipient_checked(Err(RecipientRefusal::Hook(refusal)));
        assert_eq!(take_results(session), (reply.to_owned(), vec![Policy]));
    }
    let (mut session, _) = session_at(TO_RCPT, Protocol::Smtp);
    session.sender_checked(Err(SenderRefusal::Policy));
    let expected = "550 5.7.1 Mail from this domain is not accepted here\r\n";
    assert_eq!(take_results(session), (expected.to_owned(), vec![Policy]));
    let (mut session, _) = session_at(TO_RCPT, Protocol::Smtp);
    session.sender_checked(Err(SenderRefusal::Chaos(452)));
    assert_eq!(take_results(session), ("452 Chaos sender error\r\n".to_owned(), vec![Policy]));
    let table = [
        (RecipientRefusal::Chaos(550), "550 Chaos recipient error\r\n", Policy),
        (
            RecipientRefusal::UnusableName(NameError::NeedsQuotes),
            "553 5.1.3 No mailbox here can have that name: the mailbox name has a character that needs quotes\r\n",
            Address,
        ),
        (
            RecipientRefusal::UnknownRun,
            "550 5.1.1 The run of this domain has expired, or another server has leased it\r\n",
            Address,
        ),
        (RecipientRefusal::NotPermitted, "550 5.7.1 The credentials are not for this mailbox\r\n", Policy),
        (RecipientRefusal::Policy, "550 5.7.1 Mail to this domain is not accepted here\r\n", Policy),
        (RecipientRefusal::NotAllowed, "550 5.7.1 Mail to this address is not accepted here\r\n", Policy),
    ];
    for (refusal, reply, reason) in table {
        let (mut session, _) = session_at(TO_DATA, Protocol::Smtp);
        session.recipient_checked(Err(refusal));
        assert_eq!(take_results(session), (reply.to_owned(), vec![reason]));
    }
}

#[test]
fn refused_logins_have_the_auth_reason() {
    let refusals = [
        LoginRefusal::WrongCredentials,
        LoginRefusal::TooManyFailures,
        LoginRefusal::Unavailable,
        LoginRefusal::NotPermitted,
        LoginRefusal::Chaos(535),
        LoginRefusal::Chaos(421),
    ];
    for refusal in refusals {
        let (mut session, action) = session_at("EHLO client.test\r\nAUTH PLAIN AGEAYg==\r\n", Protocol::Smtp);
        assert!(matches!(action, Action::Authenticate { .. }));
        session.authenticated(Err(refusal));
        assert_eq!(take_results(session).1, [RefusalReason::Auth], "{refusal:?}");
    }
}

#[test]
fn store_refusals_have_reasons() {
    use RefusalReason::{Size, StoreFailed, StoreFull};
    let table = [
        (StoreRefusal::Full, "452 4.3.1 No room for this mail at the moment\r\n", StoreFull),
        (StoreRefusal::Unavailable, "451 4.3.0 The mail cannot be stored at the moment\r\n", StoreFailed),
        (StoreRefusal::TooLarge, "552 5.3.4 Mail too long\r\n", Size),
        (StoreRefusal::Broken, "451 4.3.5 The mail cannot be stored because of a fault here\r\n", StoreFailed),
    ];
    let rest = "MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nRCPT TO:<c@y.test>\r\nDATA\r\nx\r\n.\r\n";
    for (refusal, reply, reason) in table {
        for (protocol, greeting, replies) in [(Protocol::Smtp, "EHLO", 1), (Protocol::Lmtp, "LHLO", 2)] {
            let (mut session, action) = session_at(&format!("{greeting} client.test\r\n{rest}"), protocol);
            assert!(matches!(action, Action::Deliver { .. }));
            session.delivered(Err(refusal));
            assert_eq!(take_results(session), (reply.repeat(replies), vec![reason; replies]), "{protocol:?}");
        }
    }
}

#[test]
fn too_long_message_counts_once_per_reply() {
    let start = "LHLO client.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nRCPT TO:<c@y.test>\r\n";
    let settings = Settings { protocol: Protocol::Lmtp, max_message_bytes: 20, ..default_settings() };
    let (replies, reasons) = run_session(settings, start, "DATA\r\n123456789012345678901\r\n.\r\n");
    assert_eq!(replies[1..], ["552 5.3.4 Mail too long", "552 5.3.4 Mail too long"]);
    assert_eq!(reasons, [RefusalReason::Size, RefusalReason::Size]);
}
