//! Tests of the queue with a real server.

use std::collections::HashSet;
use std::sync::atomic::AtomicU32;

use jiff::SignedDuration;
use restante_store::postgres::{Address, Settings};
use restante_testpg::Postgres;
use tokio_postgres::NoTls;

use super::*;
use crate::entry::AttemptOutcome;
use crate::entry::EntryState;
use crate::tests::conformance::{
    self, KIND, abandoned, add, attempted, claim, delivered, failed, find, ids, list_all, log, new_entry, record,
    retry, second, state_of,
};

/// Limits that no test reaches.
const LARGE_LIMIT: usize = 100_000;
const LIMITS: Limits = Limits { max_waiting: LARGE_LIMIT, max_finished: LARGE_LIMIT };

/// Returns a database for all tests of this program; each uses its own schemas. `None` if PostgreSQL is not installed.
fn address() -> Option<Address> {
    Postgres::shared().map(|server| server.url().parse().expect("a valid URL"))
}

/// Returns a name that no other test has.
fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("queue_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Opens a store with a schema that no other test has.
async fn open_store(address: &Address) -> PostgresStore {
    let settings = Settings { schema: fresh_schema(), ..Settings::default() };
    PostgresStore::open(address, settings).await.expect("the database is available")
}

/// Opens the queues of two nodes.
async fn open_two() -> Option<(Arc<PostgresQueue>, Arc<PostgresQueue>)> {
    let store = open_store(&address()?).await;
    let open = async || Arc::new(PostgresQueue::open(&store, KIND, LIMITS).await.unwrap());
    Some((open().await, open().await))
}

impl PostgresQueue {
    /// Lets the last heartbeat of this node be too long ago.
    async fn die(&self) {
        let sql = "UPDATE queue_nodes SET seen = now() - interval '31 s' WHERE id = $1";
        self.database.execute(sql, &[&self.node]).await.unwrap();
    }

    /// Starts a claim whose caller is cancelled, so that its reply is lost. Returns when it has ended.
    async fn lose_claim(self: &Arc<Self>) {
        let (client, connection) = tokio_postgres::connect(&Postgres::shared().unwrap().url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema: String = self.database.query("SELECT current_schema()::text", &[]).await.unwrap()[0].get(0);
        // The claim waits for this lock.
        client.batch_execute(&format!("BEGIN; SELECT FROM {schema}.queue_nodes FOR UPDATE")).await.unwrap();
        let queue = self.clone();
        let claim = tokio::spawn(async move { queue.claim("mx", second(0), 10).await });
        let waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
        let pid: i32 = loop {
            if let Some(row) = client.query_opt(waiting, &[]).await.unwrap() {
                break row.get(0);
            }
            assert!(!claim.is_finished(), "the claim waits");
        };
        claim.abort();
        claim.await.unwrap_err();
        client.batch_execute("ROLLBACK").await.unwrap();
        // Another statement that needs the lock could get it before the claim. So this waits until the claim has no locks.
        while !client.query("SELECT FROM pg_locks WHERE pid = $1", &[&pid]).await.unwrap().is_empty() {}
    }

    async fn count_nodes(&self) -> i64 {
        self.database.query("SELECT count(*) FROM queue_nodes", &[]).await.unwrap()[0].get(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_conformance_suite() {
    let Some(address) = address() else { return };
    conformance::run(async |max_waiting, max_finished| {
        let store = open_store(&address).await;
        PostgresQueue::open(&store, KIND, Limits { max_waiting, max_finished }).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_are_removed_together_with_their_entries() {
    let Some((queue, _)) = open_two().await else { return };
    queue.set_targets(vec!["mx".to_owned()], 5.into()).await.unwrap();
    let id = add(&*queue, new_entry(1)).await;
    let refuse = "
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END'";
    let trigger = "CREATE TRIGGER refuse BEFORE UPDATE ON queue_entries EXECUTE FUNCTION refuse()";
    for sql in [refuse, trigger] {
        queue.database.execute(sql, &[]).await.unwrap();
    }
    queue.set_targets(vec!["other".to_owned()], 9.into()).await.unwrap_err();
    let names = async || queue.targets().await.unwrap().into_iter().map(|target| target.name).collect::<Vec<_>>();
    assert_eq!(names().await, ["mx"], "an error changes nothing");
    queue.database.execute("DROP TRIGGER refuse ON queue_entries", &[]).await.unwrap();
    assert_eq!(queue.set_targets(vec!["other".to_owned()], 9.into()).await.unwrap(), 1);
    assert_eq!((names().await, state_of(&*queue, id).await.0), (vec!["other".to_owned()], EntryState::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_the_identity() {
    let Some((one, other)) = open_two().await else { return };
    assert_eq!(one.identity().await.unwrap(), other.identity().await.unwrap());
    assert_eq!(one.secret().await.unwrap(), other.secret().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_the_work() {
    const ENTRIES: u64 = 600;
    let Some((one, other)) = open_two().await else { return };
    let added = one.add((1..=ENTRIES).map(new_entry).collect()).await.unwrap();
    let work = async |queue: Arc<PostgresQueue>| {
        let mut claimed = Vec::new();
        // A claim gets nothing if the other node has locked what is left.
        while queue.counts().await.unwrap().iter().any(|count| !count.state.is_final()) {
            let batch = claim(&*queue, second(0), 10).await;
            record(&*queue, batch.iter().copied().map(delivered).collect()).await;
            claimed.extend(batch);
        }
        claimed
    };
    let tasks = [one.clone(), other.clone(), one.clone(), other.clone()].map(|queue| tokio::spawn(work(queue)));
    let mut claimed = Vec::new();
    for task in tasks {
        claimed.extend(task.await.unwrap());
    }
    assert_eq!(claimed.len(), added.len());
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), added.len());
    assert!(list_all(&*other).await.iter().all(|entry| entry.state == EntryState::Delivered && entry.attempts == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_node_loses_its_claims() {
    let Some((dead, alive)) = open_two().await else { return };
    let added = dead.add((1..=4).map(new_entry).collect()).await.unwrap();
    assert_eq!(claim(&*dead, second(0), 3).await, added[..3]);
    assert_eq!(claim(&*alive, second(0), 10).await, added[3..]);
    assert_eq!(dead.cancel(Selection::Ids(vec![added[2]])).await.unwrap(), 1);
    dead.die().await;
    assert_eq!(claim(&*dead, second(0), 10).await, [], "a dead node claims nothing");
    assert_eq!(claim(&*alive, second(0), 10).await, added[..2]);
    // Late results are ignored, before and after those of the other node.
    dead.heartbeat().await.unwrap();
    record(&*dead, vec![failed(added[0])]).await;
    assert_eq!(state_of(&*alive, added[0]).await.0, EntryState::Sending);
    record(&*alive, added.iter().copied().map(delivered).collect()).await;
    record(&*dead, added.iter().copied().map(failed).collect()).await;
    for id in [added[0], added[1], added[3]] {
        assert_eq!(state_of(&*alive, id).await.0, EntryState::Delivered);
        assert_eq!(alive.attempt_log(id).await.unwrap(), Some(log("250 accepted")));
    }
    // That of the cancelled entry was still expected from the first node.
    let cancelled = find(&*alive, added[2]).await;
    assert_eq!((cancelled.state, &*cancelled.last_reply), (EntryState::Cancelled, "550 refused"));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_dead_node_expire() {
    let Some((dead, alive)) = open_two().await else { return };
    let id = add(&*dead, new_entry(1)).await;
    assert_eq!(claim(&*dead, second(0), 1).await, [id]);
    assert_eq!(alive.expire(second(1000)).await.unwrap().len(), 0);
    dead.die().await;
    assert_eq!(claim(&*alive, second(1000), 1).await, []);
    assert_eq!(alive.expire(second(1000)).await.unwrap().len(), 1);
    assert_eq!(state_of(&*alive, id).await.0, EntryState::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_leaves_returns_its_claims_and_its_lease() {
    let Some((leaving, other)) = open_two().await else { return };
    let added = leaving.add((1..=3).map(new_entry).collect()).await.unwrap();
    assert_eq!(claim(&*leaving, second(0), 2).await, added[..2]);
    assert_eq!(claim(&*other, second(0), 1).await, added[2..]);
    assert_eq!(leaving.acquire_cursor(5.into()).await.unwrap(), Some(5.into()));
    assert_eq!(other.acquire_cursor(6.into()).await.unwrap(), None);
    leaving.leave().await.unwrap();
    assert_eq!(claim(&*leaving, second(0), 10).await, []);
    assert_eq!(claim(&*other, second(0), 10).await, added[..2]);
    assert_eq!(other.acquire_cursor(6.into()).await.unwrap(), Some(5.into()));
    assert_eq!(leaving.acquire_cursor(6.into()).await.unwrap(), None);
    assert_eq!(other.count_nodes().await, 1);
    record(&*leaving, vec![failed(added[0])]).await;
    assert_eq!(state_of(&*other, added[0]).await.0, EntryState::Sending);
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor_moves_to_the_other_node_when_its_lease_ends() {
    let Some((one, other)) = open_two().await else { return };
    assert_eq!(one.acquire_cursor(5.into()).await.unwrap(), Some(5.into()));
    assert!(!other.delete_cursor().await.unwrap());
    assert_eq!(other.acquire_cursor(9.into()).await.unwrap(), None);
    one.database.execute("UPDATE queue_cursors SET leased_until = now() - interval '1 s'", &[]).await.unwrap();
    assert_eq!(other.acquire_cursor(9.into()).await.unwrap(), Some(5.into()));
    assert_eq!(one.acquire_cursor(9.into()).await.unwrap(), None);
    // The first node has not noticed it yet.
    let forwarded = other.forward(vec![new_entry(6)], 5.into(), 6.into()).await.unwrap();
    assert_eq!(forwarded, ForwardOutcome::Added);
    let late = one.forward(vec![new_entry(6)], 5.into(), 6.into()).await.unwrap();
    assert_eq!(late, ForwardOutcome::CursorMoved);
    assert_eq!(list_all(&*one).await.len(), 1);
    other.leave().await.unwrap();
    assert!(one.delete_cursor().await.unwrap(), "no node forwards");
    assert_eq!(one.acquire_cursor(9.into()).await.unwrap(), Some(9.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_nodes_are_forgotten_after_their_claims() {
    let Some((dead, alive)) = open_two().await else { return };
    let id = add(&*dead, new_entry(1)).await;
    assert_eq!(claim(&*dead, second(0), 1).await, [id]);
    let sql = "UPDATE queue_nodes SET seen = now() - interval '1 day' WHERE id = $1";
    dead.database.execute(sql, &[&dead.node]).await.unwrap();
    alive.heartbeat().await.unwrap();
    assert_eq!(alive.count_nodes().await, 2, "it has a claim");
    assert_eq!(claim(&*alive, second(0), 1).await, [id]);
    alive.heartbeat().await.unwrap();
    assert_eq!(alive.count_nodes().await, 1);
    // It is a node again after its next heartbeat.
    dead.heartbeat().await.unwrap();
    let next = add(&*dead, new_entry(2)).await;
    assert_eq!(claim(&*dead, second(0), 1).await, [next]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_all_nodes() {
    let Some(address) = address() else { return };
    let store = open_store(&address).await;
    let open = async || PostgresQueue::open(&store, KIND, Limits { max_waiting: 3, max_finished: 2 }).await.unwrap();
    let (one, other) = (open().await, open().await);
    one.add(vec![new_entry(1), new_entry(2)]).await.unwrap();
    assert!(matches!(other.add(vec![new_entry(3), new_entry(4)]).await, Err(AddError::Full)));
    let last = add(&other, new_entry(3)).await;
    assert_eq!(one.cancel(Selection::Target(None)).await.unwrap(), 3);
    assert_eq!(ids(&list_all(&other).await), [last, EntryId(last.0 - 1)], "two finished entries are kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_shares_no_lock_with_the_messages() {
    let (Some(address), schema) = (address(), fresh_schema()) else { return };
    let settings = Settings { schema: schema.clone(), ..Settings::default() };
    let store = PostgresStore::open(&address, settings).await.unwrap();
    let queue = PostgresQueue::open(&store, KIND, LIMITS).await.unwrap();
    // Every change of the store waits for this lock.
    let url = Postgres::shared().unwrap().url();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN; SELECT FROM {schema}.state FOR UPDATE")).await.unwrap();
    let id = add(&queue, new_entry(1)).await;
    queue.acquire_cursor(5.into()).await.unwrap();
    queue.forward(vec![new_entry(6)], 5.into(), 6.into()).await.unwrap();
    assert_eq!(claim(&queue, second(0), 1).await, [id]);
    record(&queue, vec![delivered(id)]).await;
    queue.heartbeat().await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_returned_if_the_reply_to_their_claim_is_lost() {
    let Some((one, other)) = open_two().await else { return };
    let id = add(&*one, new_entry(1)).await;
    let before = find(&*one, id).await;
    let by_heartbeat = async || one.heartbeat().await.unwrap();
    let by_next_claim = async || assert_eq!(one.claim("none", second(0), 1).await.unwrap(), []);
    for attempt in 0..2 {
        one.lose_claim().await;
        assert_eq!(state_of(&*one, id).await.0, EntryState::Sending);
        other.heartbeat().await.unwrap();
        assert_eq!(claim(&*other, second(0), 1).await, [], "the node is alive");
        if attempt == 0 {
            by_heartbeat().await;
        } else {
            by_next_claim().await;
        }
        assert_eq!(find(&*one, id).await, before);
    }
    assert!(one.claims.failed().is_empty());
    one.lose_claim().await;
    one.leave().await.unwrap();
    assert_eq!(claim(&*other, second(0), 1).await, [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_claim_that_starts_late_gets_nothing() {
    let Some((queue, _)) = open_two().await else { return };
    let id = add(&*queue, new_entry(1)).await;
    let number = queue.claims.start().number();
    queue.heartbeat().await.unwrap();
    assert!(queue.execute_claim("mx", second(0), 1, number).await.unwrap().is_empty());
    assert_eq!(claim(&*queue, second(0), 1).await, [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_result_does_not_change_a_later_claim() {
    let Some((queue, _)) = open_two().await else { return };
    let id = add(&*queue, new_entry(1)).await;
    let first = queue.claim("mx", second(0), 1).await.unwrap().remove(0);
    let result = AttemptRecord { claim: first.claim, ..attempted(id, EntryState::Queued, "later", "450 later") };
    queue.record(vec![result.clone()]).await.unwrap();
    let second_claim = queue.claim("mx", second(100), 1).await.unwrap().remove(0);
    assert_ne!(first.claim, second_claim.claim);
    queue.record(vec![result]).await.unwrap();
    assert_eq!(find(&*queue, id).await, second_claim);
    record(&*queue, vec![delivered(id)]).await;
    assert_eq!(state_of(&*queue, id).await.0, EntryState::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_of_a_dead_node_is_abandoned() {
    let Some((dead, alive)) = open_two().await else { return };
    dead.set_checkpoint(Some(7.into())).await.unwrap();
    alive.set_checkpoint(Some(5.into())).await.unwrap();
    assert_eq!(abandoned(&*alive).await, []);
    dead.die().await;
    assert_eq!(abandoned(&*alive).await, [7.into()]);
    alive.delete_abandoned(alive.abandoned_checkpoints().await.unwrap()).await.unwrap();
    assert_eq!(abandoned(&*alive).await, []);
    // A node that leaves with a checkpoint may have added no entries for the last messages.
    dead.heartbeat().await.unwrap();
    dead.set_checkpoint(Some(9.into())).await.unwrap();
    dead.leave().await.unwrap();
    assert_eq!(abandoned(&*alive).await, [9.into()]);
    alive.set_checkpoint(None).await.unwrap();
    alive.leave().await.unwrap();
    assert_eq!(alive.count_nodes().await, 1);
}

/// Messages that a node has stored after a search began are not found by it.
#[tokio::test(flavor = "multi_thread")]
async fn only_checkpoints_from_before_the_search_are_deleted() {
    let Some((dead, other)) = open_two().await else { return };
    dead.set_checkpoint(Some(5.into())).await.unwrap();
    dead.die().await;
    let known = other.abandoned_checkpoints().await.unwrap();
    other.set_checkpoint(Some(7.into())).await.unwrap();
    other.die().await;
    other.delete_abandoned(known).await.unwrap();
    assert_eq!(abandoned(&*other).await, [7.into()], "the node died later");
    let known = other.abandoned_checkpoints().await.unwrap();
    other.heartbeat().await.unwrap();
    other.set_checkpoint(Some(7.into())).await.unwrap();
    other.delete_abandoned(known.clone()).await.unwrap();
    assert_eq!(abandoned(&*other).await, []);
    other.die().await;
    other.delete_abandoned(known).await.unwrap();
    assert_eq!(abandoned(&*other).await, [7.into()], "the node was alive meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_share_no_entries() {
    let Some(address) = address() else { return };
    let store = open_store(&address).await;
    let one = PostgresQueue::open(&store, KIND, LIMITS).await.unwrap();
    let other = PostgresQueue::open(&store, QueueKind { name: "other", ..KIND }, LIMITS).await.unwrap();
    one.acquire_cursor(5.into()).await.unwrap();
    one.set_targets(vec!["mx".to_owned()], 5.into()).await.unwrap();
    let id = add(&one, NewEntry { key: Some("k".to_owned()), ..new_entry(1) }).await;
    one.set_paused("mx", true).await.unwrap();
    assert_eq!((list_all(&other).await, other.counts().await.unwrap()), (Vec::new(), Vec::new()));
    assert_eq!((other.find(id).await.unwrap(), other.targets().await.unwrap()), (None, Vec::new()));
    assert_eq!(other.cancel(Selection::Target(None)).await.unwrap(), 0);
    assert_eq!(other.expire(Timestamp::MAX).await.unwrap().len(), 0);
    assert_eq!(other.acquire_cursor(7.into()).await.unwrap(), Some(7.into()));
    let added = add(&other, NewEntry { key: Some("k".to_owned()), ..new_entry(2) }).await;
    assert_eq!(claim(&other, second(0), 10).await, [added]);
    one.set_paused("mx", false).await.unwrap();
    assert_eq!(claim(&one, second(0), 10).await, [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn result_is_recorded_although_pruning_fails() {
    let Some(address) = address() else { return };
    let limits = Limits { max_finished: 0, ..LIMITS };
    let queue = PostgresQueue::open(&open_store(&address).await, KIND, limits).await.unwrap();
    for sql in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
        "CREATE TRIGGER refuse BEFORE DELETE ON queue_entries EXECUTE FUNCTION refuse()",
    ] {
        queue.database.execute(sql, &[]).await.unwrap();
    }
    let id = add(&queue, new_entry(1)).await;
    assert_eq!(claim(&queue, second(0), 1).await, [id]);
    record(&queue, vec![delivered(id)]).await;
    assert_eq!(state_of(&queue, id).await.0, EntryState::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn node_with_wrong_clock_neither_fails_nor_delays_entries() {
    const HOUR: Duration = Duration::from_hours(1);
    let Some(address) = address() else { return };
    for hours_ahead in [24, -24] {
        let store = open_store(&address).await;
        let open = async || PostgresQueue::open(&store, KIND, LIMITS).await.unwrap();
        let (mut wrong, right) = (open().await, open().await);
        wrong.clock = Arc::default();
        wrong.clock.set_error(SignedDuration::from_hours(hours_ahead));
        let wrong_now = || Timestamp::now() + SignedDuration::from_hours(hours_ahead);
        let entry = |now: Timestamp| NewEntry { created: now, expires: now + HOUR, ..new_entry(1) };
        let added_by_wrong = add(&wrong, entry(wrong_now())).await;
        let added_by_right = add(&right, entry(Timestamp::now())).await;
        let nodes: [(&PostgresQueue, &dyn Fn() -> Timestamp); 2] = [(&wrong, &wrong_now), (&right, &Timestamp::now)];
        for (queue, now) in nodes {
            assert_eq!(queue.expire(now()).await.unwrap().len(), 0);
            assert_eq!(claim(queue, now(), 10).await, [added_by_wrong, added_by_right]);
            let result = |id| {
                let mut result = attempted(id, EntryState::Queued, "later", "450 later");
                if let AttemptOutcome::Attempted { at, next_attempt, .. } = &mut result.outcome {
                    (*at, *next_attempt) = (now(), Some(now() + Duration::from_mins(10)));
                }
                result
            };
            record(queue, vec![result(added_by_wrong), result(added_by_right)]).await;
            assert_eq!(claim(queue, now(), 10).await, []);
            for (reader, now) in nodes {
                let delay = reader.next_due("mx").await.unwrap().unwrap().duration_since(now());
                assert!(delay.is_positive() && delay.as_secs() <= 600, "{delay}");
                assert_eq!(reader.expire(now() + HOUR - Duration::from_mins(10)).await.unwrap().len(), 0);
            }
            assert_eq!(retry(queue, Selection::Target(None), now(), now() + HOUR).await, 2);
        }
        assert_eq!(wrong.expire(wrong_now() + HOUR + Duration::from_mins(10)).await.unwrap().len(), 2);
    }
}
