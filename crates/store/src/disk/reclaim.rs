//! The list of space that can be reclaimed. Segments that are not in use are removed, sparse ones are compacted,
//! leftovers of a crash are deleted, and unused pages of the database are returned to the file system. The writer does
//! this in small steps between its jobs.

use std::collections::{BTreeSet, HashSet};

use super::scan::SegmentScan;
use super::segment::PendingFrees;
use super::statistics::{SegmentStats, Statistics};

/// The number of deleted messages after which the database is checked for unused pages.
pub(super) const MIN_VACUUM_ROWS: u64 = 10_000;

/// Space that can be reclaimed.
#[derive(Default)]
pub(super) struct Reclaim {
    /// Space that can be freed as soon as the deletions are on disk.
    pub(super) pending_frees: PendingFrees,
    /// Whether there may be files that the database does not know.
    pub(super) has_leftovers: bool,
    /// Segments that are worth compacting.
    pub(super) sparse: BTreeSet<u64>,
    /// Segments that cannot be compacted because they are damaged.
    pub(super) damaged: HashSet<u64>,
    /// The segment that is being compacted.
    pub(super) current_scan: Option<SegmentScan>,
    /// The number of messages deleted since the database was last checked for unused pages.
    pub(super) deleted_rows: u64,
}

impl Reclaim {
    /// Marks all sparse segments except the active one.
    pub(super) fn mark_sparse_segments(&mut self, statistics: &Statistics, active: Option<u64>) {
        for (id, stats) in &statistics.segments {
            self.mark_if_sparse(*id, *stats, active);
        }
    }

    /// Returns whether there is work that is done in steps.
    pub(super) fn is_due(&self) -> bool {
        self.current_scan.is_some() || !self.sparse.is_empty() || self.deleted_rows >= MIN_VACUUM_ROWS
    }

    /// Returns the segment of the next step.
    pub(super) fn next_segment(&self) -> Option<u64> {
        self.current_scan.as_ref().map(|scan| scan.segment).or_else(|| self.sparse.first().copied())
    }

    /// Stops reclaiming until the next deletion.
    pub(super) fn abandon(&mut self) {
        self.current_scan = None;
        self.sparse.clear();
        self.deleted_rows = 0;
    }

    /// Marks a segment for compaction if less than half of it is in use and it is not the active one.
    pub(super) fn mark_if_sparse(&mut self, id: u64, stats: SegmentStats, active: Option<u64>) {
        let is_being_scanned = self.current_scan.as_ref().is_some_and(|scan| scan.segment == id);
        if active != Some(id) && stats.is_sparse() && !is_being_scanned && !self.damaged.contains(&id) {
            self.sparse.insert(id);
        }
    }
}
