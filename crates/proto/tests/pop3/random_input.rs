//! Random input: the session continues or ends without a panic, and its replies do not depend on how the input is
//! split. A client that follows the protocol reads every message as it is stored.

use proptest::prelude::*;
use restante_proto::pop3::Settings;
use restante_proto::{Speaker, TranscriptScope};

use super::driver::{Driver, Needs, TRACE, default_settings};

/// A recognizable password, and its base64 form.
const PASSWORD: &str = "hunter2hunter2hunter2";
const PASSWORD_BASE64: &str = "aHVudGVyMmh1bnRlcjJodW50ZXIy";
/// NUL, "james", NUL, the password.
const PLAIN_BASE64: &str = "AGphbWVzAGh1bnRlcjJodW50ZXIyaHVudGVyMg==";

/// Parts of conversations, some of them invalid.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "USER james",
        "USER james\r\nPASS x",
        "USER james\r\nPASS x",
        "USER a..b\r\nPASS x",
        "PASS x",
        "APOP james 000102030405060708090a0b0c0d0e0f",
        "AUTH",
        "AUTH PLAIN",
        "AUTH PLAIN =",
        "AUTH CRAM-MD5",
        "AUTH OAUTHBEARER",
        "*",
        "CAPA",
        "STLS",
        "UTF8",
        "STAT",
        "LIST",
        "LIST 1",
        "LIST 0",
        "UIDL",
        "UIDL 2",
        "RETR 1",
        "RETR 2",
        "RETR 99999999999999999999",
        "TOP 1 0",
        "TOP 2 1",
        "TOP 1 999",
        "DELE 1",
        "DELE 2",
        "RSET",
        "NOOP",
        "QUIT now",
        "QUIT",
        "GET / HTTP/1.1",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    let secret = prop::sample::select(vec![
        format!("PASS {PASSWORD}"),
        format!("USER james\r\nPASS {PASSWORD}"),
        format!("PASS\t{PASSWORD}"),
        format!(" pass {PASSWORD}"),
        format!("PASS{PASSWORD}"),
        PASSWORD.to_owned(),
        format!("USER james {PASSWORD}"),
        format!("AUTH PLAIN {PLAIN_BASE64}"),
        format!("AUTH {PASSWORD_BASE64}"),
        format!("AUTH PLAIN\r\n{PLAIN_BASE64}"),
    ])
    // A secret is at the start of a line, whatever the part before it has left incomplete.
    .prop_map(|text| format!("\r\n\r\n{text}").into_bytes());
    let end = prop_oneof![9 => Just(&b"\r\n"[..]), 1 => Just(&b"\n"[..]), 1 => Just(&b"\r"[..]), 1 => Just(&b""[..])];
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    let long = (1..3_000_usize).prop_map(|length| vec![b'x'; length]);
    (prop_oneof![20 => known, 2 => secret, 2 => noise, 1 => long], end).prop_map(|(text, end)| [&text, end].concat())
}

/// The text of a message with many octets that have a meaning in the protocol.
fn message_text() -> impl Strategy<Value = Vec<u8>> {
    let octets = prop_oneof![
        4 => Just(b".".to_vec()),
        4 => Just(b"\n".to_vec()),
        4 => Just(b"\r".to_vec()),
        4 => Just(b"\r\n".to_vec()),
        1 => Just(b"+OK 1 octets\r\n".to_vec()),
        2 => prop::collection::vec(any::<u8>(), 1..4),
        1 => Just(vec![b'x'; 9_000]),
    ];
    prop::collection::vec(octets, 0..30).prop_map(|fragments| fragments.concat())
}

fn settings() -> impl Strategy<Value = Settings> {
    (any::<bool>(), 0..12_usize).prop_map(|(stls, max_bad_commands)| Settings {
        stls,
        max_bad_commands,
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
fn run_session(settings: Settings, stored: &[Vec<u8>], input: &[u8], cuts: &[usize]) -> Outcome {
    let mut driver = Driver::new(settings);
    for message_text in stored {
        driver.deliver(message_text);
    }
    driver.session.start_recording(TranscriptScope::Everything);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).chain([0, input.len()]).collect();
    cuts.sort_unstable();
    for range in cuts.windows(2) {
        // The driver checks that the unread rest and the replies are limited and that every byte is consumed once.
        driver.feed(&input[range[0]..range[1]]);
        assert_eq!(driver.session.sending_bytes(), 0, "a reply is incomplete");
    }
    Outcome {
        replies: driver.replies(),
        messages_left: driver.messages.len(),
        transcript: driver.take_transcript(),
        needs: driver.needs,
    }
}

/// Reads the replies like a client that ends lines at LF, and returns the messages in them.
fn read_messages(replies: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = replies.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut messages = Vec::new();
    while let Some(line) = lines.next() {
        let text = std::str::from_utf8(line).ok().and_then(|text| text.strip_suffix("\r\n")).expect("a reply line");
        assert!(text.len() <= 510, "{text}");
        let is_message = text.ends_with(" octets") || text.starts_with("+OK Top ");
        // The replies to a login and to RSET look like the first line of a listing. Only a listing continues with a
        // number or a dot.
        let is_listing =
            text.ends_with(" octets)") && lines.peek().is_some_and(|next| next[0].is_ascii_digit() || next == b".\r\n");
        if is_message || is_listing || text.ends_with(" follow") {
            let mut reply_lines = Vec::new();
            loop {
                let line = lines.next().expect("the reply has an end");
                if line == b".\r\n" {
                    break;
                }
                reply_lines.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            }
            if is_message {
                messages.push(reply_lines);
            }
        } else {
            assert!(text.starts_with("+OK") || text.starts_with("-ERR ") || text == "+ ", "{text}");
        }
    }
    messages
}

proptest! {
    #[test]
    fn replies_do_not_depend_on_how_the_input_is_split(
        settings in settings(),
        stored in prop::collection::vec(message_text(), 0..3),
        fragments in prop::collection::vec(fragment(), 0..40),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let input = fragments.concat();
        let outcome = run_session(settings.clone(), &stored, &input, &[]);
        for message in read_messages(&outcome.replies) {
            let text = message.strip_prefix(TRACE.as_bytes());
            let text = text.ok_or_else(|| TestCaseError::fail(format!("{message:?}")))?;
            let without_end = text.strip_suffix(b"\r\n").unwrap_or(text);
            let is_part_of = |message_text: &Vec<u8>| message_text.starts_with(text) || message_text.starts_with(without_end);
            prop_assert!(stored.iter().any(is_part_of), "{:?}", message);
        }
        let has_quit = outcome.replies.ends_with(b"+OK Bye\r\n");
        prop_assert!(outcome.messages_left == stored.len() || has_quit);
        prop_assert!(outcome.transcript.iter().all(|(_, line)| !line.contains(PASSWORD) && !line.contains(PASSWORD_BASE64)));
        prop_assert!(outcome.transcript.iter().all(|(_, line)| !line.contains(PLAIN_BASE64)));
        prop_assert_eq!(outcome, run_session(settings, &stored, &input, &cuts));
    }

    #[test]
    fn every_message_is_read_as_stored(stored in prop::collection::vec(message_text(), 1..4)) {
        let mut driver = Driver::new(default_settings());
        for message_text in &stored {
            driver.deliver(message_text);
        }
        driver.feed(b"USER james\r\nPASS x\r\n");
        (1..=stored.len()).for_each(|number| driver.feed(format!("RETR {number}\r\n").as_bytes()));
        let messages = read_messages(&driver.replies());
        prop_assert_eq!(messages.len(), stored.len());
        for (message, (_, source)) in messages.iter().zip(&driver.messages) {
            let source = source.to_bytes();
            let added = if source.ends_with(b"\r\n") { &b""[..] } else { &b"\r\n"[..] };
            prop_assert_eq!(message, &[&source, added].concat());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        settings in settings(),
        input in prop::collection::vec(any::<u8>(), 0..2_000),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        prop_assert_eq!(run_session(settings.clone(), &[], &input, &[]), run_session(settings, &[], &input, &cuts));
    }
}
