//! Space comes back: segments that nobody needs are removed, mostly empty ones are written again, leftovers of a crash
//! are deleted, and pages that the database does not use go back to the system. All of it in small steps between the
//! writer's other work.

use std::collections::{BTreeSet, HashSet};

use super::books::{Books, SegmentBook};
use super::segment::Graves;
use super::sweep::Sweep;

/// After so many messages went, it is worth looking for pages that the database does not use.
pub(super) const MANY_ROWS: u64 = 10_000;

/// What there is to do.
#[derive(Default)]
pub(super) struct Reclaim {
    /// What can go as soon as that is safe.
    pub(super) graves: Graves,
    /// Whether there may be files that the database does not know.
    pub(super) leftovers: bool,
    /// Segments that are worth writing again.
    pub(super) sparse: BTreeSet<u64>,
    /// Segments that cannot be written again, because they are damaged.
    pub(super) stuck: HashSet<u64>,
    /// The segment that is being written again.
    pub(super) under_way: Option<Sweep>,
    /// How many messages went since the database was last looked at.
    pub(super) rows_went: u64,
}

impl Reclaim {
    /// Looks at all segments but the one that is being written.
    pub(super) fn look_around(&mut self, books: &Books, current: Option<u64>) {
        for (id, book) in &books.segments {
            self.consider(*id, *book, current);
        }
    }

    /// Whether there is anything to do that can be done in steps.
    pub(super) fn is_due(&self) -> bool {
        self.under_way.is_some() || !self.sparse.is_empty() || self.rows_went >= MANY_ROWS
    }

    /// The segment that the next step is about.
    pub(super) fn next_segment(&self) -> Option<u64> {
        self.under_way.as_ref().map(|sweep| sweep.segment).or_else(|| self.sparse.first().copied())
    }

    /// Leaves everything as it is, until the next message goes.
    pub(super) fn give_up(&mut self) {
        self.under_way = None;
        self.sparse.clear();
        self.rows_went = 0;
    }

    /// Notes a segment, other than the one that is being written, of which less than half is in use.
    pub(super) fn consider(&mut self, id: u64, book: SegmentBook, current: Option<u64>) {
        let under_way = self.under_way.as_ref().is_some_and(|sweep| sweep.segment == id);
        if current != Some(id) && book.is_sparse() && !under_way && !self.stuck.contains(&id) {
            self.sparse.insert(id);
        }
    }
}
