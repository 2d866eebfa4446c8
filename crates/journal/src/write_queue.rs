//! The queue of chunks that are not written yet. Sessions fill it without waiting, and the writer thread empties it in
//! batches.

use std::mem;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};

use crate::Chunk;

/// The maximum size of the queue, in bytes, without the batch that is being written.
pub(super) const MAX_QUEUED_BYTES: usize = 16 << 20;
/// The size after which a batch is complete, in bytes.
const BATCH_BYTES: usize = 1 << 20;
/// How long closing the journal waits for the rest to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum delay of the deletion of expired chunks.
const MAX_EXPIRY_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Chunks that are not in the storage yet.
pub(super) struct WriteQueue {
    /// The size limit of the journal: of the queue and the storage together.
    max_bytes: usize,
    inbox: Inbox<QueueState>,
}

/// The data that the lock protects.
pub(super) struct QueueState {
    /// The queued chunks, without those of `in_progress`. Sizes are in bytes.
    chunks: BoundedQueue<Arc<Chunk>>,
    /// The batch that is being written, or that failed and will be retried. Its chunks are older than the queued ones.
    in_progress: Option<Arc<ChunkBatch>>,
    /// Whether the queue alone reaches the size limit, so that everything in the storage is evicted.
    is_storage_stale: bool,
    /// The number of chunks that were dropped because the queue was full, although the size limit was not reached.
    lost: u64,
    /// Chunks recorded before `deadline` expire. `applied_deadline` is the one that the storage has applied.
    deadline: Option<Timestamp>,
    applied_deadline: Option<Timestamp>,
    storage: StorageState,
}

/// Chunks that are written together.
pub(super) struct ChunkBatch {
    pub(super) chunks: Vec<Arc<Chunk>>,
    bytes: usize,
}

/// The next job of the writer thread.
pub(super) struct WriteJob {
    pub(super) batch: Arc<ChunkBatch>,
    /// Whether the storage must be emptied first.
    pub(super) clear_first: bool,
    pub(super) deadline: Option<Timestamp>,
    /// The size limit of the storage: that of the journal without the queue.
    pub(super) max_bytes: usize,
    pub(super) lost: u64,
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Pause,
    /// There is enough for another batch.
    Continue,
    /// Everything is written, and the queue is closed.
    Stop,
}

/// Whether the storage can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StorageState {
    #[default]
    Opening,
    Open,
    /// It could not be opened, or everything is written and it was closed. Queued chunks stay in memory.
    Closed,
}

impl WriteQueue {
    pub(super) fn new(max_bytes: usize) -> Self {
        let line = QueueState {
            chunks: BoundedQueue::new(max_bytes.min(MAX_QUEUED_BYTES)),
            in_progress: None,
            is_storage_stale: false,
            lost: 0,
            deadline: None,
            applied_deadline: None,
            storage: StorageState::Opening,
        };
        Self { max_bytes, inbox: Inbox::new(line) }
    }

    /// Appends a chunk. Drops the first ones if the queue is full.
    pub(super) fn add(&self, piece: Chunk) {
        let (piece, mut overtaken) = (Arc::new(piece), None);
        let bytes = piece.bytes();
        let mut contents = self.inbox.lock();
        let line = &mut contents.queue;
        // Dropped chunks are freed after the lock is released.
        let gone = line.chunks.push_evicting(piece, bytes);
        if !gone.is_empty() && self.max_bytes <= MAX_QUEUED_BYTES {
            // The queue alone reaches the limit of the journal: everything older is evicted.
            line.is_storage_stale = true;
            overtaken = line.in_progress.take();
        } else {
            line.lost += gone.len() as u64;
        }
        if line.chunks.len() == 1 {
            self.inbox.notify();
        }
        drop(contents);
        drop((gone, overtaken));
    }

    pub(super) fn forget_before(&self, deadline: Timestamp) {
        let mut gone = Vec::new();
        let mut contents = self.inbox.lock();
        let line = &mut contents.queue;
        while let Some(first) = line.chunks.pop_front_if(|first| first.at < deadline) {
            gone.push(first);
        }
        line.deadline = Some(deadline);
        if line.is_expiry_due() {
            self.inbox.notify();
        }
        drop(contents);
    }

    /// Accepts no more chunks.
    pub(super) fn close(&self) {
        self.inbox.close();
    }

    /// Waits until everything is written after [`Self::close`]. Returns false after a timeout.
    pub(super) fn wait_until_closed(&self) -> bool {
        let is_closed = |contents: &mut Contents<QueueState>| contents.queue.storage == StorageState::Closed;
        self.inbox.wait_until(Some(Instant::now() + CLOSE_TIMEOUT), is_closed).1
    }

    /// Waits until it is known whether the storage can be read, then locks the queue. Also returns whether the storage
    /// must be read.
    pub(super) fn lock_when_ready(&self) -> (MutexGuard<'_, Contents<QueueState>>, bool) {
        let is_known = |contents: &mut Contents<QueueState>| {
            contents.queue.storage != StorageState::Opening || contents.stage != Stage::Open
        };
        let (contents, _) = self.inbox.wait_until(None, is_known);
        let line = &contents.queue;
        let is_full = line.chunks.size() + line.in_progress.as_ref().map_or(0, |chunk| chunk.bytes) > self.max_bytes;
        let is_open = line.storage == StorageState::Open && contents.stage == Stage::Open;
        let has_shelf = is_open && !line.is_storage_stale && !is_full;
        (contents, has_shelf)
    }

    /// Sets whether the storage can be read.
    pub(super) fn set_storage(&self, state: StorageState) {
        self.inbox.lock().queue.storage = state;
        self.inbox.notify();
    }

    /// Waits for the next job, at most for `time`. A batch that failed comes first.
    pub(super) fn next_job(&self, time: Duration) -> WriteJob {
        let has_work = |contents: &mut Contents<QueueState>| {
            let line = &contents.queue;
            !line.chunks.is_empty()
                || line.in_progress.is_some()
                || line.is_expiry_due()
                || contents.stage != Stage::Open
        };
        let (mut contents, _) = self.inbox.wait_until(Instant::now().checked_add(time), has_work);
        let line = &mut contents.queue;
        let chunk = line.in_progress.take().unwrap_or_else(|| Arc::new(line.take_batch()));
        line.in_progress = Some(chunk.clone());
        let lost = mem::take(&mut line.lost);
        WriteJob {
            batch: chunk,
            clear_first: line.is_storage_stale,
            deadline: line.deadline,
            max_bytes: self.max_bytes.saturating_sub(line.chunks.size()),
            lost,
        }
    }

    /// Removes a job that was written. Returns what to do next.
    pub(super) fn complete(&self, batch: &WriteJob) -> NextStep {
        let mut contents = self.inbox.lock();
        let (stage, line) = (contents.stage, &mut contents.queue);
        // If the batch was evicted meanwhile, the storage that it was written to is outdated too.
        if line.in_progress.take().is_some() {
            line.is_storage_stale = false;
        }
        line.applied_deadline = batch.deadline;
        match line.chunks.size() {
            0 if stage != Stage::Open => NextStep::Stop,
            BATCH_BYTES.. => NextStep::Continue,
            _ => NextStep::Pause,
        }
    }

    /// Waits for some time, or until the queue is closed.
    pub(super) fn pause(&self, time: Duration) {
        self.inbox.pause(time);
    }

    /// Returns whether the queue is closed.
    pub(super) fn is_closing(&self) -> bool {
        self.inbox.is_closed()
    }
}

impl QueueState {
    /// Returns the chunks that may not be in the storage, in the order in which they were appended.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        // Writing can take long or fail repeatedly, so expired chunks of the batch are skipped here.
        let is_due = |piece: &&Arc<Chunk>| self.deadline.is_some_and(|deadline| piece.at < deadline);
        let writing = self.in_progress.iter().flat_map(|chunk| &chunk.chunks);
        writing.skip_while(is_due).chain(self.chunks.iter())
    }

    /// Removes the next batch.
    fn take_batch(&mut self) -> ChunkBatch {
        let (pieces, bytes) = self.chunks.take(usize::MAX, BATCH_BYTES);
        ChunkBatch { chunks: pieces, bytes }
    }

    /// Returns whether the storage must apply a later deadline.
    fn is_expiry_due(&self) -> bool {
        match (self.deadline, self.applied_deadline) {
            (Some(deadline), Some(kept)) => deadline.duration_since(kept) > MAX_EXPIRY_DELAY,
            (deadline, _) => deadline.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::chunk;

    /// Returns the queued sessions, and whether the storage must be read too.
    fn seen(waiting: &WriteQueue) -> (Vec<u64>, bool) {
        waiting.set_storage(StorageState::Open);
        let (contents, has_shelf) = waiting.lock_when_ready();
        (contents.queue.chunks().map(|piece| piece.session.number()).collect(), has_shelf)
    }

    fn add(waiting: &WriteQueue, sessions: std::ops::RangeInclusive<u64>) {
        for session in sessions {
            waiting.add(chunk(session, 0, "head"));
        }
    }

    #[test]
    fn what_is_overtaken_by_a_full_journal_counts_no_more() {
        let each = chunk(1, 0, "head").bytes();
        let waiting = WriteQueue::new(3 * each);
        add(&waiting, 1..=2);
        let batch = waiting.next_job(Duration::MAX);
        assert_eq!(seen(&waiting), (vec![1, 2], true));
        add(&waiting, 3..=4);
        assert_eq!(seen(&waiting), (vec![1, 2, 3, 4], false), "more than the journal holds, without the shelf");
        add(&waiting, 5..=6);
        assert_eq!(seen(&waiting), (vec![4, 5, 6], false), "3 had to go, and those before it");
        waiting.complete(&batch);
        assert_eq!(seen(&waiting), (vec![4, 5, 6], false));
        let batch = waiting.next_job(Duration::MAX);
        assert!(batch.clear_first, "what was written before 3 goes");
        waiting.complete(&batch);
        assert_eq!((seen(&waiting), waiting.inbox.lock().queue.lost), ((vec![], true), 0));
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_in_its_order() {
        let waiting = WriteQueue::new(1 << 20);
        add(&waiting, 1..=2);
        let failed = waiting.next_job(Duration::MAX);
        add(&waiting, 3..=3);
        let again = waiting.next_job(Duration::MAX);
        assert!(Arc::ptr_eq(&failed.batch, &again.batch));
        assert_eq!(seen(&waiting), (vec![1, 2, 3], true));
        waiting.complete(&again);
        assert_eq!(seen(&waiting), (vec![3], true));
    }

    #[test]
    fn what_is_too_old_is_not_told_while_it_is_written() {
        let waiting = WriteQueue::new(1 << 20);
        add(&waiting, 1..=3);
        let batch = waiting.next_job(Duration::MAX);
        add(&waiting, 4..=5);
        waiting.forget_before(Timestamp::from_second(3).unwrap());
        assert_eq!(seen(&waiting), (vec![3, 4, 5], true));
        waiting.forget_before(Timestamp::from_second(5).unwrap());
        assert_eq!(seen(&waiting), (vec![5], true));
        waiting.complete(&batch);
        assert!(waiting.inbox.lock().queue.is_expiry_due(), "the shelf does not know of it");
    }
}
