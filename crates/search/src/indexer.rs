//! The librarian: a thread that puts messages into the index, behind the deliveries and with what time they leave over. It hears of
//! changes through the intake, reads mail from the store, and asks the store for everything that it may have missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::MessageId;
use restante_worker::lower_priority;

use crate::catch_up::CatchUp;
use crate::index::{Changes, is_damage};
use crate::index_operations::{IndexOperations, IndexingError};
use crate::index_queue::{Batch, IndexEvent, IndexQueue, Resync};

/// How many changes are made at once.
const MAX_BATCH_EVENTS: usize = 512;
/// How long changes are gathered when nobody waits for them: one large step costs much less than many small ones.
const BATCH_DELAY: Duration = Duration::from_millis(250);
/// How long it is waited after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(30);
/// How long it is waited before a damaged index is made again.
const REBUILD_DELAY: Duration = Duration::from_millis(100);

/// See the file's documentation.
pub(crate) struct Indexer {
    queue: Arc<IndexQueue>,
    operations: IndexOperations,
    catch_up: Option<CatchUp>,
    /// How long it is waited after a failure.
    retry_delay: Duration,
    /// Whether the operator was told that something is wrong.
    has_logged_error: bool,
}

impl Indexer {
    /// A librarian, who works on any thread.
    pub(crate) fn new(intake: Arc<IndexQueue>, filing: IndexOperations) -> Self {
        Self { queue: intake, operations: filing, catch_up: None, retry_delay: RETRY_DELAY, has_logged_error: false }
    }

    /// Works until the intake is closed.
    pub(crate) fn run(mut self) {
        if let Err(error) = lower_priority() {
            tracing::debug!(%error, "the search index is filled at the usual priority");
        }
        while !self.open_index() {
            if self.queue.pause(self.retry_delay) {
                return;
            }
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
                Err(trouble) => {
                    self.recover_from(&trouble);
                    self.queue.mark_done(count, false);
                    if self.queue.pause(if trouble.is_damage() { REBUILD_DELAY } else { self.retry_delay }) {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the index, and finds out what it lacks.
    fn open_index(&mut self) -> bool {
        match self.operations.index_file.open() {
            Ok(Some(through)) if !self.operations.is_shared() => {
                self.queue.record_id(through);
                self.queue.request_resync(Resync::NewerThan(through));
            }
            // While this node was away, others may have deleted what is in the index.
            Ok(_) => self.queue.request_resync(Resync::Everything),
            Err(error) => {
                self.log_error_once(&error);
                return false;
            }
        }
        true
    }

    fn process_batch(&mut self, batch: Batch) -> Result<(), IndexingError> {
        if let Some(missed) = batch.resync {
            if missed == Resync::Rebuild {
                self.rebuild_index()?;
            }
            self.catch_up = Some(match (missed, self.catch_up.take()) {
                (Resync::NewerThan(id), None) => CatchUp::above(id),
                _ => CatchUp::everything(),
            });
            // What is stored from now on is heard of.
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
        if let Some(index) = self.operations.index_file.take() {
            tracing::warn!("the search index is damaged and is made again");
            index.discard();
        }
        self.operations.index_file.open()?;
        Ok(())
    }

    fn apply_events(&mut self, news: Vec<IndexEvent>) -> Result<(), IndexingError> {
        let mut changes = Changes::default();
        let mut stored = Vec::new();
        for news in news {
            match news {
                IndexEvent::Stored(mailbox, id) => stored.push((mailbox, id)),
                IndexEvent::SeenChanged(id, seen) => changes.seen.push((id, seen)),
                IndexEvent::Deleted(id) => changes.removed.push(id),
                // As it is now. When it changes after that, there are news of it.
                IndexEvent::Recheck(mailbox, id) => match self.operations.find(&mailbox, id)? {
                    Some(summary) => changes.seen.push((id, summary.seen)),
                    None => changes.removed.push(id),
                },
            }
        }
        let gone: HashSet<MessageId> = changes.removed.iter().copied().collect();
        let mut bytes = 0;
        for (mailbox, id) in stored {
            if gone.contains(&id) {
                continue;
            }
            let Some(summary) = self.operations.find(&mailbox, id)? else { continue };
            self.operations.add_to_batch(summary, &mut changes.added, &mut bytes)?;
        }
        self.operations.write(changes)
    }

    /// After a failure, everything is looked at again, or the index is made again.
    fn recover_from(&mut self, trouble: &IndexingError) {
        self.catch_up = None;
        match trouble {
            IndexingError::Index(error) if !is_damage(error) => self.log_error_once(error),
            IndexingError::Store(error) => self.log_error_once(error),
            IndexingError::DiskFull => self.log_error_once(&"the little space that is left on the disk is for mail"),
            // What was wrong with the index has been told.
            IndexingError::Index(_) | IndexingError::NoIndex | IndexingError::ShutDown => {}
        }
        let is_lost = trouble.is_damage() || self.operations.index_file.is_closed();
        self.queue.request_resync(if is_lost { Resync::Rebuild } else { Resync::Everything });
    }

    /// Tells the operator once.
    fn log_error_once(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.has_logged_error, true) {
            tracing::error!(%error, "messages cannot be put into the search index; it is tried again");
        }
    }

    fn shut_down(self, batch: &Batch) {
        let is_whole = batch.is_clean
            && batch.events.is_empty()
            && batch.resync.is_none()
            && self.catch_up.is_none()
            && !self.operations.has_gap;
        let Some(index) = self.operations.index_file.take() else { return };
        if !is_whole || !self.operations.index_file.is_persistent() {
            return;
        }
        if let Err(error) = index.close(self.queue.highest_id()) {
            tracing::warn!(%error, "the search index was not closed in good order");
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
        let envelope = Envelope { peer, from: None, recipients };
        match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: x\r\n\r\n")).await.unwrap() {
            DeliveryOutcome::Stored(mut copies) => copies.remove(0),
            DeliveryOutcome::Discarded => panic!("discarded"),
        }
    }

    /// Takes the index away and puts something into its place that is none and stays.
    fn break_index(shelf: &IndexFile, file: &Path) {
        shelf.take().unwrap().discard();
        fs::create_dir(file).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_index_that_cannot_be_made_again_at_once_is_made_again_later() {
        let dir = TestDir::new();
        let directory = dir.path();
        let store = Arc::new(MemoryStore::new(Limits { messages_per_mailbox: 0, ..Limits::default() }));
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        let (intake, shelf) = (Arc::new(IndexQueue::default()), Arc::new(IndexFile::new(Some(directory.to_owned()))));
        let filing = IndexOperations::new(shelf.clone(), Arc::downgrade(&mailroom), Handle::current());
        let mut librarian = Indexer::new(intake.clone(), filing);
        librarian.retry_delay = Duration::from_millis(1);
        intake.open();
        let librarian = thread::spawn(move || librarian.run());
        assert!(intake.wait_until_indexed(LONG).await, "an index is made");

        break_index(&shelf, &directory.join("search.db"));
        // So many that some are left in the box when it was tried in vain to make the index again.
        let count = 3 * MAX_BATCH_EVENTS;
        for _ in 0..count {
            let Summary { mailbox, id, .. } = deliver(&mailroom).await;
            intake.push(|| IndexEvent::Stored(mailbox, id));
        }
        assert!(!intake.wait_until_indexed(Duration::from_millis(50)).await, "there is nothing to put them into");
        assert!(!librarian.is_finished(), "the librarian stays");

        fs::remove_dir(directory.join("search.db")).unwrap();
        let deadline = Instant::now() + LONG;
        while shelf.count() < count as u64 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(shelf.count(), count as u64);
        intake.close();
        tokio::task::spawn_blocking(|| librarian.join().unwrap()).await.unwrap();
    }
}
