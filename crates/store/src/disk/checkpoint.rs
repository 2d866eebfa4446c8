//! Brings the log of the database home: copies its pages into the database file, so that it can begin anew and does not
//! grow. That takes many writes and a sync, so most of it is done on a thread of its own, beside the writer; what has
//! come in meanwhile is little, and the writer does it.
//!
//! With relaxed durability nobody else syncs, so the thread does it every second when there is something to sync.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::segment::Segments;
use super::{Durability, OpenError, schema};

/// With so many pages in the log, it is time.
const MANY_PAGES: i32 = 1000;
/// How long changes may be at the mercy of the system when durability is relaxed.
const RELAXED: Duration = Duration::from_secs(1);

/// The writer's side.
pub(super) struct Checkpoints {
    progress: Arc<Progress>,
    /// How many pages there were when the other thread was asked last.
    asked_at: i32,
    helper: Option<(SyncSender<()>, JoinHandle<()>)>,
}

#[derive(Default)]
pub(super) struct Progress {
    /// How many pages are in the log.
    pages: AtomicI32,
    /// The segment that is being written.
    tail: AtomicU64,
    /// Whether there were commits that nobody has synced.
    unsynced: AtomicBool,
    /// Whether the other thread has done its part.
    mostly_home: AtomicBool,
}

impl Checkpoints {
    pub(super) fn new(database: PathBuf, segments: Arc<Segments>, durability: Durability) -> io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let (ask, asked) = sync_channel(1);
        let helper = Helper { path: database, segments, durability, progress: progress.clone(), database: None };
        let thread = std::thread::Builder::new().name("checkpoint".to_owned());
        let thread = thread.spawn(move || helper.run(&asked))?;
        Ok(Self { progress, asked_at: 0, helper: Some((ask, thread)) })
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

    /// Called after every commit: does what is due now, and asks for what takes longer.
    pub(super) fn keep_up(&mut self, database: &Connection, tail: u64) {
        self.progress.tail.store(tail, Ordering::Relaxed);
        self.progress.unsynced.store(true, Ordering::Release);
        let pages = self.progress.pages.load(Ordering::Relaxed);
        if self.progress.mostly_home.swap(false, Ordering::Acquire) {
            bring_home(database);
        } else if pages < self.asked_at {
            // The log has begun anew.
            self.asked_at = 0;
        } else if pages >= self.asked_at + MANY_PAGES {
            self.asked_at = pages;
            if let Some((ask, _)) = &self.helper {
                // One request is as good as two.
                let _ = ask.try_send(());
            }
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

/// Copies what can be copied without waiting for anybody. True when everything is home, and synced.
pub(super) fn bring_home(database: &Connection) -> bool {
    match database.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), CheckpointMode::PASSIVE) {
        Ok((pages, home)) => pages == home,
        // The other one is at it.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => false,
        Err(error) => {
            tracing::error!(%error, "the log of the database cannot be brought home; trying again");
            false
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
        loop {
            let told = match self.durability {
                Durability::Full => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Durability::Relaxed => asked.recv_timeout(RELAXED),
            };
            match told {
                Ok(()) => self.work(),
                Err(RecvTimeoutError::Timeout) if self.progress.unsynced.swap(false, Ordering::Acquire) => self.work(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn work(&mut self) {
        // The mail first: the database should not name on the disk what is not there.
        let tail = self.progress.tail.load(Ordering::Relaxed);
        if self.durability == Durability::Relaxed
            && let Err(error) = self.segments.sync(tail)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%error, "mail cannot be synced; trying again");
            return;
        }
        let Some(database) = self.database.take().or_else(|| self.open()) else { return };
        bring_home(&database);
        self.database = Some(database);
        self.progress.mostly_home.store(true, Ordering::Release);
    }

    fn open(&self) -> Option<Connection> {
        let opened = schema::open_helper(&self.path);
        opened.inspect_err(|error| tracing::error!(%error, "the log of the database stays; trying again")).ok()
    }
}
