//! Runs the conversations of this folder on the bare session. The replies must not depend on how the input is split, and
//! the crate `imap-codec` must parse them.

use std::collections::VecDeque;

use restante_proto::imap::Refusal;

use super::driver::{Driver, Needs};
use super::responses::check_responses;
use crate::cuts::{Cut, cuts, run_all};
use crate::script::{Script, Turn};

#[test]
fn all_conversations_match() {
    assert!(run_all("imap", run) >= 150, "conversation files not found");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with_settings(&script.settings);
    let mut replies = ReplyLines::default();
    for turn in script.turns {
        let case = format!("{name}, {cut:?}, at {turn:?}");
        replies.read(&mut driver);
        match turn {
            Turn::Client(input) => {
                assert!(replies.lines.is_empty(), "{case}: unexpected {:?}", replies.lines);
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
            Turn::Event(event, text) => apply_event(&mut driver, &event, &text, &case),
        }
    }
    replies.read(&mut driver);
    assert!(replies.lines.is_empty(), "{name}, {cut:?}: unexpected {:?}", replies.lines);
    check_responses(name, &replies.octets);
}

fn apply_event(driver: &mut Driver, event: &str, octets: &[u8], case: &str) {
    let text = String::from_utf8_lossy(octets);
    let mut words = text.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).expect(case);
    match event {
        "MAIL" => {
            driver.store.deliver("INBOX", octets);
        }
        "MARK" => {
            let uid = number();
            driver.store.mark(uid, &words.collect::<Vec<_>>());
        }
        "REMOVE" => driver.store.remove(number()),
        "LEFT" => assert_eq!(driver.store.count("INBOX"), number() as usize, "{case}"),
        "FOLDER" => match text.rsplit_once(" \\") {
            Some((name, special_use)) => driver.store.add_mailbox(name, Some(special_use_of(special_use))),
            None => driver.store.add_mailbox(&text, None),
        },
        "QUOTA" => {
            (driver.store.max_bytes, driver.store.max_messages) = (Some(number().into()), Some(number().into()));
        }
        "LATE" => driver.is_late = true,
        "MISSED" => driver.miss_changes(),
        "READONLY" => driver.store.is_read_only = true,
        "NOTSTICKY" => driver.store.has_sticky_uids = false,
        "REFUSE" => {
            let (before, reason) = match text.split_once(' ').map(|(number, reason)| (number.parse(), reason)) {
                Some((Ok(number), reason)) => (number, reason),
                _ => (0, &*text),
            };
            let refusal = match reason {
                "unavailable" => Refusal::Unavailable,
                "permission" => Refusal::NotPermitted,
                reason => Refusal::Limit(reason.to_owned()),
            };
            driver.refusal = Some((before, refusal));
        }
        "TIMEOUT" => driver.session.time_out(),
        "SHUTDOWN" => driver.session.shut_down(),
        _ => panic!("{case}: unknown event"),
    }
    // A client that waits for changes gets them at once.
    if driver.session.is_idling() || matches!(event, "TIMEOUT" | "SHUTDOWN") {
        driver.feed(b"");
    }
}

fn special_use_of(name: &str) -> &'static str {
    ["\\Archive", "\\Drafts", "\\Junk", "\\Sent", "\\Trash"].into_iter().find(|known| known[1..] == *name).unwrap()
}

/// The reply lines that are not checked yet, and all replies.
#[derive(Debug, Default)]
struct ReplyLines {
    lines: VecDeque<String>,
    octets: Vec<u8>,
}

impl ReplyLines {
    fn read(&mut self, driver: &mut Driver) {
        let replies = driver.replies();
        let text = String::from_utf8_lossy(&replies);
        assert!(text.is_empty() || text.ends_with("\r\n"), "{text:?}");
        self.lines.extend(text.split_terminator("\r\n").map(str::to_owned));
        self.octets.extend(replies);
    }
}
