//! The steps that reclaim space. [`Reclaim`](super::reclaim::Reclaim) keeps the list of work.

use std::collections::HashSet;
use std::fs::File;

use bytes::Bytes;
use restante_mail::message::MessageId;
use rusqlite::wal::CheckpointMode;

use super::changes::Changes;
use super::checkpoint::run_checkpoint;
use super::error::segment_error;
use super::reclaim::MIN_VACUUM_ROWS;
use super::record::Record;
use super::scan::SegmentScan;
use super::segment::Location;
use super::transaction::TransactionError;
use super::writer::Writer;
use crate::{Result, StoreError};

/// The number of bytes of a segment that are processed in one step.
const STEP_BYTES: u64 = 1 << 20;
/// The number of pages that the database frees in one step.
const VACUUM_PAGES: u32 = 256;

impl Writer {
    /// Runs one step: frees unused pages of the database, or else compacts a part of a segment.
    pub(super) fn reclaim_step(&mut self) {
        let segment = self.reclaim.next_segment();
        let step =
            if self.reclaim.deleted_rows >= MIN_VACUUM_ROWS { self.shrink_database() } else { self.compact_step() };
        if let Err(error) = step {
            tracing::error!(%error, "cannot reclaim space");
            self.reclaim.current_scan = None;
            match (error, segment) {
                // A damaged segment stays as it is. It does not prevent others from being compacted.
                (StoreError::Broken(_), Some(segment)) if self.reclaim.deleted_rows < MIN_VACUUM_ROWS => {
                    self.reclaim.sparse.remove(&segment);
                    self.reclaim.damaged.insert(segment);
                }
                // The next deletion starts it again.
                _ => self.reclaim.abandon(),
            }
        }
        self.run_maintenance();
    }

    /// Removes segment files that the database does not know: leftovers of a crash or of a failed write.
    pub(super) fn remove_leftovers(&mut self) {
        self.reclaim.has_leftovers = false;
        let files: HashSet<u64> = match self.shared.segments.ids() {
            Ok(files) => files.into_iter().collect(),
            Err(error) => {
                tracing::error!(%error, "cannot read the folder of segments");
                return;
            }
        };
        for id in &files {
            if !self.statistics.segments.contains_key(id) && self.active_segment.current() != Some(*id) {
                tracing::info!(segment = id, "removing a leftover segment file");
                self.reclaim.pending_frees.segments.push(*id);
                self.active_segment.skip_id(*id);
            }
        }
        for (id, stats) in &self.statistics.segments {
            if !files.contains(id) {
                tracing::error!(
                    segment = id,
                    bytes = stats.live,
                    "a segment file is missing; its messages cannot be read"
                );
            }
        }
    }

    /// Copies the records that are in use from a part of a sparse segment to the active segment. After the last part,
    /// the whole segment is free.
    fn compact_step(&mut self) -> Result<()> {
        self.ensure_open()?;
        let Some(mut scan) = self.next_scan()? else { return Ok(()) };
        let start = scan.offset;
        let mut records = Vec::new();
        let mut moves = Vec::new();
        while scan.offset - start < STEP_BYTES {
            let Some((from, bytes, record)) = scan.next_record()? else { break };
            let Some(database) = &self.database else { break };
            let mut copies = Vec::new();
            for copy in record.copies() {
                if Changes::is_referenced(database, &copy.mailbox, copy.id, from)? {
                    copies.push((copy.mailbox.clone(), copy.id));
                }
            }
            if !copies.is_empty() {
                records.push(Record { head: bytes, body: Bytes::new() });
                moves.push((from, copies));
            }
        }
        let is_done = scan.offset >= scan.end;
        let segment = scan.segment;
        if !records.is_empty() || is_done {
            self.move_records(segment, &records, &moves).map_err(TransactionError::into_error)?;
        }
        if !is_done {
            self.reclaim.current_scan = Some(scan);
        } else if self.statistics.segments.contains_key(&segment) {
            return Err(StoreError::Broken(format!(
                "segment {segment} is counted as in use, but no message refers to it"
            )));
        }
        Ok(())
    }

    fn move_records(
        &mut self,
        segment: u64,
        records: &[Record],
        moves: &[(Location, CopyKeys)],
    ) -> Result<(), TransactionError> {
        self.transact(records, |changes, database, locations| {
            for ((from, copies), to) in moves.iter().zip(locations) {
                changes.relocate_record(database, copies, *from, *to)?;
            }
            // Its row is examined, even if nothing was moved.
            changes.segment_mut(segment);
            Ok(())
        })?;
        self.commit()
    }

    /// Returns the current scan, or starts the next one.
    fn next_scan(&mut self) -> Result<Option<SegmentScan>> {
        if let Some(scan) = self.reclaim.current_scan.take() {
            return Ok(Some(scan));
        }
        let Some(segment) = self.reclaim.sparse.pop_first() else { return Ok(None) };
        let Some(stats) = self.statistics.segments.get(&segment) else { return Ok(None) };
        // If nothing is in use, there is nothing to scan.
        let offset = if stats.live == 0 { stats.end } else { 0 };
        let file = File::open(self.shared.segments.path(segment));
        let file = file.map_err(|error| segment_error("reading a segment", &error))?;
        Ok(Some(SegmentScan { segment, file, offset, end: stats.end }))
    }

    /// Returns unused pages of the database to the file system, unless they are few and will be used soon.
    fn shrink_database(&mut self) -> Result<()> {
        self.ensure_open()?;
        let Some(database) = &self.database else { return Ok(()) };
        let count = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
        let (free, pages) = (count("freelist_count")?, count("page_count")?);
        if free <= pages / 4 || free <= VACUUM_PAGES {
            self.reclaim.deleted_rows = 0;
            return Ok(());
        }
        let vacuumed = self.transact(&[], |_, database, _| {
            // Every step of the statement frees one page.
            let mut vacuum = database.prepare_cached("PRAGMA incremental_vacuum")?;
            let mut steps = vacuum.query([])?;
            for _ in 0..VACUUM_PAGES {
                if steps.next()?.is_none() {
                    break;
                }
            }
            Ok(())
        });
        vacuumed.and_then(|()| self.commit()).map_err(TransactionError::into_error)?;
        // The file is truncated by a checkpoint.
        let Some(database) = &self.database else { return Ok(()) };
        run_checkpoint(database, CheckpointMode::PASSIVE);
        if database.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0))? >= free {
            self.reclaim.deleted_rows = 0;
        }
        Ok(())
    }
}

/// The copies that refer to a record.
type CopyKeys = Vec<(String, MessageId)>;
