//! Messages that are stored without a delivery: imports and copies. And updates of their marks.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Flags, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_store::{Limits, MailboxPolicies, MailboxPolicy};
use restante_teststore::{FailingRemoval, SharedStore};

use crate::events::{ChangedMarks, Event, MarkChange};
use crate::hooks::Extensions;
use crate::tests::delivery::{deliver_stored, envelope, mailroom, settings};
use crate::{
    CopyKey, CopyUpdate, DeletionCause, Import, Mailroom, MessageSelector, Page, Settings, StoreError, UpdateOutcome,
};

/// The message has trace lines of another server, bare line feeds and bytes that are not UTF-8.
const SOURCE: &[u8] =
    b"Return-Path: <x@y.org>\r\nReceived: from a by b; Thu, 1 Jan 1970 00:00:00 +0000\nFrom: Ann <ann@x.org>\nSubject: Hi\n\n\xff\0\n";

const MAIL: &str = "From: Ann <ann@x.org>\r\nTo: bob@x.org\r\nSubject: Hello\r\n\r\nHi\r\n";

fn name(text: &str) -> MailboxName {
    MailboxName::from(text.to_owned())
}

fn import_to(mailbox: &str, message: &'static [u8]) -> Import {
    Import {
        mailbox: name(mailbox),
        received: Timestamp::from_second(1000).unwrap(),
        seen: true,
        flags: Flags::DRAFT,
        tags: Tags::new(["x"]).unwrap(),
        message: Bytes::from_static(message),
    }
}

async fn ids(mailroom: &Mailroom, mailbox: &str) -> Vec<MessageId> {
    let index = mailroom.index(&name(mailbox), MessageId::ZERO, usize::MAX).await.unwrap();
    index.entries.iter().map(|entry| entry.id).collect()
}

async fn source(mailroom: &Mailroom, copy: &Summary) -> Bytes {
    mailroom.source(&copy.mailbox, copy.id).await.unwrap().unwrap().to_bytes()
}

#[tokio::test]
async fn imported_message_is_stored_unchanged_and_published() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let mut events = mailroom.subscribe(None, None);
    let imported = mailroom.import(import_to("sent", SOURCE)).await.unwrap();
    assert_eq!(source(&mailroom, &imported).await, SOURCE);
    assert_eq!((imported.headline.from(), imported.headline.subject()), ("Ann <ann@x.org>", "Hi"));
    assert_eq!(imported.headline.to().count() + imported.details.recipients().count(), 0);
    assert_eq!((imported.seen, imported.flags, &imported.tags), (true, Flags::DRAFT, &Tags::new(["x"]).unwrap()));
    assert_eq!((imported.received, imported.size), (Timestamp::from_second(1000).unwrap(), SOURCE.len() as u64));
    assert_eq!(events.next().await.unwrap().event().summary(), &imported);
    let empty = mailroom.import(import_to("sent", b"")).await.unwrap();
    assert_eq!(source(&mailroom, &empty).await, b"".as_slice());
    let future = Import { received: Timestamp::MAX, ..import_to("sent", SOURCE) };
    assert!(mailroom.import(future).await.unwrap().received <= Timestamp::now());
}

#[tokio::test]
async fn copies_are_equal_to_the_originals() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let delivered = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org", "cid@x.org"]), MAIL).await;
    let imported = mailroom.import(import_to("bob", SOURCE)).await.unwrap();
    let originals = [&delivered[0], &imported, &delivered[1]];
    let missing = CopyKey { mailbox: name("ann"), id: imported.id };
    let mut keys: Vec<CopyKey> = originals.map(CopyKey::from).into();
    keys.insert(1, missing);
    // More than one batch.
    keys.extend((0..100).map(|_| CopyKey::from(&imported)));
    let mut events = mailroom.subscribe(Some(name("archive")), None);
    let copies = mailroom.copy(keys, &name("archive")).await.unwrap();
    assert_eq!(copies.len(), 104);
    assert!(copies[1].is_none());
    let copies: Vec<Summary> = copies.into_iter().flatten().collect();
    assert!(copies.is_sorted_by(|one, other| one.id < other.id && one.number < other.number));
    for (original, copy) in originals.into_iter().chain([&imported; 100]).zip(&copies) {
        let (id, message, number, modseq) = (copy.id, copy.id, copy.number, copy.modseq);
        let (mailbox, details) = (name("archive"), original.details.with_original(original.message));
        assert_eq!(*copy, Summary { mailbox, id, message, number, modseq, details, ..original.clone() });
        assert_eq!(source(&mailroom, copy).await, source(&mailroom, original).await);
        assert_eq!(events.next().await.unwrap().event().summary(), copy);
    }
}

#[tokio::test]
async fn failed_copy_leaves_nothing() {
    let policy = MailboxPolicy { mailboxes: ["small"].into_iter().collect(), bytes: Some(500), ..Default::default() };
    let limits = Limits { policies: MailboxPolicies::from_iter([policy]), ..Limits::default() };
    let mailroom = mailroom(Settings { limits: limits.clone(), ..settings() }, limits, None);
    let small = mailroom.import(import_to("bob", SOURCE)).await.unwrap();
    let large = mailroom.import(import_to("bob", &[b'x'; 501])).await.unwrap();
    // The first batch is stored before the large message is read.
    let keys = [&small; 2].into_iter().chain([&large]).map(CopyKey::from).collect();
    let mut many: Vec<CopyKey> = vec![CopyKey::from(&small); 40];
    many.push(CopyKey::from(&large));
    for keys in [keys, many] {
        let error = mailroom.copy(keys, &name("small")).await.unwrap_err();
        assert!(matches!(error, StoreError::NoSpace(_)), "{error}");
        assert!(mailroom.list(&name("small"), Page::ALL).await.unwrap().messages.is_empty());
    }
    assert!(matches!(mailroom.import(import_to("small", &[b'x'; 501])).await, Err(StoreError::NoSpace(_))));
}

#[tokio::test]
async fn copies_of_copies_have_the_first_original() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let delivered = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org", "cid@x.org"]), MAIL).await;
    let original = Some(delivered[0].id);
    assert_eq!(delivered[1].details.original(), None);
    let copied = mailroom.copy(vec![CopyKey::from(&delivered[1])], &name("archive")).await.unwrap().remove(0).unwrap();
    assert_eq!(copied.details.original(), original, "the second copy of a message has the id of the first one");
    let moved = mailroom.move_copies(vec![CopyKey::from(&copied)], &name("cid")).await.unwrap().remove(0).unwrap();
    assert_eq!(moved.details.original(), original);
    assert_eq!(ids(&mailroom, "archive").await, []);
    assert_eq!(ids(&mailroom, "cid").await, [delivered[1].id, moved.id]);
    assert_eq!(mailroom.counts().deleted_by(DeletionCause::Expunged), 1);
}

/// The mailbox has another message, which must not be evicted for the copies.
#[tokio::test]
async fn copies_that_exceed_the_limits_of_the_mailbox_are_refused() {
    let few = MailboxPolicy { mailboxes: ["few"].into_iter().collect(), messages: Some(3), ..Default::default() };
    let small = MailboxPolicy { mailboxes: ["small"].into_iter().collect(), bytes: Some(303), ..Default::default() };
    let limits = Limits { policies: MailboxPolicies::from_iter([few, small]), ..Limits::default() };
    let mailroom = mailroom(Settings { limits: limits.clone(), ..settings() }, limits, None);
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(CopyKey::from(&mailroom.import(import_to("bob", &[b'x'; 101])).await.unwrap()));
    }
    for target in ["few", "small"] {
        let existing = mailroom.import(import_to(target, b"a")).await.unwrap();
        for is_move in [false, true] {
            let target = name(target);
            let result = if is_move {
                mailroom.move_copies(keys.clone(), &target).await
            } else {
                mailroom.copy(keys.clone(), &target).await
            };
            assert!(matches!(result, Err(StoreError::NoSpace(_))), "{result:?}");
        }
        assert_eq!(ids(&mailroom, target).await, [existing.id]);
        assert_eq!(ids(&mailroom, "bob").await.len(), 4);
        mailroom.copy(keys[..3].to_vec(), &name(target)).await.unwrap();
        assert_eq!(ids(&mailroom, target).await.len(), 3);
    }
}

#[tokio::test]
async fn move_that_fails_leaves_each_message_once() {
    let store = SharedStore::new(Limits::default());
    let node = store.node().await;
    let mailroom = Mailroom::new(Settings::default(), node.clone(), Extensions::default());
    let first = mailroom.import(import_to("bob", SOURCE)).await.unwrap();
    let second = mailroom.import(import_to("bob", SOURCE)).await.unwrap();
    for (removal, removed_count) in [(FailingRemoval::NotMade, 0), (FailingRemoval::Made, 2)] {
        node.fail_next_removal(removal);
        let keys = [&first, &second].map(CopyKey::from).into();
        let result = mailroom.move_copies(keys, &name("archive")).await;
        assert!(matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
        assert_eq!(ids(&mailroom, "archive").await.len(), removed_count, "{removal:?}");
        assert_eq!(ids(&mailroom, "bob").await.len(), 2 - removed_count, "{removal:?}");
    }
}

#[tokio::test]
async fn evictions_by_imports_are_published() {
    let mailroom = mailroom(settings(), Limits { messages_per_mailbox: 1, ..Limits::default() }, None);
    let mut events = mailroom.subscribe(None, None);
    let first = mailroom.import(import_to("bob", SOURCE)).await.unwrap();
    assert_eq!(events.next().await.unwrap().event().summary(), &first);
    let second = mailroom.copy(vec![CopyKey::from(&first)], &name("bob")).await.unwrap().remove(0).unwrap();
    assert_eq!(events.next().await.unwrap().event().summary(), &second);
    assert_eq!(events.next().await.unwrap().event(), &Event::Deleted(first));
    assert_eq!(mailroom.counts().deleted_by(DeletionCause::Limit), 1);
}

/// One event per update with all marks, on the node that makes the change and on another one.
#[tokio::test]
async fn updated_marks_are_published() {
    let store = SharedStore::new(Limits::default());
    let nodes = [store.node().await, store.node().await];
    let mailrooms = nodes.map(|node| Mailroom::new(Settings::default(), node, Extensions::default()));
    let local = mailroom(settings(), Limits::default(), None);
    let check = async |changed: &Mailroom, observed: &Mailroom| {
        let copy = changed.import(import_to("bob", SOURCE)).await.unwrap();
        let mut marks = observed.subscribe_to_marks();
        let key = CopyKey::from(&copy);
        let update = CopyUpdate { seen: Some(false), flags: Some(Flags::FLAGGED), ..CopyUpdate::new(key.clone()) };
        let stale = CopyUpdate { if_modseq: Some(copy.modseq), ..update.clone() };
        // Both of the last updates change nothing.
        let outcomes = changed.update_copies(vec![update.clone(), stale, update]).await.unwrap();
        let [UpdateOutcome::Updated(after, changed_marks), UpdateOutcome::Conflict, unchanged] = &outcomes[..] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(*unchanged, UpdateOutcome::Updated(after.clone(), ChangedMarks::default()));
        assert!(after.modseq > copy.modseq && !after.seen);
        let found = changed.find(&copy.mailbox, MessageSelector::Id(copy.id)).await.unwrap().unwrap();
        assert_eq!(found.marks(), *after);
        let index = changed.index(&copy.mailbox, MessageId::ZERO, 1).await.unwrap();
        assert_eq!(index.entries[0].marks, *after);
        let last = CopyUpdate { tags: Some(Tags::new(["last"]).unwrap()), ..CopyUpdate::new(key.clone()) };
        let last_marks = changed.update_copies(vec![last]).await.unwrap()[0].updated().unwrap().clone();
        let CopyKey { mailbox, id } = key;
        let flagged = MarkChange { mailbox, id, changed: *changed_marks, marks: after.clone() };
        let tagged = MarkChange {
            changed: ChangedMarks { tags: true, ..ChangedMarks::default() },
            marks: last_marks,
            ..flagged.clone()
        };
        assert_eq!(flagged.changed, ChangedMarks { seen: copy.seen, flags: true, tags: false });
        for expected in [flagged, tagged] {
            assert_eq!(marks.next().await, Ok(expected));
        }
    };
    check(&local, &local).await;
    tokio::select! {
        () = async { tokio::join!(mailrooms[0].follow_feed(), mailrooms[1].follow_feed()); } => panic!("a feed has ended"),
        () = check(&mailrooms[0], &mailrooms[1]) => {}
    }
}

/// Also if it reads nothing meanwhile. Messages that were read before have no event.
#[tokio::test]
async fn subscriber_gets_all_changes_of_a_large_update() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let mut keys = Vec::new();
    for number in 0..1500 {
        let seen = number % 3 == 0;
        let copy = mailroom.import(Import { seen, ..import_to("bob", SOURCE) }).await.unwrap();
        keys.push((CopyKey::from(&copy), seen));
    }
    let mut marks = mailroom.subscribe_to_marks();
    let update = |(key, _): &(CopyKey, bool)| CopyUpdate {
        seen: Some(true),
        flags: Some(Flags::FLAGGED),
        ..CopyUpdate::new(key.clone())
    };
    mailroom.update_copies(keys.iter().map(update).collect()).await.unwrap();
    let copies = keys.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(mailroom.mark_copies(copies, true).await.unwrap(), 1500);
    for (key, seen) in keys {
        let change = marks.try_next().unwrap().unwrap();
        assert_eq!((change.id, change.marks.seen, change.marks.flags), (key.id, true, Flags::FLAGGED));
        assert_eq!(change.changed, ChangedMarks { seen: !seen, flags: true, tags: false });
    }
    assert_eq!(marks.try_next(), Ok(None));
}

/// The update is called again with the tags of the other change.
#[tokio::test]
async fn concurrent_updates_of_tags_lose_nothing() {
    let mailroom = Arc::new(mailroom(settings(), Limits::default(), None));
    let copy = mailroom.import(Import { tags: Tags::default(), ..import_to("bob", SOURCE) }).await.unwrap();
    let mut updates = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (mailroom, key) = (mailroom.clone(), CopyKey::from(&copy));
        let added = Tags::new([format!("tag {number}").as_str()]).unwrap();
        updates.spawn(async move { mailroom.update_tags(vec![key], move |tags| tags.union(&added)).await });
    }
    updates.join_all().await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    let found = mailroom.find(&copy.mailbox, MessageSelector::Id(copy.id)).await.unwrap().unwrap();
    assert_eq!(found.tags.iter().count(), 20);
}
