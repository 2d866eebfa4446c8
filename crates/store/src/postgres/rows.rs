//! Conversion of database rows to values.

use std::borrow::Cow;

use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Marks, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use tokio_postgres::Row;

use crate::feed::{Change, CopyEvent, MarkChange};
use crate::sql_values::nanos_to_time;
use crate::{ChangedMarks, Result, StoreError};

/// Returns a column. Fails if its type is not that of the schema.
pub fn get_column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Broken(format!("column {column}: {error}")))
}

/// Returns a number. Numbers in our tables are never negative.
pub fn get_u64(row: &Row, column: &str) -> Result<u64> {
    get_column::<i64>(row, column).map(to_u64)
}

pub(super) fn get_id(row: &Row, column: &str) -> Result<MessageId> {
    get_u64(row, column).map(MessageId::from)
}

pub(super) fn get_mailbox(row: &Row, column: &str) -> Result<MailboxName> {
    get_text(row, column).map(|name| name.into_owned().into())
}

/// Returns the copy of a row: the columns of [`parse_marks`], `id`, `received`, `size`, `headline`, `message`, `copy_number` and
/// `details`. If `previous` is a copy of the same message, they share the headline, and that of this row is not read.
pub(super) fn parse_summary(row: &Row, mailbox: MailboxName, previous: Option<&Summary>) -> Result<Summary> {
    let message = get_id(row, "message")?;
    let headline = match previous {
        Some(previous) if previous.message == message => previous.headline.clone(),
        _ => decode_headline(&get_text(row, "headline")?),
    };
    let Marks { seen, flags, tags, modseq } = parse_marks(row)?;
    Ok(Summary {
        mailbox,
        id: get_id(row, "id")?,
        message,
        number: to_copy_number(get_column(row, "copy_number")?),
        headline,
        received: nanos_to_time(get_column(row, "received")?),
        size: get_u64(row, "size")?,
        seen,
        flags,
        tags,
        modseq,
        details: Details::from_encoded(&get_text(row, "details")?),
    })
}

/// Returns the marks of a row: the columns `seen`, `flags`, `tags` and `modseq`.
pub(super) fn parse_marks(row: &Row) -> Result<Marks> {
    Ok(Marks {
        seen: get_column(row, "seen")?,
        flags: Flags::from_bits(get_column::<i16>(row, "flags")?.to_le_bytes()[0]),
        tags: Tags::from_encoded(&get_text(row, "tags")?),
        modseq: get_u64(row, "modseq")?,
    })
}

/// Returns which marks were changed: the column `changed_marks`.
pub(super) fn parse_changed_marks(row: &Row) -> Result<ChangedMarks> {
    let bits: i16 = get_column(row, "changed_marks")?;
    Ok(ChangedMarks { seen: bits & 1 != 0, flags: bits & 2 != 0, tags: bits & 4 != 0 })
}

/// Returns the change of a row, which has the database type `copy_change`.
pub(super) fn parse_change(row: &Row) -> Result<Change> {
    let mailbox = get_mailbox(row, "mailbox")?;
    let event = match get_column::<Option<bool>>(row, "deleted")? {
        None => CopyEvent::Stored(parse_summary(row, mailbox, None)?),
        Some(true) => CopyEvent::Deleted(parse_summary(row, mailbox, None)?),
        Some(false) => {
            let (changed, marks) = (parse_changed_marks(row)?, parse_marks(row)?);
            CopyEvent::Marked(MarkChange { mailbox, id: get_id(row, "id")?, changed, marks })
        }
    };
    Ok(Change { position: get_u64(row, "number")?, event })
}

/// Converts the number of a copy.
pub(super) fn to_copy_number(number: i64) -> u32 {
    u32::try_from(to_u64(number)).unwrap_or(u32::MAX)
}

/// Encodes a headline as it is stored.
pub(super) fn encode_headline(headline: &Headline) -> String {
    [headline.from(), "\n", headline.subject(), "\n", headline.recipient_lines()].concat()
}

fn decode_headline(text: &str) -> Headline {
    let mut lines = text.split_terminator('\n');
    let (from, subject) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    Headline::new(from, lines, subject)
}

pub(super) fn to_u64(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a text. Invalid bytes must not prevent the message from being listed or deleted.
pub(super) fn get_text<'a>(row: &'a Row, column: &str) -> Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(get_column(row, column)?))
}

/// Splits the result of a database function: the number of the change before, and the other rows.
pub(super) fn split_position(rows: &[Row]) -> Result<(u64, &[Row])> {
    let (first, others) = rows.split_first().ok_or_else(|| missing_error("the first row"))?;
    Ok((to_u64(get_column(first, "number")?), others))
}

pub(super) fn missing_error(item: &str) -> StoreError {
    StoreError::Broken(format!("{item} is missing in the result of the database"))
}
