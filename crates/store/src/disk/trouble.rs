//! What an error of the disk or of SQLite means to whoever asked the store.

use std::io;

use rusqlite::ErrorCode;

use super::OpenError;
use crate::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let cause = format!("database: {error}");
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::NoSpace(cause),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Unavailable(cause),
            _ => Self::Broken(cause),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// An error at a segment file.
pub(super) fn of_segment(what: &str, error: &io::Error) -> StoreError {
    let cause = format!("{what}: {error}");
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
