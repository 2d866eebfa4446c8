//! The database: its tables, their versions, and how connections are opened. The database says what is stored. Bytes in a
//! segment that it does not refer to are garbage, except for the records after the last one that it knows.

use std::path::Path;
use std::time::Duration;

use restante_platform::{Access, check_access};
use restante_sqlite::{Migration, Schema, Synchronous, Unusable, connect, open_immutable, set_cache_size, wal_path};
use rusqlite::{Connection, OpenFlags};

use super::OpenError;

/// How long the writer waits for a lock of another process after the database was opened.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_millis(100);
/// The minimum size of the page cache.
const MIN_CACHE_BYTES: usize = 64 << 10;

/// The database. Damaged, newer and foreign files are refused: messages are never deleted for such a reason.
pub(super) const SCHEMA: Schema = Schema {
    application_id: 0x726d_7367, // "rmsg"
    migrations: &[Migration::Once(include_str!("tables.sql"))],
    incremental_vacuum: true,
    // The writer decides when to sync a commit.
    synchronous: Synchronous::Normal,
    // The writer decides when to checkpoint.
    checkpoint_pages: Some(0),
    max_wal_bytes: 16 << 20,
    cache_bytes: None,
    // Another process may be recovering the log while the database is opened.
    busy_timeout: Duration::from_secs(5),
    quick_check: false,
    unusable: Unusable::Keep,
};

/// The application id of databases that development versions before 0.1.0 created: "rmai". Their tables are different.
pub(super) const DEVELOPMENT_APPLICATION_ID: i64 = 0x726d_6169;

/// Opens the database for its one writer. Creates the tables if it is empty, and runs the missing migrations.
pub(super) fn open_writer(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let (connection, found) = SCHEMA.connect(path)?;
    let mut connection = configure(connection, cache_bytes)?;
    // No other process writes. A reader of another process can prevent a checkpoint; then the log stays long.
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if (1..SCHEMA.version()).contains(&found) {
        tracing::info!(from = found, to = SCHEMA.version(), "migrating the database");
    }
    SCHEMA.migrate(&mut connection)?;
    Ok(connection)
}

/// Opens the database for checkpoints, in addition to the writer's connection.
pub(super) fn open_for_checkpoints(path: &Path) -> Result<Connection, OpenError> {
    let connection = configure(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, 0)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Opens the database for reading.
pub(super) fn open_reader(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let configure = |opened| configure(opened, cache_bytes);
    let connection = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(configure) {
        Err(error) if is_read_only(path) => open_immutable(path).and_then(configure).map_err(|_| error)?,
        opened => opened?,
    };
    match SCHEMA.found_version(&connection)? {
        0 => Err(OpenError::Foreign),
        found if found < SCHEMA.version() => Err(OpenError::Outdated),
        _ => Ok(connection),
    }
}

/// Returns whether the database was closed and its directory cannot be written.
fn is_read_only(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(path);
    let writable = check_access(dir, Access::Write).is_ok();
    !writable && !wal_path(path).exists()
}

/// Applies the settings that all connections share.
fn configure(connection: Connection, cache_bytes: usize) -> rusqlite::Result<Connection> {
    set_cache_size(&connection, cache_bytes.max(MIN_CACHE_BYTES))?;
    connection.set_prepared_statement_cache_capacity(32);
    // There may be no directory for temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}
