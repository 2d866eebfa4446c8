//! Many tasks use one store: no message is lost, returned twice or partly visible. The subject of a message contains
//! its number, and its body is derived from the subject, so that a reader can check it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::task::{JoinSet, yield_now};

use super::mailboxes::state_of;
use super::{SetMarks as _, add, at, ids, listing_ids, message, name};
use crate::{MailboxPage, MessageSelector, NewMessage, Page, Store, Usage, Version};

/// In ascending order.
const MAILBOXES: [&str; 3] = ["ann", "bob", "cid"];

pub(super) async fn many_writers_lose_nothing(store: impl Store) {
    let store = Arc::new(store);
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for second in 0..60 {
                let body = format!("{writer} {second}");
                let appended = store.append(message(second, &["shared", "other"], body.as_bytes())).await.unwrap();
                let id = appended.stored[0].id;
                let found = store.find(&name("shared"), MessageSelector::Id(id)).await.unwrap();
                assert_eq!(found.as_ref(), Some(&appended.stored[0]), "an acknowledged message is visible at once");
                acknowledged.push((id, body));
            }
            assert!(acknowledged.is_sorted_by(|one, other| one.0 < other.0), "later messages have higher ids");
            acknowledged
        });
    }
    let mut all: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    all.sort();
    assert_eq!(ids(&*store, "shared").await, all.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for (id, body) in all {
        assert_eq!(store.source(&name("shared"), id).await.unwrap().unwrap().body, body);
    }
}

/// The cap that is enforced whenever the mailbox is listed.
pub(super) const CAP: usize = 5;

pub(super) async fn cap_holds_with_many_writers(store: impl Store) {
    let store = Arc::new(store);
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let store = store.clone();
        writers.spawn(async move {
            let (mut stored, mut evicted) = (Vec::new(), Vec::new());
            for step in 0..40 {
                let first = (writer + step) % MAILBOXES.len();
                let appended = store.append(numbered(writer * 1000 + step, &MAILBOXES[first..])).await.unwrap();
                stored.extend(appended.stored);
                evicted.extend(appended.evicted);
                let count = ids(&*store, MAILBOXES[first]).await.len();
                assert!(count <= CAP, "{count} messages in one mailbox");
            }
            (stored, evicted)
        });
    }
    let (stored, evicted): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().unzip();
    for mailbox in MAILBOXES {
        assert_eq!(ids(&*store, mailbox).await.len(), CAP);
    }
    assert_accounted(&*store, stored.concat(), evicted.concat()).await;
}

/// Runs writers, readers and all kinds of deletion at the same time, in a store with a cap of four times [`CAP`].
pub(super) async fn every_message_is_accounted_for(store: impl Store) {
    const WRITERS: usize = 6;
    let store = Arc::new(store);
    let active_writers = Arc::new(AtomicUsize::new(WRITERS));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, active_writers) = (store.clone(), active_writers.clone());
        writers.spawn(async move {
            let (mut stored, mut evicted) = (Vec::new(), Vec::new());
            for step in 0..60 {
                let mailboxes = &MAILBOXES[step % MAILBOXES.len()..];
                let appended = store.append(numbered(step * 10 + writer, mailboxes)).await.unwrap();
                stored.extend(appended.stored);
                evicted.extend(appended.evicted);
            }
            active_writers.fetch_sub(1, Ordering::Release);
            (stored, evicted)
        });
    }
    let mut deleters = JoinSet::new();
    deleters.spawn(delete_until_written(store.clone(), active_writers.clone(), async |store, round| {
        store.expire(at(round), 7).await.unwrap()
    }));
    deleters.spawn(delete_until_written(store.clone(), active_writers.clone(), async |store, round| {
        if round % 5 > 0 {
            return Vec::new();
        }
        store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap()
    }));
    for picks_latest in [true, false] {
        deleters.spawn(delete_until_written(store.clone(), active_writers.clone(), async move |store, _| {
            let Some(summary) = pick_message(store, &name("bob"), picks_latest).await else { return Vec::new() };
            store.remove(&summary.mailbox, summary.id).await.unwrap().into_iter().collect()
        }));
    }
    let mut readers = JoinSet::new();
    for mailbox in MAILBOXES {
        readers.spawn(read_until_written(store.clone(), active_writers.clone(), name(mailbox)));
    }
    let (stored, mut deleted): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().unzip();
    deleted.extend(deleters.join_all().await);
    readers.join_all().await;
    assert_accounted(&*store, stored.concat(), deleted.concat()).await;
}

pub(super) async fn readers_see_whole_messages_during_purges(store: impl Store) {
    let store = Arc::new(store);
    let active_writers = Arc::new(AtomicUsize::new(1));
    let reader = tokio::spawn(read_until_written(store.clone(), active_writers.clone(), name("bob")));
    for number in 0..100 {
        store.append(numbered(number, &["bob"])).await.unwrap();
        if number % 7 == 0 {
            store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
        }
    }
    active_writers.store(0, Ordering::Release);
    reader.await.unwrap();
}

pub(super) async fn message_is_removed_once(store: impl Store) {
    let store = Arc::new(store);
    for round in 0..30 {
        let summary = add(&*store, round, "bob").await;
        let mut deleters = JoinSet::new();
        for deleter in 0..4 {
            let (store, mailbox, id) = (store.clone(), summary.mailbox.clone(), summary.id);
            deleters.spawn(async move {
                match deleter {
                    0 => store.purge(&mailbox, MessageId::MAX, usize::MAX).await.unwrap(),
                    1 => store.expire(at(round + 1), 10).await.unwrap(),
                    _ => store.remove(&mailbox, id).await.unwrap().into_iter().collect(),
                }
            });
        }
        assert_eq!(deleters.join_all().await.concat(), [summary], "exactly one call returns it");
    }
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}

/// The results of both calls agree, whichever runs first.
pub(super) async fn set_seen_and_remove_agree(store: impl Store) {
    let store = Arc::new(store);
    for round in 0..50 {
        let Summary { mailbox, id, .. } = add(&*store, round, "bob").await;
        let marking = tokio::spawn({
            let (store, mailbox) = (store.clone(), mailbox.clone());
            async move { store.set_seen(&mailbox, id, true).await.unwrap() }
        });
        if round % 2 == 0 {
            yield_now().await;
        }
        let removed = store.remove(&mailbox, id).await.unwrap().expect("only this call removes it");
        assert_eq!(marking.await.unwrap(), removed.seen, "it was marked before it was removed, or not found");
        assert_eq!(store.find(&mailbox, MessageSelector::Id(id)).await.unwrap(), None);
        assert_eq!(store.version(&mailbox).await.unwrap(), Version(0), "marking does not restore it");
    }
}

pub(super) async fn concurrent_changes_affect_only_their_mailbox(store: impl Store) {
    for round in 0..20 {
        let Summary { mailbox, id, .. } = add(&store, round, "bob").await;
        let other = name("nobody");
        let (own, foreign) = tokio::join!(store.set_seen(&mailbox, id, true), store.set_seen(&other, id, true));
        assert_eq!((own.unwrap(), foreign.unwrap()), (true, false));
        assert!(store.find(&mailbox, MessageSelector::Id(id)).await.unwrap().unwrap().seen);
        let (foreign, own) = tokio::join!(store.remove(&other, id), store.remove(&mailbox, id));
        assert_eq!((own.unwrap().map(|deleted| deleted.id), foreign.unwrap()), (Some(id), None));
    }
}

/// Returns a message whose subject, body and time are derived from its number.
fn numbered(number: usize, mailboxes: &[&str]) -> NewMessage {
    let second = i64::try_from(number).expect("tests use small numbers");
    message(second, mailboxes, body_of(&format!("number {second}")).as_bytes())
}

fn body_of(subject: &str) -> String {
    subject.repeat(1 + subject.len() * 7 % 40)
}

/// Returns the latest message of a mailbox, or the first one.
async fn pick_message(store: &impl Store, mailbox: &MailboxName, picks_latest: bool) -> Option<Summary> {
    if picks_latest {
        store.find(mailbox, MessageSelector::Latest).await.unwrap()
    } else {
        store.list(mailbox, Page::ALL).await.unwrap().messages.into_iter().next()
    }
}

/// Deletes in a loop while there are writers. Returns all deleted messages.
async fn delete_until_written<S: Store>(
    store: Arc<S>,
    active_writers: Arc<AtomicUsize>,
    delete: impl AsyncFn(&S, i64) -> Vec<Summary>,
) -> Vec<Summary> {
    let mut deleted = Vec::new();
    let mut round = 0;
    while active_writers.load(Ordering::Acquire) > 0 {
        deleted.extend(delete(&store, round).await);
        round += 1;
        yield_now().await;
    }
    deleted
}

/// Reads a mailbox in a loop while there are writers.
async fn read_until_written(store: Arc<impl Store>, active_writers: Arc<AtomicUsize>, mailbox: MailboxName) {
    let mut listed: HashMap<Version, Vec<Summary>> = HashMap::new();
    while active_writers.load(Ordering::Acquire) > 0 {
        let before = store.version(&mailbox).await.unwrap();
        let listing = store.list(&mailbox, Page::ALL).await.unwrap();
        let after = store.version(&mailbox).await.unwrap();
        if before == after && before != Version(0) {
            assert_eq!(listing.version, before, "a listing between two equal versions has that version");
        }
        assert!(listing_ids(&listing).is_sorted_by(|one, other| one < other));
        for summary in &listing.messages {
            let Some(source) = store.source(&mailbox, summary.id).await.unwrap() else { continue };
            assert_eq!(source.len() as u64, summary.size, "never partly visible");
            assert_eq!(source.body, body_of(summary.headline.subject()));
        }
        let messages = listed.entry(listing.version).or_insert_with(|| listing.messages.clone());
        assert_eq!(*messages, listing.messages, "one version, one listing");
        yield_now().await;
    }
    assert!(listed.get(&Version(0)).is_none_or(Vec::is_empty), "zero is the version of an empty mailbox");
}

/// Asserts that each stored message is either in the store or was returned by exactly one deletion, and that there are
/// no others.
async fn assert_accounted(store: &impl Store, stored: Vec<Summary>, deleted: Vec<Summary>) {
    let key = |summary: &Summary| (summary.mailbox.clone(), summary.id);
    let expected: HashSet<_> = stored.iter().map(key).collect();
    assert_eq!(expected.len(), stored.len(), "no id is used twice in a mailbox");
    let mut found = HashSet::new();
    for summary in &deleted {
        assert!(found.insert(key(summary)), "{summary:?} was deleted twice");
    }
    let (mut counted, mut states) = (Usage::default(), Vec::new());
    for mailbox in MAILBOXES {
        let messages = store.list(&name(mailbox), Page::ALL).await.unwrap().messages;
        counted.copies += messages.len() as u64;
        counted.mailboxes += u64::from(!messages.is_empty());
        states.extend(state_of(&messages));
        for summary in &messages {
            assert!(found.insert(key(summary)), "{summary:?} was deleted and is still listed");
        }
    }
    assert!(found == expected, "missing or unknown: {:?}", found.symmetric_difference(&expected));
    let usage = store.usage().await.unwrap();
    counted.messages = store.messages(None, Page::ALL).await.unwrap().messages.len() as u64;
    assert_eq!(Usage { bytes: 0, ..usage }, counted);
    assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), states);
    for mailbox in MAILBOXES {
        store.purge(&name(mailbox), MessageId::MAX, usize::MAX).await.unwrap();
    }
    assert_eq!(store.usage().await.unwrap(), Usage::default(), "nothing is left");
}
