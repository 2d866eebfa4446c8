//! The database: opening it, and its transactions.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use restante_sqlite::{
    ErrorKind, Migration, OpenError, Replaced, Schema, Synchronous, Unusable, has_space_beside_messages,
};
use restante_store::{Result, StoreError};
use rusqlite::Connection;

use crate::queue::{Limits, QueueKind};
use crate::waiting::WaitingBound;

/// The number of prepared statements that are kept. There are not more.
const MAX_STATEMENTS: usize = 64;

/// Queues entries that were being sent, and lets the checkpoint of the earlier process be an abandoned one.
const RECOVER: &str = "
    UPDATE entries SET state = iif(state = 1, 0, state), claim = 0 WHERE claim <> 0;
    UPDATE OR IGNORE checkpoints SET is_current = 0;";

/// When a transaction is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// When it is committed.
    OnCommit,
    /// At the next checkpoint, or with the next transaction that is on disk when it is committed. The end of the
    /// process does not undo it.
    Later,
}

/// The open database.
pub(super) struct QueueFile {
    pub(super) connection: Connection,
    /// `None` if it is in memory.
    pub(super) directory: Option<PathBuf>,
    pub(super) kind: QueueKind,
    pub(super) limits: Limits,
    pub(super) waiting: RefCell<WaitingBound>,
    /// The number of the last claim. No claim of an earlier process is expected.
    pub(super) last_claim: Cell<i64>,
    /// Returns whether a directory has space. Tests replace it.
    pub(super) has_space: fn(&Path) -> bool,
}

impl QueueFile {
    /// See [`super::SqliteQueue::open`].
    pub(super) fn open(directory: &Path, kind: QueueKind, limits: Limits) -> Result<Self, String> {
        let (path, schema) = (directory.join(kind.file_name), schema(kind));
        let describe = |error: OpenError| format!("{} cannot be used: {error}", path.display());
        let connect = || {
            let connection = schema.open(&path)?;
            connection.execute_batch(RECOVER)?;
            Ok(connection)
        };
        let log = |Replaced { error, renamed_to }: Replaced| {
            tracing::error!(
                error = describe(error),
                renamed_to = %renamed_to.unwrap_or_default().display(),
                "the {} queue is unusable and was renamed; its entries are not sent and a new file is created",
                kind.name
            );
        };
        let connection = schema.open_or_replace(&path, connect, log).map_err(describe)?;
        Ok(Self::new(connection, Some(directory.to_owned()), kind, limits))
    }

    /// See [`super::SqliteQueue::in_memory`].
    pub(super) fn in_memory(kind: QueueKind, limits: Limits) -> Result<Self, String> {
        let connection = schema(kind).open_in_memory();
        let connection = connection.map_err(|error| format!("cannot create the {} queue: {error}", kind.name))?;
        Ok(Self::new(connection, None, kind, limits))
    }

    fn new(connection: Connection, directory: Option<PathBuf>, kind: QueueKind, limits: Limits) -> Self {
        connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
        let (waiting, last_claim, has_space) = (RefCell::default(), Cell::default(), has_space_beside_messages);
        Self { connection, directory, kind, limits, waiting, last_claim, has_space }
    }

    /// Runs a transaction. It is rolled back if it fails.
    pub(super) fn run<T>(&self, durability: Durability, run: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        if durability == Durability::Later {
            return self.commit(run);
        }
        self.set_synchronous("FULL")?;
        let result = self.commit(run);
        if let Err(error) = self.set_synchronous("NORMAL") {
            // The result is that of the transaction. The next ones are on disk earlier than necessary.
            tracing::warn!(%error, "cannot change when the {} queue is written to disk", self.kind.name);
        }
        result
    }

    fn commit<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let connection = self.connection.unchecked_transaction().map_err(sqlite_error)?;
        let transaction = Transaction { connection, file: self };
        let result = run(&transaction)?;
        transaction.connection.commit().map_err(sqlite_error)?;
        Ok(result)
    }

    fn set_synchronous(&self, value: &str) -> Result<()> {
        self.connection.pragma_update(None, "synchronous", value).map_err(sqlite_error)
    }
}

fn schema(kind: QueueKind) -> Schema {
    Schema {
        application_id: kind.application_id,
        migrations: &[Migration::Once(include_str!("tables.sql"))],
        incremental_vacuum: false,
        synchronous: Synchronous::Normal,
        checkpoint_pages: None,
        max_wal_bytes: 4 << 20,
        cache_bytes: None,
        busy_timeout: Duration::from_secs(1),
        quick_check: true,
        unusable: Unusable::Rename,
    }
}

/// A transaction on the database.
pub(super) struct Transaction<'a> {
    pub(super) connection: rusqlite::Transaction<'a>,
    pub(super) file: &'a QueueFile,
}

impl Transaction<'_> {
    pub(super) fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize> {
        let statement = self.connection.prepare_cached(sql);
        statement.and_then(|mut statement| statement.execute(parameters)).map_err(sqlite_error)
    }

    /// Runs a query. Returns what `read` returns for each row.
    pub(super) fn query<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        select.query_map(parameters, read).and_then(Iterator::collect).map_err(sqlite_error)
    }

    /// Returns the first column of the first row.
    pub(super) fn query_value<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, parameters, |row| row.get(0))?.pop())
    }
}

/// Classifies an error.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn sqlite_error(error: rusqlite::Error) -> StoreError {
    let text = format!("the queue: {error}");
    match ErrorKind::classify(&error) {
        ErrorKind::Full => StoreError::NoSpace(text),
        ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Interrupted => StoreError::Unavailable(text),
        ErrorKind::Damaged | ErrorKind::Other => StoreError::Broken(text),
    }
}
