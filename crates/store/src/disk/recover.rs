//! Recovery after the process or the machine stopped without closing the store. The database can refer to records that
//! are missing at the end of the last segment: after a power failure with relaxed durability, or with a disk that does
//! not sync correctly. Those messages are removed, and their number is logged. Other damage is left alone: those
//! messages stay, and reading them returns an error.

use std::fs::File;
use std::io;

use rusqlite::Connection;

use super::record::ParsedRecord;
use super::rows::{self, get_u64};
use super::scan::SegmentScan;
use super::segment::{Location, Segments};
use super::transaction::TransactionError;
use super::writer::Writer;
use crate::{CopyKey, Result};

impl Writer {
    /// Runs once, after the store was opened.
    pub(super) fn recover(&mut self) {
        if self.needs_end_check
            && let Err(error) = self.check_last_segment()
        {
            tracing::error!(%error, "cannot check the last segment");
        }
        // The first job opens the database again if it is closed.
        if self.database.is_none() {
            self.reclaim.has_leftovers = true;
            return;
        }
        // The database must be on disk before a file is removed: after a power failure, an older state of it could refer
        // to that file.
        match self.ensure_open() {
            Ok(()) => self.remove_leftovers(),
            Err(error) => {
                tracing::error!(%error, "cannot sync the store, retrying");
                self.reclaim.has_leftovers = true;
            }
        }
        self.run_maintenance();
    }

    /// Removes messages of the last segment whose records are incomplete.
    fn check_last_segment(&mut self) -> Result<()> {
        let Some((&segment, stats)) = self.statistics.segments.last_key_value() else { return Ok(()) };
        if is_intact(&self.shared.segments, segment, stats.end) {
            return Ok(());
        }
        let Some(database) = &self.database else { return Ok(()) };
        let lost = find_lost_copies(database, &self.shared.segments, segment)?;
        let count = lost.len();
        if count == 0 {
            return Ok(());
        }
        self.transact(&[], |changes, database, _| changes.remove_copies(database, &lost).map(drop))
            .and_then(|()| self.commit())
            .map_err(TransactionError::into_error)?;
        tracing::error!(segment, "the end of the last segment is missing on disk: {count} messages are lost");
        Ok(())
    }
}

fn is_intact(segments: &Segments, segment: u64, end: u64) -> bool {
    let Ok(file) = File::open(segments.path(segment)) else { return false };
    let mut scan = SegmentScan { segment, file, offset: 0, end };
    loop {
        match scan.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Returns the copies whose record in this segment did not reach the disk. Reads all rows, but runs only if the segment
/// is damaged.
fn find_lost_copies(database: &Connection, segments: &Segments, segment: u64) -> Result<Vec<CopyKey>> {
    let mut statement = database.prepare("SELECT mailbox, id, offset, length FROM copies WHERE segment = ?1")?;
    let rows = statement.query_map([segment], |row| {
        let at = Location { segment, offset: get_u64(row, 2)?, length: get_u64(row, 3)? };
        Ok((CopyKey { mailbox: rows::get_mailbox(row, 0)?, id: get_u64(row, 1)?.into() }, at))
    })?;
    let mut lost = Vec::new();
    for row in rows {
        let (key, at) = row?;
        let is_lost = match segments.read(at) {
            Ok(bytes) => ParsedRecord::parse(&bytes).is_err() && was_never_written(&bytes, at.offset),
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        };
        if is_lost {
            lost.push(key);
        }
    }
    Ok(lost)
}

/// Returns whether a part of a record was never written. If a file was extended but not written, it contains zeros:
/// whole sectors, counted from the start of the file.
fn was_never_written(record: &[u8], offset: u64) -> bool {
    const SECTOR: usize = 512;
    let zeros = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0);
    let first = usize::try_from(offset.next_multiple_of(SECTOR as u64) - offset).unwrap_or(0);
    let (first, others) = record.split_at(first.min(record.len()));
    zeros(first) || others.chunks(SECTOR).any(zeros)
}
