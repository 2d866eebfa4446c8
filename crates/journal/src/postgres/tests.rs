//! Tests of the PostgreSQL journal with a real server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use restante_store::postgres::{Address, PostgresStore, Settings};
use restante_testpg::{FaultProxy, Postgres};

use super::*;
use crate::SessionEnd;
use crate::conformance::{self, chunk, mail_chunk};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_millis(20);
const PLENTY: usize = 1 << 20;

/// Returns a database for all tests of this program; each has schemas of its own. `None` if PostgreSQL is not installed.
fn address() -> Option<Address> {
    Postgres::shared().map(|server| server.url().parse().expect("a URL of our own"))
}

/// Returns a name that no other test has.
fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("journal_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Opens the journal of a new node.
async fn open(address: &Address, schema: &str, max_bytes: usize) -> PostgresJournal {
    let settings = Settings { schema: schema.to_owned(), ..Settings::default() };
    let store = PostgresStore::open(address, settings).await.expect("the database is there");
    PostgresJournal::open(&store, max_bytes).expect("there is a thread for it")
}

/// Returns a chunk of a session of this node.
fn noted(session: SessionId, number: u32, text: &str) -> Chunk {
    Chunk { session, ..chunk(session.number() / 1_000_000, number, text) }
}

/// Waits until a query returns something. Chunks of another node are visible after they are written.
async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < LONG, "in vain");
        tokio::time::sleep(MOMENT).await;
    }
}

async fn listed(journal: &PostgresJournal) -> Vec<u64> {
    let page = SessionPage { before: None, refused_only: false, limit: 1000 };
    journal.sessions(page).await.unwrap().iter().map(|told| told.session.number()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_journal() {
    let Some(address) = address() else { return };
    conformance::run(async |max_bytes| open(&address, &fresh_schema(), max_bytes).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_lasts() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    conformance::what_was_noted_lasts(async || open(&address, &schema, PLENTY).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_journal_also_when_all_is_written() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    let (one, other) = (open(&address, &schema, PLENTY).await, open(&address, &schema, PLENTY).await);
    for session in 1..=5 {
        let mut refused = mail_chunk(session, 1, "bob", 10 * session);
        Arc::make_mut(&mut refused.info).refusals = u32::from(session % 2 == 0);
        one.append(chunk(session, 0, "head"));
        one.append(refused);
        one.append(chunk(session, 2, "tail"));
    }
    until(async || other.session(5.into()).await.unwrap().filter(|told| told.chunks.len() == 3)).await;
    assert_eq!(listed(&other).await, [5, 4, 3, 2, 1]);
    let page = SessionPage { before: Some(4.into()), refused_only: true, limit: 7 };
    let refused = other.sessions(page).await.unwrap();
    assert_eq!(refused.iter().map(|told| told.session.number()).collect::<Vec<_>>(), [2]);
    assert_eq!(refused[0].chunks.len(), 3);
    assert_eq!(refused[0].lines().count(), 0, "a list goes without them");
    let told = other.find_by_message(&"bob".to_owned().into(), 30.into()).await.unwrap().unwrap();
    assert_eq!(told.lines().map(|line| line.text).collect::<Vec<_>>(), ["head", "mail 1"]);
    assert_eq!(told.chunks[1].transaction, mail_chunk(3, 1, "bob", 30).transaction);
    // The node that has written it returns the same.
    assert_eq!(one.find_by_message(&"bob".to_owned().into(), 30.into()).await.unwrap(), Some(told));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_tell_of_each_others_sessions_and_know_who_has_died() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    let (one, other) = (open(&address, &schema, PLENTY).await, open(&address, &schema, PLENTY).await);
    let now = Timestamp::now();
    let (first, second) = until(async || {
        // The nodes receive their numbers in the background.
        let ids = (one.start_session(now), other.start_session(now));
        let nodes = [ids.0, ids.1].map(|id| id.number() % NODE_NUMBERS);
        (nodes[0] != 0 && nodes[1] != 0).then(|| {
            assert_ne!(nodes[0], nodes[1]);
            ids
        })
    })
    .await;
    one.append(noted(first, 0, "here"));
    other.append(noted(second, 0, "there"));
    for (journal, id, text) in [(&one, second, "there"), (&other, first, "here")] {
        let told = until(async || journal.session(id).await.unwrap()).await;
        assert_eq!(told.lines().map(|line| line.text).collect::<Vec<_>>(), [text]);
        assert_eq!(told.info.end, None, "it goes on");
    }
    drop(one);
    let told = other.session(first).await.unwrap().unwrap();
    assert_eq!(told.info.end, Some(SessionEnd { at: None, reason: "lost".into() }));
    assert_eq!(other.session(second).await.unwrap().unwrap().info.end, None);
    // A node that starts now never reuses an id, although its clock is slow.
    let late = open(&address, &schema, PLENTY).await;
    until(async || (late.start_session(Timestamp::UNIX_EPOCH) > first.max(second)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_is_one_for_all_nodes() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    for round in 0..5 {
        let journal = open(&address, &schema, 50_000).await;
        for session in 1..=60 {
            journal.append(mail_chunk(100 * round + session, 1, "bob", 1000 * round + 10 * session));
        }
    }
    let journal = open(&address, &schema, 50_000).await;
    let left = listed(&journal).await;
    assert!((20..60).contains(&left.len()), "{}", left.len());
    assert_eq!(left[0], 460);
    let bob = "bob".to_owned().into();
    assert!(journal.find_by_message(&bob, 4600.into()).await.unwrap().is_some());
    let rows = journal.database.query("SELECT count(*) FROM journal_messages", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 2 * i64::try_from(left.len()).unwrap(), "nothing is left of what went");
    let sums = "SELECT bytes = (SELECT sum(bytes) FROM journal_pieces) FROM journal_state";
    assert!(journal.database.query(sums, &[]).await.unwrap()[0].get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_twice_counts_once() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    for _ in 0..2 {
        let journal = open(&address, &schema, PLENTY).await;
        journal.append(mail_chunk(1, 1, "bob", 7));
        journal.append(mail_chunk(1, 1, "bob", 7));
    }
    let journal = open(&address, &schema, PLENTY).await;
    let rows = journal.database.query("SELECT bytes FROM journal_state", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), i64::try_from(mail_chunk(1, 1, "bob", 7).bytes()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_cut_holds_nobody_up_and_nothing_is_lost() {
    let (Some(server), schema) = (Postgres::shared(), fresh_schema()) else { return };
    let mut line = FaultProxy::new(server.port());
    let cut_off = open(&line.url(server).parse().unwrap(), &schema, PLENTY).await;
    let other = open(&server.url().parse().unwrap(), &schema, PLENTY).await;
    cut_off.append(chunk(1, 0, "before"));
    until(async || other.session(1.into()).await.unwrap()).await;
    line.disconnect();
    // If `append` waited for the database, this would never end.
    for session in 2..=100 {
        cut_off.append(chunk(session, 0, "meanwhile"));
    }
    assert!(cut_off.session(2.into()).await.is_err(), "nobody knows what is written of it");
    assert_eq!(other.session(100.into()).await.unwrap(), None);
    line.restore();
    until(async || other.session(100.into()).await.unwrap()).await;
    assert_eq!(listed(&other).await, (1..=100).rev().collect::<Vec<_>>());
    assert!(cut_off.session(2.into()).await.unwrap().is_some());
}
