//! Queries of the database. They change nothing.

use restante_mail::message::MessageId;
use restante_store::Result;
use restante_store::sql_values::{id_to_i64, nanos_to_time, to_i64};
use rusqlite::{Row, params};

use super::file::Transaction;
use crate::entry::{Entry, EntryFilter, EntryId, EntryState, Selection, StateCount, parse_state, state_number};
use crate::queue::TargetRecord;

/// The columns of an entry.
macro_rules! columns {
    () => {
        columns!("payload")
    };
    ($payload:literal) => {
        concat!(
            "id, message, mailbox, target, key, ",
            $payload,
            ", created, expires, state, attempts, due, last_attempt, last_reply, claim"
        )
    };
}
pub(super) use columns;

/// Whether an entry is selected by a target and by ids as JSON.
macro_rules! selected {
    () => {
        "(?1 IS NULL OR target = ?1) AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2)))"
    };
}
pub(super) use selected;

impl Transaction<'_> {
    pub(super) fn cursor(&self) -> Result<Option<MessageId>> {
        Ok(self.query_value::<u64>("SELECT message FROM cursor", [])?.map(MessageId::from))
    }

    pub(super) fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.query("SELECT name, is_paused, since FROM targets ORDER BY name", [], |row| {
            Ok(TargetRecord { name: row.get(0)?, is_paused: row.get(1)?, since: row.get::<_, u64>(2)?.into() })
        })
    }

    pub(super) fn list(&self, filter: &EntryFilter) -> Result<Vec<Entry>> {
        // Each selects an index.
        let which = match (filter.message, filter.state) {
            (Some(_), _) => "message = ?5",
            (None, Some(state)) if state.is_final() => "?5 IS NULL AND state >= 2",
            (None, _) => "?5 IS NULL",
        };
        let sql = format!(
            "SELECT {} FROM entries
             WHERE {which} AND id < ?1 AND (?2 IS NULL OR target = ?2) AND (?3 IS NULL OR state = ?3)
             ORDER BY id DESC LIMIT ?4",
            columns!("iif(?6, x'', payload)")
        );
        let before = filter.before.map_or(i64::MAX, |before| to_i64(before.0));
        let (state, message) = (filter.state.map(state_number), filter.message.map(id_to_i64));
        let EntryFilter { target, limit, omits_payloads, .. } = filter;
        self.entries(&sql, params![before, target, state, to_i64(*limit), message, omits_payloads])
    }

    pub(super) fn retryable(&self, selection: &Selection, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        // In the order of the table, because a page is a small part of the entries in any state.
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM entries NOT INDEXED WHERE ",
            selected!(),
            " AND id > ?3 AND state IN (0, 3, 4) ORDER BY id LIMIT ?4"
        );
        let (target, ids) = selection.parts();
        self.entries(sql, params![target, ids.map(|ids| format!("{ids:?}")), to_i64(after.0), to_i64(limit)])
    }

    pub(super) fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        let sql = concat!("SELECT ", columns!(), " FROM entries WHERE id = ?1");
        Ok(self.entries(sql, [to_i64(id.0)])?.pop())
    }

    pub(super) fn counts(&self) -> Result<Vec<StateCount>> {
        let sql = "SELECT state, target, count(*), sum(size) FROM entries GROUP BY state, target";
        let rows = self.query(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let count = |(state, target, count, bytes)| Ok(StateCount { state: parse_state(state)?, target, count, bytes });
        rows.into_iter().map(count).collect()
    }

    /// Runs a statement that returns the columns of entries.
    pub(super) fn entries(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<Entry>> {
        self.query(sql, parameters, |row| Ok(read_entry(row)))?.into_iter().collect()
    }
}

pub(super) fn read_entry(row: &Row<'_>) -> Result<Entry> {
    let (state, due) = (parse_state(get(row, 8)?)?, nanos_to_time(get(row, 10)?));
    Ok(Entry {
        id: EntryId(get(row, 0)?),
        message: get::<u64>(row, 1)?.into(),
        mailbox: get::<String>(row, 2)?.into(),
        target: get(row, 3)?,
        key: get(row, 4)?,
        payload: get(row, 5)?,
        created: nanos_to_time(get(row, 6)?),
        expires: nanos_to_time(get(row, 7)?),
        state,
        attempts: get(row, 9)?,
        next_attempt: (state == EntryState::Queued).then_some(due),
        last_attempt: get::<Option<i64>>(row, 11)?.map(nanos_to_time),
        last_reply: get(row, 12)?,
        claim: get(row, 13)?,
    })
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get(column).map_err(super::file::sqlite_error)
}
