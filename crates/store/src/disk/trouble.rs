//! What an error of the disk or of SQLite means to whoever asked the store.

use std::io;

use restante_sqlite::ErrorKind;

use super::OpenError;
use crate::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let cause = format!("database: {error}");
        match ErrorKind::of(&error) {
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
