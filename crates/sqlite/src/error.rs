//! The classification of SQLite errors, and the reasons why a file cannot be opened.

use std::io;
use std::path::PathBuf;

use rusqlite::{ErrorCode, ffi};

/// What an error of SQLite means to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The disk is full.
    Full,
    /// Another connection holds a lock.
    Busy,
    /// The file cannot be read or written now. The file itself can be intact.
    Unavailable,
    /// The file is damaged, or is not a database.
    Damaged,
    /// The program interrupted the statement.
    Interrupted,
    /// Anything else: a bug of the program, or a file whose tables are not as expected.
    Other,
}

impl ErrorKind {
    /// Classifies an error.
    pub fn classify(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy) => Self::Busy,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Unavailable,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted,
            _ => Self::Other,
        }
    }
}

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A later version of this program wrote the file.
    #[error(
        "a later version of Restante wrote it: its schema has version {found}, and version {} of Restante supports schema \
         versions up to {known}",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The path of the file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The latest version that is known.
        known: i64,
    },
    /// The file has the application id of another kind of file.
    #[error("it belongs to another program, or to another version of this one")]
    Foreign {
        /// The path of the file.
        path: PathBuf,
        /// Its application id.
        application_id: i64,
    },
    /// The file has tables, but no application id: it is not ours. Such a file is never deleted.
    #[error("it belongs to another program, or to another version of this one")]
    Unmarked,
    /// The pages of the file are damaged.
    #[error("{0}")]
    Damaged(String),
    /// SQLite reported an error.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The file could not be created or removed.
    #[error(transparent)]
    File(io::Error),
    /// The file is unusable and could not be renamed.
    #[error("{error}; and it cannot be renamed: {rename}")]
    NotRenamed {
        /// Why the file is unusable.
        error: Box<OpenError>,
        /// Why it could not be renamed.
        rename: io::Error,
    },
}

impl OpenError {
    /// Classifies the error. Files with the application id of another program, and other versions, count as damaged.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Newer { .. } | Self::Foreign { .. } | Self::Damaged(_) => ErrorKind::Damaged,
            Self::Unmarked => ErrorKind::Other,
            Self::Sqlite(error) => ErrorKind::classify(error),
            Self::File(_) => ErrorKind::Unavailable,
            Self::NotRenamed { error, .. } => error.kind(),
        }
    }
}

/// Keeps the text and the [`ErrorKind`], for callers that report both types of errors in the same way.
impl From<OpenError> for rusqlite::Error {
    fn from(error: OpenError) -> Self {
        let code = match error {
            OpenError::Sqlite(error) => return error,
            OpenError::File(_) => ffi::SQLITE_CANTOPEN,
            OpenError::Unmarked => ffi::SQLITE_ERROR,
            _ => ffi::SQLITE_CORRUPT,
        };
        Self::SqliteFailure(ffi::Error::new(code), Some(error.to_string()))
    }
}
