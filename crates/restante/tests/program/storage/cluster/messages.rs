//! Messages that are retried until they are acknowledged, as mail servers do. The attempts are recorded and compared with the content
//! of the nodes.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::durability::message_source;
use crate::support::rest::Reader;
use crate::support::smtp::Sender;

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The maximum time until a message is accepted.
const ACCEPT_TIMEOUT: Duration = Duration::from_mins(1);

/// All sent messages and their state.
#[derive(Default)]
pub(crate) struct SentMessages {
    by_subject: Mutex<BTreeMap<String, SentMessage>>,
    /// The number of attempts with a reply of 451, and with a broken connection.
    pub(crate) refused: AtomicUsize,
    pub(crate) broken: AtomicUsize,
}

/// What the sender knows about a message.
#[derive(Clone, Debug)]
struct SentMessage {
    mailboxes: Vec<String>,
    /// How often it was sent completely, so that it may have been stored.
    attempts: usize,
    is_acknowledged: bool,
}

impl SentMessages {
    /// Returns the number of messages.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// Returns the subjects that must be in a mailbox.
    pub(crate) fn acknowledged(&self, mailbox: &str) -> Vec<String> {
        let all = self.all();
        let acknowledged = all
            .iter()
            .filter(|(_, message)| message.is_acknowledged && message.mailboxes.iter().any(|name| name == mailbox));
        acknowledged.map(|(subject, _)| subject.clone()).collect()
    }

    /// Checks mailboxes without deletions: they contain every acknowledged message at least once and at most once per attempt, the same
    /// number in each of its mailboxes, and nothing else.
    pub(crate) fn check(&self, found: &BTreeMap<String, Vec<Value>>) {
        let all = self.all();
        let mut copies: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (mailbox, list) in found {
            for summary in list {
                *copies.entry((subject(summary), mailbox)).or_default() += 1;
            }
        }
        for (name, message) in &*all {
            assert!(message.is_acknowledged, "{name} was never accepted");
            let here = message.mailboxes.iter().filter(|mailbox| found.contains_key(*mailbox));
            let counts: Vec<usize> = here.map(|mailbox| copies.remove(&(name, mailbox)).unwrap_or_default()).collect();
            let first = counts.first().copied().unwrap_or(1);
            assert!((1..=message.attempts).contains(&first), "{name}: {first} of {message:?}");
            assert!(
                counts.iter().all(|count| *count == first),
                "{name} is in some of its mailboxes: {counts:?}, {message:?}"
            );
        }
        assert!(copies.is_empty(), "never sent: {copies:?}");
    }

    fn update(&self, subject: &str, change: impl FnOnce(&mut SentMessage)) {
        change(self.all().get_mut(subject).unwrap());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, SentMessage>> {
        self.by_subject.lock().unwrap()
    }
}

/// Sends messages one after the other, and retries each until it is acknowledged.
pub(crate) struct RetryingSender<'a> {
    messages: &'a SentMessages,
    smtp: SocketAddr,
    connection: Option<Sender>,
}

impl<'a> RetryingSender<'a> {
    pub(crate) fn new(messages: &'a SentMessages, smtp: SocketAddr) -> Self {
        Self { messages, smtp, connection: None }
    }

    /// Sends a message of about this length until it is acknowledged.
    pub(crate) fn send(&mut self, subject: &str, mailboxes: &[&str], length: usize) {
        let owned = mailboxes.iter().map(|&mailbox| mailbox.to_owned()).collect();
        let new = SentMessage { mailboxes: owned, attempts: 0, is_acknowledged: false };
        assert!(self.messages.all().insert(subject.to_owned(), new).is_none(), "{subject} was sent before");
        let mail = message_source(subject, length);
        let start = Instant::now();
        while !self.attempt(subject, mailboxes, &mail) {
            assert!(start.elapsed() < ACCEPT_TIMEOUT, "{subject} is not accepted");
            thread::sleep(RETRY_PAUSE);
        }
        self.messages.update(subject, |message| message.is_acknowledged = true);
    }

    /// Returns whether the message was acknowledged. If not, the next attempt uses a new connection, perhaps to another node.
    fn attempt(&mut self, subject: &str, mailboxes: &[&str], mail: &[u8]) -> bool {
        let failed = match self.try_once(subject, mailboxes, mail) {
            Ok(250) => return true,
            Ok(451) => &self.messages.refused,
            Ok(code) => panic!("unexpected reply to {subject}: {code}"),
            Err(_) => &self.messages.broken,
        };
        failed.fetch_add(1, Ordering::Relaxed);
        self.connection = None;
        false
    }

    fn try_once(&mut self, subject: &str, mailboxes: &[&str], mail: &[u8]) -> io::Result<u16> {
        let messages = self.messages;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Sender::connect(self.smtp)?),
        };
        connection.send(mailboxes, mail, || messages.update(subject, |message| message.attempts += 1))
    }
}

/// Lists a mailbox and checks that the ids ascend. Returns `None` if the list is not available now.
pub(crate) fn list(reader: &Reader, mailbox: &str) -> Option<Vec<Value>> {
    let list = reader.list(mailbox).ok()?;
    let ids: Vec<u64> = list.iter().map(|summary| summary["id"].as_str().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "the ids of {mailbox} do not ascend: {ids:?}");
    Some(list)
}

pub(crate) fn subject(summary: &Value) -> &str {
    summary["subject"].as_str().unwrap()
}

/// Returns whether this is the message with this subject, after the header fields that were added on delivery.
pub(crate) fn is_intact(source: &[u8], subject: &str) -> bool {
    let start = source.windows(8).position(|window| window == b"Subject:").unwrap_or_default();
    source[start..] == message_source(subject, source.len() - start)
}
