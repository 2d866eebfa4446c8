//! Runs the conversations of this folder on the bare session. The replies must not depend on how the input is split.

use std::collections::VecDeque;

use restante_mail::envelope::{Envelope, reverse_path_text};
use restante_proto::TranscriptScope;

use super::driver::{Driver, Wants};
use crate::cuts::{Cut, cuts, run_all};
use crate::script::{Script, Turn};

#[test]
fn every_conversation_goes_as_written() {
    assert!(run_all("smtp", run) > 50, "the conversations are not where they were");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with(&script.settings);
    driver.session.start_recording(TranscriptScope::Everything);
    let mut replies: VecDeque<String> = VecDeque::new();
    let mut deliveries = 0;
    for turn in script.turns {
        let about = format!("{name}, {cut:?}, at {turn:?}");
        replies.extend(driver.replies().lines().map(str::to_owned));
        match turn {
            Turn::Client(input) => {
                assert!(replies.is_empty(), "{about}: unexpected {replies:?}");
                cuts(&input, cut).for_each(|part| driver.feed(part));
            }
            Turn::Server(line) => assert_eq!(replies.pop_front(), Some(line), "{about}"),
            Turn::ServerPrefix(prefix) => {
                assert!(replies.pop_front().is_some_and(|line| line.starts_with(&prefix)), "{about}");
            }
            Turn::ServerUntil(line) => while replies.pop_front().expect(&about) != line {},
            Turn::Tls => {
                assert_eq!(driver.wants, Wants::Tls, "{about}");
                driver.session.tls_started();
            }
            Turn::Eof => assert_eq!(driver.wants, Wants::Close, "{about}"),
            Turn::Event(event, expected) => {
                assert_eq!(event, "DELIVERED", "{about}");
                let (envelope, body) = driver.delivered.get(deliveries).expect(&about);
                assert_eq!(describe(envelope, body), String::from_utf8_lossy(&expected), "{about}");
                deliveries += 1;
            }
        }
    }
    replies.extend(driver.replies().lines().map(str::to_owned));
    assert!(replies.is_empty(), "{name}, {cut:?}: unexpected {replies:?}");
    // This checks which lines of the transcript are refusals.
    driver.record();
    assert_eq!(driver.delivered.len(), deliveries, "{name}, {cut:?}: mails that are not in the script");
}

/// Describes a message in the notation of a script.
fn describe(envelope: &Envelope, body: &[u8]) -> String {
    let recipients: Vec<String> = envelope.recipients.iter().map(|to| format!("<{}>", to.address)).collect();
    let from = reverse_path_text(&envelope.from);
    format!("from=<{from}> to={} body=\"{}\"", recipients.join(","), String::from_utf8_lossy(body))
}
