//! The active segment: the last one, to which records are appended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::sync::Arc;

use restante_platform::{FileExt as _, file_id, private_file, sync_dir};

use super::record::Record;
use super::segment::{Location, MAX_COALESCED_BYTES, Segments};

/// The segment to which records are appended.
pub(super) struct ActiveSegment {
    segments: Arc<Segments>,
    /// The id of the last segment that was started.
    pub(super) id: u64,
    /// The id of the next one. Ids are not reused.
    next_id: u64,
    /// `None` if the next record starts a new segment.
    file: Option<File>,
    /// The length at which a segment is full.
    max_bytes: u64,
    /// The offset of the next record.
    end: u64,
    /// The offset of the records that were appended last, until [`Self::keep_appended`].
    appended_from: Option<u64>,
}

impl ActiveSegment {
    /// Creates a value without an open segment: the next record starts a new one. `last` is the highest id of a segment
    /// file.
    pub(super) fn new(segments: Arc<Segments>, max_bytes: u64, last: u64) -> Self {
        Self { segments, id: last, next_id: last + 1, file: None, max_bytes, end: 0, appended_from: None }
    }

    /// Continues a segment if it is not full. Bytes after `end` are not a record.
    pub(super) fn resume(&mut self, segment: u64, end: u64) {
        if segment > 0 && end < self.max_bytes {
            (self.id, self.end) = (segment, end);
            // If it cannot be continued, the next record starts a new one.
            self.file = self
                .reopen()
                .inspect_err(
                    |error| tracing::error!(%error, segment, "cannot continue the last segment, starting a new one"),
                )
                .ok();
        }
    }

    fn reopen(&self) -> io::Result<File> {
        let file = OpenOptions::new().write(true).open(self.segments.path(self.id))?;
        match file.metadata()?.len() {
            length if length < self.end => Err(io::ErrorKind::UnexpectedEof.into()),
            length if length > self.end => file.set_len(self.end).map(|()| file),
            _ => Ok(file),
        }
    }

    /// Starts a new segment after syncing the one in `full`. Its directory entry is synced when this returns.
    fn start_segment(&mut self, full: Option<File>) -> io::Result<File> {
        // From now on, only the new segment can contain bytes that are not synced.
        if let Some(full) = full
            && let Err(error) = full.sync_data()
        {
            self.file = Some(full);
            return Err(error);
        }
        let id = self.next_id;
        self.next_id += 1;
        let path = self.segments.path(id);
        // An existing file with this name is a leftover of an earlier process.
        let file = private_file().write(true).create(true).truncate(true).open(path)?;
        sync_dir(&self.segments.dir)?;
        self.id = id;
        self.end = 0;
        Ok(file)
    }

    /// Makes sure that this id is never assigned, because the file is going to be removed.
    pub(super) fn skip_id(&mut self, segment: u64) {
        self.next_id = self.next_id.max(segment + 1);
    }

    /// Makes sure that there is a segment to write to.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) if self.end < self.max_bytes => file,
            full => self.start_segment(full)?,
        };
        self.file = Some(file);
        Ok(())
    }

    /// Closes the segment if its file was moved or replaced, because readers would not find its records.
    pub(super) fn check_file(&mut self) {
        let Some(file) = &self.file else { return };
        let on_disk = fs::metadata(self.segments.path(self.id)).ok();
        let opened = file.metadata().ok();
        if on_disk.as_ref().map(file_id) != opened.as_ref().map(file_id) {
            self.close();
        }
    }

    /// Returns the id of the segment. `None` if the next record starts a new one.
    pub(super) fn current(&self) -> Option<u64> {
        self.file.is_some().then_some(self.id)
    }

    /// Closes the segment. The next record starts a new one.
    pub(super) fn close(&mut self) {
        if let Some(file) = self.file.take() {
            // Earlier records may not be synced yet. An error is ignored: a disk that fails now has already reported
            // one.
            let _ = file.sync_data();
        }
    }

    /// Ends an append whose rows are in the open transaction.
    pub(super) fn keep_appended(&mut self) {
        self.appended_from = None;
    }

    /// Removes the records that were appended last, unless they are kept.
    pub(super) fn undo_append(&mut self) {
        if let (Some(start), Some(file)) = (self.appended_from.take(), &self.file) {
            self.end = start;
            // If this fails, the records stay, and the next record starts a new segment.
            if file.set_len(start).is_err() {
                self.close();
            }
        }
    }

    /// Appends records. If this fails, nothing is appended.
    pub(super) fn append(&mut self, records: &[Record]) -> io::Result<Vec<Location>> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        self.prepare()?;
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let start = self.end;
        let mut locations = Vec::with_capacity(records.len());
        for record in records {
            locations.push(Location { segment: self.id, offset: self.end, length: record.len() });
            self.end += record.len();
        }
        self.appended_from = Some(start);
        let written = write_records(file, start, records);
        if written.is_err() {
            self.undo_append();
        }
        written.map(|()| locations)
    }

    /// Syncs everything that was written.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
}

fn write_records(file: &File, mut offset: u64, records: &[Record]) -> io::Result<()> {
    let buffered_bytes = |record: &Record| {
        record.head.len() + Some(record.body.len()).filter(|body| *body <= MAX_COALESCED_BYTES).unwrap_or(0)
    };
    let mut buffer = Vec::with_capacity(records.iter().map(buffered_bytes).sum());
    for record in records {
        buffer.extend_from_slice(&record.head);
        if record.body.len() <= MAX_COALESCED_BYTES {
            buffer.extend_from_slice(&record.body);
            continue;
        }
        file.write_all_at(&buffer, offset)?;
        offset += buffer.len() as u64;
        buffer.clear();
        file.write_all_at(&record.body, offset)?;
        offset += record.body.len() as u64;
    }
    file.write_all_at(&buffer, offset)
}
