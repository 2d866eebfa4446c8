//! Looks through the store for messages of which nobody was told, after an end that was not in good order. What there is too
//! much of is counted and left behind, the oldest first.

use std::collections::BTreeMap;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::{MailboxPage, Mailroom, Page, StoreError};

use crate::clerk::Gap;
use crate::intake::MAX_BYTES;

/// How many mailboxes, and how many messages of one, are asked for at once.
const PAGE: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The newest messages, the newest first.
    pub(crate) messages: Vec<Summary>,
    /// How many others there are.
    pub(crate) dropped: u64,
    /// How many of the others each lane is not told of.
    pub(crate) dropped_by_lane: BTreeMap<usize, u64>,
}

/// Finds the messages in a gap that somebody was to be told of, at most so many.
pub(crate) async fn search(
    mailroom: &Mailroom,
    gap: &Gap,
    most: usize,
    lanes_of: impl Fn(&str) -> Vec<usize>,
) -> Result<Found, StoreError> {
    let mut heap = Heap { most, ..Heap::default() };
    let mut page = MailboxPage { limit: PAGE, ..MailboxPage::ALL };
    loop {
        let mailboxes = mailroom.mailboxes(page.clone()).await?;
        let Some(last) = mailboxes.last() else { return Ok(heap.into_found()) };
        page.after = last.name.as_str().to_owned();
        for mailbox in mailboxes {
            let lanes = lanes_of(mailbox.name.as_str());
            if mailbox.newest.id.number() > gap.missed.above && !lanes.is_empty() {
                search_mailbox(mailroom, gap, &mailbox.name, &lanes, &mut heap).await?;
            }
        }
    }
}

async fn search_mailbox(
    mailroom: &Mailroom,
    gap: &Gap,
    mailbox: &MailboxName,
    lanes: &[usize],
    heap: &mut Heap,
) -> Result<(), StoreError> {
    let mut after = MessageId::from(gap.missed.above);
    loop {
        let page = Page { limit: Some(PAGE), before: None, after: Some(after) };
        let messages = mailroom.list(mailbox, page).await?.messages;
        let Some(last) = messages.last() else { return Ok(()) };
        after = last.id;
        for summary in messages {
            let id = summary.id.number();
            if id > gap.end {
                return Ok(());
            }
            if !gap.missed.taken.contains(&(id, mailbox.as_str().to_owned())) {
                heap.add(summary, lanes);
            }
        }
    }
}

/// The newest messages of those that were added.
#[derive(Default)]
struct Heap {
    messages: BTreeMap<(MessageId, MailboxName), (Summary, Vec<usize>)>,
    bytes: usize,
    most: usize,
    dropped: u64,
    dropped_by_lane: BTreeMap<usize, u64>,
}

impl Heap {
    fn add(&mut self, summary: Summary, lanes: &[usize]) {
        self.bytes += summary.headline.text_len();
        self.messages.insert((summary.id, summary.mailbox.clone()), (summary, lanes.to_vec()));
        while self.messages.len() > self.most || self.bytes > MAX_BYTES {
            let Some((_, (oldest, lanes))) = self.messages.pop_first() else { return };
            self.bytes -= oldest.headline.text_len();
            self.dropped += 1;
            for lane in lanes {
                *self.dropped_by_lane.entry(lane).or_default() += 1;
            }
        }
    }

    fn into_found(self) -> Found {
        let messages = self.messages.into_values().rev().map(|(summary, _)| summary).collect();
        Found { messages, dropped: self.dropped, dropped_by_lane: self.dropped_by_lane }
    }
}
