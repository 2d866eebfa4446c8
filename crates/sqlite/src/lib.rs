//! Opens SQLite files: creation, the check of the header, pragmas, migrations, and the replacement of unusable files.
//!
//! A [`Schema`] describes one kind of file. The crates that own a file declare a schema as a constant and read and write the
//! tables themselves. All files use write-ahead logging and are readable by their owner only.

mod error;
mod file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use error::{ErrorKind, OpenError};
pub use file::{create_file, has_space_beside_messages, remove_files, wal_path};

/// A kind of SQLite file: its tables, how connections to it are configured, and what happens if it cannot be used.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Identifies the kind of file. It is stored in the header, where `file` and other tools show it.
    pub application_id: i64,
    /// The steps that create and update the tables. Each leads to the next version; the first one leads from an empty file to
    /// version 1. Released steps are never changed.
    pub migrations: &'static [Migration],
    /// Whether the file can shrink by `PRAGMA incremental_vacuum`. This takes effect only when the file is created.
    pub incremental_vacuum: bool,
    /// When a commit is synced to disk.
    pub synchronous: Synchronous,
    /// The number of pages in the write-ahead log that triggers a checkpoint. Zero disables automatic checkpoints; `None`
    /// keeps SQLite's default.
    pub checkpoint_pages: Option<i64>,
    /// The size to which the file of the write-ahead log is truncated when the log restarts.
    pub max_wal_bytes: i64,
    /// The size of the page cache. `None` keeps SQLite's default.
    pub cache_bytes: Option<usize>,
    /// How long a statement waits for a lock that another connection holds.
    pub busy_timeout: Duration,
    /// Whether [`Schema::open`] checks the pages of an existing file. This reads the whole file.
    pub quick_check: bool,
    /// What [`Schema::replace`] does with an unusable file.
    pub unusable: Unusable,
}

/// A step from one version of a schema to the next.
#[derive(Clone, Copy, Debug)]
pub enum Migration {
    /// Statements that run once, in one transaction.
    Once(&'static str),
    /// A statement that is repeated until it changes no row, each time in a transaction of its own. So it can change many
    /// rows: it needs little space in the log, and continues where it was interrupted.
    Repeat(&'static str),
}

/// When a commit is synced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// Before the commit returns.
    Full,
    /// At checkpoints only. The file stays consistent, but a power failure can undo the latest commits.
    Normal,
}

/// What is done with a file that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The file stays, and opening it fails.
    Keep,
    /// The file is deleted if it is damaged or is not of this version of the schema.
    Delete,
    /// The file is renamed, unless the error can be temporary. Since nothing is lost, this includes errors that do not prove
    /// damage, such as a missing table.
    Rename,
}

/// The result of [`Schema::replace`].
#[derive(Debug)]
pub struct Replaced {
    /// Why the file could not be used.
    pub error: OpenError,
    /// The new name of the file, if it was renamed.
    pub renamed_to: Option<PathBuf>,
}

impl Schema {
    /// Returns the current version.
    pub fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    /// Opens a file for writing. Creates the file if it does not exist, and the tables if it is empty. Runs the
    /// migrations if the file has an earlier version.
    pub fn open(&self, path: &Path) -> Result<Connection, OpenError> {
        create_file(path).map_err(OpenError::File)?;
        let (mut connection, found) = self.connect(path)?;
        self.migrate(&mut connection)?;
        if self.quick_check && found != 0 {
            quick_check(&connection)?;
        }
        Ok(connection)
    }

    /// Opens a database in memory and creates the tables.
    pub fn open_in_memory(&self) -> Result<Connection, OpenError> {
        let mut connection = Connection::open_in_memory()?;
        self.migrate(&mut connection)?;
        Ok(connection)
    }

    /// Opens an existing file for writing, checks and configures it, but runs no migrations. Returns the version of the file
    /// too. A file that is refused is not changed.
    pub fn connect(&self, path: &Path) -> Result<(Connection, i64), OpenError> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(self.busy_timeout)?;
        // If the file is refused, its log stays as it is. Closing the connection would write it to the file otherwise.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, wal_path(path).exists())?;
        let found = self.found_version(&connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        if found == 0 && self.incremental_vacuum {
            // This has an effect only before the first table is created.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", self.synchronous.value())?;
        if let Some(pages) = self.checkpoint_pages {
            connection.pragma_update(None, "wal_autocheckpoint", pages)?;
        }
        connection.pragma_update(None, "journal_size_limit", self.max_wal_bytes)?;
        if let Some(bytes) = self.cache_bytes {
            set_cache_size(&connection, bytes)?;
        }
        Ok((connection, found))
    }

    /// Returns the version of a database. Zero is an empty one. Fails if the database belongs to another program, or if a
    /// later version of this one has written it.
    pub fn found_version(&self, connection: &Connection) -> Result<i64, OpenError> {
        let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (application_id, found) = (number("application_id")?, number("user_version")?);
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let known = self.version();
        let path = connection.path().map(PathBuf::from).unwrap_or_default();
        match (application_id, found) {
            (0, 0) if tables == 0 => Ok(0),
            (0, 0) => Err(OpenError::Unmarked),
            (id, found) if id == self.application_id && found > known => Err(OpenError::Newer { path, found, known }),
            (id, found) if id == self.application_id && found > 0 => Ok(found),
            (application_id, _) => Err(OpenError::Foreign { path, application_id }),
        }
    }

    /// Runs the migrations that are missing. Each of them is recorded, so that the next call continues after an error or a
    /// crash.
    pub fn migrate(&self, connection: &mut Connection) -> Result<(), OpenError> {
        let found = self.found_version(connection)?;
        for (migration, version) in self.migrations.iter().zip(1_i64..).filter(|(_, version)| *version > found) {
            if let Migration::Repeat(statement) = migration {
                while connection.execute(statement, [])? > 0 {
                    // Otherwise the log would grow to the size of the database.
                    connection.execute_batch("PRAGMA wal_checkpoint")?;
                }
            }
            let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
            if let Migration::Once(statements) = migration {
                transaction.execute_batch(statements)?;
            }
            transaction.pragma_update(None, "application_id", self.application_id)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()?;
        }
        Ok(())
    }

    /// Opens a file with `open`. If it is unusable, replaces it, passes the reason to `log`, and opens the new file.
    pub fn open_or_replace<T>(
        &self,
        path: &Path,
        open: impl Fn() -> Result<T, OpenError>,
        log: impl FnOnce(Replaced),
    ) -> Result<T, OpenError> {
        open().or_else(|error| {
            log(self.replace(path, error)?);
            open()
        })
    }

    /// Removes or renames a file that could not be opened or read because of `error`, as [`Schema::unusable`] says. The next
    /// [`Schema::open`] then creates a new one. Returns the error if the file has to stay.
    pub fn replace(&self, path: &Path, error: OpenError) -> Result<Replaced, OpenError> {
        match (self.unusable, error.kind()) {
            (Unusable::Delete, ErrorKind::Damaged) => {
                remove_files(path).map_err(OpenError::File)?;
                Ok(Replaced { error, renamed_to: None })
            }
            (Unusable::Rename, ErrorKind::Damaged | ErrorKind::Other) => match file::rename_files(path) {
                Ok(name) => Ok(Replaced { error, renamed_to: Some(name) }),
                Err(rename) => Err(OpenError::NotRenamed { error: Box::new(error), rename }),
            },
            _ => Err(error),
        }
    }
}

impl Synchronous {
    fn value(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Opens a connection to an existing file. It has no mutex, so only one thread can use it at a time.
pub fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Opens a file for reading that no process changes. SQLite creates no files beside it, and ignores its log.
pub fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');
    let uri = format!("file:{}?immutable=1", percent_encode(path.as_os_str().as_encoded_bytes(), ESCAPED));
    connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

/// Opens an existing file for reading, in addition to its writer.
pub fn open_reader(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(busy_timeout)?;
    Ok(connection)
}

/// Sets the size of the page cache, rounded down to KiB.
pub fn set_cache_size(connection: &Connection, bytes: usize) -> rusqlite::Result<()> {
    // Negative numbers are KiB, positive ones are pages.
    let kibibytes = i64::try_from(bytes / 1024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kibibytes)
}

fn quick_check(connection: &Connection) -> Result<(), OpenError> {
    let result: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if result == "ok" { Ok(()) } else { Err(OpenError::Damaged(result)) }
}

#[cfg(test)]
mod tests;
