//! The database: its tables, their versions, and how connections are opened. Only the database says what is stored;
//! bytes in a segment that it does not refer to are garbage.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use restante_platform::{Access, check_access};
use restante_sqlite::{Migration, Schema, Synchronous, Unusable, connect, set_cache_size, wal_path};
use rusqlite::{Connection, OpenFlags};

use super::{Durability, OpenError, rows};

/// How long the writer waits for a lock of another process after the database was opened.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_millis(100);
/// The minimum size of the page cache.
const MIN_CACHE_BYTES: usize = 64 << 10;

/// The database. Damaged, newer and foreign files are refused: messages are never deleted for such a reason.
const SCHEMA: Schema = Schema {
    application_id: 0x726d_6169, // "rmai"
    migrations: MIGRATIONS,
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

const MIGRATIONS: &[Migration] = &[
    Migration { from: 0, to: 1, sql: VERSION_1 },
    Migration { from: 1, to: 2, sql: VERSION_2 },
    Migration { from: 2, to: 3, sql: VERSION_3 },
];

const VERSION_1: &str = "
    -- Counters of the whole store, in one row.
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        last_id INTEGER NOT NULL,        -- the highest id ever given
        last_version INTEGER NOT NULL,   -- the highest version of a mailbox ever given
        messages INTEGER NOT NULL,       -- rows of copies
        mailboxes INTEGER NOT NULL,      -- rows of mailboxes
        bytes INTEGER NOT NULL           -- traces, and bodies counted once
    ) STRICT;
    INSERT INTO state VALUES (1, 0, 0, 0, 0, 0);

    -- Mailboxes that are not empty.
    CREATE TABLE mailboxes (
        name TEXT PRIMARY KEY,
        messages INTEGER NOT NULL,
        version INTEGER NOT NULL
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
        PRIMARY KEY (mailbox, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX arrivals ON copies (received, id);

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

const VERSION_2: &str = "
    -- The contents of a mailbox, so that the list of mailboxes need not count them.
    ALTER TABLE mailboxes ADD COLUMN unseen INTEGER NOT NULL DEFAULT 0;   -- not marked as read
    ALTER TABLE mailboxes ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;    -- the sizes of all copies
    UPDATE mailboxes SET (unseen, bytes) =
        (SELECT count(*) FILTER (WHERE NOT seen), coalesce(sum(size), 0) FROM copies WHERE mailbox = name);
    ";

/// The columns of existing rows get their values afterwards, in several transactions: see [`backfill`](super::backfill).
const VERSION_3: &str = "
    -- The column counted copies. Now it has the name for that, and messages in several mailboxes are counted once.
    ALTER TABLE state RENAME COLUMN messages TO copies;
    ALTER TABLE state ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;             -- messages, counted once
    ALTER TABLE state ADD COLUMN highest_free_number INTEGER NOT NULL DEFAULT 0;  -- of the mailboxes that are empty now
    -- The id up to which copies of version 2 have the values of the new columns. NULL if all of them do.
    ALTER TABLE state ADD COLUMN backfilled_id INTEGER;
    UPDATE state SET backfilled_id = 0 WHERE copies > 0;

    ALTER TABLE mailboxes ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;      -- of the last copy

    ALTER TABLE copies ADD COLUMN message INTEGER NOT NULL DEFAULT 0;   -- the id of the first copy of the message
    ALTER TABLE copies ADD COLUMN number INTEGER NOT NULL DEFAULT 0;    -- ascending in the mailbox, never reused
    ALTER TABLE copies ADD COLUMN tags TEXT NOT NULL DEFAULT '';        -- each ends in a line feed
    ALTER TABLE copies ADD COLUMN details TEXT NOT NULL DEFAULT '';     -- the envelope and a preview, one value per line
    CREATE INDEX copies_by_id ON copies (id);
    ";

/// Indexes for the overview. They are not a part of the version: earlier programs maintain them and do not use them, and
/// without them the overview is only slower. They contain no plain message with one copy, so they rarely cost anything.
/// They have the columns of their conditions, because a query would read the table for these otherwise.
const OVERVIEW_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS unread_shared ON copies (message, shared, seen) WHERE shared AND NOT seen;
    CREATE INDEX IF NOT EXISTS tagged ON copies (tags, shared) WHERE tags <> '' AND NOT shared;
    CREATE INDEX IF NOT EXISTS tagged_shared ON copies (message, tags, shared) WHERE tags <> '' AND shared;
";

/// Views that replace the tables of versions 1 and 2 for readers. Such a database is not migrated if a program of that
/// version is still using it or if it cannot be written. To find the copies of a message would take too long, so each
/// copy is a message of its own, without number, tags and details. There is no index for the list of all messages, so it
/// reads all rows.
const VERSION_2_VIEWS: &str = "
    CREATE TEMP VIEW state AS SELECT
        last_id, last_version, messages, messages AS copies, mailboxes, bytes, 0 AS highest_free_number
    FROM main.state;
    CREATE TEMP VIEW copies AS SELECT
        mailbox, id, received, seen, size, body, sender, recipients, subject, segment, offset, length, shared,
        id AS message, 0 AS number, '' AS tags, '' AS details
    FROM main.copies;
";

/// The view that replaces the other table of version 1.
const VERSION_1_VIEWS: &str = "
    CREATE TEMP VIEW mailboxes AS SELECT
        name, messages, version,
        (SELECT count(*) FROM main.copies WHERE mailbox = name AND NOT seen) AS unseen,
        (SELECT coalesce(sum(size), 0) FROM main.copies WHERE mailbox = name) AS bytes
    FROM main.mailboxes;
";

/// Opens the database for its one writer. Creates the tables if it is empty, and runs the missing migrations.
pub(super) fn open_writer(path: &Path, durability: Durability, cache_bytes: usize) -> Result<Connection, OpenError> {
    let schema =
        Schema { synchronous: durability.synchronous(), cache_bytes: Some(cache_bytes.max(MIN_CACHE_BYTES)), ..SCHEMA };
    let (mut connection, found) = schema.connect(path)?;
    configure(&connection)?;
    // No other process writes. A reader of another process can prevent a checkpoint; then the log stays long.
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if (1..schema.version()).contains(&found) {
        migrate(&mut connection, found)?;
    } else {
        schema.migrate(&mut connection)?;
    }
    connection.execute_batch(OVERVIEW_INDEXES)?;
    Ok(connection)
}

/// Opens the database for checkpoints, in addition to the writer's connection.
pub(super) fn open_for_checkpoints(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect_with_cache(path, OpenFlags::SQLITE_OPEN_READ_WRITE, 0)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Opens the database for reading.
pub(super) fn open_reader(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let connection = match connect_with_cache(path, OpenFlags::SQLITE_OPEN_READ_ONLY, cache_bytes) {
        Err(error) if is_read_only(path) => open_immutable(path, cache_bytes).map_err(|_| error)?,
        opened => opened?,
    };
    match SCHEMA.found_version(&connection)? {
        0 => return Err(OpenError::Foreign),
        1 => connection.execute_batch(&[VERSION_1_VIEWS, VERSION_2_VIEWS].concat())?,
        2 => connection.execute_batch(VERSION_2_VIEWS)?,
        _ => {}
    }
    Ok(connection)
}

/// Creates a database of an earlier version.
#[cfg(test)]
pub(super) fn create_version(version: usize, path: &Path) -> Connection {
    let mut connection = Connection::open(path).unwrap();
    Schema { migrations: &MIGRATIONS[..version], ..SCHEMA }.migrate(&mut connection).unwrap();
    connection
}

/// Opens a database that cannot be written, and so does not change.
fn open_immutable(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    connect_with_cache(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI, cache_bytes)
}

/// Returns whether the database was closed and its directory cannot be written.
fn is_read_only(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(path);
    let writable = check_access(dir, Access::Write).is_ok();
    !writable && !wal_path(path).exists()
}

fn connect_with_cache(path: &Path, access: OpenFlags, cache_bytes: usize) -> Result<Connection, OpenError> {
    let connection = connect(path, access)?;
    set_cache_size(&connection, cache_bytes.max(MIN_CACHE_BYTES))?;
    configure(&connection)?;
    Ok(connection)
}

/// Applies the settings that all connections share.
fn configure(connection: &Connection) -> Result<(), OpenError> {
    connection.set_prepared_statement_cache_capacity(32);
    // There may be no directory for temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Runs the missing migrations and logs it. With many messages this takes a few seconds.
fn migrate(connection: &mut Connection, from: i64) -> Result<(), OpenError> {
    let (mailboxes, messages) = connection.query_row("SELECT mailboxes, messages FROM state", [], |row| {
        Ok((rows::get_u64(row, 0)?, rows::get_u64(row, 1)?))
    })?;
    tracing::info!(from, to = SCHEMA.version(), mailboxes, messages, "migrating the database");
    let start = Instant::now();
    SCHEMA.migrate(connection)?;
    tracing::info!(took = ?start.elapsed(), "the tables of the database were migrated");
    Ok(())
}
