//! The checkpoint thread, which does slow work for the writer. Above all, it checkpoints: it copies the pages of the
//! write-ahead log into the database file, so that the log can restart and does not grow. The writer itself copies the
//! few pages that are added meanwhile. The thread also frees space that is not in use: files, and large records.
//!
//! Commits of new messages are not synced. This thread syncs them before it frees space. With relaxed durability, it syncs
//! every second if there is something to sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use restante_platform::sync_file;
use restante_sqlite::{ErrorKind, wal_path};
use restante_worker::Worker;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::segment::{PendingFrees, Segments};
use super::{Durability, OpenError, schema};

/// The number of pages in the log after which the next checkpoint is due.
const CHECKPOINT_PAGES: i32 = 1000;
/// The number of pages at which readers are paused. Readers that overlap all the time can prevent the log from
/// restarting.
const MAX_WAL_PAGES: i32 = 8 * CHECKPOINT_PAGES;
/// How long changes can be unsynced if durability is relaxed.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The writer's handle of the checkpoint thread.
pub(super) struct Checkpointer {
    state: Arc<CheckpointState>,
    /// The number of pages in the log at the last request for a checkpoint.
    requested_at_pages: i32,
    /// The number of pages at which readers are paused next. It grows if that did not help.
    max_wal_pages: i32,
    thread: Option<(SyncSender<()>, Worker)>,
}

#[derive(Default)]
struct CheckpointState {
    /// The number of pages in the log.
    wal_pages: AtomicI32,
    /// The id of the active segment.
    active_segment: AtomicU64,
    /// Whether there are commits that are not synced.
    has_unsynced: AtomicBool,
    /// Whether a checkpoint is requested.
    is_requested: AtomicBool,
    /// Whether the thread has copied most of the log. The writer then copies the rest.
    is_mostly_done: AtomicBool,
    /// Whether a sync of the log has failed. The system may have dropped what it could not write, and report success from
    /// then on. So nothing counts as synced before the log has restarted.
    has_sync_failed: AtomicBool,
    /// Space that can be freed.
    pending_frees: Mutex<PendingFrees>,
}

impl Checkpointer {
    pub(super) fn new(database: PathBuf, segments: Arc<Segments>, durability: Durability) -> io::Result<Self> {
        let state = Arc::new(CheckpointState::default());
        let (requests, receiver) = sync_channel(1);
        let thread = CheckpointThread { path: database, segments, durability, state: state.clone(), database: None };
        let worker = Worker::spawn("checkpoint", move || thread.run(&receiver))?;
        Ok(Self { state, requested_at_pages: 0, max_wal_pages: MAX_WAL_PAGES, thread: Some((requests, worker)) })
    }

    /// Updates the number of pages in the log whenever this connection commits.
    pub(super) fn watch_wal(&self, database: &mut Connection) -> Result<(), OpenError> {
        let state = self.state.clone();
        database.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            state.wal_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// Returns whether a sync of the log has failed since it restarted.
    pub(super) fn has_sync_failed(&self) -> bool {
        self.state.has_sync_failed.load(Ordering::Acquire)
    }

    /// Records that a sync of the log has failed.
    pub(super) fn set_sync_failed(&self) {
        self.state.has_sync_failed.store(true, Ordering::Release);
    }

    /// Returns whether the log is so long that readers must be paused.
    pub(super) fn is_wal_too_long(&self) -> bool {
        self.state.wal_pages.load(Ordering::Relaxed) > self.max_wal_pages
    }

    /// Checkpoints the whole log and truncates it. The caller has paused the readers. A reader in another process can
    /// still prevent this; the next attempt is then made after the log has grown by another [`MAX_WAL_PAGES`].
    pub(super) fn restart_wal(&mut self, database: &Connection) {
        // If the timeout cannot be changed, the checkpoint only takes longer.
        let _ = database.busy_timeout(Duration::ZERO);
        let copied = run_checkpoint(database, CheckpointMode::TRUNCATE);
        let _ = database.busy_timeout(schema::BUSY_TIMEOUT);
        if copied == CheckpointOutcome::Complete {
            self.max_wal_pages = MAX_WAL_PAGES;
            self.state.has_sync_failed.store(false, Ordering::Release);
        } else {
            self.max_wal_pages += MAX_WAL_PAGES;
        }
    }

    /// Updates the shared state after a commit. Completes a checkpoint that the thread has mostly done, or requests the
    /// next one if it is due. `frees` is space that the thread can free.
    pub(super) fn after_commit(&mut self, database: &Connection, segment: u64, frees: PendingFrees) {
        self.state.active_segment.store(segment, Ordering::Relaxed);
        self.state.has_unsynced.store(true, Ordering::Release);
        let pages = self.state.wal_pages.load(Ordering::Relaxed);
        if self.state.is_mostly_done.swap(false, Ordering::Acquire) {
            if run_checkpoint(database, CheckpointMode::PASSIVE) == CheckpointOutcome::Failed {
                self.set_sync_failed();
            }
        } else if pages < self.requested_at_pages {
            // The log has restarted.
            self.requested_at_pages = 0;
        } else if pages >= self.requested_at_pages + CHECKPOINT_PAGES {
            self.requested_at_pages = pages;
            self.state.is_requested.store(true, Ordering::Release);
            self.wake();
        }
        if !frees.is_empty() {
            self.state.pending_frees.lock().merge(frees);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some((requests, _)) = &self.thread {
            // If the channel is full, a request is pending already.
            let _ = requests.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Some((requests, worker)) = self.thread.take() {
            drop(requests);
            // A panic of the thread is already logged. Closing the database checkpoints the log.
            let _ = worker.join();
        }
    }
}

/// How much of the log was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointOutcome {
    /// All of it is in the database file, and synced.
    Complete,
    /// Other connections still read it, or checkpoint it themselves.
    Partial,
    /// The disk reported an error.
    Failed,
}

/// Copies the log into the database file.
pub(super) fn run_checkpoint(database: &Connection, mode: CheckpointMode) -> CheckpointOutcome {
    match database.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), mode) {
        Ok((pages, copied)) if pages == copied => CheckpointOutcome::Complete,
        Ok(_) => CheckpointOutcome::Partial,
        Err(error) if ErrorKind::classify(&error) == ErrorKind::Busy => CheckpointOutcome::Partial,
        Err(error) => {
            tracing::error!(%error, "cannot checkpoint the database, retrying");
            CheckpointOutcome::Failed
        }
    }
}

/// The checkpoint thread.
struct CheckpointThread {
    path: PathBuf,
    segments: Arc<Segments>,
    durability: Durability,
    state: Arc<CheckpointState>,
    /// Opened when it is needed, and again after an error.
    database: Option<Connection>,
}

impl CheckpointThread {
    fn run(mut self, requests: &Receiver<()>) {
        let mut last_sync = Instant::now();
        loop {
            let received = match self.durability {
                Durability::Full => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Durability::Relaxed => requests.recv_timeout(RELAXED_SYNC_INTERVAL.saturating_sub(last_sync.elapsed())),
            };
            if received == Err(RecvTimeoutError::Disconnected) {
                return self.run_once(true);
            }
            // With relaxed durability there is one sync per second.
            let is_sync_due = last_sync.elapsed() >= RELAXED_SYNC_INTERVAL;
            if is_sync_due {
                last_sync = Instant::now();
            }
            self.run_once(is_sync_due);
        }
    }

    fn run_once(&mut self, is_sync_due: bool) {
        if self.state.is_requested.swap(false, Ordering::Acquire) {
            self.checkpoint();
        }
        // These were committed before the sync that follows.
        let frees = std::mem::take(&mut *self.state.pending_frees.lock());
        let is_synced = match self.durability {
            Durability::Full => frees.is_empty() || self.sync(),
            Durability::Relaxed => is_sync_due && self.sync(),
        };
        if is_synced {
            frees.free(&self.segments);
        } else {
            self.state.pending_frees.lock().merge(frees);
        }
    }

    fn checkpoint(&mut self) {
        // Segments first: the database on disk must not refer to records that are not there.
        if self.durability == Durability::Relaxed && !self.sync() {
            return;
        }
        let Some(database) = self.database.take().or_else(|| self.open()) else { return };
        if run_checkpoint(&database, CheckpointMode::PASSIVE) == CheckpointOutcome::Failed {
            self.state.has_sync_failed.store(true, Ordering::Release);
        } else {
            self.database = Some(database);
            self.state.is_mostly_done.store(true, Ordering::Release);
        }
    }

    /// Syncs all commits. Returns false if that fails.
    fn sync(&self) -> bool {
        if !self.state.has_unsynced.swap(false, Ordering::Acquire) {
            return true;
        }
        let segment = self.state.active_segment.load(Ordering::Relaxed);
        let synced = self.segments.sync(segment).and_then(|()| sync_wal(&self.path));
        if let Err(error) = &synced {
            tracing::error!(%error, "cannot sync messages, retrying");
            self.state.has_unsynced.store(true, Ordering::Release);
            self.state.has_sync_failed.store(true, Ordering::Release);
        }
        synced.is_ok() && !self.state.has_sync_failed.load(Ordering::Acquire)
    }

    fn open(&self) -> Option<Connection> {
        let opened = schema::open_for_checkpoints(&self.path);
        opened.inspect_err(|error| tracing::error!(%error, "cannot open the database for a checkpoint, retrying")).ok()
    }
}

/// Syncs the write-ahead log of a database.
pub(super) fn sync_wal(database: &Path) -> io::Result<()> {
    match sync_file(&wal_path(database)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}
