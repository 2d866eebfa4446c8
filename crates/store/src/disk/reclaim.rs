//! Space comes back: segments that nobody needs are removed, mostly empty ones are written again, leftovers of a crash
//! are deleted, and pages that the database does not use go back to the system. All of it in small steps between the
//! writer's other work.

use std::collections::{BTreeSet, HashSet};

use super::scan::SegmentScan;
use super::segment::PendingFrees;
use super::statistics::{SegmentStats, Statistics};

/// After so many messages went, it is worth looking for pages that the database does not use.
pub(super) const MIN_VACUUM_ROWS: u64 = 10_000;

/// What there is to do.
#[derive(Default)]
pub(super) struct Reclaim {
    /// What can go as soon as that is safe.
    pub(super) pending_frees: PendingFrees,
    /// Whether there may be files that the database does not know.
    pub(super) has_leftovers: bool,
    /// Segments that are worth writing again.
    pub(super) sparse: BTreeSet<u64>,
    /// Segments that cannot be written again, because they are damaged.
    pub(super) damaged: HashSet<u64>,
    /// The segment that is being written again.
    pub(super) current_scan: Option<SegmentScan>,
    /// How many messages went since the database was last looked at.
    pub(super) deleted_rows: u64,
}

impl Reclaim {
    /// Looks at all segments but the one that is being written.
    pub(super) fn mark_sparse_segments(&mut self, books: &Statistics, current: Option<u64>) {
        for (id, book) in &books.segments {
            self.mark_if_sparse(*id, *book, current);
        }
    }

    /// Whether there is anything to do that can be done in steps.
    pub(super) fn is_due(&self) -> bool {
        self.current_scan.is_some() || !self.sparse.is_empty() || self.deleted_rows >= MIN_VACUUM_ROWS
    }

    /// The segment that the next step is about.
    pub(super) fn next_segment(&self) -> Option<u64> {
        self.current_scan.as_ref().map(|sweep| sweep.segment).or_else(|| self.sparse.first().copied())
    }

    /// Leaves everything as it is, until the next message goes.
    pub(super) fn abandon(&mut self) {
        self.current_scan = None;
        self.sparse.clear();
        self.deleted_rows = 0;
    }

    /// Notes a segment, other than the one that is being written, of which less than half is in use.
    pub(super) fn mark_if_sparse(&mut self, id: u64, book: SegmentStats, current: Option<u64>) {
        let under_way = self.current_scan.as_ref().is_some_and(|sweep| sweep.segment == id);
        if current != Some(id) && book.is_sparse() && !under_way && !self.damaged.contains(&id) {
            self.sparse.insert(id);
        }
    }
}
