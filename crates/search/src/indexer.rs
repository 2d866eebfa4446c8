//! The indexer: a thread of low priority that adds messages to the index after they were delivered. It takes events
//! from the queue, reads messages from the store, and compares the index with the store after events were dropped.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::MessageId;
use restante_worker::{ThreadPriority, lower_thread_priority};

use crate::catch_up::CatchUp;
use crate::index::Changes;
use crate::index_operations::{IndexOperations, IndexingError};
use crate::index_queue::{Batch, IndexEvent, IndexQueue, Resync};

/// The maximum number of events that are applied in one transaction.
const MAX_BATCH_EVENTS: usize = 2048;
/// How long events are collected if no search waits for them: one large transaction costs much less than many small
/// ones.
const BATCH_DELAY: Duration = Duration::from_millis(250);
/// The delay before a retry after an error.
const RETRY_DELAY: Duration = Duration::from_secs(30);
/// The delay before a damaged index is rebuilt.
const REBUILD_DELAY: Duration = Duration::from_millis(100);

/// The state of the indexing thread.
pub(crate) struct Indexer {
    queue: Arc<IndexQueue>,
    operations: IndexOperations,
    catch_up: Option<CatchUp>,
    /// The delay before a retry; shorter in tests.
    retry_delay: Duration,
    /// True if the current error was already logged.
    has_logged_error: bool,
}

impl Indexer {
    /// Creates an indexer. It does nothing until [`Indexer::run`].
    pub(crate) fn new(queue: Arc<IndexQueue>, operations: IndexOperations) -> Self {
        Self { queue, operations, catch_up: None, retry_delay: RETRY_DELAY, has_logged_error: false }
    }

    /// Runs until the queue is closed.
    pub(crate) fn run(mut self) {
        while !self.open_index() {
            if self.queue.inbox.pause(self.retry_delay) {
                return;
            }
        }
        // Searches fail until the index is open, so opening it has the normal priority. Later searches wait for this thread too: for new
        // messages, and for the lock of an index in memory. At the lowest priority, they would time out on a busy machine.
        if let Err(error) = lower_thread_priority(ThreadPriority::Low) {
            tracing::debug!(%error, "cannot lower the priority of the indexing thread");
        }
        loop {
            let batch = self.queue.next_batch(MAX_BATCH_EVENTS, BATCH_DELAY, self.catch_up.is_some());
            if batch.is_last {
                return self.shut_down(&batch);
            }
            let count = batch.events.len();
            match self.process_batch(batch) {
                Ok(()) => {
                    self.has_logged_error = false;
                    self.queue.mark_done(count, self.catch_up.is_none());
                }
                Err(IndexingError::ShutDown) => return,
                Err(error) => {
                    self.recover_from(&error);
                    self.queue.mark_done(count, false);
                    if self.queue.inbox.pause(if error.is_damage() { REBUILD_DELAY } else { self.retry_delay }) {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the index and requests a comparison with the store. Returns false if the index cannot be opened.
    fn open_index(&mut self) -> bool {
        match self.operations.index_file.open() {
            Ok(Some(complete_up_to)) if !self.operations.is_shared() => {
                self.queue.record_id(complete_up_to);
                self.queue.request_resync(Resync::NewerThan(complete_up_to));
            }
            // While this server was stopped, others may have deleted messages that are in the index.
            Ok(_) => self.queue.request_resync(Resync::Everything),
            Err(error) => {
                self.log_error_once(&error);
                return false;
            }
        }
        true
    }

    fn process_batch(&mut self, batch: Batch) -> Result<(), IndexingError> {
        if let Some(resync) = batch.resync {
            if resync == Resync::Rebuild {
                self.rebuild_index()?;
            }
            self.catch_up = Some(match (resync, self.catch_up.take()) {
                (Resync::NewerThan(id), None) => CatchUp::above(id),
                (Resync::NewerThan(id), Some(catch_up)) => catch_up.and_above(id),
                _ => CatchUp::everything(),
            });
            // Messages that are stored from now on cause events.
            let last = self.operations.with_mailroom(async |mailroom| mailroom.last_id().await)?;
            self.queue.record_id(last);
        }
        self.apply_events(batch.events)?;
        if let Some(mut catch_up) = self.catch_up.take()
            && !catch_up.step(&mut self.operations)?
        {
            self.catch_up = Some(catch_up);
        }
        Ok(())
    }

    fn rebuild_index(&self) -> Result<(), IndexingError> {
        if let Some(index) = self.operations.index_file.take_index() {
            tracing::warn!("the search index is damaged, rebuilding it");
            index.discard();
        }
        self.operations.index_file.open()?;
        Ok(())
    }

    fn apply_events(&mut self, events: Vec<IndexEvent>) -> Result<(), IndexingError> {
        let mut changes = Changes::default();
        let mut stored = Vec::new();
        for event in events {
            match event {
                IndexEvent::Stored(summary, body) => stored.push((summary, body)),
                IndexEvent::MarkChanged(id, marks) => changes.mark(id, marks),
                IndexEvent::Deleted(id) => changes.removed.push(id),
                // The current state. A later change causes another event.
                IndexEvent::Recheck(mailbox, id) => match self.operations.find(&mailbox, id)? {
                    Some(summary) => changes.update(&summary),
                    None => changes.removed.push(id),
                },
            }
        }
        let deleted: HashSet<MessageId> = changes.removed.iter().copied().collect();
        stored.retain(|(summary, _)| !deleted.contains(&summary.id));
        self.operations.add_all(stored, changes)
    }

    /// After an error, requests a comparison of everything, or a new index if the file is damaged.
    fn recover_from(&mut self, error: &IndexingError) {
        self.catch_up = None;
        // An error of opening the index was already logged, and damage is logged when the index is rebuilt.
        if !error.is_damage() && !matches!(error, IndexingError::NoIndex) {
            self.log_error_once(error);
        }
        let is_unusable = error.is_damage() || self.operations.index_file.is_closed();
        self.queue.request_resync(if is_unusable { Resync::Rebuild } else { Resync::Everything });
    }

    /// Logs an error, once until the next success.
    fn log_error_once(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.has_logged_error, true) {
            tracing::error!(%error, "cannot update the search index, retrying");
        }
    }

    fn shut_down(self, batch: &Batch) {
        let is_complete = batch.is_clean
            && batch.events.is_empty()
            && batch.resync.is_none()
            && self.catch_up.is_none()
            && !self.operations.has_gap;
        let Some(index) = self.operations.index_file.take_index() else { return };
        if !is_complete || !self.operations.index_file.is_persistent() {
            return;
        }
        if let Err(error) = index.close(self.queue.highest_id()) {
            tracing::warn!(%error, "cannot close the search index, the next start checks it against the store");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;
    use std::{fs, thread};

    use bytes::Bytes;
    use restante_mail::address::{Address, Alphabet};
    use restante_mail::envelope::{Envelope, Peer, Recipient};
    use restante_mail::message::Summary;
    use restante_mail::naming::Naming;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{DeliveryOutcome, Mailroom, Settings};
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;
    use restante_testdir::TestDir;
    use tokio::runtime::Handle;

    use super::*;
    use crate::index_file::IndexFile;

    const LONG: Duration = Duration::from_mins(1);

    async fn deliver(mailroom: &Mailroom) -> Summary {
        let peer = Peer { ip: None, helo: "client.test".into() };
        let address = Address::parse("ann@x.org", Alphabet::Ascii).unwrap();
        let recipients = vec![Recipient::new(address, Naming::Local).unwrap()];
        let envelope = Envelope { peer, login: None, key: None, listener: None, from: None, recipients };
        match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: x\r\n\r\n")).await.unwrap() {
            DeliveryOutcome::Stored(mut copies) => copies.remove(0),
            outcome => panic!("{outcome:?}"),
        }
    }

    /// Deletes the index and blocks its path with a directory.
    fn break_index(index_file: &IndexFile, file: &Path) {
        index_file.take_index().unwrap().discard();
        fs::create_dir(file).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn retries_to_rebuild_the_index() {
        let dir = TestDir::new();
        let directory = dir.path();
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        let (queue, index_file) =
            (Arc::new(IndexQueue::default()), Arc::new(IndexFile::new(Some(directory.to_owned()))));
        let operations = IndexOperations::new(index_file.clone(), Arc::downgrade(&mailroom), Handle::current());
        let mut indexer = Indexer::new(queue.clone(), operations);
        indexer.retry_delay = Duration::from_millis(1);
        queue.open();
        let indexer = thread::spawn(move || indexer.run());
        assert!(queue.wait_until_indexed(LONG).await, "the index is created");

        break_index(&index_file, &directory.join("search.db"));
        // Enough that some events are left in the queue after the first failed attempt to rebuild the index.
        let count = 3 * MAX_BATCH_EVENTS;
        for _ in 0..count {
            let summary = deliver(&mailroom).await;
            queue.push(|| IndexEvent::Stored(summary, None));
        }
        assert!(!queue.wait_until_indexed(Duration::from_millis(50)).await, "there is no index");
        assert!(!indexer.is_finished(), "the indexer still runs");

        fs::remove_dir(directory.join("search.db")).unwrap();
        let deadline = Instant::now() + LONG;
        while index_file.count() < count as u64 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(index_file.count(), count as u64);
        queue.inbox.close();
        tokio::task::spawn_blocking(|| indexer.join().unwrap()).await.unwrap();
    }
}
