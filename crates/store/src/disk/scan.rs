//! A scan of all records of a segment.

use std::fs::File;
use std::io;

use restante_platform::FileExt as _;

use super::error::segment_error;
use super::record::{self, ParsedRecord};
use super::segment::Location;
use crate::{Result, StoreError};

/// A scan of a segment, from record to record.
pub(super) struct SegmentScan {
    pub(super) segment: u64,
    pub(super) file: File,
    /// The offset of the next record.
    pub(super) offset: u64,
    /// The offset at which the scan ends.
    pub(super) end: u64,
}

impl SegmentScan {
    /// Reads the next record that is not freed. Returns `None` at the end.
    pub(super) fn next_record(&mut self) -> Result<Option<(Location, Vec<u8>, ParsedRecord)>> {
        let damaged = |offset: u64, cause: &dyn std::fmt::Display| {
            StoreError::Broken(format!("segment {} is damaged at {offset}: {cause}", self.segment))
        };
        let unreadable = |offset: u64, error: &io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged(offset, error),
            _ => segment_error("reading a segment", error),
        };
        while self.offset < self.end {
            let offset = self.offset;
            let mut header = [0; record::HEADER_BYTES];
            let read = self.file.read_exact_at(&mut header, offset);
            read.map_err(|error| unreadable(offset, &error))?;
            let length = record::length(header).map_err(|error| damaged(offset, &error))?;
            if length > self.end - offset {
                return Err(damaged(offset, &"the record is too long"));
            }
            self.offset += length;
            if header.starts_with(&record::FREED_MAGIC) {
                continue;
            }
            let at = Location { segment: self.segment, offset, length };
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut bytes, offset).map_err(|error| unreadable(offset, &error))?;
            // It may have been freed since the header was read.
            if bytes.starts_with(&record::FREED_MAGIC) {
                continue;
            }
            let parsed = ParsedRecord::parse(&bytes).map_err(|error| damaged(offset, &error))?;
            return Ok(Some((at, bytes, parsed)));
        }
        Ok(None)
    }
}
