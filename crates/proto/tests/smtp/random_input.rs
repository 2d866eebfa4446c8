//! Random input: the session continues or ends without a panic, and its replies do not depend on how the input is
//! split.

use proptest::prelude::*;
use restante_mail::envelope::RefusalReason;
use restante_proto::smtp::{Protocol, Settings};
use restante_proto::{Speaker, TranscriptScope};

use super::driver::{Driver, Needs, Policy, default_settings};

/// A recognizable password, and its base64 form.
const PASSWORD: &str = "hunter2hunter2hunter2";
const PASSWORD_BASE64: &str = "aHVudGVyMmh1bnRlcjJodW50ZXIy";
/// NUL, "a", NUL, the password.
const PLAIN_BASE64: &str = "AGEAaHVudGVyMmh1bnRlcjJodW50ZXIy";

/// Parts of conversations, some of them invalid.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "HELO client.test",
        "EHLO client.test",
        "LHLO client.test",
        "EHLO",
        "MAIL FROM:<a@x.test>",
        "MAIL FROM:<> SIZE=10 BODY=8BITMIME",
        "MAIL FROM:<a@x.test> SIZE=99999",
        "MAIL FROM:<\u{fc}@x.test> SMTPUTF8",
        "RCPT TO:<b@y.test>",
        "RCPT TO:<postmaster> NOTIFY=NEVER",
        "RCPT TO:<c@spam.test>",
        "DATA",
        "BDAT 3",
        "BDAT 5 LAST",
        "BDAT 0 LAST",
        "BDAT x",
        ".",
        "..",
        "some text",
        "RSET",
        "NOOP",
        "VRFY b",
        "HELP",
        "STARTTLS",
        "EXPN",
        "QUIT",
        "AUTH PLAIN",
        "AUTH LOGIN",
        "AUTH XOAUTH2",
        "AUTH",
        "auth plain =",
        "*",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    let secret = prop::sample::select(vec![
        format!("AUTH PLAIN {PLAIN_BASE64}"),
        format!(" auth\tlogin {PASSWORD_BASE64}"),
        format!("AUTH {PASSWORD_BASE64}"),
        format!("AUTH LOGIN\r\nYQ==\r\n{PASSWORD_BASE64}"),
        format!("AUTH PLAIN\r\n{PLAIN_BASE64}"),
    ])
    // A secret is at the start of a line, whatever the part before it has left incomplete.
    .prop_map(|text| format!("\r\n\r\n\r\n\r\n{text}").into_bytes());
    let end = prop_oneof![6 => Just(&b"\r\n"[..]), 1 => Just(&b"\n"[..]), 1 => Just(&b"\r"[..]), 1 => Just(&b""[..])];
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    let long = (1..3_000_usize).prop_map(|length| vec![b'x'; length]);
    (prop_oneof![12 => known, 2 => secret, 2 => noise, 1 => long], end).prop_map(|(text, end)| [&text, end].concat())
}

fn settings() -> impl Strategy<Value = Settings> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, 0..8_usize).prop_map(|((lmtp, starttls, require_starttls, require_auth), bad)| Settings {
        protocol: if lmtp { Protocol::Lmtp } else { Protocol::Smtp },
        max_message_bytes: 50,
        max_recipients: 2,
        max_bad_commands: bad,
        starttls,
        require_starttls,
        require_auth,
        ..default_settings()
    })
}

/// The replies of a session, the delivered messages, the transcript, the state at the end, and the reasons of its
/// refusals.
type Outcome = (String, Vec<Vec<u8>>, Vec<(Speaker, String)>, Needs, Vec<RefusalReason>);

/// Runs a session with the input split at these places.
fn run_session(settings: Settings, input: &[u8], cuts: &[usize]) -> Outcome {
    let policy = Policy { reject_domains: vec!["spam.test".to_owned()], ..Policy::default() };
    let mut driver = Driver::new(settings, policy);
    driver.session.start_recording(TranscriptScope::Everything);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).chain([0, input.len()]).collect();
    cuts.sort_unstable();
    for range in cuts.windows(2) {
        // The driver checks that the unread rest is limited and that every byte is consumed once.
        driver.feed(&input[range[0]..range[1]]);
        assert!(driver.session.buffered_bytes() <= 50);
    }
    let replies = driver.replies();
    let transcript = driver.take_transcript();
    let refusals = driver.refusals();
    (replies, driver.delivered.into_iter().map(|(_, body)| body).collect(), transcript, driver.needs, refusals)
}

/// Returns the reason for the enhanced status code of a reply. `None` if the reply refuses nothing.
fn expected_reason(reply: &str) -> Option<RefusalReason> {
    let (code, text) = reply.split_at(3);
    if !code.starts_with(['4', '5']) || code == "421" || text.starts_with(" 5.7.0 Authentication cancelled") {
        return None;
    }
    Some(match &text[3..6] {
        "3.4" => RefusalReason::Size,
        "5.3" => RefusalReason::Recipients,
        "1.3" | "1.7" | "6.7" => RefusalReason::Address,
        "7.0" if text.ends_with("Must issue a STARTTLS command first") => RefusalReason::Policy,
        "7.0" | "7.8" => RefusalReason::Auth,
        "7.1" => RefusalReason::Policy,
        "5.1" | "5.2" | "5.4" | "5.6" => RefusalReason::Syntax,
        other => panic!("unexpected code {other} in {reply:?}"),
    })
}

proptest! {
    #[test]
    fn replies_do_not_depend_on_how_the_input_is_split(
        settings in settings(),
        fragments in prop::collection::vec(fragment(), 0..40),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let input = fragments.concat();
        let outcome = run_session(settings.clone(), &input, &[]);
        for line in outcome.0.split_terminator("\r\n") {
            let code = line.get(..4).unwrap_or_default();
            prop_assert!(code[..3].bytes().all(|byte| byte.is_ascii_digit()) && line.len() <= 510, "{:?}", line);
        }
        let expected: Vec<_> = outcome.0.split_terminator("\r\n").filter_map(expected_reason).collect();
        prop_assert_eq!(&outcome.4, &expected);
        prop_assert!(outcome.2.iter().all(|(_, line)| !line.contains(PASSWORD) && !line.contains(PASSWORD_BASE64)));
        prop_assert_eq!(outcome, run_session(settings, &input, &cuts));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        settings in settings(),
        input in prop::collection::vec(any::<u8>(), 0..2_000),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        prop_assert_eq!(run_session(settings.clone(), &input, &[]), run_session(settings, &input, &cuts));
    }
}
