//! The numbers of mailboxes, and copies, moves and deletions of their messages.

use restante_mail::message::{Flags, Marks, MessageId};
use restante_mail::naming::MailboxName;
use restante_mailroom::{
    CopyKey, CopyUpdate, DeletionCause, IndexEntry, MailboxPage, Mailroom, StoreError, UpdateOutcome,
};
use restante_proto::imap::{Outcome, Refusal};

use super::Failure;

/// The number of messages that are moved at once when a folder is renamed.
const RENAME_BATCH: usize = 500;

/// Returns the numbers of a mailbox, unless it is empty.
pub(super) async fn state_of(
    mailroom: &Mailroom,
    mailbox: &MailboxName,
) -> Result<Option<restante_store::MailboxState>, Failure> {
    let page = MailboxPage { prefix: mailbox.to_string(), after: String::new(), limit: 1 };
    let states = mailroom.mailboxes(page).await?;
    Ok(states.into_iter().find(|state| state.name == *mailbox))
}

/// Copies or moves messages to a mailbox, all of them or none. `None` stands for messages that no longer exist.
pub(super) async fn copy(
    mailroom: &Mailroom,
    copies: Vec<Option<CopyKey>>,
    target: &MailboxName,
    is_move: bool,
) -> Result<Outcome, Failure> {
    // Read first: after the messages were moved, an error would say that they were not.
    let uid_validity = mailroom.uid_validity().await?;
    let existing: Vec<CopyKey> = copies.iter().flatten().cloned().collect();
    let stored =
        if is_move { mailroom.move_copies(existing, target).await? } else { mailroom.copy(existing, target).await? };
    let ids = stored.iter().flatten().map(|summary| summary.id).collect();
    let mut stored = stored.into_iter();
    let uid = |copy: Option<CopyKey>| copy.and_then(|_| stored.next().flatten()).map(|summary| summary.number);
    Ok(Outcome::Copied { uid_validity, uids: copies.into_iter().map(uid).collect(), ids })
}

/// Moves all messages of a mailbox. If the future is dropped, the messages that are being moved at that moment are still
/// moved.
pub(super) async fn move_all(mailroom: &Mailroom, source: &MailboxName, target: &MailboxName) -> Result<(), Failure> {
    if let Some(state) = state_of(mailroom, source).await? {
        check_limits(mailroom, target, state.messages, state.bytes)?;
    }
    let mut after = MessageId::ZERO;
    loop {
        let index = mailroom.index(source, after, RENAME_BATCH).await?;
        let Some(last) = index.entries.last() else { return Ok(()) };
        after = last.id;
        let key = |entry: &IndexEntry| CopyKey { mailbox: source.clone(), id: entry.id };
        mailroom.move_copies(index.entries.iter().map(key).collect(), target).await?;
        tokio::task::yield_now().await;
    }
}

/// Refuses to add messages to a mailbox that is too small for all of them: the store would delete the first ones.
pub(super) fn check_limits(
    mailroom: &Mailroom,
    target: &MailboxName,
    messages: u64,
    bytes: u64,
) -> Result<(), Refusal> {
    let limits = mailroom.mailbox_limits(target);
    if messages > limits.messages {
        return Err(Refusal::Limit(format!("The mailbox has at most {} messages", limits.messages)));
    }
    if bytes > limits.bytes {
        return Err(Refusal::Limit(format!("The mailbox has at most {} octets", limits.bytes)));
    }
    Ok(())
}

/// Deletes those of the messages that are still marked as deleted. Returns those that do not exist any more.
///
/// The store has no condition for deletions. A client that removes the mark within the milliseconds between the two steps
/// still loses the message.
pub(super) async fn remove_deleted(
    mailroom: &Mailroom,
    mailbox: &MailboxName,
    ids: Vec<MessageId>,
) -> Result<Vec<MessageId>, StoreError> {
    let key = |id: MessageId| CopyKey { mailbox: mailbox.clone(), id };
    // Updates without values change nothing. They return the flags of many messages at once.
    let outcomes = mailroom.update_copies(ids.iter().map(|&id| CopyUpdate::new(key(id))).collect()).await?;
    let is_kept = |marks: &Marks| !marks.flags.contains(Flags::DELETED);
    let is_removed = |outcome: &UpdateOutcome| !outcome.updated().is_some_and(is_kept);
    let removed = ids.into_iter().zip(&outcomes).filter(|(_, outcome)| is_removed(outcome)).map(|(id, _)| id);
    let removed: Vec<MessageId> = removed.collect();
    mailroom.remove_copies(removed.iter().copied().map(key).collect(), DeletionCause::Expunged).await?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::message::Summary;
    use restante_mail::tags::Tags;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{Import, Settings};
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, MailboxPolicies, MailboxPolicy};

    use super::*;

    fn mailroom(limits: Limits) -> Mailroom {
        let settings = Settings { limits: limits.clone(), ..Settings::default() };
        Mailroom::new(settings, Arc::new(MemoryStore::new(limits)), Extensions::default())
    }

    fn name(name: &str) -> MailboxName {
        MailboxName::from(name.to_owned())
    }

    async fn add(mailroom: &Mailroom, mailbox: &str, flags: Flags) -> Summary {
        let (received, tags) = (Timestamp::UNIX_EPOCH, Tags::default());
        let message = Bytes::from_static(b"Subject: Hi\r\n\r\n");
        mailroom.import(Import { mailbox: name(mailbox), received, seen: false, flags, tags, message }).await.unwrap()
    }

    async fn uids(mailroom: &Mailroom, mailbox: &str) -> Vec<u32> {
        let index = mailroom.index(&name(mailbox), MessageId::ZERO, usize::MAX).await.unwrap();
        index.entries.iter().map(|entry| entry.number).collect()
    }

    #[tokio::test]
    async fn only_messages_that_are_marked_as_deleted_are_deleted() {
        let mailroom = mailroom(Limits::default());
        let mut ids = Vec::new();
        for flags in [Flags::DELETED, Flags::FLAGGED, Flags::default(), Flags::DELETED.union(Flags::FLAGGED)] {
            ids.push(add(&mailroom, "bob", flags).await.id);
        }
        let missing = MessageId::MAX;
        let removed = remove_deleted(&mailroom, &name("bob"), vec![ids[3], ids[1], ids[0], missing]).await.unwrap();
        assert_eq!(removed, [ids[3], ids[0], missing]);
        assert_eq!(uids(&mailroom, "bob").await, [2, 3]);
        assert_eq!(mailroom.counts().deleted_by(DeletionCause::Expunged), 2);
    }

    #[tokio::test]
    async fn copies_are_in_the_order_of_the_request() {
        let mailroom = mailroom(Limits::default());
        let mut keys = Vec::new();
        for _ in 0..3 {
            keys.push(CopyKey::from(&add(&mailroom, "bob", Flags::default()).await));
        }
        let missing = CopyKey { mailbox: name("bob"), id: MessageId::MAX };
        let request = vec![Some(keys[0].clone()), Some(missing), None, Some(keys[2].clone())];
        for (is_move, expected, left) in [(false, [1, 2], &[1, 2, 3][..]), (true, [3, 4], &[2])] {
            let outcome = copy(&mailroom, request.clone(), &name("bob,Sent"), is_move).await.unwrap();
            let Outcome::Copied { uids: copied, ids, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!(copied, [Some(expected[0]), None, None, Some(expected[1])]);
            assert_eq!(ids.len(), 2);
            assert_eq!(uids(&mailroom, "bob").await, left);
        }
        assert_eq!(uids(&mailroom, "bob,Sent").await, [1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn all_messages_of_a_mailbox_are_moved_in_their_order() {
        let mailroom = mailroom(Limits::default());
        let count = u32::try_from(RENAME_BATCH).unwrap() + 2;
        for _ in 0..count {
            add(&mailroom, "bob,Sent", Flags::default()).await;
        }
        move_all(&mailroom, &name("bob,Sent"), &name("bob,Old")).await.unwrap();
        assert!(uids(&mailroom, "bob,Sent").await.is_empty());
        assert_eq!(uids(&mailroom, "bob,Old").await, (1..=count).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn messages_that_exceed_the_limits_of_a_mailbox_are_refused() {
        let policy = |mailbox, messages, bytes| MailboxPolicy {
            mailboxes: [mailbox].into_iter().collect(),
            messages,
            bytes,
            ..MailboxPolicy::default()
        };
        let policies = [policy("few", Some(2), None), policy("small", None, Some(30))];
        let mailroom = mailroom(Limits { policies: MailboxPolicies::from_iter(policies), ..Limits::default() });
        let refusal = |text: &str| Err(Refusal::Limit(text.to_owned()));
        let table = [
            ("few", 2, 1000, Ok(())),
            ("few", 3, 3, refusal("The mailbox has at most 2 messages")),
            ("small", 1000, 30, Ok(())),
            ("small", 1, 31, refusal("The mailbox has at most 30 octets")),
            ("other", 1000, 1000, Ok(())),
        ];
        for (target, messages, bytes, expected) in table {
            assert_eq!(check_limits(&mailroom, &name(target), messages, bytes), expected, "{target}");
        }
        for _ in 0..3 {
            add(&mailroom, "bob", Flags::default()).await;
        }
        for target in ["few", "small"] {
            let moved = move_all(&mailroom, &name("bob"), &name(target)).await;
            assert!(matches!(moved, Err(Failure::Refusal(Refusal::Limit(_)))), "{moved:?}");
        }
        assert_eq!(uids(&mailroom, "bob").await, [1, 2, 3]);
    }
}
