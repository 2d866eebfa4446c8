//! Random input: the session continues or ends without a panic, and its replies do not depend on how the input is split.

use proptest::prelude::*;
use restante_proto::Speaker;
use restante_proto::imap::Settings;

use super::driver::{Driver, Needs, default_settings};
use super::responses::split_responses;

/// A recognizable password, and its base64 form.
const PASSWORD: &str = "hunter2hunter2hunter2";
const PASSWORD_BASE64: &str = "aHVudGVyMmh1bnRlcjJodW50ZXIy";
/// NUL, "james", NUL, the password.
const PLAIN_BASE64: &str = "AGphbWVzAGh1bnRlcjJodW50ZXIyaHVudGVyMg==";

/// A message with a part in a part.
const NESTED: &str = "Subject: =?utf-8?q?caf=C3=A9?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
    Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8=\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
    Subject: inner\r\n\r\nText\r\n--b--\r\n";

/// Commands, some of them invalid, without their tags.
const COMMANDS: &[&str] = &[
    "CAPABILITY",
    "NOOP",
    "LOGIN james x",
    "LOGIN {5}\r\njames {1+}\r\nx",
    "LOGIN {9999}",
    "AUTHENTICATE PLAIN AGphbWVzAHg=",
    "AUTHENTICATE PLAIN\r\nAGphbWVzAHg=",
    "AUTHENTICATE LOGIN",
    "AUTHENTICATE XOAUTH2 dXNlcj1qYW1lcwFhdXRoPUJlYXJlciBvbGQBAQ==",
    "AUTHENTICATE OAUTHBEARER =",
    "STARTTLS",
    "ID (\"name\" NIL)",
    "ENABLE CONDSTORE",
    "ENABLE IMAP4rev2 UTF8=ACCEPT",
    "NAMESPACE",
    "SELECT INBOX",
    "SELECT INBOX",
    "EXAMINE inbox (CONDSTORE)",
    "SELECT work",
    "CREATE work",
    "CREATE work/a&AOQ-",
    "DELETE work",
    "RENAME work \"old work\"",
    "RENAME INBOX all",
    "SUBSCRIBE work",
    "UNSUBSCRIBE work",
    "LIST \"\" *",
    "LIST (SUBSCRIBED RECURSIVEMATCH) \"\" (% work/%) RETURN (CHILDREN STATUS (MESSAGES SIZE))",
    "LSUB \"\" %",
    "STATUS INBOX (MESSAGES UIDNEXT UNSEEN HIGHESTMODSEQ MAILBOXID)",
    "APPEND INBOX (\\Seen work) {5+}\r\nHello",
    "APPEND work {5}\r\nHello",
    "APPEND INBOX {99999}",
    "APPEND INBOX UTF8 (~{5+}\r\nHello)",
    "CHECK",
    "CLOSE",
    "UNSELECT",
    "EXPUNGE",
    "UID EXPUNGE 1:2",
    "FETCH 1:* (FLAGS UID INTERNALDATE RFC822.SIZE MODSEQ)",
    "FETCH 1 BODY[]",
    "FETCH 1,2 (BODY[TEXT]<3.5> BODYSTRUCTURE ENVELOPE PREVIEW EMAILID)",
    "UID FETCH 2:* (BINARY[1] BINARY.SIZE[1] BODY.PEEK[2.HEADER.FIELDS (Subject)])",
    "FETCH 1:* FLAGS (CHANGEDSINCE 3)",
    "FETCH $ FULL",
    "STORE 1 +FLAGS (\\Deleted)",
    "STORE 1:* FLAGS.SILENT (work \\Seen)",
    "UID STORE 1:9 (UNCHANGEDSINCE 3) -FLAGS \\Seen",
    "SEARCH ALL",
    "SEARCH RETURN (SAVE COUNT) OR SUBJECT caf\u{e9} NOT BODY {5+}\r\nHello",
    "SEARCH CHARSET ISO-8859-1 TEXT \"\"",
    "UID SEARCH $ MODSEQ 2",
    "SORT (REVERSE SUBJECT ARRIVAL) UTF-8 ALL",
    "UID THREAD REFERENCES UTF-8 ALL",
    "COPY 1:* work",
    "MOVE 1 work",
    "UID MOVE 1:* INBOX",
    "GETQUOTAROOT INBOX",
    "IDLE",
    "IDLE\r\nDONE",
    "LOGOUT now",
    "BOGUS",
];

/// Parts of conversations.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let command = prop::sample::select(COMMANDS).prop_map(|command| format!("a {command}").into_bytes());
    let mutated = (command.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut text, index, byte)| {
        let index = index.index(text.len());
        text[index] = byte;
        text
    });
    let cut = (command.clone(), any::<prop::sample::Index>()).prop_map(|(mut text, index)| {
        text.truncate(index.index(text.len()));
        text
    });
    let secret = prop::sample::select(vec![
        format!("a LOGIN james {PASSWORD}"),
        format!("a LOGIN \"james\" \"{PASSWORD}\""),
        format!("a LOGIN james {{21+}}\r\n{PASSWORD}"),
        format!("a LOGIN james {PASSWORD} now"),
        format!("a AUTHENTICATE PLAIN {PLAIN_BASE64}"),
        format!("a AUTHENTICATE PLAIN\r\n{PLAIN_BASE64}"),
        format!("a AUTHENTICATE {PASSWORD_BASE64}"),
        PASSWORD.to_owned(),
    ])
    // A secret is a line of its own, whatever the part before it has left incomplete.
    .prop_map(|text| format!("\r\n\r\n{text}\r\n").into_bytes());
    let other = prop::sample::select(vec!["DONE", "*", "", "GET / HTTP/1.1", "\x16\x03\x01"]);
    let other = other.prop_map(|text| text.as_bytes().to_vec());
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    let long = (1..20_000_usize).prop_map(|length| vec![b'x'; length]);
    let text = prop_oneof![20 => command, 4 => mutated, 2 => cut, 2 => secret, 2 => other, 1 => noise, 1 => long];
    let end = prop_oneof![9 => Just(&b"\r\n"[..]), 1 => Just(&b"\n"[..]), 1 => Just(&b"\r"[..]), 1 => Just(&b""[..])];
    (text, end).prop_map(|(text, end)| [&text, end].concat())
}

fn settings() -> impl Strategy<Value = Settings> {
    (any::<bool>(), 0..40_usize, 0..10_000_usize).prop_map(|(starttls, max_bad_commands, max_message_bytes)| Settings {
        starttls,
        max_bad_commands,
        max_message_bytes,
        ..default_settings()
    })
}

/// The result of a conversation.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    replies: Vec<u8>,
    messages_left: usize,
    transcript: Vec<(Speaker, String)>,
    needs: Needs,
}

/// Runs a session with the input split at these places.
fn run_session(settings: Settings, start: &[u8], input: &[u8], cuts: &[usize]) -> Outcome {
    let max_message_bytes = settings.max_message_bytes;
    let mut driver = Driver::new(settings);
    driver.store.deliver("INBOX", NESTED.as_bytes());
    driver.store.deliver("INBOX", b"Subject: Hello\r\n\r\nHello\r\n");
    driver.feed(start);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).chain([0, input.len()]).collect();
    cuts.sort_unstable();
    for range in cuts.windows(2) {
        // The driver checks that the unread rest and the replies are limited and that every byte is consumed once.
        driver.feed(&input[range[0]..range[1]]);
        // The message of APPEND and the last message of a partial fetch.
        let limit = 2 * max_message_bytes.max(NESTED.len());
        assert!(driver.session.message_bytes() <= limit, "{} octets of messages", driver.session.message_bytes());
    }
    Outcome {
        replies: driver.replies(),
        messages_left: driver.store.count("INBOX"),
        transcript: driver.take_transcript(),
        needs: driver.needs,
    }
}

/// Checks that every reply has a form that a client can read.
fn check_replies(replies: &[u8]) -> Result<(), TestCaseError> {
    for response in split_responses(replies) {
        let text = String::from_utf8_lossy(response);
        let is_completion = ["OK", "NO", "BAD"]
            .iter()
            .any(|status| text.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(&format!("{status} "))));
        prop_assert!(text.starts_with("* ") || text.starts_with("+ ") || is_completion, "{}", text);
    }
    Ok(())
}

proptest! {
    #[test]
    fn replies_do_not_depend_on_the_cuts(
        settings in settings(),
        is_logged_in in any::<bool>(),
        fragments in prop::collection::vec(fragment(), 0..40),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let input = fragments.concat();
        let start = if is_logged_in { &b"a LOGIN james x\r\nb SELECT INBOX\r\n"[..] } else { b"" };
        let outcome = run_session(settings.clone(), start, &input, &[]);
        check_replies(&outcome.replies)?;
        let has_secret = |line: &str| [PASSWORD, PASSWORD_BASE64, PLAIN_BASE64].iter().any(|secret| line.contains(secret));
        if !is_logged_in {
            prop_assert!(outcome.transcript.iter().all(|(_, line)| !has_secret(line)), "{:?}", outcome.transcript);
        }
        prop_assert_eq!(outcome, run_session(settings, start, &input, &cuts));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        settings in settings(),
        is_logged_in in any::<bool>(),
        input in prop::collection::vec(any::<u8>(), 0..2_000),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let start = if is_logged_in { &b"a LOGIN james x\r\nb SELECT INBOX\r\n"[..] } else { b"" };
        let outcome = run_session(settings.clone(), start, &input, &[]);
        prop_assert_eq!(outcome, run_session(settings, start, &input, &cuts));
    }
}
