//! Rules of a durable store: after it is closed and opened again, it has the same contents. [`run`] gets a function
//! that opens a store in a directory, and closes it by dropping it.

use std::collections::HashSet;
use std::path::PathBuf;

use restante_mail::message::{Flags, MessageId, Source, Summary};

use super::marks::checked_index;
use super::model::{self, RandomWalk};
use super::{SetMarks as _, add, at, ids, message, name};
use crate::{CopyKey, CopyUpdate, Limits, MailboxIndex, MailboxPage, MailboxState, Page, Store, Usage, Version};
use restante_testdir::TestDir;

/// Runs every rule about restarts against stores that `open` opens in a directory, with the limits of the rule.
pub(crate) async fn run<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    contents_are_kept(&open).await;
    random_changes_survive(&open).await;
    ids_ascend_across_restarts(&open).await;
    versions_are_never_reused(&open).await;
    expire_continues_after_restart(&open).await;
    new_limits_apply_to_next_message(&open).await;
    big_message_is_kept(&open).await;
}

async fn contents_are_kept<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let store = open(dir.path().to_owned(), Limits::default()).await;
    for second in 0..20 {
        store.append(message(second, &["ann", "bob", "cid"], format!("body {second}").as_bytes())).await.unwrap();
        store.append(message(second, &["zoë"], b"")).await.unwrap();
    }
    for (index, id) in ids(&store, "bob").await.into_iter().enumerate() {
        match index % 4 {
            0 => drop(store.remove(&name("bob"), id).await.unwrap()),
            1 => assert!(store.set_seen(&name("bob"), id, true).await.unwrap()),
            _ => {}
        }
    }
    let flags = Flags::FLAGGED.union(Flags::DELETED);
    let flagged = ids(&store, "ann").await.into_iter().map(|id| CopyKey { mailbox: name("ann"), id });
    let updates = flagged.map(|copy| CopyUpdate { flags: Some(flags), ..CopyUpdate::new(copy) });
    store.update_copies(updates.collect()).await.unwrap();
    store.purge(&name("cid"), MessageId::MAX, usize::MAX).await.unwrap();
    store.expire(at(3), 5).await.unwrap();
    let before = StoreContents::read(&store).await;
    assert_eq!(before.usage.mailboxes, 3);
    drop(store);
    for _ in 0..2 {
        let store = open(dir.path().to_owned(), Limits::default()).await;
        assert_eq!(StoreContents::read(&store).await, before);
    }
}

/// The results of all queries.
#[derive(Debug, PartialEq)]
struct StoreContents {
    last_id: MessageId,
    uid_validity: u32,
    indexes: Vec<MailboxIndex>,
    usage: Usage,
    mailboxes: Vec<(MailboxState, Version)>,
    messages: Vec<(Summary, Source)>,
}

impl StoreContents {
    async fn read(store: &impl Store) -> Self {
        let (mut mailboxes, mut messages, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
        for mailbox in store.mailboxes(MailboxPage::ALL).await.unwrap() {
            let listing = store.list(&mailbox.name, Page::ALL).await.unwrap();
            indexes.push(checked_index(store, mailbox.name.as_str()).await);
            for summary in listing.messages {
                let source = store.source(&mailbox.name, summary.id).await.unwrap();
                messages.push((summary, source.expect("listed messages exist")));
            }
            mailboxes.push((mailbox, listing.version));
        }
        // A mailbox that was emptied.
        indexes.push(checked_index(store, "cid").await);
        let (last_id, uid_validity) = (store.last_id().await.unwrap(), store.uid_validity().await.unwrap());
        Self { last_id, uid_validity, indexes, usage: store.usage().await.unwrap(), mailboxes, messages }
    }
}

async fn random_changes_survive<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    for (seed, limits) in (100..).zip(model::limits()) {
        let dir = TestDir::new();
        let mut walk = RandomWalk::new(seed, limits.clone());
        for _ in 0..6 {
            let store = open(dir.path().to_owned(), limits.clone()).await;
            walk.check(&store).await;
            walk.run(&store, 30).await;
        }
    }
}

async fn ids_ascend_across_restarts<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let mut assigned: Vec<MessageId> = Vec::new();
    // The clock is set back before each start.
    for second in [1_000, 900, 800] {
        let store = open(dir.path().to_owned(), Limits::default()).await;
        for mailbox in ["bob", "ann"] {
            assigned.push(add(&store, second, mailbox).await.id);
        }
        store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
        store.expire(at(second + 1), 10).await.unwrap();
        assert_eq!(
            store.usage().await.unwrap(),
            Usage::default(),
            "no message is left from which the last id could be derived"
        );
    }
    assert!(assigned.is_sorted_by(|one, other| one < other), "{assigned:?}");
}

async fn versions_are_never_reused<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let bob = name("bob");
    let mut versions = HashSet::new();
    for second in 0..4 {
        let store = open(dir.path().to_owned(), Limits::default()).await;
        let id = add(&store, second, "bob").await.id;
        assert!(versions.insert(store.version(&bob).await.unwrap()));
        store.set_seen(&bob, id, true).await.unwrap();
        assert!(versions.insert(store.version(&bob).await.unwrap()));
        store.purge(&bob, MessageId::MAX, usize::MAX).await.unwrap();
    }
    let store = open(dir.path().to_owned(), Limits::default()).await;
    assert_eq!(store.version(&bob).await.unwrap(), Version(0));
}

async fn expire_continues_after_restart<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let store = open(dir.path().to_owned(), Limits::default()).await;
    let mut added = Vec::new();
    for second in [5, 3, 4, 1] {
        added.push(add(&store, second, "bob").await);
    }
    drop(store);
    let store = open(dir.path().to_owned(), Limits::default()).await;
    assert_eq!(store.expire(at(5), 2).await.unwrap(), [added[3].clone(), added[1].clone()]);
    drop(store);
    let store = open(dir.path().to_owned(), Limits::default()).await;
    assert_eq!(store.expire(at(5), 2).await.unwrap(), [added[2].clone()]);
    assert_eq!(ids(&store, "bob").await, [added[0].id]);
}

async fn new_limits_apply_to_next_message<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let store = open(dir.path().to_owned(), Limits::default()).await;
    for second in 0..10 {
        store.append(message(second, &["bob"], &[b'x'; 1000])).await.unwrap();
    }
    let before = ids(&store, "bob").await;
    drop(store);

    let store = open(dir.path().to_owned(), Limits { messages_per_mailbox: 4, ..Limits::default() }).await;
    let appended = store.append(message(20, &["bob"], &[b'x'; 1000])).await.unwrap();
    let evicted: Vec<_> = appended.evicted.iter().map(|summary| summary.id).collect();
    assert_eq!(evicted, before[..7]);
    assert_eq!(ids(&store, "bob").await, [&before[7..], &[appended.stored[0].id]].concat());
    drop(store);

    let store = open(dir.path().to_owned(), Limits { bytes: 2_500, ..Limits::default() }).await;
    let appended = store.append(message(30, &["ann"], &[b'x'; 1000])).await.unwrap();
    assert_eq!(appended.evicted.len(), 3);
    assert_eq!(store.usage().await.unwrap().messages, 2);
}

async fn big_message_is_kept<S: Store, F: Future<Output = S>>(open: impl Fn(PathBuf, Limits) -> F) {
    let dir = TestDir::new();
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let store = open(dir.path().to_owned(), Limits::default()).await;
    let stored = store.append(message(1, &["ann", "bob"], &body)).await.unwrap().stored;
    drop(store);
    let store = open(dir.path().to_owned(), Limits::default()).await;
    store.remove(&stored[0].mailbox, stored[0].id).await.unwrap();
    let source = store.source(&stored[1].mailbox, stored[1].id).await.unwrap().unwrap();
    assert!(source.body == body);
}
