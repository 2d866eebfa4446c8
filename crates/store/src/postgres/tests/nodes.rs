//! Several nodes on one database: each gets every change once, in the same order.

use std::time::Duration;

use restante_mail::message::{Flags, MessageId, Summary};
use restante_mail::tags::Tags;
use restante_testpg::{FaultProxy, Postgres};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::feed::{Change, CopyEvent, FeedItem, MarkChange};
use crate::tests::conformance::{SetMarks as _, message, name};
use crate::{ChangedMarks, StoreError, UpdateOutcome};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// Opens `N` nodes that share a new schema.
async fn nodes<const N: usize>(limits: Limits) -> Option<[PostgresStore; N]> {
    let (address, schema) = (address()?, fresh_schema());
    let mut opens = JoinSet::new();
    for _ in 0..N {
        let (address, settings) = (address.clone(), settings(limits.clone(), &schema));
        opens.spawn(async move { PostgresStore::open(&address, settings).await });
    }
    let opened = opens.join_all().await.into_iter();
    let nodes: Vec<_> = opened.map(|node| node.expect("all of them open at the same time")).collect();
    Some(nodes.try_into().unwrap_or_else(|_| unreachable!("the number of nodes is N")))
}

fn settings(limits: Limits, schema: &str) -> Settings {
    Settings { limits, schema: schema.to_owned(), ..Settings::default() }
}

/// Returns the next item that is not empty. A backlog is returned as changes.
async fn next_item(feed: &mut Feed) -> FeedItem {
    loop {
        match timeout(LONG, feed.next()).await.expect("an item arrives").expect("the store is open") {
            FeedItem::Backlog { changes, .. } if changes.is_empty() => {}
            FeedItem::Backlog { changes, .. } => return FeedItem::Changes(changes),
            other => return other,
        }
    }
}

/// Returns all changes up to the deletion of this message.
async fn changes_until_deletion_of(feed: &mut Feed, last: MessageId) -> Vec<Change> {
    let mut received = Vec::new();
    let is_last = |change: &Change| matches!(&change.event, CopyEvent::Deleted(summary) if summary.id == last);
    while !received.last().is_some_and(is_last) {
        match next_item(feed).await {
            FeedItem::Changes(changes) => received.extend(changes),
            other => panic!("{other:?}"),
        }
    }
    received
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ids_ascend_and_cap_holds_across_nodes() {
    const CAP: usize = 20;
    let Some(nodes) = nodes::<3>(Limits { messages_per_mailbox: CAP, ..Limits::default() }).await else { return };
    let nodes = nodes.map(Arc::new);
    let mut writers = JoinSet::new();
    for writer in 0..9 {
        let node = nodes[writer % 3].clone();
        writers.spawn(async move {
            let mut assigned = Vec::new();
            for second in 0..40 {
                let stored = node.append(message(second, &["shared"], b"x")).await.unwrap().stored;
                assigned.push(stored[0].id);
                let count = node.list(&name("shared"), Page::ALL).await.unwrap().messages.len();
                assert!(count <= CAP, "{count} messages");
            }
            assert!(assigned.is_sorted_by(|one, other| one < other));
            assigned
        });
    }
    let mut all = writers.join_all().await.concat();
    all.sort_unstable();
    let kept: Vec<_> = all[all.len() - CAP..].to_vec();
    all.dedup();
    assert_eq!(all.len(), 9 * 40, "no id is given twice");
    for node in &nodes {
        let listed = node.list(&name("shared"), Page::ALL).await.unwrap().messages;
        assert_eq!(listed.iter().map(|summary| summary.id).collect::<Vec<_>>(), kept);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_are_visible_on_other_nodes_at_once() {
    let Some([one, other]) = nodes::<2>(Limits::default()).await else { return };
    let bob = name("bob");
    for second in 0..100 {
        let stored = one.append(message(second, &["bob"], b"hello")).await.unwrap().stored.remove(0);
        // Queried twice, because the second result is a cached one.
        for _ in 0..2 {
            assert_eq!(other.find(&bob, MessageSelector::Latest).await.unwrap().as_ref(), Some(&stored));
            assert_eq!(other.find(&bob, MessageSelector::Id(stored.id)).await.unwrap().as_ref(), Some(&stored));
            assert_eq!(other.source(&bob, stored.id).await.unwrap().unwrap().body, "hello");
            assert_eq!(other.version(&bob).await.unwrap(), one.version(&bob).await.unwrap());
        }
        assert!(one.set_seen(&bob, stored.id, true).await.unwrap());
        assert!(other.find(&bob, MessageSelector::Id(stored.id)).await.unwrap().unwrap().seen);
        assert!(other.remove(&bob, stored.id).await.unwrap().is_some());
        assert_eq!(one.find(&bob, MessageSelector::Id(stored.id)).await.unwrap(), None);
        assert_eq!(one.source(&bob, stored.id).await.unwrap(), None);
        assert_eq!(one.version(&bob).await.unwrap(), Version(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_feed_has_all_changes_once_and_in_order() {
    let Some(nodes) = nodes::<3>(Limits { messages_per_mailbox: 10, ..Limits::default() }).await else { return };
    let nodes = nodes.map(Arc::new);
    let mut feeds = nodes.each_ref().map(|node| node.feed().expect("this is the first call"));
    assert!(nodes[0].feed().is_none(), "only the first call returns it");
    let mut workers = JoinSet::new();
    for worker in 0..6 {
        let (node, other_node) = (nodes[worker % 3].clone(), nodes[(worker + 1) % 3].clone());
        workers.spawn(async move {
            let mailbox = name("bob");
            for second in 0..40 {
                let stored = node.append(message(second, &["bob", "ann"], b"x")).await.unwrap().stored;
                match second % 3 {
                    // It may be deleted before its event was published.
                    0 => drop(other_node.remove(&mailbox, stored[0].id).await.unwrap()),
                    1 => drop(other_node.set_seen(&mailbox, stored[0].id, true).await.unwrap()),
                    _ => {}
                }
            }
        });
    }
    workers.join_all().await;
    let last = nodes[0].append(message(99, &["last"], b"x")).await.unwrap().stored.remove(0);
    nodes[1].remove(&last.mailbox, last.id).await.unwrap();

    let [first, second, third] = &mut feeds;
    let received = changes_until_deletion_of(first, last.id).await;
    assert!(received.is_sorted_by(|one, other| one.position < other.position), "each once, in order");
    let stored = received.iter().filter(|change| matches!(change.event, CopyEvent::Stored(_))).count();
    let deleted = received.iter().filter(|change| matches!(change.event, CopyEvent::Deleted(_))).count();
    assert_eq!(stored, 2 * 6 * 40 + 1);
    assert_eq!(deleted as u64, stored as u64 - nodes[0].usage().await.unwrap().copies);
    assert_eq!(changes_until_deletion_of(second, last.id).await, received);
    assert_eq!(changes_until_deletion_of(third, last.id).await, received);
}

/// All nodes write, tag and delete. At every moment each lists whole messages, and at the end all list the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_agree_on_messages_and_tags() {
    let Some(nodes) = nodes::<3>(Limits { messages_per_mailbox: 30, ..Limits::default() }).await else { return };
    let nodes = nodes.map(Arc::new);
    let mut workers = JoinSet::new();
    for worker in 0..6_usize {
        let (node, other_node) = (nodes[worker % 3].clone(), nodes[(worker + 1) % 3].clone());
        workers.spawn(async move {
            for second in 0..30 {
                // The cap evicts copies of "bob" and "last" only.
                let own = format!("own-{worker}");
                let stored = node.append(message(second, &[&own, "bob", "last"], b"x")).await.unwrap().stored;
                let id = MessageSelector::Id(stored[0].message);
                let keys: Vec<_> = stored.iter().map(CopyKey::from).collect();
                match second % 3 {
                    0 => {
                        let tags = Tags::new([own.as_str()]).unwrap();
                        let existing = other_node.set_tags(keys, tags.clone()).await.unwrap();
                        assert!(existing.contains(&CopyKey::from(&stored[0])));
                        assert_eq!(node.find_message(id).await.unwrap().unwrap().first().tags, tags);
                    }
                    1 => {
                        assert!(node.find_message(id).await.unwrap().is_some());
                        other_node.remove_copies(keys).await.unwrap();
                        assert_eq!(node.find_message(id).await.unwrap(), None);
                    }
                    _ => {}
                }
                let listing = node.messages(None, Page { limit: Some(20), ..Page::ALL }).await.unwrap();
                assert!(listing.version.0 <= node.store_version().await.unwrap().0);
                let ids: Vec<_> = listing.messages.iter().map(Message::id).collect();
                assert!(ids.is_sorted_by(|one, other| one < other), "each message is listed once: {ids:?}");
                let mut first_mailboxes = listing.messages.iter().map(|message| message.first().mailbox.as_str());
                assert!(first_mailboxes.all(|mailbox| mailbox.starts_with("own")), "no copy is missing");
            }
        });
    }
    workers.join_all().await;
    let expected = nodes[0].messages(None, Page::ALL).await.unwrap();
    assert_eq!(expected.messages.len() as u64, nodes[1].usage().await.unwrap().messages);
    assert!(expected.messages.len() >= 60, "{}", expected.messages.len());
    for node in &nodes {
        let listing = node.messages(None, Page::ALL).await.unwrap();
        assert_eq!((listing.version, &listing.messages), (expected.version, &expected.messages));
        assert_eq!(node.store_version().await.unwrap(), expected.version);
        for message in &expected.messages {
            // Queried twice, because the second result is a cached one.
            for _ in 0..2 {
                let found = node.find_message(MessageSelector::Id(message.id())).await.unwrap();
                assert_eq!(found.as_ref(), Some(message));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changed_tags_are_sent_to_other_nodes() {
    let Some([one, other]) = nodes::<2>(Limits::default()).await else { return };
    let mut feed = other.feed().unwrap();
    let stored = one.append(message(1, &["ann", "bob"], b"x")).await.unwrap().stored;
    let keys: Vec<_> = stored.iter().map(CopyKey::from).collect();
    let id = MessageSelector::Id(stored[0].message);
    assert_eq!(other.find_message(id).await.unwrap().unwrap().copies(), stored);
    let tags = Tags::new(["x", "Größe"]).unwrap();
    one.set_tags(keys.clone(), tags.clone()).await.unwrap();
    let modseqs = other.find_message(id).await.unwrap().unwrap().into_copies().into_iter().map(|copy| copy.modseq);
    assert_eq!(other.find_message(id).await.unwrap().unwrap().tags(), tags, "the cached message is outdated");
    assert_eq!(other.find(&stored[0].mailbox, MessageSelector::Latest).await.unwrap().unwrap().tags, tags);
    one.set_tags(keys.clone(), tags.clone()).await.unwrap();
    one.remove_copies(keys.clone()).await.unwrap();
    let changes = changes_until_deletion_of(&mut feed, stored[1].id).await;
    let after_storing = changes.into_iter().filter(|change| !matches!(change.event, CopyEvent::Stored(_)));
    let events: Vec<_> = after_storing.map(|change| change.event).collect();
    let tagged_copies: Vec<_> = stored
        .iter()
        .zip(modseqs)
        .map(|(copy, modseq)| Summary { tags: tags.clone(), modseq, ..copy.clone() })
        .collect();
    let tagged = tagged_copies.iter().map(|copy| {
        let (mailbox, tagged) = (copy.mailbox.clone(), ChangedMarks { tags: true, ..ChangedMarks::default() });
        CopyEvent::Marked(MarkChange { mailbox, id: copy.id, changed: tagged, marks: copy.marks() })
    });
    let deleted = tagged_copies.iter().cloned().map(CopyEvent::Deleted);
    assert_eq!(events, tagged.chain(deleted).collect::<Vec<_>>(), "setting the same tags again changes nothing");
}

/// An update of several marks is one change. An update that changes nothing is none. A node that was started later gets the
/// message as it was stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changed_marks_are_sent_to_other_nodes() {
    let Some([one, other]) = nodes::<2>(Limits::default()).await else { return };
    let mut feeds = [one.feed().unwrap(), other.feed().unwrap()];
    let mut new = message(1, &["bob"], b"x");
    (new.copies[0].seen, new.copies[0].flags) = (true, Flags::DRAFT);
    let stored = one.append(new).await.unwrap().stored.remove(0);
    let copy = || CopyKey::from(&stored);
    let update = CopyUpdate { seen: Some(false), flags: Some(Flags::FLAGGED), ..CopyUpdate::new(copy()) };
    let outcomes = other.update_copies(vec![update.clone(), update.clone()]).await.unwrap();
    let [UpdateOutcome::Updated(marks, changed_marks), unchanged] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(*changed_marks, ChangedMarks { seen: true, flags: true, tags: false });
    assert_eq!(*unchanged, UpdateOutcome::Updated(marks.clone(), ChangedMarks::default()));
    assert!(marks.modseq > stored.modseq);
    let late = CopyUpdate { if_modseq: Some(stored.modseq), ..update };
    assert_eq!(one.update_copies(vec![late]).await.unwrap(), [UpdateOutcome::Conflict]);
    assert_eq!(one.index(&stored.mailbox, MessageId::ZERO, 9).await.unwrap().entries[0].marks, *marks);
    assert_eq!(one.uid_validity().await.unwrap(), other.uid_validity().await.unwrap());
    let removed = other.remove(&stored.mailbox, stored.id).await.unwrap().unwrap();
    assert_eq!(removed.marks(), *marks);
    let marked =
        MarkChange { mailbox: stored.mailbox.clone(), id: stored.id, changed: *changed_marks, marks: marks.clone() };
    let expected = [CopyEvent::Stored(stored.clone()), CopyEvent::Marked(marked), CopyEvent::Deleted(removed)];
    let late_node = PostgresStore::open(&address().unwrap(), settings(Limits::default(), one.database.schema())).await;
    for feed in feeds.iter_mut().chain([&mut late_node.unwrap().feed().unwrap()]) {
        let changes = changes_until_deletion_of(feed, stored.id).await;
        assert_eq!(changes.into_iter().map(|change| change.event).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn disconnected_node_catches_up() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut proxy) = (fresh_schema(), FaultProxy::new(server.port()));
    let open = async |url: &str| {
        let address: Address = url.parse().expect("a valid URL");
        PostgresStore::open(&address, settings(Limits::default(), &schema)).await.expect("the database is available")
    };
    let (direct, proxied) = (open(&server.url()).await, open(&proxy.url(server)).await);
    let mut feed = proxied.feed().unwrap();
    let before = direct.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    assert_eq!(proxied.find(&before.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&before));

    proxy.disconnect();
    assert!(matches!(proxied.append(message(2, &["bob"], b"x")).await, Err(StoreError::Unavailable(_))));
    assert!(
        matches!(proxied.find(&before.mailbox, MessageSelector::Latest).await, Err(StoreError::Unavailable(_))),
        "a cached result cannot be checked"
    );
    assert!(matches!(proxied.usage().await, Err(StoreError::Unavailable(_))));
    let mut expected: Vec<Summary> = Vec::new();
    for second in 0..1200 {
        expected.extend(direct.append(message(second, &["bob"], b"x")).await.unwrap().stored);
    }
    let last = expected.last().unwrap().id;
    direct.remove(&name("bob"), last).await.unwrap();
    proxy.restore();

    let received = changes_until_deletion_of(&mut feed, last).await;
    let stored = received.into_iter().filter_map(|change| match change.event {
        CopyEvent::Stored(summary) => Some(summary),
        _ => None,
    });
    let stored: Vec<Summary> = stored.skip_while(|summary| summary.id <= before.id).collect();
    assert_eq!(stored, expected);
    let found = async || proxied.find(&before.mailbox, MessageSelector::Latest).await;
    let reconnected = timeout(LONG, async { while found().await.is_err() {} }).await;
    assert!(reconnected.is_ok(), "it reconnects by itself");
    assert!(proxied.append(message(3, &["bob"], b"x")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn node_disconnected_for_too_long_reports_gap() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut proxy) = (fresh_schema(), FaultProxy::new(server.port()));
    let proxied: Address = proxy.url(server).parse().unwrap();
    let proxied = PostgresStore::open(&proxied, settings(Limits::default(), &schema)).await.unwrap();
    let direct =
        PostgresStore::open(&server.url().parse().unwrap(), settings(Limits::default(), &schema)).await.unwrap();
    let mut feed = proxied.feed().unwrap();
    let first = direct.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    assert_eq!(proxied.find(&first.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&first));
    assert!(matches!(next_item(&mut feed).await, FeedItem::Changes(_)));

    proxy.disconnect();
    direct.remove(&first.mailbox, first.id).await.unwrap();
    direct.database.execute("SELECT trim_history('0 s', 1000)", &[]).await.unwrap();
    proxy.restore();
    assert_eq!(next_item(&mut feed).await, FeedItem::Gap);
    assert_eq!(
        proxied.find(&first.mailbox, MessageSelector::Latest).await.unwrap(),
        None,
        "no outdated result is cached"
    );
    let second = direct.append(message(2, &["bob"], b"x")).await.unwrap().stored.remove(0);
    let FeedItem::Changes(changes) = next_item(&mut feed).await else { panic!("expected changes") };
    assert_eq!(changes, [Change { position: second.id.number(), event: CopyEvent::Stored(second) }]);
}

/// A replica that had not received the last message takes over and makes other changes before the node polls.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failover_that_loses_changes_reports_gap() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut proxy) = (fresh_schema(), FaultProxy::new(server.port()));
    let proxied: Address = proxy.url(server).parse().unwrap();
    let proxied = PostgresStore::open(&proxied, settings(Limits::default(), &schema)).await.unwrap();
    let direct =
        PostgresStore::open(&server.url().parse().unwrap(), settings(Limits::default(), &schema)).await.unwrap();
    let mut feed = proxied.feed().unwrap();
    let lost = direct.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    for _ in 0..2 {
        assert_eq!(proxied.find(&lost.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&lost));
    }
    proxy.disconnect();
    for change in [
        "DELETE FROM copies",
        "DELETE FROM bodies",
        "DELETE FROM mailboxes",
        "UPDATE state SET last_change = 0, last_id = 0, messages = 0, copies = 0, mailboxes = 0, bytes = 0",
    ] {
        direct.database.execute(change, &[]).await.unwrap();
    }
    let after = direct.append(message(2, &["ann"], b"x")).await.unwrap().stored.remove(0);
    assert!(after.id > lost.id, "the position alone does not show it");
    proxy.restore();
    loop {
        match timeout(LONG, feed.next()).await.expect("an item arrives") {
            Some(FeedItem::Gap) => break,
            Some(FeedItem::Changes(changes)) => {
                assert!(changes.iter().all(|change| change.position <= lost.id.number()));
            }
            Some(FeedItem::Backlog { .. }) => {}
            None => panic!("the store is open"),
        }
    }
    assert_eq!(proxied.find(&lost.mailbox, MessageSelector::Latest).await.unwrap(), None);
    assert_eq!(proxied.find(&after.mailbox, MessageSelector::Latest).await.unwrap(), Some(after));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn new_node_gets_backlog() {
    let Some([old]) = nodes::<1>(Limits::default()).await else { return };
    let deleted = old.append(message(0, &["bob"], b"x")).await.unwrap().stored.remove(0);
    old.remove(&deleted.mailbox, deleted.id).await.unwrap();
    let first = old.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    let second = old.append(message(2, &["bob"], b"x")).await.unwrap().stored.remove(0);
    old.remove(&first.mailbox, first.id).await.unwrap();
    let (address, schema) = (address().expect("PostgreSQL is installed"), old.database.schema().to_owned());
    let open_and_read_backlog = async || {
        let new = PostgresStore::open(&address, settings(Limits::default(), &schema)).await.unwrap();
        match timeout(LONG, new.feed().unwrap().next()).await {
            Ok(Some(FeedItem::Backlog { after, changes })) => (after, changes),
            other => panic!("{other:?}"),
        }
    };
    let (after, changes) = open_and_read_backlog().await;
    let events: Vec<CopyEvent> = changes.iter().map(|change| change.event.clone()).collect();
    let [deleted, first, second] =
        [deleted, first, second].map(|summary| (CopyEvent::Stored(summary.clone()), CopyEvent::Deleted(summary)));
    assert_eq!(events, [deleted.0, deleted.1, first.0, second.0.clone(), first.1]);
    assert_eq!(after, 0, "nothing is missing");

    let last = changes.last().unwrap().position;
    old.database.execute("SELECT trim_history('0 s', 1000)", &[]).await.unwrap();
    let (after, changes) = open_and_read_backlog().await;
    assert_eq!((after, changes.len()), (last, 1), "only existing messages are left");
    assert_eq!(changes[0].event, second.0);
}
