//! How the index is opened: its file, its tables, and what is done with a file that is of no use.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Error, OpenFlags, Result, ffi};

use super::is_damage;

/// The name of the file in the data directory.
const FILE: &str = "search.db";
/// Says that a database is ours: the letters `rsea`.
const APPLICATION: i64 = 0x7273_6561;
/// Changes with the tables, and with what words are: an index of another version is made again.
const VERSION: i64 = 2;
/// How long one waits for another who has the file open.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many pages the log may have before they are moved into the file. That waits for the disk, so it is seldom done.
const LOG_PAGES: i64 = 8192;
/// When the log begins anew, its file is not kept longer than this.
const MAX_LOG: i64 = 64 << 20;

/// Words come with blanks between them and in lower case, so the tokenizer has nothing to do but to see the blanks; what is not
/// ASCII is part of a word for it. The texts themselves are not kept.
const SCHEMA: &str = "
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        through INTEGER                  -- after an end in good order, the id up to which everything is right
    ) STRICT;
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,          -- of the message
        mailbox TEXT NOT NULL,
        received INTEGER NOT NULL,       -- Unix microseconds
        size INTEGER NOT NULL,
        seen INTEGER NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE words USING fts5(
        sender, recipients, cc, subject, body, filename, header, facts,
        content='', contentless_delete=1, tokenize='ascii'
    );
";

/// Puts a document into the full text table, with its columns in their order.
pub(super) const INSERT_WORDS: &str = "INSERT INTO words
    (rowid, sender, recipients, cc, subject, body, filename, header, facts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// An index as it was left behind.
pub(super) struct Past {
    pub(super) connection: Connection,
    pub(super) path: Option<PathBuf>,
    /// The id up to which everything is right, if that is known.
    pub(super) through: Option<u64>,
    /// How many messages are in it.
    pub(super) count: u64,
}

/// See [`super::Index::open`].
pub(super) fn open(directory: Option<&Path>) -> Result<Past> {
    let Some(path) = directory.map(file) else {
        let mut connection = Connection::open_in_memory()?;
        fill(&mut connection)?;
        return Ok(Past { connection, path: None, through: None, count: 0 });
    };
    match open_file(&path) {
        Err(error) if is_damage(&error) => {
            tracing::warn!(%error, "the search index cannot be used and is made again");
            discard(&path);
            open_file(&path)
        }
        opened => opened,
    }
}

/// Opens the file for questions.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// The file of a data directory.
pub(super) fn file(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Throws a file away, and its log with it.
pub(super) fn discard(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).exists()
            && let Err(error) = fs::remove_file(&name)
        {
            tracing::error!(%error, file = %name.display(), "a file of the search index cannot be removed");
        }
    }
}

fn open_file(path: &Path) -> Result<Past> {
    // SQLite would let everybody read it.
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map_err(|error| unusable(ffi::SQLITE_CANTOPEN, error.to_string()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The log is synced before it is moved into the file, so nothing can be damaged; what is lost is added again.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match (number("application_id")?, number("user_version")?) {
        (0, 0) => fill(&mut connection)?,
        (APPLICATION, VERSION) => {}
        _ => {
            let why = "it belongs to another program, or to another version of this one";
            return Err(unusable(ffi::SQLITE_CORRUPT, why.to_owned()));
        }
    }
    let through = connection.query_row("SELECT through FROM state", [], |row| row.get(0))?;
    // This goes through the whole table, so that it also finds damage.
    let count = connection.query_row("SELECT count(*) FROM documents", [], |row| row.get(0))?;
    Ok(Past { connection, path: Some(path.to_owned()), through, count })
}

fn fill(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute("INSERT INTO state VALUES (1, NULL)", [])?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn unusable(code: std::ffi::c_int, why: String) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), Some(why))
}
