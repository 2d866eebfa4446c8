//! Compares the index with the store in small steps, so that new events are handled in between. First it removes the
//! entries of deleted messages and corrects read marks, then it adds missing messages.

use std::vec::IntoIter;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mailroom::{MailboxPage, Page};

use crate::index::Changes;
use crate::index_operations::{IndexOperations, IndexingError};

/// The maximum number of messages compared in one step. They are written in one transaction.
const MESSAGES_PER_STEP: usize = 1024;
/// The number of mailboxes per query of the store.
const MAILBOXES_PER_PAGE: usize = 1000;

/// A comparison in progress.
pub(crate) struct CatchUp {
    /// The id up to which existing entries were verified; `None` once that phase is done.
    verified_up_to: Option<MessageId>,
    /// Only messages with higher ids can be missing in the index.
    above: MessageId,
    /// The mailboxes still to compare.
    mailboxes: IntoIter<MailboxName>,
    /// The next page of mailboxes to query.
    page: MailboxPage,
    /// The mailbox being compared, and the last id that was compared.
    current: Option<(MailboxName, MessageId)>,
}

impl CatchUp {
    /// Compares all messages.
    pub(crate) fn everything() -> Self {
        Self { verified_up_to: Some(MessageId::ZERO), ..Self::above(MessageId::ZERO) }
    }

    /// Looks only for missing messages with ids above this one.
    pub(crate) fn above(above: MessageId) -> Self {
        Self {
            verified_up_to: None,
            above,
            mailboxes: Vec::new().into_iter(),
            page: MailboxPage { limit: MAILBOXES_PER_PAGE, ..MailboxPage::ALL },
            current: None,
        }
    }

    /// Runs one step. Returns true if that was the last one.
    pub(crate) fn step(&mut self, operations: &mut IndexOperations) -> Result<bool, IndexingError> {
        if let Some(verified) = self.verified_up_to {
            self.verified_up_to = verify_entries(operations, verified)?;
            return Ok(false);
        }
        let mut messages = Vec::new();
        while messages.len() < MESSAGES_PER_STEP
            && let Some((mailbox, after)) = self.current.take().or_else(|| self.next_mailbox())
        {
            let page = Page { limit: Some(MESSAGES_PER_STEP - messages.len()), before: None, after: Some(after) };
            let listed = operations.with_mailroom(async |mailroom| mailroom.list(&mailbox, page).await)?.messages;
            if let Some(last) = listed.last() {
                self.current = Some((mailbox, last.id));
            }
            messages.extend(listed);
        }
        if messages.is_empty() {
            return self.fetch_mailboxes(operations);
        }
        // A message that is deleted from now on causes an event, which is applied after this addition.
        let missing = operations.with_index(|index| index.filter_missing(messages))?;
        operations.add_all(missing, Changes::default())?;
        Ok(false)
    }

    fn next_mailbox(&mut self) -> Option<(MailboxName, MessageId)> {
        Some((self.mailboxes.next()?, self.above))
    }

    fn fetch_mailboxes(&mut self, operations: &IndexOperations) -> Result<bool, IndexingError> {
        let states = operations.with_mailroom(async |mailroom| mailroom.mailboxes(self.page.clone()).await)?;
        let Some(last) = states.last() else { return Ok(true) };
        last.name.as_str().clone_into(&mut self.page.after);
        let newer = states.into_iter().filter(|state| state.newest.id > self.above);
        self.mailboxes = newer.map(|state| state.name).collect::<Vec<_>>().into_iter();
        Ok(false)
    }
}

/// Compares the next entries of the index with the store. Returns the id of the last one, or `None` if there were no
/// more.
fn verify_entries(operations: &IndexOperations, after: MessageId) -> Result<Option<MessageId>, IndexingError> {
    let entries = operations.with_index(|index| index.entries_after(after, MESSAGES_PER_STEP))?;
    let last = entries.last().map(|entry| entry.id);
    let mut changes = Changes::default();
    for entry in entries {
        match operations.find(&entry.mailbox, entry.id)? {
            None => changes.removed.push(entry.id),
            Some(summary) if !entry.agrees_with(&summary) => changes.update(&summary),
            Some(_) => {}
        }
    }
    operations.write(changes)?;
    Ok(last)
}
