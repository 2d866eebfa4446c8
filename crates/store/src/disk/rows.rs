//! Rows of the table `copies` as values: the summary of a message and the location of its record.

use std::borrow::Cow;

use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::naming::MailboxName;
use rusqlite::Row;

use super::segment::Location;
use crate::sql_values::nanos_to_time;

/// The columns that [`CopyRow::from_row`] reads, in this order.
macro_rules! columns {
    () => {
        "id, received, seen, size, body, sender, recipients, subject, segment, offset, length, shared"
    };
}
pub(super) use columns;

/// A message in one mailbox.
pub(super) struct CopyRow {
    pub(super) summary: Summary,
    pub(super) body_bytes: u64,
    pub(super) location: Location,
    pub(super) shared: bool,
}

impl CopyRow {
    pub(super) fn from_row(mailbox: &MailboxName, row: &Row<'_>) -> rusqlite::Result<Self> {
        let headline = Headline::new(&get_text(row, 5)?, get_text(row, 6)?.split_terminator('\n'), &get_text(row, 7)?);
        let summary = Summary {
            mailbox: mailbox.clone(),
            id: MessageId::from(get_u64(row, 0)?),
            headline,
            received: nanos_to_time(row.get(1)?),
            seen: row.get(2)?,
            size: get_u64(row, 3)?,
            message: MessageId::from(get_u64(row, 0)?),
            number: 0,
            tags: Default::default(),
            details: Default::default(),
        };
        let location = Location { segment: get_u64(row, 8)?, offset: get_u64(row, 9)?, length: get_u64(row, 10)? };
        Ok(Self { summary, body_bytes: get_u64(row, 4)?, location, shared: row.get(11)? })
    }
}

/// Returns a number. Ids, counts and lengths are never negative.
pub(super) fn get_u64(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column)
}

/// Returns a text. A flipped bit in a subject must not prevent the message from being listed or deleted.
fn get_text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?))
}

/// Returns a mailbox name. Names in the database are valid.
pub(super) fn get_mailbox(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxName> {
    Ok(get_text(row, column)?.into_owned().into())
}
