//! Queries. Each is one statement, so that its result is from one snapshot.

use bytes::{Bytes, BytesMut};
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::tags::Tags;
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::rows::{self, get_column, get_u64};
use crate::overview::{Overview, TagCounter};
use crate::sql_values::{id_to_i64, nanos_to_time, time_to_nanos, to_i64};
use crate::{
    AgeRange, CopyKey, IndexEntry, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing, MessageSelector,
    Newest, Page, ProjectState, Result, Version,
};

/// Longer bodies are read in chunks of this length, so that neither side needs memory for a whole one in transit.
const CHUNK_BYTES: i32 = 1 << 20;

/// The largest source that is returned with the summary.
const MAX_PREFETCH_BYTES: i32 = 16 << 10;

/// The columns of [`rows::parse_summary`]. `$headline` is the expression of the headline.
macro_rules! summary {
    () => {
        summary!("headline")
    };
    ($headline:literal) => {
        concat!(
            "id, received, size, seen, flags, modseq, ",
            $headline,
            ", number AS copy_number, tags, details, message"
        )
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

/// A copy, and its source if that is small, because callers often need it next.
const SELECT_BY_ID: &str = concat!(
    "SELECT copy.*, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes FROM (SELECT body, trace, ",
    summary!(),
    " FROM copies WHERE id = $2 AND mailbox = $1) AS copy JOIN bodies ON bodies.id = copy.body"
);

const SELECT_LATEST: &str = concat!(
    "SELECT copy.*, CASE WHEN length(bytes) <= $2 THEN bytes END AS bytes FROM (SELECT body, trace, ",
    summary!(),
    " FROM copies WHERE mailbox = $1 ORDER BY id DESC LIMIT 1) AS copy JOIN bodies ON bodies.id = copy.body"
);

/// The id `$2`, or that of the message that has copies below and above it.
macro_rules! before {
    () => {
        "coalesce((SELECT least($2, message) FROM copies WHERE id >= $2 ORDER BY id LIMIT 1), $2)"
    };
}

/// Returns the query for the first copies of messages in a range, or for the last ones in descending order, and the number
/// of the last change. In a project, condition and order are those of the index `copies_by_project`: with other forms of
/// them, PostgreSQL may read the copies of all projects in the order of their ids. With `shares_headlines`, of adjacent
/// copies of a message only the first has a headline.
pub(super) fn select_copies(is_in_project: bool, is_first: bool, shares_headlines: bool) -> String {
    let direction = if is_first { "ASC" } else { "DESC" };
    let (range, order) = if is_in_project {
        let range =
            concat!("project IS NOT NULL AND (project, id) > ($4, $1) AND (project, id) < ($4, ", before!(), ")");
        (range, format!("project {direction}, id {direction}"))
    } else {
        (concat!("id > $1 AND id < ", before!()), format!("id {direction}"))
    };
    let columns = if shares_headlines {
        summary!("CASE WHEN message IS DISTINCT FROM lag(message) OVER page THEN headline END AS headline")
    } else {
        summary!()
    };
    format!(
        "SELECT last_change, copy.* FROM state LEFT JOIN LATERAL (SELECT mailbox, {columns} FROM copies
         WHERE {range} AND message > $1 WINDOW page AS (ORDER BY {order}) ORDER BY {order} LIMIT $3) AS copy ON true"
    )
}

/// The copy with the lowest id from `$2`, and its source if that is small.
const SELECT_NEXT_COPY: &str = concat!(
    "SELECT mailbox, shared, body, trace, ",
    summary!(),
    ", (SELECT CASE WHEN length(bytes) <= $1 THEN bytes END FROM bodies WHERE bodies.id = copies.body) AS bytes
    FROM copies WHERE id >= $2 ORDER BY id LIMIT 1"
);

/// The copy with the highest id, and its source if that is small.
const SELECT_LATEST_COPY: &str = concat!(
    "SELECT mailbox, shared, body, trace, ",
    summary!(),
    ", (SELECT CASE WHEN length(bytes) <= $1 THEN bytes END FROM bodies WHERE bodies.id = copies.body) AS bytes
    FROM copies ORDER BY id DESC LIMIT 1"
);

/// The copies of a message with several.
const SELECT_SHARED_COPIES: &str =
    concat!("SELECT mailbox, ", summary!(), " FROM copies WHERE body = $1 AND shared ORDER BY id");

const SELECT_SOURCE: &str =
    "SELECT trace, body, length(bytes) AS length, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";

/// The sources of copies, in their order.
const SELECT_SOURCES: &str =
    "SELECT trace, body, length(bytes) AS length, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS wanted (mailbox, id, position)
    LEFT JOIN copies ON copies.id = wanted.id AND copies.mailbox = wanted.mailbox LEFT JOIN bodies ON bodies.id = copies.body
    ORDER BY position";

const SELECT_CHUNK: &str = "SELECT substring(bytes FROM $2 FOR $3) AS bytes FROM bodies WHERE id = $1";

const SELECT_MAILBOXES: &str = "SELECT name, messages, unseen, bytes, newest.id, newest.received
    FROM mailboxes CROSS JOIN LATERAL (SELECT id, received FROM copies WHERE mailbox = name ORDER BY id DESC LIMIT 1) AS newest
    WHERE name >= $1 AND name > $2 AND ($3::bytea IS NULL OR name < $3) ORDER BY name LIMIT $4";

/// The tags: the different tags of the copies of a message with the numbers of these copies, and the number of messages
/// whose copies have them.
macro_rules! tags {
    ($condition:literal) => {
        concat!(
            "SELECT ARRAY[tags] AS copies_tags, ARRAY[1::bigint] AS copy_counts, count(*) AS number
             FROM copies WHERE tags <> '' AND NOT shared",
            $condition,
            " GROUP BY tags
             UNION ALL SELECT copies_tags, copy_counts, count(*) FROM (
                SELECT array_agg(tags ORDER BY tags) AS copies_tags, array_agg(number ORDER BY tags) AS copy_counts FROM (
                    SELECT body, tags, count(*) AS number FROM copies WHERE tags <> '' AND shared",
            $condition,
            " GROUP BY body, tags
                ) AS tagged_copies GROUP BY body
             ) AS tagged_bodies GROUP BY copies_tags, copy_counts"
        )
    };
}

/// The numbers of messages and of unread ones, and the tags.
const SELECT_OVERVIEW: &str = concat!(
    "SELECT messages,
        (SELECT coalesce(sum(unseen), 0)::bigint FROM mailboxes)
            - (SELECT count(*) - count(DISTINCT body) FROM copies WHERE shared AND NOT seen) AS unread,
        tagged.*
     FROM state LEFT JOIN LATERAL (",
    tags!(""),
    ") AS tagged ON true"
);

/// The same, of a project, whose mailboxes have the names from `$2` to `$3`.
const SELECT_PROJECT_OVERVIEW: &str = concat!(
    "SELECT counts.messages - shared.messages AS messages, counts.unseen - shared.unseen AS unread, tagged.*
     FROM (
        SELECT coalesce(sum(messages), 0)::bigint AS messages, coalesce(sum(unseen), 0)::bigint AS unseen
        FROM mailboxes WHERE name >= $2 AND name < $3
     ) AS counts CROSS JOIN (
        SELECT count(*) - count(DISTINCT body) AS messages,
            count(*) FILTER (WHERE NOT seen) - count(DISTINCT body) FILTER (WHERE NOT seen) AS unseen
        FROM copies WHERE project = $1 AND shared
     ) AS shared LEFT JOIN LATERAL (",
    tags!(" AND project = $1"),
    ") AS tagged ON true"
);

/// The first projects after `$1`, found one after the other in the index, with the sums of their mailboxes.
const SELECT_PROJECTS: &str = "
    WITH RECURSIVE names (project, index) AS (
        SELECT (SELECT project FROM copies WHERE project > $1 ORDER BY project LIMIT 1), 1::bigint
        UNION ALL
        SELECT (SELECT copies.project FROM copies WHERE copies.project > names.project ORDER BY copies.project LIMIT 1),
            names.index + 1
        FROM names WHERE names.project IS NOT NULL AND names.index < $2
    )
    SELECT project, copies, unseen FROM names CROSS JOIN LATERAL (
        SELECT coalesce(sum(messages), 0)::bigint AS copies, coalesce(sum(unseen), 0)::bigint AS unseen
        FROM mailboxes WHERE name >= names.project || ':'::bytea AND name < names.project || ';'::bytea
    ) AS sums WHERE project IS NOT NULL AND index <= $2 ORDER BY project";

const SELECT_OLDEST: &str = concat!(
    "SELECT mailbox, ",
    summary!(),
    " FROM copies WHERE (received, id) > ($1, $2) AND received < $3 ORDER BY received, id LIMIT $4"
);

/// The numbers of a mailbox, also if it is empty, and its copies without their texts.
const SELECT_INDEX: &str =
    "SELECT coalesce(version, 0) AS version, coalesce(last_number, highest_free_number) AS last_number,
        greatest(coalesce(version, last_change), 1) AS highest_modseq, copy.*
    FROM state LEFT JOIN mailboxes ON name = $1 LEFT JOIN LATERAL (
        SELECT id, number AS copy_number, received, size, seen, flags, tags, modseq
        FROM copies WHERE mailbox = $1 AND id > $2 ORDER BY id LIMIT $3
    ) AS copy ON true ORDER BY id";

const SELECT_UID_VALIDITY: &str = "SELECT uid_validity FROM state";

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
    let messages =
        rows.iter().filter(|row| has_message(row)).map(|row| rows::parse_summary(row, mailbox.clone(), None));
    Ok(Listing { version, messages: messages.collect::<Result<_>>()? })
}

pub(super) async fn index(
    database: &Database,
    mailbox: &MailboxName,
    after: MessageId,
    limit: usize,
) -> Result<MailboxIndex> {
    let parameters: Parameters<'_> = &[&mailbox.as_str().as_bytes(), &id_to_i64(after), &to_i64(limit)];
    let rows = database.query(SELECT_INDEX, parameters).await?;
    let first = rows.first().ok_or_else(|| rows::missing_error("the state"))?;
    let entry = |row: &Row| {
        Ok(IndexEntry {
            id: rows::get_id(row, "id")?,
            number: rows::to_copy_number(get_column(row, "copy_number")?),
            received: nanos_to_time(get_column(row, "received")?),
            size: get_u64(row, "size")?,
            marks: rows::parse_marks(row)?,
        })
    };
    Ok(MailboxIndex {
        version: Version(get_u64(first, "version")?),
        next_number: rows::to_copy_number(get_column(first, "last_number")?).saturating_add(1),
        highest_modseq: get_u64(first, "highest_modseq")?,
        entries: rows.iter().filter(|row| has_message(row)).map(entry).collect::<Result<_>>()?,
    })
}

pub(super) async fn uid_validity(database: &Database) -> Result<u32> {
    let rows = database.query(SELECT_UID_VALIDITY, &[]).await?;
    let row = rows.first().ok_or_else(|| rows::missing_error("the state"))?;
    Ok(rows::to_copy_number(get_column(row, "uid_validity")?).max(1))
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
    Ok(Some((rows::parse_summary(row, mailbox.clone(), None)?, inline_source(row)?)))
}

pub(super) async fn messages(database: &Database, project: Option<&Project>, page: Page) -> Result<MessageListing> {
    let (after, before) = (page.after.map_or(-1, id_to_i64), page.before.map_or(i64::MAX, id_to_i64));
    let project = project.map(|project| project.as_str().as_bytes());
    let is_first = page.after.is_some();
    // Most messages have one copy. One more is read to know whether the last message is complete.
    let mut max_copies = page.limit.map(|limit| limit.saturating_add(limit / 8).saturating_add(1));
    // Messages with many copies have many recipients, which are in the headline.
    let mut shares_headlines = max_copies.is_none();
    loop {
        let query = select_copies(project.is_some(), is_first, shares_headlines);
        let max_rows: Option<i64> = max_copies.map(to_i64);
        let parameters: Parameters<'_> = &[&after, &before, &max_rows, &project];
        let rows = database.query(&query, &parameters[..3 + usize::from(project.is_some())]).await?;
        let (version, copies) = parse_copies(&rows)?;
        let is_complete = max_copies.is_none_or(|max_copies| copies.len() < max_copies);
        let mut messages = Message::group(copies);
        let limit = page.limit.unwrap_or(usize::MAX).min(messages.len());
        let excess = messages.len() - limit;
        if is_complete || excess > 0 {
            // The message next to the end of the range may be incomplete. It is among these.
            drop(if is_first { messages.drain(limit..) } else { messages.drain(..excess) });
            return Ok(MessageListing { version, messages });
        }
        shares_headlines = true;
        max_copies = max_copies.map(|max_copies| max_copies.saturating_mul(4));
    }
}

/// Returns the version of the store and the copies in the rows of a left join, ascending by id.
fn parse_copies(rows: &[Row]) -> Result<(Version, Vec<Summary>)> {
    let first = rows.first().ok_or_else(|| rows::missing_error("the state"))?;
    // If no message matches, there is one row without an id.
    let mut copies = parse_each_copy(rows.iter().filter(|row| has_message(row)))?;
    copies.sort_unstable_by_key(|copy| copy.id);
    Ok((Version(get_u64(first, "last_change")?), copies))
}

/// Returns a message, and the source of one of its copies if that is small.
pub(super) async fn find_message(
    database: &Database,
    selector: MessageSelector,
) -> Result<Option<(Message, Option<CopySource>)>> {
    loop {
        let rows = match selector {
            MessageSelector::Id(id) => database.query(SELECT_NEXT_COPY, &[&MAX_PREFETCH_BYTES, &id_to_i64(id)]).await?,
            MessageSelector::Latest => database.query(SELECT_LATEST_COPY, &[&MAX_PREFETCH_BYTES]).await?,
        };
        let Some(row) = rows.first() else { return Ok(None) };
        if matches!(selector, MessageSelector::Id(id) if id != rows::get_id(row, "message")?) {
            return Ok(None);
        }
        let mut copies = parse_each_copy(&rows)?;
        let source = inline_source(row)?.map(|source| CopySource { copy: CopyKey::from(&copies[0]), source });
        if get_column(row, "shared")? {
            let body: i64 = get_column(row, "body")?;
            copies = parse_each_copy(&database.query(SELECT_SHARED_COPIES, &[&body]).await?)?;
        }
        // If the message was removed meanwhile, another one may be the latest.
        if let Some(message) = Message::group(copies).pop() {
            return Ok(Some((message, source)));
        }
    }
}

/// The source of a copy.
pub(super) struct CopySource {
    pub(super) copy: CopyKey,
    pub(super) source: Source,
}

/// Returns the copies of rows. Adjacent copies of a message share the headline.
fn parse_each_copy<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Result<Vec<Summary>> {
    let mut copies: Vec<Summary> = Vec::new();
    for row in rows {
        copies.push(rows::parse_summary(row, rows::get_mailbox(row, "mailbox")?, copies.last())?);
    }
    Ok(copies)
}

/// Returns whether a row of a left join contains a message.
fn has_message(row: &Row) -> bool {
    row.try_get::<_, Option<i64>>("id").is_ok_and(|id| id.is_some())
}

/// Returns the source, if the row contains it.
fn inline_source(row: &Row) -> Result<Option<Source>> {
    let Some(body) = get_column::<Option<&[u8]>>(row, "bytes")? else { return Ok(None) };
    let trace = Bytes::copy_from_slice(get_column(row, "trace")?);
    Ok(Some(Source { trace, body: Bytes::copy_from_slice(body) }))
}

pub(super) async fn source(database: &Database, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
    let rows = database.query(SELECT_SOURCE, &[&mailbox.as_str().as_bytes(), &id_to_i64(id), &CHUNK_BYTES]).await?;
    match rows.first() {
        Some(row) => source_of_row(database, row).await,
        None => Ok(None),
    }
}

/// See [`Store::sources`](crate::Store::sources).
pub(super) async fn sources(database: &Database, copies: &[CopyKey]) -> Result<Vec<Option<Source>>> {
    let mailboxes: Vec<&[u8]> = copies.iter().map(|copy| copy.mailbox.as_str().as_bytes()).collect();
    let ids: Vec<i64> = copies.iter().map(|copy| id_to_i64(copy.id)).collect();
    let mut sources = Vec::with_capacity(copies.len());
    for row in database.query(SELECT_SOURCES, &[&mailboxes, &ids, &CHUNK_BYTES]).await? {
        let is_missing = get_column::<Option<i64>>(&row, "body")?.is_none();
        sources.push(if is_missing { None } else { source_of_row(database, &row).await? });
    }
    Ok(sources)
}

async fn source_of_row(database: &Database, row: &Row) -> Result<Option<Source>> {
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

pub(super) async fn overview(database: &Database, project: Option<&Project>) -> Result<Overview> {
    let rows = match project {
        Some(project) => {
            let [start, end] = project.mailbox_range().map(String::into_bytes);
            database.query(SELECT_PROJECT_OVERVIEW, &[&project.as_str().as_bytes(), &start, &end]).await?
        }
        None => database.query(SELECT_OVERVIEW, &[]).await?,
    };
    let first = rows.first().ok_or_else(|| rows::missing_error("the state"))?;
    let (messages, unread) = (get_u64(first, "messages")?, get_u64(first, "unread")?);
    let mut tags = TagCounter::default();
    for row in &rows {
        // If no message has tags, there is one row without them.
        let Some(copies) = get_column::<Option<Vec<&[u8]>>>(row, "copies_tags")? else { continue };
        let copies: Vec<Tags> =
            copies.into_iter().map(|encoded| Tags::from_encoded(&String::from_utf8_lossy(encoded))).collect();
        let numbers = get_column::<Vec<i64>>(row, "copy_counts")?.into_iter().map(rows::to_u64);
        tags.add_messages(copies.iter().zip(numbers), get_u64(row, "number")?);
    }
    Ok(Overview { messages, unread, tags: tags.counts() })
}

pub(super) async fn projects(database: &Database, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
    let after = after.map_or("", Project::as_str).as_bytes();
    let rows = database.query(SELECT_PROJECTS, &[&after, &to_i64(limit)]).await?;
    let mut projects = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Ok(name) = rows::get_text(row, "project")?.parse() {
            projects.push(ProjectState { name, copies: get_u64(row, "copies")?, unseen: get_u64(row, "unseen")? });
        }
    }
    Ok(projects)
}

pub(super) async fn oldest(database: &Database, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
    let ((received, id), before) = (range.after_values(), range.before.map_or(i64::MAX, time_to_nanos));
    parse_each_copy(&database.query(SELECT_OLDEST, &[&received, &id, &before, &to_i64(limit)]).await?)
}

pub(super) async fn last_id(database: &Database) -> Result<MessageId> {
    let rows = database.query(SELECT_LAST_ID, &[]).await?;
    rows.first().map_or(Ok(MessageId::ZERO), |row| rows::get_id(row, "last_id"))
}
