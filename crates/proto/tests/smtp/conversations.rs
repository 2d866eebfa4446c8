//! Runs the conversations of this folder on the bare session. The replies must not depend on how the input is split.

use std::collections::VecDeque;

use restante_mail::envelope::{Envelope, reverse_path_text};
use restante_proto::TranscriptScope;

use super::driver::{Driver, Needs};
use crate::cuts::{Cut, cuts, run_all};
use crate::script::{Script, Turn};

#[test]
fn all_conversations_match() {
    assert!(run_all("smtp", run) > 50, "conversation files not found");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with_settings(&script.settings);
    driver.session.start_recording(TranscriptScope::Everything);
    let mut replies: VecDeque<String> = VecDeque::new();
    let mut checked_deliveries = 0;
    for turn in script.turns {
        let case = format!("{name}, {cut:?}, at {turn:?}");
        replies.extend(driver.replies().lines().map(str::to_owned));
        match turn {
            Turn::Client(input) => {
                assert!(replies.is_empty(), "{case}: unexpected {replies:?}");
                cuts(&input, cut).for_each(|part| driver.feed(part));
            }
            Turn::Server(line) => assert_eq!(replies.pop_front(), Some(line), "{case}"),
            Turn::ServerPrefix(prefix) => {
                assert!(replies.pop_front().is_some_and(|line| line.starts_with(&prefix)), "{case}");
            }
            Turn::ServerUntil(line) => while replies.pop_front().expect(&case) != line {},
            Turn::Tls => {
                assert_eq!(driver.needs, Needs::Tls, "{case}");
                driver.session.tls_started();
            }
            Turn::Eof => assert_eq!(driver.needs, Needs::Close, "{case}"),
            Turn::Event(event, expected) => {
                assert_eq!(event, "DELIVERED", "{case}");
                let (envelope, body) = driver.delivered.get(checked_deliveries).expect(&case);
                assert_eq!(describe(envelope, body), String::from_utf8_lossy(&expected), "{case}");
                checked_deliveries += 1;
            }
        }
    }
    replies.extend(driver.replies().lines().map(str::to_owned));
    assert!(replies.is_empty(), "{name}, {cut:?}: unexpected {replies:?}");
    // This checks which lines of the transcript are refusals.
    driver.take_transcript();
    assert_eq!(driver.delivered.len(), checked_deliveries, "{name}, {cut:?}: messages that are not in the script");
}

/// Describes a message in the notation of a script.
fn describe(envelope: &Envelope, body: &[u8]) -> String {
    let recipients: Vec<String> = envelope.recipients.iter().map(|to| format!("<{}>", to.address)).collect();
    let from = reverse_path_text(&envelope.from);
    format!("from=<{from}> to={} body=\"{}\"", recipients.join(","), String::from_utf8_lossy(body))
}
