//! Finds stored messages for which no event was recorded, after a shutdown that was not clean. If there are too many,
//! the oldest are counted and dropped.

use std::collections::BTreeMap;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::{MailboxPage, Mailroom, Page, StoreError};

use crate::inbox::MAX_INBOX_BYTES;
use crate::persist_worker::Gap;

/// How many mailboxes, or messages of a mailbox, are listed at once.
const PAGE_SIZE: usize = 1000;

/// The result of the search.
#[derive(Debug, Default)]
pub(crate) struct MissedMessages {
    /// The newest messages, newest first.
    pub(crate) messages: Vec<Summary>,
    /// The number of older messages that were dropped.
    pub(crate) dropped: u64,
    /// The number of dropped messages by target index.
    pub(crate) dropped_by_target: BTreeMap<usize, u64>,
}

/// Finds the messages in `gap` that match a target, at most `max_messages`.
pub(crate) async fn find_missed(
    mailroom: &Mailroom,
    gap: &Gap,
    max_messages: usize,
    matching_targets: impl Fn(&str) -> Vec<usize>,
) -> Result<MissedMessages, StoreError> {
    let mut newest = NewestMessages { max_messages, ..NewestMessages::default() };
    let mut page = MailboxPage { limit: PAGE_SIZE, ..MailboxPage::ALL };
    loop {
        let mailboxes = mailroom.mailboxes(page.clone()).await?;
        let Some(last) = mailboxes.last() else { return Ok(newest.into_missed()) };
        page.after = last.name.as_str().to_owned();
        for mailbox in mailboxes {
            let targets = matching_targets(mailbox.name.as_str());
            if mailbox.newest.id.number() > gap.missed.floor && !targets.is_empty() {
                find_missed_in_mailbox(mailroom, gap, &mailbox.name, &targets, &mut newest).await?;
            }
        }
    }
}

async fn find_missed_in_mailbox(
    mailroom: &Mailroom,
    gap: &Gap,
    mailbox: &MailboxName,
    targets: &[usize],
    newest: &mut NewestMessages,
) -> Result<(), StoreError> {
    let mut after = MessageId::from(gap.missed.floor);
    loop {
        let page = Page { limit: Some(PAGE_SIZE), before: None, after: Some(after) };
        let messages = mailroom.list(mailbox, page).await?.messages;
        let Some(last) = messages.last() else { return Ok(()) };
        after = last.id;
        for summary in messages {
            let id = summary.id.number();
            if id > gap.end_id {
                return Ok(());
            }
            if !gap.missed.processed.contains(&(id, mailbox.as_str().to_owned())) {
                newest.add(summary, targets);
            }
        }
    }
}

/// Collects the newest of all added messages.
#[derive(Default)]
struct NewestMessages {
    messages: BTreeMap<(MessageId, MailboxName), (Summary, Vec<usize>)>,
    bytes: usize,
    max_messages: usize,
    dropped: u64,
    dropped_by_target: BTreeMap<usize, u64>,
}

impl NewestMessages {
    fn add(&mut self, summary: Summary, targets: &[usize]) {
        self.bytes += summary.text_len();
        self.messages.insert((summary.id, summary.mailbox.clone()), (summary, targets.to_vec()));
        while self.messages.len() > self.max_messages || self.bytes > MAX_INBOX_BYTES {
            let Some((_, (oldest, targets))) = self.messages.pop_first() else { return };
            self.bytes -= oldest.text_len();
            self.dropped += 1;
            for target in targets {
                *self.dropped_by_target.entry(target).or_default() += 1;
            }
        }
    }

    fn into_missed(self) -> MissedMessages {
        let messages = self.messages.into_values().rev().map(|(summary, _)| summary).collect();
        MissedMessages { messages, dropped: self.dropped, dropped_by_target: self.dropped_by_target }
    }
}
