//! Questions to the database. Each is one statement, so that its answer is of one moment.

use bytes::{Bytes, BytesMut};
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use tokio_postgres::Row;

use super::database::Database;
use super::rows::{self, number, value};
use crate::numbers::{integer, key, time};
use crate::{Listing, MailboxPage, MailboxState, Newest, Page, Result, Version, Which};

/// Longer mails are read in pieces of this length, so that neither side needs all of the memory at once that they take on the way.
const PIECE: i32 = 1 << 20;

/// Sources up to this length come along with the summary.
const SMALL: i32 = 16 << 10;

/// The columns of [`rows::summary`].
macro_rules! summary {
    () => {
        "id, received, size, seen, headline"
    };
}

const VERSION: &str = "SELECT version FROM mailboxes WHERE name = $1";

const FIRST: &str = concat!(
    "SELECT version, copy.* FROM mailboxes LEFT JOIN LATERAL (SELECT ",
    summary!(),
    " FROM copies WHERE mailbox = name AND id > $2 AND id < $3 ORDER BY id LIMIT $4) AS copy ON true
     WHERE name = $1 ORDER BY id"
);

const LAST: &str = concat!(
    "SELECT version, copy.* FROM mailboxes LEFT JOIN LATERAL (SELECT ",
    summary!(),
    " FROM copies WHERE mailbox = name AND id > $2 AND id < $3 ORDER BY id DESC LIMIT $4) AS copy ON true
     WHERE name = $1 ORDER BY id"
);

/// A message, and its source where that is small: who asks for the one often asks for the other.
const ONE: &str =
    "SELECT copies.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";

const LATEST: &str =
    "SELECT latest.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $2 THEN bytes END AS bytes
    FROM (SELECT * FROM copies WHERE mailbox = $1 ORDER BY id DESC LIMIT 1) AS latest JOIN bodies ON bodies.id = latest.body";

const SOURCE: &str =
    "SELECT trace, body, length(bytes) AS length, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";

const SLICE: &str = "SELECT substring(bytes FROM $2 FOR $3) AS bytes FROM bodies WHERE id = $1";

const MAILBOXES: &str = "SELECT name, messages, unseen, bytes, newest.id, newest.received
    FROM mailboxes CROSS JOIN LATERAL (SELECT id, received FROM copies WHERE mailbox = name ORDER BY id DESC LIMIT 1) AS newest
    WHERE name >= $1 AND name > $2 AND ($3::bytea IS NULL OR name < $3) ORDER BY name LIMIT $4";

const LAST_ID: &str = "SELECT last_id FROM state";

pub(super) async fn version(database: &Database, mailbox: &MailboxName) -> Result<Version> {
    let rows = database.ask(VERSION, &[&mailbox.as_str().as_bytes()]).await?;
    rows.first().map_or(Ok(Version(0)), |row| number(row, "version").map(Version))
}

pub(super) async fn list(database: &Database, mailbox: &MailboxName, page: Page) -> Result<Listing> {
    let after = page.after.map_or(-1, key);
    // An id beyond all that can be is not below itself.
    let before = page.before.map_or(i64::MAX, key);
    let limit = page.limit.map(integer);
    let question = if page.after.is_some() { FIRST } else { LAST };
    let rows = database.ask(question, &[&mailbox.as_str().as_bytes(), &after, &before, &limit]).await?;
    let Some(first) = rows.first() else { return Ok(Listing::default()) };
    let version = Version(number(first, "version")?);
    let is_there = |row: &&Row| row.try_get::<_, Option<i64>>("id").is_ok_and(|id| id.is_some());
    let messages = rows.iter().filter(is_there).map(|row| rows::summary(row, mailbox.clone()));
    Ok(Listing { version, messages: messages.collect::<Result<_>>()? })
}

pub(super) async fn find(
    database: &Database,
    mailbox: &MailboxName,
    which: Which,
) -> Result<Option<(Summary, Option<Source>)>> {
    let name = mailbox.as_str().as_bytes();
    let rows = match which {
        Which::Id(id) => database.ask(ONE, &[&name, &key(id), &SMALL]).await?,
        Which::Latest => database.ask(LATEST, &[&name, &SMALL]).await?,
    };
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((rows::summary(row, mailbox.clone())?, small_source(row)?)))
}

/// The source, if it is in the row.
fn small_source(row: &Row) -> Result<Option<Source>> {
    let Some(body) = value::<Option<&[u8]>>(row, "bytes")? else { return Ok(None) };
    let trace = Bytes::copy_from_slice(value(row, "trace")?);
    Ok(Some(Source { trace, body: Bytes::copy_from_slice(body) }))
}

pub(super) async fn source(database: &Database, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
    let rows = database.ask(SOURCE, &[&mailbox.as_str().as_bytes(), &key(id), &PIECE]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    if let Some(source) = small_source(row)? {
        return Ok(Some(source));
    }
    let trace = Bytes::copy_from_slice(value(row, "trace")?);
    let body = large_body(database, value(row, "body")?, value(row, "length")?).await?;
    Ok(body.map(|body| Source { trace, body }))
}

/// A body piece by piece. It may go meanwhile, and then it is gone.
async fn large_body(database: &Database, body: i64, length: i32) -> Result<Option<Bytes>> {
    let mut all = BytesMut::with_capacity(usize::try_from(length).unwrap_or(0));
    for start in (1..=length).step_by(PIECE.unsigned_abs() as usize) {
        let rows = database.ask(SLICE, &[&body, &start, &PIECE]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        all.extend_from_slice(value(row, "bytes")?);
    }
    Ok(Some(all.freeze()))
}

pub(super) async fn mailboxes(database: &Database, page: &MailboxPage) -> Result<Vec<MailboxState>> {
    let (prefix, after) = (page.prefix.as_bytes(), page.after.as_bytes());
    let end = behind_all_with(prefix);
    let rows = database.ask(MAILBOXES, &[&prefix, &after, &end, &integer(page.limit)]).await?;
    rows.iter().map(mailbox_state).collect()
}

fn mailbox_state(row: &Row) -> Result<MailboxState> {
    Ok(MailboxState {
        name: rows::mailbox(row, "name")?,
        messages: number(row, "messages")?,
        unseen: number(row, "unseen")?,
        bytes: number(row, "bytes")?,
        newest: Newest { id: rows::id(row, "id")?, received: time(value(row, "received")?) },
    })
}

/// The first name behind all that begin like this; none when those are the last.
fn behind_all_with(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=at].to_vec();
    end[at] += 1;
    Some(end)
}

pub(super) async fn last_id(database: &Database) -> Result<MessageId> {
    let rows = database.ask(LAST_ID, &[]).await?;
    rows.first().map_or(Ok(MessageId::ZERO), |row| rows::id(row, "last_id"))
}
