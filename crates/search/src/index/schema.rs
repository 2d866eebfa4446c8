//! How the index is opened: its file, its tables, and what is done with a file that is of no use.

use std::path::{Path, PathBuf};
use std::time::Duration;

use restante_sqlite::{Migration, OpenError, Schema, Synchronous, Unusable, remove_files};
use rusqlite::{Connection, Result};

/// The name of the file in the data directory.
const FILE_NAME: &str = "search.db";

/// The file. The version changes with the tables, and with what words are. An index that is damaged or has another version is
/// deleted and built again.
const SCHEMA: Schema = Schema {
    application_id: 0x7273_6561, // "rsea"
    migrations: &[Migration { from: 0, to: 2, sql: CREATE_TABLES }],
    incremental_vacuum: false,
    // What a power failure undoes is added again.
    synchronous: Synchronous::Normal,
    // A checkpoint waits for the disk, so it is rare.
    checkpoint_pages: Some(8192),
    max_wal_bytes: 64 << 20,
    cache_bytes: None,
    busy_timeout: Duration::from_secs(1),
    // Counting the documents reads the whole table and finds damage too.
    quick_check: false,
    unusable: Unusable::Delete,
};

/// Words come with blanks between them and in lower case, so the tokenizer has nothing to do but to see the blanks; what is not
/// ASCII is part of a word for it. The texts themselves are not kept.
const CREATE_TABLES: &str = "
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        through INTEGER                  -- after an end in good order, the id up to which everything is right
    ) STRICT;
    INSERT INTO state VALUES (1, NULL);
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
pub(super) struct OpenedIndex {
    pub(super) connection: Connection,
    pub(super) path: Option<PathBuf>,
    /// The id up to which everything is right, if that is known.
    pub(super) complete_up_to: Option<u64>,
    /// How many messages are in it.
    pub(super) count: u64,
}

/// See [`super::Index::open`].
pub(super) fn open(directory: Option<&Path>) -> Result<OpenedIndex> {
    let Some(path) = directory.map(file_path) else {
        return Ok(OpenedIndex { connection: SCHEMA.open_in_memory()?, path: None, complete_up_to: None, count: 0 });
    };
    let error = match open_file(&path) {
        Ok(past) => return Ok(past),
        Err(error) => error,
    };
    let replaced = SCHEMA.replace(&path, error)?;
    tracing::warn!(error = %replaced.error, "the search index cannot be used and is made again");
    Ok(open_file(&path)?)
}

/// Opens the file for questions.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    restante_sqlite::open_reader(path, SCHEMA.busy_timeout)
}

/// The file of a data directory.
pub(super) fn file_path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

/// Deletes the file and its log.
pub(super) fn discard(path: &Path) {
    if let Err(error) = remove_files(path) {
        tracing::error!(%error, file = %path.display(), "a file of the search index cannot be removed");
    }
}

fn open_file(path: &Path) -> Result<OpenedIndex, OpenError> {
    let connection = SCHEMA.open(path)?;
    let through = connection.query_row("SELECT through FROM state", [], |row| row.get(0))?;
    let count = connection.query_row("SELECT count(*) FROM documents", [], |row| row.get(0))?;
    Ok(OpenedIndex { connection, path: Some(path.to_owned()), complete_up_to: through, count })
}
