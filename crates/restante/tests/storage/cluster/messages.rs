//! Letters that are sent as senders of mail do: the same again and again until it is acknowledged. What was tried is written
//! down, and compared with what is there.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::durability::letter;
use crate::support::rest::Reader;
use crate::support::smtp::Sender;

/// How long it is waited before a letter is tried again.
const PAUSE: Duration = Duration::from_millis(20);
/// A letter that is not taken for so long never is.
const PATIENCE: Duration = Duration::from_mins(1);

/// What has become of all letters.
#[derive(Default)]
pub(crate) struct Letters {
    by_subject: Mutex<BTreeMap<String, Letter>>,
    /// How many tries were answered with 451, and how many with the end of the connection.
    pub(crate) refused: AtomicUsize,
    pub(crate) broken: AtomicUsize,
}

/// What its sender knows of a letter.
#[derive(Clone, Debug)]
struct Letter {
    mailboxes: Vec<String>,
    /// How often it was sent to its end, so that it may have been stored.
    tries: usize,
    is_acknowledged: bool,
}

impl Letters {
    /// How many were sent.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// The subjects of those that must be in a mailbox.
    pub(crate) fn acknowledged(&self, mailbox: &str) -> Vec<String> {
        let all = self.all();
        let kept =
            all.iter().filter(|(_, letter)| letter.is_acknowledged && letter.mailboxes.iter().any(|of| of == mailbox));
        kept.map(|(subject, _)| subject.clone()).collect()
    }

    /// Checks what mailboxes hold in which nothing was deleted: every letter that was acknowledged, at least once and not more
    /// often than it was tried, in each of its mailboxes the same, and nothing else.
    pub(crate) fn check(&self, found: &BTreeMap<String, Vec<Value>>) {
        let all = self.all();
        let mut copies: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (mailbox, list) in found {
            for summary in list {
                *copies.entry((subject(summary), mailbox)).or_default() += 1;
            }
        }
        for (name, letter) in &*all {
            assert!(letter.is_acknowledged, "{name} was never taken");
            let here = letter.mailboxes.iter().filter(|mailbox| found.contains_key(*mailbox));
            let counts: Vec<usize> = here.map(|of| copies.remove(&(name, of)).unwrap_or_default()).collect();
            let first = counts.first().copied().unwrap_or(1);
            assert!((1..=letter.tries).contains(&first), "{name}: {first} of {letter:?}");
            assert!(
                counts.iter().all(|count| *count == first),
                "{name} is in some of its mailboxes: {counts:?}, {letter:?}"
            );
        }
        assert!(copies.is_empty(), "nobody has sent this: {copies:?}");
    }

    fn note(&self, subject: &str, change: impl FnOnce(&mut Letter)) {
        change(self.all().get_mut(subject).unwrap());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Letter>> {
        self.by_subject.lock().unwrap()
    }
}

/// One who sends letters, one after the other.
pub(crate) struct Postman<'a> {
    letters: &'a Letters,
    smtp: SocketAddr,
    connection: Option<Sender>,
}

impl<'a> Postman<'a> {
    pub(crate) fn new(letters: &'a Letters, smtp: SocketAddr) -> Self {
        Self { letters, smtp, connection: None }
    }

    /// Sends a letter of about this length until it is acknowledged.
    pub(crate) fn send(&mut self, subject: &str, mailboxes: &[&str], length: usize) {
        let owned = mailboxes.iter().map(|&mailbox| mailbox.to_owned()).collect();
        let new = Letter { mailboxes: owned, tries: 0, is_acknowledged: false };
        assert!(self.letters.all().insert(subject.to_owned(), new).is_none(), "{subject} was sent before");
        let mail = letter(subject, length);
        let start = Instant::now();
        while !self.attempt(subject, mailboxes, &mail) {
            assert!(start.elapsed() < PATIENCE, "{subject} is not taken");
            thread::sleep(PAUSE);
        }
        self.letters.note(subject, |letter| letter.is_acknowledged = true);
    }

    /// Whether it was acknowledged. If not, the next try is over another connection, and so perhaps with another node.
    fn attempt(&mut self, subject: &str, mailboxes: &[&str], mail: &[u8]) -> bool {
        let failed = match self.try_once(subject, mailboxes, mail) {
            Ok(250) => return true,
            Ok(451) => &self.letters.refused,
            Ok(code) => panic!("{subject} was answered with {code}"),
            Err(_) => &self.letters.broken,
        };
        failed.fetch_add(1, Ordering::Relaxed);
        self.connection = None;
        false
    }

    fn try_once(&mut self, subject: &str, mailboxes: &[&str], mail: &[u8]) -> io::Result<u16> {
        let letters = self.letters;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Sender::connect(self.smtp)?),
        };
        connection.send(mailboxes, mail, || letters.note(subject, |letter| letter.tries += 1))
    }
}

/// The list of a mailbox, whose ids ascend; none when it cannot be had at the moment.
pub(crate) fn list(reader: &Reader, mailbox: &str) -> Option<Vec<Value>> {
    let list = reader.list(mailbox).ok()?;
    let ids: Vec<u64> = list.iter().map(|summary| summary["id"].as_str().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "the ids of {mailbox} do not ascend: {ids:?}");
    Some(list)
}

pub(crate) fn subject(summary: &Value) -> &str {
    summary["subject"].as_str().unwrap()
}

/// Whether this is the letter with this subject, behind the lines that were added on delivery.
pub(crate) fn is_whole(source: &[u8], subject: &str) -> bool {
    let start = source.windows(8).position(|window| window == b"Subject:").unwrap_or_default();
    source[start..] == letter(subject, source.len() - start)
}
