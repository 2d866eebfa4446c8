//! What the writer knows about the whole store without asking the database: counters, segments, and the mailboxes that
//! changed last. Books hold committed facts only; a transaction collects its [`Changes`](super::changes::Changes) beside
//! them, and they are entered when it is durable.

use std::collections::{BTreeMap, HashMap};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use rusqlite::Connection;

use super::rows::number;
use crate::{Result, Usage};

/// The row of the table `state`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) last_id: MessageId,
    pub(super) last_version: u64,
    pub(super) usage: Usage,
}

/// A row of the table `segments`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentBook {
    /// How far it is written.
    pub(super) end: u64,
    /// How much of it is in use.
    pub(super) live: u64,
}

/// A row of the table `mailboxes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MailboxBook {
    pub(super) messages: u64,
    pub(super) version: u64,
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) counters: Counters,
    pub(super) segments: BTreeMap<u64, SegmentBook>,
}

impl Books {
    /// Reads what the database says.
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let counters =
            connection.query_row("SELECT last_id, last_version, messages, mailboxes, bytes FROM state", [], |row| {
                let usage = Usage { messages: number(row, 2)?, mailboxes: number(row, 3)?, bytes: number(row, 4)? };
                Ok(Counters { last_id: number(row, 0)?.into(), last_version: number(row, 1)?, usage })
            })?;
        let mut statement = connection.prepare("SELECT id, end, live FROM segments")?;
        let rows = statement
            .query_map([], |row| Ok((number(row, 0)?, SegmentBook { end: number(row, 1)?, live: number(row, 2)? })))?;
        let segments = rows.collect::<rusqlite::Result<_>>()?;
        Ok(Self { counters, segments })
    }
}

/// The mailboxes that changed last, as they are committed. A mailbox that is not here has to be looked up; one that is
/// here holds something.
#[derive(Default)]
pub(super) struct Recent {
    /// When this half is full it becomes the old one, and what nobody touched since is forgotten.
    young: HashMap<MailboxName, MailboxBook>,
    old: HashMap<MailboxName, MailboxBook>,
}

impl Recent {
    /// How many mailboxes one half remembers: a megabyte or two in all, with names of usual length.
    const HALF: usize = 4096;

    pub(super) fn find(&self, mailbox: &MailboxName) -> Option<MailboxBook> {
        self.young.get(mailbox).or_else(|| self.old.get(mailbox)).copied()
    }

    pub(super) fn enter(&mut self, mailbox: MailboxName, book: MailboxBook) {
        if book.messages == 0 {
            return self.forget([&mailbox]);
        }
        if self.young.len() >= Self::HALF && !self.young.contains_key(&mailbox) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(mailbox, book);
    }

    pub(super) fn forget<'a>(&mut self, mailboxes: impl IntoIterator<Item = &'a MailboxName>) {
        for mailbox in mailboxes {
            self.young.remove(mailbox);
            self.old.remove(mailbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_mailboxes_are_bounded_and_never_out_of_date() {
        let mut recent = Recent::default();
        let name = |number: u64| MailboxName::from(format!("box{number}"));
        for number in 0..20_000 {
            recent.enter(name(number), MailboxBook { messages: 1, version: number });
            recent.enter(name(0), MailboxBook { messages: number + 1, version: number });
            assert_eq!(recent.find(&name(0)), Some(MailboxBook { messages: number + 1, version: number }));
            assert!(recent.young.len() + recent.old.len() <= 2 * Recent::HALF);
        }
        recent.enter(name(0), MailboxBook::default());
        assert_eq!(recent.find(&name(0)), None);
        assert_eq!(recent.find(&name(1)), None);
    }
}
