//! The database: its tables, their versions, and how connections are opened. Only the database says what is stored;
//! bytes in a segment that it does not refer to are garbage.

use std::path::Path;
use std::time::Duration;

use restante_platform::{Access, check_access};
use restante_sqlite::{Migration, Schema, Synchronous, Unusable, connect, open_immutable, set_cache_size, wal_path};
use rusqlite::{Connection, OpenFlags};

use super::{Durability, OpenError};

/// How long the writer waits for a lock of another process after the database was opened.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_millis(100);
/// The minimum size of the page cache.
const MIN_CACHE_BYTES: usize = 64 << 10;

/// The database. Damaged, newer and foreign files are refused: messages are never deleted for such a reason.
pub(super) const SCHEMA: Schema = Schema {
    application_id: 0x726d_7367, // "rmsg"
    migrations: &[Migration::Once(TABLES)],
    incremental_vacuum: true,
    synchronous: Synchronous::Full,
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

const TABLES: &str = "
    -- Counters of the whole store, in one row.
    CREATE TABLE state (
        single INTEGER PRIMARY KEY CHECK (single = 1),
        last_id INTEGER NOT NULL,             -- the highest id ever given
        last_version INTEGER NOT NULL,        -- the highest version of a mailbox ever given
        messages INTEGER NOT NULL,            -- messages, counted once
        copies INTEGER NOT NULL,              -- rows of copies
        mailboxes INTEGER NOT NULL,           -- rows of mailboxes
        bytes INTEGER NOT NULL,               -- traces, and bodies counted once
        highest_free_number INTEGER NOT NULL  -- the highest number of a copy in mailboxes that are empty now
    ) STRICT;
    INSERT INTO state VALUES (1, 0, 0, 0, 0, 0, 0, 0);

    -- Mailboxes that are not empty.
    CREATE TABLE mailboxes (
        name TEXT PRIMARY KEY,
        messages INTEGER NOT NULL,
        version INTEGER NOT NULL,
        unseen INTEGER NOT NULL,         -- not marked as read
        bytes INTEGER NOT NULL,          -- the sizes of all copies
        last_number INTEGER NOT NULL     -- of the last copy
    ) STRICT, WITHOUT ROWID;

    -- One row per message and mailbox. The key keeps the messages of a mailbox together, so that a list reads few pages.
    CREATE TABLE copies (
        mailbox TEXT NOT NULL,
        id INTEGER NOT NULL,
        received INTEGER NOT NULL,       -- Unix nanoseconds
        seen INTEGER NOT NULL,
        size INTEGER NOT NULL,           -- of trace and body
        body INTEGER NOT NULL,           -- of the body
        sender TEXT NOT NULL,
        recipients TEXT NOT NULL,        -- each ends in a line feed
        subject TEXT NOT NULL,
        segment INTEGER NOT NULL,        -- where the record is
        offset INTEGER NOT NULL,
        length INTEGER NOT NULL,
        shared INTEGER NOT NULL,         -- whether the record has other copies too: see the table of that name
        message INTEGER NOT NULL,        -- the id of the first copy of the message
        number INTEGER NOT NULL,         -- ascending in the mailbox, never reused
        tags TEXT NOT NULL,              -- each ends in a line feed
        details TEXT NOT NULL,           -- the envelope and a preview, one value per line
        PRIMARY KEY (mailbox, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX arrivals ON copies (received, id);
    CREATE INDEX copies_by_id ON copies (id);
    -- For the overview. They contain no plain message with one copy, so they rarely cost anything. They have the columns of
    -- their conditions, because a query would read the table for these otherwise.
    CREATE INDEX unread_shared ON copies (message, shared, seen) WHERE shared AND NOT seen;
    CREATE INDEX tagged ON copies (tags, shared) WHERE tags <> '' AND NOT shared;
    CREATE INDEX tagged_shared ON copies (message, tags, shared) WHERE tags <> '' AND shared;

    -- The number of copies that still refer to a record which was stored for several mailboxes.
    CREATE TABLE shared (
        segment INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        copies INTEGER NOT NULL,
        PRIMARY KEY (segment, offset)
    ) STRICT, WITHOUT ROWID;

    -- Segment files: the length of the written part, and the number of bytes in use.
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY,
        end INTEGER NOT NULL,
        live INTEGER NOT NULL
    ) STRICT;
    ";

/// Opens the database for its one writer. Creates the tables if it is empty, and runs the missing migrations.
pub(super) fn open_writer(path: &Path, durability: Durability, cache_bytes: usize) -> Result<Connection, OpenError> {
    let schema = Schema { synchronous: durability.synchronous(), ..SCHEMA };
    let (connection, found) = schema.connect(path)?;
    let mut connection = configure(connection, cache_bytes)?;
    // No other process writes. A reader of another process can prevent a checkpoint; then the log stays long.
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if (1..schema.version()).contains(&found) {
        tracing::info!(from = found, to = schema.version(), "migrating the database");
    }
    schema.migrate(&mut connection)?;
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
