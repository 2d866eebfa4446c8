//! Checks before new messages are accepted: the files are where readers look for them, and there is enough free space.

use std::time::{Duration, Instant};

use super::directory::reserved_bytes;
use super::error::segment_error;
use super::statistics::SegmentStats;
use super::writer::{PassedCheck, Writer};
use crate::{Result, StoreError};

/// The length of the write-ahead log from which truncating it frees worthwhile space.
const MIN_WAL_TRUNCATE_BYTES: u64 = 1 << 20;
/// How long the result of a check is valid.
const CHECK_VALIDITY: Duration = Duration::from_millis(100);
/// The space that a transaction usually takes in addition to the message, at most.
const TRANSACTION_OVERHEAD_BYTES: u64 = 64 << 10;

impl Writer {
    /// Fails if the database was moved or replaced while it is open.
    pub(super) fn check_database_file(&self) -> Result<()> {
        match self.directory.database_file_id() {
            Ok(found) if found == self.database_file => Ok(()),
            Ok(_) => Err(StoreError::Broken("the database file was replaced; restart the server".to_owned())),
            Err(error) => Err(StoreError::Unavailable(format!("the database file was moved: {error}"))),
        }
    }

    /// Checks what a new message of this size needs: the files in their place, and free space. Messages are refused
    /// before the disk is completely full, because deletions need some space too.
    pub(super) fn preflight(&mut self, bytes: u64) -> Result<()> {
        // The database and its log grow as well.
        let needed = bytes.saturating_mul(2) + TRANSACTION_OVERHEAD_BYTES;
        if let Some(checked) = &mut self.last_check
            && checked.at.elapsed() < CHECK_VALIDITY
            && checked.remaining_bytes >= needed
        {
            checked.remaining_bytes -= needed;
            return Ok(());
        }
        self.last_check = None;
        self.check_database_file()?;
        let space = self.directory.disk_space().map_err(|error| segment_error("checking the free space", &error))?;
        let reserved = reserved_bytes(space);
        if space.free < reserved {
            self.free_space();
            let (free, reserve) = (space.free >> 20, reserved >> 20);
            return Err(StoreError::NoSpace(format!("{free} MiB are free, {reserve} MiB are reserved for deletions")));
        }
        self.active_segment.check_file();
        self.active_segment.prepare().map_err(|error| {
            self.reclaim.has_leftovers = true;
            segment_error("starting a segment", &error)
        })?;
        self.last_check = Some(PassedCheck { at: Instant::now(), remaining_bytes: space.free - reserved });
        Ok(())
    }

    /// Frees space on a full disk: truncates the log, and retires the active segment if most of it is not in use.
    pub(super) fn free_space(&mut self) {
        if self.directory.wal_bytes() > MIN_WAL_TRUNCATE_BYTES && self.commit().is_ok() {
            self.restart_wal();
        }
        self.retire_segment_if(SegmentStats::is_sparse);
    }

    /// Retires an active segment in which nothing is in use, so that its space is freed before it is full.
    pub(super) fn retire_empty_segment(&mut self) {
        let min_bytes = self.settings.segment_bytes / 16;
        self.retire_segment_if(|stats| stats.live == 0 && stats.end > min_bytes);
    }

    fn retire_segment_if(&mut self, condition: impl Fn(&SegmentStats) -> bool) {
        if let Some(current) = self.active_segment.current()
            && let Some(stats) = self.statistics.segments.get(&current).copied().filter(condition)
        {
            self.active_segment.close();
            self.reclaim.mark_if_sparse(current, stats, None);
        }
    }
}
