//! Queries. Each is one statement, so that its result is from one snapshot.

use bytes::{Bytes, BytesMut};
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use tokio_postgres::Row;

use super::database::Database;
use super::rows::{self, get_column, get_u64};
use crate::sql_values::{id_to_i64, nanos_to_time, to_i64};
use crate::{Listing, MailboxPage, MailboxState, MessageSelector, Newest, Page, Result, Version};

/// Longer bodies are read in chunks of this length, so that neither side needs memory for a whole one in transit.
const CHUNK_BYTES: i32 = 1 << 20;

/// The largest source that is returned with the summary.
const MAX_PREFETCH_BYTES: i32 = 16 << 10;

/// The columns of [`rows::parse_summary`].
macro_rules! summary {
    () => {
        "id, received, size, seen, headline"
    };
}

const SELECT_VERSION: &str = "SELECT version FROM mailboxes WHERE name = $1";

const SELECT_FIRST: &str = concat!(
    "SELECT version, copy.* FROM mailboxes LEFT JOIN LATERAL (SELECT ",
    summary!(),
    " FROM copies WHERE mailbox = name AND id > $2 AND id < $3 ORDER BY id LIMIT $4) AS copy ON true
     WHERE name = $1 ORDER BY id"
);

const SELECT_LAST: &str = concat!(
    "SELECT version, copy.* FROM mailboxes LEFT JOIN LATERAL (SELECT ",
    summary!(),
    " FROM copies WHERE mailbox = name AND id > $2 AND id < $3 ORDER BY id DESC LIMIT $4) AS copy ON true
     WHERE name = $1 ORDER BY id"
);

/// A message, and its source if that is small, because callers often need it next.
const SELECT_BY_ID: &str =
    "SELECT copies.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";

const SELECT_LATEST: &str =
    "SELECT latest.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $2 THEN bytes END AS bytes
    FROM (SELECT * FROM copies WHERE mailbox = $1 ORDER BY id DESC LIMIT 1) AS latest JOIN bodies ON bodies.id = latest.body";

const SELECT_SOURCE: &str =
    "SELECT trace, body, length(bytes) AS length, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";

const SELECT_CHUNK: &str = "SELECT substring(bytes FROM $2 FOR $3) AS bytes FROM bodies WHERE id = $1";

const SELECT_MAILBOXES: &str = "SELECT name, messages, unseen, bytes, newest.id, newest.received
    FROM mailboxes CROSS JOIN LATERAL (SELECT id, received FROM copies WHERE mailbox = name ORDER BY id DESC LIMIT 1) AS newest
    WHERE name >= $1 AND name > $2 AND ($3::bytea IS NULL OR name < $3) ORDER BY name LIMIT $4";

const SELECT_LAST_ID: &str = "SELECT last_id FROM state";

pub(super) async fn version(database: &Database, mailbox: &MailboxName) -> Result<Version> {
    let rows = database.query(SELECT_VERSION, &[&mailbox.as_str().as_bytes()]).await?;
    rows.first().map_or(Ok(Version(0)), |row| get_u64(row, "version").map(Version))
}

pub(super) async fn list(database: &Database, mailbox: &MailboxName, page: Page) -> Result<Listing> {
    let after = page.after.map_or(-1, id_to_i64);
    // No message has the highest possible id, so this bound excludes none.
    let before = page.before.map_or(i64::MAX, id_to_i64);
    let limit = page.limit.map(to_i64);
    let query = if page.after.is_some() { SELECT_FIRST } else { SELECT_LAST };
    let rows = database.query(query, &[&mailbox.as_str().as_bytes(), &after, &before, &limit]).await?;
    let Some(first) = rows.first() else { return Ok(Listing::default()) };
    let version = Version(get_u64(first, "version")?);
    // The row of a mailbox without matching messages has no id.
    let has_message = |row: &&Row| row.try_get::<_, Option<i64>>("id").is_ok_and(|id| id.is_some());
    let messages = rows.iter().filter(has_message).map(|row| rows::parse_summary(row, mailbox.clone()));
    Ok(Listing { version, messages: messages.collect::<Result<_>>()? })
}

pub(super) async fn find(
    database: &Database,
    mailbox: &MailboxName,
    selector: MessageSelector,
) -> Result<Option<(Summary, Option<Source>)>> {
    let name = mailbox.as_str().as_bytes();
    let rows = match selector {
        MessageSelector::Id(id) => database.query(SELECT_BY_ID, &[&name, &id_to_i64(id), &MAX_PREFETCH_BYTES]).await?,
        MessageSelector::Latest => database.query(SELECT_LATEST, &[&name, &MAX_PREFETCH_BYTES]).await?,
    };
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((rows::parse_summary(row, mailbox.clone())?, inline_source(row)?)))
}

/// Returns the source, if the row contains it.
fn inline_source(row: &Row) -> Result<Option<Source>> {
    let Some(body) = get_column::<Option<&[u8]>>(row, "bytes")? else { return Ok(None) };
    let trace = Bytes::copy_from_slice(get_column(row, "trace")?);
    Ok(Some(Source { trace, body: Bytes::copy_from_slice(body) }))
}

pub(super) async fn source(database: &Database, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
    let rows = database.query(SELECT_SOURCE, &[&mailbox.as_str().as_bytes(), &id_to_i64(id), &CHUNK_BYTES]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    if let Some(source) = inline_source(row)? {
        return Ok(Some(source));
    }
    let trace = Bytes::copy_from_slice(get_column(row, "trace")?);
    let body = read_body_chunks(database, get_column(row, "body")?, get_column(row, "length")?).await?;
    Ok(body.map(|body| Source { trace, body }))
}

/// Reads a body in chunks. Returns `None` if it is deleted meanwhile.
async fn read_body_chunks(database: &Database, body: i64, length: i32) -> Result<Option<Bytes>> {
    let mut all = BytesMut::with_capacity(usize::try_from(length).unwrap_or(0));
    for start in (1..=length).step_by(CHUNK_BYTES.unsigned_abs() as usize) {
        let rows = database.query(SELECT_CHUNK, &[&body, &start, &CHUNK_BYTES]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        all.extend_from_slice(get_column(row, "bytes")?);
    }
    Ok(Some(all.freeze()))
}

pub(super) async fn mailboxes(database: &Database, page: &MailboxPage) -> Result<Vec<MailboxState>> {
    let (prefix, after) = (page.prefix.as_bytes(), page.after.as_bytes());
    let end = prefix_end(prefix);
    let rows = database.query(SELECT_MAILBOXES, &[&prefix, &after, &end, &to_i64(page.limit)]).await?;
    rows.iter().map(mailbox_state).collect()
}

fn mailbox_state(row: &Row) -> Result<MailboxState> {
    Ok(MailboxState {
        name: rows::get_mailbox(row, "name")?,
        messages: get_u64(row, "messages")?,
        unseen: get_u64(row, "unseen")?,
        bytes: get_u64(row, "bytes")?,
        newest: Newest { id: rows::get_id(row, "id")?, received: nanos_to_time(get_column(row, "received")?) },
    })
}

/// Returns the first name after all names with this prefix. `None` if there is no such name.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=at].to_vec();
    end[at] += 1;
    Some(end)
}

pub(super) async fn last_id(database: &Database) -> Result<MessageId> {
    let rows = database.query(SELECT_LAST_ID, &[]).await?;
    rows.first().map_or(Ok(MessageId::ZERO), |row| rows::get_id(row, "last_id"))
}
