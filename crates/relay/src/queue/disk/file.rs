//! The file: its schema, opening it, and the changes.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_sqlite::{Migration, OpenError, Schema, Synchronous, Unusable, has_space_beside_messages};
use restante_store::sql_values::{id_to_i64, time_to_nanos, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::rows::{self, COLUMNS, EntryRows, sqlite_error};
use crate::entry::{Entry, EntryId};
use crate::queue::columns::{decode_recipients, encode_recipients, origin_columns, state_from_number, state_number};
use crate::queue::transitions::{EXPIRED_REPLY, due_after, latest_due, retry_failed, state_after, waiting_recipients};
use crate::queue::waiting::WaitingBound;
use crate::queue::{AttemptOutcome, AttemptRecord, ForwardOutcome, NewEntry, Selection};

/// The name of the file.
pub(super) const FILE_NAME: &str = "relay.db";

/// The number of entries that [`Transaction::retry`] reads at a time.
const RETRY_PAGE: usize = 500;

/// The number of prepared statements that are kept. There are not more.
const MAX_STATEMENTS: usize = 64;

const SCHEMA: Schema = Schema {
    application_id: 0x7272_6c79, // "rrly"
    migrations: &[Migration::Once(include_str!("tables.sql"))],
    incremental_vacuum: false,
    synchronous: Synchronous::Normal,
    checkpoint_pages: None,
    max_wal_bytes: 4 << 20,
    cache_bytes: None,
    busy_timeout: Duration::from_secs(1),
    quick_check: true,
    unusable: Unusable::Rename,
};

/// The maximum numbers of entries.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Entries that are queued or being sent.
    pub(super) max_waiting: usize,
    /// Entries in a final state.
    pub(super) max_finished: usize,
}

/// When a transaction is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// When it is committed.
    OnCommit,
    /// At the next checkpoint, or with the next transaction that is on disk when it is committed. The end of the
    /// process does not undo it.
    Later,
}

/// The open file.
pub(super) struct QueueFile {
    connection: Connection,
    directory: PathBuf,
    limits: Limits,
    waiting: RefCell<WaitingBound>,
    /// Returns whether entries may be added. Tests replace it.
    pub(super) has_space: fn(&Path) -> bool,
}

impl QueueFile {
    /// See [`super::DiskQueue::open`].
    pub(super) fn open(directory: &Path, limits: Limits) -> Result<Self, String> {
        let path = directory.join(FILE_NAME);
        let describe = |error: OpenError| format!("{} cannot be used: {error}", path.display());
        let connection = match connect(&path) {
            Ok(connection) => connection,
            Err(error) => {
                let replaced = SCHEMA.replace(&path, error).map_err(describe)?;
                tracing::error!(
                    error = describe(replaced.error),
                    renamed_to = %replaced.renamed_to.unwrap_or_default().display(),
                    "the relay queue is unusable and was renamed; its messages are not sent and a new file is created"
                );
                connect(&path).map_err(describe)?
            }
        };
        let waiting = RefCell::default();
        Ok(Self { connection, directory: directory.to_owned(), limits, waiting, has_space: has_space_beside_messages })
    }

    /// Runs a transaction. It is rolled back if it fails.
    pub(super) fn run<T>(
        &mut self,
        durability: Durability,
        run: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        if durability == Durability::Later {
            return self.commit(run);
        }
        self.set_synchronous("FULL")?;
        let result = self.commit(run);
        self.set_synchronous("NORMAL")?;
        result
    }

    /// The connection, for tests.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn commit<T>(&mut self, run: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Deferred);
        let has_space = || (self.has_space)(&self.directory);
        let transaction = Transaction {
            connection: transaction.map_err(sqlite_error)?,
            limits: self.limits,
            waiting: &self.waiting,
            has_space: &has_space,
        };
        let result = run(&transaction)?;
        transaction.connection.commit().map_err(sqlite_error)?;
        Ok(result)
    }

    fn set_synchronous(&self, value: &str) -> Result<()> {
        self.connection.pragma_update(None, "synchronous", value).map_err(sqlite_error)
    }
}

/// Opens the file and queues entries that were being sent.
fn connect(path: &Path) -> Result<Connection, OpenError> {
    let connection = SCHEMA.open(path)?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    connection.execute(RELEASE_CLAIMS, [])?;
    Ok(connection)
}

const RELEASE_CLAIMS: &str = "UPDATE entries SET state = iif(state = 1, 0, state), is_claimed = 0 WHERE is_claimed = 1";

/// A transaction on the file.
pub(super) struct Transaction<'a> {
    pub(super) connection: rusqlite::Transaction<'a>,
    limits: Limits,
    waiting: &'a RefCell<WaitingBound>,
    has_space: &'a dyn Fn() -> bool,
}

impl Transaction<'_> {
    /// Adds entries. Returns `None` if they exceed the limit.
    pub(super) fn add(&self, entries: &[NewEntry]) -> Result<Option<Vec<EntryId>>> {
        if !self.has_room(entries.len())? {
            return Ok(None);
        }
        self.insert(entries).map(Some)
    }

    pub(super) fn forward(&self, entries: &[NewEntry], from: MessageId, to: MessageId) -> Result<ForwardOutcome> {
        if self.cursor()? != Some(from) {
            return Ok(ForwardOutcome::CursorMoved);
        }
        if !self.has_room(entries.len())? {
            return Ok(ForwardOutcome::Full);
        }
        self.insert(entries)?;
        self.execute("UPDATE cursor SET message = ?1", params![id_to_i64(to)])?;
        Ok(ForwardOutcome::Added)
    }

    pub(super) fn acquire_cursor(&self, start: MessageId) -> Result<MessageId> {
        if let Some(cursor) = self.cursor()? {
            return Ok(cursor);
        }
        self.execute("INSERT INTO cursor VALUES (1, ?1)", params![id_to_i64(start)])?;
        Ok(start)
    }

    pub(super) fn delete_cursor(&self) -> Result<()> {
        self.execute("DELETE FROM cursor", []).map(drop)
    }

    pub(super) fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        let sql = format!(
            "UPDATE entries SET state = 1, is_claimed = 1 WHERE id IN (
                SELECT id FROM (
                    SELECT id FROM entries WHERE state = 0 AND target = ?1 AND due <= ?2 AND expires > ?2
                    ORDER BY due, id LIMIT ?3
                )
                UNION ALL SELECT id FROM (
                    SELECT id FROM entries WHERE state = 0 AND target = ?1 AND due > ?4 AND expires > ?2
                    ORDER BY due, id LIMIT ?3
                )
                LIMIT ?3
             ) RETURNING {COLUMNS}"
        );
        let (latest, now) = (time_to_nanos(latest_due(now)), time_to_nanos(now));
        let EntryRows { readable: mut claimed, unreadable } =
            self.entries(&sql, params![target, now, to_i64(limit), latest])?;
        for (id, error) in unreadable {
            let sql = "UPDATE entries SET state = 3, is_claimed = 0, last_reply = ?2 WHERE id = ?1";
            self.execute(sql, params![id, error.to_string()])?;
        }
        claimed.sort_unstable_by_key(|row| (row.due, row.entry.id));
        Ok(claimed.into_iter().map(|row| row.entry).collect())
    }

    pub(super) fn record(&self, results: &[AttemptRecord]) -> Result<()> {
        for AttemptRecord { id, outcome, .. } in results {
            let id = to_i64(id.0);
            match outcome {
                AttemptOutcome::Released => {
                    let sql = "UPDATE entries SET state = iif(state = 1, 0, state), is_claimed = 0
                               WHERE id = ?1 AND is_claimed = 1";
                    self.execute(sql, [id])?;
                }
                AttemptOutcome::Attempted { state, next_attempt, at, recipients, reply, transcript } => {
                    let sql = "UPDATE entries SET state = iif(state = 1, ?2, state), is_claimed = 0, due = ?3,
                                   attempts = attempts + 1, last_attempt = ?4, recipients = ?5, last_reply = ?6
                               WHERE id = ?1 AND is_claimed = 1";
                    let (state, due) = (state_number(state_after(*state)), due_after(*next_attempt, *at));
                    let (due, at) = (time_to_nanos(due), time_to_nanos(*at));
                    let changed =
                        self.execute(sql, params![id, state, due, at, encode_recipients(recipients)?, reply])?;
                    if changed > 0 {
                        let sql = "INSERT OR REPLACE INTO transcripts VALUES (?1, ?2)";
                        self.execute(sql, params![id, transcript.as_bytes()])?;
                    }
                }
            }
        }
        self.prune()
    }

    pub(super) fn expire(&self, now: Timestamp) -> Result<u64> {
        let sql = "UPDATE entries INDEXED BY entries_expiring SET state = 3, last_reply = iif(last_reply = '', ?2, last_reply)
                   WHERE state = 0 AND expires <= ?1";
        let expired = self.execute(sql, params![time_to_nanos(now), EXPIRED_REPLY])?;
        self.prune()?;
        Ok(expired as u64)
    }

    pub(super) fn cancel(&self, selection: &Selection) -> Result<u64> {
        let cancelled = match selection {
            Selection::Ids(ids) => {
                let sql = "UPDATE entries SET state = 4 WHERE id = ?1 AND state IN (0, 1)";
                let cancel = |id: &EntryId| self.execute(sql, [to_i64(id.0)]);
                ids.iter().map(cancel).sum::<Result<usize>>()?
            }
            Selection::Target(target) => {
                let sql = "UPDATE entries SET state = 4 WHERE state IN (0, 1) AND (?1 IS NULL OR target = ?1)";
                self.execute(sql, [target])?
            }
        };
        self.prune()?;
        Ok(cancelled as u64)
    }

    pub(super) fn retry(&self, selection: &Selection, now: Timestamp, expires: Timestamp) -> Result<u64> {
        let mut free = self.limits.max_waiting.saturating_sub(self.count_waiting()?);
        let mut retried = 0;
        let mut retry = |(id, state, recipients): Retryable| -> Result<()> {
            let state = state_from_number(state)?;
            let is_finished = state.is_final();
            // An unreadable entry is left out.
            let Ok(mut recipients) = decode_recipients(recipients.as_bytes(), state) else { return Ok(()) };
            if is_finished && free == 0 || !retry_failed(&mut recipients) {
                return Ok(());
            }
            let sql = "UPDATE entries SET state = 0, is_claimed = 0, due = ?2, expires = ?3, recipients = ?4
                       WHERE id = ?1";
            let recipients = encode_recipients(&recipients)?;
            self.execute(sql, params![id, time_to_nanos(now), time_to_nanos(expires), recipients])?;
            free -= usize::from(is_finished);
            self.waiting.borrow_mut().raise(usize::from(is_finished));
            retried += 1;
            Ok(())
        };
        match selection {
            Selection::Ids(ids) => {
                let mut ids: Vec<i64> = ids.iter().map(|id| to_i64(id.0)).collect();
                ids.sort_unstable();
                ids.dedup();
                let sql = "SELECT id, state, recipients FROM entries WHERE id = ?1 AND state IN (0, 3, 4)";
                for id in ids {
                    self.retryable(sql, [id])?.into_iter().try_for_each(&mut retry)?;
                }
            }
            Selection::Target(target) => {
                // In the order of the table, because a page is a small part of the entries in any state.
                let sql = "SELECT id, state, recipients FROM entries NOT INDEXED
                           WHERE id > ?1 AND state IN (0, 3, 4) AND (?2 IS NULL OR target = ?2) ORDER BY id LIMIT ?3";
                let mut last = 0;
                loop {
                    let page = self.retryable(sql, params![last, target, to_i64(RETRY_PAGE)])?;
                    let Some((id, ..)) = page.last() else { break };
                    last = *id;
                    page.into_iter().try_for_each(&mut retry)?;
                }
            }
        }
        Ok(retried)
    }

    pub(super) fn release_claims(&self) -> Result<()> {
        self.execute(RELEASE_CLAIMS, []).map(drop)
    }

    fn insert(&self, entries: &[NewEntry]) -> Result<Vec<EntryId>> {
        if !entries.is_empty() && !(self.has_space)() {
            return Err(StoreError::NoSpace("the rest of the disk is reserved for messages".to_owned()));
        }
        let sql = "INSERT INTO entries (message, mailbox, copy, target, sender, recipients, is_forwarded, released_by,
                       created, expires, state, is_claimed, attempts, due, last_reply)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 0, 0, ?9, '')";
        let mut insert = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let mut ids = Vec::with_capacity(entries.len());
        for entry in entries {
            let (is_forwarded, released_by) = origin_columns(&entry.origin);
            let parameters = params![
                id_to_i64(entry.message),
                entry.mailbox.as_str(),
                id_to_i64(entry.copy),
                entry.target,
                entry.sender,
                encode_recipients(&waiting_recipients(entry.recipients.clone()))?,
                is_forwarded,
                released_by,
                time_to_nanos(entry.created),
                time_to_nanos(entry.expires),
            ];
            let id = insert.insert(parameters).map_err(sqlite_error)?;
            ids.push(rows::to_entry_id(id));
        }
        Ok(ids)
    }

    /// Returns whether entries can be added, and raises the bound if so.
    fn has_room(&self, added: usize) -> Result<bool> {
        // Nothing else adds entries, so the bound is always valid.
        let is_known = self.waiting.borrow().has_room(added, self.limits.max_waiting, Duration::MAX);
        let has_room = is_known || added == 0 || {
            let waiting = self.count_waiting()?;
            waiting == 0 || waiting.saturating_add(added) <= self.limits.max_waiting
        };
        if has_room {
            self.waiting.borrow_mut().raise(added);
        }
        Ok(has_room)
    }

    fn count_waiting(&self) -> Result<usize> {
        let waiting = self.count("SELECT count(*) FROM entries WHERE state IN (0, 1)")?;
        self.waiting.borrow_mut().set(waiting);
        Ok(waiting)
    }

    /// Deletes finished entries above the limit.
    fn prune(&self) -> Result<()> {
        let finished = self.count("SELECT count(*) FROM entries WHERE state >= 2")?;
        let excess = finished.saturating_sub(self.limits.max_finished);
        if excess == 0 {
            return Ok(());
        }
        for sql in [
            "DELETE FROM transcripts WHERE entry IN (SELECT id FROM entries WHERE state >= 2 ORDER BY id LIMIT ?1)",
            "DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE state >= 2 ORDER BY id LIMIT ?1)",
        ] {
            self.execute(sql, [to_i64(excess)])?;
        }
        Ok(())
    }

    pub(super) fn cursor(&self) -> Result<Option<MessageId>> {
        let mut select = self.connection.prepare_cached("SELECT message FROM cursor").map_err(sqlite_error)?;
        let cursor = select.query_row([], |row| row.get(0)).optional().map_err(sqlite_error)?;
        Ok(cursor.map(rows::to_message_id))
    }

    fn count(&self, sql: &str) -> Result<usize> {
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        select.query_row([], |row| row.get(0)).map_err(sqlite_error)
    }

    fn retryable(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<Retryable>> {
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let rows = select.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.and_then(Iterator::collect).map_err(sqlite_error)
    }

    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize> {
        let statement = self.connection.prepare_cached(sql);
        statement.and_then(|mut statement| statement.execute(parameters)).map_err(sqlite_error)
    }
}

/// The id, the state and the recipients of an entry that can be retried by hand.
type Retryable = (i64, i16, String);
