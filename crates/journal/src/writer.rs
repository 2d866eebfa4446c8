//! The thread that writes queued chunks to the storage.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_worker::{ThreadPriority, Worker, lower_thread_priority};

use super::write_queue::{NextStep, StorageState, WriteJob, WriteQueue};

/// The name of the thread.
const THREAD_NAME: &str = "journal";

/// The pause between batches, so that several sessions are written together. There is none if another batch is
/// complete.
const BATCH_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum pause, for a storage that was slow once.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The minimum time between two log lines about lost chunks.
const LOSS_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// A persistent storage of chunks.
pub(super) trait Storage: Sized + Send + 'static {
    /// The pause after an error.
    const RETRY_DELAY: Duration;
    /// The minimum pause after a write, as a multiple of the time that the write took. It limits the load on a shared
    /// database.
    const PAUSE_FACTOR: u32 = 0;
    /// The maximum time without a write, even if there is nothing to write. The database needs a heartbeat.
    const MAX_IDLE_TIME: Duration = Duration::MAX;

    /// Runs a job. After an error, whose text is for the operator, the job is repeated; a part of it may already be
    /// done.
    fn write(&mut self, job: &WriteJob) -> Result<(), String>;

    /// Repairs the storage after an error, after the pause.
    fn repair(&mut self) {}

    /// Closes the storage. Everything is written.
    fn close(self) {}
}

/// The handle of the writer thread. Dropping it writes what is left, but with a timeout: a database may not respond.
pub(super) struct WriterThread {
    queue: Arc<WriteQueue>,
    /// `None` after it was closed.
    thread: Option<Worker<Option<Finish>>>,
}

/// Writes the rest and closes the storage.
type Finish = Box<dyn FnOnce() + Send>;

impl WriterThread {
    /// Starts the thread. The thread also opens the storage, so that the caller does not wait for it. If that fails,
    /// the error, a sentence for the operator, is logged, and transcripts are kept in memory only.
    pub(super) fn start<S: Storage>(
        queue: Arc<WriteQueue>,
        open: impl FnOnce() -> Result<S, String> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = queue.clone();
        let thread = Worker::spawn(THREAD_NAME, move || run(shared, open))?;
        Ok(Self { queue, thread: Some(thread) })
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.inbox.close();
        let Some(thread) = self.thread.take() else { return };
        // A lowered priority cannot be raised again, so another thread finishes. The old one could take long on busy
        // processors.
        let finish = move || {
            if let Ok(Some(finish)) = thread.join() {
                finish();
            }
        };
        if Worker::spawn(THREAD_NAME, finish).is_err() || !self.queue.wait_until_closed() {
            tracing::warn!("some session transcripts could not be written in time");
        }
    }
}

/// Writes until the queue is closed. If there is a storage, returns the function that writes the rest.
fn run<S: Storage>(queue: Arc<WriteQueue>, open: impl FnOnce() -> Result<S, String>) -> Option<Finish> {
    let storage = match open() {
        Ok(storage) => storage,
        Err(error) => {
            tracing::error!(error, "session transcripts are kept in memory only");
            queue.set_storage(StorageState::Closed);
            return None;
        }
    };
    queue.set_storage(StorageState::Open);
    // Not earlier, because queries wait until the storage is open.
    if let Err(error) = lower_thread_priority(ThreadPriority::Lowest) {
        tracing::debug!(%error, "cannot lower the priority of the thread that writes session transcripts");
    }
    let mut writer = Writer { storage, queue, loss_log: LossLog::default() };
    writer.write_until_closed();
    Some(Box::new(|| writer.finish()))
}

/// The state of the thread.
struct Writer<S> {
    storage: S,
    queue: Arc<WriteQueue>,
    loss_log: LossLog,
}

impl<S: Storage> Writer<S> {
    fn write_until_closed(&mut self) {
        let mut is_failing = false;
        loop {
            let job = self.queue.next_job(S::MAX_IDLE_TIME);
            if self.queue.inbox.is_closed() {
                return;
            }
            let started = Instant::now();
            match self.write(&job) {
                Ok(next) => {
                    is_failing = false;
                    let pause = if next == NextStep::Pause { BATCH_INTERVAL } else { Duration::ZERO };
                    self.queue.inbox.pause(pause.max((started.elapsed() * S::PAUSE_FACTOR).min(MAX_PAUSE)));
                }
                Err(error) => {
                    if !mem::replace(&mut is_failing, true) {
                        tracing::error!(error, "cannot write session transcripts, retrying");
                    }
                    self.queue.inbox.pause(S::RETRY_DELAY);
                    self.storage.repair();
                }
            }
        }
    }

    /// Writes the rest and closes the storage.
    fn finish(mut self) {
        loop {
            let job = self.queue.next_job(S::MAX_IDLE_TIME);
            match self.write(&job) {
                Ok(NextStep::Stop) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(error, "cannot write the last session transcripts");
                    break;
                }
            }
        }
        // The caller of `drop` may open the same journal next.
        self.storage.close();
        self.queue.set_storage(StorageState::Closed);
    }

    /// Writes a batch and removes it from the queue.
    fn write(&mut self, job: &WriteJob) -> Result<NextStep, String> {
        if let Some(chunks) = self.loss_log.record(job.lost, Instant::now()) {
            tracing::warn!(chunks, "session transcripts arrive faster than they can be written; some are lost");
        }
        self.storage.write(job)?;
        Ok(self.queue.complete(job))
    }
}

/// Counts lost chunks until they are logged.
#[derive(Default)]
struct LossLog {
    lost_chunks: u64,
    last_logged: Option<Instant>,
}

impl LossLog {
    /// Adds lost chunks. If a log line is due, returns the number since the last one.
    fn record(&mut self, more: u64, now: Instant) -> Option<u64> {
        self.lost_chunks += more;
        let is_throttled =
            self.last_logged.is_some_and(|logged| now.saturating_duration_since(logged) < LOSS_LOG_INTERVAL);
        if self.lost_chunks == 0 || is_throttled {
            return None;
        }
        self.last_logged = Some(now);
        Some(mem::take(&mut self.lost_chunks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance::{chunk, mail_chunk};
    use crate::write_queue::MAX_QUEUED_BYTES;

    /// A storage that counts chunks.
    #[derive(Default)]
    struct CountingStorage(usize);

    impl Storage for CountingStorage {
        const RETRY_DELAY: Duration = Duration::ZERO;

        fn write(&mut self, job: &WriteJob) -> Result<(), String> {
            self.0 += job.batch.chunks.len();
            Ok(())
        }
    }

    #[test]
    fn writes_full_batches_without_pause_and_loses_nothing() {
        let queue = Arc::new(WriteQueue::new(8 * MAX_QUEUED_BYTES, MAX_QUEUED_BYTES));
        let mut writer = Writer { storage: CountingStorage(0), queue: queue.clone(), loss_log: LossLog::default() };
        let long = "x".repeat(60_000);
        for session in 1..=100 {
            queue.add(chunk(session, 0, &long));
        }
        queue.add(mail_chunk(101, 1, "bob", 7));
        let mut steps = vec![];
        while steps.last() != Some(&NextStep::Pause) {
            steps.push(writer.write(&queue.next_job(Duration::MAX)).unwrap());
        }
        // About 6 MB: five batches, and the rest waits for more.
        assert_eq!(
            steps,
            [NextStep::Continue, NextStep::Continue, NextStep::Continue, NextStep::Continue, NextStep::Pause]
        );
        queue.inbox.close();
        assert_eq!(writer.write(&queue.next_job(Duration::MAX)), Ok(NextStep::Stop));
        assert_eq!((writer.storage.0, writer.loss_log.lost_chunks, writer.loss_log.last_logged), (101, 0, None));
    }

    #[test]
    fn lost_chunks_are_logged_at_intervals() {
        let (mut loss_log, start) = (LossLog::default(), Instant::now());
        let logged = [(0, 0), (5, 1), (3, 2), (4, 50), (0, 61), (0, 200), (1, 201)]
            .map(|(lost, second)| loss_log.record(lost, start + Duration::from_secs(second)));
        assert_eq!(logged, [None, Some(5), None, None, Some(7), None, Some(1)]);
    }
}
