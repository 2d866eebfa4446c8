//! The database: its tables, their versions, and how a connection to it is opened. SQLite is the truth about what is
//! stored; bytes in a segment that it does not name are garbage.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::books::Counters;
use super::directory::log_of;
use super::{Durability, OpenError};
use crate::Usage;

/// How long the writer waits for others who write.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// When the log begins anew, its file is not kept longer than this.
const MAX_LOG: i64 = 16 << 20;
/// Says that a database is ours; `file` and other tools show it. The letters `rmail`, as far as they fit.
const APPLICATION: i64 = 0x726d_6169;

/// What leads from each version of the schema to the next. The first one makes an empty database into version 1; steps
/// that were released are never changed, only added to.
const MIGRATIONS: &[&str] = &[
    "
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

    -- Mailboxes that hold something.
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

    -- How many copies still need a record that was stored for several mailboxes.
    CREATE TABLE shared (
        segment INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        copies INTEGER NOT NULL,
        PRIMARY KEY (segment, offset)
    ) STRICT, WITHOUT ROWID;

    -- Segment files: how far they are written, and how many of their bytes are in use.
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY,
        end INTEGER NOT NULL,
        live INTEGER NOT NULL
    ) STRICT;
    ",
    "
    -- What is in a mailbox, so that the list of mailboxes need not count.
    ALTER TABLE mailboxes ADD COLUMN unseen INTEGER NOT NULL DEFAULT 0;   -- not marked as read
    ALTER TABLE mailboxes ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;    -- the sizes of all copies
    UPDATE mailboxes SET (unseen, bytes) =
        (SELECT count(*) FILTER (WHERE NOT seen), coalesce(sum(size), 0) FROM copies WHERE mailbox = name);
    ",
];

/// What readers see in place of the tables of an earlier version, which nobody may have brought up to date: it can be in
/// use by the program of that version, or where nothing can be written.
const VIEWS_OF_VERSION_1: &str = "
    CREATE TEMP VIEW mailboxes AS SELECT
        name, messages, version,
        (SELECT count(*) FROM copies WHERE mailbox = name AND NOT seen) AS unseen,
        (SELECT coalesce(sum(size), 0) FROM copies WHERE mailbox = name) AS bytes
    FROM main.mailboxes;
";

/// Opens the database for its one writer, fills it when it is empty, and brings it up to date.
pub(super) fn open_writer(path: &Path, durability: Durability, cache_bytes: usize) -> Result<Connection, OpenError> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, cache_bytes)?;
    let found = version(&connection, MIGRATIONS.len())?;
    if found == 0 {
        // Can be set only before the first table is made.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", durability.synchronous())?;
    // The writer decides when there is time for it.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    // Nobody else writes. Readers of another process can be in the way of bringing a long log home; then it stays long.
    connection.busy_timeout(PATIENCE)?;
    if (1..MIGRATIONS.len()).contains(&found) {
        bring_up_to_date(&mut connection, found)?;
    } else {
        migrate(&mut connection, MIGRATIONS)?;
    }
    Ok(connection)
}

/// Opens the database for bringing its log home, beside the writer.
pub(super) fn open_helper(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, 0)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Opens the database for reading.
pub(super) fn open_reader(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let connection = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, cache_bytes) {
        Err(error) if cannot_be_written(path) => open_unchanging(path, cache_bytes).map_err(|_| error)?,
        opened => opened?,
    };
    match version(&connection, MIGRATIONS.len())? {
        0 => return Err(OpenError::Foreign),
        1 => connection.execute_batch(VIEWS_OF_VERSION_1)?,
        _ => {}
    }
    Ok(connection)
}

/// Makes a database of the first version.
#[cfg(test)]
pub(super) fn make_version_1(path: &Path) -> Connection {
    let mut connection = Connection::open(path).unwrap();
    migrate(&mut connection, &MIGRATIONS[..1]).unwrap();
    connection
}

/// Opens a database that nobody changes, because nobody can.
fn open_unchanging(path: &Path, cache_bytes: usize) -> Result<Connection, OpenError> {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI, cache_bytes)
}

/// Whether the database was closed, and is where nothing can be written.
fn cannot_be_written(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(path);
    let writable = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok();
    !writable && !log_of(path).exists()
}

fn connect(path: &Path, access: OpenFlags, cache_bytes: usize) -> Result<Connection, OpenError> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Negative numbers are KiB, positive ones pages.
    let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX).max(64);
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    // There may be no other place for temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// The version of the schema, 0 for an empty database. A database of another program is refused, and one of a later
/// version of this program than `known`.
fn version(connection: &Connection, known: usize) -> Result<usize, OpenError> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match usize::try_from(version) {
        Ok(0) if application == 0 && tables == 0 => Ok(0),
        Ok(found) if application == APPLICATION && found > known => Err(OpenError::TooNew { found, known }),
        Ok(version) if application == APPLICATION && version > 0 => Ok(version),
        _ => Err(OpenError::Foreign),
    }
}

/// Takes the steps that are missing, which with much mail takes a while, and tells of it.
fn bring_up_to_date(connection: &mut Connection, from: usize) -> Result<(), OpenError> {
    let Usage { mailboxes, messages, .. } = Counters::load(connection)?.usage;
    tracing::info!(from, to = MIGRATIONS.len(), mailboxes, messages, "the database is being brought up to date");
    let begin = Instant::now();
    migrate(connection, MIGRATIONS)?;
    tracing::info!(took = ?begin.elapsed(), "the database is up to date");
    Ok(())
}

/// Takes the steps that are missing, all or none.
fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), OpenError> {
    let done = version(connection, steps.len())?;
    if done == steps.len() {
        return Ok(());
    }
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    for step in &steps[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", i64::try_from(steps.len()).unwrap_or(i64::MAX))?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: &[&str] = &["CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('two')", "broken"];

    fn notes(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn steps_are_taken_once_and_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &LATER[..1]).unwrap();
        assert_eq!((version(&connection, 1).unwrap(), notes(&connection)), (1, 0));
        for _ in 0..2 {
            migrate(&mut connection, &LATER[..2]).unwrap();
            assert_eq!((version(&connection, 2).unwrap(), notes(&connection)), (2, 1));
        }
    }

    #[test]
    fn a_step_that_fails_leaves_everything_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &LATER[..1]).unwrap();
        migrate(&mut connection, LATER).unwrap_err();
        assert_eq!((version(&connection, 1).unwrap(), notes(&connection)), (1, 0));
    }

    #[test]
    fn what_is_not_ours_is_not_touched() {
        let mut later = Connection::open_in_memory().unwrap();
        migrate(&mut later, &LATER[..2]).unwrap();
        assert!(matches!(migrate(&mut later, &LATER[..1]), Err(OpenError::TooNew { found: 2, known: 1 })));
        let mut other = Connection::open_in_memory().unwrap();
        other.execute_batch("CREATE TABLE other (x)").unwrap();
        assert!(matches!(migrate(&mut other, LATER), Err(OpenError::Foreign)));
    }
}
