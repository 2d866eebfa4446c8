//! Delivery: filters, requests, retries, limits and shutdown.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use restante_api_types::MessageRecord;
use restante_http_client::HttpError;
use restante_mail::message::{Headline, MessageId, Summary};
use restante_mailroom::hooks::Observer as _;

use super::support::{FAST, FakeTargets, counts, message, settings, start, target, wait_until};
use crate::inbox::{DropReason, InboxEvent};
use crate::{Counts, Event, Key, Settings, Target};

const HOOK: &str = "http://x.org/hook";

#[test]
fn targets_are_told_of_what_they_want() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let all = target("http://x.org/all");
    let some =
        Target { events: vec![Event::Deleted], mailboxes: vec!["ci-*".to_owned()], ..target("http://x.org/some") };
    let webhooks = start(Settings { targets: vec![all, some], ..settings(&[]) }, &targets);
    for mailbox in ["ci-1", "james"] {
        let summary = message(mailbox);
        webhooks.message_stored(&summary);
        webhooks.message_deleted(&summary);
    }
    wait_until("all are told", || targets.requests().len() == 5);
    webhooks.shut_down(Duration::from_mins(1), true);
    let mut told: Vec<_> = targets
        .requests()
        .iter()
        .map(|told| format!("{} {} {}", told.url, told.body["event"].as_str().unwrap(), told.mailbox()))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "http://x.org/all message-deleted ci-1",
            "http://x.org/all message-deleted james",
            "http://x.org/all message-stored ci-1",
            "http://x.org/all message-stored james",
            "http://x.org/some message-deleted ci-1",
        ]
    );
}

#[test]
fn a_request_says_what_it_is_and_who_sends_it() {
    let targets = FakeTargets::new(|_, _| Ok(204));
    let key = Key::parse("0123456789abcdef").unwrap();
    let url = "https://ann:secret@x.org/hook?token=1";
    let webhooks = start(Settings { secret: Some(key.clone()), ..settings(&[url]) }, &targets);
    let summary = message("james");
    webhooks.message_stored(&summary);
    wait_until("it is told", || counts(&webhooks).delivered == 1);
    let told = &targets.requests()[0];
    assert_eq!(told.url, "https://x.org/hook?token=1");
    let record = serde_json::to_value(MessageRecord::from(&summary)).unwrap();
    assert_eq!(told.body, serde_json::json!({ "event": "message-stored", "message": record }));
    assert_eq!(told.header("Content-Type"), Some("application/json"));
    assert_eq!(told.header("Authorization"), Some("Basic YW5uOnNlY3JldA=="));
    let name = told.header("webhook-id").unwrap();
    assert!(name.starts_with(&format!("stored-{}-", summary.id)) && !name.contains('.'), "{name}");
    let timestamp = told.header("webhook-timestamp").unwrap().parse().unwrap();
    assert_eq!(told.header("webhook-signature"), Some(key.sign(name, timestamp, &told.text).as_str()));
    assert_eq!(counts(&webhooks), Counts { target: "https://x.org".to_owned(), delivered: 1, ..Counts::default() });
}

#[test]
fn without_a_key_nothing_is_signed() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("it is told", || counts(&webhooks).delivered == 1);
    assert_eq!(targets.requests()[0].header("webhook-signature"), None);
}

#[test]
fn an_event_that_is_not_taken_does_not_hold_up_the_others() {
    let targets = FakeTargets::new(|told, before| Ok(if told.mailbox() == "poison" && before < 4 { 500 } else { 200 }));
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("poison"));
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("all are taken in the end", || counts(&webhooks).delivered == 21);
    let told = targets.requests();
    let names: Vec<_> =
        told.iter().filter(|told| told.mailbox() == "poison").map(|told| told.header("webhook-id")).collect();
    assert_eq!(names, [names[0]; 5], "an event keeps its name");
    assert_eq!((counts(&webhooks).retried, counts(&webhooks).waiting), (4, 0));
}

#[test]
fn a_target_that_comes_back_is_told_of_everything() {
    let failures = [Ok(503), Ok(429), Err(HttpError::Timeout), Err(HttpError::Network("no route".to_owned()))];
    let failures = Mutex::new(failures.into_iter());
    let targets = FakeTargets::new(move |_, _| failures.lock().unwrap().next().unwrap_or(Ok(200)));
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("all are taken in the end", || counts(&webhooks).delivered == 20);
    assert_eq!((counts(&webhooks).retried, targets.requests().len()), (4, 24));
}

#[test]
fn what_has_gathered_in_a_pause_is_sent_by_several_at_once() {
    let (failures, underway) = (AtomicUsize::new(0), Arc::new((Mutex::new(0), Condvar::new())));
    let together = underway.clone();
    let targets = FakeTargets::new(move |_, _| {
        // Long enough for idle threads to stop.
        if failures.fetch_add(1, Relaxed) < 10 {
            return Ok(503);
        }
        let (count, bell) = &*together;
        let mut count = count.lock().unwrap();
        *count += 1;
        bell.notify_all();
        // The first request only shows that the pause is over.
        while *count > 1 && *count < 5 {
            count = bell.wait(count).unwrap();
        }
        Ok(200)
    });
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("four are under way at once", || *underway.0.lock().unwrap() >= 5);
    wait_until("all are taken in the end", || counts(&webhooks).delivered == 20);
}

#[test]
fn a_dead_target_delays_no_other() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |told, _| {
        if told.url.contains("dead") {
            // Blocks until the sender is dropped.
            let _ = released.lock().unwrap().recv();
        }
        Ok(200)
    });
    let webhooks = start(settings(&["http://dead/", "http://alive/"]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("the other is told of everything", || webhooks.counts()[1].delivered == 20);
    assert_eq!(webhooks.counts()[0].waiting, 20);
    let begun = Instant::now();
    webhooks.shut_down(Duration::from_millis(20), true);
    assert!(begun.elapsed() < Duration::from_secs(30), "the end does not wait for what is stuck");
    drop(release);
}

#[test]
fn an_event_does_not_wait_for_the_answer_to_another() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |told, _| {
        if told.mailbox() == "slow" {
            // Blocks until the sender is dropped.
            let _ = released.lock().unwrap().recv();
        }
        Ok(200)
    });
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("slow"));
    wait_until("the first is under way", || targets.mailboxes() == ["slow"]);
    webhooks.message_stored(&message("quick"));
    wait_until("the second is taken meanwhile", || counts(&webhooks).delivered == 1);
    drop(release);
}

#[test]
fn hopeless_events_are_given_up_at_once() {
    let table: [fn() -> Result<u16, HttpError>; 3] = [
        || Ok(410),
        || Err(HttpError::ForbiddenAddress("no".to_owned())),
        || Err(HttpError::InvalidRequest("no".to_owned())),
    ];
    for answer in table {
        let targets = FakeTargets::new(move |_, _| answer());
        let webhooks = start(settings(&[HOOK]), &targets);
        webhooks.message_stored(&message("james"));
        wait_until("it is given up", || counts(&webhooks).failed == 1);
        assert_eq!((targets.requests().len(), counts(&webhooks).waiting), (1, 0), "{:?}", answer());
    }
}

#[test]
fn events_are_given_up_when_their_time_is_over() {
    let targets = FakeTargets::new(|_, _| Ok(500));
    let webhooks = start(Settings { give_up_after: Duration::ZERO, ..settings(&[HOOK]) }, &targets);
    webhooks.message_stored(&message("james"));
    wait_until("it is given up", || counts(&webhooks).failed == 1);
    let Counts { waiting, delivered, retried, .. } = counts(&webhooks);
    assert_eq!((waiting, delivered), (0, 0));
    assert!(retried > 0, "it was tried more than once within the shortest time");
}

#[test]
fn what_finds_the_queue_full_is_dropped() {
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = start(Settings { max_queued: 3, ..settings(&[HOOK]) }, &targets);
    for _ in 0..10 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("the rest is dropped", || counts(&webhooks).dropped == 7);
    assert_eq!(counts(&webhooks).waiting, 3);
}

#[test]
fn a_flood_that_the_queue_can_hold_is_held() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks =
        crate::Webhooks::start_with(Settings { max_queued: 10_000, ..settings(&[HOOK]) }, targets, FAST).unwrap();
    // The worker processes nothing before the server is serving.
    let summary = message("james");
    for _ in 0..10_001 {
        webhooks.message_deleted(&summary);
    }
    assert_eq!((counts(&webhooks).waiting, counts(&webhooks).dropped), (10_000, 1));
    webhooks.activate_after(summary.id);
    wait_until("all are told", || counts(&webhooks).delivered == 10_000);
}

#[test]
fn what_nobody_wants_takes_no_room() {
    let targets = FakeTargets::new(|_, _| Ok(503));
    let entry = Target { mailboxes: vec!["james".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![entry], max_queued: 2, ..settings(&[]) }, &targets);
    for mailbox in ["ann", "bob", "ann", "james"] {
        webhooks.message_stored(&message(mailbox));
    }
    assert_eq!((counts(&webhooks).waiting, counts(&webhooks).dropped), (1, 0));
}

#[test]
fn a_flood_is_bounded_in_bytes_before_the_clerk_sees_it() {
    let intake = crate::inbox::EventInbox::default();
    let summary = Summary { headline: Headline::new("", [""; 0], &"x".repeat(1 << 20)), ..message("james") };
    let news = || InboxEvent { event: Event::Stored, summary: summary.clone(), targets: vec![0] };
    let taken = (0..100).filter(|_| intake.push(news()).is_ok()).count();
    assert_eq!(taken, 63);
    assert_eq!(intake.push(news()), Err(DropReason::Full));
    intake.start(MessageId::ZERO);
    assert_eq!(intake.next_batch(None).events.len(), taken);
    assert_eq!(intake.push(news()), Ok(()));
}

#[test]
fn a_client_that_panics_costs_an_attempt_and_nothing_else() {
    let targets = FakeTargets::new(|_, before| if before == 0 { panic!("chewed on something") } else { Ok(200) });
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("it is taken the second time", || counts(&webhooks).delivered == 1);
}

#[test]
fn entries_with_the_same_url_are_one_target() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let one = Target { events: vec![Event::Stored], ..target("HTTP://X.org:80/a/../hook#top") };
    let other = Target { mailboxes: vec!["james".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![one, other], ..settings(&[]) }, &targets);
    webhooks.message_stored(&message("james"));
    webhooks.message_deleted(&message("james"));
    webhooks.message_deleted(&message("ann"));
    webhooks.shut_down(Duration::from_mins(1), true);
    assert_eq!(counts(&webhooks).delivered, 2);
}

#[test]
fn targets_that_look_the_same_are_counted_together() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&["http://x.org/hook?a", "http://x.org/hook?b"]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("both are told", || counts(&webhooks).delivered == 2);
}

#[test]
fn what_is_in_memory_is_told_before_the_end() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..100 {
        webhooks.message_stored(&message("james"));
    }
    webhooks.shut_down(Duration::from_mins(1), true);
    assert_eq!((targets.requests().len(), counts(&webhooks).waiting), (100, 0));
    webhooks.message_stored(&message("james"));
    let expected = Counts { target: "http://x.org".to_owned(), delivered: 100, dropped: 1, ..Counts::default() };
    assert_eq!(counts(&webhooks), expected, "what comes too late is dropped");
}

#[test]
fn threads_leave_when_there_is_nothing_to_do_and_come_back() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&[HOOK]), &targets);
    for round in 1..=2 {
        webhooks.message_stored(&message("james"));
        wait_until("it is told", || counts(&webhooks).delivered == round);
        // Otherwise only the persist worker holds a reference to the queue.
        wait_until("the threads leave", || Arc::strong_count(&webhooks.queues[0]) == 2);
    }
}

#[test]
fn a_url_that_is_none_stops_the_start() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let started = crate::Webhooks::start_with(settings(&["x.org/hook"]), targets, FAST);
    assert!(started.is_err_and(|error| error.contains("https://")));
}
