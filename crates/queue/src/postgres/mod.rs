//! The queue in a PostgreSQL database, which several nodes share. It is in the schema of their store.
//!
//! Every node has a row with a heartbeat. Entries that a dead node has claimed are claimed by the others. One node at a
//! time forwards: it has a lease of the cursor.
//!
//! A claim can be committed although its reply is lost. So every claim of a node has a number, and the entries of failed
//! claims are returned to the queue.
//!
//! Nodes can have different clocks. All times in the tables are those of the database's clock.
//!
//! All changes are single statements, on a connection of their own.
//! Statements that change several entries lock them in the order of their ids, so that they cannot deadlock.
//!
//! The limits are those of all nodes together. Waiting entries are counted without a lock, at most once a second while
//! there is room. So the nodes can exceed the limit by the entries that they add within a second.

mod claims;
mod rows;
mod statements;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::postgres::{Database, DatabaseClock, Parameters, PostgresStore};
use restante_store::sql_values::{id_to_i64, to_i64};
use restante_store::{Result, StoreError};
use tokio::sync::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::claims::Claims;
use self::rows::{column, get_text, parse_abandoned, parse_count, parse_entry, parse_target, to_nanos, to_time};
use crate::entry::{
    AttemptOutcome, AttemptRecord, EXPIRED_REPLY, Entry, EntryFilter, EntryId, NewEntry, Selection, StateCount,
    state_number,
};
use crate::queue::{AbandonedCheckpoint, AddError, ForwardOutcome, Limits, Queue, QueueKind, TargetRecord};
use crate::waiting::WaitingBound;

/// The time without a heartbeat after which a node counts as dead.
const NODE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time after which another node may forward.
const LEASE: Duration = Duration::from_secs(15);
/// How long the number of waiting entries that other nodes have added is not counted.
const MAX_COUNT_AGE: Duration = Duration::from_secs(1);
/// Finished entries are counted and pruned after this share of their limit has been added.
const PRUNE_SHARE: usize = 100;

/// A [`Queue`] in a PostgreSQL database.
pub struct PostgresQueue {
    /// The store's connections, for queries.
    readers: Arc<Database>,
    /// The connection for changes.
    database: Database,
    /// The id of this node.
    node: i64,
    claims: Claims,
    clock: Arc<DatabaseClock>,
    kind: QueueKind,
    limits: Limits,
    waiting: Mutex<WaitingBound>,
    /// Entries that this node has finished since it last pruned them.
    unpruned: AtomicUsize,
}

impl PostgresQueue {
    /// Opens the queue in the database of a store. The node gets a new id.
    pub async fn open(store: &PostgresStore, kind: QueueKind, limits: Limits) -> Result<Self> {
        let (readers, database) = (store.database().clone(), store.database().with_own_connection()?);
        let rows = database.execute(statements::REGISTER, &[&kind.name]).await?;
        let node = rows.first().map_or(Ok(0), |row| get_column(row, "id"))?;
        Ok(Self {
            readers,
            database,
            node,
            claims: Claims::default(),
            clock: store.clock().clone(),
            kind,
            limits,
            waiting: Mutex::default(),
            unpruned: AtomicUsize::new(0),
        })
    }

    async fn identity_column(&self, name: &str) -> Result<String> {
        let rows = self.readers.query(statements::IDENTITY, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Broken("the queue has no id".to_owned()))?;
        get_column(row, name)
    }

    /// Returns the maximum size of the payload of a finished entry.
    fn max_kept(&self) -> i64 {
        to_i64(self.kind.max_finished_payload)
    }

    /// Runs a change that returns the number of changed entries.
    async fn change(&self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        let rows = self.database.execute(sql, parameters).await?;
        rows.first().map_or(Ok(0), |row| get_u64(row, "changed"))
    }

    /// Prunes finished entries above the limit, if there can be many. An error is only logged, because the change before
    /// was made.
    async fn prune(&self, finished: u64) {
        let finished = usize::try_from(finished).unwrap_or(usize::MAX);
        let unpruned = self.unpruned.fetch_add(finished, Ordering::Relaxed).saturating_add(finished);
        if unpruned > self.limits.max_finished / PRUNE_SHARE {
            self.unpruned.store(0, Ordering::Relaxed);
            if let Err(error) =
                self.database.execute(statements::PRUNE, &[&self.kind.name, &to_i64(self.limits.max_finished)]).await
            {
                tracing::warn!(%error, "finished entries were not deleted; they are deleted later");
            }
        }
    }

    /// Returns the entries of failed claims to the queue.
    async fn return_failed_claims(&self) -> Result<()> {
        let failed = self.claims.failed();
        let Some(last) = failed.iter().max() else { return Ok(()) };
        self.database.execute(statements::REFUSE_CLAIMS, &[&self.node, last]).await?;
        let returned = self.change(statements::RETURN_CLAIMS, &[&self.kind.name, &self.node, &failed]).await?;
        self.claims.forget(&failed);
        if returned > 0 {
            tracing::info!(entries = returned, "returned entries of failed claims to the queue");
        }
        Ok(())
    }

    async fn execute_claim(&self, target: &str, now: Timestamp, limit: usize, claim: i64) -> Result<Vec<Row>> {
        let (latest, now) = (to_nanos(&self.clock, self.kind.latest_due(now)), to_nanos(&self.clock, now));
        let (target, limit, timeout) = (target.as_bytes(), to_i64(limit), NODE_TIMEOUT.as_secs_f64());
        let parameters: Parameters<'_> =
            &[&self.kind.name, &target, &now, &limit, &self.node, &timeout, &claim, &latest];
        self.database.execute(statements::CLAIM, parameters).await
    }

    /// Runs a statement that adds entries. Returns its row.
    async fn insert(&self, sql: &str, entries: &[NewEntry], other: &[&(dyn ToSql + Sync)]) -> Result<Row> {
        let messages = column(entries, |entry| id_to_i64(entry.message));
        let mailboxes = column(entries, |entry| entry.mailbox.as_str().as_bytes());
        let targets = column(entries, |entry| entry.target.as_bytes());
        let keys = column(entries, |entry| entry.key.as_ref().map(String::as_bytes));
        let payloads = column(entries, |entry| &entry.payload[..]);
        let created = column(entries, |entry| to_nanos(&self.clock, entry.created));
        let expires = column(entries, |entry| to_nanos(&self.clock, entry.expires));
        // There is only one connection, so this lock delays nothing.
        let mut bound = self.waiting.lock().await;
        let is_known = bound.has_room(entries.len(), self.limits.max_waiting, MAX_COUNT_AGE);
        let (count, limit) = (to_i64(entries.len()), (!is_known).then(|| to_i64(self.limits.max_waiting)));
        let own: Parameters<'_> =
            &[&self.kind.name, &messages, &mailboxes, &targets, &keys, &payloads, &created, &expires, &count, &limit];
        let parameters = [own, other].concat();
        // If it fails or is cancelled, the entries may be added nevertheless.
        bound.raise(entries.len());
        let row = self.database.execute(sql, &parameters).await?.pop();
        let row = row.ok_or_else(|| StoreError::Broken("the database returned no row".to_owned()))?;
        if let Some(waiting) = get_column::<Option<i64>>(&row, "waiting")? {
            let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
            bound.set(waiting.saturating_add(entries.len()));
        }
        Ok(row)
    }
}

#[async_trait]
impl Queue for PostgresQueue {
    fn kind(&self) -> QueueKind {
        self.kind
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn identity(&self) -> Result<String> {
        self.identity_column("value").await
    }

    async fn secret(&self) -> Result<String> {
        self.identity_column("secret").await
    }

    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let row = self.insert(statements::ADD, &entries, &[]).await?;
        if !get_column::<bool>(&row, "has_room")? {
            return Err(AddError::Full);
        }
        let ids: Vec<i64> = get_column(&row, "ids")?;
        Ok(ids.into_iter().map(|id| EntryId(id.unsigned_abs())).collect())
    }

    async fn forward(&self, entries: Vec<NewEntry>, from: MessageId, to: MessageId) -> Result<ForwardOutcome> {
        let cursor: Parameters<'_> = &[&id_to_i64(from), &id_to_i64(to)];
        let row = self.insert(statements::FORWARD, &entries, cursor).await?;
        Ok(if get_column(&row, "is_moved")? {
            ForwardOutcome::Added
        } else if get_column(&row, "was_expected")? && !get_column::<bool>(&row, "has_room")? {
            ForwardOutcome::Full
        } else {
            ForwardOutcome::CursorMoved
        })
    }

    async fn acquire_cursor(&self, start: MessageId) -> Result<Option<MessageId>> {
        let parameters: Parameters<'_> = &[&self.kind.name, &id_to_i64(start), &self.node, &LEASE.as_secs_f64()];
        let rows = self.database.execute(statements::ACQUIRE_CURSOR, parameters).await?;
        rows.first().map(|row| get_u64(row, "message").map(MessageId::from)).transpose()
    }

    async fn delete_cursor(&self) -> Result<bool> {
        let rows = self.database.execute(statements::DELETE_CURSOR, &[&self.kind.name, &self.node]).await?;
        rows.first().map_or(Ok(false), |row| get_column(row, "is_deleted"))
    }

    async fn set_checkpoint(&self, checkpoint: Option<MessageId>) -> Result<()> {
        let parameters: Parameters<'_> = &[&self.kind.name, &self.node, &checkpoint.map(id_to_i64)];
        self.database.execute(statements::SET_CHECKPOINT, parameters).await.map(drop)
    }

    async fn abandoned_checkpoints(&self) -> Result<Vec<AbandonedCheckpoint>> {
        let parameters: Parameters<'_> = &[&self.kind.name, &NODE_TIMEOUT.as_secs_f64()];
        let rows = self.database.query(statements::ABANDONED_CHECKPOINTS, parameters).await?;
        rows.iter().map(parse_abandoned).collect()
    }

    async fn delete_abandoned(&self, checkpoints: Vec<AbandonedCheckpoint>) -> Result<()> {
        let nodes = column(&checkpoints, |checkpoint| checkpoint.node);
        let versions = column(&checkpoints, |checkpoint| &*checkpoint.version);
        self.database.execute(statements::DELETE_ABANDONED, &[&self.kind.name, &nodes, &versions]).await.map(drop)
    }

    async fn set_targets(&self, names: Vec<String>, since: MessageId) -> Result<u64> {
        let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let parameters: Parameters<'_> = &[&self.kind.name, &names, &id_to_i64(since), &self.max_kept()];
        let cancelled = self.change(statements::SET_TARGETS, parameters).await?;
        self.prune(cancelled).await;
        Ok(cancelled)
    }

    async fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.readers.query(statements::TARGETS, &[&self.kind.name]).await?.iter().map(parse_target).collect()
    }

    async fn set_paused(&self, target: &str, is_paused: bool) -> Result<()> {
        let parameters: Parameters<'_> = &[&self.kind.name, &target.as_bytes(), &is_paused];
        self.database.execute(statements::SET_PAUSED, parameters).await.map(drop)
    }

    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        // So there are never more failed claims than senders.
        self.return_failed_claims().await?;
        let claim = self.claims.start();
        let rows = self.execute_claim(target, now, limit, claim.number()).await?;
        let parse = |row| Ok((get_column::<i64>(row, "due")?, parse_entry(row, &self.clock)?));
        let mut claimed = rows.iter().map(parse).collect::<Result<Vec<_>>>()?;
        claim.succeed();
        claimed.sort_unstable_by_key(|(due, entry)| (*due, entry.id));
        Ok(claimed.into_iter().map(|(_, entry)| entry).collect())
    }

    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()> {
        if results.is_empty() {
            return Ok(());
        }
        // What a released entry keeps is `None`.
        let attempts = column(&results, |result| match &result.outcome {
            AttemptOutcome::Released => None,
            AttemptOutcome::Attempted { state, next_attempt, at, payload, reply, log } => {
                let (due, at) = (to_nanos(&self.clock, next_attempt.unwrap_or(*at)), to_nanos(&self.clock, *at));
                Some((state_number(*state), due, at, &payload[..], reply.as_bytes(), &log[..]))
            }
        });
        let ids = column(&results, |result| to_i64(result.id.0));
        let claims = column(&results, |result| to_i64(result.claim));
        let states = column(&attempts, |attempt| attempt.map(|attempt| attempt.0));
        let due = column(&attempts, |attempt| attempt.map(|attempt| attempt.1));
        let times = column(&attempts, |attempt| attempt.map(|attempt| attempt.2));
        let payloads = column(&attempts, |attempt| attempt.map(|attempt| attempt.3));
        let replies = column(&attempts, |attempt| attempt.map(|attempt| attempt.4));
        let logs = column(&attempts, |attempt| attempt.map(|attempt| attempt.5));
        let own: Parameters<'_> = &[&self.kind.name, &self.node, &ids, &claims, &states, &due, &times];
        let parameters: Parameters<'_> = &[&payloads, &replies, &logs, &self.max_kept()];
        let finished = self.change(statements::RECORD, &[own, parameters].concat()).await?;
        self.prune(finished).await;
        Ok(())
    }

    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>> {
        let rows = self.database.query(statements::NEXT_DUE, &[&self.kind.name, &target.as_bytes()]).await?;
        rows.first().map(|row| get_column(row, "due").map(|due| to_time(&self.clock, due))).transpose()
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<String>> {
        let now = to_nanos(&self.clock, now);
        let parameters: Parameters<'_> =
            &[&self.kind.name, &now, &EXPIRED_REPLY.as_bytes(), &NODE_TIMEOUT.as_secs_f64(), &self.max_kept()];
        let rows = self.database.execute(statements::EXPIRE, parameters).await?;
        self.prune(rows.len() as u64).await;
        rows.iter().map(|row| get_text(row, "target")).collect()
    }

    async fn postpone_expiry(&self, time: Timestamp) -> Result<()> {
        let parameters: Parameters<'_> = &[&self.kind.name, &to_nanos(&self.clock, time)];
        self.change(statements::POSTPONE_EXPIRY, parameters).await.map(drop)
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        let before = filter.before.map_or(i64::MAX, |before| to_i64(before.0));
        let (state, message) = (filter.state.map(state_number), filter.message.map(id_to_i64));
        let (target, limit) = (filter.target.as_ref().map(String::as_bytes), to_i64(filter.limit));
        let sql = match (filter.message, filter.state) {
            (Some(_), _) => statements::LIST_OF_MESSAGE,
            (None, Some(state)) if state.is_final() => statements::LIST_FINISHED,
            (None, _) => statements::LIST,
        };
        let parameters: Parameters<'_> =
            &[&self.kind.name, &before, &target, &state, &limit, &message, &filter.omits_payloads];
        let rows = self.readers.query(sql, parameters).await?;
        rows.iter().map(|row| parse_entry(row, &self.clock)).collect()
    }

    async fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        let rows = self.readers.query(statements::FIND, &[&self.kind.name, &to_i64(id.0)]).await?;
        rows.first().map(|row| parse_entry(row, &self.clock)).transpose()
    }

    async fn attempt_log(&self, id: EntryId) -> Result<Option<Vec<u8>>> {
        let rows = self.readers.query(statements::ATTEMPT_LOG, &[&self.kind.name, &to_i64(id.0)]).await?;
        rows.first().map_or(Ok(None), |row| get_column(row, "attempt_log"))
    }

    async fn cancel(&self, selection: Selection) -> Result<u64> {
        let (target, ids) = selection.parts();
        let parameters: Parameters<'_> = &[&self.kind.name, &target.map(str::as_bytes), &ids, &self.max_kept()];
        let cancelled = self.change(statements::CANCEL, parameters).await?;
        self.prune(cancelled).await;
        Ok(cancelled)
    }

    async fn retryable(&self, selection: &Selection, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let ((target, ids), after, limit) = (selection.parts(), to_i64(after.0), to_i64(limit));
        let parameters: Parameters<'_> = &[&self.kind.name, &target.map(str::as_bytes), &ids, &after, &limit];
        let rows = self.database.query(statements::RETRYABLE, parameters).await?;
        rows.iter().map(|row| parse_entry(row, &self.clock)).collect()
    }

    async fn requeue(&self, entries: Vec<Entry>, now: Timestamp, expires: Timestamp) -> Result<Vec<String>> {
        let ids = column(&entries, |entry| to_i64(entry.id.0));
        let attempts = column(&entries, |entry| entry.attempts.cast_signed());
        let payloads = column(&entries, |entry| &entry.payload[..]);
        let (now, expires) = (to_nanos(&self.clock, now), to_nanos(&self.clock, expires));
        self.waiting.lock().await.raise(ids.len());
        let parameters: Parameters<'_> = &[&self.kind.name, &ids, &attempts, &payloads, &now, &expires];
        let rows = self.database.execute(statements::REQUEUE, parameters).await?;
        rows.iter().map(|row| get_text(row, "target")).collect()
    }

    async fn counts(&self) -> Result<Vec<StateCount>> {
        let rows = self.readers.query(statements::COUNTS, &[&self.kind.name]).await?;
        rows.iter().map(parse_count).collect()
    }

    async fn heartbeat(&self) -> Result<()> {
        self.database.execute(statements::HEARTBEAT, &[&self.kind.name, &self.node]).await?;
        self.return_failed_claims().await?;
        self.database.execute(statements::FORGET_NODES, &[]).await.map(drop)
    }

    async fn leave(&self) -> Result<()> {
        // First a claim that is still running ends, and later ones get nothing. Those of failed claims are returned, too.
        let failed = self.claims.failed();
        for sql in [statements::RETIRE, statements::RELEASE_CLAIMS, statements::LEAVE] {
            self.database.execute(sql, &[&self.kind.name, &self.node]).await?;
        }
        self.claims.forget(&failed);
        Ok(())
    }
}
