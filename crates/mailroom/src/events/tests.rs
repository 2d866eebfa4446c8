//! Subscribers: which events they get, in which order, and what happens if they do not read them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, MessageId};
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;
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
        flags: Flags::default(),
        modseq: 1,
        message: MessageId::from(id),
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    }
}

/// Returns the next event: `+7` if message 7 was stored, `-7` if it was deleted, `lagged`, or `nothing` if none comes.
async fn next(subscriber: &mut Subscription) -> String {
    match timeout(Duration::from_secs(5), subscriber.next()).await {
        Ok(Ok(event)) => short(&event),
        Ok(Err(Lagged)) => "lagged".to_owned(),
        Err(_) => "nothing".to_owned(),
    }
}

/// Returns `count` events in the same notation.
async fn next_events(subscriber: &mut Subscription, count: usize) -> String {
    let mut received = Vec::new();
    for _ in 0..count {
        received.push(next(subscriber).await);
    }
    received.join(" ")
}

fn short(event: &PublishedEvent) -> String {
    match event.event() {
        Event::Stored(summary, _) => format!("+{}", summary.id),
        Event::Deleted(summary) => format!("-{}", summary.id),
    }
}

#[test]
fn parses_and_displays_positions() {
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
async fn history_comes_first_and_skips_deleted_messages() {
    let hub = Hub::new(3, false);
    for id in 1..=5 {
        hub.publish_stored(message(id), MessageCopies::default());
    }
    hub.publish_deleted(message(4));
    hub.publish_deleted(message(1));
    let mut subscriber = hub.subscribe(None, None);
    hub.publish_stored(message(6), MessageCopies::default());
    hub.publish_deleted(message(3));
    assert_eq!(next_events(&mut subscriber, 5).await, "+3 +5 +6 -3 nothing");
}

#[tokio::test(start_paused = true)]
async fn early_deletion_is_repeated_after_the_stored_event() {
    let hub = Hub::new(10, false);
    let mut subscriber = hub.subscribe(None, None);
    let delivery = hub.begin_delivery();
    hub.publish_deleted(message(1));
    hub.publish_stored(message(1), MessageCopies::default());
    hub.publish_stored(message(2), MessageCopies::default());
    drop(delivery);
    assert_eq!(next_events(&mut subscriber, 5).await, "-1 +1 -1 +2 nothing");
    assert_eq!(next_events(&mut hub.subscribe(None, None), 2).await, "+2 nothing");
}

#[tokio::test(start_paused = true)]
async fn subscriber_to_a_mailbox_gets_only_its_events() {
    let hub = Hub::new(10, false);
    hub.publish_stored(message_of("ann", 1), MessageCopies::default());
    hub.publish_stored(message_of("bob", 2), MessageCopies::default());
    let mut ann = hub.subscribe(Some(name("ann")), None);
    let mut eve = hub.subscribe(Some(name("eve")), None);
    let mut all = hub.subscribe(None, None);
    hub.publish_stored(message_of("bob", 3), MessageCopies::default());
    hub.publish_deleted(message_of("ann", 1));
    hub.publish_stored(message_of("ann", 4), MessageCopies::default());
    assert_eq!(next_events(&mut ann, 4).await, "+1 -1 +4 nothing");
    assert_eq!(next_events(&mut eve, 1).await, "nothing");
    assert_eq!(next_events(&mut all, 6).await, "+1 +2 +3 -1 +4 nothing");
}

#[tokio::test(start_paused = true)]
async fn subscriber_resumes_at_its_position() {
    let hub = Hub::new(2, false);
    let mut subscriber = hub.subscribe(None, None);
    for id in 1..=5 {
        hub.publish_stored(message_of(if id % 2 == 0 { "bob" } else { "ann" }, id), MessageCopies::default());
    }
    hub.publish_deleted(message_of("bob", 2));
    let first = subscriber.next().await.unwrap().position();
    drop(subscriber);
    hub.publish_stored(message_of("bob", 6), MessageCopies::default());

    let mut resumed = hub.subscribe(None, Some(first));
    let mut bob = hub.subscribe(Some(name("bob")), Some(first));
    hub.publish_stored(message_of("bob", 7), MessageCopies::default());
    assert_eq!(next_events(&mut resumed, 8).await, "+2 +3 +4 +5 -2 +6 +7 nothing");
    assert_eq!(next_events(&mut bob, 6).await, "+2 +4 -2 +6 +7 nothing");

    let last = hub.subscribe(None, None);
    let mut up_to_date = hub.subscribe(None, Some(Position { number: 7, ..first }));
    assert_eq!(next_events(&mut up_to_date, 1).await, "nothing");
    drop(last);
    let other_run = Position { run: first.run - 1, ..first };
    let unpublished = Position { number: 8, ..first };
    let impossible = Position { number: u64::MAX, ..first };
    for position in [other_run, unpublished, impossible] {
        let mut restarted = hub.subscribe(None, Some(position));
        assert!(restarted.has_gap());
        assert_eq!(next_events(&mut restarted, 3).await, "+6 +7 nothing", "{position}");
    }
    for id in 0..FLOOD {
        hub.publish_deleted(message_of("ann", id));
    }
    assert_eq!(next_events(&mut hub.subscribe(None, Some(first)), 3).await, "+6 +7 nothing", "dropped from the ring");
}

#[tokio::test(start_paused = true)]
async fn resuming_returns_all_missed_events() {
    let hub = Hub::new(0, false);
    let mut subscriber = hub.subscribe(None, None);
    hub.publish_stored(message(0), MessageCopies::default());
    let first = subscriber.next().await.unwrap().position();
    for id in 1..=3000 {
        hub.publish_stored(message(id), MessageCopies::default());
    }
    let mut resumed = hub.subscribe(None, Some(first));
    hub.publish_stored(message(3001), MessageCopies::default());
    for id in 1..=3001 {
        assert_eq!(next(&mut resumed).await, format!("+{id}"));
    }
    assert_eq!(next(&mut resumed).await, "nothing");
}

#[tokio::test(start_paused = true)]
async fn stalled_subscriber_lags_and_others_get_everything() {
    let hub = Hub::new(30, false);
    let mut stalled = hub.subscribe(None, None);
    let mut stalled_on_bob = hub.subscribe(Some(name("bob")), None);
    let mut quiet = hub.subscribe(Some(name("ann")), None);
    let mut prompt = hub.subscribe(None, None);
    for id in 0..FLOOD {
        hub.publish_stored(message(id), MessageCopies::default());
        if id % 100 == 99 {
            for id in id - 99..=id {
                assert_eq!(next(&mut prompt).await, format!("+{id}"));
            }
        }
    }
    assert_eq!(next(&mut stalled).await, "lagged");
    assert_eq!(next(&mut stalled_on_bob).await, "lagged");
    assert_eq!(next(&mut quiet).await, "nothing");
    assert_eq!(next(&mut prompt).await, "nothing");
}

#[tokio::test(start_paused = true)]
async fn slow_subscriber_within_the_limit_gets_everything() {
    let hub = Hub::new(30, false);
    let mut slow = hub.subscribe(None, None);
    for id in 0..3000 {
        hub.publish_stored(message(id), MessageCopies::default());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for id in 0..3000 {
        assert_eq!(next(&mut slow).await, format!("+{id}"));
    }
    assert_eq!(next(&mut slow).await, "nothing");
}

/// Events that arrive faster than they are read are dropped, not sent late.
#[tokio::test(start_paused = true)]
async fn subscriber_lags_if_it_is_overtaken() {
    let hub = Hub::new(2, false);
    let (mut all, mut quiet) = (hub.subscribe(None, None), hub.subscribe(Some(name("ann")), None));
    for id in 0..FLOOD {
        hub.publish_stored(message(id), MessageCopies::default());
    }
    assert_eq!(next(&mut all).await, "lagged");
    assert_eq!(next(&mut quiet).await, "nothing", "no event of its mailbox was dropped");
    let mut again = hub.subscribe(None, None);
    hub.publish_stored(message(FLOOD), MessageCopies::default());
    assert_eq!(next_events(&mut again, 4).await, format!("+{} +{} +{FLOOD} nothing", FLOOD - 2, FLOOD - 1));
}

/// Only matching events can make a subscriber fall behind.
#[tokio::test(start_paused = true)]
async fn subscriber_without_matching_events_does_not_lag() {
    let hub = Hub::new(0, false);
    let mut ann = hub.subscribe(Some(name("ann")), None);
    assert!(ann.position().is_none(), "no event was published");
    for id in 0..FLOOD {
        hub.publish_stored(message(id), MessageCopies::default());
        if id % 1000 == 999 {
            hub.wait_for_subscribers(Duration::from_secs(1)).await;
        }
    }
    assert_eq!(next(&mut ann).await, "nothing");
    let position = ann.position().expect("events of other mailboxes were published");
    for id in 0..2000 {
        hub.publish_deleted(message_of("ann", id));
    }
    let expected = (0..2000).map(|id| format!("-{id}")).collect::<Vec<_>>().join(" ");
    assert_eq!(next_events(&mut ann, 2000).await, expected, "more than one read returns");
    let mut resumed = hub.subscribe(Some(name("ann")), Some(position));
    assert!(!resumed.has_gap());
    assert_eq!(next_events(&mut resumed, 2000).await, expected);
    assert_eq!(next(&mut resumed).await, "nothing");
}

/// A disconnected subscriber reconnects a second later. Meanwhile there may be no other subscriber.
#[tokio::test(start_paused = true)]
async fn last_subscriber_can_resume_after_disconnect() {
    let hub = Hub::new(0, false);
    let mut subscriber = hub.subscribe(None, None);
    hub.publish_stored(message(0), MessageCopies::default());
    let first = subscriber.next().await.unwrap().position();
    drop(subscriber);
    (1..=3000).for_each(|id| hub.publish_stored(message(id), MessageCopies::default()));
    let mut resumed = hub.subscribe(None, Some(first));
    assert!(!resumed.has_gap());
    assert_eq!(next_events(&mut resumed, 2).await, "+1 +2");
}

#[tokio::test(start_paused = true)]
async fn history_skips_messages_deleted_while_it_is_read() {
    let hub = Hub::new(3, false);
    (0..3).for_each(|id| hub.publish_stored(message(id), MessageCopies::default()));
    // The ring no longer has these.
    (0..FLOOD).for_each(|id| hub.publish_deleted(message_of("ann", id)));
    let mut subscriber = hub.subscribe(None, None);
    assert_eq!(next(&mut subscriber).await, "+0");
    hub.publish_deleted(message(1));
    assert_eq!(next_events(&mut subscriber, 3).await, "+2 -1 nothing");
}

#[tokio::test(start_paused = true)]
async fn many_subscribers_read_in_turn() {
    const COUNT: u32 = 1000;
    let hub = Hub::new(0, false);
    let start = tokio::time::Instant::now();
    let readers: Vec<_> = (0..COUNT)
        .map(|_| {
            let mut subscriber = hub.subscribe(None, None);
            tokio::spawn(async move {
                let mut times = Vec::new();
                for expected in ["+1", "+2"] {
                    assert_eq!(next(&mut subscriber).await, expected);
                    times.push(start.elapsed());
                }
                times
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    hub.publish_stored(message(1), MessageCopies::default());
    hub.publish_stored(message(2), MessageCopies::default());
    let mut times = Vec::new();
    for reader in readers {
        times.extend(reader.await.unwrap());
    }
    times.sort_unstable();
    times.dedup();
    assert!(times.len() >= 50, "{times:?}");
    assert!(times.last() < Some(&Duration::from_secs(1)), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_request_is_woken_by_stored_messages_only() {
    let hub = Hub::new(0, false);
    let is_woken =
        async |receiver: &mut TopicReceiver| timeout(Duration::from_secs(1), receiver.message_stored()).await.is_ok();
    let (mut ann, mut bob, mut all) = (hub.listen(Some(name("ann"))), hub.listen(Some(name("bob"))), hub.listen(None));
    hub.publish_stored(message_of("ann", 1), MessageCopies::default());
    hub.publish_stored(message_of("ann", 2), MessageCopies::default());
    hub.publish_deleted(message_of("bob", 3));
    assert!(is_woken(&mut ann).await && !is_woken(&mut ann).await, "several deliveries are one notification");
    assert!(!is_woken(&mut bob).await);
    assert!(is_woken(&mut all).await && !is_woken(&mut all).await);
    hub.events_missed();
    assert!(is_woken(&mut ann).await && is_woken(&mut bob).await && is_woken(&mut all).await);
}

/// A purge of a large mailbox is faster than any subscriber, and can wait.
#[tokio::test(start_paused = true)]
async fn bulk_operation_waits_for_subscribers() {
    let hub = Hub::new(0, false);
    let mut quiet = hub.subscribe(Some(name("ann")), None);
    let mut all = hub.subscribe(None, None);
    let reader = tokio::spawn(async move { next_events(&mut all, usize::try_from(FLOOD).unwrap()).await });
    for id in 0..FLOOD {
        hub.publish_deleted(message(id));
        if id % 1000 == 999 {
            assert!(!hub.wait_for_subscribers(Duration::from_secs(1)).await.is_zero());
        }
    }
    assert_eq!(reader.await.unwrap(), (0..FLOOD).map(|id| format!("-{id}")).collect::<Vec<_>>().join(" "));
    assert_eq!(next(&mut quiet).await, "nothing");
    let left = hub.wait_for_subscribers(Duration::from_secs(1)).await;
    assert_eq!(left, Duration::from_secs(1), "does not wait without a backlog");
}

/// Long headers must not use memory in proportion to the capacity of the ring.
#[tokio::test(start_paused = true)]
async fn ring_is_limited_in_bytes() {
    let hub = Hub::new(0, false);
    let mut subscriber = hub.subscribe(None, None);
    let long = Headline::new("", [], &"x".repeat(1 << 20));
    hub.publish_stored(message(0), MessageCopies::default());
    let first = subscriber.next().await.unwrap().position();
    for id in 1..100 {
        hub.publish_stored(Summary { headline: long.clone(), ..message(id) }, MessageCopies::default());
    }
    assert_eq!(next(&mut subscriber).await, "lagged");
    assert_eq!(
        next(&mut hub.subscribe(None, Some(first))).await,
        "nothing",
        "dropped from the ring, and there is no history"
    );
}

#[tokio::test(start_paused = true)]
async fn state_of_dropped_subscriptions_is_removed() {
    let hub = Hub::new(0, false);
    let all = [hub.subscribe(None, None), hub.subscribe(None, None)];
    let bob = [hub.subscribe(Some(name("bob")), None), hub.subscribe(Some(name("bob")), None)];
    drop(all);
    let [one, mut other] = bob;
    drop(one);
    hub.publish_stored(message(1), MessageCopies::default());
    assert_eq!(next(&mut other).await, "+1", "the other subscription stays active");
    drop(other);
    assert_eq!((hub.state.lock().topics.len(), Arc::strong_count(&hub)), (0, 1));
    let mut again = hub.subscribe(None, None);
    hub.publish_stored(message(2), MessageCopies::default());
    assert_eq!(next_events(&mut again, 2).await, "+2 nothing");
}

#[tokio::test(start_paused = true)]
async fn event_is_rendered_once() {
    let hub = Hub::new(0, false);
    let (mut one, mut other) = (hub.subscribe(None, None), hub.subscribe(None, None));
    hub.publish_stored(message(1), MessageCopies::default());
    let first = one.next().await.unwrap().rendered(|_| Bytes::from_static(b"first"));
    let second = other.next().await.unwrap().rendered(|_| Bytes::from_static(b"second"));
    assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"first"[..]));
}

/// A subscriber that joins during concurrent deliveries gets each message once: in the history or after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joining_during_deliveries_gets_each_event_once() {
    const DELIVERIES: u64 = 2000;
    let hub = Hub::new(10_000, false);
    let deliveries = (0..2).map(|side| {
        let hub = hub.clone();
        tokio::spawn(async move {
            for id in 0..DELIVERIES {
                hub.publish_stored(message(side * DELIVERIES + id), MessageCopies::default());
                tokio::task::yield_now().await;
            }
        })
    });
    let deliveries: Vec<_> = deliveries.collect();
    let subscribers = (0..20).map(|_| {
        let hub = hub.clone();
        tokio::spawn(async move {
            let mut subscriber = hub.subscribe(None, None);
            let mut received = Vec::new();
            let mut last = None;
            while received.len() < 2 * usize::try_from(DELIVERIES).unwrap() {
                let event = timeout(Duration::from_secs(20), subscriber.next()).await.expect("an event").unwrap();
                assert!(last < Some(event.position()), "events are in order");
                last = Some(event.position());
                received.push(event.event().summary().id.number());
            }
            received.sort_unstable();
            assert!(received.into_iter().eq(0..2 * DELIVERIES));
        })
    });
    for task in subscribers.collect::<Vec<_>>().into_iter().chain(deliveries) {
        task.await.unwrap();
    }
}

/// The time at which the tests of shared stores start. The numbers of their events are some microseconds away from it.
static NOW: LazyLock<u64> = LazyLock::new(|| Timestamp::now().as_microsecond().unsigned_abs());

/// Publishes that message `after` was stored, `after` microseconds after the start.
fn publish_stored_at(hub: &Hub, after: u64) {
    hub.publish_numbered(*NOW + after, Event::Stored(message(after), MessageCopies::default()));
}

fn shared_hub(numbers: impl IntoIterator<Item = u64>) -> Arc<Hub> {
    let hub = Hub::new(2, true);
    numbers.into_iter().for_each(|after| publish_stored_at(&hub, after));
    hub
}

fn shared_position(after: u64) -> Position {
    Position { run: 0, number: *NOW + after }
}

#[tokio::test(start_paused = true)]
async fn positions_of_a_shared_store_are_valid_on_every_node() {
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
    for (received, resume, expected) in table {
        let hub = shared_hub(received.iter().copied());
        let mut subscriber = hub.subscribe(Some(name("bob")), Some(shared_position(resume)));
        assert!(!subscriber.has_gap(), "{received:?} {resume}");
        publish_stored_at(&hub, 50);
        assert_eq!(next_events(&mut subscriber, expected.split(' ').count()).await, expected, "{received:?} {resume}");
        assert_eq!(subscriber.position(), Some(shared_position(50)), "{received:?} {resume}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_position_on_another_node_starts_with_the_history() {
    let impossible = Position { run: 0, number: u64::MAX };
    let with_run = Position { run: 1, ..shared_position(40) };
    for position in [shared_position(28), impossible, with_run] {
        let mut restarted = shared_hub([30, 40, 50]).subscribe(None, Some(position));
        assert!(restarted.has_gap(), "{position}");
        assert_eq!(next_events(&mut restarted, 3).await, "+40 +50 nothing", "{position}");
    }
    let mut early = shared_hub([]).subscribe(None, Some(shared_position(40)));
    assert!(early.has_gap(), "the node has no events yet");
    assert_eq!((next(&mut early).await, early.position()), ("nothing".to_owned(), None));

    // The backlog of a node can include old messages, of which some events are missing.
    let hub = Hub::new(2, true);
    hub.set_history_start(*NOW + 20);
    let mut early = hub.subscribe(None, Some(shared_position(25)));
    assert!(!early.has_gap());
    publish_stored_at(&hub, 10);
    publish_stored_at(&hub, 40);
    assert!(hub.subscribe(None, Some(shared_position(10))).has_gap());
    for resumed in [&mut early, &mut hub.subscribe(None, Some(shared_position(20)))] {
        assert_eq!(next_events(resumed, 2).await, "+40 nothing");
    }

    let flooded = shared_hub(1..=FLOOD);
    let forgotten = flooded.subscribe(None, Some(shared_position(1)));
    assert!(forgotten.has_gap());
    assert!(!flooded.subscribe(None, Some(shared_position(FLOOD - 3000))).has_gap());
}

#[tokio::test(start_paused = true)]
async fn subscribers_lag_after_missed_events() {
    let hub = shared_hub([10, 20]);
    let mut subscribers = [
        hub.subscribe(None, None),
        hub.subscribe(Some(name("bob")), None),
        hub.subscribe(Some(name("ann")), None),
        hub.subscribe(None, Some(shared_position(20))),
    ];
    for (subscriber, received) in subscribers.iter_mut().zip(["+10 +20", "+10 +20", "nothing", "nothing"]) {
        assert_eq!(next_events(subscriber, received.split(' ').count()).await, received);
    }
    let mut late = hub.subscribe(None, None);
    hub.events_missed();
    let mut joined_after = hub.subscribe(None, None);
    // Some of the events that follow may be old.
    publish_stored_at(&hub, 20);
    publish_stored_at(&hub, 40);
    for subscriber in &mut subscribers {
        assert_eq!(next(subscriber).await, "lagged");
    }
    assert_eq!(next(&mut late).await, "lagged", "the history may be outdated");
    assert_eq!(next_events(&mut joined_after, 3).await, "+20 +40 nothing");
    assert!(hub.subscribe(None, Some(shared_position(10))).has_gap());
    let mut resumed = hub.subscribe(None, Some(shared_position(20)));
    assert!(!resumed.has_gap());
    assert_eq!(next_events(&mut resumed, 2).await, "+40 nothing");
}

/// Publishes 20,000 messages, 5,000 per second.
async fn publish_steadily(hub: &Hub) {
    for step in 0..400 {
        for number in 0..50 {
            hub.publish_stored(message(step * 50 + number + 1), MessageCopies::default());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn idle_listeners_do_not_slow_down_a_subscriber() {
    let hub = Hub::new(0, false);
    let idle: Vec<Subscription> =
        (0..1000).map(|number| hub.subscribe(Some(name(&format!("idle{number}"))), None)).collect();
    let waiting: Vec<TopicReceiver> = (0..1000).map(|_| hub.listen(Some(name("other")))).collect();
    let mut subscriber = hub.subscribe(None, None);
    let reader = tokio::spawn(async move { next_events(&mut subscriber, 20_000).await });
    publish_steadily(&hub).await;
    let received = reader.await.unwrap();
    assert!(received.ends_with("+20000"), "{}", &received[received.len() - 40..]);
    assert!(!received.contains("lagged"), "the subscriber fell behind");
    drop((idle, waiting));
}

#[tokio::test(start_paused = true)]
async fn stalled_subscriber_delays_bulk_operations_only_briefly() {
    let hub = Hub::new(0, false);
    let _stalled = hub.subscribe(None, None);
    for id in 1..=5000 {
        hub.publish_deleted(message(id));
    }
    let budget = Duration::from_secs(5);
    assert!(hub.wait_for_subscribers(budget).await >= Duration::from_secs(4), "the whole budget was used");
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_notified_of_stored_messages_only() {
    let hub = Hub::new(0, false);
    let mut waiting = hub.listen(Some(name("bob")));
    let is_notified =
        async |waiting: &mut TopicReceiver| timeout(Duration::from_secs(5), waiting.message_stored()).await.is_ok();
    hub.publish_deleted(message(1));
    hub.publish_stored(message_of("ann", 2), MessageCopies::default());
    assert!(!is_notified(&mut waiting).await, "there was no new message in the mailbox");
    hub.publish_stored(message(3), MessageCopies::default());
    assert!(is_notified(&mut waiting).await);
    assert!(!is_notified(&mut waiting).await, "the same message was reported twice");
}
