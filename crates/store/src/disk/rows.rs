//! Rows of the table `copies` as values: the summary of a message and the location of its record.

use std::borrow::Cow;

use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Marks, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use rusqlite::Row;

use super::segment::Location;
use crate::sql_values::nanos_to_time;

/// The columns that [`CopyRow::from_row`] reads, in this order.
macro_rules! columns {
    () => {
        "id, received, seen, size, body, sender, recipients, subject, segment, offset, length, shared, \
         message, number, tags, details, flags, modseq"
    };
}
pub(super) use columns;

/// The number of [`columns`], which is the index of the one after them.
const MAILBOX_COLUMN: usize = 18;

/// A copy of a message.
pub(super) struct CopyRow {
    pub(super) summary: Summary,
    pub(super) body_bytes: u64,
    pub(super) location: Location,
    pub(super) shared: bool,
}

impl CopyRow {
    /// Reads a copy in any mailbox. The column after [`columns`] is the mailbox. If `previous` is a copy of the same
    /// message, they share the headline.
    pub(super) fn with_mailbox(row: &Row<'_>, previous: Option<&Summary>) -> rusqlite::Result<Self> {
        Self::read(get_mailbox(row, MAILBOX_COLUMN)?, row, previous)
    }

    pub(super) fn from_row(mailbox: &MailboxName, row: &Row<'_>) -> rusqlite::Result<Self> {
        Self::read(mailbox.clone(), row, None)
    }

    fn read(mailbox: MailboxName, row: &Row<'_>, previous: Option<&Summary>) -> rusqlite::Result<Self> {
        let message = get_u64(row, 12)?.into();
        let headline = match previous {
            Some(previous) if previous.message == message => previous.headline.clone(),
            _ => Headline::new(&get_text(row, 5)?, get_text(row, 6)?.split_terminator('\n'), &get_text(row, 7)?),
        };
        let summary = Summary {
            mailbox,
            id: get_u64(row, 0)?.into(),
            message,
            number: row.get(13)?,
            headline,
            received: nanos_to_time(row.get(1)?),
            size: get_u64(row, 3)?,
            seen: row.get(2)?,
            flags: Flags::from_bits(row.get(16)?),
            modseq: get_u64(row, 17)?,
            tags: Tags::from_encoded(&get_text(row, 14)?),
            details: Details::from_encoded(&get_text(row, 15)?),
        };
        let location = Location { segment: get_u64(row, 8)?, offset: get_u64(row, 9)?, length: get_u64(row, 10)? };
        Ok(Self { summary, body_bytes: get_u64(row, 4)?, location, shared: row.get(11)? })
    }
}

/// Returns the marks of a copy: the columns `seen`, `flags`, `tags` and `modseq`, from `first` on.
pub(super) fn get_marks(row: &Row<'_>, first: usize) -> rusqlite::Result<Marks> {
    Ok(Marks {
        seen: row.get(first)?,
        flags: Flags::from_bits(row.get(first + 1)?),
        tags: Tags::from_encoded(&get_text(row, first + 2)?),
        modseq: get_u64(row, first + 3)?,
    })
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
