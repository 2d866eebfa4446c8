//! Comparing the index with the store, a step at a time, so that news have their turn in between. First what the index has and
//! should not, then what it lacks.

use std::vec::IntoIter;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mailroom::{MailboxPage, Page};

use crate::index::Changes;
use crate::index_operations::{IndexOperations, IndexingError};

/// How many messages are looked at in a step.
const MESSAGES_PER_STEP: usize = 256;
/// How many mailboxes are asked for at once.
const MAILBOXES_PER_PAGE: usize = 1000;

/// See the file's documentation.
pub(crate) struct CatchUp {
    /// The id up to which it was seen to that nothing is too much, until that is done.
    verified_up_to: Option<MessageId>,
    /// What the index may lack has ids above this one.
    above: MessageId,
    /// The mailboxes that are to be looked at, and the one behind which others are to be asked for.
    mailboxes: IntoIter<MailboxName>,
    page: MailboxPage,
    /// The mailbox that is looked at, and how far.
    current: Option<(MailboxName, MessageId)>,
}

impl CatchUp {
    /// Looks at all messages.
    pub(crate) fn everything() -> Self {
        Self { verified_up_to: Some(MessageId::ZERO), ..Self::above(MessageId::ZERO) }
    }

    /// Looks for messages with higher ids that the index does not have.
    pub(crate) fn above(above: MessageId) -> Self {
        Self {
            verified_up_to: None,
            above,
            mailboxes: Vec::new().into_iter(),
            page: MailboxPage { limit: MAILBOXES_PER_PAGE, ..MailboxPage::ALL },
            current: None,
        }
    }

    /// Goes a step further. Whether that was the last one.
    pub(crate) fn step(&mut self, filing: &mut IndexOperations) -> Result<bool, IndexingError> {
        if let Some(checked) = self.verified_up_to {
            self.verified_up_to = verify_entries(filing, checked)?;
            return Ok(false);
        }
        let Some((mailbox, after)) = self.current.take().or_else(|| self.next_mailbox()) else {
            return self.fetch_mailboxes(filing);
        };
        let page = Page { limit: Some(MESSAGES_PER_STEP), before: None, after: Some(after) };
        let messages = filing.with_mailroom(async |mailroom| mailroom.list(&mailbox, page).await)?.messages;
        if let Some(last) = messages.last() {
            self.current = Some((mailbox, last.id));
        }
        // Whatever is deleted from now on is heard of after it was added.
        let missing = filing.with_index(|index| index.filter_missing(messages))?;
        filing.add_all(missing)?;
        Ok(false)
    }

    fn next_mailbox(&mut self) -> Option<(MailboxName, MessageId)> {
        Some((self.mailboxes.next()?, self.above))
    }

    fn fetch_mailboxes(&mut self, filing: &IndexOperations) -> Result<bool, IndexingError> {
        let states = filing.with_mailroom(async |mailroom| mailroom.mailboxes(self.page.clone()).await)?;
        let Some(last) = states.last() else { return Ok(true) };
        last.name.as_str().clone_into(&mut self.page.after);
        let with_news = states.into_iter().filter(|state| state.newest.id > self.above);
        self.mailboxes = with_news.map(|state| state.name).collect::<Vec<_>>().into_iter();
        Ok(false)
    }
}

/// Compares the next messages in the index with the store. The id of the last one; none when there was none.
fn verify_entries(filing: &IndexOperations, after: MessageId) -> Result<Option<MessageId>, IndexingError> {
    let held = filing.with_index(|index| index.entries_after(after, MESSAGES_PER_STEP))?;
    let last = held.last().map(|(_, id, _)| *id);
    let mut changes = Changes::default();
    for (mailbox, id, seen) in held {
        match filing.find(&mailbox, id)? {
            None => changes.removed.push(id),
            Some(summary) if summary.seen != seen => changes.seen.push((id, summary.seen)),
            Some(_) => {}
        }
    }
    filing.write(changes)?;
    Ok(last)
}
