//! Checks that a server keeps what it has acknowledged. [`Client`] sends messages and requests changes, and records each request
//! before it is sent and each response. [`ExpectedState::check`] compares this with the content of a server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::rest::Reader;
use super::smtp::Sender;
use super::{Server, TEST_TIMEOUT};

/// What is known about a copy of a message in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    /// It was sent without a reply of 250: it may be stored.
    Sent,
    /// It must be stored.
    Stored,
    /// Its deletion was requested without a response: it may be stored.
    DeleteRequested,
    /// It must not be stored.
    Deleted,
}

#[derive(Debug)]
struct Copy {
    state: CopyState,
    length: usize,
    seen: bool,
}

/// All requests and responses, by mailbox and subject.
#[derive(Default)]
pub(crate) struct ExpectedState(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    copies: BTreeMap<String, BTreeMap<String, Copy>>,
    /// The mailboxes of each message, until the deletion of one of its copies is requested.
    messages: HashMap<String, Vec<String>>,
    /// Every id that was ever listed, with its subject.
    ids: HashMap<(String, u64), String>,
}

/// The number of copies that are lost, and of those that are listed but cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) lost: usize,
    pub(crate) unreadable: usize,
}

/// Returns a message of about this length. Each line contains the subject and its number, so lost or swapped bytes are detected.
pub(crate) fn message_source(subject: &str, length: usize) -> Vec<u8> {
    let mut text = format!("Subject: {subject}\r\n\r\n").into_bytes();
    for line in 0.. {
        if text.len() >= length {
            break;
        }
        // Long lines, because short ones would take long to generate.
        let line = format!("{subject} {line}: {:900}\r\n", "and there is more to come");
        text.extend_from_slice(line.as_bytes());
    }
    text
}

impl ExpectedState {
    /// Returns the number of copies that must be stored.
    pub(crate) fn stored_count(&self) -> usize {
        let inner = self.0.lock().unwrap();
        inner.copies.values().flat_map(BTreeMap::values).filter(|copy| copy.state == CopyState::Stored).count()
    }

    /// Reads the whole content of the server and compares it. Uncertain states become known.
    pub(crate) fn check(&self, server: &Server) {
        let mut inner = self.0.lock().unwrap();
        let Inner { copies, messages, ids } = &mut *inner;
        let reader = Reader::new(server.http);
        let mut stored = BTreeSet::new();
        for (mailbox, known) in &mut *copies {
            let found = check_mailbox(&reader, mailbox, known, ids);
            stored.extend(found.iter().map(|subject| (subject.clone(), mailbox.clone())));
            for (subject, copy) in known {
                let is_stored = found.contains(subject);
                match copy.state {
                    CopyState::Stored => assert!(is_stored, "{subject} is lost from {mailbox}"),
                    CopyState::Deleted => assert!(!is_stored, "{subject} is in {mailbox} again"),
                    CopyState::Sent | CopyState::DeleteRequested => {}
                }
                copy.state = if is_stored { CopyState::Stored } else { CopyState::Deleted };
            }
        }
        assert_eq!(list_all_copies(&reader), stored, "the list of all messages differs from the mailboxes");
        for (subject, mailboxes) in messages {
            let stored_count =
                mailboxes.iter().filter(|mailbox| copies[*mailbox][subject].state == CopyState::Stored).count();
            assert!(stored_count == 0 || stored_count == mailboxes.len(), "{subject} is in some of {mailboxes:?}");
        }
    }

    /// Reads the whole content of the server after a failure that it need not survive without loss. Everything that can be read must
    /// be correct.
    pub(crate) fn damage(&self, server: &Server) -> Damage {
        let inner = self.0.lock().unwrap();
        let reader = Reader::new(server.http);
        let (mut lost, mut unreadable) = (0, 0);
        for (mailbox, known) in &inner.copies {
            let mut found = BTreeSet::new();
            for summary in reader.list(mailbox).unwrap() {
                let subject = summary["subject"].as_str().unwrap();
                let (status, source) = reader.request("GET", &format!("{mailbox}/{}/source", id_of(&summary))).unwrap();
                match status {
                    200 => assert!(is_intact(&source, &summary, subject, &known[subject]), "{subject} is damaged"),
                    _ => unreadable += 1,
                }
                found.insert(subject.to_owned());
            }
            let is_lost =
                |(subject, copy): &(&String, &Copy)| copy.state == CopyState::Stored && !found.contains(*subject);
            lost += known.iter().filter(is_lost).count();
        }
        Damage { lost, unreadable }
    }

    fn update(&self, mailbox: &str, subject: &str, change: impl FnOnce(&mut Copy)) {
        let mut inner = self.0.lock().unwrap();
        change(inner.copies.get_mut(mailbox).unwrap().get_mut(subject).unwrap());
    }

    fn record_send(&self, subject: &str, mailboxes: &[&str], length: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.messages.insert(subject.to_owned(), mailboxes.iter().map(|&mailbox| mailbox.to_owned()).collect());
        for &mailbox in mailboxes {
            let copy = Copy { state: CopyState::Sent, length, seen: false };
            let before = inner.copies.entry(mailbox.to_owned()).or_default().insert(subject.to_owned(), copy);
            assert!(before.is_none(), "{subject} was sent before");
        }
    }

    fn record_delete_request(&self, mailbox: &str, subject: &str) {
        self.0.lock().unwrap().messages.remove(subject);
        self.update(mailbox, subject, |copy| copy.state = CopyState::DeleteRequested);
    }
}

/// Reads and compares every message of a mailbox. Returns their subjects.
fn check_mailbox(
    reader: &Reader,
    mailbox: &str,
    known: &BTreeMap<String, Copy>,
    ids: &mut HashMap<(String, u64), String>,
) -> BTreeSet<String> {
    let summaries = reader.list(mailbox).unwrap();
    let mut subjects = BTreeSet::new();
    let mut last = 0;
    for summary in &summaries {
        let (id, subject) = (id_of(summary), summary["subject"].as_str().unwrap());
        assert!(id > last, "the ids of {mailbox} do not ascend: {id} after {last}");
        last = id;
        let owner = ids.entry((mailbox.to_owned(), id)).or_insert_with(|| subject.to_owned());
        assert_eq!(owner, subject, "an id of {mailbox} was assigned twice");
        let Some(copy) = known.get(subject) else { panic!("{subject} was never sent to {mailbox}") };
        let (status, source) = reader.request("GET", &format!("{mailbox}/{id}/source")).unwrap();
        assert_eq!(status, 200, "{subject} in {mailbox} cannot be read: {}", String::from_utf8_lossy(&source));
        assert!(is_intact(&source, summary, subject, copy), "{subject} in {mailbox} is damaged");
        assert!(!copy.seen || summary["seen"] == true, "{subject} in {mailbox} is no longer seen");
        assert!(subjects.insert(subject.to_owned()), "{subject} is duplicated in {mailbox}");
    }
    assert_counted(reader, mailbox, &summaries);
    subjects
}

/// Reads the list of all messages. Returns the subject and the mailbox of each copy.
fn list_all_copies(reader: &Reader) -> BTreeSet<(String, String)> {
    let (mut copies, mut subjects, mut before) = (BTreeSet::new(), BTreeSet::new(), String::new());
    loop {
        let (status, text) = reader.get(&format!("v2/messages?limit=200{before}")).unwrap();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&text));
        let page: Value = serde_json::from_slice(&text).unwrap();
        for message in page["messages"].as_array().unwrap() {
            let subject = message["subject"].as_str().unwrap();
            assert!(subjects.insert(subject.to_owned()), "{subject} is listed twice");
            let mailboxes = message["mailboxes"].as_array().unwrap();
            assert!(!mailboxes.is_empty(), "{subject} has no copies");
            copies.extend(mailboxes.iter().map(|name| (subject.to_owned(), name.as_str().unwrap().to_owned())));
        }
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return copies,
        }
    }
}

/// Checks that the list of mailboxes matches the content of this one.
fn assert_counted(reader: &Reader, mailbox: &str, summaries: &[Value]) {
    let (status, text) = reader.get(&format!("v2/mailboxes?prefix={mailbox}&limit=1")).unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&text));
    let list: Value = serde_json::from_slice(&text).unwrap();
    let listed = list["mailboxes"].get(0).filter(|listed| listed["name"] == mailbox);
    let unseen = summaries.iter().filter(|summary| summary["seen"] == false).count();
    let bytes: u64 = summaries.iter().filter_map(|summary| summary["size"].as_u64()).sum();
    let expected = summaries.last().map(|newest| {
        let newest = json!({"id": newest["id"], "date": newest["date"], "posix-millis": newest["posix-millis"]});
        json!({"name": mailbox, "messages": summaries.len(), "unseen": unseen, "bytes": bytes, "newest": newest})
    });
    assert_eq!(listed, expected.as_ref(), "the list of mailboxes is wrong about {mailbox}");
}

/// Returns whether these are the bytes of the message, after the header fields that were added on delivery.
fn is_intact(source: &[u8], summary: &Value, subject: &str, copy: &Copy) -> bool {
    summary["size"] == source.len()
        && source.starts_with(b"Return-Path: <ann@x.org>\r\n")
        && source.ends_with(&message_source(subject, copy.length))
}

fn id_of(summary: &Value) -> u64 {
    summary["id"].as_str().unwrap().parse().unwrap()
}

/// An SMTP and REST client. Errors are broken connections because the server was killed.
pub(crate) struct Client<'a> {
    state: &'a ExpectedState,
    smtp: Sender,
    http: Reader,
}

impl<'a> Client<'a> {
    pub(crate) fn new(server: &Server, state: &'a ExpectedState) -> io::Result<Self> {
        Ok(Self { state, smtp: Sender::connect(server.smtp)?, http: Reader::new(server.http) })
    }

    /// Sends a message, and returns the code of the reply.
    pub(crate) fn send(&mut self, subject: &str, mailboxes: &[&str], length: usize) -> io::Result<u16> {
        self.state.record_send(subject, mailboxes, length);
        let code = self.smtp.send(mailboxes, &message_source(subject, length), || ())?;
        if code == 250 {
            for mailbox in mailboxes {
                // Another client may have deleted it before the reply arrived.
                self.state.update(mailbox, subject, |copy| {
                    if copy.state == CopyState::Sent {
                        copy.state = CopyState::Stored;
                    }
                });
            }
        }
        Ok(code)
    }

    /// Returns the ids and subjects in a mailbox.
    pub(crate) fn list(&self, mailbox: &str) -> io::Result<Vec<(u64, String)>> {
        let entry = |summary: &Value| (id_of(summary), summary["subject"].as_str().unwrap().to_owned());
        Ok(self.http.list(mailbox)?.iter().map(entry).collect())
    }

    /// Deletes a message, and returns the status of the response.
    pub(crate) fn delete(&self, mailbox: &str, id: u64, subject: &str) -> io::Result<u16> {
        self.state.record_delete_request(mailbox, subject);
        let (status, _) = self.http.request("DELETE", &format!("{mailbox}/{id}"))?;
        if status == 200 {
            self.state.update(mailbox, subject, |copy| copy.state = CopyState::Deleted);
        }
        Ok(status)
    }

    /// Marks a message as seen, and returns the status of the response.
    pub(crate) fn mark(&self, mailbox: &str, id: u64, subject: &str) -> io::Result<u16> {
        let (status, _) = self.http.request("PATCH", &format!("{mailbox}/{id}"))?;
        if status == 200 {
            self.state.update(mailbox, subject, |copy| copy.seen = true);
        }
        Ok(status)
    }

    /// Purges a mailbox that no other client sends to, and returns the status of the response.
    pub(crate) fn purge(&self, mailbox: &str) -> io::Result<u16> {
        let listed = self.list(mailbox)?;
        for (_, subject) in &listed {
            self.state.record_delete_request(mailbox, subject);
        }
        let (status, _) = self.http.request("DELETE", mailbox)?;
        if status == 200 {
            for (_, subject) in &listed {
                self.state.update(mailbox, subject, |copy| copy.state = CopyState::Deleted);
            }
        }
        Ok(status)
    }
}

/// Waits until a condition holds. Fails with this message after [`TEST_TIMEOUT`].
pub(crate) fn eventually(message: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "{message}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
