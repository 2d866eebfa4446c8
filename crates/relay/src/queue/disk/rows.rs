//! Queries of the file, and the conversion of its rows.

use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_mail::message::MessageId;
use restante_sqlite::ErrorKind;
use restante_store::sql_values::{id_to_i64, nanos_to_time, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::{OptionalExtension as _, Row, params};

use super::file::Transaction;
use crate::entry::{Entry, EntryId, EntryState};
use crate::queue::columns::{decode_recipients, origin_from_columns, state_from_number, state_number};
use crate::queue::{EntryFilter, StateCount};

/// The columns that [`Transaction::entries`] needs.
pub(super) const COLUMNS: &str = "id, message, mailbox, copy, target, sender, recipients, is_forwarded, released_by,
    created, expires, state, attempts, due, last_attempt, last_reply";

/// An entry and when it is or was due.
pub(super) struct EntryRow {
    pub(super) entry: Entry,
    pub(super) due: Timestamp,
}

/// The entries that a statement returned. Unreadable ones are kept apart, so that the others can be used.
#[derive(Default)]
pub(super) struct EntryRows {
    pub(super) readable: Vec<EntryRow>,
    pub(super) unreadable: Vec<(i64, StoreError)>,
}

impl Transaction<'_> {
    pub(super) fn identity(&self) -> Result<String> {
        let mut select = self.connection.prepare_cached("SELECT value FROM identity").map_err(sqlite_error)?;
        select.query_row([], |row| row.get(0)).map_err(sqlite_error)
    }

    pub(super) fn next_due(&self, target: &str) -> Result<Option<Timestamp>> {
        let sql = "SELECT min(due) FROM entries WHERE state = 0 AND target = ?1";
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let due: Option<i64> = select.query_row([target], |row| row.get(0)).map_err(sqlite_error)?;
        Ok(due.map(nanos_to_time))
    }

    pub(super) fn list(&self, filter: &EntryFilter) -> Result<Vec<Entry>> {
        // Each selects an index.
        let which = match (filter.message, filter.state) {
            (Some(_), _) => "message = ?5",
            (None, Some(state)) if state.is_final() => "?5 IS NULL AND state >= 2",
            (None, _) => "?5 IS NULL",
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM entries
             WHERE {which} AND id < ?1 AND (?2 IS NULL OR target = ?2) AND (?3 IS NULL OR state = ?3)
             ORDER BY id DESC LIMIT ?4"
        );
        let before = filter.before.map_or(i64::MAX, |before| to_i64(before.0));
        let (state, message) = (filter.state.map(state_number), filter.message.map(id_to_i64));
        let rows = self.entries(&sql, params![before, filter.target, state, to_i64(filter.limit), message])?;
        Ok(rows.readable.into_iter().map(|row| row.entry).collect())
    }

    pub(super) fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        let sql = format!("SELECT {COLUMNS} FROM entries WHERE id = ?1");
        Ok(self.entries(&sql, [to_i64(id.0)])?.readable.pop().map(|row| row.entry))
    }

    pub(super) fn transcript(&self, id: EntryId) -> Result<Option<TranscriptLines>> {
        let sql = "SELECT lines FROM transcripts WHERE entry = ?1";
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let lines = select.query_row([to_i64(id.0)], |row| row.get(0)).optional().map_err(sqlite_error)?;
        Ok(lines.map(TranscriptLines::from_bytes))
    }

    pub(super) fn counts(&self) -> Result<Vec<StateCount>> {
        let sql = "SELECT state, target, count(*) FROM entries GROUP BY state, target";
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let mut rows = select.query([]).map_err(sqlite_error)?;
        let mut counts = Vec::new();
        while let Some(row) = rows.next().map_err(sqlite_error)? {
            counts.push(StateCount { state: get_state(row, 0)?, target: get(row, 1)?, count: get(row, 2)? });
        }
        Ok(counts)
    }

    /// Runs a statement that returns [`COLUMNS`].
    pub(super) fn entries(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<EntryRows> {
        let mut select = self.connection.prepare_cached(sql).map_err(sqlite_error)?;
        let mut rows = select.query(parameters).map_err(sqlite_error)?;
        let mut entries = EntryRows::default();
        while let Some(row) = rows.next().map_err(sqlite_error)? {
            match read_entry(row) {
                Ok(entry) => entries.readable.push(entry),
                Err(error) => {
                    let id: i64 = get(row, 0)?;
                    tracing::error!(entry = id, %error, "a relay entry cannot be read and is left out");
                    entries.unreadable.push((id, error));
                }
            }
        }
        Ok(entries)
    }
}

fn read_entry(row: &Row<'_>) -> Result<EntryRow> {
    let (state, due) = (get_state(row, 11)?, nanos_to_time(get(row, 13)?));
    let recipients: String = get(row, 6)?;
    let entry = Entry {
        id: to_entry_id(get(row, 0)?),
        message: to_message_id(get(row, 1)?),
        mailbox: get::<String>(row, 2)?.into(),
        copy: to_message_id(get(row, 3)?),
        target: get(row, 4)?,
        sender: get(row, 5)?,
        recipients: decode_recipients(recipients.as_bytes(), state)?,
        origin: origin_from_columns(get(row, 7)?, get(row, 8)?),
        created: nanos_to_time(get(row, 9)?),
        expires: nanos_to_time(get(row, 10)?),
        state,
        attempts: get(row, 12)?,
        next_attempt: (state == EntryState::Queued).then_some(due),
        last_attempt: get::<Option<i64>>(row, 14)?.map(nanos_to_time),
        last_reply: get(row, 15)?,
        claim: 0,
    };
    Ok(EntryRow { entry, due })
}

fn get_state(row: &Row<'_>, column: usize) -> Result<EntryState> {
    state_from_number(get(row, column)?)
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get(column).map_err(sqlite_error)
}

/// Converts the id of an entry. Ids are positive.
pub(super) fn to_entry_id(id: i64) -> EntryId {
    EntryId(id.unsigned_abs())
}

/// Converts the id of a message. Ids are not negative.
pub(super) fn to_message_id(id: i64) -> MessageId {
    id.unsigned_abs().into()
}

/// Classifies an error.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn sqlite_error(error: rusqlite::Error) -> StoreError {
    let text = format!("the relay queue: {error}");
    match ErrorKind::classify(&error) {
        ErrorKind::Full => StoreError::NoSpace(text),
        ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Interrupted => StoreError::Unavailable(text),
        ErrorKind::Damaged | ErrorKind::Other => StoreError::Broken(text),
    }
}
