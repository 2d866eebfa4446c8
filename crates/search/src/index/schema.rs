//! The file of the index, its tables, and how it is opened. An unusable file is replaced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use restante_sqlite::{Migration, OpenError, Schema, Synchronous, Unusable, remove_files};
use rusqlite::{Connection, Result};

/// The name of the file in the data directory.
const FILE_NAME: &str = "search.db";

/// The schema of the file. The version changes with the tables, and with the definition of words. An index that is
/// damaged or has another version is deleted and rebuilt.
const SCHEMA: Schema = Schema {
    application_id: 0x7273_6561, // "rsea"
    migrations: &[Migration::Once(include_str!("tables.sql"))],
    incremental_vacuum: false,
    // Entries that a power failure undoes are added again.
    synchronous: Synchronous::Normal,
    // A checkpoint waits for the disk, so it is rare.
    checkpoint_pages: Some(8192),
    max_wal_bytes: 64 << 20,
    cache_bytes: None,
    busy_timeout: Duration::from_secs(1),
    // Counting the documents reads the whole table and also finds damage.
    quick_check: false,
    unusable: Unusable::Delete,
};

/// An index that was just opened.
pub(super) struct OpenedIndex {
    pub(super) connection: Connection,
    pub(super) path: Option<PathBuf>,
    /// The id up to which the index agrees with the store, if that is known.
    pub(super) complete_up_to: Option<u64>,
    /// The number of messages in the index.
    pub(super) count: u64,
}

/// See [`super::Index::open`].
pub(super) fn open(directory: Option<&Path>) -> Result<OpenedIndex> {
    let Some(path) = directory.map(file_path) else {
        return Ok(OpenedIndex { connection: SCHEMA.open_in_memory()?, path: None, complete_up_to: None, count: 0 });
    };
    Ok(SCHEMA.open_or_replace(
        &path,
        || open_file(&path),
        |replaced| tracing::warn!(error = %replaced.error, "cannot use the search index, rebuilding it"),
    )?)
}

/// Opens the file for queries.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    restante_sqlite::open_reader(path, SCHEMA.busy_timeout)
}

/// Returns the path of the index in a data directory.
pub(super) fn file_path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

/// Deletes the file and its write-ahead log.
pub(super) fn discard(path: &Path) {
    if let Err(error) = remove_files(path) {
        tracing::error!(%error, file = %path.display(), "cannot remove a file of the search index");
    }
}

fn open_file(path: &Path) -> Result<OpenedIndex, OpenError> {
    let connection = SCHEMA.open(path)?;
    let complete_up_to = connection.query_row("SELECT through FROM state", [], |row| row.get(0))?;
    let count = connection.query_row("SELECT count(*) FROM documents", [], |row| row.get(0))?;
    Ok(OpenedIndex { connection, path: Some(path.to_owned()), complete_up_to, count })
}
