//! Subscribers: which events they get, in which order, and what happens if they do not read them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::message::{Headline, MessageId};
use restante_mail::naming::Naming;
use tokio::time::timeout;

use super::*;

/// More events than the ring keeps.
const FLOOD: u64 = 40_000;

pub(super) fn name(mailbox: &str) -> MailboxName {
    Naming::Local.parse_mailbox(mailbox).unwrap()
}

/// A message of mailbox `bob`.
pub(super) fn message(id: u64) -> Summary {
    message_of("bob", id)
}

fn message_of(mailbox: &str, id: u64) -> Summary {
    Summary {
        mailbox: name(mailbox),
        id: MessageId::from(id),
        headline: Headline::new("", [], ""),
        received: Timestamp::UNIX_EPOCH,
        size: 0,
        seen: false,
    }
}

/// Returns the next event: `+7` if message 7 was stored, `-7` if it was deleted, `lagged`, or `nothing` if none comes.
async fn next(listener: &mut Subscription) -> String {
    match timeout(Duration::from_secs(5), listener.next()).await {
        Ok(Ok(told)) => short(&told),
        Ok(Err(Lagged)) => "lagged".to_owned(),
        Err(_) => "nothing".to_owned(),
    }
}

/// Returns `count` events in the same notation.
async fn hear(listener: &mut Subscription, count: usize) -> String {
    let mut heard = Vec::new();
    for _ in 0..count {
        heard.push(next(listener).await);
    }
    heard.join(" ")
}

fn short(told: &PublishedEvent) -> String {
    match told.event() {
        Event::Stored(summary) => format!("+{}", summary.id),
        Event::Deleted(summary) => format!("-{}", summary.id),
    }
}

#[test]
fn positions() {
    let position = Position { run: 17, number: 4 };
    assert_eq!(position.to_string(), "17-4");
    assert_eq!("17-4".parse(), Ok(position));
    for bad in
        ["", "-", "17", "17-", "-4", "17--4", "+17-4", "17-+4", " 17-4", "17-4 ", "17-4-1", "99999999999999999999-1"]
    {
        assert_eq!(bad.parse::<Position>(), Err(InvalidPosition), "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn history_comes_first_and_only_what_is_still_there() {
    let hub = Hub::new(3);
    for id in 1..=5 {
        hub.publish_stored(message(id));
    }
    hub.publish_deleted(message(4));
    hub.publish_deleted(message(1));
    let mut listener = hub.subscribe(None, None);
    hub.publish_stored(message(6));
    hub.publish_deleted(message(3));
    assert_eq!(hear(&mut listener, 5).await, "+3 +5 +6 -3 nothing");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_overtakes_its_message_is_told_again_behind_it() {
    let hub = Hub::new(10);
    let mut listener = hub.subscribe(None, None);
    let delivery = hub.begin_delivery();
    hub.publish_deleted(message(1));
    hub.publish_stored(message(1));
    hub.publish_stored(message(2));
    drop(delivery);
    assert_eq!(hear(&mut listener, 5).await, "-1 +1 -1 +2 nothing");
    assert_eq!(hear(&mut hub.subscribe(None, None), 2).await, "+2 nothing");
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_is_a_topic() {
    let hub = Hub::new(10);
    hub.publish_stored(message_of("ann", 1));
    hub.publish_stored(message_of("bob", 2));
    let mut ann = hub.subscribe(Some(name("ann")), None);
    let mut eve = hub.subscribe(Some(name("eve")), None);
    let mut all = hub.subscribe(None, None);
    hub.publish_stored(message_of("bob", 3));
    hub.publish_deleted(message_of("ann", 1));
    hub.publish_stored(message_of("ann", 4));
    assert_eq!(hear(&mut ann, 4).await, "+1 -1 +4 nothing");
    assert_eq!(hear(&mut eve, 1).await, "nothing");
    assert_eq!(hear(&mut all, 6).await, "+1 +2 +3 -1 +4 nothing");
}

#[tokio::test(start_paused = true)]
async fn a_listener_goes_on_where_it_was_cut_off() {
    let hub = Hub::new(2);
    let mut listener = hub.subscribe(None, None);
    for id in 1..=5 {
        hub.publish_stored(message_of(if id % 2 == 0 { "bob" } else { "ann" }, id));
    }
    hub.publish_deleted(message_of("bob", 2));
    let first = listener.next().await.unwrap().position();
    drop(listener);
    hub.publish_stored(message_of("bob", 6));

    let mut resumed = hub.subscribe(None, Some(first));
    let mut bob = hub.subscribe(Some(name("bob")), Some(first));
    hub.publish_stored(message_of("bob", 7));
    assert_eq!(hear(&mut resumed, 8).await, "+2 +3 +4 +5 -2 +6 +7 nothing");
    assert_eq!(hear(&mut bob, 6).await, "+2 +4 -2 +6 +7 nothing");

    let last = hub.subscribe(None, None);
    let mut none_missed = hub.subscribe(None, Some(Position { number: 7, ..first }));
    assert_eq!(hear(&mut none_missed, 1).await, "nothing");
    drop(last);
    let foreign = Position { run: first.run - 1, ..first };
    let future = Position { number: 8, ..first };
    let never = Position { number: u64::MAX, ..first };
    for position in [foreign, future, never] {
        let mut anew = hub.subscribe(None, Some(position));
        assert!(anew.has_gap());
        assert_eq!(hear(&mut anew, 3).await, "+6 +7 nothing", "{position}");
    }
    for id in 0..FLOOD {
        hub.publish_deleted(message_of("ann", id));
    }
    assert_eq!(hear(&mut hub.subscribe(None, Some(first)), 3).await, "+6 +7 nothing", "overtaken");
}

#[tokio::test(start_paused = true)]
async fn a_long_way_to_catch_up_is_gone_to_the_end() {
    let hub = Hub::new(0);
    let mut listener = hub.subscribe(None, None);
    hub.publish_stored(message(0));
    let first = listener.next().await.unwrap().position();
    for id in 1..=3000 {
        hub.publish_stored(message(id));
    }
    let mut resumed = hub.subscribe(None, Some(first));
    hub.publish_stored(message(3001));
    for id in 1..=3001 {
        assert_eq!(next(&mut resumed).await, format!("+{id}"));
    }
    assert_eq!(next(&mut resumed).await, "nothing");
}

#[tokio::test(start_paused = true)]
async fn who_is_too_far_behind_is_told_so_and_the_others_hear_everything() {
    let hub = Hub::new(30);
    let mut stalled = hub.subscribe(None, None);
    let mut stalled_at_bob = hub.subscribe(Some(name("bob")), None);
    let mut quiet = hub.subscribe(Some(name("ann")), None);
    let mut diligent = hub.subscribe(None, None);
    for id in 0..FLOOD {
        hub.publish_stored(message(id));
        if id % 100 == 99 {
            for id in id - 99..=id {
                assert_eq!(next(&mut diligent).await, format!("+{id}"));
            }
        }
    }
    assert_eq!(next(&mut stalled).await, "lagged");
    assert_eq!(next(&mut stalled_at_bob).await, "lagged");
    assert_eq!(next(&mut quiet).await, "nothing");
    assert_eq!(next(&mut diligent).await, "nothing");
}

#[tokio::test(start_paused = true)]
async fn who_is_a_little_behind_hears_everything() {
    let hub = Hub::new(30);
    let mut slow = hub.subscribe(None, None);
    for id in 0..3000 {
        hub.publish_stored(message(id));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for id in 0..3000 {
        assert_eq!(next(&mut slow).await, format!("+{id}"));
    }
    assert_eq!(next(&mut slow).await, "nothing");
}

/// Events that arrive faster than they can be sent are dropped, not sent late.
#[tokio::test(start_paused = true)]
async fn everybody_is_told_when_the_telling_itself_is_overtaken() {
    let hub = Hub::new(2);
    let (mut all, mut quiet) = (hub.subscribe(None, None), hub.subscribe(Some(name("ann")), None));
    for id in 0..FLOOD {
        hub.publish_stored(message(id));
    }
    assert_eq!(next(&mut all).await, "lagged");
    assert_eq!(next(&mut quiet).await, "lagged");
    let mut again = hub.subscribe(None, None);
    hub.publish_stored(message(FLOOD));
    assert_eq!(hear(&mut again, 4).await, format!("+{} +{} +{FLOOD} nothing", FLOOD - 2, FLOOD - 1));
}

/// Only matching events can make a subscriber fall behind.
#[tokio::test(start_paused = true)]
async fn who_hears_nothing_for_long_is_not_behind() {
    let hub = Hub::new(0);
    let mut ann = hub.subscribe(Some(name("ann")), None);
    assert!(ann.position().is_none(), "nothing has happened yet");
    for id in 0..FLOOD {
        hub.publish_stored(message(id));
        if id % 1000 == 999 {
            hub.wait_for_subscribers(Duration::from_secs(1)).await;
        }
    }
    assert_eq!(next(&mut ann).await, "nothing");
    let position = ann.position().expect("much has happened elsewhere");
    for id in 0..2000 {
        hub.publish_deleted(message_of("ann", id));
    }
    let expected = (0..2000).map(|id| format!("-{id}")).collect::<Vec<_>>().join(" ");
    assert_eq!(hear(&mut ann, 2000).await, expected, "more than a channel holds");
    let mut resumed = hub.subscribe(Some(name("ann")), Some(position));
    assert!(!resumed.has_gap());
    assert_eq!(hear(&mut resumed, 2000).await, expected);
    assert_eq!(next(&mut resumed).await, "nothing");
}

/// A disconnected subscriber comes back a second later. All others may have left meanwhile.
#[tokio::test(start_paused = true)]
async fn who_was_alone_can_come_back() {
    let hub = Hub::new(0);
    let mut listener = hub.subscribe(None, None);
    hub.publish_stored(message(0));
    let first = listener.next().await.unwrap().position();
    drop(listener);
    (1..=3000).for_each(|id| hub.publish_stored(message(id)));
    let mut resumed = hub.subscribe(None, Some(first));
    assert!(!resumed.has_gap());
    assert_eq!(hear(&mut resumed, 2).await, "+1 +2");
}

#[tokio::test(start_paused = true)]
async fn history_that_goes_while_it_is_told_is_left_out() {
    let hub = Hub::new(3);
    (0..3).for_each(|id| hub.publish_stored(message(id)));
    // The ring no longer has these.
    (0..FLOOD).for_each(|id| hub.publish_deleted(message_of("ann", id)));
    let mut listener = hub.subscribe(None, None);
    assert_eq!(next(&mut listener).await, "+0");
    hub.publish_deleted(message(1));
    assert_eq!(hear(&mut listener, 3).await, "+2 -1 nothing");
}

/// A runtime that ends also ends the dispatcher. The next subscription starts a new one.
#[test]
fn telling_goes_on_in_another_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let hub = Hub::new(0);
    let first = runtime();
    let listener = first.block_on(async { hub.subscribe(None, None) });
    drop(first);
    runtime().block_on(async {
        let mut second = hub.subscribe(None, None);
        hub.publish_stored(message(1));
        assert_eq!(next(&mut second).await, "+1");
    });
    drop(listener);
}

/// A purge of a large mailbox is faster than any subscriber, and can wait.
#[tokio::test(start_paused = true)]
async fn who_can_wait_lets_the_listeners_follow() {
    let hub = Hub::new(0);
    let mut quiet = hub.subscribe(Some(name("ann")), None);
    let mut all = hub.subscribe(None, None);
    let reader = tokio::spawn(async move { hear(&mut all, usize::try_from(FLOOD).unwrap()).await });
    for id in 0..FLOOD {
        hub.publish_deleted(message(id));
        if id % 1000 == 999 {
            assert!(!hub.wait_for_subscribers(Duration::from_secs(1)).await.is_zero());
        }
    }
    assert_eq!(reader.await.unwrap(), (0..FLOOD).map(|id| format!("-{id}")).collect::<Vec<_>>().join(" "));
    assert_eq!(next(&mut quiet).await, "nothing");
    let left = hub.wait_for_subscribers(Duration::from_secs(1)).await;
    assert_eq!(left, Duration::from_secs(1), "nobody is waited for without need");
}

/// Long headers must not use memory in proportion to the capacity of the ring.
#[tokio::test(start_paused = true)]
async fn what_is_kept_is_bounded_in_bytes_too() {
    let hub = Hub::new(0);
    let mut listener = hub.subscribe(None, None);
    let long = Headline::new("", [], &"x".repeat(1 << 20));
    hub.publish_stored(message(0));
    let first = listener.next().await.unwrap().position();
    for id in 1..100 {
        hub.publish_stored(Summary { headline: long.clone(), ..message(id) });
    }
    assert_eq!(next(&mut listener).await, "lagged");
    assert_eq!(next(&mut hub.subscribe(None, Some(first))).await, "nothing", "overtaken, and there is no history");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_those_who_left() {
    let hub = Hub::new(0);
    let all = [hub.subscribe(None, None), hub.subscribe(None, None)];
    let bob = [hub.subscribe(Some(name("bob")), None), hub.subscribe(Some(name("bob")), None)];
    drop(all);
    let [one, mut other] = bob;
    drop(one);
    hub.publish_stored(message(1));
    assert_eq!(next(&mut other).await, "+1", "the other one goes on listening");
    drop(other);
    assert!(
        [hub::GroupKind::Everything, hub::GroupKind::Mailboxes]
            .into_iter()
            .all(|kind| hub.group(kind).shards().is_none())
    );
    // The dispatcher ends as well and drops its reference to the hub.
    while Arc::strong_count(&hub) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut again = hub.subscribe(None, None);
    hub.publish_stored(message(2));
    assert_eq!(hear(&mut again, 2).await, "+2 nothing");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_rendered_once() {
    let hub = Hub::new(0);
    let (mut one, mut other) = (hub.subscribe(None, None), hub.subscribe(None, None));
    hub.publish_stored(message(1));
    let first = one.next().await.unwrap().rendered(|_| Bytes::from_static(b"first"));
    let second = other.next().await.unwrap().rendered(|_| Bytes::from_static(b"second"));
    assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"first"[..]));
}

/// A subscriber that joins during concurrent deliveries gets each message once: in the history or after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_missed_or_doubled_by_those_who_come_in_the_middle() {
    const DELIVERIES: u64 = 2000;
    let hub = Hub::new(10_000);
    let deliveries = (0..2).map(|side| {
        let hub = hub.clone();
        tokio::spawn(async move {
            for id in 0..DELIVERIES {
                hub.publish_stored(message(side * DELIVERIES + id));
                tokio::task::yield_now().await;
            }
        })
    });
    let deliveries: Vec<_> = deliveries.collect();
    let listeners = (0..20).map(|_| {
        let hub = hub.clone();
        tokio::spawn(async move {
            let mut listener = hub.subscribe(None, None);
            let mut heard = Vec::new();
            let mut last = None;
            while heard.len() < 2 * usize::try_from(DELIVERIES).unwrap() {
                let told = timeout(Duration::from_secs(20), listener.next()).await.expect("an event").unwrap();
                assert!(last < Some(told.position()), "in order");
                last = Some(told.position());
                heard.push(told.event().summary().id.number());
            }
            heard.sort_unstable();
            assert!(heard.into_iter().eq(0..2 * DELIVERIES));
        })
    });
    for task in listeners.collect::<Vec<_>>().into_iter().chain(deliveries) {
        task.await.unwrap();
    }
}

/// The time at which the tests of shared stores start. The numbers of their events are some microseconds away from it.
static NOW: LazyLock<u64> = LazyLock::new(|| Timestamp::now().as_microsecond().unsigned_abs());

/// Publishes that message `after` was stored, `after` microseconds after the start.
fn store(hub: &Hub, after: u64) {
    hub.publish_numbered(*NOW + after, Event::Stored(message(after)));
}

fn hub_that_heard(of: impl IntoIterator<Item = u64>) -> Arc<Hub> {
    let hub = Hub::for_shared_store(2);
    of.into_iter().for_each(|after| store(&hub, after));
    hub
}

fn shared_position(after: u64) -> Position {
    Position { run: 0, number: *NOW + after }
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_shared_store_are_positions_on_every_node() {
    // The events of a node, the position of the subscriber, and the events that it then gets, including one more that
    // is published.
    let table: [(&[u64], u64, &str); 8] = [
        (&[10, 20, 30, 40], 10, "+20 +30 +40 +50 nothing"),
        (&[10, 20, 30, 40], 25, "+30 +40 +50 nothing"),
        (&[10, 20, 30, 40], 40, "+50 nothing"),
        (&[10, 20, 30, 40], 9, "+10 +20 +30 +40 +50 nothing"),
        // A node that started later.
        (&[30, 40], 30, "+40 +50 nothing"),
        (&[30, 40], 29, "+30 +40 +50 nothing"),
        // A node that has fewer events than the one that the subscriber comes from.
        (&[30, 40], 45, "+50 nothing"),
        (&[30, 40], 50, "nothing"),
    ];
    for (heard, resume, expected) in table {
        let hub = hub_that_heard(heard.iter().copied());
        let mut listener = hub.subscribe(Some(name("bob")), Some(shared_position(resume)));
        assert!(!listener.has_gap(), "{heard:?} {resume}");
        store(&hub, 50);
        assert_eq!(hear(&mut listener, expected.split(' ').count()).await, expected, "{heard:?} {resume}");
        assert_eq!(listener.position(), Some(shared_position(50)), "{heard:?} {resume}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_to_another_node_with_what_that_cannot_know_starts_anew() {
    let never = Position { run: 0, number: u64::MAX };
    let of_a_run = Position { run: 1, ..shared_position(40) };
    for position in [shared_position(28), never, of_a_run] {
        let mut anew = hub_that_heard([30, 40, 50]).subscribe(None, Some(position));
        assert!(anew.has_gap(), "{position}");
        assert_eq!(hear(&mut anew, 3).await, "+40 +50 nothing", "{position}");
    }
    let mut early = hub_that_heard([]).subscribe(None, Some(shared_position(40)));
    assert!(early.has_gap(), "nothing is known yet");
    assert_eq!((next(&mut early).await, early.position()), ("nothing".to_owned(), None));

    // The backlog of a node can include old messages, of which some events are missing.
    let hub = Hub::for_shared_store(2);
    hub.set_history_start(*NOW + 20);
    let mut early = hub.subscribe(None, Some(shared_position(25)));
    assert!(!early.has_gap());
    store(&hub, 10);
    store(&hub, 40);
    assert!(hub.subscribe(None, Some(shared_position(10))).has_gap());
    for resumed in [&mut early, &mut hub.subscribe(None, Some(shared_position(20)))] {
        assert_eq!(hear(resumed, 2).await, "+40 nothing");
    }

    let flooded = hub_that_heard(1..=FLOOD);
    let forgotten = flooded.subscribe(None, Some(shared_position(1)));
    assert!(forgotten.has_gap());
    assert!(!flooded.subscribe(None, Some(shared_position(FLOOD - 3000))).has_gap());
}

#[tokio::test(start_paused = true)]
async fn who_listens_while_something_is_missed_is_told_so() {
    let hub = hub_that_heard([10, 20]);
    let mut listeners = [
        hub.subscribe(None, None),
        hub.subscribe(Some(name("bob")), None),
        hub.subscribe(Some(name("ann")), None),
        hub.subscribe(None, Some(shared_position(20))),
    ];
    for (listener, heard) in listeners.iter_mut().zip(["+10 +20", "+10 +20", "nothing", "nothing"]) {
        assert_eq!(hear(listener, heard.split(' ').count()).await, heard);
    }
    let mut late = hub.subscribe(None, None);
    hub.events_missed();
    let mut next_one = hub.subscribe(None, None);
    // Some of the events that follow may be old.
    store(&hub, 20);
    store(&hub, 40);
    for listener in &mut listeners {
        assert_eq!(next(listener).await, "lagged");
    }
    assert_eq!(next(&mut late).await, "lagged", "the history that it was to hear is doubtful");
    assert_eq!(hear(&mut next_one, 3).await, "+20 +40 nothing");
    assert!(hub.subscribe(None, Some(shared_position(10))).has_gap());
    let mut resumed = hub.subscribe(None, Some(shared_position(20)));
    assert!(!resumed.has_gap());
    assert_eq!(hear(&mut resumed, 2).await, "+40 nothing");
}
