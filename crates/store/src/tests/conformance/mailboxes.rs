//! The list of mailboxes: its entries, their order, and their numbers.

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;

use super::{SetMarks as _, add, at, ids, message, name, new_copy, trace_of};
use crate::{MailboxPage, MailboxState, NewCopy, NewMessage, Newest, Page, Store};

/// Returns the entry of a mailbox with these messages. `None` if there are none.
pub(super) fn state_of(messages: &[Summary]) -> Option<MailboxState> {
    let newest = messages.last()?;
    Some(MailboxState {
        name: newest.mailbox.clone(),
        messages: messages.len() as u64,
        unseen: messages.iter().filter(|message| !message.seen).count() as u64,
        bytes: messages.iter().map(|message| message.size).sum(),
        newest: Newest { id: newest.id, received: newest.received },
    })
}

/// Returns the names of the first mailboxes after `after` that start with `prefix`.
pub(super) async fn names(store: &impl Store, prefix: &str, after: &str, limit: usize) -> Vec<MailboxName> {
    let page = MailboxPage { prefix: prefix.to_owned(), after: after.to_owned(), limit };
    store.mailboxes(page).await.unwrap().into_iter().map(|mailbox| mailbox.name).collect()
}

/// Compares the list with the mailboxes themselves, and with the expected names, message counts and unseen counts.
async fn assert_listed(store: &impl Store, expected: &[(&str, u64, u64)]) {
    let states = store.mailboxes(MailboxPage::ALL).await.unwrap();
    let short: Vec<_> = states.iter().map(|state| (state.name.as_str(), state.messages, state.unseen)).collect();
    assert_eq!(short, expected);
    for state in states {
        let messages = store.list(&state.name, Page::ALL).await.unwrap().messages;
        assert_eq!(Some(state), state_of(&messages));
    }
}

pub(super) async fn list_contains_mailboxes_that_are_not_empty(store: &impl Store) {
    for mailbox in ["dora", "ann", "cid", "bob", "anna", "bo"] {
        add(store, 1, mailbox).await;
    }
    store.purge(&name("cid"), MessageId::MAX, usize::MAX).await.unwrap();
    // prefix, after, limit
    let table: [(&str, &str, usize, &[&str]); 17] = [
        ("", "", usize::MAX, &["ann", "anna", "bo", "bob", "dora"]),
        ("", "", 2, &["ann", "anna"]),
        ("", "", 0, &[]),
        ("", "ann", 10, &["anna", "bo", "bob", "dora"]),
        ("", "cid", 10, &["dora"]),
        ("", "dora", 10, &[]),
        ("", "!", 1, &["ann"]),
        ("ann", "", 10, &["ann", "anna"]),
        ("ann", "", 1, &["ann"]),
        ("ann", "ann", 10, &["anna"]),
        ("ann", "anna", 10, &[]),
        ("b", "ann", 10, &["bo", "bob"]),
        ("b", "bo", 10, &["bob"]),
        ("b", "zoe", 10, &[]),
        ("bob", "bo", 10, &["bob"]),
        ("c", "", 10, &[]),
        ("dorata", "", 10, &[]),
    ];
    for (prefix, after, limit, expected) in table {
        let names = names(store, prefix, after, limit).await;
        let names: Vec<_> = names.iter().map(MailboxName::as_str).collect();
        assert_eq!(names, expected, "{limit} of {prefix}* after {after}");
    }
}

/// A prefix has no wildcards, and similar characters are different.
pub(super) async fn prefix_has_no_wildcards(store: &impl Store) {
    let all = "a a%b a*b a[b a_b ab axb zo zoe zoé zoë z\u{10ffff} 日本 日本語 \u{10ffff}";
    let mut all: Vec<MailboxName> = all.split(' ').map(|text| text.to_owned().into()).collect();
    let copies = all.iter().map(|mailbox| NewCopy { mailbox: mailbox.clone(), ..new_copy("x") }).collect();
    store.append(NewMessage { copies, ..message(1, &[], b"x") }).await.unwrap();
    all.sort();
    let prefixes = ["", "\0", "'", "%", "_", "*", "a", "A", "a%", "a*", "a[", "a_", "a?"].into_iter();
    for prefix in prefixes.chain(["z", "zo", "zoe", "zoë", "z\u{10ffff}", "日", "日本語", "\u{10ffff}"]) {
        let expected: Vec<_> = all.iter().filter(|name| name.as_str().starts_with(prefix)).cloned().collect();
        assert_eq!(names(store, prefix, "", 100).await, expected, "{prefix}");
        // The same in pages of two.
        let mut found: Vec<MailboxName> = Vec::new();
        loop {
            let after = found.last().map_or("", MailboxName::as_str);
            let step = names(store, prefix, after, 2).await;
            if step.is_empty() {
                break;
            }
            found.extend(step);
        }
        assert_eq!(found, expected, "{prefix}");
    }
}

pub(super) async fn list_can_be_paged_while_mailboxes_are_removed(store: &impl Store) {
    let all: Vec<String> = (10..30).map(|number| format!("m{number}")).collect();
    for mailbox in &all {
        add(store, 1, mailbox).await;
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    while let Some(next) = names(store, "m", &after, 1).await.pop() {
        store.purge(&next, MessageId::MAX, usize::MAX).await.unwrap();
        next.as_str().clone_into(&mut after);
        found.push(after.clone());
    }
    assert_eq!(found, all);
    assert_listed(store, &[]).await;
}

pub(super) async fn list_counts_contents(store: &impl Store) {
    assert_listed(store, &[]).await;
    let first = store.append(message(5, &["ann", "bob", "cid"], b"for three")).await.unwrap().stored;
    assert_listed(store, &[("ann", 1, 1), ("bob", 1, 1), ("cid", 1, 1)]).await;
    let states = store.mailboxes(MailboxPage::ALL).await.unwrap();
    let size = (trace_of("ann").len() + b"for three".len()) as u64;
    let newest = Newest { id: first[0].id, received: at(5) };
    assert_eq!(states[0], MailboxState { name: name("ann"), messages: 1, unseen: 1, bytes: size, newest });

    // The clock is set back: the newest message is the one that arrived last.
    let second = add(store, 4, "bob").await;
    assert_listed(store, &[("ann", 1, 1), ("bob", 2, 2), ("cid", 1, 1)]).await;
    for (seen, unseen) in [(true, 1), (true, 1), (false, 2), (false, 2), (true, 1)] {
        store.set_seen(&name("bob"), first[1].id, seen).await.unwrap();
        assert_listed(store, &[("ann", 1, 1), ("bob", 2, unseen), ("cid", 1, 1)]).await;
    }
    store.set_seen(&name("bob"), MessageId::from(1), true).await.unwrap();
    assert_listed(store, &[("ann", 1, 1), ("bob", 2, 1), ("cid", 1, 1)]).await;

    // Removes a message that is read, then one that is not, then the newest.
    let third = add(store, 6, "bob").await;
    store.remove(&name("bob"), first[1].id).await.unwrap();
    store.remove(&name("bob"), first[1].id).await.unwrap();
    assert_listed(store, &[("ann", 1, 1), ("bob", 2, 2), ("cid", 1, 1)]).await;
    store.remove(&name("bob"), third.id).await.unwrap();
    assert_listed(store, &[("ann", 1, 1), ("bob", 1, 1), ("cid", 1, 1)]).await;
    assert_eq!(ids(store, "bob").await, [second.id]);

    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_listed(store, &[("bob", 1, 1), ("cid", 1, 1)]).await;
    add(store, 9, "cid").await;
    assert_eq!(store.expire(at(6), 10).await.unwrap().len(), 2);
    assert_listed(store, &[("cid", 1, 1)]).await;
    add(store, 10, "ann").await;
    assert_listed(store, &[("ann", 1, 1), ("cid", 1, 1)]).await;
}

/// With a cap of three.
pub(super) async fn list_excludes_messages_evicted_by_cap(store: &impl Store) {
    for second in 0..5 {
        let length = usize::try_from(second).expect("a small number");
        let stored = store.append(message(second, &["ann", "bob"], &vec![b'x'; length])).await.unwrap().stored;
        store.set_seen(&name("ann"), stored[0].id, second % 2 == 0).await.unwrap();
    }
    assert_listed(store, &[("ann", 3, 1), ("bob", 3, 3)]).await;
}

/// With a size limit of 5,000 bytes.
pub(super) async fn list_excludes_messages_evicted_by_size_limit(store: &impl Store) {
    for second in 0..5 {
        store.append(message(second, &["ann", "bob"], &[b'x'; 2000])).await.unwrap();
    }
    assert_listed(store, &[("ann", 2, 2), ("bob", 2, 2)]).await;
    assert_eq!(store.append(message(9, &["eve"], &[b'x'; 6000])).await.unwrap().evicted.len(), 5);
    assert_listed(store, &[]).await;
}
