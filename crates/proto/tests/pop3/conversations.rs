//! Runs the conversations of this folder on the bare session. The replies must not depend on how the input is split.

use std::collections::VecDeque;

use restante_proto::TranscriptScope;

use super::driver::{Driver, Needs, apop_digest};
use crate::cuts::{Cut, cuts, run_all};
use crate::script::{Script, Turn};

#[test]
fn all_conversations_match() {
    assert!(run_all("pop3", run) >= 40, "conversation files not found");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with_settings(&script.settings);
    driver.session.start_recording(TranscriptScope::Everything);
    let mut replies = ReplyLines::default();
    for turn in script.turns {
        let case = format!("{name}, {cut:?}, at {turn:?}");
        replies.read(&mut driver);
        match turn {
            Turn::Client(input) => {
                assert!(replies.lines.is_empty(), "{case}: unexpected {replies:?}");
                cuts(&input, cut).for_each(|part| driver.feed(part));
            }
            Turn::Server(line) => assert_eq!(replies.lines.pop_front(), Some(line), "{case}"),
            Turn::ServerPrefix(prefix) => {
                let line = replies.lines.pop_front().expect(&case);
                assert!(line.starts_with(&prefix), "{case}: {line:?}");
            }
            Turn::ServerUntil(line) => while replies.lines.pop_front().expect(&case) != line {},
            Turn::Tls => {
                assert_eq!(driver.needs, Needs::Tls, "{case}");
                driver.session.tls_started();
            }
            Turn::Eof => assert_eq!(driver.needs, Needs::Close, "{case}"),
            Turn::Event(event, text) => apply_event(&mut driver, &replies.timestamp, &event, &text, &case),
        }
    }
    replies.read(&mut driver);
    assert!(replies.lines.is_empty(), "{name}, {cut:?}: unexpected {replies:?}");
    // This checks which lines of the transcript are refusals.
    driver.take_transcript();
}

fn apply_event(driver: &mut Driver, timestamp: &str, event: &str, octets: &[u8], case: &str) {
    let text = || String::from_utf8_lossy(octets);
    let number = || text().parse::<usize>().expect(case);
    match event {
        "MAIL" => driver.deliver(octets),
        "REMOVE" => driver.remove(number() as u64),
        "LEFT" => assert_eq!(driver.messages.len(), number(), "{case}"),
        "APOP" => {
            let text = text();
            let (user, password) = text.split_once(' ').expect(case);
            let digest = u128::from_be_bytes(apop_digest(timestamp, password));
            driver.feed(format!("APOP {user} {digest:032x}\r\n").as_bytes());
        }
        _ => panic!("{case}: unknown event"),
    }
}

/// The reply lines that are not checked yet.
#[derive(Debug, Default)]
struct ReplyLines {
    lines: VecDeque<String>,
    /// The last word of the first line.
    timestamp: String,
}

impl ReplyLines {
    fn read(&mut self, driver: &mut Driver) {
        let replies = driver.replies();
        let text = String::from_utf8_lossy(&replies);
        assert!(text.is_empty() || text.ends_with("\r\n"), "{text:?}");
        self.lines.extend(text.split_terminator("\r\n").map(str::to_owned));
        if let (true, Some(greeting)) = (self.timestamp.is_empty(), self.lines.front()) {
            self.timestamp = greeting.rsplit(' ').next().unwrap_or_default().to_owned();
        }
    }
}
