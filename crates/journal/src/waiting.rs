//! What waits to be written: it grows under the hands of those who bring mail, who must not be held up, and is handed to the
//! one thread that writes it, batch by batch.

use std::mem;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};

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
    inbox: Inbox<Line>,
}

/// Everything behind the lock.
pub(super) struct Line {
    /// What waits, without what is being written. Sizes are bytes.
    pieces: BoundedQueue<Arc<Piece>>,
    /// What is being written, or could not be and will be tried again. All of it was noted before what waits.
    writing: Option<Arc<Chunk>>,
    /// What waits is all that there is room for, so that the shelf as it is counts for nothing.
    outgrown: bool,
    /// How many pieces could not wait, although there was room for them on the shelf.
    lost: u64,
    /// What was noted before goes; and what the thread knows of it.
    deadline: Option<Timestamp>,
    kept_deadline: Option<Timestamp>,
    shelf: ShelfState,
}

/// Pieces that are written together.
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

/// Whether the shelf can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ShelfState {
    #[default]
    Opening,
    Open,
    /// It could not be opened, or everything is written and it was closed. What was noted stays in memory.
    Closed,
}

impl Waiting {
    pub(super) fn new(max_bytes: usize) -> Self {
        let line = Line {
            pieces: BoundedQueue::new(max_bytes.min(MAX_WAITING)),
            writing: None,
            outgrown: false,
            lost: 0,
            deadline: None,
            kept_deadline: None,
            shelf: ShelfState::Opening,
        };
        Self { max_bytes, inbox: Inbox::new(line) }
    }

    /// Lets a piece wait. The first of those that wait go when there are too many.
    pub(super) fn add(&self, piece: Piece) {
        let (piece, mut overtaken) = (Arc::new(piece), None);
        let bytes = piece.bytes();
        let mut contents = self.inbox.lock();
        let line = &mut contents.queue;
        // What goes is freed after the lock is released.
        let gone = line.pieces.push_evicting(piece, bytes);
        if !gone.is_empty() && self.max_bytes <= MAX_WAITING {
            // The journal is full of what waits: whatever is older goes before it.
            line.outgrown = true;
            overtaken = line.writing.take();
        } else {
            line.lost += gone.len() as u64;
        }
        if line.pieces.len() == 1 {
            self.inbox.notify();
        }
        drop(contents);
        drop((gone, overtaken));
    }

    pub(super) fn forget_before(&self, deadline: Timestamp) {
        let mut gone = Vec::new();
        let mut contents = self.inbox.lock();
        let line = &mut contents.queue;
        while let Some(first) = line.pieces.pop_front_if(|first| first.at < deadline) {
            gone.push(first);
        }
        line.deadline = Some(deadline);
        if line.is_overdue() {
            self.inbox.notify();
        }
        drop(contents);
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.inbox.close();
    }

    /// Waits a moment, after nothing more comes, until everything is written. Whether it is.
    pub(super) fn is_closed_soon(&self) -> bool {
        let is_closed = |contents: &mut Contents<Line>| contents.queue.shelf == ShelfState::Closed;
        self.inbox.wait_until(Some(Instant::now() + PATIENCE), is_closed).1
    }

    /// Locks what waits, once it is known whether there is a shelf beside it. Returns the latter too.
    pub(super) fn look(&self) -> (MutexGuard<'_, Contents<Line>>, bool) {
        let is_known = |contents: &mut Contents<Line>| {
            contents.queue.shelf != ShelfState::Opening || contents.stage != Stage::Open
        };
        let (contents, _) = self.inbox.wait_until(None, is_known);
        let line = &contents.queue;
        let is_full = line.pieces.size() + line.writing.as_ref().map_or(0, |chunk| chunk.bytes) > self.max_bytes;
        let is_open = line.shelf == ShelfState::Open && contents.stage == Stage::Open;
        let has_shelf = is_open && !line.outgrown && !is_full;
        (contents, has_shelf)
    }

    /// Notes whether the shelf can be read now.
    pub(super) fn set_shelf(&self, state: ShelfState) {
        self.inbox.lock().queue.shelf = state;
        self.inbox.notify();
    }

    /// Waits for something to do, but not for longer than this. What could not be written comes first.
    pub(super) fn take(&self, time: Duration) -> Batch {
        let has_work = |contents: &mut Contents<Line>| {
            let line = &contents.queue;
            !line.pieces.is_empty() || line.writing.is_some() || line.is_overdue() || contents.stage != Stage::Open
        };
        let (mut contents, _) = self.inbox.wait_until(Instant::now().checked_add(time), has_work);
        let line = &mut contents.queue;
        let chunk = line.writing.take().unwrap_or_else(|| Arc::new(line.first()));
        line.writing = Some(chunk.clone());
        let lost = mem::take(&mut line.lost);
        Batch {
            chunk,
            anew: line.outgrown,
            deadline: line.deadline,
            room: self.max_bytes.saturating_sub(line.pieces.size()),
            lost,
        }
    }

    /// The batch that was taken last is on the shelf.
    pub(super) fn written(&self, batch: &Batch) -> Next {
        let mut contents = self.inbox.lock();
        let (stage, line) = (contents.stage, &mut contents.queue);
        // What was overtaken meanwhile counts for nothing, and neither does the shelf that it is on.
        if line.writing.take().is_some() {
            line.outgrown = false;
        }
        line.kept_deadline = batch.deadline;
        match line.pieces.size() {
            0 if stage != Stage::Open => Next::End,
            BATCH.. => Next::GoOn,
            _ => Next::Rest,
        }
    }

    /// Rests, but not when it is the end.
    pub(super) fn rest(&self, time: Duration) {
        self.inbox.pause(time);
    }

    /// Whether nothing more comes.
    pub(super) fn is_closing(&self) -> bool {
        self.inbox.is_closed()
    }
}

impl Line {
    /// What is not known to be on the shelf, in the order in which it was noted.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Arc<Piece>> {
        // Writing may take long, or fail again and again; what is too old is not told meanwhile.
        let is_due = |piece: &&Arc<Piece>| self.deadline.is_some_and(|deadline| piece.at < deadline);
        let writing = self.writing.iter().flat_map(|chunk| &chunk.pieces);
        writing.skip_while(is_due).chain(self.pieces.iter())
    }

    /// Takes out what is to be written next.
    fn first(&mut self) -> Chunk {
        let (pieces, bytes) = self.pieces.take(usize::MAX, BATCH);
        Chunk { pieces, bytes }
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
        waiting.set_shelf(ShelfState::Open);
        let (contents, has_shelf) = waiting.look();
        (contents.queue.pieces().map(|piece| piece.session.number()).collect(), has_shelf)
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
        assert_eq!((seen(&waiting), waiting.inbox.lock().queue.lost), ((vec![], true), 0));
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
        assert!(waiting.inbox.lock().queue.is_overdue(), "the shelf does not know of it");
    }
}
