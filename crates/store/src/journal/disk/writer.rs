//! What waits to be written, and the thread that writes it.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::file::File;
use crate::journal::{Numbers, Piece};

/// The most that waits, in bytes.
const MAX_WAITING: usize = 16 << 20;
/// How much is written at once.
const BATCH: usize = 500;
/// How long the thread rests between batches. What comes faster than both allow waits in memory, and writing never takes
/// more than a small part of a processor.
const REST: Duration = Duration::from_millis(250);
/// How long it rests after a failure.
const LONG_REST: Duration = Duration::from_secs(10);
/// How long the end waits for what is left to be written.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is too old goes at most so much later.
const TARDINESS: SignedDuration = SignedDuration::from_secs(5);

/// What was noted and is not yet in the file.
pub(super) struct Waiting {
    max_bytes: usize,
    /// Whether there is no more room than for what waits.
    is_all: bool,
    line: Mutex<Line>,
    changed: Condvar,
}

/// Everything behind the lock.
#[derive(Default)]
pub(super) struct Line {
    pub(super) pieces: VecDeque<Arc<Piece>>,
    bytes: usize,
    /// What waits is all that there is room for, so that the file counts for nothing.
    pub(super) outgrown: bool,
    /// How many pieces could not wait.
    dropped: u64,
    /// What was noted before goes; and what the thread knows of it.
    deadline: Option<Timestamp>,
    kept_deadline: Option<Timestamp>,
    file: Stage,
}

/// What the file is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Opening,
    Usable,
    Closing,
    /// The thread has ended: what was noted stays where it is.
    Closed,
}

impl Waiting {
    pub(super) fn new(max_bytes: usize) -> Self {
        let (line, changed) = (Mutex::default(), Condvar::new());
        Self { max_bytes: max_bytes.min(MAX_WAITING), is_all: max_bytes <= MAX_WAITING, line, changed }
    }

    /// Lets a piece wait. The first of those that wait go when there are too many.
    pub(super) fn add(&self, piece: Piece) {
        // What goes is freed after the lock is let go.
        let mut gone = Vec::new();
        let piece = Arc::new(piece);
        let mut line = self.line();
        line.bytes += piece.bytes();
        line.pieces.push_back(piece);
        while line.bytes > self.max_bytes {
            let Some(first) = line.pieces.pop_front() else { break };
            line.bytes -= first.bytes();
            line.outgrown |= self.is_all;
            line.dropped += 1;
            gone.push(first);
        }
        if line.pieces.len() == 1 {
            self.changed.notify_all();
        }
        drop(line);
    }

    pub(super) fn forget_before(&self, deadline: Timestamp) {
        let mut gone = Vec::new();
        let mut line = self.line();
        while let Some(first) = line.pieces.pop_front_if(|first| first.at < deadline) {
            line.bytes -= first.bytes();
            gone.push(first);
        }
        line.deadline = Some(deadline);
        if line.is_overdue() {
            self.changed.notify_all();
        }
        drop(line);
    }

    /// Nothing more comes: waits a moment until everything is written. Whether it is.
    pub(super) fn close(&self) -> bool {
        let mut line = self.line();
        if line.file != Stage::Closed {
            line.file = Stage::Closing;
        }
        self.changed.notify_all();
        let closed = self.changed.wait_timeout_while(line, PATIENCE, |line| line.file == Stage::Closing);
        !closed.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What waits, and whether there is a file beside it, once that is known.
    pub(super) fn look(&self) -> (MutexGuard<'_, Line>, bool) {
        let line = self.changed.wait_while(self.line(), |line| line.file == Stage::Opening);
        let line = line.unwrap_or_else(PoisonError::into_inner);
        let has_file = line.file == Stage::Usable && !line.outgrown;
        (line, has_file)
    }

    /// A panic elsewhere must not take the journal with it: no change of [`Line`] stops half-way.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what the file is good for now. That it is closing stays true until it is closed.
    fn tell(&self, stage: Stage) {
        let mut line = self.line();
        if line.file != Stage::Closing || stage == Stage::Closed {
            line.file = stage;
        }
        drop(line);
        self.changed.notify_all();
    }

    /// Waits for something to do, and says whether that is the last time.
    fn wait(&self) -> (MutexGuard<'_, Line>, bool) {
        let idle = |line: &mut Line| line.pieces.is_empty() && !line.is_overdue() && line.file != Stage::Closing;
        let line = self.changed.wait_while(self.line(), idle).unwrap_or_else(PoisonError::into_inner);
        let is_last = line.file == Stage::Closing;
        (line, is_last)
    }

    /// Rests, but not when it is the end.
    fn rest(&self, time: Duration) {
        let rested = self.changed.wait_timeout_while(self.line(), time, |line| line.file != Stage::Closing);
        drop(rested.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Line {
    /// Whether the thread has something to forget that it does not know of.
    fn is_overdue(&self) -> bool {
        match (self.deadline, self.kept_deadline) {
            (Some(deadline), Some(kept)) => deadline.duration_since(kept) > TARDINESS,
            (deadline, _) => deadline.is_some(),
        }
    }
}

/// The thread.
pub(super) struct Writer {
    path: PathBuf,
    max_bytes: usize,
    waiting: Arc<Waiting>,
    numbers: Arc<Numbers>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, max_bytes: usize, waiting: Arc<Waiting>, numbers: Arc<Numbers>) -> Self {
        Self { path, max_bytes, waiting, numbers }
    }

    /// Writes until nothing more comes.
    pub(super) fn run(self) {
        self.keep_writing();
        self.waiting.tell(Stage::Closed);
    }

    fn keep_writing(&self) {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(problem) => {
                tracing::error!(problem, "transcripts of sessions are kept in memory only");
                return;
            }
        };
        self.numbers.skip_to(file.last_session());
        self.waiting.tell(Stage::Usable);
        let mut failing = false;
        loop {
            match self.write_some(&mut file) {
                Ok(true) => return,
                Ok(false) => {
                    failing = false;
                    self.waiting.rest(REST);
                }
                Err(_) if self.waiting.line().file == Stage::Closing => return,
                Err(error) => {
                    if !mem::replace(&mut failing, true) {
                        tracing::error!(%error, "transcripts of sessions cannot be written; trying again");
                    }
                    self.waiting.rest(LONG_REST);
                    // What is damaged does not get better by trying again.
                    match File::reopen(&self.path) {
                        Ok(fresh) => file = fresh,
                        Err(problem) => tracing::debug!(problem, "transcripts of sessions cannot be written"),
                    }
                }
            }
        }
    }

    /// Writes what waits, or the first of it, and then lets it wait no longer. Whether that was all, and nothing more comes.
    fn write_some(&self, file: &mut File) -> rusqlite::Result<bool> {
        let (mut line, is_last) = self.waiting.wait();
        let batch: Vec<Arc<Piece>> = line.pieces.iter().take(BATCH).cloned().collect();
        let (outgrown, deadline, dropped) = (line.outgrown, line.deadline, mem::take(&mut line.dropped));
        let rest = line.bytes - batch.iter().map(|piece| piece.bytes()).sum::<usize>();
        drop(line);
        if dropped > 0 && !outgrown {
            tracing::warn!(pieces = dropped, "transcripts came faster than they can be written, and some are lost");
        }
        file.write(&batch, outgrown, deadline, self.max_bytes.saturating_sub(rest))?;
        let mut line = self.waiting.line();
        for written in &batch {
            // It may have gone meanwhile, and those before it.
            if let Some(first) = line.pieces.pop_front_if(|first| Arc::ptr_eq(first, written)) {
                line.bytes -= first.bytes();
            }
        }
        if line.dropped == 0 {
            line.outgrown = false;
        }
        line.kept_deadline = deadline;
        Ok(is_last && line.pieces.is_empty())
    }
}
