//! The outbox: waiting events survive restarts and crashes, and delivery works without a usable file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::Naming;
use restante_mailroom::hooks::{Extensions, Observer as _};
use restante_mailroom::{DeliveryOutcome, Mailroom};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use restante_testdir::TestDir;
use restante_teststore::SharedStore;
use rusqlite::Connection;

use super::support::{FAST, FakeTargets, counts, message, settings, start, target, wait_until};
use crate::inbox::{DropReason, EventInbox, InboxEvent};
use crate::{Event, Settings, Target, Webhooks};

const HOOK: &str = "http://x.org/hook";
const LONG: Duration = Duration::from_mins(1);

fn settings_in(dir: &TestDir, urls: &[&str]) -> Settings {
    Settings { directory: Some(dir.path().to_owned()), ..settings(urls) }
}

fn run_rejected_with(settings: Settings) -> Arc<Webhooks> {
    start(settings, &FakeTargets::new(|_, _| Ok(503)))
}

/// Runs a server whose target rejects everything.
fn run_rejected(dir: &TestDir, mailboxes: &[&str]) -> Arc<Webhooks> {
    let webhooks = run_rejected_with(settings_in(dir, &[HOOK]));
    for mailbox in mailboxes {
        webhooks.message_stored(&message(mailbox));
    }
    let count = u64::try_from(mailboxes.len()).unwrap();
    wait_until("the events wait", || counts(&webhooks).waiting == count);
    webhooks
}

/// Starts a server that has not caught up yet.
async fn serve(settings: Settings, targets: &Arc<FakeTargets>, mailroom: &Mailroom) -> Arc<Webhooks> {
    let webhooks = Webhooks::start_with(settings, targets.clone(), FAST).unwrap();
    webhooks.activate(mailroom).await;
    webhooks
}

/// Reads the floor from the outbox file.
fn read_floor(dir: &TestDir) -> u64 {
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    file.busy_timeout(LONG).unwrap();
    file.query_row("SELECT floor FROM state", [], |row| row.get(0)).unwrap()
}

/// Runs a server whose target accepts everything, up to a clean shutdown. Returns the mailboxes of the received events.
async fn run(settings: Settings, mailroom: &Mailroom) -> Vec<String> {
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(settings, &targets, mailroom).await;
    webhooks.catch_up(mailroom).await;
    webhooks.message_stored(&message("end"));
    wait_until("all events are delivered", || {
        targets.mailboxes().iter().any(|mailbox| mailbox == "end")
            && webhooks.counts().iter().all(|counts| counts.waiting == 0)
    });
    webhooks.shut_down(LONG, true);
    targets.mailboxes().into_iter().filter(|mailbox| mailbox != "end").collect()
}

fn mailroom() -> Mailroom {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default())
}

async fn deliver(mailroom: &Mailroom, mailbox: &str) -> Summary {
    let address = |text: &str| Address::parse(text, Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        login: None,
        from: None,
        recipients: vec![Recipient::new(address(&format!("{mailbox}@x.org")), Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies[0].clone(),
        DeliveryOutcome::Discarded => panic!("discarded"),
    }
}

#[tokio::test]
async fn waiting_events_are_sent_after_a_restart() {
    let dir = TestDir::new();
    run_rejected(&dir, &["a", "b", "c"]).shut_down(LONG, true);
    let mode = fs::metadata(dir.path().join("webhooks.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c"]);
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom()).await.is_empty(), "delivered events are removed");
}

#[tokio::test]
async fn waiting_events_are_sent_after_a_crash() {
    let dir = TestDir::new();
    drop(run_rejected(&dir, &["a", "b", "c"]));
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn events_keep_their_id_and_age_over_a_restart() {
    let dir = TestDir::new();
    run_rejected(&dir, &["a"]).shut_down(LONG, true);
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    let id: String = file.query_row("SELECT name FROM waiting", [], |row| row.get(0)).unwrap();
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    wait_until("the event is sent again", || !targets.requests().is_empty());
    assert_eq!(targets.requests()[0].header("webhook-id"), Some(id.as_str()));
    webhooks.shut_down(LONG, true);
    drop(webhooks);

    file.execute("UPDATE waiting SET since = since - 86400000", []).unwrap();
    let before = targets.requests().len();
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    wait_until("the event is given up", || counts(&webhooks).failed == 1);
    assert!(targets.requests().len() > before, "after another attempt: the clock may have been wrong");
    webhooks.shut_down(LONG, true);
    let remaining: i64 = file.query_row("SELECT count(*) FROM waiting", [], |row| row.get(0)).unwrap();
    assert_eq!(remaining, 0);
}

#[tokio::test]
async fn missed_messages_are_sent_after_a_crash() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    deliver(&mailroom, "before").await;
    let webhooks = run_rejected(&dir, &[]);
    webhooks.message_stored(&deliver(&mailroom, "waits").await);
    wait_until("the event waits", || counts(&webhooks).waiting == 1);
    drop(webhooks);
    deliver(&mailroom, "missed").await;
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["missed", "waits"]);
}

/// Messages that arrived at another node are reported by that node.
#[tokio::test]
async fn shared_store_is_not_searched_after_a_crash() {
    let (dir, store) = (TestDir::new(), SharedStore::new(Limits::default()).node().await);
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
    let webhooks = run_rejected(&dir, &[]);
    webhooks.message_stored(&deliver(&mailroom, "waits").await);
    wait_until("the event waits", || counts(&webhooks).waiting == 1);
    drop(webhooks);
    let last = deliver(&mailroom, "other-node").await;
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["waits"]);
    assert_eq!(read_floor(&dir), last.id.number(), "nothing is searched again");
}

#[tokio::test]
async fn delivered_events_are_not_sent_again_after_a_crash() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&deliver(&mailroom, "accepted").await);
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    drop(webhooks);
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom).await.is_empty());
}

#[tokio::test]
async fn newest_of_too_many_missed_messages_are_sent() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_rejected(&dir, &[]));
    for number in 0..8 {
        deliver(&mailroom, &format!("m{}", 9 - number)).await;
    }
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(Settings { max_queued: 5, ..settings_in(&dir, &[HOOK]) }, &targets, &mailroom).await;
    webhooks.catch_up(&mailroom).await;
    wait_until("the events are delivered", || counts(&webhooks).delivered == 5);
    assert_eq!(targets.mailboxes(), ["m2", "m3", "m4", "m5", "m6"]);
    assert_eq!(counts(&webhooks).dropped, 3);
}

#[tokio::test]
async fn nothing_is_searched_at_first_start_or_after_clean_shutdown() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    deliver(&mailroom, "imported").await;
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom).await.is_empty());
    deliver(&mailroom, "imported").await;
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom).await.is_empty());
    drop(run_rejected(&dir, &[]));
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom).await.is_empty(), "nor after a later crash");
}

#[tokio::test]
async fn gap_starts_at_the_last_id_of_the_store() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let last = deliver(&mailroom, "before").await.id.number();
    let targets = FakeTargets::new(|_, _| Ok(200));
    drop(serve(settings_in(&dir, &[HOOK]), &targets, &mailroom).await);
    wait_until("the floor is written", || read_floor(&dir) == last);

    let later = deliver(&mailroom, "missed").await.id.number();
    let webhooks = serve(settings_in(&dir, &[HOOK]), &targets, &mailroom).await;
    assert_eq!(read_floor(&dir), last, "before the search");
    webhooks.catch_up(&mailroom).await;
    wait_until("the floor is written", || read_floor(&dir) == later);
    wait_until("the event is delivered", || targets.mailboxes() == ["missed"]);
}

#[tokio::test]
async fn gap_is_searched_once() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let deleted = |url| Target { events: vec![Event::Deleted], ..target(url) };
    let webhooks = run_rejected_with(Settings { targets: vec![deleted("http://a.org/")], ..settings_in(&dir, &[]) });
    deliver(&mailroom, "before").await;
    drop(webhooks);
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(settings_in(&dir, &[HOOK]), &targets, &mailroom).await;
    webhooks.catch_up(&mailroom).await;
    let last = mailroom.last_id().await.unwrap().number();
    wait_until("the search is finished", || read_floor(&dir) == last);
    drop(webhooks);
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom).await.is_empty(), "the target did not exist then");
}

#[tokio::test]
async fn events_without_target_raise_the_floor() {
    let dir = TestDir::new();
    let targets = FakeTargets::new(|_, _| Ok(200));
    let entry = Target { mailboxes: vec!["other".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![entry], ..settings_in(&dir, &[]) }, &targets);
    let mut summary = message("james");
    summary.id = (summary.id.number() + 100_000_000).into();
    webhooks.message_stored(&summary);
    wait_until("the floor is raised", || read_floor(&dir) > summary.id.number() - 20_000_000);
}

#[tokio::test]
async fn failed_start_does_not_change_the_file() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let fail = || {
        let targets = FakeTargets::new(|_, _| Ok(200));
        drop(Webhooks::start_with(settings_in(&dir, &["http://other.org/"]), targets.clone(), FAST).unwrap());
        assert!(targets.requests().is_empty());
    };
    run_rejected(&dir, &["waits"]).shut_down(LONG, true);
    fail();
    deliver(&mailroom, "imported").await;
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["waits"]);
    drop(run_rejected(&dir, &[]));
    deliver(&mailroom, "missed").await;
    fail();
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["missed"]);
}

#[tokio::test]
async fn messages_found_after_shutdown_are_left_to_the_next_start() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_rejected(&dir, &[]));
    deliver(&mailroom, "missed").await;
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(settings_in(&dir, &[HOOK]), &targets, &mailroom).await;
    webhooks.shut_down(LONG, true);
    webhooks.catch_up(&mailroom).await;
    assert_eq!((targets.requests().len(), counts(&webhooks).waiting, counts(&webhooks).dropped), (0, 0, 0));
    drop(webhooks);
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["missed"]);
}

#[tokio::test]
async fn clean_shutdown_does_not_depend_on_the_timeout() {
    for timeout in [Duration::ZERO, LONG] {
        for (is_clean, expected) in [(true, &[][..]), (false, &["missed"])] {
            let (dir, mailroom) = (TestDir::new(), mailroom());
            run_rejected(&dir, &[]).shut_down(timeout, is_clean);
            deliver(&mailroom, "missed").await;
            assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, expected, "{timeout:?} {is_clean}");
        }
    }
}

#[test]
fn shutdown_is_not_clean_if_an_event_came_late() {
    for (is_late, expected) in [(false, true), (true, false)] {
        let inbox = EventInbox::default();
        inbox.start(MessageId::ZERO);
        inbox.close(Instant::now());
        if is_late {
            let event = InboxEvent { event: Event::Stored, summary: message("james"), targets: vec![0] };
            assert_eq!(inbox.push(event), Err(DropReason::Closed));
        }
        inbox.stop(true, Instant::now());
        let batch = inbox.next_batch(None);
        assert_eq!((batch.is_stopping, batch.is_clean), (true, expected));
    }
}

#[tokio::test]
async fn shutdown_waits_for_responses() {
    let dir = TestDir::new();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |_, _| {
        // Blocks until the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Ok(200)
    });
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("the request runs", || targets.requests().len() == 1);
    let release_thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        drop(release);
    });
    webhooks.shut_down(LONG, true);
    release_thread.join().unwrap();
    assert_eq!(counts(&webhooks).delivered, 1);
    drop(webhooks);
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom()).await.is_empty());
}

#[tokio::test]
async fn equivalent_urls_are_the_same_target() {
    let dir = TestDir::new();
    run_rejected(&dir, &["a"]).shut_down(LONG, true);
    assert_eq!(run(settings_in(&dir, &["HTTP://X.ORG:80/a/../hook"]), &mailroom()).await, ["a"]);
}

#[tokio::test]
async fn outbox_is_opened_later_if_it_fails_at_first() {
    let dir = TestDir::new();
    run_rejected(&dir, &["a", "b"]).shut_down(LONG, true);
    let (file, moved) = (dir.path().join("webhooks.db"), dir.path().join("away"));
    fs::rename(&file, &moved).unwrap();
    fs::create_dir(&file).unwrap();
    let webhooks = run_rejected(&dir, &["c", "d", "e"]);
    fs::remove_dir(&file).unwrap();
    fs::rename(&moved, &file).unwrap();
    wait_until("all events wait", || counts(&webhooks).waiting == 5);
    let read = || {
        let file = Connection::open(&file).unwrap();
        file.busy_timeout(LONG).unwrap();
        let number = |sql| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        (number("SELECT count(*) FROM waiting"), number("SELECT clean FROM state"))
    };
    wait_until("the events are written and the file is marked as in use", || read() == (5, 0));
    webhooks.shut_down(LONG, true);
    drop(webhooks);
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn new_target_does_not_get_older_events() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_rejected(&dir, &["waits"]));
    deliver(&mailroom, "missed").await;
    let mailboxes = run(settings_in(&dir, &["http://new.org/", HOOK]), &mailroom).await;
    assert_eq!(mailboxes, ["missed", "waits"], "once each, so only the old target gets them");
}

#[tokio::test]
async fn drops_events_of_removed_targets() {
    let dir = TestDir::new();
    run_rejected(&dir, &["a", "b"]).shut_down(LONG, true);
    assert!(run(settings_in(&dir, &["http://other.org/"]), &mailroom()).await.is_empty());
    assert!(run(settings_in(&dir, &[HOOK]), &mailroom()).await.is_empty(), "the events are gone");
}

#[tokio::test]
async fn renames_unusable_file() {
    let foreign = |path: &std::path::Path| {
        Connection::open(path).unwrap().execute_batch("PRAGMA application_id = 1; CREATE TABLE t (x)").unwrap();
    };
    let garbage = |path: &std::path::Path| fs::write(path, "not a database. ".repeat(1000)).unwrap();
    let table: [&dyn Fn(&std::path::Path); 2] = [&foreign, &garbage];
    for write_unusable in table {
        let dir = TestDir::new();
        write_unusable(&dir.path().join("webhooks.db"));
        run_rejected(&dir, &["a"]).shut_down(LONG, true);
        assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom()).await, ["a"], "the new file is used");
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("webhooks.db.unusable-")).count(), 1);
    }
}

#[tokio::test]
async fn sends_events_from_memory_without_a_usable_file() {
    let dir = TestDir::new();
    fs::create_dir(dir.path().join("webhooks.db")).unwrap();
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&message("a"));
    webhooks.shut_down(LONG, true);
    assert_eq!(targets.mailboxes(), ["a"]);
}

#[tokio::test]
async fn locked_file_delays_and_loses_nothing() {
    let dir = TestDir::new();
    let targets = FakeTargets::new(|request, _| Ok(if request.mailbox() == "accepted" { 200 } else { 500 }));
    let webhooks = start(settings_in(&dir, &[HOOK]), &targets);
    wait_until("the file exists", || dir.path().join("webhooks.db").exists());
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    file.busy_timeout(LONG).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    webhooks.message_stored(&message("accepted"));
    webhooks.message_stored(&message("waits"));
    wait_until("both events are sent", || counts(&webhooks).delivered == 1 && counts(&webhooks).retried > 0);
    file.execute_batch("ROLLBACK").unwrap();
    let written = || file.query_row("SELECT count(*) FROM waiting", [], |row| row.get::<_, i64>(0)).unwrap();
    wait_until("the waiting event is written", || written() == 1);
    drop(webhooks);
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom()).await, ["waits"]);
}

#[tokio::test]
async fn shutdown_before_catch_up_keeps_the_gap() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_rejected(&dir, &[]));
    deliver(&mailroom, "missed").await;
    run_rejected(&dir, &[]).shut_down(LONG, true);
    assert_eq!(run(settings_in(&dir, &[HOOK]), &mailroom).await, ["missed"]);
}
