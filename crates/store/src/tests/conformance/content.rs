//! Messages are returned unchanged: bodies, headlines, times and names of every kind, byte by byte.

use std::slice;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Headline, MessageId, Source};
use restante_mail::naming::{MailboxName, Naming};

use super::mailboxes::names as mailbox_names;
use super::{SetMarks as _, at, message, name, new_copy, trace_of};
use crate::{MessageSelector, NewCopy, NewMessage, Page, Store, Usage};

pub(super) async fn body_can_be_any_bytes(store: &impl Store) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(256 * 3).collect();
    let bodies: [&[u8]; 6] = [b"", b"\0", b"\r\n.\r\n", b"\xff\xfe", "grün".as_bytes(), &every_byte];
    for body in bodies {
        let stored = store.append(message(1, &["bob"], body)).await.unwrap().stored;
        assert_eq!(stored[0].size, (trace_of("bob").len() + body.len()) as u64);
        let source = store.source(&name("bob"), stored[0].id).await.unwrap().unwrap();
        assert_eq!((source.trace, &source.body[..]), (trace_of("bob"), body));
    }
}

pub(super) async fn trace_can_be_empty(store: &impl Store) {
    let copies = vec![NewCopy { trace: Some(Bytes::new()), ..new_copy("bob") }];
    let message = NewMessage { body: Bytes::new(), copies, ..message(1, &[], b"") };
    let stored = store.append(message).await.unwrap().stored;
    assert_eq!(stored[0].size, 0);
    let source = store.source(&name("bob"), stored[0].id).await.unwrap();
    assert_eq!(source, Some(Source { trace: Bytes::new(), body: Bytes::new() }));
    assert_eq!(store.usage().await.unwrap(), Usage { messages: 1, copies: 1, mailboxes: 1, bytes: 0 });
    assert_eq!(store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap(), stored);
}

pub(super) async fn headline_can_be_any_text(store: &impl Store) {
    let long = "x".repeat(100_000);
    let many: Vec<String> = (0..300).map(|n| format!("Recipient {n} <r{n}@example.org>")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let table: [(&str, &[&str], &str); 7] = [
        ("", &[], ""),
        ("", &[""], ""),
        ("", &["", "a", ""], "only recipients"),
        ("Jörg <jörg@bücher.example>", &["日本 <nihon@example.org>"], "Grüße, мир, 🌍, \u{0}\t'quoted' \"%_\\"),
        ("from", &[], &long),
        (&long, &[&long], ""),
        ("from", &many, "many recipients"),
    ];
    for (from, to, subject) in table {
        let headline = Headline::new(from, to.iter().copied(), subject);
        let stored = store.append(NewMessage { headline, ..message(1, &["bob"], b"x") }).await.unwrap().stored;
        let found = store.find(&name("bob"), MessageSelector::Id(stored[0].id)).await.unwrap().unwrap();
        assert_eq!((found.headline.from(), found.headline.subject()), (from, subject));
        assert_eq!(found.headline.to().collect::<Vec<_>>(), to);
        assert_eq!(found, stored[0]);
    }
}

pub(super) async fn times_are_kept_exactly(store: &impl Store) {
    let nanosecond = Timestamp::new(1_794_711_170, 123_456_789).expect("a valid time");
    let before_the_epoch = Timestamp::new(-1, -1).expect("a valid time");
    for received in [nanosecond, at(0), before_the_epoch] {
        let stored = store.append(NewMessage { received, ..message(1, &["bob"], b"x") }).await.unwrap().stored;
        let found = store.find(&name("bob"), MessageSelector::Id(stored[0].id)).await.unwrap().unwrap();
        assert_eq!((stored[0].received, found.received), (received, received));
    }
    let expired = store.expire(nanosecond, 10).await.unwrap();
    assert_eq!(expired.iter().map(|summary| summary.received).collect::<Vec<_>>(), [before_the_epoch, at(0)]);
    let a_moment_later = Timestamp::new(1_794_711_170, 123_456_790).expect("a valid time");
    assert_eq!(store.expire(a_moment_later, 10).await.unwrap().len(), 1);
}

/// Different names are different mailboxes, however similar they look. They are ordered by their bytes.
pub(super) async fn names_can_be_any_text(store: &impl Store) {
    let table = [
        (Naming::Local, "a"),
        (Naming::Local, "a%"),
        (Naming::Local, "a'b"),
        (Naming::Local, "a*"),
        (Naming::Local, "a/b"),
        (Naming::Local, "a_"),
        (Naming::Local, "a{b}"),
        (Naming::Local, "ab"),
        (Naming::Local, "zoë"),
        (Naming::Local, "日本"),
        (Naming::Full, "a@example.org"),
        (Naming::Full, "a@example.com"),
        (Naming::Full, "jörg@bücher.example"),
        (Naming::Domain, "example.org"),
        (Naming::Domain, "a@[192.0.2.1]"),
        (Naming::Domain, "a@[IPv6:2001:db8::1]"),
    ];
    let mailbox = |(naming, text): (Naming, &str)| naming.parse_mailbox(text).expect("tests use valid names");
    let mut names: Vec<MailboxName> = table.into_iter().map(mailbox).collect();
    let longest = format!("{}@{}example.org", "x".repeat(64), "y".repeat(40) + ".");
    names.push(mailbox((Naming::Full, &longest)));
    let copies = names
        .iter()
        .map(|mailbox| NewCopy { mailbox: mailbox.clone(), trace: Some(Bytes::new()), ..new_copy("x") })
        .collect();
    let stored = store.append(NewMessage { copies, ..message(1, &[], b"x") }).await.unwrap().stored;
    for summary in &stored {
        assert_eq!(store.list(&summary.mailbox, Page::ALL).await.unwrap().messages, slice::from_ref(summary));
    }
    names.sort_by(|one, other| one.as_str().as_bytes().cmp(other.as_str().as_bytes()));
    assert_eq!(mailbox_names(store, "", "", 100).await, names);
    for (index, after) in names.iter().enumerate() {
        assert_eq!(
            mailbox_names(store, "", after.as_str(), 2).await,
            names[index + 1..].iter().take(2).cloned().collect::<Vec<_>>()
        );
    }
    store.purge(&names[0], MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(mailbox_names(store, "", "", 100).await, names[1..]);
}

pub(super) async fn body_of_many_copies_is_stored_once(store: &impl Store) {
    let body = [b'x'; 10_000];
    let mailboxes: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let mailboxes: Vec<&str> = mailboxes.iter().map(String::as_str).collect();
    let traces: u64 = mailboxes.iter().map(|mailbox| trace_of(mailbox).len() as u64).sum();
    let stored = store.append(message(1, &mailboxes, &body)).await.unwrap().stored;
    assert_eq!(stored.len(), 200);
    assert_eq!(
        store.usage().await.unwrap(),
        Usage { messages: 1, copies: 200, mailboxes: 200, bytes: traces + 10_000 }
    );
    let (last, others) = stored.split_last().expect("there are 200");
    assert_eq!(store.remove(&others[0].mailbox, others[0].id).await.unwrap().as_ref(), Some(&others[0]));
    assert_eq!(store.expire(at(2), 198).await.unwrap(), others[1..]);
    let source = store.source(&last.mailbox, last.id).await.unwrap().unwrap();
    assert!(source.trace == trace_of(last.mailbox.as_str()) && source.body == body[..]);
    assert_eq!(store.usage().await.unwrap().bytes, source.len() as u64);
    assert_eq!(store.expire(at(2), 10).await.unwrap(), slice::from_ref(last));
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}

pub(super) async fn id_is_valid_in_its_own_mailbox_only(store: &impl Store) {
    let stored = store.append(message(1, &["ann", "bob"], b"x")).await.unwrap().stored;
    let (ann, bob) = (&stored[0], &stored[1]);
    let highest = MessageId::from(i64::MAX.unsigned_abs());
    for id in [MessageId::ZERO, MessageId::from(bob.id.number() + 1), highest, MessageId::from(u64::MAX)] {
        assert_eq!(store.find(&ann.mailbox, MessageSelector::Id(id)).await.unwrap(), None);
        assert_eq!(store.source(&ann.mailbox, id).await.unwrap(), None);
        assert_eq!(store.remove(&ann.mailbox, id).await.unwrap(), None);
        assert!(!store.set_seen(&ann.mailbox, id, true).await.unwrap());
        let empty_range = Page { after: Some(id), before: Some(id), limit: None };
        assert!(store.list(&ann.mailbox, empty_range).await.unwrap().messages.is_empty());
    }
    let full_range =
        Page { after: Some(MessageId::ZERO), before: Some(MessageId::from(u64::MAX)), limit: Some(usize::MAX) };
    assert_eq!(store.list(&ann.mailbox, full_range).await.unwrap().messages, slice::from_ref(ann));
    assert!(store.set_seen(&ann.mailbox, ann.id, true).await.unwrap());
    assert!(
        !store.find(&bob.mailbox, MessageSelector::Latest).await.unwrap().unwrap().seen,
        "each copy has its own mark"
    );
    store.remove(&ann.mailbox, ann.id).await.unwrap();
    assert_eq!(store.find(&bob.mailbox, MessageSelector::Latest).await.unwrap().as_ref(), Some(bob));
}
