//! Rules about messages as a whole: a message and its copies in mailboxes.

use std::collections::HashSet;

use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::tags::{MAX_TAG_CHARS, MAX_TAGS, Tags};

use super::{SetMarks as _, add, at, details_of, message, name, new_copy};
use crate::overview::{Overview, TagCount};
use crate::{CopyKey, MessageSelector, NewCopy, NewMessage, Page, Store, Usage};

async fn append(store: &impl Store, second: i64, mailboxes: &[&str]) -> Vec<Summary> {
    store.append(message(second, mailboxes, b"body")).await.unwrap().stored
}

async fn all(store: &impl Store) -> Vec<Vec<String>> {
    let listing = store.messages(None, Page::ALL).await.unwrap();
    let names = |message: &Message| message.mailboxes().map(ToString::to_string).collect();
    listing.messages.iter().map(names).collect()
}

async fn find(store: &impl Store, id: MessageId) -> Option<Message> {
    store.find_message(MessageSelector::Id(id)).await.unwrap()
}

/// Checks that the copies of a message have one headline in memory. It can be large, and there can be many copies.
fn assert_headline_is_shared(message: &Message) {
    let headlines = message.copies().iter().map(|copy| copy.headline.from().as_ptr());
    assert_eq!(headlines.collect::<HashSet<_>>().len(), 1, "{message:?}");
}

pub(super) async fn list_contains_each_message_once(store: &impl Store) {
    assert!(store.messages(None, Page::ALL).await.unwrap().messages.is_empty());
    assert_eq!(store.find_message(MessageSelector::Latest).await.unwrap(), None);
    let first = append(store, 1, &["ann", "bob", "cid"]).await;
    let second = append(store, 2, &["bob"]).await;
    let expected = Message::group(first.iter().chain(&second).cloned());
    assert_eq!(expected.len(), 2);
    assert_eq!(store.messages(None, Page::ALL).await.unwrap().messages, expected);
    assert_eq!(store.find_message(MessageSelector::Latest).await.unwrap().as_ref(), Some(&expected[1]));
    assert_eq!(find(store, first[0].id).await.as_ref(), Some(&expected[0]));
    assert_headline_is_shared(&find(store, first[0].id).await.unwrap());
    assert_eq!(find(store, first[1].id).await, None, "the id of a copy is not the id of a message");
    for (copy, mailbox) in first.iter().zip(["ann", "bob", "cid"]) {
        assert_eq!((copy.message, &copy.details), (first[0].id, &details_of(mailbox)));
        assert_eq!(copy.tags.iter().collect::<Vec<_>>(), ["new", "tag 1", &format!("for {mailbox}")]);
        let found = store.find(&copy.mailbox, MessageSelector::Id(copy.id)).await.unwrap();
        assert_eq!(found.as_ref(), Some(copy));
    }
}

pub(super) async fn list_returns_pages_of_messages(store: &impl Store) {
    let mut ids = Vec::new();
    for second in 0..5 {
        ids.push(append(store, second, &["a", "b", "c"]).await[0].id);
    }
    let page = |limit, after: Option<usize>, before: Option<usize>| Page {
        limit,
        after: after.map(|at| ids[at]),
        before: before.map(|at| ids[at]),
    };
    let table = [
        (page(None, None, None), 0..5),
        (page(Some(2), None, None), 3..5),
        (page(Some(2), None, Some(3)), 1..3),
        (page(Some(2), Some(1), None), 2..4),
        (page(Some(9), Some(0), Some(4)), 1..4),
        (page(Some(0), None, None), 0..0),
        (page(None, Some(4), None), 0..0),
        (page(None, Some(3), Some(1)), 0..0),
    ];
    for (page, expected) in table {
        let messages = store.messages(None, page).await.unwrap().messages;
        let found: Vec<_> = messages.iter().map(Message::id).collect();
        assert_eq!(found, ids[expected], "{page:?}");
        assert!(messages.iter().all(|message| message.copies().len() == 3), "{page:?}");
        messages.iter().for_each(assert_headline_is_shared);
    }
}

pub(super) async fn message_exists_while_it_has_copies(store: &impl Store) {
    let copies = append(store, 1, &["ann", "bob", "cid"]).await;
    let id = copies[0].message;
    store.remove(&copies[0].mailbox, copies[0].id).await.unwrap();
    assert_eq!(find(store, id).await.unwrap().copies(), &copies[1..], "the id does not change");
    assert_eq!(all(store).await, [["bob", "cid"]]);
    store.purge(&name("cid"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(all(store).await, [["bob"]]);
    assert_eq!(store.usage().await.unwrap().messages, 1);
    store.expire(at(2), 10).await.unwrap();
    assert_eq!(find(store, id).await, None);
    assert!(all(store).await.is_empty());
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}

/// The cap is one message per mailbox.
pub(super) async fn limits_remove_single_copies(store: &impl Store) {
    append(store, 1, &["ann", "bob"]).await;
    append(store, 2, &["bob", "cid"]).await;
    assert_eq!(all(store).await, [vec!["ann"], vec!["bob", "cid"]]);
    append(store, 3, &["ann"]).await;
    assert_eq!(all(store).await, [vec!["bob", "cid"], vec!["ann"]]);
}

pub(super) async fn tags_are_set_on_copies(store: &impl Store) {
    let copies = append(store, 1, &["ann", "bob"]).await;
    let id = copies[0].message;
    let [one, two] = [["one"], ["two"]].map(|tags| Tags::new(tags).unwrap());
    let keys: Vec<_> = copies.iter().map(CopyKey::from).collect();
    let missing = CopyKey { mailbox: name("bob"), id: copies[0].id };
    let existing = store.set_tags(vec![keys[0].clone(), missing, keys[1].clone()], one.clone()).await.unwrap();
    assert_eq!(existing, keys, "a copy that does not exist is ignored");
    assert_eq!(find(store, id).await.unwrap().tags(), one);
    assert_eq!(store.set_tags(vec![keys[1].clone()], two).await.unwrap(), keys[1..]);
    assert_eq!(find(store, id).await.unwrap().tags().iter().collect::<Vec<_>>(), ["one", "two"]);
    store.set_tags(keys, Tags::default()).await.unwrap();
    assert!(find(store, id).await.unwrap().tags().is_empty());
    assert!(store.list(&name("ann"), Page::ALL).await.unwrap().messages[0].tags.is_empty());
}

/// The longest possible tags, of characters that compress badly.
pub(super) async fn overview_counts_long_tags(store: &impl Store) {
    let mut state = 1_u32;
    let mut character = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x2_0000 + (state >> 16) % 0xA000).unwrap()
    };
    let tags: Vec<String> = (0..MAX_TAGS).map(|_| (0..MAX_TAG_CHARS).map(|_| character()).collect()).collect();
    let tags = Tags::new(tags.iter().map(String::as_str)).unwrap();
    for mailboxes in [&["ann"] as &[_], &["ann", "bob"]] {
        let copies = append(store, 1, mailboxes).await;
        store.set_tags(copies.iter().map(CopyKey::from).collect(), tags.clone()).await.unwrap();
    }
    let overview = store.overview(None).await.unwrap();
    assert_eq!(overview.tags.len(), MAX_TAGS);
    assert!(overview.tags.iter().all(|count| count.messages == 2), "{overview:?}");
}

pub(super) async fn overview_counts_messages(store: &impl Store) {
    assert_eq!(store.overview(None).await.unwrap(), Overview::default());
    let first = append(store, 1, &["ann", "bob"]).await;
    let second = append(store, 2, &["bob"]).await;
    let overview = |messages, unread, tags: &[(&str, u64)]| Overview {
        messages,
        unread,
        tags: tags.iter().map(|&(tag, messages)| TagCount { tag: tag.to_owned(), messages }).collect(),
    };
    let all = [("for ann", 1), ("for bob", 2), ("new", 2), ("tag 1", 1), ("tag 2", 1)];
    assert_eq!(store.overview(None).await.unwrap(), overview(2, 2, &all));
    // A message is read when all of its copies are.
    for (copy, unread) in [(&first[0], 2), (&first[1], 1), (&first[1], 1), (&second[0], 0)] {
        store.set_seen(&copy.mailbox, copy.id, true).await.unwrap();
        assert_eq!(store.overview(None).await.unwrap(), overview(2, unread, &all));
    }
    store.set_seen(&first[0].mailbox, first[0].id, false).await.unwrap();
    store.set_tags(vec![CopyKey::from(&second[0])], Tags::new(["Zoë", "NEW"]).unwrap()).await.unwrap();
    let found = store.overview(None).await.unwrap();
    assert_eq!(found.unread, 1);
    let names: Vec<_> = found.tags.iter().map(|count| (count.tag.to_lowercase(), count.messages)).collect();
    let expected = [("for ann", 1), ("for bob", 1), ("new", 2), ("tag 1", 1), ("zoë", 1)];
    assert_eq!(names, expected.map(|(tag, messages)| (tag.to_owned(), messages)), "tags are equal in any case");
    store.remove(&first[0].mailbox, first[0].id).await.unwrap();
    store.remove(&second[0].mailbox, second[0].id).await.unwrap();
    assert_eq!(store.overview(None).await.unwrap(), overview(1, 0, &[("for bob", 1), ("new", 1), ("tag 1", 1)]));
    store.remove(&first[1].mailbox, first[1].id).await.unwrap();
    assert_eq!(store.overview(None).await.unwrap(), Overview::default());
}

pub(super) async fn overview_has_current_spellings_of_tags(store: &impl Store) {
    let mut copies = append(store, 1, &["ann", "bob"]).await;
    copies.extend(append(store, 2, &["bob"]).await);
    let keys: Vec<CopyKey> = copies.iter().map(CopyKey::from).collect();
    for tag in ["name", "Name", "NAME"] {
        for copy in &keys {
            store.set_tags(vec![copy.clone()], Tags::new([tag]).unwrap()).await.unwrap();
        }
        let expected = [TagCount { tag: tag.to_owned(), messages: 2 }];
        assert_eq!(store.overview(None).await.unwrap().tags, expected);
    }
}

pub(super) async fn overview_has_the_spelling_of_the_most_copies(store: &impl Store) {
    let copies = append(store, 1, &["ann", "bob", "cid"]).await;
    let single = append(store, 2, &["ann"]).await;
    let table: [([&str; 3], &str, &str); 5] = [
        (["name", "name", "NAME"], "other", "name"),
        (["NAME", "name", "NAME"], "other", "NAME"),
        // Of several spellings, the first one.
        (["name", "name", "NAME"], "NAME", "NAME"),
        (["name", "Name", "nAME"], "other", "Name"),
        (["Name", "name", "NAME"], "name", "name"),
    ];
    for (spellings, other, expected) in table {
        for (copy, tag) in copies.iter().chain(&single).zip(spellings.into_iter().chain([other])) {
            store.set_tags(vec![CopyKey::from(copy)], Tags::new([tag]).unwrap()).await.unwrap();
        }
        let overview = store.overview(None).await.unwrap();
        assert_eq!(overview.tags[0].tag, expected, "{spellings:?} {other}");
    }
}

pub(super) async fn copies_are_removed_together(store: &impl Store) {
    let first = append(store, 1, &["ann", "bob", "cid"]).await;
    let second = append(store, 2, &["bob"]).await;
    let keys: Vec<_> = first.iter().rev().map(CopyKey::from).collect();
    assert_eq!(store.remove_copies(keys.clone()).await.unwrap(), first, "ascending by id");
    assert!(store.remove_copies(keys).await.unwrap().is_empty());
    assert!(store.remove_copies(Vec::new()).await.unwrap().is_empty());
    assert_eq!(store.messages(None, Page::ALL).await.unwrap().messages, Message::group(second));
}

pub(super) async fn numbers_ascend_and_are_never_reused(store: &impl Store) {
    let mut used = HashSet::new();
    let mut last = 0;
    for second in 0..6 {
        let copy = add(store, second, "bob").await;
        assert!(copy.number > last && used.insert(copy.number), "{} after {last}", copy.number);
        last = copy.number;
        // Sometimes the mailbox is emptied, and others are created and emptied meanwhile.
        if second % 2 == 0 {
            store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
            let other = add(store, second, "ann").await;
            store.remove(&other.mailbox, other.id).await.unwrap();
        }
    }
}

pub(super) async fn store_version_changes_with_every_change(store: &impl Store) {
    let mut used = HashSet::new();
    used.insert(store.store_version().await.unwrap());
    let copies = append(store, 1, &["ann", "bob"]).await;
    let keys: Vec<_> = copies.iter().map(CopyKey::from).collect();
    assert!(used.insert(store.store_version().await.unwrap()), "append");
    store.set_seen(&copies[0].mailbox, copies[0].id, true).await.unwrap();
    assert!(used.insert(store.store_version().await.unwrap()), "set_seen");
    store.set_tags(keys.clone(), Tags::default()).await.unwrap();
    assert!(used.insert(store.store_version().await.unwrap()), "set_tags");
    store.remove(&copies[0].mailbox, copies[0].id).await.unwrap();
    assert!(used.insert(store.store_version().await.unwrap()), "remove");
    store.remove_copies(keys).await.unwrap();
    assert!(used.insert(store.store_version().await.unwrap()), "remove_copies");
    let unchanged = store.store_version().await.unwrap();
    assert_eq!(store.messages(None, Page::ALL).await.unwrap().version, unchanged);
    assert_eq!(store.store_version().await.unwrap(), unchanged);
}

pub(super) async fn trace_is_made_from_details(store: &impl Store) {
    let copies = vec![NewCopy { trace: None, ..new_copy("ann") }];
    let stored = store.append(NewMessage { copies, ..message(1, &[], b"body") }).await.unwrap().stored;
    let expected = details_of("ann").trace(&name("ann"), at(1));
    assert_eq!(stored[0].size, (expected.len() + b"body".len()) as u64);
    let source = store.source(&name("ann"), stored[0].id).await.unwrap().unwrap();
    assert_eq!((source.trace, &source.body[..]), (expected, &b"body"[..]));
}
