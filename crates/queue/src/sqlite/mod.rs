//! The queue in an SQLite database with one connection: a file in the data directory, or in memory. Every method is one
//! transaction.
//!
//! A power failure can undo the latest transactions, except those that answer a request of a user: cancellations, retries
//! by hand, pauses and, if the kind of the queue says so, additions are on disk before the method returns. So are the
//! first cursor and the targets: without them, messages before the next start would not be sent. The others may be
//! undone, because they are undone in order: then messages are found again from the earlier cursor or position, or
//! entries are sent again.

mod changes;
mod file;
mod queries;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::message::MessageId;
use restante_store::{Result, StoreError};
use tokio::task::spawn_blocking;

use self::file::{Durability, QueueFile, Transaction};
use crate::entry::{AttemptRecord, Entry, EntryFilter, EntryId, NewEntry, Selection, StateCount};
use crate::queue::{AddError, ForwardOutcome, Limits, Queue, QueueKind, TargetRecord};

/// A [`Queue`] in an SQLite database.
pub struct SqliteQueue {
    file: Arc<Mutex<QueueFile>>,
    kind: QueueKind,
}

impl SqliteQueue {
    /// Opens the queue in a data directory. Entries that were being sent when the process ended are queued again. An
    /// unusable file is renamed, and a new one is created.
    pub fn open(directory: &Path, kind: QueueKind, limits: Limits) -> Result<Self, String> {
        QueueFile::open(directory, kind, limits).map(|file| Self::new(file, kind))
    }

    /// Creates an empty queue in memory. It is lost when the process ends, like the messages of the memory store.
    pub fn in_memory(kind: QueueKind, limits: Limits) -> Result<Self, String> {
        QueueFile::in_memory(kind, limits).map(|file| Self::new(file, kind))
    }

    /// Returns whether a data directory contains a queue.
    pub fn exists(directory: &Path, kind: QueueKind) -> bool {
        directory.join(kind.file_name).is_file()
    }

    fn new(file: QueueFile, kind: QueueKind) -> Self {
        Self { file: Arc::new(Mutex::new(file)), kind }
    }

    /// Runs a transaction on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        run: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let file = self.file.clone();
        // A panic rolls its transaction back, so the file is still usable.
        let run = move || file.lock().run(durability, run);
        spawn_blocking(run).await.map_err(|panic| StoreError::Broken(panic.to_string()))?
    }
}

#[async_trait]
#[expect(clippy::redundant_closure_for_method_calls, reason = "a method has a fixed lifetime of the transaction")]
impl Queue for SqliteQueue {
    async fn identity(&self) -> Result<String> {
        self.run(Durability::Later, |file| file.identity()).await
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
        if let Some(cursor) = self.run(Durability::Later, |file| file.cursor()).await? {
            return Ok(Some(cursor));
        }
        self.run(Durability::OnCommit, move |file| file.acquire_cursor(start)).await.map(Some)
    }

    async fn delete_cursor(&self) -> Result<()> {
        self.run(Durability::OnCommit, |file| file.delete_cursor()).await
    }

    async fn set_position(&self, position: Option<MessageId>) -> Result<()> {
        self.run(Durability::Later, move |file| file.set_position(position)).await
    }

    async fn abandoned_position(&self) -> Result<Option<MessageId>> {
        self.run(Durability::Later, |file| file.abandoned_position()).await
    }

    async fn delete_abandoned(&self, position: MessageId) -> Result<()> {
        self.run(Durability::Later, move |file| file.delete_abandoned(position)).await
    }

    async fn set_targets(&self, names: Vec<String>, since: MessageId) -> Result<u64> {
        self.run(Durability::OnCommit, move |file| file.set_targets(&names, since)).await
    }

    async fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.run(Durability::Later, |file| file.targets()).await
    }

    async fn set_paused(&self, target: &str, is_paused: bool) -> Result<()> {
        let target = target.to_owned();
        self.run(Durability::OnCommit, move |file| file.set_paused(&target, is_paused)).await
    }

    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        let target = target.to_owned();
        self.run(Durability::Later, move |file| file.claim(&target, now, limit)).await
    }

    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()> {
        self.run(Durability::Later, move |file| file.record(&results)).await
    }

    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>> {
        let target = target.to_owned();
        self.run(Durability::Later, move |file| file.next_due(&target)).await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<String>> {
        self.run(Durability::Later, move |file| file.expire(now)).await
    }

    async fn postpone_expiry(&self, time: Timestamp) -> Result<()> {
        self.run(Durability::Later, move |file| file.postpone_expiry(time)).await
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        self.run(Durability::Later, move |file| file.list(&filter)).await
    }

    async fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        self.run(Durability::Later, move |file| file.find(id)).await
    }

    async fn attempt_log(&self, id: EntryId) -> Result<Option<Vec<u8>>> {
        self.run(Durability::Later, move |file| file.attempt_log(id)).await
    }

    async fn cancel(&self, selection: Selection) -> Result<u64> {
        self.run(Durability::OnCommit, move |file| file.cancel(&selection)).await
    }

    async fn retry(&self, selection: Selection, now: Timestamp, expires: Timestamp) -> Result<u64> {
        self.run(Durability::OnCommit, move |file| file.retry(&selection, now, expires)).await
    }

    async fn counts(&self) -> Result<Vec<StateCount>> {
        self.run(Durability::Later, |file| file.counts()).await
    }

    async fn leave(&self) -> Result<()> {
        self.run(Durability::Later, |file| file.release_claims()).await
    }
}
