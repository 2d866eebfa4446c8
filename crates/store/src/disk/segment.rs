//! The folder of segment files, which contain the messages. Segments are append-only; the database says which parts are
//! still in use. This module reads, frees and removes segments. [`ActiveSegment`](super::active_segment::ActiveSegment)
//! writes them.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use restante_platform::{FileExt as _, punch_hole, sync_file};

use super::record;

/// Records up to this length are collected into one write. Larger ones are not worth the copy.
pub(super) const MAX_COALESCED_BYTES: usize = 64 << 10;
/// The minimum length of a record whose space is freed on its own.
pub(super) const MIN_PUNCH_BYTES: u64 = 64 << 10;
/// File systems free space in multiples of this.
const BLOCK_BYTES: u64 = 4096;
/// The number of segments that are kept open for reading.
const MAX_OPEN_FILES: usize = 64;

/// The location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// All segments of a data directory.
pub(super) struct Segments {
    pub(super) dir: PathBuf,
    open_files: Mutex<HashMap<u64, Arc<File>>>,
}

impl Segments {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, open_files: Mutex::default() }
    }

    /// Reads a record. Fails with [`io::ErrorKind::NotFound`] if the segment was removed.
    pub(super) fn read(&self, at: Location) -> io::Result<Vec<u8>> {
        let length = usize::try_from(at.length).map_err(|_| io::ErrorKind::InvalidData)?;
        let file = self.file(at.segment)?;
        // A damaged database must not cause an allocation that is larger than the file.
        if length > MAX_COALESCED_BYTES && file.metadata()?.len() < at.offset.saturating_add(at.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at.offset)?;
        Ok(bytes)
    }

    /// Removes a segment. Readers that have it open can finish.
    pub(super) fn remove(&self, segment: u64) -> io::Result<()> {
        // Without its name the file cannot be opened again, so it can be removed from the cache now.
        let removed = fs::remove_file(self.path(segment));
        self.open_files.lock().remove(&segment);
        removed
    }

    /// Frees the space of large records inside of a segment. Not all file systems support this; there, the space is
    /// freed with the whole segment.
    fn punch_holes(&self, segment: u64, records: &[Location]) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(segment))?;
        for at in records {
            let mut header = [0; record::HEADER_BYTES];
            file.read_exact_at(&mut header, at.offset)?;
            // A hole cannot be undone, so the location must be that of a record.
            if record::length(header) != Ok(at.length) {
                return Err(io::Error::other(format!("there is no record of {} bytes at {}", at.length, at.offset)));
            }
            file.write_all_at(&record::FREED_MAGIC, at.offset)?;
        }
        // Without the marks, the holes would look like damage.
        file.sync_data()?;
        for at in records {
            let start = (at.offset + record::HEADER_BYTES as u64).next_multiple_of(BLOCK_BYTES);
            let end = (at.offset + at.length) / BLOCK_BYTES * BLOCK_BYTES;
            punch_hole(&file, start, end.saturating_sub(start))?;
        }
        Ok(())
    }

    /// Syncs a segment to disk.
    pub(super) fn sync(&self, segment: u64) -> io::Result<()> {
        match sync_file(&self.path(segment)) {
            // The file does not exist yet, or was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced,
        }
    }

    /// Returns the ids of all segment files. Other files are ignored.
    pub(super) fn ids(&self) -> io::Result<Vec<u64>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(parse_file_name).filter(|id| *name == *file_name(*id)));
        }
        Ok(ids)
    }

    /// Returns the id and the length of the last segment that is not empty.
    pub(super) fn end(&self) -> io::Result<Option<(u64, u64)>> {
        let mut ids = self.ids()?;
        ids.sort_unstable();
        let length = |id: &u64| fs::metadata(self.path(*id)).map_or(0, |metadata| metadata.len());
        Ok(ids.iter().rev().map(|id| (*id, length(id))).find(|(_, length)| *length > 0))
    }

    pub(super) fn path(&self, segment: u64) -> PathBuf {
        self.dir.join(file_name(segment))
    }

    fn file(&self, segment: u64) -> io::Result<Arc<File>> {
        // The lock is held until the file is in the cache, so that a removal at the same time finds it there.
        let mut files = self.open_files.lock();
        if let Some(file) = files.get(&segment) {
            return Ok(file.clone());
        }
        let file = Arc::new(File::open(self.path(segment))?);
        if files.len() >= MAX_OPEN_FILES {
            files.clear();
        }
        files.insert(segment, file.clone());
        Ok(file)
    }
}

fn file_name(segment: u64) -> String {
    format!("{segment:010}.seg")
}

/// Parses the name of a segment file. A file with a number that no segment can reach is not ours.
fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_suffix(".seg")?.parse().ok().filter(|id| *id < 1 << 40)
}

/// Space that is not in use any more. It can be freed as soon as the deletions are on disk: after a power failure, the
/// database must not refer to freed space.
#[derive(Default)]
pub(super) struct PendingFrees {
    /// Whole segments.
    pub(super) segments: Vec<u64>,
    /// Large records, by segment.
    pub(super) records: BTreeMap<u64, Vec<Location>>,
}

impl PendingFrees {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.records.is_empty()
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.segments.extend(other.segments);
        for (segment, records) in other.records {
            self.records.entry(segment).or_default().extend(records);
        }
    }

    /// Frees all of it. Errors are logged.
    pub(super) fn free(self, segments: &Segments) {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        for segment in &self.segments {
            if let Err(error) = segments.remove(*segment)
                && !is_missing(&error)
            {
                tracing::error!(%error, segment, "cannot remove a segment file");
            }
        }
        for (segment, records) in &self.records {
            if let Err(error) = segments.punch_holes(*segment, records)
                && !is_missing(&error)
            {
                tracing::debug!(%error, segment, "cannot free the space of large messages now; it is freed with their segment");
            }
        }
    }
}
