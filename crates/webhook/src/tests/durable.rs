//! Durable queues: waiting events survive restarts, crashes and the loss of a node, and no stored message is missed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::Summary;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::Observer as _;
use restante_mailroom::{DeliveryOutcome, Mailroom, StoreError};
use restante_queue::{EntryControl as _, PostgresQueue, Queue, SqliteQueue};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use restante_store::postgres::{PostgresStore, Settings as PostgresSettings};
use restante_testdir::TestDir;
use restante_testpg::Postgres;
use rusqlite::Connection;

use super::support::{
    FAST, FakeTargets, ReceivedRequest, counts, mailroom, mailroom_of, main_runtime, memory_queue, message, settings,
    target, wait_until,
};
use crate::backoff::Backoff;
use crate::{EntryFilter, EntryState, EventKind, QUEUE, QUEUE_LIMITS, Selection, Settings, Target, Webhooks};

const HOOK: &str = "http://x.org/hook";
const LONG: Duration = Duration::from_mins(1);

/// A server with a data directory.
struct Server {
    dir: TestDir,
    mailroom: Arc<Mailroom>,
}

impl Server {
    fn new() -> Self {
        Self { dir: TestDir::new(), mailroom: mailroom() }
    }

    fn file(&self) -> Connection {
        let file = Connection::open(self.dir.path().join("webhooks.db")).unwrap();
        file.busy_timeout(LONG).unwrap();
        file
    }

    /// Starts webhooks.
    async fn start(&self, settings: Settings, targets: &Arc<FakeTargets>) -> Arc<Webhooks> {
        self.start_with(settings, targets, FAST).await
    }

    async fn start_with(&self, settings: Settings, targets: &Arc<FakeTargets>, backoff: Backoff) -> Arc<Webhooks> {
        let queue = SqliteQueue::open(self.dir.path(), QUEUE, QUEUE_LIMITS).unwrap();
        start_with(settings, Arc::new(queue), targets, &self.mailroom, backoff).await
    }

    /// Starts webhooks whose target rejects everything, and stores messages in these mailboxes.
    async fn start_rejected(&self, mailboxes: &[&str]) -> Arc<Webhooks> {
        let webhooks = self.start(settings(&[HOOK]), &FakeTargets::new(|_, _| Ok(503))).await;
        for mailbox in mailboxes {
            webhooks.message_stored(&self.deliver(mailbox).await);
        }
        let count = u64::try_from(mailboxes.len()).unwrap();
        wait_until("the events wait", || counts(&webhooks).waiting == count);
        webhooks
    }

    async fn deliver(&self, mailbox: &str) -> Summary {
        deliver(&self.mailroom, mailbox).await
    }

    /// Runs webhooks whose targets accept everything, up to a clean shutdown. Returns the mailboxes of the received events.
    async fn run(&self, urls: &[&str]) -> Vec<String> {
        self.run_with(settings(urls)).await
    }

    async fn run_with(&self, settings: Settings) -> Vec<String> {
        let targets = FakeTargets::new(|_, _| Ok(200));
        let webhooks = self.start(settings, &targets).await;
        wait_until_caught_up(&webhooks).await;
        webhooks.message_stored(&message("end"));
        wait_until("all events are delivered", || {
            targets.mailboxes().iter().any(|mailbox| mailbox == "end")
                && webhooks.counts().iter().all(|counts| counts.waiting == 0)
        });
        webhooks.shut_down(LONG, true);
        targets.mailboxes().into_iter().filter(|mailbox| mailbox != "end").collect()
    }
}

async fn start_with(
    settings: Settings,
    queue: Arc<dyn Queue>,
    targets: &Arc<FakeTargets>,
    mailroom: &Arc<Mailroom>,
    backoff: Backoff,
) -> Arc<Webhooks> {
    let settings = Settings { is_durable: true, ..settings };
    let webhooks = Webhooks::with_http(settings, queue, targets.clone(), backoff).await.unwrap();
    webhooks.activate_after(mailroom.last_id().await, mailroom, main_runtime()).await.unwrap();
    webhooks
}

async fn deliver(mailroom: &Mailroom, mailbox: &str) -> Summary {
    let address = |text: &str| Address::parse(text, Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        login: None,
        key: None,
        listener: None,
        from: None,
        recipients: vec![Recipient::new(address(&format!("{mailbox}@x.org")), Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies[0].clone(),
        outcome => panic!("{outcome:?}"),
    }
}

/// Waits until the queue has targets, and all missed messages were found.
async fn wait_until_caught_up(webhooks: &Webhooks) {
    let queue = &webhooks.shared.queue;
    while queue.targets().await.unwrap().is_empty() || !queue.abandoned_checkpoints().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn waiting_events_are_sent_after_a_restart() {
    let server = Server::new();
    server.start_rejected(&["a", "b", "c"]).await.shut_down(LONG, true);
    let mode = fs::metadata(server.dir.path().join("webhooks.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.run(&[HOOK]).await, ["a", "b", "c"]);
    assert!(server.run(&[HOOK]).await.is_empty(), "delivered events are not sent again");
}

#[tokio::test]
async fn waiting_events_are_sent_after_a_crash() {
    let server = Server::new();
    drop(server.start_rejected(&["a", "b", "c"]).await);
    assert_eq!(server.run(&[HOOK]).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn events_keep_their_id_and_age_over_a_restart() {
    let server = Server::new();
    server.start_rejected(&["a"]).await.shut_down(LONG, true);
    let file = server.file();
    let id: String = file.query_row("SELECT key FROM entries", [], |row| row.get(0)).unwrap();
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = server.start(settings(&[HOOK]), &targets).await;
    wait_until("the event is sent again", || !targets.requests().is_empty());
    assert_eq!(targets.requests()[0].header("webhook-id"), Some(id.as_str()));
    webhooks.shut_down(LONG, true);
    drop(webhooks);

    let day = 86_400_000_000_000_i64;
    file.execute("UPDATE entries SET created = created - ?1, expires = expires - ?1", [day]).unwrap();
    let before = targets.requests().len();
    let webhooks = server.start(settings(&[HOOK]), &targets).await;
    wait_until("the event is given up", || counts(&webhooks).failed == 1);
    assert!(targets.requests().len() > before, "after another attempt: the clock may have been wrong");
    assert_eq!(counts(&webhooks).waiting, 0);
}

#[tokio::test]
async fn missed_messages_are_sent_after_a_crash() {
    let server = Server::new();
    server.deliver("before").await;
    drop(server.start_rejected(&["waits"]).await);
    server.deliver("missed").await;
    assert_eq!(server.run(&[HOOK]).await, ["missed", "waits"]);
}

#[tokio::test]
async fn imported_messages_are_not_sent_after_a_crash() {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let server = Server { dir: TestDir::new(), mailroom: mailroom_of(store.clone(), "restante") };
    drop(server.start_rejected(&[]).await);
    deliver(&mailroom_of(store, ""), "imported").await;
    server.deliver("missed").await;
    assert_eq!(server.run(&[HOOK]).await, ["missed"]);
}

#[tokio::test]
async fn delivered_events_are_not_sent_again_after_a_crash() {
    let server = Server::new();
    let webhooks = server.start(settings(&[HOOK]), &FakeTargets::new(|_, _| Ok(200))).await;
    webhooks.message_stored(&server.deliver("accepted").await);
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    drop(webhooks);
    assert!(server.run(&[HOOK]).await.is_empty());
}

#[tokio::test]
async fn missed_messages_wait_for_room_in_the_queue() {
    let server = Server::new();
    drop(server.start_rejected(&[]).await);
    for number in 0..8 {
        server.deliver(&format!("m{number}")).await;
    }
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = server.start(Settings { max_queued: 3, ..settings(&[HOOK]) }, &targets).await;
    wait_until("the events are delivered", || counts(&webhooks).delivered == 8);
    assert_eq!(targets.mailboxes(), ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
    assert_eq!(counts(&webhooks).dropped, 0);
}

#[tokio::test]
async fn target_without_room_delays_no_other_target() {
    const FULL: &str = "http://full.org/";
    let server = Server::new();
    let targets = FakeTargets::new(|request, _| Ok(if request.url == FULL { 503 } else { 200 }));
    let settings = || Settings { max_queued: 1, ..settings(&[FULL, HOOK]) };
    let webhooks = server.start(settings(), &targets).await;
    webhooks.message_stored(&server.deliver("first").await);
    wait_until("one target has no room", || webhooks.counts()[0].retried > 0 && webhooks.counts()[1].delivered == 1);
    drop(webhooks);
    for number in 0..3 {
        server.deliver(&format!("m{number}")).await;
    }
    let webhooks = server.start(settings(), &targets).await;
    wait_until("the other target gets all events", || webhooks.counts()[1].delivered == 3);
    assert_eq!(webhooks.counts()[0].dropped, 0, "they wait for room");
    drop(webhooks);
    let webhooks = server.start_with(settings(), &targets, Backoff { max_room_wait: Duration::ZERO, ..FAST }).await;
    wait_until_caught_up(&webhooks).await;
    assert!(webhooks.counts()[0].dropped >= 3, "they have waited long enough");
    let is_other = |request: &&ReceivedRequest| request.url == HOOK;
    assert_eq!(targets.requests().iter().filter(is_other).count(), 4, "the other target gets each event once");
}

#[tokio::test]
async fn nothing_is_searched_at_first_start_or_after_clean_shutdown() {
    let server = Server::new();
    for _ in 0..2 {
        server.deliver("imported").await;
        assert!(server.run(&[HOOK]).await.is_empty());
    }
    drop(server.start_rejected(&[]).await);
    assert!(server.run(&[HOOK]).await.is_empty(), "nor after a later crash");
}

#[tokio::test]
async fn checkpoint_follows_the_store() {
    let server = Server::new();
    let targets = FakeTargets::new(|_, _| Ok(200));
    let entry = Target { mailboxes: vec!["other".to_owned()], ..target(HOOK) };
    let webhooks = server.start(Settings { targets: vec![entry], ..settings(&[]) }, &targets).await;
    wait_until_caught_up(&webhooks).await;
    let file = server.file();
    let checkpoint = || {
        let sql = "SELECT message FROM checkpoints WHERE is_current = 1";
        file.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap()
    };
    let first = checkpoint();
    // No target gets this event.
    webhooks.message_stored(&server.deliver("james").await);
    let stored = server.mailroom.last_id().await.unwrap().number();
    wait_until("the checkpoint is raised", || checkpoint() > first && checkpoint() >= stored - 10_000_000);
    assert!(checkpoint() < stored, "a message with a lower id may still arrive");
}

#[tokio::test]
async fn target_that_is_new_after_a_crash_gets_no_earlier_events() {
    let server = Server::new();
    drop(server.start_rejected(&["waits"]).await);
    server.deliver("missed").await;
    let mailboxes = server.run(&["http://new.org/", HOOK]).await;
    assert_eq!(mailboxes, ["missed", "waits"], "once each, so only the old target gets them");

    let deleted = Target { events: vec![EventKind::Deleted], ..target("http://a.org/") };
    let targets = FakeTargets::new(|_, _| Ok(200));
    drop(server.start(Settings { targets: vec![deleted], ..settings(&[]) }, &targets).await);
    server.deliver("before").await;
    assert!(server.run(&[HOOK]).await.is_empty(), "the target did not exist then");
    assert!(server.run(&[HOOK]).await.is_empty(), "nor is the message found later");
}

#[tokio::test]
async fn webhooks_that_are_not_activated_change_nothing() {
    let server = Server::new();
    let fail = async || {
        let (targets, dir) = (FakeTargets::new(|_, _| Ok(200)), server.dir.path());
        let queue = Arc::new(SqliteQueue::open(dir, QUEUE, QUEUE_LIMITS).unwrap());
        drop(Webhooks::with_http(settings(&["http://other.org/"]), queue, targets.clone(), FAST).await.unwrap());
        assert!(targets.requests().is_empty());
    };
    server.start_rejected(&["waits"]).await.shut_down(LONG, true);
    fail().await;
    server.deliver("imported").await;
    assert_eq!(server.run(&[HOOK]).await, ["waits"]);
    drop(server.start_rejected(&[]).await);
    server.deliver("missed").await;
    fail().await;
    assert_eq!(server.run(&[HOOK]).await, ["missed"]);
}

#[tokio::test]
async fn checkpoint_is_kept_if_the_store_does_not_answer_at_the_start() {
    let server = Server::new();
    drop(server.start_rejected(&["waits"]).await);
    server.deliver("missed").await;
    let queue = Arc::new(SqliteQueue::open(server.dir.path(), QUEUE, QUEUE_LIMITS).unwrap());
    let targets = FakeTargets::new(|_, _| Ok(200));
    let webhooks = Webhooks::with_http(settings(&["http://other.org/"]), queue, targets, FAST).await.unwrap();
    let unavailable = StoreError::Unavailable("no answer".to_owned());
    let error = webhooks.activate_after(Err(unavailable), &server.mailroom, main_runtime()).await.unwrap_err();
    assert!(error.starts_with("cannot start the webhooks: ") && error.contains("no answer"), "{error}");
    drop(webhooks);
    assert_eq!(server.run(&[HOOK]).await, ["missed", "waits"]);
}

#[tokio::test]
async fn search_that_is_interrupted_is_repeated() {
    let server = Server::new();
    drop(server.start_rejected(&["waits"]).await);
    server.deliver("missed").await;
    // There is no room for the missed message.
    let targets = FakeTargets::new(|_, _| Ok(503));
    let webhooks = server.start(Settings { max_queued: 1, ..settings(&[HOOK]) }, &targets).await;
    wait_until("the event is sent again", || !targets.requests().is_empty());
    webhooks.shut_down(LONG, true);
    drop(webhooks);
    assert_eq!(server.run(&[HOOK]).await, ["missed", "waits"]);
}

#[tokio::test]
async fn failing_search_delays_neither_maintenance_nor_shutdown() {
    let server = Server::new();
    drop(server.start_rejected(&["waits"]).await);
    server.deliver("missed").await;
    let file = server.file();
    let sql = "CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN NEW.mailbox = 'missed' BEGIN
            SELECT RAISE(ABORT, 'refused');
        END";
    file.execute_batch(sql).unwrap();
    let targets = FakeTargets::new(|request, _| Ok(if request.mailbox() == "waits" { 500 } else { 200 }));
    // Longer than the time between the events below.
    let backoff = Backoff { maintenance_interval: Duration::from_millis(500), ..FAST };
    let webhooks = server.start_with(settings(&[HOOK]), &targets, backoff).await;
    webhooks.message_stored(&message("other"));
    wait_until("the event is queued after the first maintenance", || counts(&webhooks).delivered == 1);
    file.execute("UPDATE entries SET expires = 0 WHERE mailbox = 'waits'", []).unwrap();
    wait_until("the event expires", || {
        // After each event the search is tried again.
        webhooks.message_stored(&message("other"));
        counts(&webhooks).failed == 1
    });
    webhooks.shut_down(LONG, true);
    assert!(webhooks.shared.is_flushed.load(Relaxed));
    drop(webhooks);
    file.execute_batch("DROP TRIGGER refuse").unwrap();
    let mut sent = server.run(&[HOOK]).await;
    // Some of these may have been in the queue at the shutdown.
    sent.retain(|mailbox| mailbox != "other");
    assert_eq!(sent, ["missed"]);
}

#[tokio::test]
async fn clean_shutdown_does_not_depend_on_the_timeout() {
    for timeout in [Duration::ZERO, LONG] {
        for (is_clean, expected) in [(true, &[][..]), (false, &["missed"])] {
            let server = Server::new();
            let webhooks = server.start_rejected(&[]).await;
            wait_until_caught_up(&webhooks).await;
            webhooks.shut_down(timeout, is_clean);
            drop(webhooks);
            server.deliver("missed").await;
            assert_eq!(server.run(&[HOOK]).await, expected, "{timeout:?} {is_clean}");
        }
    }
}

#[tokio::test]
async fn shutdown_waits_for_responses() {
    let server = Server::new();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let targets = FakeTargets::new(move |_, _| {
        // Blocks until the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Ok(200)
    });
    let webhooks = server.start(settings(&[HOOK]), &targets).await;
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
    assert!(server.run(&[HOOK]).await.is_empty());
}

#[tokio::test]
async fn equivalent_urls_are_the_same_target() {
    let server = Server::new();
    server.start_rejected(&["a"]).await.shut_down(LONG, true);
    assert_eq!(server.run(&["HTTP://X.ORG:80/a/../hook"]).await, ["a"]);
}

#[tokio::test]
async fn drops_events_of_removed_targets() {
    let server = Server::new();
    server.start_rejected(&["a", "b"]).await.shut_down(LONG, true);
    assert!(server.run(&["http://other.org/"]).await.is_empty());
    let webhooks = server.start(settings(&["http://other.org/"]), &FakeTargets::new(|_, _| Ok(200))).await;
    assert_eq!(webhooks.retry(Selection::Target(None)).await.unwrap(), 0, "their target is not configured");
    webhooks.shut_down(LONG, true);
    assert!(server.run(&[HOOK]).await.is_empty(), "the events are gone");
}

#[tokio::test]
async fn webhooks_that_are_no_longer_configured_are_ended() {
    let server = Server::new();
    server.start_rejected(&["waits"]).await.shut_down(LONG, false);
    server.deliver("missed").await;
    let open = || SqliteQueue::open(server.dir.path(), QUEUE, QUEUE_LIMITS).unwrap();
    assert_eq!(Webhooks::end(&open()).await.unwrap(), 1);
    let queue = open();
    assert_eq!(queue.abandoned_checkpoints().await.unwrap(), [], "nothing is searched");
    assert_eq!((queue.targets().await.unwrap(), Webhooks::end(&queue).await.unwrap()), (Vec::new(), 0));
    drop(queue);
    server.deliver("without").await;
    assert!(server.run(&[HOOK]).await.is_empty(), "nothing of the time before is sent");
}

#[tokio::test]
async fn locked_file_loses_nothing() {
    let server = Server::new();
    let targets = FakeTargets::new(|request, _| Ok(if request.mailbox() == "accepted" { 200 } else { 500 }));
    let webhooks = server.start(settings(&[HOOK]), &targets).await;
    wait_until_caught_up(&webhooks).await;
    let file = server.file();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    webhooks.message_stored(&message("accepted"));
    webhooks.message_stored(&message("waits"));
    wait_until("both events wait", || counts(&webhooks).waiting == 2);
    file.execute_batch("ROLLBACK").unwrap();
    wait_until("both events are sent", || counts(&webhooks).delivered == 1 && counts(&webhooks).retried > 0);
    drop(webhooks);
    assert_eq!(server.run(&[HOOK]).await, ["waits"]);
}

#[tokio::test]
async fn operators_see_and_change_entries() {
    let (queue, targets) =
        (memory_queue(), FakeTargets::new(|request, _| Ok(if request.mailbox() == "accepted" { 204 } else { 410 })));
    let webhooks = start_with(settings(&[HOOK]), queue, &targets, &mailroom(), FAST).await;
    let list = async |state| {
        let filter = EntryFilter { state: Some(state), limit: 10, ..EntryFilter::default() };
        webhooks.entries(filter).await.unwrap()
    };
    let status = webhooks.target_statuses().await.unwrap().remove(0);
    assert_eq!((status.name.len(), &*status.label, status.is_paused), (16, "http://x.org", false));
    assert!(!webhooks.set_paused("unknown", true).await.unwrap());
    assert!(webhooks.set_paused(&status.name, true).await.unwrap());
    for mailbox in ["accepted", "refused", "cancelled"] {
        webhooks.message_deleted(&message(mailbox));
    }
    wait_until("the events wait", || counts(&webhooks).waiting == 3);
    while list(EntryState::Queued).await.len() < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(webhooks.target_statuses().await.unwrap()[0].is_paused);
    let cancelled = list(EntryState::Queued).await.remove(0);
    assert_eq!((cancelled.mailbox.as_str(), crate::event_of(&cancelled)), ("cancelled", EventKind::Deleted));
    assert_eq!(webhooks.cancel(Selection::Ids(vec![cancelled.id])).await.unwrap(), 1);
    assert!(targets.requests().is_empty(), "the target is paused");

    assert!(webhooks.set_paused(&status.name, false).await.unwrap());
    wait_until("the others are sent", || counts(&webhooks).failed == 1 && counts(&webhooks).delivered == 1);
    assert_eq!(counts(&webhooks).waiting, 0);
    let failed = list(EntryState::Failed).await.remove(0);
    assert_eq!((&*failed.last_reply, failed.attempts), ("the target responded 410 Gone", 1));
    let delivered = webhooks.entry(list(EntryState::Delivered).await[0].id).await.unwrap().unwrap();
    assert_eq!((&*delivered.last_reply, delivered.payload.len()), ("the target responded 204", 0));
    assert_eq!(webhooks.retry(Selection::Target(Some(status.name))).await.unwrap(), 2, "all except the delivered one");
    wait_until("they are sent again", || counts(&webhooks).failed == 3);
    assert_eq!(webhooks.entry(failed.id).await.unwrap().unwrap().attempts, 2);
}

/// Opens a store that nodes can share, and its mailroom.
async fn open_shared(server: &Postgres, schema: &str) -> (Arc<PostgresStore>, Arc<Mailroom>) {
    let settings = PostgresSettings { schema: schema.to_owned(), ..PostgresSettings::default() };
    let store = Arc::new(PostgresStore::open(&server.url().parse().unwrap(), settings).await.unwrap());
    let mailroom = mailroom_of(store.clone(), "restante");
    (store, mailroom)
}

#[test]
fn node_that_was_taken_for_dead_sets_its_checkpoint_again() {
    let Some(server) = Postgres::shared() else { return };
    main_runtime().block_on(async {
        let (store, mailroom) = open_shared(server, "webhooks_slow").await;
        let queue = Arc::new(PostgresQueue::open(&store, QUEUE, QUEUE_LIMITS).await.unwrap());
        let targets = FakeTargets::new(|_, _| Ok(200));
        let webhooks = start_with(settings(&[HOOK]), queue, &targets, &mailroom, FAST).await;
        wait_until_caught_up(&webhooks).await;
        store.database().execute("UPDATE queue_nodes SET checkpoint = NULL", &[]).await.unwrap();
        let is_set = "SELECT FROM queue_nodes WHERE checkpoint IS NOT NULL";
        let start = std::time::Instant::now();
        while store.database().query(is_set, &[]).await.unwrap().is_empty() {
            assert!(start.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::task::spawn_blocking(move || webhooks.shut_down(LONG, true)).await.unwrap();
    });
}

#[test]
fn another_node_sends_the_events_of_a_lost_one() {
    let Some(server) = Postgres::shared() else { return };
    main_runtime().block_on(async {
        let (store, mailroom) = open_shared(server, "webhooks").await;
        let open = async || Arc::new(PostgresQueue::open(&store, QUEUE, QUEUE_LIMITS).await.unwrap());
        let settings = || super::support::settings(&[HOOK]);
        let lost = start_with(settings(), open().await, &FakeTargets::new(|_, _| Ok(503)), &mailroom, FAST).await;
        let accepting = FakeTargets::new(|_, _| Ok(200));
        wait_until_caught_up(&lost).await;
        // Each node queues its own events.
        lost.message_stored(&deliver(&mailroom, "waits").await);
        while lost.entries(EntryFilter { limit: 1, ..EntryFilter::default() }).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::task::spawn_blocking(move || drop(lost)).await.unwrap();
        // The node has stored a message, and is lost before it can queue the event.
        deliver(&mailroom, "missed").await;
        let other = start_with(settings(), open().await, &accepting, &mailroom, FAST).await;
        let start = std::time::Instant::now();
        while accepting.mailboxes() != ["missed", "waits"] {
            assert!(start.elapsed() < LONG, "{:?}", accepting.mailboxes());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        wait_until_caught_up(&other).await;
        tokio::task::spawn_blocking(move || other.shut_down(LONG, true)).await.unwrap();
        assert_eq!(accepting.mailboxes(), ["missed", "waits"], "each event is sent once");
        let queue = open().await;
        assert_eq!(queue.abandoned_checkpoints().await.unwrap(), [], "nothing is searched again");
    });
}
