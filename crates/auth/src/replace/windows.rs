//! Replacement of files on Windows. New files inherit the permissions of their directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{lock_name, read_limited, temporary_name};

/// A file that no other command changes while this value exists.
pub(crate) struct LockedFile {
    path: PathBuf,
    _lock: File,
}

/// The content of a file; empty if the file does not exist.
pub(crate) struct CurrentContent {
    pub(crate) content: Vec<u8>,
}

impl LockedFile {
    /// Waits for the lock of a file.
    pub(crate) fn lock(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let lock_path = path.with_file_name(lock_name(name));
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(lock_path)?;
        lock.lock()?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Reads the file.
    pub(crate) fn read(&self) -> io::Result<CurrentContent> {
        let content = match File::open(&self.path) {
            Ok(file) => read_limited(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(CurrentContent { content })
    }

    /// Replaces the file after the new content was synced to disk.
    pub(crate) fn write(&self, _: &CurrentContent, content: &[u8]) -> io::Result<()> {
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let temporary = self.path.with_file_name(temporary_name(name)?);
        let written = self.write_new(&temporary, content);
        if written.is_err() {
            // The first error is reported.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write_new(&self, temporary: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        fs::rename(temporary, &self.path)
    }
}
