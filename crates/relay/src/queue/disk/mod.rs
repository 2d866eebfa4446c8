//! The queue in the data directory: an SQLite file with one connection. Every method is one transaction.
//!
//! A power failure can undo the latest transactions, except those that answer a request of a user: additions,
//! cancellations and retries by hand are on disk before the method returns. So is the first cursor: without it, messages
//! before the next start would not be forwarded. The others may be undone, because they are undone in order: then
//! messages are forwarded again from the earlier cursor, or are sent again.

mod file;
mod queries;
mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_mail::message::MessageId;
use restante_store::{Result, StoreError};
use tokio::task::spawn_blocking;

use self::file::{Durability, Limits, QueueFile};
use super::{
    AddError, AttemptRecord, EntryFilter, ForwardOutcome, MAX_FINISHED, NewEntry, Queue, Selection, StateCount,
};
use crate::entry::{Entry, EntryId};

/// A [`Queue`] in a file.
pub struct DiskQueue {
    file: Arc<Mutex<QueueFile>>,
}

impl DiskQueue {
    /// Opens the queue in a data directory. It holds at most `max_waiting` entries that are not finished. Entries that
    /// were being sent when the process ended are queued again. An unusable file is renamed, and a new one is created.
    pub fn open(directory: &Path, max_waiting: usize) -> Result<Self, String> {
        Self::with_limits(directory, Limits { max_waiting, max_finished: MAX_FINISHED })
    }

    /// Returns whether a data directory contains a queue.
    pub fn exists(directory: &Path) -> bool {
        directory.join(file::FILE_NAME).is_file()
    }

    fn with_limits(directory: &Path, limits: Limits) -> Result<Self, String> {
        QueueFile::open(directory, limits).map(|file| Self { file: Arc::new(Mutex::new(file)) })
    }

    /// Runs a transaction on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        run: impl FnOnce(&file::Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let file = self.file.clone();
        // A panic rolls its transaction back, so the file is still usable.
        let run = move || file.lock().unwrap_or_else(PoisonError::into_inner).run(durability, run);
        spawn_blocking(run).await.map_err(|panic| StoreError::Broken(panic.to_string()))?
    }
}

#[async_trait]
#[expect(clippy::redundant_closure_for_method_calls, reason = "a method has a fixed lifetime of the transaction")]
impl Queue for DiskQueue {
    async fn identity(&self) -> Result<String> {
        self.run(Durability::Later, |file| file.identity()).await
    }

    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError> {
        let added = self.run(Durability::OnCommit, move |file| file.add(&entries)).await?;
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

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        self.run(Durability::Later, move |file| file.expire(now)).await
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        self.run(Durability::Later, move |file| file.list(&filter)).await
    }

    async fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        self.run(Durability::Later, move |file| file.find(id)).await
    }

    async fn transcript(&self, id: EntryId) -> Result<Option<TranscriptLines>> {
        self.run(Durability::Later, move |file| file.transcript(id)).await
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
