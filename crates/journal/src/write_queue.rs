//! The queue of chunks that are not written yet. Sessions fill it without waiting, and the writer thread empties it in
//! batches. In a journal without a storage, chunks stay here until they are evicted.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::MutexGuard;
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};

use crate::Chunk;

/// The maximum size of the queue, in bytes, without the batch that is being written, if there is a storage.
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
    /// The size limit of the queue alone.
    max_queued_bytes: usize,
    pub(super) inbox: Inbox<QueueState>,
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
    /// There is none, or it could not be opened, or everything is written and it was closed. Queued chunks stay in memory.
    Closed,
}

impl WriteQueue {
    pub(super) fn new(max_bytes: usize, max_queued_bytes: usize) -> Self {
        let state = QueueState {
            chunks: BoundedQueue::new(max_bytes.min(max_queued_bytes)),
            in_progress: None,
            is_storage_stale: false,
            lost: 0,
            deadline: None,
            applied_deadline: None,
            storage: StorageState::Opening,
        };
        Self { max_bytes, max_queued_bytes, inbox: Inbox::new(state) }
    }

    /// Appends a chunk. Drops the first ones if the queue is full.
    pub(super) fn add(&self, chunk: Chunk) {
        let (chunk, mut superseded) = (Arc::new(chunk), None);
        let bytes = chunk.bytes();
        let mut contents = self.inbox.lock();
        let state = &mut contents.queue;
        // Dropped chunks are freed after the lock is released.
        let dropped = state.chunks.push_evicting(chunk, bytes);
        if !dropped.is_empty() && self.max_bytes <= self.max_queued_bytes {
            // The queue alone reaches the limit of the journal: everything older is evicted.
            state.is_storage_stale = true;
            superseded = state.in_progress.take();
        } else {
            state.lost += dropped.len() as u64;
        }
        if state.chunks.len() == 1 {
            self.inbox.notify();
        }
        drop(contents);
        drop((dropped, superseded));
    }

    pub(super) fn expire_before(&self, deadline: Timestamp) {
        let mut dropped = Vec::new();
        let mut contents = self.inbox.lock();
        let state = &mut contents.queue;
        while let Some(first) = state.chunks.pop_front_if(|first| first.at < deadline) {
            dropped.push(first);
        }
        state.deadline = Some(deadline);
        if state.is_expiry_due() {
            self.inbox.notify();
        }
        drop(contents);
    }

    /// Waits until everything is written after the inbox was closed. Returns false after a timeout.
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
        let state = &contents.queue;
        let is_full = state.chunks.size() + state.in_progress.as_ref().map_or(0, |batch| batch.bytes) > self.max_bytes;
        let is_open = state.storage == StorageState::Open && contents.stage == Stage::Open;
        let has_storage = is_open && !state.is_storage_stale && !is_full;
        (contents, has_storage)
    }

    /// Sets whether the storage can be read.
    pub(super) fn set_storage(&self, state: StorageState) {
        self.inbox.lock().queue.storage = state;
        self.inbox.notify();
    }

    /// Waits for the next job, at most for `time`. A batch that failed comes first.
    pub(super) fn next_job(&self, time: Duration) -> WriteJob {
        let has_work = |contents: &mut Contents<QueueState>| {
            let state = &contents.queue;
            !state.chunks.is_empty()
                || state.in_progress.is_some()
                || state.is_expiry_due()
                || contents.stage != Stage::Open
        };
        let (mut contents, _) = self.inbox.wait_until(Instant::now().checked_add(time), has_work);
        let state = &mut contents.queue;
        let batch = state.in_progress.take().unwrap_or_else(|| {
            let (chunks, bytes) = state.chunks.take(usize::MAX, BATCH_BYTES);
            Arc::new(ChunkBatch { chunks, bytes })
        });
        state.in_progress = Some(batch.clone());
        let lost = mem::take(&mut state.lost);
        WriteJob {
            batch,
            clear_first: state.is_storage_stale,
            deadline: state.deadline,
            max_bytes: self.max_bytes.saturating_sub(state.chunks.size()),
            lost,
        }
    }

    /// Removes a job that was written. Returns what to do next.
    pub(super) fn complete(&self, job: &WriteJob) -> NextStep {
        let mut contents = self.inbox.lock();
        let is_open = contents.stage == Stage::Open;
        let state = &mut contents.queue;
        // If the batch was evicted meanwhile, the storage that it was written to is outdated too.
        if state.in_progress.take().is_some() {
            state.is_storage_stale = false;
        }
        state.applied_deadline = job.deadline;
        match state.chunks.size() {
            0 if !is_open => NextStep::Stop,
            BATCH_BYTES.. => NextStep::Continue,
            _ => NextStep::Pause,
        }
    }
}

impl QueueState {
    /// Returns the chunks that may not be in the storage, in the order in which they were appended.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        // Writing can take long or fail repeatedly, so expired chunks of the batch are skipped here.
        let is_expired = |chunk: &&Arc<Chunk>| self.deadline.is_some_and(|deadline| chunk.at < deadline);
        let in_progress = self.in_progress.iter().flat_map(|batch| &batch.chunks);
        in_progress.skip_while(is_expired).chain(self.chunks.iter())
    }

    /// Returns whether the storage must apply a later deadline.
    fn is_expiry_due(&self) -> bool {
        match (self.deadline, self.applied_deadline) {
            (Some(deadline), Some(applied)) => deadline.duration_since(applied) > MAX_EXPIRY_DELAY,
            (deadline, _) => deadline.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance::chunk;

    /// Returns the queued sessions, and whether the storage must be read too.
    fn visible(queue: &WriteQueue) -> (Vec<u64>, bool) {
        queue.set_storage(StorageState::Open);
        let (contents, has_storage) = queue.lock_when_ready();
        (contents.queue.chunks().map(|chunk| chunk.session.number()).collect(), has_storage)
    }

    fn add(queue: &WriteQueue, sessions: std::ops::RangeInclusive<u64>) {
        for session in sessions {
            queue.add(chunk(session, 0, "head"));
        }
    }

    #[test]
    fn full_queue_supersedes_batch_and_storage() {
        let chunk_bytes = chunk(1, 0, "head").bytes();
        let queue = WriteQueue::new(3 * chunk_bytes, MAX_QUEUED_BYTES);
        add(&queue, 1..=2);
        let job = queue.next_job(Duration::MAX);
        assert_eq!(visible(&queue), (vec![1, 2], true));
        add(&queue, 3..=4);
        assert_eq!(visible(&queue), (vec![1, 2, 3, 4], false), "the queue alone exceeds the limit");
        add(&queue, 5..=6);
        assert_eq!(visible(&queue), (vec![4, 5, 6], false), "3 and everything before it are evicted");
        queue.complete(&job);
        assert_eq!(visible(&queue), (vec![4, 5, 6], false));
        let job = queue.next_job(Duration::MAX);
        assert!(job.clear_first, "everything written before 3 is evicted");
        queue.complete(&job);
        assert_eq!((visible(&queue), queue.inbox.lock().queue.lost), ((vec![], true), 0));
    }

    #[test]
    fn expired_chunks_free_all_memory() {
        let queue = WriteQueue::new(1 << 20, 1 << 20);
        add(&queue, 1..=100);
        queue.expire_before(Timestamp::MAX);
        let contents = queue.inbox.lock();
        assert_eq!((contents.queue.chunks.len(), contents.queue.chunks.size()), (0, 0));
    }

    #[test]
    fn failed_batch_is_retried_in_order() {
        let queue = WriteQueue::new(1 << 20, MAX_QUEUED_BYTES);
        add(&queue, 1..=2);
        let failed = queue.next_job(Duration::MAX);
        add(&queue, 3..=3);
        let retried = queue.next_job(Duration::MAX);
        assert!(Arc::ptr_eq(&failed.batch, &retried.batch));
        assert_eq!(visible(&queue), (vec![1, 2, 3], true));
        queue.complete(&retried);
        assert_eq!(visible(&queue), (vec![3], true));
    }

    #[test]
    fn expired_chunks_are_hidden_while_being_written() {
        let queue = WriteQueue::new(1 << 20, MAX_QUEUED_BYTES);
        add(&queue, 1..=3);
        let job = queue.next_job(Duration::MAX);
        add(&queue, 4..=5);
        queue.expire_before(Timestamp::from_second(3).unwrap());
        assert_eq!(visible(&queue), (vec![3, 4, 5], true));
        queue.expire_before(Timestamp::from_second(5).unwrap());
        assert_eq!(visible(&queue), (vec![5], true));
        queue.complete(&job);
        assert!(queue.inbox.lock().queue.is_expiry_due(), "the storage has not applied it");
    }
}
