//! Runs the conversations of this folder on the bare session. However the input is cut, the replies are the same.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use restante_mail::envelope::{Envelope, reverse_path_text};

use crate::driver::{Driver, Wants};
use crate::script::{Script, Turn};

/// How a write of the client reaches the session.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    EveryOctet,
    /// At places that follow from this number.
    Random(u64),
}

#[test]
fn every_conversation_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            run(&name, &text, Cut::Whole);
            run(&name, &text, Cut::EveryOctet);
            (1..=8).for_each(|seed| run(&name, &text, Cut::Random(seed)));
            count += 1;
        }
    }
    assert!(count > 0, "there are no conversations");
}

fn run(name: &str, text: &str, cut: Cut) {
    let script = Script::parse(text);
    let mut driver = Driver::with(&script.settings);
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
            Turn::Tls => {
                assert_eq!(driver.wants, Wants::Tls, "{about}");
                driver.session.tls_started();
            }
            Turn::Eof => assert_eq!(driver.wants, Wants::Close, "{about}"),
            Turn::Delivered(expected) => {
                let (envelope, body) = driver.delivered.get(deliveries).expect(&about);
                assert_eq!(describe(envelope, body), String::from_utf8_lossy(&expected), "{about}");
                deliveries += 1;
            }
        }
    }
    replies.extend(driver.replies().lines().map(str::to_owned));
    assert!(replies.is_empty(), "{name}, {cut:?}: unexpected {replies:?}");
    assert_eq!(driver.delivered.len(), deliveries, "{name}, {cut:?}: mails that are not in the script");
}

/// The mail in the words of a script.
fn describe(envelope: &Envelope, body: &[u8]) -> String {
    let recipients: Vec<String> = envelope.recipients.iter().map(|to| format!("<{to}>")).collect();
    let from = reverse_path_text(&envelope.from);
    format!("from=<{from}> to={} body=\"{}\"", recipients.join(","), String::from_utf8_lossy(body))
}

fn cuts(input: &[u8], cut: Cut) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    let mut random = match cut {
        Cut::Random(seed) => seed,
        Cut::Whole | Cut::EveryOctet => 0,
    };
    std::iter::from_fn(move || {
        let length = match cut {
            Cut::Whole => rest.len(),
            Cut::EveryOctet => 1,
            Cut::Random(_) => {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(random >> 59).unwrap_or(1).max(1)
            }
        };
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
