//! What waits to be written: it grows under the hands of those who bring mail, who must not be held up, and is handed to the
//! one thread that writes it, batch by batch.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Piece;

/// The most that waits, in bytes, beside what is being written.
pub(super) const MAX_WAITING: usize = 16 << 20;
/// How much is written in one transaction, in bytes, or a piece more.
const BATCH: usize = 1 << 20;
/// How long the end waits for what is left to be written.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is too old goes at most so much later.
const TARDINESS: SignedDuration = SignedDuration::from_secs(5);

/// What was noted and is not yet on the shelf.
pub(super) struct Waiting {
    /// What the journal holds, here and on the shelf.
    max_bytes: usize,
    line: Mutex<Line>,
    changed: Condvar,
}

/// Everything behind the lock.
#[derive(Default)]
pub(super) struct Line {
    /// What waits, without what is being written.
    pieces: VecDeque<Arc<Piece>>,
    bytes: usize,
    /// What is being written, or could not be and will be tried again. All of it was noted before what waits.
    writing: Option<Arc<Chunk>>,
    /// What waits is all that there is room for, so that the shelf as it is counts for nothing.
    outgrown: bool,
    /// How many pieces could not wait, although there was room for them on the shelf.
    lost: u64,
    /// What was noted before goes; and what the thread knows of it.
    deadline: Option<Timestamp>,
    kept_deadline: Option<Timestamp>,
    shelf: Stage,
}

/// Pieces that are written together.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) pieces: Vec<Arc<Piece>>,
    bytes: usize,
}

/// What the thread has to do.
pub(super) struct Batch {
    pub(super) chunk: Arc<Chunk>,
    /// The shelf is to be emptied first.
    pub(super) anew: bool,
    pub(super) deadline: Option<Timestamp>,
    /// The bytes for which there is room on the shelf, beside what waits behind this.
    pub(super) room: usize,
    pub(super) lost: u64,
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Rest,
    /// There is enough for another batch.
    GoOn,
    /// Everything is written, and nothing more comes.
    End,
}

/// What the shelf is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Opening,
    Usable,
    Closing,
    /// The thread has ended: what was noted stays where it is.
    Closed,
}

impl Waiting {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: Mutex::default(), changed: Condvar::new() }
    }

    /// Lets a piece wait. The first of those that wait go when there are too many.
    pub(super) fn add(&self, piece: Piece) {
        // What goes is freed after the lock is let go.
        let (mut gone, mut overtaken) = (Vec::new(), None);
        let piece = Arc::new(piece);
        let mut line = self.line();
        line.bytes += piece.bytes();
        line.pieces.push_back(piece);
        while line.bytes > self.max_bytes.min(MAX_WAITING) {
            let Some(first) = line.pieces.pop_front() else { break };
            line.bytes -= first.bytes();
            gone.push(first);
        }
        if !gone.is_empty() && self.max_bytes <= MAX_WAITING {
            // The journal is full of what waits: whatever is older goes before it.
            line.outgrown = true;
            overtaken = line.writing.take();
        } else {
            line.lost += gone.len() as u64;
        }
        if line.pieces.len() == 1 {
            self.changed.notify_all();
        }
        drop(line);
        drop(overtaken);
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

    /// Nothing more comes.
    pub(super) fn close(&self) {
        let mut line = self.line();
        if line.shelf != Stage::Closed {
            line.shelf = Stage::Closing;
        }
        drop(line);
        self.changed.notify_all();
    }

    /// Waits a moment, after nothing more comes, until everything is written. Whether it is.
    pub(super) fn is_closed_soon(&self) -> bool {
        let closed = self.changed.wait_timeout_while(self.line(), PATIENCE, |line| line.shelf == Stage::Closing);
        !closed.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What waits, and whether there is a shelf beside it, once that is known.
    pub(super) fn look(&self) -> (MutexGuard<'_, Line>, bool) {
        let line = self.changed.wait_while(self.line(), |line| line.shelf == Stage::Opening);
        let line = line.unwrap_or_else(PoisonError::into_inner);
        let is_full = line.bytes + line.writing.as_ref().map_or(0, |chunk| chunk.bytes) > self.max_bytes;
        let has_shelf = line.shelf == Stage::Usable && !line.outgrown && !is_full;
        (line, has_shelf)
    }

    /// Tells what the shelf is good for now. That it is closing stays true until it is closed.
    pub(super) fn tell(&self, stage: Stage) {
        let mut line = self.line();
        if line.shelf != Stage::Closing || stage == Stage::Closed {
            line.shelf = stage;
        }
        drop(line);
        self.changed.notify_all();
    }

    /// Waits for something to do, but not for longer than this. What could not be written comes first.
    pub(super) fn take(&self, time: Duration) -> Batch {
        let idle = |line: &mut Line| {
            line.pieces.is_empty() && line.writing.is_none() && !line.is_overdue() && line.shelf != Stage::Closing
        };
        let waited = self.changed.wait_timeout_while(self.line(), time, idle);
        let (mut line, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let chunk = line.writing.take().unwrap_or_else(|| Arc::new(line.first()));
        line.writing = Some(chunk.clone());
        let lost = mem::take(&mut line.lost);
        Batch {
            chunk,
            anew: line.outgrown,
            deadline: line.deadline,
            room: self.max_bytes.saturating_sub(line.bytes),
            lost,
        }
    }

    /// The batch that was taken last is on the shelf.
    pub(super) fn written(&self, batch: &Batch) -> Next {
        let mut line = self.line();
        // What was overtaken meanwhile counts for nothing, and neither does the shelf that it is on.
        if line.writing.take().is_some() {
            line.outgrown = false;
        }
        line.kept_deadline = batch.deadline;
        match (line.shelf, line.bytes) {
            (Stage::Closing, 0) => Next::End,
            (_, bytes) if bytes >= BATCH => Next::GoOn,
            _ => Next::Rest,
        }
    }

    /// Rests, but not when it is the end.
    pub(super) fn rest(&self, time: Duration) {
        let rested = self.changed.wait_timeout_while(self.line(), time, |line| line.shelf != Stage::Closing);
        drop(rested.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether nothing more comes.
    pub(super) fn is_closing(&self) -> bool {
        self.line().shelf == Stage::Closing
    }

    /// A panic elsewhere must not take the journal with it: no change of [`Line`] stops half-way.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// What is not known to be on the shelf, in the order in which it was noted.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Arc<Piece>> {
        // Writing may take long, or fail again and again; what is too old is not told meanwhile.
        let is_due = |piece: &&Arc<Piece>| self.deadline.is_some_and(|deadline| piece.at < deadline);
        let writing = self.writing.iter().flat_map(|chunk| &chunk.pieces);
        writing.skip_while(is_due).chain(&self.pieces)
    }

    /// Takes out what is to be written next.
    fn first(&mut self) -> Chunk {
        let mut chunk = Chunk::default();
        while chunk.bytes < BATCH
            && let Some(piece) = self.pieces.pop_front()
        {
            chunk.bytes += piece.bytes();
            chunk.pieces.push(piece);
        }
        self.bytes -= chunk.bytes;
        chunk
    }

    /// Whether the thread has something to forget that it does not know of.
    fn is_overdue(&self) -> bool {
        match (self.deadline, self.kept_deadline) {
            (Some(deadline), Some(kept)) => deadline.duration_since(kept) > TARDINESS,
            (deadline, _) => deadline.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::piece;

    /// The sessions that wait, and whether the shelf counts beside them.
    fn seen(waiting: &Waiting) -> (Vec<u64>, bool) {
        waiting.tell(Stage::Usable);
        let (line, has_shelf) = waiting.look();
        (line.pieces().map(|piece| piece.session.number()).collect(), has_shelf)
    }

    fn add(waiting: &Waiting, sessions: std::ops::RangeInclusive<u64>) {
        for session in sessions {
            waiting.add(piece(session, 0, "head"));
        }
    }

    #[test]
    fn what_is_overtaken_by_a_full_journal_counts_no_more() {
        let each = piece(1, 0, "head").bytes();
        let waiting = Waiting::new(3 * each);
        add(&waiting, 1..=2);
        let batch = waiting.take(Duration::MAX);
        assert_eq!(seen(&waiting), (vec![1, 2], true));
        add(&waiting, 3..=4);
        assert_eq!(seen(&waiting), (vec![1, 2, 3, 4], false), "more than the journal holds, without the shelf");
        add(&waiting, 5..=6);
        assert_eq!(seen(&waiting), (vec![4, 5, 6], false), "3 had to go, and those before it");
        waiting.written(&batch);
        assert_eq!(seen(&waiting), (vec![4, 5, 6], false));
        let batch = waiting.take(Duration::MAX);
        assert!(batch.anew, "what was written before 3 goes");
        waiting.written(&batch);
        assert_eq!((seen(&waiting), waiting.line().lost), ((vec![], true), 0));
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_in_its_order() {
        let waiting = Waiting::new(1 << 20);
        add(&waiting, 1..=2);
        let failed = waiting.take(Duration::MAX);
        add(&waiting, 3..=3);
        let again = waiting.take(Duration::MAX);
        assert!(Arc::ptr_eq(&failed.chunk, &again.chunk));
        assert_eq!(seen(&waiting), (vec![1, 2, 3], true));
        waiting.written(&again);
        assert_eq!(seen(&waiting), (vec![3], true));
    }

    #[test]
    fn what_is_too_old_is_not_told_while_it_is_written() {
        let waiting = Waiting::new(1 << 20);
        add(&waiting, 1..=3);
        let batch = waiting.take(Duration::MAX);
        add(&waiting, 4..=5);
        waiting.forget_before(Timestamp::from_second(3).unwrap());
        assert_eq!(seen(&waiting), (vec![3, 4, 5], true));
        waiting.forget_before(Timestamp::from_second(5).unwrap());
        assert_eq!(seen(&waiting), (vec![5], true));
        waiting.written(&batch);
        assert!(waiting.line().is_overdue(), "the shelf does not know of it");
    }
}
