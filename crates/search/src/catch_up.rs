//! Compares the index with the store in small steps, so that new events are handled in between. A step reads a page of
//! messages and the entries in the same range of ids. It removes the entries of deleted messages, corrects read marks
//! and tags, and adds missing messages.

use restante_mail::message::{Message, MessageId, Summary};
use restante_mailroom::Page;

use crate::index::Changes;
use crate::index_operations::{IndexOperations, IndexingError};

/// The maximum number of messages compared in one step. Tests have few messages.
const MESSAGES_PER_STEP: usize = if cfg!(test) { 4 } else { 1024 };
/// The maximum number of copies of a message: that of `smtp.maxrecipients`.
const MAX_COPIES: u64 = 1_000_000;

/// A comparison in progress.
pub(crate) struct CatchUp {
    /// The copy up to which missing messages were added.
    added_up_to: MessageId,
    /// The id up to which existing entries were verified; `None` if they are not verified.
    verified_up_to: Option<MessageId>,
}

impl CatchUp {
    /// Compares all messages.
    pub(crate) fn everything() -> Self {
        Self { added_up_to: MessageId::ZERO, verified_up_to: Some(MessageId::ZERO) }
    }

    /// Looks only for missing messages with ids above this one. It can be the id of a copy whose message has other copies,
    /// so the search starts a little earlier.
    pub(crate) fn above(above: MessageId) -> Self {
        Self { added_up_to: above.number().saturating_sub(MAX_COPIES).into(), verified_up_to: None }
    }

    /// Looks also for missing messages with ids above this one.
    pub(crate) fn and_above(self, above: MessageId) -> Self {
        match self.verified_up_to {
            // They follow anyway.
            _ if self.added_up_to <= above => self,
            None => Self::above(above),
            Some(_) => Self::everything(),
        }
    }

    /// Runs one step. Returns true if that was the last one. Messages are added in the order of their ids, because
    /// queries read the newest entries first.
    pub(crate) fn step(&mut self, operations: &mut IndexOperations) -> Result<bool, IndexingError> {
        let page = Page { limit: Some(MESSAGES_PER_STEP), before: None, after: Some(self.added_up_to) };
        let messages = operations.with_mailroom(async move |mailroom| mailroom.messages(None, page).await)?.messages;
        let copies: Vec<Summary> = messages.into_iter().flat_map(Message::into_copies).collect();
        let last = copies.last().map(|copy| copy.id);
        if let Some(verified) = self.verified_up_to {
            let next = verify_entries(operations, verified, &copies)?;
            self.verified_up_to = next.or(last);
            if next.is_some() {
                // There are many more entries than messages. The next step reads the same messages again.
                return Ok(false);
            }
        }
        let Some(last) = last else { return Ok(true) };
        self.added_up_to = last;
        // A message that is deleted from now on causes an event, which is applied after this addition.
        let missing = operations.with_index(|index| index.filter_missing(copies))?;
        operations.add_all(missing.into_iter().map(|summary| (summary, None)).collect(), Changes::default())?;
        Ok(false)
    }
}

/// Compares the entries above `after` with the copies in the same range of ids. These are all copies in the store up to the
/// last of them, or none if the store has no more. Returns the id of the last entry if there may be more in this range.
fn verify_entries(
    operations: &IndexOperations,
    after: MessageId,
    copies: &[Summary],
) -> Result<Option<MessageId>, IndexingError> {
    let last = copies.last().map_or(MessageId::MAX, |copy| copy.id);
    let limit = copies.len() + MESSAGES_PER_STEP;
    let entries = operations.with_index(|index| index.entries_between(after, last, limit))?;
    let next = entries.last().filter(|_| entries.len() == limit).map(|entry| entry.id);
    let mut changes = Changes::default();
    for entry in entries {
        match copies.binary_search_by_key(&entry.id, |copy| copy.id) {
            Err(_) => changes.removed.push(entry.id),
            Ok(position) if !entry.agrees_with(&copies[position]) => changes.update(&copies[position]),
            Ok(_) => {}
        }
    }
    operations.write(changes)?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{Mailroom, Settings};
    use restante_store::memory::MemoryStore;
    use restante_store::{CopyKey, CopyUpdate, Limits, NewCopy, NewMessage, Store};
    use tokio::runtime::Runtime;

    use super::*;
    use crate::index_file::IndexFile;

    /// Stores a message with copies in two mailboxes.
    async fn store_message(store: &MemoryStore) -> Vec<Summary> {
        let copy = |mailbox: &str| NewCopy {
            mailbox: mailbox.to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::default(),
            trace: Some(Bytes::new()),
        };
        let copies = vec![copy("ann"), copy("bob")];
        let headline = Headline::new("", [], "x");
        let message = NewMessage { received: Timestamp::now(), headline, body: Bytes::new(), copies };
        store.append(message).await.unwrap().stored
    }

    fn run_to_end(mut catch_up: CatchUp, operations: &mut IndexOperations) {
        for _ in 0..1000 {
            if catch_up.step(operations).unwrap() {
                return;
            }
        }
        panic!("the comparison does not end");
    }

    /// Returns the ids and read marks of all entries.
    fn entries(operations: &IndexOperations) -> Vec<(MessageId, bool)> {
        let entries = operations.with_index(|index| index.entries_between(MessageId::ZERO, MessageId::MAX, 1000));
        entries.unwrap().into_iter().map(|entry| (entry.id, entry.seen)).collect()
    }

    #[test]
    fn index_agrees_with_the_store_after_a_comparison() {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store.clone(), Extensions::default()));
        let index_file = Arc::new(IndexFile::new(None));
        index_file.open().unwrap();
        let mut operations = IndexOperations::new(index_file, Arc::downgrade(&mailroom), runtime.handle().clone());

        let mut copies: Vec<Summary> = Vec::new();
        for _ in 0..50 {
            copies.extend(runtime.block_on(store_message(&store)));
        }
        run_to_end(CatchUp::everything(), &mut operations);
        assert_eq!(entries(&operations), copies.iter().map(|copy| (copy.id, false)).collect::<Vec<_>>());

        // Most entries are of deleted messages, also the first and the last ones. One message has lost a copy.
        let is_kept = |position: usize| matches!(position, 20 | 21 | 23 | 70..73);
        let mut expected = Vec::new();
        for (position, copy) in copies.iter().enumerate() {
            if is_kept(position) {
                let is_seen = position == 21;
                let update = CopyUpdate { seen: Some(is_seen), ..CopyUpdate::new(copy.into()) };
                runtime.block_on(store.update_copies(vec![update])).unwrap();
                expected.push((copy.id, is_seen));
            } else {
                let key = CopyKey { mailbox: copy.mailbox.clone(), id: copy.id };
                runtime.block_on(store.remove_copies(vec![key])).unwrap();
            }
        }
        run_to_end(CatchUp::everything(), &mut operations);
        assert_eq!(entries(&operations), expected);

        let added = runtime.block_on(store_message(&store));
        run_to_end(CatchUp::above(added[0].id), &mut operations);
        expected.extend(added.iter().map(|copy| (copy.id, false)));
        assert_eq!(entries(&operations), expected);
    }

    #[test]
    fn later_losses_extend_a_comparison() {
        const FAR: u64 = 5 * MAX_COPIES;
        let table = [
            // verified up to, added up to, lost above, then added up to
            (None, FAR, FAR + 1, FAR),
            (None, FAR, FAR, FAR),
            (None, FAR, FAR - 1, FAR - 1 - MAX_COPIES),
            (Some(FAR), FAR, FAR + 1, FAR),
            (Some(FAR), FAR, FAR - 1, 0),
        ];
        for (verified, added, lost, expected) in table {
            let catch_up = CatchUp { added_up_to: added.into(), verified_up_to: verified.map(MessageId::from) };
            assert_eq!(catch_up.and_above(lost.into()).added_up_to, expected.into(), "{verified:?} {added} {lost}");
        }
    }
}
