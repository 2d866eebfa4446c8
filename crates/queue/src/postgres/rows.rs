//! Conversion of values to the parameters of statements, and of rows to values.

use jiff::Timestamp;
use restante_store::postgres::DatabaseClock;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::sql_values::{nanos_to_time, time_to_nanos};
use restante_store::{Result, StoreError};
use tokio_postgres::Row;

use crate::entry::{Entry, EntryId, EntryState, StateCount, parse_state};
use crate::queue::{AbandonedCheckpoint, TargetRecord};

/// Returns one value of each item, as the parameter of a statement.
pub(super) fn column<'a, T, U>(items: &'a [T], read: impl Fn(&'a T) -> U) -> Vec<U> {
    items.iter().map(read).collect()
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

/// Returns the checkpoint of a row.
pub(super) fn parse_abandoned(row: &Row) -> Result<AbandonedCheckpoint> {
    Ok(AbandonedCheckpoint {
        message: get_u64(row, "checkpoint")?.into(),
        node: get_column(row, "id")?,
        version: get_column(row, "version")?,
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
    parse_state(get_column(row, "state")?)
}

pub(super) fn get_text(row: &Row, column: &str) -> Result<String> {
    to_text(get_column(row, column)?)
}

fn to_text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| StoreError::Broken(format!("an entry of a queue is unreadable: {error}")))
}
