//! Compares the index with the store in small steps, so that new events are handled in between. First it removes the
//! entries of deleted messages and corrects read marks and tags, then it adds missing messages.

use restante_mail::message::{Message, MessageId, Summary};
use restante_mailroom::Page;

use crate::index::Changes;
use crate::index_operations::{IndexOperations, IndexingError};

/// The maximum number of messages compared in one step. They are written in one transaction.
const MESSAGES_PER_STEP: usize = 1024;
/// The maximum number of copies of a message: that of `smtp.maxrecipients`.
const MAX_COPIES: u64 = 1_000_000;

/// A comparison in progress.
pub(crate) struct CatchUp {
    /// The id up to which existing entries were verified; `None` once that phase is done.
    verified_up_to: Option<MessageId>,
    /// The copy up to which missing messages were added.
    added_up_to: MessageId,
}

impl CatchUp {
    /// Compares all messages.
    pub(crate) fn everything() -> Self {
        Self { verified_up_to: Some(MessageId::ZERO), added_up_to: MessageId::ZERO }
    }

    /// Looks only for missing messages with ids above this one. It can be the id of a copy whose message has other copies,
    /// so the search starts a little earlier.
    pub(crate) fn above(above: MessageId) -> Self {
        Self { verified_up_to: None, added_up_to: above.number().saturating_sub(MAX_COPIES).into() }
    }

    /// Runs one step. Returns true if that was the last one. Messages are added in the order of their ids, because
    /// queries read the newest entries first.
    pub(crate) fn step(&mut self, operations: &mut IndexOperations) -> Result<bool, IndexingError> {
        if let Some(verified) = self.verified_up_to {
            self.verified_up_to = verify_entries(operations, verified)?;
            return Ok(false);
        }
        let page = Page { limit: Some(MESSAGES_PER_STEP), before: None, after: Some(self.added_up_to) };
        let messages = operations.with_mailroom(async |mailroom| mailroom.messages(page).await)?.messages;
        let copies: Vec<Summary> = messages.into_iter().flat_map(Message::into_copies).collect();
        let Some(last) = copies.last() else { return Ok(true) };
        self.added_up_to = last.id;
        // A message that is deleted from now on causes an event, which is applied after this addition.
        let missing = operations.with_index(|index| index.filter_missing(copies))?;
        operations.add_all(missing.into_iter().map(|summary| (summary, None)).collect(), Changes::default())?;
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
