//! The queue in an SQLite database with one connection: a file in the data directory, or in memory. Every method is one
//! transaction.
//!
//! A power failure can undo the latest transactions, except those that answer a request of a user: cancellations, retries
//! by hand, pauses and, if the kind of the queue says so, additions are on disk before the method returns. So are the
//! first cursor, the checkpoints and the targets: without them, messages before the next start would not be sent. The
//! others may be undone, because they are undone in order: then messages are found again from the earlier cursor or
//! checkpoint, or entries are sent again.

mod changes;
mod file;
mod queries;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_store::sql_values::{nanos_to_time, time_to_nanos, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::params;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use self::file::{Durability, QueueFile, Transaction};
use crate::entry::{AttemptRecord, Entry, EntryFilter, EntryId, NewEntry, Selection, StateCount};
use crate::queue::{AbandonedCheckpoint, AddError, ForwardOutcome, Limits, Queue, QueueKind, TargetRecord};

/// A [`Queue`] in an SQLite database.
pub struct SqliteQueue {
    file: Arc<Mutex<QueueFile>>,
    kind: QueueKind,
    limits: Limits,
}

impl SqliteQueue {
    /// Opens the queue in a data directory. Entries that were being sent when the process ended are queued again. An
    /// unusable file is renamed, and a new one is created.
    pub fn open(directory: &Path, kind: QueueKind, limits: Limits) -> Result<Self, String> {
        QueueFile::open(directory, kind, limits).map(|file| Self::new(file, kind, limits))
    }

    /// Creates an empty queue in memory. It is lost when the process ends, like the messages of the memory store.
    pub fn in_memory(kind: QueueKind, limits: Limits) -> Result<Self, String> {
        QueueFile::in_memory(kind, limits).map(|file| Self::new(file, kind, limits))
    }

    /// Returns whether a data directory contains a queue.
    pub fn exists(directory: &Path, kind: QueueKind) -> bool {
        directory.join(kind.file_name).is_file()
    }

    fn new(file: QueueFile, kind: QueueKind, limits: Limits) -> Self {
        Self { file: Arc::new(Mutex::new(file)), kind, limits }
    }

    /// Runs a transaction. That of a file runs on a thread that may block, one at a time, so that there is one such thread.
    async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        run: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let file = self.file.clone().lock_owned().await;
        if file.directory.is_none() {
            return file.run(durability, run);
        }
        // A panic rolls its transaction back, so the file is still usable. Boxed, so that the task is compiled once for each type of result.
        let run: Box<dyn FnOnce() -> Result<T> + Send> = Box::new(move || file.run(durability, run));
        spawn_blocking(run).await.map_err(|panic| StoreError::Broken(panic.to_string()))?
    }
}

#[async_trait]
#[expect(clippy::redundant_closure_for_method_calls, reason = "a method has a fixed lifetime of the transaction")]
impl Queue for SqliteQueue {
    fn kind(&self) -> QueueKind {
        self.kind
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn identity(&self) -> Result<String> {
        let identity = self.run(Durability::Later, |file| file.query_value("SELECT value FROM identity", [])).await?;
        identity.ok_or_else(|| StoreError::Broken("the queue has no id".to_owned()))
    }

    async fn secret(&self) -> Result<String> {
        let secret = self.run(Durability::Later, |file| file.query_value("SELECT secret FROM identity", [])).await?;
        secret.ok_or_else(|| StoreError::Broken("the queue has no secret".to_owned()))
    }

    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError> {
        let durability = if self.kind.is_synced { Durability::OnCommit } else { Durability::Later };
        let added = self.run(durability, move |file| file.add(&entries)).await?;
        added.ok_or(AddError::Full)
    }

    async fn forward(&self, entries: Vec<NewEntry>, from: MessageId, to: MessageId) -> Result<ForwardOutcome> {
        self.run(Durability::Later, move |file| file.forward(&entries, from, to)).await
    }

    async fn acquire_cursor(&self, start: MessageId) -> Result<Option<MessageId>> {
        self.run(Durability::OnCommit, move |file| file.acquire_cursor(start)).await.map(Some)
    }

    async fn delete_cursor(&self) -> Result<bool> {
        self.run(Durability::OnCommit, |file| file.execute("DELETE FROM cursor", [])).await.map(|_| true)
    }

    async fn set_checkpoint(&self, checkpoint: Option<MessageId>) -> Result<()> {
        // If the first checkpoint of the process was undone, nothing would be searched at the next start.
        self.run(Durability::OnCommit, move |file| file.set_checkpoint(checkpoint)).await
    }

    async fn abandoned_checkpoints(&self) -> Result<Vec<AbandonedCheckpoint>> {
        let sql = "SELECT message FROM checkpoints WHERE is_current = 0";
        let message = self.run(Durability::Later, |file| file.query_value::<u64>(sql, [])).await?;
        let abandoned = |message: u64| AbandonedCheckpoint { message: message.into(), node: 0, version: String::new() };
        Ok(message.into_iter().map(abandoned).collect())
    }

    async fn delete_abandoned(&self, checkpoints: Vec<AbandonedCheckpoint>) -> Result<()> {
        if checkpoints.is_empty() {
            return Ok(());
        }
        // There is only one, and this process is the only one that is alive.
        let sql = "DELETE FROM checkpoints WHERE is_current = 0";
        self.run(Durability::Later, move |file| file.execute(sql, [])).await.map(drop)
    }

    async fn set_targets(&self, names: Vec<String>, since: MessageId) -> Result<u64> {
        self.run(Durability::OnCommit, move |file| file.set_targets(&names, since)).await
    }

    async fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.run(Durability::Later, |file| file.targets()).await
    }

    async fn set_paused(&self, target: &str, is_paused: bool) -> Result<()> {
        let sql = "INSERT INTO targets VALUES (?1, ?2, 0) ON CONFLICT DO UPDATE SET is_paused = excluded.is_paused";
        let target = target.to_owned();
        self.run(Durability::OnCommit, move |file| file.execute(sql, params![target, is_paused])).await.map(drop)
    }

    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        let target = target.to_owned();
        self.run(Durability::Later, move |file| file.claim(&target, now, limit)).await
    }

    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()> {
        self.run(Durability::Later, move |file| file.record(&results)).await
    }

    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>> {
        let sql = "SELECT min(due) FROM entries WHERE state = 0 AND target = ?1
                   AND NOT EXISTS (SELECT 1 FROM targets WHERE name = ?1 AND is_paused)";
        let target = target.to_owned();
        let due = self.run(Durability::Later, move |file| file.query_value::<Option<i64>>(sql, [target])).await?;
        Ok(due.flatten().map(nanos_to_time))
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<String>> {
        self.run(Durability::Later, move |file| file.expire(now)).await
    }

    async fn postpone_expiry(&self, time: Timestamp) -> Result<()> {
        let sql = "UPDATE entries SET expires = ?1 WHERE state = 0 AND expires < ?1";
        self.run(Durability::Later, move |file| file.execute(sql, [time_to_nanos(time)])).await.map(drop)
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        self.run(Durability::Later, move |file| file.list(&filter)).await
    }

    async fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        self.run(Durability::Later, move |file| file.find(id)).await
    }

    async fn attempt_log(&self, id: EntryId) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT log FROM attempt_logs WHERE entry = ?1";
        self.run(Durability::Later, move |file| file.query_value(sql, [to_i64(id.0)])).await
    }

    async fn cancel(&self, selection: Selection) -> Result<u64> {
        self.run(Durability::OnCommit, move |file| file.cancel(&selection)).await
    }

    async fn retryable(&self, selection: &Selection, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let selection = selection.clone();
        self.run(Durability::Later, move |file| file.retryable(&selection, after, limit)).await
    }

    async fn requeue(&self, entries: Vec<Entry>, now: Timestamp, expires: Timestamp) -> Result<Vec<String>> {
        self.run(Durability::OnCommit, move |file| file.requeue(&entries, now, expires)).await
    }

    async fn counts(&self) -> Result<Vec<StateCount>> {
        self.run(Durability::Later, |file| file.counts()).await
    }

    async fn leave(&self) -> Result<()> {
        let sql = "UPDATE entries SET state = iif(state = 1, 0, state), claim = 0 WHERE claim <> 0";
        self.run(Durability::Later, |file| file.execute(sql, [])).await.map(drop)
    }
}
