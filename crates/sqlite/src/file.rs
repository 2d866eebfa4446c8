//! The files of a database: the database itself, its write-ahead log and the shared memory of its connections.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use restante_platform::{disk_space, private_file};

const WAL: &str = "-wal";
const SHARED_MEMORY: &str = "-shm";

/// Creates an empty file if there is none. Only its owner can read it; SQLite would create one that all users can read.
pub fn create_file(path: &Path) -> io::Result<()> {
    private_file().write(true).create(true).truncate(false).open(path).map(|_| ())
}

/// Returns the path of the write-ahead log of a database.
pub fn wal_path(database: &Path) -> PathBuf {
    with_suffix(database, WAL)
}

/// The free disk space that is reserved for messages, in bytes. Files that can be lost are not written below it.
const RESERVED_BYTES: u64 = 64 << 20;

/// Returns true if a file in this directory that can be lost may grow: messages and their deletion need the space first.
/// Also returns true if the free space is unknown; SQLite then reports a full disk.
pub fn has_space_beside_messages(directory: &Path) -> bool {
    disk_space(directory).map_or(true, |space| space.free > RESERVED_BYTES)
}

/// Deletes a database and its log. Files that do not exist are skipped.
pub fn remove_files(path: &Path) -> io::Result<()> {
    for suffix in [WAL, SHARED_MEMORY, ""] {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Renames a database and its log, which is useless without it. Returns the new name, which contains the current time.
pub(crate) fn rename_files(path: &Path) -> io::Result<PathBuf> {
    let seconds = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    let renamed = with_suffix(path, &format!(".unusable-{seconds}"));
    for suffix in [WAL, SHARED_MEMORY] {
        let log = with_suffix(path, suffix);
        if log.exists() {
            fs::rename(log, with_suffix(&renamed, suffix))?;
        }
    }
    fs::rename(path, &renamed)?;
    Ok(renamed)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
