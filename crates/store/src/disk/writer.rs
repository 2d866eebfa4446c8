//! The thread that makes all changes of a data directory. All waiting jobs share one transaction (group commit): while
//! it is written to disk, the next jobs collect in the queue. So there is no timer, and a single message does not wait
//! for others.
//!
//! The order of a commit makes it safe:
//!
//! 1. the records are appended to the active segment;
//! 2. they are synced;
//! 3. the rows that refer to them are committed, which SQLite syncs;
//! 4. the results are sent to the callers.
//!
//! An error in step 1, or in step 3 before the commit itself, leaves garbage that the next record overwrites. After an
//! error in step 2 or in the commit, the state of the disk is unknown. Then the segment is closed and the next record
//! starts a new one, so that bytes that a half-done commit may refer to are never overwritten. After any error in step 3
//! the connection is closed too. The next job opens it again and loads the statistics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use restante_mail::message::MessageId;
use restante_platform::FileId;
use restante_sqlite::ErrorKind;
use rusqlite::Connection;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::active_segment::ActiveSegment;
use super::changes::{Changes, CommittedChanges};
use super::checkpoint::{Checkpointer, sync_wal};
use super::directory::{Directory, Lock};
use super::error::segment_error;
use super::job::Job;
use super::reclaim::Reclaim;
use super::record::{PreparedCopy, Record};
use super::segment::Location;
use super::statistics::Statistics;
use super::{Durability, OpenError, Settings, Shared, schema};
use crate::{NewCopy, Result, StoreError};

/// The maximum number of jobs and of message bytes in one transaction.
const MAX_BATCH_JOBS: usize = 256;
const MAX_BATCH_BYTES: usize = 16 << 20;

pub(super) struct Writer {
    pub(super) directory: Directory,
    pub(super) settings: Settings,
    pub(super) shared: Arc<Shared>,
    /// `None` after an error that leaves the state of the file unknown.
    pub(super) database: Option<Connection>,
    /// The identity of the database file.
    pub(super) database_file: FileId,
    pub(super) statistics: Statistics,
    pub(super) active_segment: ActiveSegment,
    pub(super) checkpointer: Checkpointer,
    pub(super) reclaim: Reclaim,
    /// The last successful check of files and free space.
    pub(super) last_check: Option<PassedCheck>,
    /// Whether the end of the last segment may be missing on disk.
    pub(super) needs_end_check: bool,
    _lock: Lock,
}

/// A successful check of files and free space.
pub(super) struct PassedCheck {
    pub(super) at: Instant,
    /// The number of bytes that may be written before the next check.
    pub(super) remaining_bytes: u64,
}

/// Why a transaction failed.
pub(super) enum TransactionError {
    /// Nothing was changed. It can be retried.
    RolledBack(StoreError),
    /// It may have been committed. A retry could apply it twice.
    InDoubt(StoreError),
}

impl TransactionError {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::RolledBack(error) | Self::InDoubt(error) => error,
        }
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::RolledBack(error)
    }
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
        shared.store_version.set(statistics.counters.last_version);
        let (last, end) = statistics.segments.last_key_value().map_or((0, 0), |(id, stats)| (*id, stats.end));
        let active_segment = ActiveSegment::new(shared.segments.clone(), settings.segment_bytes, last, end);
        let mut reclaim = Reclaim::default();
        reclaim.mark_sparse_segments(&statistics, active_segment.current());
        let database = Some(database);
        Ok(Self {
            directory,
            settings,
            shared,
            database,
            database_file,
            statistics,
            active_segment,
            checkpointer,
            reclaim,
            last_check: None,
            needs_end_check,
            _lock: lock,
        })
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
            self.process_jobs(jobs);
            self.run_maintenance();
            batches += 1;
        }
        // Closing the database syncs it, but with relaxed durability the active segment must be synced here.
        self.active_segment.close();
    }

    /// Waits for a job, and reclaims space meanwhile. Also does a step of that every eight batches if jobs never stop.
    fn next_job(&mut self, queue: &mut Receiver<Job>, batches: u64) -> Option<Job> {
        if self.reclaim.is_due() && batches.is_multiple_of(8) {
            self.catch_panic(Self::reclaim_step);
        }
        loop {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if self.reclaim.is_due() => self.catch_panic(Self::reclaim_step),
                Err(TryRecvError::Empty) => {
                    self.shared.watchdog.set_idle();
                    return queue.blocking_recv();
                }
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
        self.shared.mailbox_cache.lock().end_commit([]);
        self.shared.store_version.forget();
        self.active_segment.close();
    }

    /// Runs all jobs in one transaction. If it is rolled back, runs each in its own: a message that does not fit, or
    /// that cannot be stored for another reason, must not make others fail, and a deletion may free space.
    fn process_jobs(&mut self, mut jobs: Vec<Job>) {
        self.shared.watchdog.set_busy(Instant::now());
        // After a panic these jobs fail, but the store must continue.
        let result = catch_unwind(AssertUnwindSafe(|| self.commit(&mut jobs))).unwrap_or_else(|_| {
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
        for job in jobs {
            job.finish(outcome.clone());
        }
    }

    fn commit(&mut self, jobs: &mut [Job]) -> Result<(), TransactionError> {
        self.ensure_open()?;
        if jobs.iter().any(Job::needs_space) {
            self.preflight(jobs.iter().map(|job| job.bytes() as u64).sum())?;
        }
        let (records, copies) = prepare_records(jobs, self.statistics.counters.last_id);
        self.transact(&records, |changes, database, locations| {
            let mut written = copies.iter().map(Vec::as_slice).zip(locations);
            for job in jobs {
                job.apply(changes, database, &mut written)?;
            }
            Ok(())
        })
    }

    /// Opens the database again after an error, and loads the statistics from it.
    pub(super) fn ensure_open(&mut self) -> Result<()> {
        if self.database.is_none() {
            self.last_check = None;
            self.check_database_file()?;
            let database = connect(&self.directory, &self.settings, &self.checkpointer)?;
            let statistics = Statistics::load(&database)?;
            statistics.validate(&database)?;
            self.shared.store_version.set(statistics.counters.last_version);
            self.statistics = statistics;
            self.database = Some(database);
        }
        Ok(())
    }

    /// Writes records and makes the changes that refer to them: durably, all or nothing.
    pub(super) fn transact(
        &mut self,
        records: &[Record],
        apply: impl FnOnce(&mut Changes<'_>, &Connection, &[Location]) -> Result<()>,
    ) -> Result<(), TransactionError> {
        let locations = self.active_segment.append(records).map_err(|error| {
            self.reclaim.has_leftovers = true;
            segment_error("writing a message", &error)
        })?;
        if self.settings.durability == Durability::Full
            && !records.is_empty()
            && let Err(error) = self.active_segment.sync()
        {
            self.active_segment.close();
            self.reclaim.has_leftovers = true;
            return Err(segment_error("syncing a message", &error).into());
        }
        // Put back only after success. Closing the connection rolls a failed transaction back.
        let database = self.database.take().ok_or_else(|| StoreError::Broken("no database".to_owned()))?;
        let mut changes = Changes::new(&self.statistics, &self.shared, self.settings.limits);
        let prepare = || {
            database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for at in &locations {
                changes.record_written(*at);
            }
            apply(&mut changes, &database, &locations)?;
            changes.write_counters(&database, self.active_segment.current())
        };
        if let Err(error) = prepare() {
            self.shared.mailbox_cache.lock().end_commit([]);
            self.active_segment.undo_append(&locations);
            return Err(error.into());
        }
        if let Err(error) = database.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            self.shared.mailbox_cache.lock().end_commit([]);
            self.shared.store_version.forget();
            self.active_segment.close();
            self.reclaim.has_leftovers = true;
            let is_full = ErrorKind::classify(&error) == ErrorKind::Full;
            return Err(if is_full {
                TransactionError::RolledBack(error.into())
            } else {
                TransactionError::InDoubt(error.into())
            });
        }
        let changes = changes.into_committed();
        self.database = Some(database);
        self.apply_committed(changes);
        // Only now it is certain that the database does not refer to the leftovers: an earlier commit that returned an
        // error may have taken effect.
        if self.reclaim.has_leftovers {
            self.remove_leftovers();
        }
        Ok(())
    }

    /// Applies committed changes to the statistics.
    fn apply_committed(&mut self, changes: CommittedChanges) {
        let CommittedChanges { counters, segments, mailboxes, released } = changes;
        for at in released {
            self.reclaim.pending_frees.records.entry(at.segment).or_default().push(at);
        }
        let copies = self.statistics.counters.usage.copies;
        self.reclaim.deleted_rows += copies.saturating_sub(counters.usage.copies);
        self.statistics.counters = counters;
        let current = self.active_segment.current();
        let last = self.statistics.segments.last_key_value().map(|(id, _)| *id);
        for (id, stats) in segments {
            if stats.live == 0 && Some(id) != current {
                self.statistics.segments.remove(&id);
                self.reclaim.pending_frees.segments.push(id);
            } else {
                self.statistics.segments.insert(id, stats);
                self.reclaim.mark_if_sparse(id, stats, current);
            }
        }
        // A segment that is no longer the active one may be sparse already.
        if let Some(last) = last
            && let Some(stats) = self.statistics.segments.get(&last)
        {
            self.reclaim.mark_if_sparse(last, *stats, current);
        }
        self.retire_empty_segment();
        self.shared.store_version.set(counters.last_version);
        self.shared.mailbox_cache.lock().end_commit(mailboxes);
    }

    /// Does what can wait until the results are sent.
    pub(super) fn run_maintenance(&mut self) {
        let Some(database) = &self.database else { return };
        let frees = std::mem::take(&mut self.reclaim.pending_frees);
        self.checkpointer.after_commit(database, self.active_segment.id, frees);
        if self.checkpointer.is_wal_too_long() {
            self.restart_wal();
        }
    }

    /// Checkpoints and truncates the log while readers are paused.
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
        sync_wal(&self.directory.database_path())
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
    let mut database = schema::open_writer(&directory.database_path(), settings.durability, settings.cache_bytes / 2)?;
    checkpointer.watch_wal(&mut database)?;
    Ok(database)
}
