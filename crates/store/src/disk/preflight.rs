//! The ground that the writer stands on: the files are where readers will look for them, and there is room on the disk.

use std::time::{Duration, Instant};

use super::error::segment_error;
use super::statistics::SegmentStats;
use super::writer::{PassedCheck, Writer};
use crate::{Result, StoreError};

/// A log that is worth cutting off when room is short.
const MIN_WAL_TRUNCATE_BYTES: u64 = 1 << 20;
/// How long it is believed that files and room are still there.
const CHECK_VALIDITY: Duration = Duration::from_millis(100);
/// What a transaction takes beside the mail, at most, as a rule.
const TRANSACTION_OVERHEAD_BYTES: u64 = 64 << 10;

impl Writer {
    /// Somebody may have moved the database, or all of the directory, away from under us.
    pub(super) fn check_database_file(&self) -> Result<()> {
        match self.directory.database_file_id() {
            Ok(found) if found == self.database_file => Ok(()),
            Ok(_) => Err(StoreError::Broken("the database was replaced by another; restart the server".to_owned())),
            Err(error) => Err(StoreError::Unavailable(format!("the database is not where it was: {error}"))),
        }
    }

    /// What has to be there before new mail is taken: the files, where readers will look for them; and room. Mail is
    /// refused before the disk is full to the last byte, because deletions need some room too.
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
        let room = self.directory.disk_space().map_err(|error| segment_error("looking for room", &error))?;
        if room.free < room.reserve() {
            self.free_space();
            let (free, reserve) = (room.free >> 20, room.reserve() >> 20);
            return Err(StoreError::NoSpace(format!("{free} MiB are free, {reserve} MiB are kept for deletions")));
        }
        self.active_segment.check_file();
        self.active_segment.prepare().map_err(|error| {
            self.reclaim.has_leftovers = true;
            segment_error("beginning a segment", &error)
        })?;
        self.last_check = Some(PassedCheck { at: Instant::now(), remaining_bytes: room.free - room.reserve() });
        Ok(())
    }

    /// Gives back what can be given back when there is no room: the log begins anew, and the last segment is left when most
    /// of it is not in use.
    pub(super) fn free_space(&mut self) {
        if self.directory.wal_bytes() > MIN_WAL_TRUNCATE_BYTES {
            self.restart_wal();
        }
        self.retire_segment_if(SegmentStats::is_sparse);
    }

    /// When nothing in the last segment is in use, its space need not wait until it is full.
    pub(super) fn retire_empty_segment(&mut self) {
        let worth_it = self.settings.segment_bytes / 16;
        self.retire_segment_if(|book| book.live == 0 && book.end > worth_it);
    }

    fn retire_segment_if(&mut self, wanted: impl Fn(&SegmentStats) -> bool) {
        if let Some(current) = self.active_segment.current()
            && let Some(book) = self.statistics.segments.get(&current).copied().filter(wanted)
        {
            self.active_segment.close();
            self.reclaim.mark_if_sparse(current, book, None);
        }
    }
}
