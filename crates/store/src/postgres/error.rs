//! Errors of the database: how they are classified for callers, and whether the connection can be used again.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::StoreError;

/// An error, and the state of the connection.
#[derive(Debug)]
pub(super) struct DatabaseError {
    pub(super) error: StoreError,
    /// Whether the connection is lost. Another one may work.
    pub(super) is_disconnected: bool,
    /// Whether the time limit was reached.
    pub(super) is_timeout: bool,
}

impl DatabaseError {
    /// Creates the error for a result that did not arrive in time. The connection cannot be used again.
    pub(super) fn timed_out(operation: &str) -> Self {
        Self {
            error: StoreError::Unavailable(format!("{operation} took too long")),
            is_disconnected: true,
            is_timeout: true,
        }
    }
}

impl From<Error> for DatabaseError {
    fn from(error: Error) -> Self {
        let Some(state) = error.code() else {
            let is_ours = error.source().is_some_and(|cause| cause.to_string().contains("serializing"));
            let kind = if is_ours { StoreError::Broken } else { StoreError::Unavailable };
            return Self { error: kind(describe(&error)), is_disconnected: true, is_timeout: false };
        };
        let kind = match state.code().get(..2) {
            _ if *state == SqlState::DISK_FULL => StoreError::NoSpace,
            // No connection, no resources, terminated by the server, or a conflict with another transaction. A
            // read-only server was or will be the primary in a failover.
            Some("08" | "53" | "57" | "58" | "40" | "55" | "25") => StoreError::Unavailable,
            _ => StoreError::Broken,
        };
        let is_timeout = *state == SqlState::QUERY_CANCELED;
        let is_disconnected = !is_timeout && matches!(state.code().get(..2), Some("08" | "57" | "25"));
        Self { error: kind(describe(&error)), is_disconnected, is_timeout }
    }
}

impl From<PoolError> for DatabaseError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Self {
                error: StoreError::Unavailable(
                    "all connections to the database are in use, or no connection can be opened".to_owned(),
                ),
                is_disconnected: false,
                is_timeout: true,
            },
            error => {
                Self { error: StoreError::Unavailable(error.to_string()), is_disconnected: true, is_timeout: false }
            }
        }
    }
}

impl From<StoreError> for DatabaseError {
    fn from(error: StoreError) -> Self {
        Self { error, is_disconnected: false, is_timeout: false }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        error.error
    }
}

/// Returns the name of the database if the error says that it does not exist. The name is the only text in quotes, in
/// every language of the server.
fn missing_database(error: &DbError) -> Option<&str> {
    if *error.code() != SqlState::INVALID_CATALOG_NAME {
        return None;
    }
    error.message().split('"').nth(1)
}

/// Describes an error with its causes. The last one is usually the most informative.
pub(super) fn describe(error: &Error) -> String {
    if let Some(server_error) = error.as_db_error() {
        let text = server_error.to_string();
        return match missing_database(server_error) {
            Some(name) => format!("{text}; create it with: createdb {name}"),
            None => text,
        };
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
