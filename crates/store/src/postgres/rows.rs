//! Rows of the database as values.

use std::borrow::Cow;

use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio_postgres::Row;

use crate::feed::{Change, Event};
use crate::numbers::time;
use crate::{Result, StoreError};

/// A value of a row, which is of the type that the schema gives it.
pub fn value<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Broken(format!("column {column}: {error}")))
}

/// A number, which ours never are below zero.
pub fn number(row: &Row, column: &str) -> Result<u64> {
    value::<i64>(row, column).map(unsigned)
}

pub(super) fn id(row: &Row, column: &str) -> Result<MessageId> {
    number(row, column).map(MessageId::from)
}

pub(super) fn mailbox(row: &Row, column: &str) -> Result<MailboxName> {
    text(row, column).map(|name| name.into_owned().into())
}

/// A message that is in this mailbox: the columns `id`, `received`, `size`, `seen` and `headline`.
pub(super) fn summary(row: &Row, mailbox: MailboxName) -> Result<Summary> {
    Ok(Summary {
        mailbox,
        id: id(row, "id")?,
        headline: headline(&text(row, "headline")?),
        received: time(value(row, "received")?),
        size: number(row, "size")?,
        seen: value(row, "seen")?,
    })
}

/// A row of the database's type `change`, with everything that is to be known of it.
pub(super) fn change(row: &Row) -> Result<Change> {
    let mailbox = mailbox(row, "mailbox")?;
    let event = match value::<Option<bool>>(row, "deleted")? {
        None => Event::Stored(summary(row, mailbox)?),
        Some(true) => Event::Deleted(summary(row, mailbox)?),
        Some(false) => Event::Seen { mailbox, id: id(row, "id")?, seen: value(row, "seen")? },
    };
    Ok(Change { number: number(row, "number")?, event })
}

/// A headline as it is stored.
pub(super) fn headline_text(headline: &Headline) -> String {
    [headline.from(), "\n", headline.subject(), "\n", headline.recipient_lines()].concat()
}

fn headline(text: &str) -> Headline {
    let mut lines = text.split_terminator('\n');
    let (from, subject) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    Headline::new(from, lines, subject)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A text. Whatever has become of its bytes must not keep anybody from seeing, or deleting, the message.
fn text<'a>(row: &'a Row, column: &str) -> Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(value(row, column)?))
}

/// What a function of the database returns: the number before its changes, and the rest.
pub(super) fn opening(rows: &[Row]) -> Result<(u64, &[Row])> {
    let (first, rest) = rows.split_first().ok_or_else(|| missing("the first row"))?;
    Ok((unsigned(value(first, "number")?), rest))
}

pub(super) fn missing(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} is missing in the answer of the database"))
}
