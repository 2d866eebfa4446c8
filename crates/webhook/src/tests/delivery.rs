//! Delivery: filters, requests, retries, limits and shutdown.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use restante_api_types::MessageRecord;
use restante_http_client::HttpError;
use restante_mail::message::{Headline, Summary};
use restante_mailroom::hooks::Observer as _;
use restante_queue::EntryControl as _;

use super::support::{
    FAST, FakeTargets, activate, counts, main_runtime, memory_queue, message, settings, start, start_with_delays,
    target, wait_until,
};
use crate::backoff::Backoff;
use crate::{Counts, EntryFilter, EventKind, Key, Selection, Settings, Target, Webhooks};

const HOOK: &str = "http://x.org/hook";

#[test]
fn targets_get_matching_events() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let all = target("http://x.org/all");
    let some =
        Target { events: vec![EventKind::Deleted], mailboxes: vec!["ci-*".to_owned()], ..target("http://x.org/some") };
    let webhooks = start(Settings { targets: vec![all, some], ..settings(&[]) }, &targets);
    for mailbox in ["ci-1", "james"] {
        let summary = message(mailbox);
        webhooks.message_stored(&summary);
        webhooks.message_deleted(&summary);
    }
    wait_until("all events are delivered", || targets.requests().len() == 5);
    webhooks.shut_down(Duration::from_mins(1), true);
    let mut requests: Vec<_> = targets
        .requests()
        .iter()
        .map(|request| format!("{} {} {}", request.url, request.body["event"].as_str().unwrap(), request.mailbox()))
        .collect();
    requests.sort();
    assert_eq!(
        requests,
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
fn request_contains_event_credentials_and_signature() {
    let targets = FakeTargets::new(|_, _| Ok(204));
    let key = Key::parse("0123456789abcdef").unwrap();
    let url = "https://ann:secret@x.org/hook?token=1";
    let webhooks = start(Settings { secret: Some(key.clone()), ..settings(&[url]) }, &targets);
    let summary = message("james");
    webhooks.message_stored(&summary);
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    let request = &targets.requests()[0];
    assert_eq!(request.url, "https://x.org/hook?token=1");
    let record = serde_json::to_value(MessageRecord::from(&summary)).unwrap();
    assert_eq!(request.body, serde_json::json!({ "event": "message-stored", "message": record }));
    assert_eq!(request.header("Content-Type"), Some("application/json"));
    assert_eq!(request.header("Authorization"), Some("Basic YW5uOnNlY3JldA=="));
    let id = request.header("webhook-id").unwrap();
    assert!(id.starts_with(&format!("stored-{}-", summary.id)) && !id.contains('.'), "{id}");
    let timestamp = request.header("webhook-timestamp").unwrap().parse().unwrap();
    assert_eq!(request.header("webhook-signature"), Some(key.sign(id, timestamp, request.text.as_bytes()).as_str()));
    assert_eq!(counts(&webhooks), Counts { target: "https://x.org".to_owned(), delivered: 1, ..Counts::default() });
}

#[test]
fn requests_without_key_are_not_signed() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    assert_eq!(targets.requests()[0].header("webhook-signature"), None);
}

#[test]
fn rejected_event_does_not_block_others() {
    let targets =
        FakeTargets::new(|request, earlier| Ok(if request.mailbox() == "poison" && earlier < 4 { 500 } else { 200 }));
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("poison"));
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("all events are delivered", || counts(&webhooks).delivered == 21);
    let requests = targets.requests();
    let ids: Vec<_> = requests
        .iter()
        .filter(|request| request.mailbox() == "poison")
        .map(|request| request.header("webhook-id"))
        .collect();
    assert_eq!(ids, [ids[0]; 5], "an event keeps its id");
    assert_eq!((counts(&webhooks).retried, counts(&webhooks).waiting), (4, 0));
}

#[test]
fn recovered_target_gets_all_events() {
    let failures = [Ok(503), Ok(429), Err(HttpError::Timeout), Err(HttpError::Network("no route".to_owned()))];
    let failures = Mutex::new(failures.into_iter());
    let targets = FakeTargets::new(move |_, _| failures.lock().unwrap().next().unwrap_or(Ok(200)));
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("all events are delivered", || counts(&webhooks).delivered == 20);
    assert_eq!((counts(&webhooks).retried, targets.requests().len()), (4, 24));
}

#[test]
fn events_after_a_pause_are_sent_in_parallel() {
    let (requests, in_flight) = (AtomicUsize::new(0), Arc::new((Mutex::new(0), Condvar::new())));
    let target_in_flight = in_flight.clone();
    let targets = FakeTargets::new(move |_, _| {
        // The pause after these failures is long enough for idle threads to stop.
        if requests.fetch_add(1, Relaxed) < 10 {
            return Ok(503);
        }
        let (count, changed) = &*target_in_flight;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        // The first request only shows that the pause is over.
        while *count > 1 && *count < 5 {
            count = changed.wait(count).unwrap();
        }
        Ok(200)
    });
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("four requests run at once", || *in_flight.0.lock().unwrap() >= 5);
    wait_until("all events are delivered", || counts(&webhooks).delivered == 20);
}

#[test]
fn retry_ends_the_pause_of_the_selected_target_only() {
    let urls = ["http://one.org/", "http://other.org/"];
    let targets = FakeTargets::new(|_, _| Ok(503));
    let delay = Duration::from_hours(1);
    let webhooks =
        start_with_delays(settings(&urls), &targets, Backoff { first_delay: delay, max_delay: delay, ..FAST });
    webhooks.message_stored(&message("james"));
    let statuses = || main_runtime().block_on(webhooks.target_statuses()).unwrap();
    wait_until("both are unavailable", || statuses().iter().all(|status| status.unavailable_until.is_some()));
    let before = statuses();
    // This event is due at once, but waits for the end of the pauses.
    webhooks.message_stored(&message("waits"));
    let entries =
        || main_runtime().block_on(webhooks.entries(EntryFilter { limit: 9, ..EntryFilter::default() })).unwrap();
    wait_until("both events are queued", || entries().len() == 4);
    let id = entries().iter().find(|entry| entry.target == before[0].name).unwrap().id;
    let count = |url: &str| targets.requests().iter().filter(|request| request.url == url).count();
    for selection in [Selection::Target(Some(before[0].name.clone())), Selection::Ids(vec![id])] {
        let sent = count(urls[0]);
        let retry = || main_runtime().block_on(webhooks.retry(selection.clone())).unwrap();
        // An attempt that began before can fail after the first retry, which pauses the target again.
        wait_until("an event is sent", || retry() > 0 && count(urls[0]) > sent);
        assert_eq!(count(urls[1]), 1);
        assert_eq!(statuses()[1].unavailable_until, before[1].unavailable_until);
    }
}

#[test]
fn blocked_target_does_not_delay_others() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |request, _| {
        if request.url.contains("dead") {
            // Blocks until the sender is dropped.
            let _ = released.lock().unwrap().recv();
        }
        Ok(200)
    });
    let webhooks = start(settings(&["http://dead/", "http://alive/"]), &targets);
    for _ in 0..20 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("the other target gets all events", || webhooks.counts()[1].delivered == 20);
    assert_eq!(webhooks.counts()[0].waiting, 20);
    let started_at = Instant::now();
    webhooks.shut_down(Duration::from_millis(20), true);
    assert!(started_at.elapsed() < Duration::from_secs(30), "the shutdown does not wait for blocked requests");
    drop(release);
}

#[test]
fn slow_response_does_not_delay_other_events() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |request, _| {
        if request.mailbox() == "slow" {
            // Blocks until the sender is dropped.
            let _ = released.lock().unwrap().recv();
        }
        Ok(200)
    });
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("slow"));
    wait_until("the first request runs", || targets.mailboxes() == ["slow"]);
    webhooks.message_stored(&message("quick"));
    wait_until("the second event is delivered", || counts(&webhooks).delivered == 1);
    drop(release);
}

#[test]
fn gives_up_at_once_after_permanent_failure() {
    let table: [fn() -> Result<u16, HttpError>; 3] = [
        || Ok(410),
        || Err(HttpError::ForbiddenAddress("no".to_owned())),
        || Err(HttpError::InvalidRequest("no".to_owned())),
    ];
    for response in table {
        let targets = FakeTargets::new(move |_, _| response());
        let webhooks = start(settings(&[HOOK]), &targets);
        webhooks.message_stored(&message("james"));
        wait_until("the event is given up", || counts(&webhooks).failed == 1);
        wait_until("no event waits", || counts(&webhooks).waiting == 0);
        assert_eq!(targets.requests().len(), 1, "{:?}", response());
    }
}

#[test]
fn gives_up_events_after_their_deadline() {
    let targets = FakeTargets::new(|_, _| Ok(500));
    let webhooks = start(Settings { give_up_after: Duration::ZERO, ..settings(&[HOOK]) }, &targets);
    webhooks.message_stored(&message("james"));
    wait_until("the event is given up", || counts(&webhooks).failed == 1);
    wait_until("no event waits", || counts(&webhooks).waiting == 0);
    let Counts { delivered, retried, .. } = counts(&webhooks);
    assert_eq!(delivered, 0);
    assert!(retried > 0, "it is sent more than once within the minimum time");
}

#[test]
fn last_attempt_is_made_although_all_senders_are_busy_at_the_deadline() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |request, _| {
        if request.mailbox() == "slow" {
            // Blocks until the sender is dropped.
            let _ = released.lock().unwrap().recv();
        }
        Ok(200)
    });
    let timeout = Duration::from_mins(10);
    let webhooks = start(Settings { give_up_after: Duration::ZERO, timeout, ..settings(&[HOOK]) }, &targets);
    for _ in 0..4 {
        webhooks.message_stored(&message("slow"));
    }
    wait_until("all senders are busy", || targets.requests().len() == 4);
    webhooks.message_stored(&message("last"));
    let stored_at = Instant::now();
    wait_until("the minimum time has passed", || stored_at.elapsed() > Duration::from_secs(3));
    drop(release);
    wait_until("all events are delivered", || counts(&webhooks).delivered == 5);
}

#[test]
fn drops_events_if_queue_is_full() {
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = start(Settings { max_queued: 3, ..settings(&[HOOK]) }, &targets);
    for _ in 0..10 {
        webhooks.message_stored(&message("james"));
    }
    wait_until("the other events are dropped", || counts(&webhooks).dropped == 7);
    assert_eq!(counts(&webhooks).waiting, 3);
}

#[test]
fn queue_holds_events_up_to_its_limit() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let settings = Settings { max_queued: 2000, ..settings(&[HOOK]) };
    let webhooks = main_runtime().block_on(Webhooks::with_http(settings, memory_queue(), targets, FAST)).unwrap();
    // Nothing is processed before the server is serving.
    for _ in 0..2001 {
        webhooks.message_deleted(&message("james"));
    }
    activate(&webhooks);
    wait_until("all events are delivered", || counts(&webhooks).delivered == 2000);
    assert_eq!((counts(&webhooks).waiting, counts(&webhooks).dropped), (0, 1));
}

#[test]
fn size_of_queued_events_is_limited() {
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = start(settings(&[HOOK]), &targets);
    let headline = Headline::new("", [""; 0], &"x".repeat(1 << 20));
    for _ in 0..64 {
        webhooks.message_stored(&Summary { headline: headline.clone(), ..message("james") });
    }
    wait_until("the last event does not fit", || (counts(&webhooks).waiting, counts(&webhooks).dropped) == (63, 1));
}

#[test]
fn unmatched_events_take_no_slot() {
    let targets = FakeTargets::new(|_, _| Ok(503));
    let entry = Target { mailboxes: vec!["james".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![entry], max_queued: 2, ..settings(&[]) }, &targets);
    for mailbox in ["ann", "bob", "ann", "james"] {
        webhooks.message_stored(&message(mailbox));
    }
    assert_eq!((counts(&webhooks).waiting, counts(&webhooks).dropped), (1, 0));
}

#[test]
fn panic_of_the_http_client_is_a_failed_attempt() {
    let targets = FakeTargets::new(|_, earlier| if earlier == 0 { panic!("deliberate panic") } else { Ok(200) });
    let webhooks = start(settings(&[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("the second attempt succeeds", || counts(&webhooks).delivered == 1);
}

#[test]
fn entries_with_the_same_url_are_one_target() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let first = Target { events: vec![EventKind::Stored], ..target("HTTP://X.org:80/a/../hook#top") };
    let second = Target { mailboxes: vec!["james".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![first, second], ..settings(&[]) }, &targets);
    webhooks.message_stored(&message("james"));
    webhooks.message_deleted(&message("james"));
    webhooks.message_deleted(&message("ann"));
    webhooks.shut_down(Duration::from_mins(1), true);
    assert_eq!(counts(&webhooks).delivered, 2);
}

#[test]
fn targets_with_the_same_label_are_counted_together() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&["http://x.org/hook?a", "http://x.org/hook?b"]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("both events are delivered", || counts(&webhooks).delivered == 2);
}

#[test]
fn shutdown_sends_events_in_memory() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings(&[HOOK]), &targets);
    for _ in 0..100 {
        webhooks.message_stored(&message("james"));
    }
    webhooks.shut_down(Duration::from_mins(1), true);
    assert_eq!((targets.requests().len(), counts(&webhooks).waiting), (100, 0));
    webhooks.message_stored(&message("james"));
    let expected = Counts { target: "http://x.org".to_owned(), delivered: 100, dropped: 1, ..Counts::default() };
    assert_eq!(counts(&webhooks), expected, "late events are dropped");
}

#[test]
fn invalid_url_fails_the_start() {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let started =
        main_runtime().block_on(Webhooks::with_http(settings(&["x.org/hook"]), memory_queue(), targets, FAST));
    assert!(started.is_err_and(|error| error.contains("https://")));
}
