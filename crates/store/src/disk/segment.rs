//! Segment files: where the bytes of the mail are. A segment is written from front to back and never changed; the
//! database says which parts of it are still in use. [`Tail`] is the end that is written to, [`Segments`] reads.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::record::{self, Record, View};
use crate::{Result, StoreError};

/// Records up to this length are put together and written in one go; larger ones are not worth the copy.
const SMALL: usize = 64 << 10;
/// Records of this length are worth giving back on their own.
pub(super) const LARGE: u64 = 64 << 10;
/// What file systems give back is a multiple of this.
const BLOCK: u64 = 4096;
/// How many segments are kept open for reading.
const MAX_OPEN: usize = 64;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// All segments of a data directory, for reading.
pub(super) struct Segments {
    dir: PathBuf,
    open: Mutex<HashMap<u64, Arc<File>>>,
}

impl Segments {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, open: Mutex::default() }
    }

    /// The bytes of a record. [`io::ErrorKind::NotFound`] says that the segment is gone.
    pub(super) fn read(&self, at: Location) -> io::Result<Vec<u8>> {
        let length = usize::try_from(at.length).map_err(|_| io::ErrorKind::InvalidData)?;
        let file = self.file(at.segment)?;
        // A damaged database must not make us ask for more memory than there are bytes.
        if length > SMALL && file.metadata()?.len() < at.offset.saturating_add(at.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at.offset)?;
        Ok(bytes)
    }

    /// Removes a segment. Whoever is reading it may finish.
    pub(super) fn remove(&self, segment: u64) -> io::Result<()> {
        let mut files = self.files();
        files.remove(&segment);
        fs::remove_file(self.path(segment))
    }

    /// Gives the space of large records that nobody needs back to the system, in the middle of their segment. Not every
    /// file system can do that; then the space comes back with the segment.
    fn hollow_out(&self, segment: u64, records: &[Location]) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(segment))?;
        for at in records {
            let mut header = [0; record::HEADER];
            file.read_exact_at(&mut header, at.offset)?;
            // A hole is for ever, so the database has to be right about where it goes.
            if record::length(header) != Ok(at.length) {
                return Err(io::Error::other(format!("no record of {} bytes begins at {}", at.length, at.offset)));
            }
            file.write_all_at(&record::HOLLOW, at.offset)?;
        }
        // Without the marks, the holes would look like damage.
        file.sync_data()?;
        for at in records {
            let start = (at.offset + record::HEADER as u64).next_multiple_of(BLOCK);
            let end = (at.offset + at.length) / BLOCK * BLOCK;
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
            ids.extend(name.to_str().and_then(id_of).filter(|id| *name == *file_name(*id)));
        }
        Ok(ids)
    }

    pub(super) fn path(&self, segment: u64) -> PathBuf {
        self.dir.join(file_name(segment))
    }

    fn file(&self, segment: u64) -> io::Result<Arc<File>> {
        // Nobody removes it between the opening and the remembering.
        let mut files = self.files();
        if let Some(file) = files.get(&segment) {
            return Ok(file.clone());
        }
        let file = Arc::new(File::open(self.path(segment))?);
        if files.len() >= MAX_OPEN {
            files.clear();
        }
        files.insert(segment, file.clone());
        Ok(file)
    }

    fn files(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
fn id_of(name: &str) -> Option<u64> {
    name.strip_suffix(".seg")?.parse().ok().filter(|id| *id < 1 << 40)
}

/// What nobody needs any more: it can go as soon as that is on the disk. After a power failure the database must not name
/// what is gone.
#[derive(Default)]
pub(super) struct Graves {
    /// Whole segments.
    pub(super) dead: Vec<u64>,
    /// Large records, by segment.
    pub(super) hollow: BTreeMap<u64, Vec<Location>>,
}

impl Graves {
    pub(super) fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.hollow.is_empty()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.dead.extend(other.dead);
        for (segment, records) in other.hollow {
            self.hollow.entry(segment).or_default().extend(records);
        }
    }

    /// Removes all of it.
    pub(super) fn bury(self, segments: &Segments) {
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        for segment in &self.dead {
            if let Err(error) = segments.remove(*segment)
                && !gone(&error)
            {
                tracing::error!(%error, segment, "a segment file cannot be removed");
            }
        }
        for (segment, records) in &self.hollow {
            if let Err(error) = segments.hollow_out(*segment, records)
                && !gone(&error)
            {
                tracing::debug!(%error, segment, "the space of large messages comes back with their segment");
            }
        }
    }
}

/// The end of the last segment, where records are added.
pub(super) struct Tail {
    segments: Arc<Segments>,
    /// The last segment that was begun.
    pub(super) segment: u64,
    /// The number of the next one; none is used twice.
    next: u64,
    /// None when the next record needs a new segment.
    file: Option<File>,
    /// A segment of this length is full.
    full: u64,
    /// Where the next record goes. It moves on even when a commit fails: bytes that a commit may have named are never
    /// written again.
    end: u64,
}

impl Tail {
    /// Goes on behind the last segment, or at its end when there is room. What lies behind `end` was never acknowledged.
    pub(super) fn new(segments: Arc<Segments>, full: u64, segment: u64, end: u64) -> Self {
        let mut tail = Self { segments, segment, next: segment + 1, file: None, full, end };
        if segment > 0 && end < full {
            // When it cannot be gone on with, there will be a new one.
            tail.file =
                tail.reopen().inspect_err(|error| tracing::error!(%error, segment, "no room in a segment")).ok();
        }
        tail
    }

    fn reopen(&self) -> io::Result<File> {
        let file = OpenOptions::new().write(true).open(self.segments.path(self.segment))?;
        match file.metadata()?.len() {
            length if length < self.end => Err(io::ErrorKind::UnexpectedEof.into()),
            length if length > self.end => file.set_len(self.end).map(|()| file),
            _ => Ok(file),
        }
    }

    /// Begins a new segment, whose name is on the disk when this returns.
    fn begin(&mut self, full: Option<File>) -> io::Result<File> {
        // From now on only the last segment can hold anything that is not on the disk.
        if let Some(full) = full
            && let Err(error) = full.sync_data()
        {
            self.file = Some(full);
            return Err(error);
        }
        let number = self.next;
        self.next += 1;
        let path = self.segments.path(number);
        // A file of this name can only be what an attempt in an earlier life has left.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        sync_dir(&self.segments.dir)?;
        self.segment = number;
        self.end = 0;
        Ok(file)
    }

    /// Never uses this number: somebody is going to remove the file.
    pub(super) fn skip(&mut self, segment: u64) {
        self.next = self.next.max(segment + 1);
    }

    /// Makes sure that there is a segment to write to.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) if self.end < self.full => file,
            full => self.begin(full)?,
        };
        self.file = Some(file);
        Ok(())
    }

    /// Gives the segment up when it is no longer where readers will look for it.
    pub(super) fn check(&mut self) {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let found = fs::metadata(self.segments.path(self.segment)).map(identity);
        let own = self.file.as_ref().map(|file| file.metadata().map(identity));
        if let Some(own) = own
            && own.ok() != found.ok()
        {
            self.give_up();
        }
    }

    /// The segment that is being written; none when the next record begins one.
    pub(super) fn current(&self) -> Option<u64> {
        self.file.is_some().then_some(self.segment)
    }

    /// Leaves the segment as it is: the next record goes to a new one.
    pub(super) fn give_up(&mut self) {
        if let Some(file) = self.file.take() {
            // Older mail in it may be waiting for its sync; a disk that fails now has failed before.
            let _ = file.sync_data();
        }
    }

    /// Takes back what was appended last, which nobody has named.
    pub(super) fn take_back(&mut self, locations: &[Location]) {
        if let (Some(first), Some(file)) = (locations.first(), &self.file) {
            self.end = first.offset;
            // Gives the space back; if not, the next record overwrites it.
            let _ = file.set_len(self.end);
        }
    }

    /// Writes records one behind the other. When that fails, it is as if nothing was written.
    pub(super) fn append(&mut self, records: &[Record]) -> io::Result<Vec<Location>> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        self.prepare()?;
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let start = self.end;
        let mut locations = Vec::with_capacity(records.len());
        for record in records {
            locations.push(Location { segment: self.segment, offset: self.end, length: record.len() });
            self.end += record.len();
        }
        let written = write(file, start, records);
        if written.is_err() {
            self.end = start;
            // Gives the space of the part that was written back; if not, the next record overwrites that part.
            let _ = file.set_len(start);
        }
        written.map(|()| locations)
    }

    /// When this returns, everything that was written is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
}

fn write(file: &File, mut offset: u64, records: &[Record]) -> io::Result<()> {
    let length =
        |record: &Record| record.head.len() + Some(record.body.len()).filter(|body| *body <= SMALL).unwrap_or(0);
    let mut small = Vec::with_capacity(records.iter().map(length).sum());
    for record in records {
        small.extend_from_slice(&record.head);
        if record.body.len() <= SMALL {
            small.extend_from_slice(&record.body);
            continue;
        }
        file.write_all_at(&small, offset)?;
        offset += small.len() as u64;
        small.clear();
        file.write_all_at(&record.body, offset)?;
        offset += record.body.len() as u64;
    }
    file.write_all_at(&small, offset)
}

/// A walk from record to record.
pub(super) struct Sweep {
    pub(super) segment: u64,
    pub(super) file: File,
    /// Where the next record begins.
    pub(super) offset: u64,
    /// Where the walk ends.
    pub(super) end: u64,
}

impl Sweep {
    /// Reads the next record that is not hollow; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Location, Vec<u8>, View)>> {
        let damaged = |offset: u64, what: &dyn std::fmt::Display| {
            StoreError::Broken(format!("segment {} is damaged at {offset}: {what}", self.segment))
        };
        while self.offset < self.end {
            let offset = self.offset;
            let mut header = [0; record::HEADER];
            let read = self.file.read_exact_at(&mut header, offset);
            read.map_err(|error| damaged(offset, &error))?;
            let length = record::length(header).map_err(|damage| damaged(offset, &damage))?;
            if length > self.end - offset {
                return Err(damaged(offset, &"the record is too long"));
            }
            self.offset += length;
            if header.starts_with(&record::HOLLOW) {
                continue;
            }
            let at = Location { segment: self.segment, offset, length };
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut bytes, offset).map_err(|error| damaged(offset, &error))?;
            // It may have been given back since we looked.
            if bytes.starts_with(&record::HOLLOW) {
                continue;
            }
            let view = View::of(&bytes).map_err(|damage| damaged(offset, &damage))?;
            return Ok(Some((at, bytes, view)));
        }
        Ok(None)
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
