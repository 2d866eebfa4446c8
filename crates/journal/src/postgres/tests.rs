//! Tests of the PostgreSQL journal with a real server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_store::postgres::{Address, PostgresStore, Settings};
use restante_testpg::{FaultProxy, Postgres};
use tokio_postgres::types::FromSql;

use super::*;
use crate::tests::conformance::{self, chunk, mail_chunk};
use crate::{Chunk, SessionEnd, SessionId, SessionPage};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);
/// The interval between two attempts of [`wait_for`].
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A size limit that no test reaches.
const LARGE_LIMIT: usize = 1 << 20;

/// Returns a database for all tests of this program; each uses its own schemas. `None` if PostgreSQL is not installed.
fn address() -> Option<Address> {
    Postgres::shared().map(|server| server.url().parse().expect("a valid URL"))
}

/// Returns a name that no other test has.
fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("journal_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn open_store(address: &Address, schema: &str) -> PostgresStore {
    let settings = Settings { schema: schema.to_owned(), ..Settings::default() };
    PostgresStore::open(address, settings).await.expect("the database is available")
}

/// Opens the journal of a new node.
async fn open(address: &Address, schema: &str, max_bytes: usize) -> Journal {
    super::open(&open_store(address, schema).await, max_bytes).expect("the thread starts")
}

/// Returns the value in the only row of a query.
async fn query<T: for<'a> FromSql<'a>>(address: &Address, schema: &str, query: &str) -> T {
    open_store(address, schema).await.database().query(query, &[]).await.unwrap()[0].get(0)
}

/// Returns a chunk of a session with this id, which consists of the microseconds of its start.
fn chunk_of(session: SessionId, number: u32, text: &str) -> Chunk {
    Chunk { session, ..chunk(session.number() / 1_000_000, number, text) }
}

/// Waits until a query returns something. Chunks of another node are visible after they are written.
async fn wait_for<T>(mut query: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = query().await {
            return found;
        }
        assert!(start.elapsed() < LONG, "timeout");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn listed_ids(journal: &Journal) -> Vec<u64> {
    let page = SessionPage { before: None, refused_only: false, limit: 1000 };
    journal.sessions(page).await.unwrap().iter().map(|transcript| transcript.session.number()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_conformance_suite() {
    let Some(address) = address() else { return };
    conformance::run(async |max_bytes| open(&address, &fresh_schema(), max_bytes).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_transcripts() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    conformance::keeps_transcripts_across_restarts(async || open(&address, &schema, LARGE_LIMIT).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_long_session() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    conformance::long_session_is_read_after_restart(async || open(&address, &schema, LARGE_LIMIT).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_node_reads_written_chunks() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    let (one, other) = (open(&address, &schema, LARGE_LIMIT).await, open(&address, &schema, LARGE_LIMIT).await);
    for session in 1..=5 {
        let mut refused = mail_chunk(session, 1, "bob", 10 * session);
        Arc::make_mut(&mut refused.info).refusals = u32::from(session % 2 == 0);
        one.append(chunk(session, 0, "head"));
        one.append(refused);
        one.append(chunk(session, 2, "tail"));
    }
    wait_for(async || other.session(5.into()).await.unwrap().filter(|transcript| transcript.chunks.len() == 3)).await;
    assert_eq!(listed_ids(&other).await, [5, 4, 3, 2, 1]);
    let page = SessionPage { before: Some(4.into()), refused_only: true, limit: 7 };
    let refused = other.sessions(page).await.unwrap();
    assert_eq!(refused.iter().map(|transcript| transcript.session.number()).collect::<Vec<_>>(), [2]);
    assert_eq!(refused[0].chunks.len(), 3);
    assert_eq!(refused[0].lines().count(), 0, "a list contains no lines");
    let transcript = other.find_by_message(&"bob".to_owned().into(), 30.into()).await.unwrap().unwrap();
    assert_eq!(transcript.lines().map(|line| line.text).collect::<Vec<_>>(), ["head", "mail 1"]);
    assert_eq!(transcript.chunks[1].transaction, mail_chunk(3, 1, "bob", 30).transaction);
    // The node that has written it returns the same.
    assert_eq!(one.find_by_message(&"bob".to_owned().into(), 30.into()).await.unwrap(), Some(transcript));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_see_sessions_of_other_nodes_and_detect_dead_ones() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    let (one, other) = (open(&address, &schema, LARGE_LIMIT).await, open(&address, &schema, LARGE_LIMIT).await);
    let now = Timestamp::now();
    let (first, second) = wait_for(async || {
        // The nodes receive their numbers in the background.
        let ids = (one.start_session(now), other.start_session(now));
        let nodes = [ids.0, ids.1].map(|id| id.number() % NODE_NUMBERS);
        (nodes[0] != 0 && nodes[1] != 0).then(|| {
            assert_ne!(nodes[0], nodes[1]);
            ids
        })
    })
    .await;
    one.append(chunk_of(first, 0, "here"));
    other.append(chunk_of(second, 0, "there"));
    for (journal, id, text) in [(&one, second, "there"), (&other, first, "here")] {
        let transcript = wait_for(async || journal.session(id).await.unwrap()).await;
        assert_eq!(transcript.lines().map(|line| line.text).collect::<Vec<_>>(), [text]);
        assert_eq!(transcript.info.end, None, "the session continues");
    }
    drop(one);
    let transcript = other.session(first).await.unwrap().unwrap();
    assert_eq!(transcript.info.end, Some(SessionEnd { at: None, reason: "lost".into() }));
    assert_eq!(other.session(second).await.unwrap().unwrap().info.end, None);
    // A node that starts now never reuses an id, although its clock is slow.
    let late = open(&address, &schema, LARGE_LIMIT).await;
    wait_for(async || (late.start_session(Timestamp::UNIX_EPOCH) > first.max(second)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn size_limit_is_shared_by_all_nodes() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    for round in 0..5 {
        let journal = open(&address, &schema, 50_000).await;
        for session in 1..=60 {
            journal.append(mail_chunk(100 * round + session, 1, "bob", 1000 * round + 10 * session));
        }
    }
    let journal = open(&address, &schema, 50_000).await;
    let remaining = listed_ids(&journal).await;
    assert!((20..60).contains(&remaining.len()), "{}", remaining.len());
    assert_eq!(remaining[0], 460);
    let bob = "bob".to_owned().into();
    assert!(journal.find_by_message(&bob, 4600.into()).await.unwrap().is_some());
    let sums = "SELECT bytes = (SELECT sum(bytes) FROM journal_groups) FROM journal_state";
    assert!(query::<bool>(&address, &schema, sums).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn chunk_written_twice_counts_once() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    for _ in 0..2 {
        let journal = open(&address, &schema, LARGE_LIMIT).await;
        journal.append(mail_chunk(1, 1, "bob", 7));
        journal.append(mail_chunk(1, 1, "bob", 7));
    }
    let bytes: i64 = query(&address, &schema, "SELECT bytes FROM journal_state").await;
    assert_eq!(bytes, i64::try_from(mail_chunk(1, 1, "bob", 7).bytes()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn append_does_not_block_and_loses_nothing_while_disconnected() {
    let (Some(server), schema) = (Postgres::shared(), fresh_schema()) else { return };
    let mut proxy = FaultProxy::new(server.port());
    let behind_proxy = open(&proxy.url(server).parse().unwrap(), &schema, LARGE_LIMIT).await;
    let other = open(&server.url().parse().unwrap(), &schema, LARGE_LIMIT).await;
    behind_proxy.append(chunk(1, 0, "before"));
    wait_for(async || other.session(1.into()).await.unwrap()).await;
    proxy.disconnect();
    // If `append` waited for the database, this would never end.
    for session in 2..=100 {
        behind_proxy.append(chunk(session, 0, "meanwhile"));
    }
    assert!(behind_proxy.session(2.into()).await.is_err(), "the written chunks cannot be read");
    assert_eq!(other.session(100.into()).await.unwrap(), None);
    proxy.restore();
    wait_for(async || other.session(100.into()).await.unwrap()).await;
    assert_eq!(listed_ids(&other).await, (1..=100).rev().collect::<Vec<_>>());
    assert!(behind_proxy.session(2.into()).await.unwrap().is_some());
}
