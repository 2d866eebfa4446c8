//! The outbox: waiting events survive restarts and crashes, and an unusable file stops nothing.

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

fn kept_in(dir: &TestDir, urls: &[&str]) -> Settings {
    Settings { directory: Some(dir.path().to_owned()), ..settings(urls) }
}

fn run_in_vain_with(settings: Settings) -> Arc<Webhooks> {
    start(settings, &FakeTargets::new(|_, _| Ok(503)))
}

/// Runs a server whose target rejects everything.
fn run_in_vain(dir: &TestDir, mailboxes: &[&str]) -> Arc<Webhooks> {
    let webhooks = run_in_vain_with(kept_in(dir, &[HOOK]));
    for mailbox in mailboxes {
        webhooks.message_stored(&message(mailbox));
    }
    let count = u64::try_from(mailboxes.len()).unwrap();
    wait_until("they wait", || counts(&webhooks).waiting == count);
    webhooks
}

/// Starts a server that has not caught up yet.
async fn serve(settings: Settings, targets: &Arc<FakeTargets>, mailroom: &Mailroom) -> Arc<Webhooks> {
    let webhooks = Webhooks::start_with(settings, targets.clone(), FAST).unwrap();
    webhooks.activate(mailroom).await;
    webhooks
}

/// Reads the floor from the outbox file.
fn floor(dir: &TestDir) -> u64 {
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
    wait_until("everything is told", || {
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
        from: None,
        recipients: vec![Recipient::new(address(&format!("{mailbox}@x.org")), Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies[0].clone(),
        DeliveryOutcome::Discarded => panic!("discarded"),
    }
}

#[tokio::test]
async fn what_waits_is_told_after_a_restart() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a", "b", "c"]).shut_down(LONG, true);
    let mode = fs::metadata(dir.path().join("webhooks.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c"]);
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom()).await.is_empty(), "once it is taken it is done with");
}

#[tokio::test]
async fn what_waits_is_told_after_a_crash() {
    let dir = TestDir::new();
    drop(run_in_vain(&dir, &["a", "b", "c"]));
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn events_keep_their_name_over_a_restart_and_their_age() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a"]).shut_down(LONG, true);
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    let name: String = file.query_row("SELECT name FROM waiting", [], |row| row.get(0)).unwrap();
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    wait_until("it is tried again", || !targets.requests().is_empty());
    assert_eq!(targets.requests()[0].header("webhook-id"), Some(name.as_str()));
    webhooks.shut_down(LONG, true);
    drop(webhooks);

    file.execute("UPDATE waiting SET since = since - 86400000", []).unwrap();
    let before = targets.requests().len();
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    wait_until("it is given up", || counts(&webhooks).failed == 1);
    assert!(targets.requests().len() > before, "after another attempt: the clock may have been wrong");
    webhooks.shut_down(LONG, true);
    let left: i64 = file.query_row("SELECT count(*) FROM waiting", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn after_a_crash_it_is_told_of_messages_that_nobody_heard_of() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    deliver(&mailroom, "before").await;
    let webhooks = run_in_vain(&dir, &[]);
    webhooks.message_stored(&deliver(&mailroom, "waits").await);
    wait_until("it waits", || counts(&webhooks).waiting == 1);
    drop(webhooks);
    deliver(&mailroom, "unheard").await;
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard", "waits"]);
}

/// Messages that arrived at another node are reported by that node.
#[tokio::test]
async fn after_a_crash_it_is_told_of_what_waits_and_of_nothing_else_in_a_shared_store() {
    let (dir, store) = (TestDir::new(), SharedStore::new(Limits::default()).node().await);
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
    let webhooks = run_in_vain(&dir, &[]);
    webhooks.message_stored(&deliver(&mailroom, "waits").await);
    wait_until("it waits", || counts(&webhooks).waiting == 1);
    drop(webhooks);
    let last = deliver(&mailroom, "elsewhere").await;
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["waits"]);
    assert_eq!(floor(&dir), last.id.number(), "nothing is looked for another time");
}

#[tokio::test]
async fn after_a_crash_it_is_not_told_again_of_what_was_taken() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&deliver(&mailroom, "taken").await);
    wait_until("it is taken", || counts(&webhooks).delivered == 1);
    drop(webhooks);
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty());
}

#[tokio::test]
async fn of_too_many_missed_messages_the_newest_are_told() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &[]));
    for number in 0..8 {
        deliver(&mailroom, &format!("m{}", 9 - number)).await;
    }
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(Settings { max_queued: 5, ..kept_in(&dir, &[HOOK]) }, &targets, &mailroom).await;
    webhooks.catch_up(&mailroom).await;
    wait_until("they are told", || counts(&webhooks).delivered == 5);
    assert_eq!(targets.mailboxes(), ["m2", "m3", "m4", "m5", "m6"]);
    assert_eq!(counts(&webhooks).dropped, 3);
}

#[tokio::test]
async fn after_an_end_in_good_order_and_at_the_first_start_nothing_is_told_again() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    deliver(&mailroom, "imported").await;
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty());
    deliver(&mailroom, "imported").await;
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty());
    drop(run_in_vain(&dir, &[]));
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty(), "nor after a later crash");
}

#[tokio::test]
async fn what_may_be_missing_begins_with_the_last_id_that_the_store_has_given() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let last = deliver(&mailroom, "before").await.id.number();
    let targets = FakeTargets::new(|_, _| Ok(200));
    drop(serve(kept_in(&dir, &[HOOK]), &targets, &mailroom).await);
    wait_until("it is written", || floor(&dir) == last);

    let later = deliver(&mailroom, "unheard").await.id.number();
    let webhooks = serve(kept_in(&dir, &[HOOK]), &targets, &mailroom).await;
    assert_eq!(floor(&dir), last, "as long as nobody has looked");
    webhooks.catch_up(&mailroom).await;
    wait_until("it is written", || floor(&dir) == later);
    wait_until("it is told", || targets.mailboxes() == ["unheard"]);
}

#[tokio::test]
async fn nothing_is_looked_for_twice() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let deleted = |url| Target { events: vec![Event::Deleted], ..target(url) };
    let webhooks = run_in_vain_with(Settings { targets: vec![deleted("http://a.org/")], ..kept_in(&dir, &[]) });
    deliver(&mailroom, "before").await;
    drop(webhooks);
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(kept_in(&dir, &[HOOK]), &targets, &mailroom).await;
    webhooks.catch_up(&mailroom).await;
    let last = mailroom.last_id().await.unwrap().number();
    wait_until("it has looked", || floor(&dir) == last);
    drop(webhooks);
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty(), "it was not there then");
}

#[tokio::test]
async fn events_that_nobody_wants_are_dealt_with_too() {
    let dir = TestDir::new();
    let targets = FakeTargets::new(|_, _| Ok(200));
    let entry = Target { mailboxes: vec!["other".to_owned()], ..target(HOOK) };
    let webhooks = start(Settings { targets: vec![entry], ..kept_in(&dir, &[]) }, &targets);
    let mut summary = message("james");
    summary.id = (summary.id.number() + 100_000_000).into();
    webhooks.message_stored(&summary);
    wait_until("it is noted", || floor(&dir) > summary.id.number() - 20_000_000);
}

#[tokio::test]
async fn a_start_that_fails_leaves_the_file_as_it_was() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let fail = || {
        let targets = FakeTargets::new(|_, _| Ok(200));
        drop(Webhooks::start_with(kept_in(&dir, &["http://other.org/"]), targets.clone(), FAST).unwrap());
        assert!(targets.requests().is_empty());
    };
    run_in_vain(&dir, &["waits"]).shut_down(LONG, true);
    fail();
    deliver(&mailroom, "imported").await;
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["waits"]);
    drop(run_in_vain(&dir, &[]));
    deliver(&mailroom, "unheard").await;
    fail();
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard"]);
}

#[tokio::test]
async fn what_is_found_after_the_end_is_left_to_the_next_start() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &[]));
    deliver(&mailroom, "unheard").await;
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = serve(kept_in(&dir, &[HOOK]), &targets, &mailroom).await;
    webhooks.shut_down(LONG, true);
    webhooks.catch_up(&mailroom).await;
    assert_eq!((targets.requests().len(), counts(&webhooks).waiting, counts(&webhooks).dropped), (0, 0, 0));
    drop(webhooks);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard"]);
}

#[tokio::test]
async fn whether_an_end_is_in_good_order_does_not_depend_on_the_time_that_is_left() {
    for patience in [Duration::ZERO, LONG] {
        for (in_good_order, expected) in [(true, &[][..]), (false, &["unheard"])] {
            let (dir, mailroom) = (TestDir::new(), mailroom());
            run_in_vain(&dir, &[]).shut_down(patience, in_good_order);
            deliver(&mailroom, "unheard").await;
            assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, expected, "{patience:?} {in_good_order}");
        }
    }
}

#[test]
fn an_end_that_comes_too_early_for_some_news_is_none_in_good_order() {
    for (is_late, expected) in [(false, true), (true, false)] {
        let intake = EventInbox::default();
        intake.start(MessageId::ZERO);
        intake.close(Instant::now());
        if is_late {
            let news = InboxEvent { event: Event::Stored, summary: message("james"), targets: vec![0] };
            assert_eq!(intake.push(news), Err(DropReason::Closed));
        }
        intake.stop(true, Instant::now());
        let batch = intake.next_batch(None);
        assert_eq!((batch.is_stopping, batch.is_clean), (true, expected));
    }
}

#[tokio::test]
async fn the_end_waits_for_answers() {
    let dir = TestDir::new();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |_, _| {
        // Blocks until the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Ok(200)
    });
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&message("james"));
    wait_until("it is under way", || targets.requests().len() == 1);
    let slow = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        drop(release);
    });
    webhooks.shut_down(LONG, true);
    slow.join().unwrap();
    assert_eq!(counts(&webhooks).delivered, 1);
    drop(webhooks);
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom()).await.is_empty());
}

#[tokio::test]
async fn a_target_is_the_same_however_its_url_is_spelled() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a"]).shut_down(LONG, true);
    assert_eq!(run(kept_in(&dir, &["HTTP://X.ORG:80/a/../hook"]), &mailroom()).await, ["a"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_for_a_while_is_used_later() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a", "b"]).shut_down(LONG, true);
    let (file, away) = (dir.path().join("webhooks.db"), dir.path().join("away"));
    fs::rename(&file, &away).unwrap();
    fs::create_dir(&file).unwrap();
    let webhooks = run_in_vain(&dir, &["c", "d", "e"]);
    fs::remove_dir(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    wait_until("all of them wait", || counts(&webhooks).waiting == 5);
    let read = || {
        let file = Connection::open(&file).unwrap();
        file.busy_timeout(LONG).unwrap();
        let count = |table| file.query_row(table, [], |row| row.get::<_, i64>(0)).unwrap();
        (count("SELECT count(*) FROM waiting"), count("SELECT clean FROM state"))
    };
    wait_until("they are written, and that the file is in use", || read() == (5, 0));
    webhooks.shut_down(LONG, true);
    drop(webhooks);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn a_new_target_is_not_told_of_what_happened_before() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &["waits"]));
    deliver(&mailroom, "unheard").await;
    let told = run(kept_in(&dir, &["http://new.org/", HOOK]), &mailroom).await;
    assert_eq!(told, ["unheard", "waits"], "once each, so only the old one was told");
}

#[tokio::test]
async fn events_for_targets_that_are_gone_are_dropped() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a", "b"]).shut_down(LONG, true);
    assert!(run(kept_in(&dir, &["http://other.org/"]), &mailroom()).await.is_empty());
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom()).await.is_empty(), "for good");
}

#[tokio::test]
async fn a_file_that_makes_no_sense_is_moved_aside() {
    let foreign = |path: &std::path::Path| {
        Connection::open(path).unwrap().execute_batch("PRAGMA application_id = 1; CREATE TABLE t (x)").unwrap();
    };
    let garbage = |path: &std::path::Path| fs::write(path, "not a database. ".repeat(1000)).unwrap();
    let table: [&dyn Fn(&std::path::Path); 2] = [&foreign, &garbage];
    for spoil in table {
        let dir = TestDir::new();
        spoil(&dir.path().join("webhooks.db"));
        run_in_vain(&dir, &["a"]).shut_down(LONG, true);
        assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["a"], "the new file is used");
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("webhooks.db.unusable-")).count(), 1);
    }
}

#[tokio::test]
async fn without_a_usable_file_events_are_told_from_memory() {
    let dir = TestDir::new();
    fs::create_dir(dir.path().join("webhooks.db")).unwrap();
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&message("a"));
    webhooks.shut_down(LONG, true);
    assert_eq!(targets.mailboxes(), ["a"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_for_a_while_delays_nothing_and_loses_nothing() {
    let dir = TestDir::new();
    let targets = FakeTargets::new(|told, _| Ok(if told.mailbox() == "taken" { 200 } else { 500 }));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    wait_until("the file is there", || dir.path().join("webhooks.db").exists());
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    file.busy_timeout(LONG).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    webhooks.message_stored(&message("taken"));
    webhooks.message_stored(&message("waits"));
    wait_until("both are tried", || counts(&webhooks).delivered == 1 && counts(&webhooks).retried > 0);
    file.execute_batch("ROLLBACK").unwrap();
    let written = || file.query_row("SELECT count(*) FROM waiting", [], |row| row.get::<_, i64>(0)).unwrap();
    wait_until("what still waits is written in the end", || written() == 1);
    drop(webhooks);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["waits"]);
}

#[tokio::test]
async fn a_start_that_ends_before_it_caught_up_leaves_that_to_the_next() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &[]));
    deliver(&mailroom, "unheard").await;
    run_in_vain(&dir, &[]).shut_down(LONG, true);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard"]);
}
