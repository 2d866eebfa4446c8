//! Conversion of entries and results to the parameters of statements, and of rows to entries.

use jiff::Timestamp;
use restante_store::postgres::DatabaseClock;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::sql_values::{id_to_i64, nanos_to_time, time_to_nanos, to_i64};
use restante_store::{Result, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::entry::{Entry, EntryId, EntryState};
use crate::queue::columns::{
    decode_recipients, encode_recipients, origin_columns, origin_from_columns, state_from_number, state_number,
};
use crate::queue::transitions::{due_after, retry_failed, state_after, waiting_recipients};
use crate::queue::{AttemptOutcome, AttemptRecord, NewEntry, StateCount};

/// New entries, by column.
#[derive(Default)]
pub(super) struct EntryColumns<'a> {
    messages: Vec<i64>,
    mailboxes: Vec<&'a [u8]>,
    copies: Vec<i64>,
    targets: Vec<&'a [u8]>,
    senders: Vec<&'a [u8]>,
    recipients: Vec<Vec<u8>>,
    are_forwarded: Vec<bool>,
    released_by: Vec<Option<&'a [u8]>>,
    created: Vec<i64>,
    expires: Vec<i64>,
}

impl<'a> EntryColumns<'a> {
    pub(super) fn new(entries: &'a [NewEntry], clock: &DatabaseClock) -> Result<Self> {
        let mut columns = Self::default();
        for entry in entries {
            let (is_forwarded, released_by) = origin_columns(&entry.origin);
            columns.messages.push(id_to_i64(entry.message));
            columns.mailboxes.push(entry.mailbox.as_str().as_bytes());
            columns.copies.push(id_to_i64(entry.copy));
            columns.targets.push(entry.target.as_bytes());
            columns.senders.push(entry.sender.as_bytes());
            columns.recipients.push(encode_recipients(&waiting_recipients(entry.recipients.clone()))?.into_bytes());
            columns.are_forwarded.push(is_forwarded);
            columns.released_by.push(released_by.map(str::as_bytes));
            columns.created.push(to_nanos(clock, entry.created));
            columns.expires.push(to_nanos(clock, entry.expires));
        }
        Ok(columns)
    }

    /// Returns the columns as the first parameters of the statements that add entries.
    pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.messages,
            &self.mailboxes,
            &self.copies,
            &self.targets,
            &self.senders,
            &self.recipients,
            &self.are_forwarded,
            &self.released_by,
            &self.created,
            &self.expires,
        ]
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
    recipients: Vec<Option<Vec<u8>>>,
    replies: Vec<Option<&'a [u8]>>,
    transcripts: Vec<Option<&'a [u8]>>,
}

impl<'a> ResultColumns<'a> {
    pub(super) fn new(results: &'a [AttemptRecord], clock: &DatabaseClock) -> Result<Self> {
        let mut columns = Self::default();
        for AttemptRecord { id, claim, outcome } in results {
            columns.ids.push(to_i64(id.0));
            columns.claims.push(to_i64(*claim));
            columns.are_released.push(matches!(outcome, AttemptOutcome::Released));
            match outcome {
                AttemptOutcome::Released => {
                    columns.states.push(state_number(EntryState::Queued));
                    columns.due.push(None);
                    columns.times.push(None);
                    columns.recipients.push(None);
                    columns.replies.push(None);
                    columns.transcripts.push(None);
                }
                AttemptOutcome::Attempted { state, next_attempt, at, recipients, reply, transcript } => {
                    columns.states.push(state_number(state_after(*state)));
                    columns.due.push(Some(to_nanos(clock, due_after(*next_attempt, *at))));
                    columns.times.push(Some(to_nanos(clock, *at)));
                    columns.recipients.push(Some(encode_recipients(recipients)?.into_bytes()));
                    columns.replies.push(Some(reply.as_bytes()));
                    columns.transcripts.push(Some(transcript.as_bytes()));
                }
            }
        }
        Ok(columns)
    }

    /// Returns the parameters of the statement that records results.
    pub(super) fn parameters_with<'b>(&'b self, node: &'b i64) -> Vec<&'b (dyn ToSql + Sync)> {
        vec![
            &self.ids,
            &self.are_released,
            &self.states,
            &self.due,
            &self.times,
            &self.recipients,
            &self.replies,
            &self.transcripts,
            node,
            &self.claims,
        ]
    }
}

/// Entries that are retried by hand, by column, with the recipients that they get.
#[derive(Default)]
pub(super) struct RetryColumns {
    pub(super) ids: Vec<i64>,
    pub(super) attempts: Vec<i32>,
    pub(super) recipients: Vec<Vec<u8>>,
}

impl RetryColumns {
    /// Leaves out entries without a waiting recipient, and unreadable ones. At most `free` entries are finished ones; it
    /// is reduced by their number.
    pub(super) fn new(rows: &[Row], free: &mut usize) -> Result<Self> {
        let mut columns = Self::default();
        for row in rows {
            let state = get_state(row)?;
            let Ok(mut recipients) = decode_recipients(get_column(row, "recipients")?, state) else { continue };
            if state.is_final() && *free == 0 || !retry_failed(&mut recipients) {
                continue;
            }
            *free -= usize::from(state.is_final());
            columns.ids.push(get_column(row, "id")?);
            columns.attempts.push(get_column(row, "attempts")?);
            columns.recipients.push(encode_recipients(&recipients)?.into_bytes());
        }
        Ok(columns)
    }
}

/// Returns the entries of rows. Unreadable ones are left out, so that the others can be used.
pub(super) fn parse_entries(rows: &[Row], clock: &DatabaseClock) -> Vec<Entry> {
    let parse = |row| parse_entry(row, clock).inspect_err(|error| tracing::error!(%error, "a relay entry is left out"));
    rows.iter().filter_map(|row| parse(row).ok()).collect()
}

/// Returns the entry of a row.
pub(super) fn parse_entry(row: &Row, clock: &DatabaseClock) -> Result<Entry> {
    let (state, due) = (get_state(row)?, to_time(clock, get_column(row, "due")?));
    let released_by = get_column::<Option<Vec<u8>>>(row, "released_by")?.map(to_text).transpose()?;
    Ok(Entry {
        id: EntryId(get_u64(row, "id")?),
        message: get_u64(row, "message")?.into(),
        mailbox: get_text(row, "mailbox")?.into(),
        copy: get_u64(row, "copy")?.into(),
        target: get_text(row, "target")?,
        sender: get_text(row, "sender")?,
        recipients: decode_recipients(get_column(row, "recipients")?, state)?,
        origin: origin_from_columns(get_column(row, "is_forwarded")?, released_by),
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
    Ok(StateCount { target: get_text(row, "target")?, state: get_state(row)?, count: get_u64(row, "count")? })
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
    state_from_number(get_column(row, "state")?)
}

fn get_text(row: &Row, column: &str) -> Result<String> {
    to_text(get_column(row, column)?)
}

fn to_text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| StoreError::Broken(format!("a relay entry is unreadable: {error}")))
}
