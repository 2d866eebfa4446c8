//! Several nodes on one database: each gets every change once, in the same order.

use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_testpg::{FaultProxy, Postgres};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::conformance::{message, name};
use crate::feed::{Change, Event, FeedItem};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Opens nodes that share a new schema.
async fn nodes<const N: usize>(limits: Limits) -> Option<[PostgresStore; N]> {
    let (address, schema) = (address()?, fresh_schema());
    let mut opening = JoinSet::new();
    for _ in 0..N {
        let (address, settings) = (address.clone(), settings(limits, &schema));
        opening.spawn(async move { PostgresStore::open(&address, settings).await });
    }
    let opened = opening.join_all().await.into_iter();
    let nodes: Vec<_> = opened.map(|node| node.expect("all of them can be opened at once")).collect();
    Some(nodes.try_into().unwrap_or_else(|_| unreachable!("there are as many as were opened")))
}

fn settings(limits: Limits, schema: &str) -> Settings {
    Settings { limits, schema: schema.to_owned(), ..Settings::default() }
}

/// Returns the next item that is not empty. A backlog is returned as changes.
async fn news(feed: &mut Feed) -> FeedItem {
    loop {
        match timeout(PATIENCE, feed.next()).await.expect("news come").expect("the store is there") {
            FeedItem::Backlog { changes, .. } if changes.is_empty() => {}
            FeedItem::Backlog { changes, .. } => return FeedItem::Changes(changes),
            other => return other,
        }
    }
}

/// Returns all changes up to the deletion of this message.
async fn heard_until_gone(feed: &mut Feed, last: MessageId) -> Vec<Change> {
    let mut heard = Vec::new();
    let is_last = |change: &Change| matches!(&change.event, Event::Deleted(summary) if summary.id == last);
    while !heard.last().is_some_and(is_last) {
        match news(feed).await {
            FeedItem::Changes(changes) => heard.extend(changes),
            other => panic!("{other:?}"),
        }
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ids_ascend_and_the_cap_holds_whoever_stores() {
    const CAP: usize = 20;
    let Some(nodes) = nodes::<3>(Limits { messages_per_mailbox: CAP, bytes: 0 }).await else { return };
    let nodes = nodes.map(Arc::new);
    let mut writers = JoinSet::new();
    for writer in 0..9 {
        let node = nodes[writer % 3].clone();
        writers.spawn(async move {
            let mut given = Vec::new();
            for second in 0..40 {
                let stored = node.append(message(second, &["shared"], b"x")).await.unwrap().stored;
                given.push(stored[0].id);
                let held = node.list(&name("shared"), Page::ALL).await.unwrap().messages.len();
                assert!(held <= CAP, "{held} messages");
            }
            assert!(given.is_sorted_by(|one, other| one < other));
            given
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
async fn what_one_node_does_another_shows_at_once() {
    let Some([one, other]) = nodes::<2>(Limits::default()).await else { return };
    let bob = name("bob");
    for second in 0..100 {
        let came = one.append(message(second, &["bob"], b"hello")).await.unwrap().stored.remove(0);
        // Queried twice, because the second result is a cached one.
        for _ in 0..2 {
            assert_eq!(other.find(&bob, MessageSelector::Latest).await.unwrap().as_ref(), Some(&came));
            assert_eq!(other.find(&bob, MessageSelector::Id(came.id)).await.unwrap().as_ref(), Some(&came));
            assert_eq!(other.source(&bob, came.id).await.unwrap().unwrap().body, "hello");
            assert_eq!(other.version(&bob).await.unwrap(), one.version(&bob).await.unwrap());
        }
        assert!(one.set_seen(&bob, came.id, true).await.unwrap());
        assert!(other.find(&bob, MessageSelector::Id(came.id)).await.unwrap().unwrap().seen);
        assert!(other.remove(&bob, came.id).await.unwrap().is_some());
        assert_eq!(one.find(&bob, MessageSelector::Id(came.id)).await.unwrap(), None);
        assert_eq!(one.source(&bob, came.id).await.unwrap(), None);
        assert_eq!(one.version(&bob).await.unwrap(), Version(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_node_hears_of_everything_once_and_in_one_order() {
    let Some(nodes) = nodes::<3>(Limits { messages_per_mailbox: 10, bytes: 0 }).await else { return };
    let nodes = nodes.map(Arc::new);
    let mut feeds = nodes.each_ref().map(|node| node.feed().expect("nobody has it yet"));
    assert!(nodes[0].feed().is_none(), "it is for the first who asks");
    let mut workers = JoinSet::new();
    for worker in 0..6 {
        let (node, helper) = (nodes[worker % 3].clone(), nodes[(worker + 1) % 3].clone());
        workers.spawn(async move {
            let mailbox = name("bob");
            for second in 0..40 {
                let stored = node.append(message(second, &["bob", "ann"], b"x")).await.unwrap().stored;
                match second % 3 {
                    // It may be deleted before its event was published.
                    0 => drop(helper.remove(&mailbox, stored[0].id).await.unwrap()),
                    1 => drop(helper.set_seen(&mailbox, stored[0].id, true).await.unwrap()),
                    _ => {}
                }
            }
        });
    }
    workers.join_all().await;
    let last = nodes[0].append(message(99, &["last"], b"x")).await.unwrap().stored.remove(0);
    nodes[1].remove(&last.mailbox, last.id).await.unwrap();

    let [first, second, third] = &mut feeds;
    let heard = heard_until_gone(first, last.id).await;
    assert!(heard.is_sorted_by(|one, other| one.position < other.position), "each once, in order");
    let stored = heard.iter().filter(|change| matches!(change.event, Event::Stored(_))).count();
    let deleted = heard.iter().filter(|change| matches!(change.event, Event::Deleted(_))).count();
    assert_eq!(stored, 2 * 6 * 40 + 1);
    assert_eq!(deleted as u64, stored as u64 - nodes[0].usage().await.unwrap().messages);
    assert_eq!(heard_until_gone(second, last.id).await, heard);
    assert_eq!(heard_until_gone(third, last.id).await, heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_was_cut_off_catches_up() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut line) = (fresh_schema(), FaultProxy::new(server.port()));
    let open = async |url: &str| {
        let address: Address = url.parse().expect("a URL of our own");
        PostgresStore::open(&address, settings(Limits::default(), &schema)).await.expect("the database is there")
    };
    let (near, far) = (open(&server.url()).await, open(&line.url(server)).await);
    let mut feed = far.feed().unwrap();
    let before = near.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    assert_eq!(far.find(&before.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&before));

    line.disconnect();
    assert!(matches!(far.append(message(2, &["bob"], b"x")).await, Err(StoreError::Unavailable(_))));
    assert!(
        matches!(far.find(&before.mailbox, MessageSelector::Latest).await, Err(StoreError::Unavailable(_))),
        "who knows"
    );
    assert!(matches!(far.usage().await, Err(StoreError::Unavailable(_))));
    let mut expected: Vec<Summary> = Vec::new();
    for second in 0..1200 {
        expected.extend(near.append(message(second, &["bob"], b"x")).await.unwrap().stored);
    }
    let last = expected.last().unwrap().id;
    near.remove(&name("bob"), last).await.unwrap();
    line.restore();

    let heard = heard_until_gone(&mut feed, last).await;
    let stored = heard.into_iter().filter_map(|change| match change.event {
        Event::Stored(summary) => Some(summary),
        _ => None,
    });
    let stored: Vec<Summary> = stored.skip_while(|summary| summary.id <= before.id).collect();
    assert_eq!(stored, expected);
    let found = async || far.find(&before.mailbox, MessageSelector::Latest).await;
    let is_there = timeout(PATIENCE, async { while found().await.is_err() {} }).await;
    assert!(is_there.is_ok(), "it is there again by itself");
    assert!(far.append(message(3, &["bob"], b"x")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_was_cut_off_for_too_long_knows_that() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut line) = (fresh_schema(), FaultProxy::new(server.port()));
    let far: Address = line.url(server).parse().unwrap();
    let far = PostgresStore::open(&far, settings(Limits::default(), &schema)).await.unwrap();
    let near = PostgresStore::open(&server.url().parse().unwrap(), settings(Limits::default(), &schema)).await.unwrap();
    let mut feed = far.feed().unwrap();
    let first = near.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    assert_eq!(far.find(&first.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&first));
    assert!(matches!(news(&mut feed).await, FeedItem::Changes(_)));

    line.disconnect();
    near.remove(&first.mailbox, first.id).await.unwrap();
    near.database.execute("SELECT tidy('0 s', 1000)", &[]).await.unwrap();
    line.restore();
    assert_eq!(news(&mut feed).await, FeedItem::Gap);
    assert_eq!(far.find(&first.mailbox, MessageSelector::Latest).await.unwrap(), None, "nothing is remembered wrongly");
    let second = near.append(message(2, &["bob"], b"x")).await.unwrap().stored.remove(0);
    let FeedItem::Changes(changes) = news(&mut feed).await else { panic!("there is nothing else to say") };
    assert_eq!(changes, [Change { position: second.id.number(), event: Event::Stored(second) }]);
}

/// A replica that had not received the last message takes over and makes other changes before the node polls.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_took_over_without_the_last_changes_is_noticed() {
    let Some(server) = Postgres::shared() else { return };
    let (schema, mut line) = (fresh_schema(), FaultProxy::new(server.port()));
    let far: Address = line.url(server).parse().unwrap();
    let far = PostgresStore::open(&far, settings(Limits::default(), &schema)).await.unwrap();
    let near = PostgresStore::open(&server.url().parse().unwrap(), settings(Limits::default(), &schema)).await.unwrap();
    let mut feed = far.feed().unwrap();
    let ghost = near.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    for _ in 0..2 {
        assert_eq!(far.find(&ghost.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(&ghost));
    }
    line.disconnect();
    for change in [
        "DELETE FROM copies",
        "DELETE FROM bodies",
        "DELETE FROM mailboxes",
        "UPDATE state SET clock = 0, last_id = 0, messages = 0, mailboxes = 0, bytes = 0",
    ] {
        near.database.execute(change, &[]).await.unwrap();
    }
    let after = near.append(message(2, &["ann"], b"x")).await.unwrap().stored.remove(0);
    assert!(after.id > ghost.id, "by its number alone nobody would notice");
    line.restore();
    loop {
        match timeout(PATIENCE, feed.next()).await.expect("news come") {
            Some(FeedItem::Gap) => break,
            Some(FeedItem::Changes(changes)) => {
                assert!(changes.iter().all(|change| change.position <= ghost.id.number()))
            }
            Some(FeedItem::Backlog { .. }) => {}
            None => panic!("the store is there"),
        }
    }
    assert_eq!(far.find(&ghost.mailbox, MessageSelector::Latest).await.unwrap(), None);
    assert_eq!(far.find(&after.mailbox, MessageSelector::Latest).await.unwrap(), Some(after));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_starts_knows_what_has_just_happened() {
    let Some([old]) = nodes::<1>(Limits::default()).await else { return };
    let gone = old.append(message(0, &["bob"], b"x")).await.unwrap().stored.remove(0);
    old.remove(&gone.mailbox, gone.id).await.unwrap();
    let first = old.append(message(1, &["bob"], b"x")).await.unwrap().stored.remove(0);
    let second = old.append(message(2, &["bob"], b"x")).await.unwrap().stored.remove(0);
    old.remove(&first.mailbox, first.id).await.unwrap();
    let (address, schema) = (address().expect("it was there"), old.database.schema().to_owned());
    let begin = async || {
        let new = PostgresStore::open(&address, settings(Limits::default(), &schema)).await.unwrap();
        match timeout(PATIENCE, new.feed().unwrap().next()).await {
            Ok(Some(FeedItem::Backlog { after, changes })) => (after, changes),
            other => panic!("{other:?}"),
        }
    };
    let (behind, changes) = begin().await;
    let events: Vec<Event> = changes.iter().map(|change| change.event.clone()).collect();
    let [gone, first, second] =
        [gone, first, second].map(|summary| (Event::Stored(summary.clone()), Event::Deleted(summary)));
    assert_eq!(events, [gone.0, gone.1, first.0, second.0.clone(), first.1]);
    assert_eq!(behind, 0, "nothing is left out");

    let last = changes.last().unwrap().position;
    old.database.execute("SELECT tidy('0 s', 1000)", &[]).await.unwrap();
    let (behind, changes) = begin().await;
    assert_eq!((behind, changes.len()), (last, 1), "all but what is there is forgotten");
    assert_eq!(changes[0].event, second.0);
}
