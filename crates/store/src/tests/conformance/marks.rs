//! Rules about the marks of copies (read marks, flags and tags), their MODSEQ, and the index of a mailbox.

use restante_mail::message::{Flags, Marks, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;

use super::{add, message, name, new_copy};
use crate::{
    ChangedMarks, CopyKey, CopyUpdate, IndexEntry, MailboxIndex, MessageSelector, NewCopy, NewMessage, Page, Result,
    Store, UpdateOutcome,
};

/// Changes of one mark.
pub(crate) trait SetMarks: Store {
    /// Marks a message as read or unread. Returns false if it does not exist.
    fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> impl Future<Output = Result<bool>> + Send {
        let copy = CopyKey { mailbox: mailbox.clone(), id };
        let update = CopyUpdate { seen: Some(seen), ..CopyUpdate::new(copy) };
        async move { Ok(self.update_copies(vec![update]).await?[0].updated().is_some()) }
    }

    /// Sets the tags of copies. Returns those that exist.
    fn set_tags(&self, copies: Vec<CopyKey>, tags: Tags) -> impl Future<Output = Result<Vec<CopyKey>>> + Send {
        let update = |copy: &CopyKey| CopyUpdate { tags: Some(tags.clone()), ..CopyUpdate::new(copy.clone()) };
        let updates = copies.iter().map(update).collect();
        async move {
            let outcomes = self.update_copies(updates).await?;
            let existing = copies.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.updated().is_some());
            Ok(existing.map(|(copy, _)| copy).collect())
        }
    }
}

impl<S: Store> SetMarks for S {}

fn update(copy: &Summary) -> CopyUpdate {
    CopyUpdate::new(copy.into())
}

/// Returns the index of a mailbox.
pub(super) async fn index(store: &impl Store, mailbox: &str) -> MailboxIndex {
    store.index(&name(mailbox), MessageId::ZERO, usize::MAX).await.unwrap()
}

/// Checks that the index of a mailbox agrees with its listing, and returns it.
pub(super) async fn checked_index(store: &impl Store, mailbox: &str) -> MailboxIndex {
    let (index, listing) = (index(store, mailbox).await, store.list(&name(mailbox), Page::ALL).await.unwrap());
    let entry = |copy: &Summary| {
        let &Summary { id, number, received, size, .. } = copy;
        IndexEntry { id, number, received, size, marks: copy.marks() }
    };
    assert_eq!(index.entries, listing.messages.iter().map(entry).collect::<Vec<_>>());
    assert_eq!(index.version, listing.version);
    let numbers = index.entries.iter().map(|entry| entry.number);
    assert!(numbers.max().is_none_or(|number| number < index.next_number));
    let modseqs = index.entries.iter().map(|entry| entry.marks.modseq);
    assert!(modseqs.chain([1]).all(|modseq| modseq <= index.highest_modseq), "{index:?}");
    index
}

pub(super) async fn copies_are_stored_with_marks(store: &impl Store) {
    let flags = Flags::DRAFT.union(Flags::ANSWERED);
    let copies = vec![
        NewCopy { seen: true, flags, ..new_copy("ann") },
        NewCopy { flags: Flags::FLAGGED, ..new_copy("bob") },
        NewCopy { seen: true, ..new_copy("shop:bob") },
    ];
    let stored = store.append(NewMessage { copies, ..message(1, &[], b"x") }).await.unwrap().stored;
    let marks: Vec<_> = stored.iter().map(|copy| (copy.seen, copy.flags)).collect();
    assert_eq!(marks, [(true, flags), (false, Flags::FLAGGED), (true, Flags::default())]);
    for copy in &stored {
        assert_eq!(store.find(&copy.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(copy));
        checked_index(store, copy.mailbox.as_str()).await;
    }
    assert_eq!(store.overview(None).await.unwrap().unread, 1);
    let removed = store.remove(&stored[1].mailbox, stored[1].id).await.unwrap();
    assert_eq!(removed.as_ref(), Some(&stored[1]));
    let overview = store.overview(None).await.unwrap();
    assert_eq!((overview.messages, overview.unread), (1, 0));
    // In an existing mailbox and in a new one.
    let copies = vec![NewCopy { seen: true, ..new_copy("ann") }, new_copy("cid")];
    store.append(NewMessage { copies, ..message(2, &[], b"x") }).await.unwrap();
    let states = store.mailboxes(crate::MailboxPage::ALL).await.unwrap();
    assert_eq!(states.iter().map(|state| state.unseen).collect::<Vec<_>>(), [0, 1, 0]);
}

pub(super) async fn updates_change_only_what_they_name(store: &impl Store) {
    let copy = add(store, 1, "bob").await;
    let tags = Tags::new(["x"]).unwrap();
    let mut expected = copy.marks();
    let table = [
        CopyUpdate { seen: Some(true), ..update(&copy) },
        CopyUpdate { flags: Some(Flags::DELETED), ..update(&copy) },
        CopyUpdate { tags: Some(tags.clone()), ..update(&copy) },
        CopyUpdate { seen: Some(false), flags: Some(Flags::FLAGGED), tags: Some(Tags::default()), ..update(&copy) },
        CopyUpdate { flags: Some(Flags::default()), ..update(&copy) },
    ];
    for change in table {
        let before = checked_index(store, "bob").await;
        let outcomes = store.update_copies(vec![change.clone()]).await.unwrap();
        let CopyUpdate { seen, flags, tags, .. } = change;
        let changed = ChangedMarks {
            seen: seen.is_some_and(|seen| seen != expected.seen),
            flags: flags.is_some_and(|flags| flags != expected.flags),
            tags: tags.as_ref().is_some_and(|tags| *tags != expected.tags),
        };
        expected = Marks {
            seen: seen.unwrap_or(expected.seen),
            flags: flags.unwrap_or(expected.flags),
            tags: tags.unwrap_or(expected.tags),
            modseq: outcomes[0].updated().unwrap().modseq,
        };
        assert_eq!(outcomes, [UpdateOutcome::Updated(expected.clone(), changed)]);
        assert!(expected.modseq > before.highest_modseq, "{expected:?} {before:?}");
        let found = store.find(&copy.mailbox, MessageSelector::Id(copy.id)).await.unwrap().unwrap();
        assert_eq!(found.marks(), expected);
        let after = checked_index(store, "bob").await;
        assert!(after.version != before.version && after.highest_modseq >= expected.modseq);
        // Nothing is left to change.
        let again = CopyUpdate { flags: Some(expected.flags), seen: Some(expected.seen), ..update(&copy) };
        let unchanged = store.update_copies(vec![again, update(&copy)]).await.unwrap();
        assert_eq!(unchanged, [(); 2].map(|()| UpdateOutcome::Updated(expected.clone(), ChangedMarks::default())));
        assert_eq!(checked_index(store, "bob").await, after);
    }
}

pub(super) async fn updates_have_outcomes_in_order(store: &impl Store) {
    assert_eq!(store.update_copies(Vec::new()).await.unwrap(), []);
    let (ann, bob) = (add(store, 1, "ann").await, add(store, 2, "bob").await);
    let flagged = |copy: &Summary| CopyUpdate { flags: Some(Flags::FLAGGED), ..update(copy) };
    let elsewhere = CopyKey { mailbox: name("cid"), id: bob.id };
    let updates = vec![
        CopyUpdate { if_modseq: Some(bob.modseq), ..flagged(&bob) },
        CopyUpdate { flags: Some(Flags::FLAGGED), ..CopyUpdate::new(elsewhere) },
        CopyUpdate { if_modseq: Some(ann.modseq + 1), ..flagged(&ann) },
        // The first update has changed it.
        CopyUpdate { if_modseq: Some(bob.modseq), seen: Some(true), ..update(&bob) },
        CopyUpdate { flags: Some(Flags::DRAFT), ..update(&bob) },
    ];
    let outcomes = store.update_copies(updates).await.unwrap();
    let [UpdateOutcome::Updated(first, _), missing, conflict, later, UpdateOutcome::Updated(last, _)] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert_eq!((first.flags, last.flags, last.seen), (Flags::FLAGGED, Flags::DRAFT, false));
    assert!(bob.modseq < first.modseq && first.modseq < last.modseq);
    assert_eq!(
        [missing, conflict, later],
        [&UpdateOutcome::Missing, &UpdateOutcome::Conflict, &UpdateOutcome::Conflict]
    );
    assert_eq!(checked_index(store, "ann").await.entries[0].marks, ann.marks());
    assert_eq!(checked_index(store, "bob").await.entries[0].marks, *last);
}

pub(super) async fn index_returns_pages(store: &impl Store) {
    let mut all = Vec::new();
    for second in 0..5 {
        all.push(add(store, second, "bob").await);
        add(store, second, "ann").await;
    }
    let whole = checked_index(store, "bob").await;
    for (after, limit, expected) in [(0, 3, 0..3), (2, 9, 2..5), (5, 1, 5..5), (0, 0, 0..0)] {
        let id = all[..after].last().map_or(MessageId::ZERO, |copy| copy.id);
        let page = store.index(&name("bob"), id, limit).await.unwrap();
        assert_eq!(page, MailboxIndex { entries: whole.entries[expected].to_vec(), ..whole.clone() });
    }
}

/// Numbers and MODSEQs that a client has seen are not used again.
pub(super) async fn numbers_of_an_emptied_mailbox_ascend(store: &impl Store) {
    let mut last = index(store, "bob").await;
    assert!(last.entries.is_empty() && last.next_number > 0 && last.highest_modseq > 0);
    for round in 0..3 {
        for second in 1..4 {
            let copy = add(store, second, "bob").await;
            assert!(copy.number >= last.next_number && copy.modseq > last.highest_modseq, "{copy:?} {last:?}");
            last = checked_index(store, "bob").await;
        }
        if round == 1 {
            add(store, 9, "ann").await;
        }
        store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
        let emptied = checked_index(store, "bob").await;
        assert!(emptied.entries.is_empty());
        assert!(emptied.next_number >= last.next_number && emptied.highest_modseq >= last.highest_modseq);
        last = emptied;
    }
}

pub(super) async fn uid_validity_stays_the_same(store: &impl Store) {
    let before = store.uid_validity().await.unwrap();
    assert_ne!(before, 0);
    add(store, 1, "bob").await;
    store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(store.uid_validity().await.unwrap(), before);
}
