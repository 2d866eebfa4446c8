//! The errors of the disk store: why a data directory cannot be opened, and how errors of the file system and of SQLite
//! are classified.

use std::io;
use std::path::PathBuf;

use restante_sqlite::ErrorKind;

use super::schema::DEVELOPMENT_APPLICATION_ID;
use crate::StoreError;

/// Why a data directory cannot be used. The text is a sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be created, read or written.
    #[error("{action} the data directory {}: {error}", dir.display())]
    Directory {
        /// What failed, such as `cannot create`.
        action: &'static str,
        /// The data directory.
        dir: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// There is no store to read.
    #[error("there is no store in {}", _0.display())]
    Missing(PathBuf),
    /// There are messages, but no database that refers to them.
    #[error(
        "{} contains messages, but its database restante.db is missing or empty; put it back, or move the data directory \
         away to start with an empty one",
        _0.display()
    )]
    Orphaned(PathBuf),
    /// It belongs to another user, who could not access files that this process creates.
    #[error(
        "the data directory {} belongs to user {owner}, who could not access files that user {user} creates; run this as \
         user {owner}",
        dir.display()
    )]
    WrongOwner {
        /// The data directory.
        dir: PathBuf,
        /// The user that it belongs to.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Another process uses it, or another store of this process.
    #[error(
        "the data directory {} is in use by another server{}",
        dir.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The id of the other process, if known.
        pid: Option<u32>,
    },
    /// A later version of the program created it.
    #[error(
        "{} was written by a later version of Restante: its schema has version {found}, and version {} of Restante supports \
         schema versions up to {known}; use the later version, or another data directory",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    TooNew {
        /// The path of the database.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// A development version of the program created it.
    #[error(
        "{} was written by a development version of Restante before 0.1.0; export the messages with `restante export` of that \
         version, and import them with `restante import` into another data directory",
        path.display()
    )]
    Development {
        /// The path of the database.
        path: PathBuf,
    },
    /// It is open for reading, and an earlier version of the program created it.
    #[error(
        "the database restante.db was written by an earlier version of Restante; start a server of this version first"
    )]
    Outdated,
    /// The database belongs to another program.
    #[error("the file restante.db is a database of another program")]
    Foreign,
    /// The database is damaged.
    #[error(
        "the database restante.db is damaged ({0}); restore it from a backup, or move the data directory away to start with \
         an empty one"
    )]
    Damaged(String),
    /// The database cannot be opened now.
    #[error("the database restante.db cannot be opened: {0}")]
    Database(String),
}

impl OpenError {
    /// Returns whether retrying does not help before the operator has changed something.
    pub fn is_permanent(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::Directory { error, .. } => {
                matches!(error.kind(), NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
            }
            Self::Locked { .. } | Self::Database(_) => false,
            Self::Missing(_)
            | Self::Orphaned(_)
            | Self::WrongOwner { .. }
            | Self::TooNew { .. }
            | Self::Development { .. }
            | Self::Outdated
            | Self::Foreign
            | Self::Damaged(_) => true,
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match ErrorKind::classify(&error) {
            ErrorKind::Damaged => Self::Damaged(error.to_string()),
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<restante_sqlite::OpenError> for OpenError {
    fn from(error: restante_sqlite::OpenError) -> Self {
        use restante_sqlite::OpenError as Sqlite;
        match error {
            Sqlite::Newer { path, found, known } => Self::TooNew { path, found, known },
            Sqlite::Foreign { path, application_id: DEVELOPMENT_APPLICATION_ID } => Self::Development { path },
            Sqlite::Foreign { .. } | Sqlite::Unmarked => Self::Foreign,
            other => rusqlite::Error::from(other).into(),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let cause = format!("database: {error}");
        match ErrorKind::classify(&error) {
            ErrorKind::Full => Self::NoSpace(cause),
            ErrorKind::Busy | ErrorKind::Unavailable => Self::Unavailable(cause),
            ErrorKind::Damaged | ErrorKind::Interrupted | ErrorKind::Other => Self::Broken(cause),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Classifies an error of a segment file. `action` is the operation that failed.
pub(super) fn segment_error(action: &str, error: &io::Error) -> StoreError {
    let cause = format!("{action}: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::NoSpace(cause)
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound => {
            StoreError::Broken(cause)
        }
        _ => StoreError::Unavailable(cause),
    }
}
