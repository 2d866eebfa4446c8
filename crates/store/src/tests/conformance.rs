//! The rules of [`Store`] as tests that every backend runs. [`run`] opens a new store for each rule and panics at the
//! first violation; [`run_durable`] tests stores that are closed and opened again. This module contains only the common
//! rules. Further guarantees of a backend are tested in its own module.

mod concurrency;
mod content;
mod mailboxes;
pub(crate) mod marks;
mod messages;
mod model;
mod projects;
mod restart;

use std::collections::HashSet;
use std::env;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Flags, Headline, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Naming, Project};
use restante_mail::patterns::Patterns;
use restante_mail::tags::Tags;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{
    AgeRange, CopyKey, Limits, Listing, MailboxPolicies, MailboxPolicy, MessageSelector, NewCopy, NewMessage, Page,
    Store, Usage,
};

pub(crate) use marks::SetMarks;
pub(crate) use restart::run as run_durable;

/// Runs every rule against stores that `open` creates with the limits of the rule. Must run on a multi-threaded
/// runtime, because some rules are about concurrency.
pub(crate) async fn run<S, F>(open: impl Fn(Limits) -> F)
where
    S: Store,
    F: Future<Output = S>,
{
    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
    let unbounded = || open(Limits::default());
    let capped = |messages_per_mailbox| open(Limits { messages_per_mailbox, ..Limits::default() });
    let bounded = || open(Limits { bytes: 5_000, ..Limits::default() });
    unknown_mailbox_is_empty(&unbounded().await).await;
    appended_message_can_be_read(&unbounded().await).await;
    sources_are_in_the_order_of_the_copies(&unbounded().await).await;
    messages_are_stored_in_their_order(&unbounded().await).await;
    message_can_have_many_mailboxes(&unbounded().await).await;
    ids_ascend_and_are_never_reused(&unbounded().await).await;
    last_id_is_highest_assigned_id(&unbounded().await).await;
    versions_change_with_every_change(&unbounded().await).await;
    list_returns_pages(&unbounded().await).await;
    seen_can_be_set_and_unset(&unbounded().await).await;
    purge_empties_one_mailbox(&unbounded().await).await;
    purge_removes_lowest_ids_up_to_limit(&unbounded().await).await;
    expire_removes_oldest_first(&unbounded().await).await;
    expire_orders_by_time_of_receipt(&unbounded().await).await;
    oldest_copies_are_first_by_time_of_receipt(&unbounded().await).await;
    usage_counts_contents(&unbounded().await).await;
    big_message_is_returned_unchanged(&unbounded().await).await;
    content::body_can_be_any_bytes(&unbounded().await).await;
    content::trace_can_be_empty(&unbounded().await).await;
    content::headline_can_be_any_text(&unbounded().await).await;
    content::times_are_kept_exactly(&unbounded().await).await;
    content::names_can_be_any_text(&unbounded().await).await;
    content::body_of_many_copies_is_stored_once(&unbounded().await).await;
    content::id_is_valid_in_its_own_mailbox_only(&unbounded().await).await;
    messages::list_contains_each_message_once(&unbounded().await).await;
    messages::list_returns_pages_of_messages(&unbounded().await).await;
    messages::message_exists_while_it_has_copies(&unbounded().await).await;
    messages::limits_remove_single_copies(&capped(1).await).await;
    messages::tags_are_set_on_copies(&unbounded().await).await;
    messages::overview_counts_messages(&unbounded().await).await;
    messages::overview_counts_long_tags(&unbounded().await).await;
    messages::overview_has_current_spellings_of_tags(&unbounded().await).await;
    messages::overview_has_the_spelling_of_the_most_copies(&unbounded().await).await;
    messages::copies_are_removed_together(&unbounded().await).await;
    messages::numbers_ascend_and_are_never_reused(&unbounded().await).await;
    messages::store_version_changes_with_every_change(&unbounded().await).await;
    messages::trace_is_made_from_details(&unbounded().await).await;
    marks::copies_are_stored_with_marks(&unbounded().await).await;
    marks::updates_change_only_what_they_name(&unbounded().await).await;
    marks::updates_have_outcomes_in_order(&unbounded().await).await;
    marks::index_returns_pages(&unbounded().await).await;
    marks::numbers_of_an_emptied_mailbox_ascend(&unbounded().await).await;
    marks::uid_validity_stays_the_same(&unbounded().await).await;
    projects::project_has_only_its_copies(&unbounded().await).await;
    projects::list_returns_pages_of_a_project(&unbounded().await).await;
    projects::overview_counts_messages_of_a_project(&unbounded().await).await;
    projects::list_contains_projects_with_messages(&unbounded().await).await;
    projects::limits_remove_copies_of_projects(&capped(1).await).await;
    mailboxes::list_contains_mailboxes_that_are_not_empty(&unbounded().await).await;
    mailboxes::prefix_has_no_wildcards(&unbounded().await).await;
    mailboxes::list_can_be_paged_while_mailboxes_are_removed(&unbounded().await).await;
    mailboxes::list_counts_contents(&unbounded().await).await;
    mailboxes::list_excludes_messages_evicted_by_cap(&capped(3).await).await;
    mailboxes::list_excludes_messages_evicted_by_size_limit(&bounded().await).await;
    cap_evicts_lowest_ids(&capped(3).await).await;
    cap_orders_by_arrival(&capped(2).await).await;
    policies_limit_mailboxes(&open(policy_limits()).await).await;
    size_limit_evicts_oldest_of_all_mailboxes(&bounded().await).await;
    size_limit_orders_by_time_of_receipt(&bounded().await).await;
    size_limit_counts_shared_body_once(&bounded().await).await;
    message_above_size_limit_is_evicted(&bounded().await).await;
    for (seed, limits) in (0..walk_count()).zip(model::limits().into_iter().cycle()) {
        model::RandomWalk::new(seed, limits.clone()).run(&open(limits).await, 200).await;
    }
    concurrency::many_writers_lose_nothing(unbounded().await).await;
    concurrency::cap_holds_with_many_writers(capped(concurrency::CAP).await).await;
    concurrency::every_message_is_accounted_for(capped(4 * concurrency::CAP).await).await;
    concurrency::readers_see_whole_messages_during_purges(unbounded().await).await;
    concurrency::message_is_removed_once(unbounded().await).await;
    concurrency::set_seen_and_remove_agree(unbounded().await).await;
    concurrency::concurrent_changes_affect_only_their_mailbox(unbounded().await).await;
}

/// Returns the number of random walks. The default is one for each of [`model::limits`]; `PROPTEST_CASES` overrides it,
/// as in other random tests.
fn walk_count() -> u64 {
    let cases = env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    cases.unwrap_or(model::limits().len() as u64)
}

/// Returns a message received at second `second` for these mailboxes. Each copy has other tags.
pub(crate) fn message(second: i64, mailboxes: &[&str], body: &[u8]) -> NewMessage {
    let copy = |mailbox: &&str| NewCopy { tags: tags_of(second, mailbox), ..new_copy(mailbox) };
    NewMessage {
        received: at(second),
        headline: Headline::new("Ann <ann@example.org>", ["<bob@example.org>"], &format!("number {second}")),
        body: Bytes::copy_from_slice(body),
        copies: mailboxes.iter().map(copy).collect(),
    }
}

fn new_copy(mailbox: &str) -> NewCopy {
    NewCopy {
        mailbox: name(mailbox),
        seen: false,
        flags: Flags::default(),
        tags: Tags::default(),
        details: details_of(mailbox),
        trace: Some(trace_of(mailbox)),
    }
}

/// Returns the tags of a copy of [`message`].
fn tags_of(second: i64, mailbox: &str) -> Tags {
    Tags::new(["new", &format!("tag {second}"), &format!("for {}", mailbox.replace(':', " "))])
        .expect("tests use valid tags")
}

fn details_of(mailbox: &str) -> Details {
    let recipients = [format!("{mailbox}@example.org")];
    Details::new(&DetailFields {
        sender: "ann@example.org",
        snippet: "Grüße \0",
        attachments: 2,
        recipients: &recipients,
        ..DetailFields::default()
    })
}

/// Returns a summary of a copy of this message.
pub(crate) fn summary(message: u64) -> Summary {
    Summary {
        mailbox: name("bob"),
        id: message.into(),
        message: message.into(),
        number: 1,
        headline: Headline::new("", [], ""),
        received: at(0),
        size: 0,
        seen: false,
        flags: Flags::default(),
        tags: Tags::default(),
        modseq: message,
        details: Details::default(),
    }
}

/// Returns the mailbox of this name.
pub(crate) fn name(text: &str) -> MailboxName {
    Naming::Local.parse_mailbox(text).expect("tests use valid names")
}

/// Returns the project of this name.
pub(crate) fn project(text: &str) -> Project {
    text.parse().expect("tests use valid names")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("tests use valid times")
}

fn trace_of(mailbox: &str) -> Bytes {
    format!("X-Trace: {mailbox}\r\n").into()
}

async fn add(store: &impl Store, second: i64, mailbox: &str) -> Summary {
    let appended = store.append(message(second, &[mailbox], b"Subject: x\r\n\r\nhello\r\n")).await.unwrap();
    assert!(appended.evicted.is_empty());
    appended.stored.into_iter().next().unwrap()
}

async fn ids(store: &impl Store, mailbox: &str) -> Vec<MessageId> {
    listing_ids(&store.list(&name(mailbox), Page::ALL).await.unwrap())
}

fn listing_ids(listing: &Listing) -> Vec<MessageId> {
    listing.messages.iter().map(|summary| summary.id).collect()
}

async fn unknown_mailbox_is_empty(store: &impl Store) {
    let unknown = name("nobody");
    let some_id = MessageId::from(1);
    assert!(store.list(&unknown, Page::ALL).await.unwrap().messages.is_empty());
    assert_eq!(store.version(&unknown).await.unwrap().0, 0);
    assert_eq!(store.find(&unknown, MessageSelector::Latest).await.unwrap(), None);
    assert_eq!(store.find(&unknown, MessageSelector::Id(some_id)).await.unwrap(), None);
    assert_eq!(store.source(&unknown, some_id).await.unwrap(), None);
    assert!(!store.set_seen(&unknown, some_id, true).await.unwrap());
    assert_eq!(store.remove(&unknown, some_id).await.unwrap(), None);
    assert!(store.purge(&unknown, MessageId::MAX, usize::MAX).await.unwrap().is_empty());
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}

async fn appended_message_can_be_read(store: &impl Store) {
    let body = b"Subject: x\r\n\r\nbare \n and \r stay\r\n\0\xff";
    let stored = store.append(message(7, &["bob"], body)).await.unwrap().stored;
    let [summary] = stored.as_slice() else { panic!("one mailbox, one copy") };
    let trace = trace_of("bob");
    assert_eq!(summary.mailbox, name("bob"));
    assert_eq!((summary.headline.from(), summary.headline.subject()), ("Ann <ann@example.org>", "number 7"));
    assert_eq!(summary.headline.to().collect::<Vec<_>>(), ["<bob@example.org>"]);
    assert_eq!(summary.received, at(7));
    assert_eq!(summary.size, (trace.len() + body.len()) as u64);
    assert!(!summary.seen);
    assert_eq!(store.list(&name("bob"), Page::ALL).await.unwrap().messages, stored);
    assert_eq!(store.find(&name("bob"), MessageSelector::Id(summary.id)).await.unwrap().as_ref(), Some(summary));
    assert_eq!(store.find(&name("bob"), MessageSelector::Latest).await.unwrap().as_ref(), Some(summary));
    let source = store.source(&name("bob"), summary.id).await.unwrap();
    assert_eq!(source, Some(Source { trace, body: Bytes::copy_from_slice(body) }));
}

async fn sources_are_in_the_order_of_the_copies(store: &impl Store) {
    let large = vec![b'x'; 3 * 1024 * 1024];
    let mut copies = Vec::new();
    for body in [&b"first"[..], &large, b"third"] {
        let stored = store.append(message(1, &["ann", "bob"], body)).await.unwrap().stored;
        copies.extend(stored.iter().map(CopyKey::from));
    }
    store.remove(&copies[1].mailbox, copies[1].id).await.unwrap();
    copies.reverse();
    copies.push(copies[0].clone());
    copies.push(CopyKey { mailbox: name("unknown"), id: copies[0].id });
    let mut expected = Vec::new();
    for copy in &copies {
        expected.push(store.source(&copy.mailbox, copy.id).await.unwrap());
    }
    assert_eq!(
        expected.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, true, true, true, false, true, true, false]
    );
    assert!(store.sources(copies).await.unwrap() == expected);
    assert!(store.sources(Vec::new()).await.unwrap().is_empty());
}

/// The messages are so large that the store writes them in several steps.
async fn messages_are_stored_in_their_order(store: &impl Store) {
    let body = vec![b'x'; 300 * 1024];
    let store_part = async |part: i64| {
        let messages = (0..30).map(|second| message(30 * part - second, &["bob"], &body)).collect();
        let appended = store.append_in_order(messages).await;
        let stored = appended.into_iter().map(|appended| appended.unwrap().stored.remove(0));
        let stored: Vec<Summary> = stored.collect();
        let subjects: Vec<&str> = stored.iter().map(|copy| copy.headline.subject()).collect();
        let expected: Vec<String> = (0..30).map(|second| format!("number {}", 30 * part - second)).collect();
        assert_eq!(subjects, expected);
        assert!(stored.is_sorted_by(|one, other| one.id < other.id && one.number < other.number));
    };
    tokio::join!(store_part(1), store_part(2), store_part(3), store_part(4));
    assert!(store.append_in_order(Vec::new()).await.is_empty());
    assert_eq!(store.usage().await.unwrap().copies, 120);
}

async fn message_can_have_many_mailboxes(store: &impl Store) {
    let stored = store.append(message(1, &["a", "b", "c"], b"shared")).await.unwrap().stored;
    let mailboxes: Vec<_> = stored.iter().map(|summary| summary.mailbox.as_str().to_owned()).collect();
    assert_eq!(mailboxes, ["a", "b", "c"]);
    store.remove(&name("a"), stored[0].id).await.unwrap();
    store.purge(&name("b"), MessageId::MAX, usize::MAX).await.unwrap();
    let source = store.source(&name("c"), stored[2].id).await.unwrap().unwrap();
    assert_eq!((&source.trace[..], &source.body[..]), (&b"X-Trace: c\r\n"[..], &b"shared"[..]));
}

async fn ids_ascend_and_are_never_reused(store: &impl Store) {
    let mut assigned = Vec::new();
    for round in 0..3 {
        // The clock stands still, and is even set back.
        for second in [100, 100, 99 - round] {
            assigned.push(add(store, second, "bob").await.id);
        }
        let latest = *assigned.last().unwrap();
        assert_eq!(store.find(&name("bob"), MessageSelector::Latest).await.unwrap().unwrap().id, latest);
        match round {
            0 => store.remove(&name("bob"), latest).await.map(|_| ()).unwrap(),
            _ => store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.map(|_| ()).unwrap(),
        }
    }
    assert!(assigned.is_sorted_by(|a, b| a < b), "{assigned:?}");
}

async fn last_id_is_highest_assigned_id(store: &impl Store) {
    assert_eq!(store.last_id().await.unwrap(), MessageId::ZERO, "the store was always empty");
    // The clock is set back in between.
    for (second, mailbox) in [(100, "bob"), (50, "ann"), (50, "bob")] {
        let added = add(store, second, mailbox).await;
        assert_eq!(store.last_id().await.unwrap(), added.id);
        store.remove(&name(mailbox), added.id).await.unwrap();
        assert_eq!(store.last_id().await.unwrap(), added.id, "even after it is removed");
    }
    let copies = store.append(message(50, &["a", "b"], b"x")).await.unwrap().stored;
    assert_eq!(Some(store.last_id().await.unwrap()), copies.iter().map(|copy| copy.id).max());
}

async fn versions_change_with_every_change(store: &impl Store) {
    let bob = name("bob");
    let mut used = HashSet::new();
    let mut assert_new = |version: crate::Version| assert!(used.insert(version), "{version:?} was used before");
    let first = add(store, 1, "bob").await;
    assert_new(store.version(&bob).await.unwrap());
    let second = add(store, 2, "bob").await;
    assert_new(store.version(&bob).await.unwrap());
    store.set_seen(&bob, first.id, true).await.unwrap();
    assert_new(store.version(&bob).await.unwrap());
    store.remove(&bob, second.id).await.unwrap();
    assert_new(store.version(&bob).await.unwrap());
    store.purge(&bob, MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(store.version(&bob).await.unwrap().0, 0);
    add(store, 3, "bob").await;
    assert_new(store.version(&bob).await.unwrap());

    let unchanged = store.version(&bob).await.unwrap();
    add(store, 4, "ann").await;
    assert_eq!(store.version(&bob).await.unwrap(), unchanged, "another mailbox changed");
    assert_eq!(store.list(&bob, Page::ALL).await.unwrap().version, unchanged);
}

async fn list_returns_pages(store: &impl Store) {
    let mut all = Vec::new();
    for second in 0..5 {
        all.push(add(store, second, "bob").await.id);
    }
    let page = |limit, after: Option<usize>, before: Option<usize>| Page {
        limit,
        after: after.map(|at| all[at]),
        before: before.map(|at| all[at]),
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
        (page(None, Some(2), Some(2)), 0..0),
    ];
    for (page, expected) in table {
        let listing = store.list(&name("bob"), page).await.unwrap();
        assert_eq!(listing_ids(&listing), all[expected], "{page:?}");
    }
}

async fn seen_can_be_set_and_unset(store: &impl Store) {
    let bob = name("bob");
    let id = add(store, 1, "bob").await.id;
    for seen in [true, true, false] {
        assert!(store.set_seen(&bob, id, seen).await.unwrap());
        assert_eq!(store.find(&bob, MessageSelector::Id(id)).await.unwrap().unwrap().seen, seen);
        assert_eq!(store.list(&bob, Page::ALL).await.unwrap().messages[0].seen, seen);
    }
}

async fn purge_empties_one_mailbox(store: &impl Store) {
    let bobs = [add(store, 1, "bob").await, add(store, 2, "bob").await];
    let ann = add(store, 3, "ann").await;
    assert_eq!(store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap(), bobs);
    assert!(ids(store, "bob").await.is_empty());
    assert_eq!(ids(store, "ann").await, [ann.id]);
}

async fn purge_removes_lowest_ids_up_to_limit(store: &impl Store) {
    let mut all = Vec::new();
    for second in 0..5 {
        all.push(add(store, second, "bob").await);
    }
    let bob = name("bob");
    assert!(store.purge(&bob, MessageId::ZERO, 10).await.unwrap().is_empty());
    assert!(store.purge(&bob, MessageId::MAX, 0).await.unwrap().is_empty());
    assert_eq!(store.purge(&bob, MessageId::MAX, 2).await.unwrap(), all[..2]);
    assert_eq!(store.purge(&bob, all[3].id, 10).await.unwrap(), all[2..4]);
    assert_eq!(ids(store, "bob").await, [all[4].id]);
}

async fn expire_removes_oldest_first(store: &impl Store) {
    let first = add(store, 1, "bob").await;
    let second = add(store, 2, "ann").await;
    let third = add(store, 3, "bob").await;
    assert!(store.expire(at(1), 10).await.unwrap().is_empty(), "the deadline is exclusive");
    assert_eq!(store.expire(at(3), 1).await.unwrap(), [first]);
    assert_eq!(store.expire(at(3), 10).await.unwrap(), [second]);
    assert_eq!(ids(store, "bob").await, [third.id]);
    assert!(ids(store, "ann").await.is_empty());
    assert!(store.expire(at(9), 0).await.unwrap().is_empty(), "a limit of zero removes nothing");
}

/// The clock was set back: times and ids have different orders, and the time counts.
async fn expire_orders_by_time_of_receipt(store: &impl Store) {
    let late = add(store, 100, "bob").await;
    let early = add(store, 10, "bob").await;
    let middle = add(store, 50, "ann").await;
    assert!(late.id < early.id, "ids ascend nevertheless");
    assert_eq!(store.expire(at(60), 1).await.unwrap(), [early]);
    assert_eq!(store.expire(at(60), 10).await.unwrap(), [middle]);
    assert_eq!(ids(store, "bob").await, [late.id]);
}

async fn oldest_copies_are_first_by_time_of_receipt(store: &impl Store) {
    assert!(store.oldest(AgeRange::default(), 10).await.unwrap().is_empty());
    let late = add(store, 100, "bob").await;
    let early = add(store, 10, "bob").await;
    let middle = store.append(message(50, &["cid", "ann"], b"x")).await.unwrap().stored;
    let mut all = vec![early];
    all.extend(middle);
    all.push(late);
    assert_eq!(store.oldest(AgeRange::default(), 10).await.unwrap(), all);
    assert_eq!(store.oldest(AgeRange::default(), 2).await.unwrap(), all[..2]);
    assert!(store.oldest(AgeRange::default(), 0).await.unwrap().is_empty());
}

async fn usage_counts_contents(store: &impl Store) {
    let body = [b'x'; 1000];
    let trace = trace_of("a").len() as u64;
    let stored = store.append(message(1, &["a", "b"], &body)).await.unwrap().stored;
    assert_eq!(store.usage().await.unwrap(), Usage { messages: 1, copies: 2, mailboxes: 2, bytes: 1000 + 2 * trace });
    store.remove(&name("a"), stored[0].id).await.unwrap();
    assert_eq!(store.usage().await.unwrap(), Usage { messages: 1, copies: 1, mailboxes: 1, bytes: 1000 + trace });
    store.purge(&name("b"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(store.usage().await.unwrap(), Usage::default());
    // Both copies of a body are removed in one call.
    store.append(message(1, &["a", "b"], &body)).await.unwrap();
    assert_eq!(store.expire(at(2), 10).await.unwrap().len(), 2);
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}

async fn big_message_is_returned_unchanged(store: &impl Store) {
    let body: Vec<u8> = (0..9_000_000_u32).map(|i| (i % 251) as u8).collect();
    let id = store.append(message(1, &["bob"], &body)).await.unwrap().stored[0].id;
    let source = store.source(&name("bob"), id).await.unwrap().unwrap();
    assert!(source.body == body);
}

async fn cap_evicts_lowest_ids(store: &impl Store) {
    let oldest = add(store, 1, "bob").await;
    let kept = [add(store, 2, "bob").await.id, add(store, 3, "bob").await.id];
    let other = add(store, 4, "ann").await;
    let appended = store.append(message(5, &["bob", "ann"], b"x")).await.unwrap();
    assert_eq!(appended.evicted, [oldest]);
    assert_eq!(ids(store, "bob").await, [kept[0], kept[1], appended.stored[0].id]);
    assert_eq!(ids(store, "ann").await, [other.id, appended.stored[1].id]);
}

/// The newest messages stay, whatever the clock says.
/// Returns a cap of two messages, and other limits for two projects.
fn policy_limits() -> Limits {
    let policy =
        |pattern: &str| MailboxPolicy { mailboxes: Patterns::from_iter([pattern]), ..MailboxPolicy::default() };
    let policies = MailboxPolicies::from_iter([
        MailboxPolicy { messages: Some(1), ..policy("shop:ann") },
        MailboxPolicy { messages: Some(0), bytes: Some(500), ..policy("shop:*") },
        MailboxPolicy { messages: Some(3), ..policy("run-*:*") },
    ]);
    Limits { messages_per_mailbox: 2, bytes: 0, policies }
}

async fn policies_limit_mailboxes(store: &impl Store) {
    let all = ["bob", "shop:ann", "shop:bob", "run-1:bob", "run-2:ann"];
    for second in 0..6 {
        store.append(message(second, &all, &[b'x'; 70])).await.unwrap();
    }
    // A copy in shop:bob has 89 bytes.
    for (mailbox, expected) in all.iter().zip([2, 1, 5, 3, 3]) {
        assert_eq!(ids(store, mailbox).await.len(), expected, "{mailbox}");
    }
    // As many of the lowest ids are evicted as necessary, and a message that is too large is itself evicted.
    let evicted = store.append(message(7, &["shop:bob"], &[b'x'; 300])).await.unwrap().evicted;
    assert_eq!(evicted.iter().map(|copy| copy.received).collect::<Vec<_>>(), [1, 2, 3].map(at));
    let evicted = store.append(message(8, &["shop:bob"], &[b'x'; 482])).await.unwrap().evicted;
    assert_eq!(evicted.iter().map(|copy| copy.received).collect::<Vec<_>>(), [4, 5, 7, 8].map(at));
    assert!(ids(store, "shop:bob").await.is_empty());
}

async fn cap_orders_by_arrival(store: &impl Store) {
    let first = add(store, 100, "bob").await;
    let second = add(store, 50, "bob").await;
    let appended = store.append(message(10, &["bob"], b"x")).await.unwrap();
    assert_eq!(appended.evicted, [first]);
    assert_eq!(ids(store, "bob").await, [second.id, appended.stored[0].id]);
}

async fn size_limit_orders_by_time_of_receipt(store: &impl Store) {
    let body = [b'x'; 2000];
    let late = store.append(message(100, &["a"], &body)).await.unwrap().stored;
    let early = store.append(message(10, &["b"], &body)).await.unwrap().stored;
    assert_eq!(store.append(message(50, &["c"], &body)).await.unwrap().evicted, early);
    assert_eq!(ids(store, "a").await, [late[0].id]);
}

async fn size_limit_evicts_oldest_of_all_mailboxes(store: &impl Store) {
    let body = [b'x'; 2000];
    let oldest = store.append(message(1, &["a"], &body)).await.unwrap().stored;
    let middle = store.append(message(2, &["b"], &body)).await.unwrap().stored;
    let appended = store.append(message(3, &["c"], &body)).await.unwrap();
    assert_eq!(appended.evicted, oldest);
    assert_eq!(ids(store, "b").await, [middle[0].id]);
    assert!(store.usage().await.unwrap().bytes <= 5_000);
}

async fn size_limit_counts_shared_body_once(store: &impl Store) {
    for second in 0..20 {
        store.append(message(second, &["a", "b"], &[b'x'; 2000])).await.unwrap();
        assert!(store.usage().await.unwrap().bytes <= 5_000);
        assert!(!ids(store, "a").await.is_empty() && !ids(store, "b").await.is_empty(), "the newest messages stay");
    }
    store.append(message(30, &["c"], &[b'x'; 4950])).await.unwrap();
    assert_eq!(store.usage().await.unwrap().messages, 1);
}

async fn message_above_size_limit_is_evicted(store: &impl Store) {
    let appended = store.append(message(1, &["a"], &[b'x'; 6000])).await.unwrap();
    assert_eq!(appended.evicted, appended.stored);
    assert_eq!(store.usage().await.unwrap(), Usage::default());
}
