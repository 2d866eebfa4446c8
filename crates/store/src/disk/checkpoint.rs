//! What is done for the writer on another thread, because it takes long: most of all, bringing the log of the database
//! home. That copies its pages into the database file, so that the log can begin anew and does not grow; what has come
//! in meanwhile is little, and the writer does it. Files that nobody needs are removed here too.
//!
//! With relaxed durability nobody else syncs, so this thread does it every second when there is something to sync.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use restante_sqlite::{ErrorKind, wal_path};
use restante_worker::Worker;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::segment::{PendingFrees, Segments};
use super::{Durability, OpenError, schema};

/// With so many pages in the log, it is time.
const CHECKPOINT_PAGES: i32 = 1000;
/// With so many, readers that never pause have kept it from beginning anew; then they have to.
const MAX_WAL_PAGES: i32 = 8 * CHECKPOINT_PAGES;
/// How long changes may be at the mercy of the system when durability is relaxed.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The writer's side.
pub(super) struct Checkpointer {
    state: Arc<CheckpointState>,
    /// How many pages there were when the other thread was asked last.
    requested_at_pages: i32,
    /// With so many, readers have to pause.
    max_wal_pages: i32,
    thread: Option<(SyncSender<()>, Worker)>,
}

#[derive(Default)]
struct CheckpointState {
    /// How many pages are in the log.
    wal_pages: AtomicI32,
    /// The last segment.
    active_segment: AtomicU64,
    /// Whether there were commits that nobody has synced.
    has_unsynced: AtomicBool,
    /// Whether the log should be brought home.
    is_requested: AtomicBool,
    /// Whether the other thread has done its part of that.
    is_mostly_done: AtomicBool,
    pending_frees: Mutex<PendingFrees>,
}

impl CheckpointState {
    /// Adds what can go.
    fn add_pending_frees(&self, graves: PendingFrees) {
        self.pending_frees.lock().unwrap_or_else(PoisonError::into_inner).merge(graves);
    }

    fn take_pending_frees(&self) -> PendingFrees {
        std::mem::take(&mut self.pending_frees.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Checkpointer {
    pub(super) fn new(database: PathBuf, segments: Arc<Segments>, durability: Durability) -> io::Result<Self> {
        let progress = Arc::new(CheckpointState::default());
        let (ask, asked) = sync_channel(1);
        let helper = CheckpointThread { path: database, segments, durability, state: progress.clone(), database: None };
        let thread = Worker::spawn("checkpoint", move || helper.run(&asked))?;
        Ok(Self { state: progress, requested_at_pages: 0, max_wal_pages: MAX_WAL_PAGES, thread: Some((ask, thread)) })
    }

    /// Watches the log that this connection writes.
    pub(super) fn watch_wal(&self, database: &mut Connection) -> Result<(), OpenError> {
        let progress = self.state.clone();
        database.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            progress.wal_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// Whether readers that never pause keep the log from beginning anew.
    pub(super) fn is_wal_too_long(&self) -> bool {
        self.state.wal_pages.load(Ordering::Relaxed) > self.max_wal_pages
    }

    /// Brings all of it home while nobody reads. A reader in another process can be in the way even so; then it is tried
    /// again when the log has grown a good deal more.
    pub(super) fn restart_wal(&mut self, database: &Connection) {
        // When the patience cannot be set, it stays as it is, which only costs time.
        let _ = database.busy_timeout(Duration::ZERO);
        let home = run_checkpoint(database, CheckpointMode::TRUNCATE);
        let _ = database.busy_timeout(schema::BUSY_TIMEOUT);
        self.max_wal_pages =
            if home == CheckpointOutcome::Complete { MAX_WAL_PAGES } else { self.max_wal_pages + MAX_WAL_PAGES };
    }

    /// Called after every commit: does what is due now, and asks for what takes longer.
    pub(super) fn after_commit(&mut self, database: &Connection, tail: u64, graves: PendingFrees) {
        self.state.active_segment.store(tail, Ordering::Relaxed);
        self.state.has_unsynced.store(true, Ordering::Release);
        let pages = self.state.wal_pages.load(Ordering::Relaxed);
        if self.state.is_mostly_done.swap(false, Ordering::Acquire) {
            run_checkpoint(database, CheckpointMode::PASSIVE);
        } else if pages < self.requested_at_pages {
            // The log has begun anew.
            self.requested_at_pages = 0;
        } else if pages >= self.requested_at_pages + CHECKPOINT_PAGES {
            self.requested_at_pages = pages;
            self.state.is_requested.store(true, Ordering::Release);
            self.wake();
        }
        if !graves.is_empty() {
            self.state.add_pending_frees(graves);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some((ask, _)) = &self.thread {
            // One request is as good as two.
            let _ = ask.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Some((ask, thread)) = self.thread.take() {
            drop(ask);
            // A panic there was told when it happened, and the log is brought home when the database is closed.
            let _ = thread.join();
        }
    }
}

/// How far the log came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointOutcome {
    /// All of it is in the database, and synced.
    Complete,
    /// Others are still reading it, or bringing it home themselves.
    Partial,
    /// The disk did not want to.
    Failed,
}

/// Copies the log into the database.
pub(super) fn run_checkpoint(database: &Connection, mode: CheckpointMode) -> CheckpointOutcome {
    match database.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), mode) {
        Ok((pages, home)) if pages == home => CheckpointOutcome::Complete,
        Ok(_) => CheckpointOutcome::Partial,
        Err(error) if ErrorKind::classify(&error) == ErrorKind::Busy => CheckpointOutcome::Partial,
        Err(error) => {
            tracing::error!(%error, "the log of the database cannot be brought home; trying again");
            CheckpointOutcome::Failed
        }
    }
}

/// The other thread.
struct CheckpointThread {
    path: PathBuf,
    segments: Arc<Segments>,
    durability: Durability,
    state: Arc<CheckpointState>,
    /// Opened when it is needed, and again after an error.
    database: Option<Connection>,
}

impl CheckpointThread {
    fn run(mut self, asked: &Receiver<()>) {
        let mut last_sync = Instant::now();
        loop {
            let told = match self.durability {
                Durability::Full => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Durability::Relaxed => asked.recv_timeout(RELAXED_SYNC_INTERVAL.saturating_sub(last_sync.elapsed())),
            };
            if told == Err(RecvTimeoutError::Disconnected) {
                return self.run_once(true);
            }
            // With relaxed durability there is a sync every second, and none in between.
            let time_to_sync = last_sync.elapsed() >= RELAXED_SYNC_INTERVAL;
            if time_to_sync {
                last_sync = Instant::now();
            }
            self.run_once(time_to_sync);
        }
    }

    fn run_once(&mut self, time_to_sync: bool) {
        if self.state.is_requested.swap(false, Ordering::Acquire) {
            self.checkpoint();
        }
        // What is taken here was committed before the sync that follows.
        let graves = self.state.take_pending_frees();
        let settled = match self.durability {
            Durability::Full => true,
            Durability::Relaxed => time_to_sync && self.sync(),
        };
        if settled {
            graves.free(&self.segments);
        } else {
            self.state.add_pending_frees(graves);
        }
    }

    fn checkpoint(&mut self) {
        // The mail first: the database should not name on the disk what is not there.
        if self.durability == Durability::Relaxed && !self.sync() {
            return;
        }
        let Some(database) = self.database.take().or_else(|| self.open()) else { return };
        if run_checkpoint(&database, CheckpointMode::PASSIVE) != CheckpointOutcome::Failed {
            self.database = Some(database);
            self.state.is_mostly_done.store(true, Ordering::Release);
        }
    }

    /// Makes everything durable that was committed so far.
    fn sync(&self) -> bool {
        if !self.state.has_unsynced.swap(false, Ordering::Acquire) {
            return true;
        }
        let tail = self.state.active_segment.load(Ordering::Relaxed);
        let synced = self.segments.sync(tail).and_then(|()| sync_wal(&self.path));
        if let Err(error) = &synced {
            tracing::error!(%error, "mail cannot be synced; trying again");
            self.state.has_unsynced.store(true, Ordering::Release);
        }
        synced.is_ok()
    }

    fn open(&self) -> Option<Connection> {
        let opened = schema::open_for_checkpoints(&self.path);
        opened.inspect_err(|error| tracing::error!(%error, "the log of the database stays; trying again")).ok()
    }
}

/// Makes the log of a database durable.
pub(super) fn sync_wal(database: &Path) -> io::Result<()> {
    match File::open(wal_path(database)) {
        Ok(log) => log.sync_data(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
