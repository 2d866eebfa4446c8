//! Segment files: where the bytes of the mail are. A segment is written from front to back and never changed; the
//! database says which parts of it are still in use. This is the folder of them all, for those who read and remove;
//! [`Tail`](super::tail::Tail) is the end that is written to.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::record;

/// Records up to this length are put together and written in one go; larger ones are not worth the copy.
pub(super) const MAX_COALESCED_BYTES: usize = 64 << 10;
/// Records of this length are worth giving back on their own.
pub(super) const MIN_PUNCH_BYTES: u64 = 64 << 10;
/// What file systems give back is a multiple of this.
const BLOCK_BYTES: u64 = 4096;
/// How many segments are kept open for reading.
const MAX_OPEN_FILES: usize = 64;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// All segments of a data directory, for reading.
pub(super) struct Segments {
    pub(super) dir: PathBuf,
    open_files: Mutex<HashMap<u64, Arc<File>>>,
}

impl Segments {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, open_files: Mutex::default() }
    }

    /// The bytes of a record. [`io::ErrorKind::NotFound`] says that the segment is gone.
    pub(super) fn read(&self, at: Location) -> io::Result<Vec<u8>> {
        let length = usize::try_from(at.length).map_err(|_| io::ErrorKind::InvalidData)?;
        let file = self.file(at.segment)?;
        // A damaged database must not make us ask for more memory than there are bytes.
        if length > MAX_COALESCED_BYTES && file.metadata()?.len() < at.offset.saturating_add(at.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at.offset)?;
        Ok(bytes)
    }

    /// Removes a segment. Whoever is reading it may finish.
    pub(super) fn remove(&self, segment: u64) -> io::Result<()> {
        // Once its name is gone, nobody opens it any more: what was open until then can be forgotten.
        let removed = fs::remove_file(self.path(segment));
        self.lock_open_files().remove(&segment);
        removed
    }

    /// Gives the space of large records that nobody needs back to the system, in the middle of their segment. Not every
    /// file system can do that; then the space comes back with the segment.
    fn punch_holes(&self, segment: u64, records: &[Location]) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(segment))?;
        for at in records {
            let mut header = [0; record::HEADER_BYTES];
            file.read_exact_at(&mut header, at.offset)?;
            // A hole is for ever, so the database has to be right about where it goes.
            if record::length(header) != Ok(at.length) {
                return Err(io::Error::other(format!("no record of {} bytes begins at {}", at.length, at.offset)));
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

    /// Makes everything that was written to a segment durable.
    pub(super) fn sync(&self, segment: u64) -> io::Result<()> {
        match File::open(self.path(segment)) {
            Ok(file) => file.sync_data(),
            // There is none yet, or not any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The ids of all segment files there are; other files are not ours.
    pub(super) fn ids(&self) -> io::Result<Vec<u64>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(parse_file_name).filter(|id| *name == *file_name(*id)));
        }
        Ok(ids)
    }

    pub(super) fn path(&self, segment: u64) -> PathBuf {
        self.dir.join(file_name(segment))
    }

    fn file(&self, segment: u64) -> io::Result<Arc<File>> {
        // Whoever removes it waits until it is remembered, and then forgets it.
        let mut files = self.lock_open_files();
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

    fn lock_open_files(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<File>>> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
fn punch_hole(file: &File, start: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length)?)
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn file_name(segment: u64) -> String {
    format!("{segment:010}.seg")
}

/// The number of a segment file. Numbers that are not counted to in a lifetime are somebody else's.
fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_suffix(".seg")?.parse().ok().filter(|id| *id < 1 << 40)
}

/// What nobody needs any more: it can go as soon as that is on the disk. After a power failure the database must not name
/// what is gone.
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

    /// Removes all of it.
    pub(super) fn free(self, segments: &Segments) {
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        for segment in &self.segments {
            if let Err(error) = segments.remove(*segment)
                && !gone(&error)
            {
                tracing::error!(%error, segment, "a segment file cannot be removed");
            }
        }
        for (segment, records) in &self.records {
            if let Err(error) = segments.punch_holes(*segment, records)
                && !gone(&error)
            {
                tracing::debug!(%error, segment, "the space of large messages comes back with their segment");
            }
        }
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
