//! Conversion of the rows of the file.

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_sqlite::ErrorKind;
use restante_store::sql_values::nanos_to_time;
use restante_store::{Result, StoreError};
use rusqlite::Row;

use crate::entry::{Entry, EntryId, EntryState};
use crate::queue::columns::{decode_recipients, origin_from_columns, state_from_number};

/// The columns that [`EntryRow`] needs.
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

pub(super) fn read_entry(row: &Row<'_>) -> Result<EntryRow> {
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

pub(super) fn get_state(row: &Row<'_>, column: usize) -> Result<EntryState> {
    state_from_number(get(row, column)?)
}

pub(super) fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T> {
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
