//! Replay: creates the rows of messages that are in segments but not in the database. New messages are acknowledged when
//! their records are synced, and their rows are committed later. So after a crash, or after an error of the database, the
//! latest messages are only in the segments.

use std::fs::File;
use std::io;

use super::error::segment_error;
use super::scan::SegmentScan;
use super::transaction::TransactionError;
use super::writer::Writer;
use crate::{Result, StoreError};

impl Writer {
    /// Adds the messages after the last record that the database knows. If this fails, some of them may be missing, and
    /// it must be called again before new messages are written.
    pub(super) fn replay(&mut self) -> Result<()> {
        let (last, end) = self.statistics.segments.last_key_value().map_or((0, 0), |(id, stats)| (*id, stats.end));
        let ids = self.shared.segments.ids();
        let mut ids = ids.map_err(|error| segment_error("reading the folder of segments", &error))?;
        ids.retain(|id| *id >= last);
        ids.sort_unstable();
        // Until all of them are added, queries must not miss them.
        self.shared.has_uncommitted.set(true);
        let mut count = 0;
        for id in ids {
            self.replayed_segment = Some(id);
            let replayed = self.replay_segment(id, if id == last { end } else { 0 });
            self.replayed_segment = None;
            count += replayed?;
        }
        if count > 0 {
            tracing::info!("restored {count} messages after a crash or an error of the database");
        }
        self.commit().map_err(TransactionError::into_error)?;
        self.shared.has_uncommitted.set(false);
        Ok(())
    }

    /// Adds the messages of a segment from an offset on. Returns their number.
    fn replay_segment(&mut self, segment: u64, offset: u64) -> Result<usize> {
        let opened = File::open(self.shared.segments.path(segment)).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (end, file) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(segment_error("reading a segment", &error)),
        };
        let mut scan = SegmentScan { segment, file, offset, end };
        let mut count = 0;
        loop {
            let (at, bytes, record) = match scan.next_record() {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(count),
                // A record that is not complete was not acknowledged, and it is the last one.
                Err(StoreError::Broken(cause)) => {
                    tracing::info!(segment, "records after the last complete one are ignored: {cause}");
                    return Ok(count);
                }
                Err(error) => return Err(error),
            };
            // A record with a known id was moved here by a compaction that was not committed.
            let last_id = self.statistics.counters.last_id;
            if record.copies().first().is_none_or(|copy| copy.id <= last_id) {
                continue;
            }
            let (message, prepared) = record.into_message(bytes);
            self.change(&[at], |changes, database, _| changes.append(database, &message, &prepared, at).map(drop))
                .map_err(TransactionError::into_error)?;
            count += 1;
            if self.uncommitted.is_due() {
                self.commit().map_err(TransactionError::into_error)?;
            }
        }
    }
}
