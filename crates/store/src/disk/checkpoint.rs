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

use super::segment::{Graves, Segments};
use super::{Durability, OpenError, schema};

/// With so many pages in the log, it is time.
const MANY_PAGES: i32 = 1000;
/// With so many, readers that never pause have kept it from beginning anew; then they have to.
const TOO_MANY_PAGES: i32 = 8 * MANY_PAGES;
/// How long changes may be at the mercy of the system when durability is relaxed.
const RELAXED: Duration = Duration::from_secs(1);

/// The writer's side.
pub(super) struct Checkpoints {
    progress: Arc<Progress>,
    /// How many pages there were when the other thread was asked last.
    asked_at: i32,
    /// With so many, readers have to pause.
    too_many: i32,
    helper: Option<(SyncSender<()>, Worker)>,
}

#[derive(Default)]
struct Progress {
    /// How many pages are in the log.
    pages: AtomicI32,
    /// The last segment.
    tail: AtomicU64,
    /// Whether there were commits that nobody has synced.
    unsynced: AtomicBool,
    /// Whether the log should be brought home.
    wanted: AtomicBool,
    /// Whether the other thread has done its part of that.
    mostly_home: AtomicBool,
    graves: Mutex<Graves>,
}

impl Progress {
    /// Adds what can go.
    fn bury(&self, graves: Graves) {
        self.graves.lock().unwrap_or_else(PoisonError::into_inner).add(graves);
    }

    fn take_graves(&self) -> Graves {
        std::mem::take(&mut self.graves.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Checkpoints {
    pub(super) fn new(database: PathBuf, segments: Arc<Segments>, durability: Durability) -> io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let (ask, asked) = sync_channel(1);
        let helper = Helper { path: database, segments, durability, progress: progress.clone(), database: None };
        let thread = Worker::spawn("checkpoint", move || helper.run(&asked))?;
        Ok(Self { progress, asked_at: 0, too_many: TOO_MANY_PAGES, helper: Some((ask, thread)) })
    }

    /// Watches the log that this connection writes.
    pub(super) fn watch(&self, database: &mut Connection) -> Result<(), OpenError> {
        let progress = self.progress.clone();
        database.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            progress.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// Whether readers that never pause keep the log from beginning anew.
    pub(super) fn is_too_long(&self) -> bool {
        self.progress.pages.load(Ordering::Relaxed) > self.too_many
    }

    /// Brings all of it home while nobody reads. A reader in another process can be in the way even so; then it is tried
    /// again when the log has grown a good deal more.
    pub(super) fn begin_anew(&mut self, database: &Connection) {
        // When the patience cannot be set, it stays as it is, which only costs time.
        let _ = database.busy_timeout(Duration::ZERO);
        let home = bring_home(database, CheckpointMode::TRUNCATE);
        let _ = database.busy_timeout(schema::BUSY_TIMEOUT);
        self.too_many = if home == Home::Whole { TOO_MANY_PAGES } else { self.too_many + TOO_MANY_PAGES };
    }

    /// Called after every commit: does what is due now, and asks for what takes longer.
    pub(super) fn keep_up(&mut self, database: &Connection, tail: u64, graves: Graves) {
        self.progress.tail.store(tail, Ordering::Relaxed);
        self.progress.unsynced.store(true, Ordering::Release);
        let pages = self.progress.pages.load(Ordering::Relaxed);
        if self.progress.mostly_home.swap(false, Ordering::Acquire) {
            bring_home(database, CheckpointMode::PASSIVE);
        } else if pages < self.asked_at {
            // The log has begun anew.
            self.asked_at = 0;
        } else if pages >= self.asked_at + MANY_PAGES {
            self.asked_at = pages;
            self.progress.wanted.store(true, Ordering::Release);
            self.ask();
        }
        if !graves.is_empty() {
            self.progress.bury(graves);
            self.ask();
        }
    }

    fn ask(&self) {
        if let Some((ask, _)) = &self.helper {
            // One request is as good as two.
            let _ = ask.try_send(());
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        if let Some((ask, thread)) = self.helper.take() {
            drop(ask);
            // A panic there was told when it happened, and the log is brought home when the database is closed.
            let _ = thread.join();
        }
    }
}

/// How far the log came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// All of it is in the database, and synced.
    Whole,
    /// Others are still reading it, or bringing it home themselves.
    Partly,
    /// The disk did not want to.
    Failed,
}

/// Copies the log into the database.
pub(super) fn bring_home(database: &Connection, mode: CheckpointMode) -> Home {
    match database.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), mode) {
        Ok((pages, home)) if pages == home => Home::Whole,
        Ok(_) => Home::Partly,
        Err(error) if ErrorKind::classify(&error) == ErrorKind::Busy => Home::Partly,
        Err(error) => {
            tracing::error!(%error, "the log of the database cannot be brought home; trying again");
            Home::Failed
        }
    }
}

/// The other thread.
struct Helper {
    path: PathBuf,
    segments: Arc<Segments>,
    durability: Durability,
    progress: Arc<Progress>,
    /// Opened when it is needed, and again after an error.
    database: Option<Connection>,
}

impl Helper {
    fn run(mut self, asked: &Receiver<()>) {
        let mut last_sync = Instant::now();
        loop {
            let told = match self.durability {
                Durability::Full => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Durability::Relaxed => asked.recv_timeout(RELAXED.saturating_sub(last_sync.elapsed())),
            };
            if told == Err(RecvTimeoutError::Disconnected) {
                return self.work(true);
            }
            // With relaxed durability there is a sync every second, and none in between.
            let time_to_sync = last_sync.elapsed() >= RELAXED;
            if time_to_sync {
                last_sync = Instant::now();
            }
            self.work(time_to_sync);
        }
    }

    fn work(&mut self, time_to_sync: bool) {
        if self.progress.wanted.swap(false, Ordering::Acquire) {
            self.bring_home();
        }
        // What is taken here was committed before the sync that follows.
        let graves = self.progress.take_graves();
        let settled = match self.durability {
            Durability::Full => true,
            Durability::Relaxed => time_to_sync && self.sync(),
        };
        if settled {
            graves.bury(&self.segments);
        } else {
            self.progress.bury(graves);
        }
    }

    fn bring_home(&mut self) {
        // The mail first: the database should not name on the disk what is not there.
        if self.durability == Durability::Relaxed && !self.sync() {
            return;
        }
        let Some(database) = self.database.take().or_else(|| self.open()) else { return };
        if bring_home(&database, CheckpointMode::PASSIVE) != Home::Failed {
            self.database = Some(database);
            self.progress.mostly_home.store(true, Ordering::Release);
        }
    }

    /// Makes everything durable that was committed so far.
    fn sync(&self) -> bool {
        if !self.progress.unsynced.swap(false, Ordering::Acquire) {
            return true;
        }
        let tail = self.progress.tail.load(Ordering::Relaxed);
        let synced = self.segments.sync(tail).and_then(|()| sync_log(&self.path));
        if let Err(error) = &synced {
            tracing::error!(%error, "mail cannot be synced; trying again");
            self.progress.unsynced.store(true, Ordering::Release);
        }
        synced.is_ok()
    }

    fn open(&self) -> Option<Connection> {
        let opened = schema::open_helper(&self.path);
        opened.inspect_err(|error| tracing::error!(%error, "the log of the database stays; trying again")).ok()
    }
}

/// Makes the log of a database durable.
pub(super) fn sync_log(database: &Path) -> io::Result<()> {
    match File::open(wal_path(database)) {
        Ok(log) => log.sync_data(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
