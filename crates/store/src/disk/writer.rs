//! The thread that makes all changes of a data directory. All waiting jobs form a batch: while it is written to disk, the
//! next jobs collect in the queue. So a single message does not wait for others.
//!
//! The order of a batch of new messages makes it safe:
//!
//! 1. the records are appended to the active segment;
//! 2. they are synced;
//! 3. the rows that refer to them are inserted in the open transaction;
//! 4. the results are sent to the callers.
//!
//! The transaction is committed when no job arrives for a moment, when it is large, before a query, and with jobs that are
//! not deferred, such as deletions. So its pages are written once for many messages. SQLite syncs commits only at
//! checkpoints. After a crash, the rows of acknowledged messages are created again from their records (see
//! [`replay`](super::replay)). Jobs that are not deferred are acknowledged after their commit is synced.
//!
//! An error in step 1 leaves garbage that the next record overwrites. After an error in step 2, the state of the disk is
//! unknown. Then the segment is closed and the next record starts a new one. After an error in step 3 or of a commit, the
//! connection is closed. The next job opens it again, loads the statistics, and replays the records of the transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_mail::message::MessageId;
use restante_platform::FileId;
use rusqlite::Connection;
use tokio::sync::mpsc::Receiver;

use super::active_segment::ActiveSegment;
use super::checkpoint::{Checkpointer, sync_wal};
use super::directory::{Directory, Lock};
use super::error::segment_error;
use super::job::{Job, Received, receive};
use super::reclaim::Reclaim;
use super::record::{PreparedCopy, Record};
use super::statistics::Statistics;
use super::transaction::TransactionError;
use super::uncommitted::Uncommitted;
use super::{Durability, OpenError, Settings, Shared, schema};
use crate::{NewCopy, Result, StoreError};

/// The maximum number of jobs and of message bytes in one batch.
const MAX_BATCH_JOBS: usize = 256;
const MAX_BATCH_BYTES: usize = 16 << 20;
/// How long the writer waits for another job before it commits the open transaction. Clients that send one message after
/// the other need less.
const COMMIT_DELAY: Duration = Duration::from_millis(2);

pub(super) struct Writer {
    pub(super) directory: Directory,
    pub(super) settings: Settings,
    pub(super) shared: Arc<Shared>,
    /// `None` after an error that leaves the state of the file unknown.
    pub(super) database: Option<Connection>,
    /// The identity of the database file.
    pub(super) database_file: FileId,
    pub(super) statistics: Statistics,
    pub(super) uncommitted: Uncommitted,
    pub(super) active_segment: ActiveSegment,
    pub(super) checkpointer: Checkpointer,
    pub(super) reclaim: Reclaim,
    /// The last successful check of files and free space.
    pub(super) last_check: Option<PassedCheck>,
    /// Whether the end of the last segment may be missing on disk.
    pub(super) needs_end_check: bool,
    /// Whether the tables of a new database and the entry of its log are synced.
    is_directory_synced: bool,
    /// The segment from which messages are being replayed.
    pub(super) replayed_segment: Option<u64>,
    /// The highest id in a record that was written. An id is not used again, even if its message was not stored.
    last_written_id: MessageId,
    _lock: Lock,
}

/// A successful check of files and free space.
pub(super) struct PassedCheck {
    pub(super) at: Instant,
    /// The number of bytes that may be written before the next check.
    pub(super) remaining_bytes: u64,
}

impl Writer {
    pub(super) fn open(
        directory: Directory,
        settings: Settings,
        shared: Arc<Shared>,
        lock: Lock,
    ) -> Result<Self, OpenError> {
        // A log means that the store was not closed. With relaxed durability, a database can be closed before the
        // records that it refers to are synced.
        let needs_end_check = directory.wal_bytes() > 0 || settings.durability == Durability::Relaxed;
        directory.create_database(&shared.segments)?;
        let checkpointer =
            Checkpointer::new(directory.database_path(), shared.segments.clone(), settings.durability)
                .map_err(|error| OpenError::Database(format!("cannot start the checkpoint thread: {error}")))?;
        let database = connect(&directory, &settings, &checkpointer)?;
        let database_file = directory.database_file_id().map_err(|error| OpenError::Database(error.to_string()))?;
        let statistics = Statistics::load(&database)?;
        statistics.validate(&database)?;
        let files = shared.segments.ids().map_err(|error| OpenError::Database(error.to_string()))?;
        let last_file = files.into_iter().chain(statistics.segments.keys().copied()).max().unwrap_or(0);
        let active_segment = ActiveSegment::new(shared.segments.clone(), settings.segment_bytes, last_file);
        let mut writer = Self {
            directory,
            settings,
            shared,
            database: Some(database),
            database_file,
            statistics,
            uncommitted: Uncommitted::default(),
            active_segment,
            checkpointer,
            reclaim: Reclaim::default(),
            last_check: None,
            needs_end_check,
            is_directory_synced: false,
            replayed_segment: None,
            last_written_id: MessageId::ZERO,
            _lock: lock,
        };
        match writer.replay() {
            Ok(()) => {
                let last = writer.statistics.segments.last_key_value().map(|(id, stats)| (*id, stats.end));
                let (last, end) = last.unwrap_or_default();
                writer.active_segment.resume(last, end);
                // It was not the active segment while messages were replayed.
                writer.reclaim.sparse.remove(&last);
                writer.shared.store_version.set(writer.statistics.counters.last_version);
            }
            // The next job tries it again.
            Err(error) => {
                tracing::error!(%error, "cannot restore the latest messages");
                writer.close_database();
            }
        }
        writer.reclaim.mark_sparse_segments(&writer.statistics, writer.active_segment.current());
        Ok(writer)
    }

    /// Runs jobs until the queue is closed.
    pub(super) fn run(mut self, mut queue: Receiver<Job>) {
        self.catch_panic(Self::recover);
        let mut batches = 0_u64;
        while let Some(job) = self.next_job(&mut queue, batches) {
            // Gives other tasks the chance to add a job to this batch.
            std::thread::yield_now();
            let mut bytes = job.bytes();
            let mut jobs = vec![job];
            while jobs.len() < MAX_BATCH_JOBS && bytes < MAX_BATCH_BYTES {
                let Ok(job) = queue.try_recv() else { break };
                bytes += job.bytes();
                jobs.push(job);
            }
            let (deferred, committed): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_deferred);
            self.process_jobs(deferred);
            self.process_jobs(committed);
            if self.uncommitted.is_due() {
                self.catch_panic(Self::commit_in_background);
            }
            batches += 1;
        }
        self.catch_panic(Self::commit_in_background);
        // Closing the database syncs it, but with relaxed durability the active segment must be synced here.
        self.active_segment.close();
    }

    /// Waits for a job. Commits and reclaims space meanwhile. Also does a step of the latter every eight batches if jobs
    /// never stop.
    fn next_job(&mut self, queue: &mut Receiver<Job>, batches: u64) -> Option<Job> {
        if self.reclaim.is_due() && batches.is_multiple_of(8) {
            self.catch_panic(Self::reclaim_step);
        }
        loop {
            let timeout = match (self.uncommitted.is_empty(), self.reclaim.is_due()) {
                (false, _) => Some(COMMIT_DELAY),
                (true, true) => Some(Duration::ZERO),
                (true, false) => {
                    self.shared.watchdog.set_idle();
                    None
                }
            };
            match receive(queue, timeout) {
                Received::Job(job) => return Some(job),
                Received::Closed => return None,
                Received::Timeout if self.uncommitted.is_empty() => self.catch_panic(Self::reclaim_step),
                Received::Timeout => self.catch_panic(Self::commit_in_background),
            }
        }
    }

    /// Runs work that no job waits for. A panic is not retried: the store must continue.
    fn catch_panic(&mut self, work: fn(&mut Self)) {
        self.shared.watchdog.set_busy(Instant::now());
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.reset_after_panic();
            self.reclaim.abandon();
        }
    }

    fn reset_after_panic(&mut self) {
        self.active_segment.undo_append();
        self.active_segment.close();
        self.close_database();
    }

    /// Closes the database after an error, which rolls the open transaction back. [`Self::ensure_open`] replays it.
    pub(super) fn close_database(&mut self) {
        self.database = None;
        self.uncommitted = Uncommitted::default();
        // Rows that the scan has passed may be different after the replay.
        if let Some(scan) = self.reclaim.current_scan.take() {
            self.reclaim.sparse.insert(scan.segment);
        }
        self.shared.mailbox_cache.lock().clear();
        self.shared.store_version.forget();
    }

    /// Runs all jobs in one batch. If it is rolled back, runs each in its own: a message that does not fit, or that cannot
    /// be stored for another reason, must not make others fail, and a deletion may free space.
    fn process_jobs(&mut self, mut jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        self.shared.watchdog.set_busy(Instant::now());
        // After a panic these jobs fail, but the store must continue.
        let result = catch_unwind(AssertUnwindSafe(|| self.run_jobs(&mut jobs))).unwrap_or_else(|_| {
            self.reset_after_panic();
            Err(TransactionError::InDoubt(StoreError::Broken("the writer panicked".to_owned())))
        });
        if result.is_err() {
            self.last_check = None;
        }
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(TransactionError::RolledBack(error)) if jobs.len() > 1 => {
                if matches!(error, StoreError::NoSpace(_)) {
                    self.free_space();
                }
                for job in jobs {
                    self.process_jobs(vec![job]);
                }
                return;
            }
            Err(error) => Err(error.into_error()),
        };
        // A successful deletion does not show that messages can be stored.
        if outcome.is_err() || jobs.iter().any(Job::needs_space) {
            self.shared.record_result(outcome.as_ref().err());
        }
        let is_committed = self.uncommitted.is_empty();
        for job in jobs {
            job.finish(outcome.clone());
        }
        if is_committed {
            self.run_maintenance();
        }
    }

    fn run_jobs(&mut self, jobs: &mut [Job]) -> Result<(), TransactionError> {
        self.ensure_open()?;
        if jobs.iter().any(Job::needs_space) {
            self.preflight(jobs.iter().map(|job| job.bytes() as u64).sum())?;
        }
        let version = self.statistics.counters.last_version;
        let last_id = self.statistics.counters.last_id.max(self.last_written_id);
        let (records, copies) = prepare_records(jobs, last_id);
        self.last_written_id = copies.iter().flatten().map(|copy| copy.id).max().unwrap_or(last_id);
        self.transact(&records, |changes, database, locations| {
            let mut written = copies.iter().map(Vec::as_slice).zip(locations);
            for job in &mut *jobs {
                job.apply(changes, database, &mut written)?;
            }
            Ok(())
        })?;
        if jobs.iter().all(Job::is_deferred) {
            return Ok(());
        }
        let has_changed = self.statistics.counters.last_version != version;
        let needs_sync = has_changed && jobs.iter().any(Job::needs_sync);
        if needs_sync || jobs.iter().any(Job::needs_space) || self.checkpointer.has_sync_failed() {
            self.commit_synced()
        } else {
            self.commit()
        }
    }

    /// Opens the database again after an error, and adds the acknowledged messages that it lacks.
    pub(super) fn ensure_open(&mut self) -> Result<()> {
        if self.database.is_none() {
            self.last_check = None;
            self.check_database_file()?;
            let database = connect(&self.directory, &self.settings, &self.checkpointer)?;
            let statistics = Statistics::load(&database)?;
            statistics.validate(&database)?;
            self.statistics = statistics;
            self.database = Some(database);
            self.replay().inspect_err(|_| self.close_database())?;
            self.shared.store_version.set(self.statistics.counters.last_version);
        }
        if !self.is_directory_synced {
            self.sync_all().map_err(|error| segment_error("syncing the data directory", &error))?;
            self.is_directory_synced = true;
        }
        Ok(())
    }

    /// Does what can wait until the results are sent.
    pub(super) fn run_maintenance(&mut self) {
        if !self.uncommitted.is_empty() || self.database.is_none() {
            return;
        }
        // The database does not refer to the leftovers: an earlier commit that returned an error may have taken effect, but
        // the database was opened again since.
        if self.reclaim.has_leftovers {
            self.remove_leftovers();
        }
        if self.checkpointer.has_sync_failed() {
            self.restart_wal();
        }
        let Some(database) = &self.database else { return };
        let frees = std::mem::take(&mut self.reclaim.pending_frees);
        self.checkpointer.after_commit(database, self.active_segment.id, frees);
        if self.checkpointer.is_wal_too_long() {
            self.restart_wal();
        }
    }

    /// Checkpoints and truncates the log while readers are paused. There must be no open transaction. After a failed sync,
    /// this writes again what the system may have dropped.
    pub(super) fn restart_wal(&mut self) {
        // The database on disk must not refer to records that are not there.
        if let Some(database) = &self.database
            && self.active_segment.sync().is_ok()
        {
            let _paused = self.shared.readers.pause();
            self.checkpointer.restart_wal(database);
        }
    }

    /// Syncs everything that was committed, whatever the durability.
    pub(super) fn sync_all(&self) -> std::io::Result<()> {
        self.shared.segments.sync(self.active_segment.id)?;
        sync_wal(&self.directory.database_path())?;
        self.directory.sync_entries()
    }
}

/// Creates the records of all new messages, and prepares their copies.
fn prepare_records(jobs: &[Job], mut last_id: MessageId) -> (Vec<Record>, Vec<Vec<PreparedCopy>>) {
    let mut records = Vec::new();
    let mut copies = Vec::new();
    for job in jobs {
        let Job::Append(message, _) = job else { continue };
        let prepare = |copy: &NewCopy| {
            last_id = MessageId::next_after(last_id, message.received);
            PreparedCopy { id: last_id, trace: copy.trace(message.received) }
        };
        let prepared: Vec<_> = message.copies.iter().map(prepare).collect();
        records.push(Record::new(message, &prepared));
        copies.push(prepared);
    }
    (records, copies)
}

fn connect(directory: &Directory, settings: &Settings, checkpointer: &Checkpointer) -> Result<Connection, OpenError> {
    let mut database = schema::open_writer(&directory.database_path(), settings.cache_bytes / 2)?;
    checkpointer.watch_wal(&mut database)?;
    Ok(database)
}
