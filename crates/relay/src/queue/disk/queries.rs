//! Queries of the file. They change nothing.

use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_store::Result;
use restante_store::sql_values::{id_to_i64, nanos_to_time, to_i64};
use rusqlite::{OptionalExtension as _, params};

use super::file::Transaction;
use super::rows::{COLUMNS, EntryRows, get, get_state, read_entry, sqlite_error};
use crate::entry::{Entry, EntryId};
use crate::queue::columns::state_number;
use crate::queue::{EntryFilter, StateCount};

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
