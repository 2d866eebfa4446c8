//! Attacks that a conversation file cannot show completely: the memory that the session uses and makes the driver use,
//! its transcript, and results of actions that no conversation has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_mail::message::{Marks, MessageId};
use restante_proto::imap::{Action, Change, Listed, ListedMessage, Mailbox, Operation, Outcome, Refusal, Session};
use restante_proto::sasl::Proof;
use restante_proto::{Speaker, TranscriptScope};

use super::driver::{Driver, Needs, default_settings};

/// Creates a session after its greeting.
fn session(is_tls: bool) -> Session {
    let mut session = Session::new(Arc::new(default_settings()), is_tls);
    session.greet();
    session.replies().clear();
    session
}

/// Creates a driver whose session has logged in and selected INBOX.
fn selected() -> Driver {
    let mut driver = Driver::new(default_settings());
    driver.feed(b"a LOGIN james x\r\nb SELECT INBOX\r\n");
    driver.replies();
    driver
}

fn text(session: &mut Session) -> String {
    String::from_utf8(std::mem::take(session.replies())).unwrap()
}

#[test]
fn endless_line_is_discarded() {
    let mut driver = selected();
    for _ in 0..1_000 {
        // The driver checks that no more than one line is left unread.
        driver.feed(&[b'x'; 10_000]);
    }
    assert_eq!(driver.replies(), b"* BAD The command is too long\r\n");
    driver.feed(b"\r\na NOOP\r\n");
    assert_eq!(driver.replies(), b"a OK NOOP completed\r\n");
}

#[test]
fn endless_line_during_idle_is_discarded() {
    let mut driver = selected();
    driver.feed(b"a IDLE\r\n");
    for _ in 0..1_000 {
        driver.feed(&[b'x'; 10_000]);
    }
    assert_eq!(driver.replies(), b"+ idling\r\n");
    driver.feed(b"\r\nb NOOP\r\n");
    assert_eq!(driver.replies(), b"a BAD Expected DONE\r\nb OK NOOP completed\r\n");
}

#[test]
fn message_is_held_only_after_its_memory_is_reserved() {
    let mut session = session(false);
    session.step(b"a LOGIN james x\r\n");
    session.logged_in(Ok(()));
    let (consumed, action) = session.step(b"b APPEND INBOX {1000000+}\r\nxxx");
    assert_eq!((consumed, action), (27, Action::ReserveLiteral(1_000_000)));
    assert_eq!(session.message_bytes(), 0);
    session.literal_reserved(true);
    session.step(b"xxx");
    assert_eq!(session.message_bytes(), 1_000_000);
}

#[test]
fn message_of_a_partial_fetch_is_released() {
    let mut driver = selected();
    driver.feed(&[&b"a APPEND INBOX {1000+}\r\n"[..], &[b'x'; 1000], b"\r\n"].concat());
    driver.feed(b"b FETCH 1 BODY.PEEK[TEXT]\r\n");
    assert_eq!(driver.session.message_bytes(), 0);
    for end in ["c UNSELECT\r\n", "c IDLE\r\nDONE\r\n", "c SELECT INBOX\r\n"] {
        driver.feed(b"a SELECT INBOX\r\nb FETCH 1 BODY.PEEK[TEXT]<0.10>\r\n");
        assert_eq!(driver.session.message_bytes(), 1000);
        driver.feed(end.as_bytes());
        assert_eq!(driver.session.message_bytes(), 0, "{end}");
    }
}

#[test]
fn large_messages_are_sent_as_stored() {
    let message: Vec<u8> = (0..300_000_u32).flat_map(|number| [b"0123456789\r\n"[number as usize % 12]]).collect();
    let mut driver = selected();
    driver.store.deliver("INBOX", &message);
    driver.store.deliver("INBOX", &message[..70_000]);
    driver.feed(b"a NOOP\r\nb FETCH 1:2 (UID BODY.PEEK[])\r\nc FETCH 1 BODY.PEEK[]<100000.150000>\r\n");
    let reply = |start: &str, octets: &[u8], end: &str| [start.as_bytes(), octets, end.as_bytes()].concat();
    let expected = [
        reply("* 2 EXISTS\r\n* 2 RECENT\r\na OK NOOP completed\r\n", b"", ""),
        reply("* 1 FETCH (UID 1 BODY[] {300000}\r\n", &message, ")\r\n"),
        reply("* 2 FETCH (UID 2 BODY[] {70000}\r\n", &message[..70_000], ")\r\nb OK FETCH completed\r\n"),
        reply("* 1 FETCH (BODY[]<100000> {150000}\r\n", &message[100_000..250_000], ")\r\nc OK FETCH completed\r\n"),
    ];
    assert!(driver.replies() == expected.concat(), "the octets differ");
}

/// The messages are more than the session changes, copies or reads in one operation.
#[test]
fn commands_apply_to_many_messages() {
    const COUNT: usize = 1_201;
    let mut driver = selected();
    driver.store.add_mailbox("Archive", None);
    for number in 1..=COUNT {
        driver.store.deliver("INBOX", format!("Subject: {number}\r\n\r\n{}\r\n", "x".repeat(2_000)).as_bytes());
    }
    driver.feed(b"a NOOP\r\n");
    let mut run = |command: &str| {
        driver.replies();
        driver.feed(format!("a {command}\r\n").as_bytes());
        String::from_utf8(driver.replies()).unwrap()
    };
    let numbers = || (1..=COUNT).map(|number| number.to_string());
    let all = numbers().collect::<Vec<_>>().join(" ");
    let seen: Vec<_> = numbers().map(|number| format!("* {number} FETCH (FLAGS (\\Seen \\Recent))\r\n")).collect();
    assert_eq!(run("STORE 1:* +FLAGS (\\Seen)"), seen.concat() + "a OK STORE completed\r\n");
    assert_eq!(run("SEARCH BODY x"), format!("* SEARCH {all}\r\na OK SEARCH completed\r\n"));
    assert_eq!(run("SORT (DATE) UTF-8 ALL"), format!("* SORT {all}\r\na OK SORT completed\r\n"));
    let subjects = run("FETCH 1:* BODY.PEEK[HEADER.FIELDS (SUBJECT)]");
    assert!(numbers().all(|number| subjects.contains(&format!("Subject: {number}\r\n\r\n)\r\n"))));
    let copied = format!("[COPYUID 7 1:{COUNT} 1:{COUNT}]");
    assert_eq!(run("COPY 1:* Archive"), format!("a OK {copied} COPY completed\r\n"));
    let expunged = "* 1 EXPUNGE\r\n".repeat(COUNT);
    run("STORE 1:* +FLAGS.SILENT (\\Deleted)");
    assert_eq!(run("EXPUNGE"), format!("{expunged}a OK EXPUNGE completed\r\n"));
    run("SELECT Archive");
    let moved =
        format!("* OK {copied} Copied\r\n").replace(&format!(" 1:{COUNT}]"), &format!(" {}:{}]", COUNT + 1, 2 * COUNT));
    assert_eq!(run("MOVE 1:* INBOX"), format!("{moved}{expunged}a OK MOVE completed\r\n"));
}

/// Returns a driver whose INBOX has many messages, and whose store refuses the second operation.
fn refusing_second_operation(messages: usize) -> Driver {
    let mut driver = selected();
    driver.store.add_mailbox("Archive", None);
    for _ in 1..=messages {
        driver.store.deliver("INBOX", b"Hello");
    }
    driver.feed(b"a NOOP\r\n");
    driver.replies();
    driver.refusal = Some((1, Refusal::Unavailable));
    driver
}

/// RFC 3501 section 6.4.7: the mailbox is as it was before.
#[test]
fn copy_that_is_refused_later_leaves_no_copies() {
    let mut driver = refusing_second_operation(1_201);
    driver.feed(b"b COPY 1:* Archive\r\n");
    assert!(driver.replies().starts_with(b"b NO [UNAVAILABLE] "));
    assert_eq!((driver.store.count("INBOX"), driver.store.count("Archive")), (1_201, 0));
}

/// RFC 6851 section 3.3: each message is moved or stays.
#[test]
fn move_that_is_refused_later_reports_what_was_moved() {
    const COUNT: usize = 1_201;
    let mut driver = refusing_second_operation(COUNT);
    driver.feed(b"b MOVE 1:* Archive\r\n");
    let replies = String::from_utf8(driver.replies()).unwrap();
    let moved = driver.store.count("Archive");
    assert!(0 < moved && moved < COUNT && driver.store.count("INBOX") == COUNT - moved, "{moved}");
    let expunged = "* 1 EXPUNGE\r\n".repeat(moved);
    let expected = format!("* OK [COPYUID 7 1:{moved} 1:{moved}] Copied\r\n{expunged}b NO [UNAVAILABLE] ");
    assert!(replies.starts_with(&expected), "{replies}");
}

#[test]
fn sets_with_many_ranges_are_fast() {
    let mut session = session(false);
    session.step(b"a LOGIN james x\r\n");
    session.logged_in(Ok(()));
    session.step(b"b SELECT INBOX\r\n");
    let message = |number: u32| ListedMessage {
        id: MessageId::from(u64::from(number)),
        uid: number,
        received: "2024-01-01T10:00:00Z".parse().unwrap(),
        size: 1,
        marks: Marks { modseq: 1, ..Marks::default() },
    };
    let listing = Listed { messages: Arc::new((1..=100_000).map(message).collect()), ..Listed::default() };
    session.completed(Ok(Outcome::Opened(Mailbox { uid_validity: 7, listing, ..Mailbox::default() })));
    let ranges = vec!["1:*"; 15_000].join(",");
    let started = Instant::now();
    for command in [format!("c UID FETCH {ranges} UID\r\n"), format!("c SEARCH {ranges}\r\n")] {
        let mut input = command.as_bytes();
        while !session.replies().ends_with(b" completed\r\n") {
            session.replies().clear();
            let (consumed, _) = session.step(input);
            input = &input[consumed..];
        }
    }
    // A session that iterated over the mailbox for each range would need many minutes.
    assert!(started.elapsed() < Duration::from_mins(1));
}

#[test]
fn reasons_cannot_inject_replies() {
    let mut session = session(false);
    session.step(b"a LOGIN james x\r\n");
    session.logged_in(Err(Refusal::Cannot("no\r\na OK".to_owned())));
    assert_eq!(text(&mut session), "a NO [CANNOT] no  a OK\r\n");
    session.step(b"b LOGIN james x\r\n");
    session.logged_in(Ok(()));
    session.replies().clear();
    session.step(b"c CREATE work\r\n");
    session.completed(Err(Refusal::Limit(format!("\u{e9}{}", "x".repeat(1000)))));
    session.step(b"");
    let reply = text(&mut session);
    assert!(reply.starts_with("c NO [LIMIT] ?xxx") && reply.ends_with("x\r\n") && reply.len() < 300, "{reply}");
}

#[test]
fn tags_cannot_inject_replies() {
    let mut driver = selected();
    driver.feed(b"a\xff\xfe NOOP\r\na\"b SEARCH RETURN () ALL\r\n");
    let replies = String::from_utf8(driver.replies()).unwrap();
    assert!(replies.lines().all(|line| line.starts_with("* BAD ")), "{replies}");
}

#[test]
fn login_passes_the_credentials() {
    let credentials = |input: &[u8]| match session(false).step(input).1 {
        Action::LogIn(credentials) => credentials,
        other => panic!("{other:?}"),
    };
    let login = credentials(b"a LOGIN james@x.test \" a b \"\r\n");
    assert_eq!((login.user.as_str(), login.authorization_id.as_str()), ("james@x.test", ""));
    assert!(matches!(login.proof, Proof::Password(secret) if secret.expose() == " a b "));
    let plain = credentials(b"a AUTHENTICATE PLAIN amFtZXMAYWRtaW4Ac2VjcmV0\r\n");
    assert_eq!((plain.user.as_str(), plain.authorization_id.as_str()), ("admin", "james"));
    let token = credentials(b"a AUTHENTICATE XOAUTH2 dXNlcj1qYW1lcwFhdXRoPUJlYXJlciBvbGQBAQ==\r\n");
    assert!(matches!(token.proof, Proof::Bearer(secret) if secret.expose() == "old"));
}

#[test]
fn starttls_is_not_offered_over_tls() {
    let mut session = session(true);
    session.step(b"a CAPABILITY\r\nb STARTTLS\r\n");
    let replies = text(&mut session);
    assert!(!replies.contains(" STARTTLS") && replies.ends_with("b BAD TLS is already on\r\n"), "{replies}");
}

#[test]
fn refused_connection_gets_bye_instead_of_a_greeting() {
    let mut session = Session::new(Arc::new(default_settings()), false);
    session.refuse_busy();
    assert_eq!(text(&mut session), "* BYE [UNAVAILABLE] mx.test has too many connections, try again later\r\n");
    assert_eq!(session.step(b"a LOGIN james x\r\n"), (17, Action::Close));
}

#[test]
fn shutdown_sends_no_reply_within_another_one() {
    let mut session = session(false);
    session.step(b"a LOGIN james x\r\n");
    session.logged_in(Ok(()));
    session.replies().clear();
    assert!(matches!(session.step(b"b LIST \"\" *\r\n").1, Action::Perform(Operation::List)));
    session.shut_down();
    assert_eq!(text(&mut session), "");
    assert_eq!(session.step(b"").1, Action::Close);
}

#[test]
fn results_that_nobody_waits_for_are_ignored() {
    let mut session = session(false);
    session.logged_in(Ok(()));
    session.completed(Ok(Outcome::Done));
    session.literal_reserved(true);
    session.tls_started();
    session.changed(Change::Removed(MessageId::from(1)));
    session.step(b"a SELECT INBOX\r\n");
    assert_eq!(text(&mut session), "a BAD Log in first\r\n");
}

#[test]
fn transcript_contains_no_secrets_and_messages() {
    use Speaker::{Client, Server};
    let mut driver = Driver::new(default_settings());
    driver.session.start_recording(TranscriptScope::Everything);
    driver.store.deliver("INBOX", b"hunter2\r\n");
    driver.feed(b"a LOGIN james hunter2 now\r\nb LOGIN james {7+}\r\nhunter2\r\nc SELECT INBOX\r\n");
    driver.feed(b"d FETCH 1 BODY[]\r\ne APPEND INBOX {7+}\r\nhunter2\r\nhunter2\r\nf LOGOUT\r\n");
    assert_eq!(driver.needs, Needs::Close);
    let transcript = driver.take_transcript();
    assert!(transcript.iter().all(|(_, line)| !line.contains("hunter2")), "{transcript:?}");
    let lines: Vec<_> = transcript.iter().map(|(speaker, line)| (*speaker, line.as_str())).collect();
    for expected in [
        (Client, "a LOGIN ***"),
        (Server, "a BAD Too many arguments"),
        (Client, "b LOGIN james ***"),
        (Client, "d FETCH 1 BODY[]"),
        (Server, "d OK FETCH completed"),
        (Client, "f LOGOUT"),
    ] {
        assert!(lines.contains(&expected), "{expected:?} in {lines:?}");
    }
}
