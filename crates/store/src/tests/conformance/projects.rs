//! Rules about the mailboxes of a project: their messages, their overview, and the list of projects.

use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::tags::Tags;

use super::{SetMarks as _, at, message, name, project};
use crate::overview::{Overview, TagCount};
use crate::{CopyKey, Page, Store};

async fn append(store: &impl Store, second: i64, mailboxes: &[&str]) -> Vec<Summary> {
    store.append(message(second, mailboxes, b"body")).await.unwrap().stored
}

/// Returns the mailboxes of each message of a project.
async fn mailboxes(store: &impl Store, name: &str) -> Vec<Vec<String>> {
    let messages = store.messages(Some(&project(name)), Page::ALL).await.unwrap().messages;
    let names = |message: &Message| message.mailboxes().map(ToString::to_string).collect();
    messages.iter().map(names).collect()
}

/// Returns the names, numbers of copies and numbers of unread copies of the projects.
async fn projects(store: &impl Store, after: Option<&str>, limit: usize) -> Vec<(String, u64, u64)> {
    let states = store.projects(after.map(project).as_ref(), limit).await.unwrap();
    states.into_iter().map(|state| (state.name.to_string(), state.copies, state.unseen)).collect()
}

pub(super) async fn project_has_only_its_copies(store: &impl Store) {
    let copies = append(store, 1, &["bob", "shop:ann", "acme:ann", "shop:bob"]).await;
    append(store, 2, &["bob"]).await;
    // Not in the project `shop`, although their names begin in the same way.
    append(store, 3, &["shop", "shop-2:ann", "sho:ann"]).await;
    let last = append(store, 4, &["shop:cid"]).await;
    let messages = store.messages(Some(&project("shop")), Page::ALL).await.unwrap().messages;
    let whole = store.messages(None, Page::ALL).await.unwrap().messages;
    let restricted = whole[0].clone().restricted_to(|mailbox| mailbox.project() == Some(project("shop")));
    assert_eq!(messages[0], restricted.unwrap());
    assert_eq!((messages[0].id(), messages[0].first().id), (copies[0].id, copies[1].id), "the message keeps its id");
    assert_eq!(mailboxes(store, "shop").await, [vec!["shop:ann", "shop:bob"], vec!["shop:cid"]]);
    assert_eq!(mailboxes(store, "acme").await, [["acme:ann"]]);
    assert!(mailboxes(store, "bob").await.is_empty());
    let version = store.store_version().await.unwrap();
    assert_eq!(store.messages(Some(&project("bob")), Page::ALL).await.unwrap().version, version);
    store.remove(&copies[1].mailbox, copies[1].id).await.unwrap();
    store.purge(&name("shop:cid"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(mailboxes(store, "shop").await, [["shop:bob"]]);
    assert_eq!(store.expire(at(2), 10).await.unwrap().len(), 3);
    assert!(mailboxes(store, "shop").await.is_empty() && mailboxes(store, "acme").await.is_empty());
    store.append(message(5, &["shop:cid"], b"")).await.unwrap();
    assert_eq!(mailboxes(store, "shop").await, [["shop:cid"]]);
    assert!(store.messages(Some(&project("shop")), Page::ALL).await.unwrap().messages[0].id() > last[0].id);
}

pub(super) async fn list_returns_pages_of_a_project(store: &impl Store) {
    let mut messages = Vec::new();
    for second in 0..5 {
        messages.push(append(store, second, &["shop:a", "b", "shop:b", "acme:a"]).await);
        append(store, second, &["acme:b"]).await;
    }
    let copy = |at: Option<(usize, usize)>| at.map(|(message, copy)| messages[message][copy].id);
    // The limit, the copies at the ends, and the messages.
    let table = [
        (None, None, None, 0..5),
        (Some(2), None, None, 3..5),
        (Some(2), None, Some((3, 0)), 1..3),
        (Some(2), None, Some((3, 1)), 1..3),
        (Some(2), None, Some((3, 3)), 1..3),
        (Some(2), Some((1, 0)), None, 2..4),
        (Some(2), Some((1, 1)), None, 2..4),
        (Some(2), Some((1, 3)), None, 2..4),
        (Some(9), Some((0, 2)), Some((4, 2)), 1..4),
        (Some(0), None, None, 0..0),
        (None, Some((4, 0)), None, 0..0),
        (None, Some((3, 0)), Some((1, 0)), 0..0),
    ];
    for (limit, after, before, expected) in table {
        let page = Page { limit, after: copy(after), before: copy(before) };
        let found = store.messages(Some(&project("shop")), page).await.unwrap().messages;
        let copies: Vec<Summary> = found.into_iter().flat_map(Message::into_copies).collect();
        let expected = messages[expected].iter().flat_map(|copies| [copies[0].clone(), copies[2].clone()]);
        assert_eq!(copies, expected.collect::<Vec<_>>(), "{limit:?} {after:?} {before:?}");
    }
    // Messages with more copies than are expected.
    let names: Vec<String> = (0..100).map(|number| format!("many:{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for second in 0..3 {
        append(store, second, &names).await;
    }
    for after in [None, Some(MessageId::ZERO)] {
        let page = Page { limit: Some(2), after, before: None };
        let found = store.messages(Some(&project("many")), page).await.unwrap().messages;
        assert_eq!(found.iter().map(|message| message.copies().len()).collect::<Vec<_>>(), [100, 100]);
    }
}

pub(super) async fn overview_counts_messages_of_a_project(store: &impl Store) {
    let shop = project("shop");
    assert_eq!(store.overview(Some(&shop)).await.unwrap(), Overview::default());
    let shared = append(store, 1, &["shop:ann", "bob", "shop:bob"]).await;
    append(store, 2, &["shop:ann"]).await;
    append(store, 3, &["acme:ann", "bob"]).await;
    let overview = |messages, unread, tags: &[(&str, u64)]| Overview {
        messages,
        unread,
        tags: tags.iter().map(|&(tag, messages)| TagCount { tag: tag.to_owned(), messages }).collect(),
    };
    let all = [("for shop ann", 2), ("for shop bob", 1), ("new", 2), ("tag 1", 1), ("tag 2", 1)];
    assert_eq!(store.overview(Some(&shop)).await.unwrap(), overview(2, 2, &all));
    // The copy of another mailbox does not count.
    for (copy, unread) in [(1, 2), (0, 2), (2, 1)] {
        assert!(store.set_seen(&shared[copy].mailbox, shared[copy].id, true).await.unwrap());
        assert_eq!(store.overview(Some(&shop)).await.unwrap(), overview(2, unread, &all));
    }
    let keys = [&shared[0], &shared[1]].map(CopyKey::from).to_vec();
    store.set_tags(keys, Tags::new(["other"]).unwrap()).await.unwrap();
    let changed = [("for shop ann", 1), ("for shop bob", 1), ("new", 2), ("other", 1), ("tag 1", 1), ("tag 2", 1)];
    assert_eq!(store.overview(Some(&shop)).await.unwrap(), overview(2, 1, &changed));
    store.purge(&name("shop:ann"), MessageId::MAX, usize::MAX).await.unwrap();
    let rest = [("for shop bob", 1), ("new", 1), ("tag 1", 1)];
    assert_eq!(store.overview(Some(&shop)).await.unwrap(), overview(1, 0, &rest));
    store.remove(&shared[2].mailbox, shared[2].id).await.unwrap();
    assert_eq!(store.overview(Some(&shop)).await.unwrap(), Overview::default());
}

pub(super) async fn list_contains_projects_with_messages(store: &impl Store) {
    assert!(projects(store, None, 10).await.is_empty());
    append(store, 1, &["shop:ann", "bob", "shop:bob", "a:x", "a-b:x"]).await;
    append(store, 2, &["zoe"]).await;
    let shop = append(store, 3, &["shop:ann"]).await;
    store.set_seen(&shop[0].mailbox, shop[0].id, true).await.unwrap();
    let expected =
        [("a", 1, 1), ("a-b", 1, 1), ("shop", 3, 2)].map(|(name, copies, unseen)| (name.to_owned(), copies, unseen));
    // The last project of the page before, the limit, and the projects.
    let table = [
        (None, usize::MAX, 0..3),
        (None, 2, 0..2),
        (None, 0, 0..0),
        (Some("a"), 1, 1..2),
        (Some("a-a"), 10, 1..3),
        (Some("shop"), 10, 3..3),
    ];
    for (after, limit, found) in table {
        assert_eq!(projects(store, after, limit).await, expected[found], "{after:?} {limit}");
    }
    store.purge(&name("a:x"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(projects(store, None, 10).await, expected[1..]);
}

/// The cap is one message per mailbox.
pub(super) async fn limits_remove_copies_of_projects(store: &impl Store) {
    append(store, 1, &["shop:ann", "shop:bob", "ann"]).await;
    append(store, 2, &["shop:bob", "ann"]).await;
    assert_eq!(mailboxes(store, "shop").await, [["shop:ann"], ["shop:bob"]]);
    assert_eq!(projects(store, None, 10).await, [("shop".to_owned(), 2, 2)]);
}
