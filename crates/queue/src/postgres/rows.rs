//! Conversion of entries and results to the parameters of statements, and of rows to entries.

use jiff::Timestamp;
use restante_store::postgres::DatabaseClock;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::sql_values::{id_to_i64, nanos_to_time, time_to_nanos, to_i64};
use restante_store::{Result, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::entry::{AttemptOutcome, AttemptRecord, Entry, EntryId, EntryState, NewEntry, StateCount};
use crate::queue::{QueueKind, TargetRecord};

/// New entries, by column.
#[derive(Default)]
pub(super) struct EntryColumns<'a> {
    messages: Vec<i64>,
    mailboxes: Vec<&'a [u8]>,
    targets: Vec<&'a [u8]>,
    keys: Vec<Option<&'a [u8]>>,
    payloads: Vec<&'a [u8]>,
    created: Vec<i64>,
    expires: Vec<i64>,
}

impl<'a> EntryColumns<'a> {
    pub(super) fn new(entries: &'a [NewEntry], clock: &DatabaseClock) -> Self {
        let mut columns = Self::default();
        for entry in entries {
            columns.messages.push(id_to_i64(entry.message));
            columns.mailboxes.push(entry.mailbox.as_str().as_bytes());
            columns.targets.push(entry.target.as_bytes());
            columns.keys.push(entry.key.as_ref().map(String::as_bytes));
            columns.payloads.push(&entry.payload);
            columns.created.push(to_nanos(clock, entry.created));
            columns.expires.push(to_nanos(clock, entry.expires));
        }
        columns
    }

    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 7] {
        [&self.messages, &self.mailboxes, &self.targets, &self.keys, &self.payloads, &self.created, &self.expires]
    }
}

/// Results, by column. What a released entry keeps is `None`.
#[derive(Default)]
pub(super) struct ResultColumns<'a> {
    ids: Vec<i64>,
    claims: Vec<i64>,
    are_released: Vec<bool>,
    states: Vec<i16>,
    due: Vec<Option<i64>>,
    times: Vec<Option<i64>>,
    payloads: Vec<Option<&'a [u8]>>,
    replies: Vec<Option<&'a [u8]>>,
    logs: Vec<Option<&'a [u8]>>,
}

impl<'a> ResultColumns<'a> {
    pub(super) fn new(results: &'a [AttemptRecord], clock: &DatabaseClock) -> Self {
        let mut columns = Self::default();
        for AttemptRecord { id, claim, outcome } in results {
            columns.ids.push(to_i64(id.0));
            columns.claims.push(to_i64(*claim));
            columns.are_released.push(matches!(outcome, AttemptOutcome::Released));
            match outcome {
                AttemptOutcome::Released => {
                    columns.states.push(EntryState::Queued.number());
                    columns.due.push(None);
                    columns.times.push(None);
                    columns.payloads.push(None);
                    columns.replies.push(None);
                    columns.logs.push(None);
                }
                AttemptOutcome::Attempted { state, next_attempt, at, payload, reply, log } => {
                    columns.states.push(state.after_attempt().number());
                    columns.due.push(Some(to_nanos(clock, next_attempt.unwrap_or(*at))));
                    columns.times.push(Some(to_nanos(clock, *at)));
                    columns.payloads.push(Some(payload));
                    columns.replies.push(Some(reply.as_bytes()));
                    columns.logs.push(Some(log));
                }
            }
        }
        columns
    }

    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.ids,
            &self.claims,
            &self.are_released,
            &self.states,
            &self.due,
            &self.times,
            &self.payloads,
            &self.replies,
            &self.logs,
        ]
    }
}

/// Entries that are retried by hand, by column, with the payloads that they get.
#[derive(Default)]
pub(super) struct RetryColumns {
    pub(super) ids: Vec<i64>,
    pub(super) attempts: Vec<i32>,
    pub(super) payloads: Vec<Vec<u8>>,
}

impl RetryColumns {
    /// Leaves out entries that cannot be sent again. At most `free` entries are finished ones; it is reduced by their
    /// number.
    pub(super) fn new(rows: &[Row], free: &mut usize, kind: QueueKind) -> Result<Self> {
        let mut columns = Self::default();
        for row in rows {
            let state = get_state(row)?;
            let payload = (kind.retried_payload)(get_column(row, "payload")?, state);
            let Some(payload) = payload.filter(|_| !state.is_final() || *free > 0) else { continue };
            *free -= usize::from(state.is_final());
            columns.ids.push(get_column(row, "id")?);
            columns.attempts.push(get_column(row, "attempts")?);
            columns.payloads.push(payload);
        }
        Ok(columns)
    }
}

/// Returns the entry of a row.
pub(super) fn parse_entry(row: &Row, clock: &DatabaseClock) -> Result<Entry> {
    let (state, due) = (get_state(row)?, to_time(clock, get_column(row, "due")?));
    Ok(Entry {
        id: EntryId(get_u64(row, "id")?),
        message: get_u64(row, "message")?.into(),
        mailbox: get_text(row, "mailbox")?.into(),
        target: get_text(row, "target")?,
        key: get_column::<Option<Vec<u8>>>(row, "key")?.map(to_text).transpose()?,
        payload: get_column(row, "payload")?,
        created: to_time(clock, get_column(row, "created")?),
        expires: to_time(clock, get_column(row, "expires")?),
        state,
        attempts: get_column::<i32>(row, "attempts")?.unsigned_abs(),
        next_attempt: (state == EntryState::Queued).then_some(due),
        last_attempt: get_column::<Option<i64>>(row, "last_attempt")?.map(|nanos| to_time(clock, nanos)),
        last_reply: get_text(row, "last_reply")?,
        claim: get_u64(row, "claim")?,
    })
}

/// Returns the count of a row.
pub(super) fn parse_count(row: &Row) -> Result<StateCount> {
    let (count, bytes) = (get_u64(row, "count")?, get_u64(row, "bytes")?);
    Ok(StateCount { target: get_text(row, "target")?, state: get_state(row)?, count, bytes })
}

/// Returns the target of a row.
pub(super) fn parse_target(row: &Row) -> Result<TargetRecord> {
    let since = get_u64(row, "since")?.into();
    Ok(TargetRecord { name: get_text(row, "name")?, is_paused: get_column(row, "is_paused")?, since })
}

/// Converts a time of this node to Unix nanoseconds of the database's clock.
pub(super) fn to_nanos(clock: &DatabaseClock, time: Timestamp) -> i64 {
    time_to_nanos(clock.to_database(time))
}

/// Converts Unix nanoseconds of the database's clock to a time of this node.
pub(super) fn to_time(clock: &DatabaseClock, nanos: i64) -> Timestamp {
    clock.to_machine(nanos_to_time(nanos))
}

fn get_state(row: &Row) -> Result<EntryState> {
    EntryState::from_number(get_column(row, "state")?)
}

pub(super) fn get_text(row: &Row, column: &str) -> Result<String> {
    to_text(get_column(row, column)?)
}

fn to_text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| StoreError::Broken(format!("an entry of a queue is unreadable: {error}")))
}
