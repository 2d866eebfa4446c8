//! Runs the conversations of this folder on the bare session. The replies must not depend on how the input is split.

use std::collections::VecDeque;

use restante_proto::TranscriptScope;

use super::driver::{Driver, Wants, apop};
use crate::cuts::{Cut, cuts, run_all};
use crate::script::{Script, Turn};

#[test]
fn every_conversation_goes_as_written() {
    assert!(run_all("pop3", run) >= 40, "the conversations are not where they were");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with(&script.settings);
    driver.session.start_recording(TranscriptScope::Everything);
    let mut replies = Lines::default();
    for turn in script.turns {
        let about = format!("{name}, {cut:?}, at {turn:?}");
        replies.read(&mut driver);
        match turn {
            Turn::Client(input) => {
                assert!(replies.lines.is_empty(), "{about}: unexpected {replies:?}");
                cuts(&input, cut).for_each(|part| driver.feed(part));
            }
            Turn::Server(line) => assert_eq!(replies.lines.pop_front(), Some(line), "{about}"),
            Turn::ServerPrefix(prefix) => {
                let line = replies.lines.pop_front().expect(&about);
                assert!(line.starts_with(&prefix), "{about}: {line:?}");
            }
            Turn::ServerUntil(line) => while replies.lines.pop_front().expect(&about) != line {},
            Turn::Tls => {
                assert_eq!(driver.wants, Wants::Tls, "{about}");
                driver.session.tls_started();
            }
            Turn::Eof => assert_eq!(driver.wants, Wants::Close, "{about}"),
            Turn::Event(event, text) => happen(&mut driver, &replies.timestamp, &event, &text, &about),
        }
    }
    replies.read(&mut driver);
    assert!(replies.lines.is_empty(), "{name}, {cut:?}: unexpected {replies:?}");
    // This checks which lines of the transcript are refusals.
    driver.record();
}

fn happen(driver: &mut Driver, timestamp: &str, event: &str, octets: &[u8], about: &str) {
    let text = || String::from_utf8_lossy(octets);
    let number = || text().parse::<usize>().expect(about);
    match event {
        "MAIL" => driver.deliver(octets),
        "REMOVE" => driver.remove(number() as u64),
        "LEFT" => assert_eq!(driver.mails.len(), number(), "{about}"),
        "APOP" => {
            let text = text();
            let (user, password) = text.split_once(' ').expect(about);
            let digest = u128::from_be_bytes(apop(timestamp, password));
            driver.feed(format!("APOP {user} {digest:032x}\r\n").as_bytes());
        }
        _ => panic!("{about}: unknown event"),
    }
}

/// The reply lines that are not checked yet.
#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<String>,
    /// The last word of the first line.
    timestamp: String,
}

impl Lines {
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
