//! What waits survives the end of the process, however it ends, and a file that cannot be used stops nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer};
use restante_mail::message::Summary;
use restante_mailroom::hooks::{Extensions, Observer as _};
use restante_mailroom::{Mailroom, Outcome};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use rusqlite::Connection;

use super::support::{Targets, TestDir, counts, eventually, message, settings, start};
use crate::{Settings, Webhooks};

const HOOK: &str = "http://x.org/hook";
const LONG: Duration = Duration::from_mins(1);

fn kept_in(dir: &TestDir, urls: &[&str]) -> Settings {
    Settings { directory: Some(dir.path().to_owned()), ..settings(urls) }
}

/// A run of the server whose target takes nothing.
fn run_in_vain(dir: &TestDir, mailboxes: &[&str]) -> Arc<Webhooks> {
    let targets = Targets::new(|_, _| Ok(503));
    let webhooks = start(kept_in(dir, &[HOOK]), &targets);
    for mailbox in mailboxes {
        webhooks.message_stored(&message(mailbox));
    }
    let count = u64::try_from(mailboxes.len()).unwrap();
    eventually("they wait", || counts(&webhooks).waiting == count);
    webhooks
}

/// A run whose target takes everything, up to an end in good order: the mailboxes that it was told of.
async fn run(settings: Settings, mailroom: &Mailroom) -> Vec<String> {
    let targets = Targets::new(|_, _| Ok(200));
    let webhooks = start(settings, &targets);
    webhooks.catch_up(mailroom).await;
    webhooks.message_stored(&message("end"));
    eventually("everything is told", || {
        targets.mailboxes().iter().any(|mailbox| mailbox == "end")
            && webhooks.counts().iter().all(|counts| counts.waiting == 0)
    });
    webhooks.end(LONG);
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
        recipients: vec![address(&format!("{mailbox}@x.org"))],
    };
    match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        Outcome::Stored(copies) => copies[0].clone(),
        Outcome::Discarded => panic!("discarded"),
    }
}

#[tokio::test]
async fn what_waits_is_told_after_a_restart() {
    let dir = TestDir::new();
    run_in_vain(&dir, &["a", "b", "c"]).end(LONG);
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
    run_in_vain(&dir, &["a"]).end(LONG);
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    let name: String = file.query_row("SELECT name FROM waiting", [], |row| row.get(0)).unwrap();
    let targets = Targets::new(|_, _| Ok(503));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    eventually("it is tried again", || !targets.told().is_empty());
    assert_eq!(targets.told()[0].header("webhook-id"), Some(name.as_str()));
    webhooks.end(LONG);
    drop(webhooks);

    file.execute("UPDATE waiting SET since = since - 86400000", []).unwrap();
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    eventually("it is given up", || counts(&webhooks).failed == 1);
    webhooks.end(LONG);
    let left: i64 = file.query_row("SELECT count(*) FROM waiting", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn after_a_crash_it_is_told_of_messages_that_nobody_heard_of() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    deliver(&mailroom, "before").await;
    let webhooks = run_in_vain(&dir, &[]);
    webhooks.message_stored(&deliver(&mailroom, "waits").await);
    eventually("it waits", || counts(&webhooks).waiting == 1);
    drop(webhooks);
    deliver(&mailroom, "unheard").await;
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard", "waits"]);
}

#[tokio::test]
async fn after_a_crash_it_is_not_told_again_of_what_was_taken() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    let targets = Targets::new(|_, _| Ok(200));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&deliver(&mailroom, "taken").await);
    eventually("it is taken", || counts(&webhooks).delivered == 1);
    drop(webhooks);
    assert!(run(kept_in(&dir, &[HOOK]), &mailroom).await.is_empty());
}

#[tokio::test]
async fn what_is_caught_up_with_is_bounded_by_the_queue() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &[]));
    for number in 0..8 {
        deliver(&mailroom, &format!("m{number}")).await;
    }
    let targets = Targets::new(|_, _| Ok(200));
    let webhooks = start(Settings { queue: 5, ..kept_in(&dir, &[HOOK]) }, &targets);
    webhooks.catch_up(&mailroom).await;
    webhooks.end(LONG);
    assert_eq!(counts(&webhooks).waiting + counts(&webhooks).delivered, 5);
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
    run_in_vain(&dir, &["a", "b"]).end(LONG);
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
        run_in_vain(&dir, &["a"]).end(LONG);
        assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["a"], "the new file is used");
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("webhooks.db.unusable-")).count(), 1);
    }
}

#[tokio::test]
async fn without_a_usable_file_events_are_told_from_memory() {
    let dir = TestDir::new();
    fs::create_dir(dir.path().join("webhooks.db")).unwrap();
    let targets = Targets::new(|_, _| Ok(200));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    webhooks.message_stored(&message("a"));
    webhooks.end(LONG);
    assert_eq!(targets.mailboxes(), ["a"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_for_a_while_delays_nothing_and_loses_nothing() {
    let dir = TestDir::new();
    let targets = Targets::new(|told, _| Ok(if told.mailbox() == "taken" { 200 } else { 500 }));
    let webhooks = start(kept_in(&dir, &[HOOK]), &targets);
    eventually("the file is there", || dir.path().join("webhooks.db").exists());
    let file = Connection::open(dir.path().join("webhooks.db")).unwrap();
    file.busy_timeout(LONG).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    webhooks.message_stored(&message("taken"));
    webhooks.message_stored(&message("waits"));
    eventually("both are tried", || counts(&webhooks).delivered == 1 && counts(&webhooks).retried > 0);
    file.execute_batch("ROLLBACK").unwrap();
    let written = || file.query_row("SELECT count(*) FROM waiting", [], |row| row.get::<_, i64>(0)).unwrap();
    eventually("what still waits is written in the end", || written() == 1);
    drop(webhooks);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom()).await, ["waits"]);
}

#[tokio::test]
async fn a_start_that_ends_before_it_caught_up_leaves_that_to_the_next() {
    let (dir, mailroom) = (TestDir::new(), mailroom());
    drop(run_in_vain(&dir, &[]));
    deliver(&mailroom, "unheard").await;
    run_in_vain(&dir, &[]).end(LONG);
    assert_eq!(run(kept_in(&dir, &[HOOK]), &mailroom).await, ["unheard"]);
}
