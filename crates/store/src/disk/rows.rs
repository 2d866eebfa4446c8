//! The rows of the table `copies`, as values: what a summary is made of, and where the record is.

use std::borrow::Cow;

use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::naming::MailboxName;
use rusqlite::Row;

use super::segment::Location;
use crate::numbers::time;

/// The columns that [`Copy::from_row`] reads, in its order.
macro_rules! columns {
    () => {
        "id, received, seen, size, body, sender, recipients, subject, segment, offset, length, shared"
    };
}
pub(super) use columns;

/// One mailbox's copy of a message.
pub(super) struct Copy {
    pub(super) summary: Summary,
    pub(super) body: u64,
    pub(super) location: Location,
    pub(super) shared: bool,
}

impl Copy {
    pub(super) fn from_row(mailbox: &MailboxName, row: &Row<'_>) -> rusqlite::Result<Self> {
        let headline = Headline::new(&text(row, 5)?, text(row, 6)?.split_terminator('\n'), &text(row, 7)?);
        let summary = Summary {
            mailbox: mailbox.clone(),
            id: MessageId::from(number(row, 0)?),
            headline,
            received: time(row.get(1)?),
            seen: row.get(2)?,
            size: number(row, 3)?,
        };
        let location = Location { segment: number(row, 8)?, offset: number(row, 9)?, length: number(row, 10)? };
        Ok(Self { summary, body: number(row, 4)?, location, shared: row.get(11)? })
    }
}

/// A number from the database. Ours are ids, counts and lengths, which are never negative.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column)
}

/// A text. A flipped bit in a subject must not keep anybody from seeing, or deleting, the message.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?))
}

/// A mailbox name that is in the database, and therefore is one.
pub(super) fn mailbox(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxName> {
    Ok(text(row, column)?.into_owned().into())
}
