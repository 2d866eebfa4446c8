//! What a server has promised about mail, and whether it kept that. [`Client`] sends letters and asks for changes, and
//! notes what was asked before it asks and what was answered when there was an answer; [`Promises::check`] compares with
//! what a server holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::rest::Reader;
use super::smtp::Sender;
use super::{LONG, Server};

/// What is known about a copy of a letter in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was sent, and not answered with 250: it may be there.
    Sent,
    /// It must be there.
    Kept,
    /// It was asked to be deleted, without an answer: it may be there.
    Doomed,
    /// It must not be there.
    Gone,
}

#[derive(Debug)]
struct Copy {
    fate: Fate,
    length: usize,
    seen: bool,
}

/// All that was asked and answered, by mailbox and subject.
#[derive(Default)]
pub(crate) struct Promises(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    copies: BTreeMap<String, BTreeMap<String, Copy>>,
    /// The mailboxes of each letter, until one of its copies is asked to be deleted.
    letters: HashMap<String, Vec<String>>,
    /// Every id that was ever seen, and what it was given to.
    ids: HashMap<(String, u64), String>,
}

/// How many copies are no longer there, and how many are listed but cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) lost: usize,
    pub(crate) unreadable: usize,
}

/// A letter of about this length, whose lines say where they are from: bytes that are lost, or another letter's, show.
pub(crate) fn letter(subject: &str, length: usize) -> Vec<u8> {
    let mut text = format!("Subject: {subject}\r\n\r\n").into_bytes();
    for line in 0.. {
        if text.len() >= length {
            break;
        }
        // Long lines, because short ones take long to make.
        let line = format!("{subject} {line}: {:900}\r\n", "and there is more to come");
        text.extend_from_slice(line.as_bytes());
    }
    text
}

impl Promises {
    /// How many copies must be there.
    pub(crate) fn kept(&self) -> usize {
        let inner = self.0.lock().unwrap();
        inner.copies.values().flat_map(BTreeMap::values).filter(|copy| copy.fate == Fate::Kept).count()
    }

    /// Reads all that the server holds. What was in doubt is known from then on.
    pub(crate) fn check(&self, server: &Server) {
        let mut inner = self.0.lock().unwrap();
        let Inner { copies, letters, ids } = &mut *inner;
        let reader = Reader::new(server.http);
        for (mailbox, known) in &mut *copies {
            let found = found(&reader, mailbox, known, ids);
            for (subject, copy) in known {
                let there = found.contains(subject);
                match copy.fate {
                    Fate::Kept => assert!(there, "{subject} is lost from {mailbox}"),
                    Fate::Gone => assert!(!there, "{subject} is in {mailbox} again"),
                    Fate::Sent | Fate::Doomed => {}
                }
                copy.fate = if there { Fate::Kept } else { Fate::Gone };
            }
        }
        for (subject, mailboxes) in letters {
            let kept = mailboxes.iter().filter(|mailbox| copies[*mailbox][subject].fate == Fate::Kept).count();
            assert!(kept == 0 || kept == mailboxes.len(), "{subject} is in some of {mailboxes:?}");
        }
    }

    /// Reads all that the server holds after a loss that it did not promise to survive. Whatever can be read must be
    /// right.
    pub(crate) fn damage(&self, server: &Server) -> Damage {
        let inner = self.0.lock().unwrap();
        let reader = Reader::new(server.http);
        let (mut lost, mut unreadable) = (0, 0);
        for (mailbox, known) in &inner.copies {
            let mut found = BTreeSet::new();
            for summary in reader.list(mailbox).unwrap() {
                let subject = summary["subject"].as_str().unwrap();
                let (status, source) = reader.ask("GET", &format!("{mailbox}/{}/source", id_of(&summary))).unwrap();
                match status {
                    200 => assert!(is_whole(&source, &summary, subject, &known[subject]), "{subject} is damaged"),
                    _ => unreadable += 1,
                }
                found.insert(subject.to_owned());
            }
            let is_lost = |(subject, copy): &(&String, &Copy)| copy.fate == Fate::Kept && !found.contains(*subject);
            lost += known.iter().filter(is_lost).count();
        }
        Damage { lost, unreadable }
    }

    fn note(&self, mailbox: &str, subject: &str, change: impl FnOnce(&mut Copy)) {
        let mut inner = self.0.lock().unwrap();
        change(inner.copies.get_mut(mailbox).unwrap().get_mut(subject).unwrap());
    }

    fn sends(&self, subject: &str, mailboxes: &[&str], length: usize) {
        let mut inner = self.0.lock().unwrap();
        inner.letters.insert(subject.to_owned(), mailboxes.iter().map(|&mailbox| mailbox.to_owned()).collect());
        for &mailbox in mailboxes {
            let copy = Copy { fate: Fate::Sent, length, seen: false };
            let before = inner.copies.entry(mailbox.to_owned()).or_default().insert(subject.to_owned(), copy);
            assert!(before.is_none(), "{subject} was sent before");
        }
    }

    fn dooms(&self, mailbox: &str, subject: &str) {
        self.0.lock().unwrap().letters.remove(subject);
        self.note(mailbox, subject, |copy| copy.fate = Fate::Doomed);
    }
}

/// The subjects that a mailbox holds; every message is read and compared.
fn found(
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
        assert_eq!(owner, subject, "an id of {mailbox} was given twice");
        let Some(copy) = known.get(subject) else { panic!("nobody sent {subject} to {mailbox}") };
        let (status, source) = reader.ask("GET", &format!("{mailbox}/{id}/source")).unwrap();
        assert_eq!(status, 200, "{subject} in {mailbox} cannot be read: {}", String::from_utf8_lossy(&source));
        assert!(is_whole(&source, summary, subject, copy), "{subject} in {mailbox} is damaged");
        assert!(!copy.seen || summary["seen"] == true, "{subject} in {mailbox} is no longer seen");
        assert!(subjects.insert(subject.to_owned()), "{subject} is twice in {mailbox}");
    }
    assert_counted(reader, mailbox, &summaries);
    subjects
}

/// What the list of mailboxes says of this one must be what is in it.
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
    assert_eq!(listed, expected.as_ref(), "{mailbox} is listed as another");
}

/// Whether these are the bytes of the letter, behind the lines that were added on delivery.
fn is_whole(source: &[u8], summary: &Value, subject: &str, copy: &Copy) -> bool {
    summary["size"] == source.len()
        && source.starts_with(b"Return-Path: <ann@x.org>\r\n")
        && source.ends_with(&letter(subject, copy.length))
}

fn id_of(summary: &Value) -> u64 {
    summary["id"].as_str().unwrap().parse().unwrap()
}

/// One sender and reader. Errors are those of connections that break because the server was killed.
pub(crate) struct Client<'a> {
    promises: &'a Promises,
    smtp: Sender,
    http: Reader,
}

impl<'a> Client<'a> {
    pub(crate) fn new(server: &Server, promises: &'a Promises) -> io::Result<Self> {
        Ok(Self { promises, smtp: Sender::connect(server.smtp)?, http: Reader::new(server.http) })
    }

    /// Sends a letter, and returns the code that answers it.
    pub(crate) fn send(&mut self, subject: &str, mailboxes: &[&str], length: usize) -> io::Result<u16> {
        self.promises.sends(subject, mailboxes, length);
        let code = self.smtp.send(mailboxes, &letter(subject, length), || ())?;
        if code == 250 {
            for mailbox in mailboxes {
                // Somebody may have found it and deleted it before its sender had the answer.
                self.promises.note(mailbox, subject, |copy| {
                    if copy.fate == Fate::Sent {
                        copy.fate = Fate::Kept;
                    }
                });
            }
        }
        Ok(code)
    }

    /// The ids and subjects that a mailbox holds.
    pub(crate) fn list(&self, mailbox: &str) -> io::Result<Vec<(u64, String)>> {
        let entry = |summary: &Value| (id_of(summary), summary["subject"].as_str().unwrap().to_owned());
        Ok(self.http.list(mailbox)?.iter().map(entry).collect())
    }

    /// Deletes a message, and returns the status that answers it.
    pub(crate) fn delete(&self, mailbox: &str, id: u64, subject: &str) -> io::Result<u16> {
        self.promises.dooms(mailbox, subject);
        let (status, _) = self.http.ask("DELETE", &format!("{mailbox}/{id}"))?;
        if status == 200 {
            self.promises.note(mailbox, subject, |copy| copy.fate = Fate::Gone);
        }
        Ok(status)
    }

    /// Marks a message as seen, and returns the status that answers it.
    pub(crate) fn mark(&self, mailbox: &str, id: u64, subject: &str) -> io::Result<u16> {
        let (status, _) = self.http.ask("PATCH", &format!("{mailbox}/{id}"))?;
        if status == 200 {
            self.promises.note(mailbox, subject, |copy| copy.seen = true);
        }
        Ok(status)
    }

    /// Purges a mailbox that nobody else sends to, and returns the status that answers it.
    pub(crate) fn purge(&self, mailbox: &str) -> io::Result<u16> {
        let held = self.list(mailbox)?;
        for (_, subject) in &held {
            self.promises.dooms(mailbox, subject);
        }
        let (status, _) = self.http.ask("DELETE", mailbox)?;
        if status == 200 {
            for (_, subject) in &held {
                self.promises.note(mailbox, subject, |copy| copy.fate = Fate::Gone);
            }
        }
        Ok(status)
    }
}

/// Asks again and again, because it is done in the background.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + LONG;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
