//! Queries. The result of a query is from one snapshot of the database.

use bytes::Bytes;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::tags::Tags;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::segment_error;
use super::record::ParsedRecord;
use super::rows::{self, CopyRow, columns, get_u64};
use super::segment::{Location, Segments};
use super::statistics::Counters;
use crate::overview::{Overview, TagCounter};
use crate::sql_values::{id_to_i64, nanos_to_time, time_to_nanos, to_i64};
use crate::{
    AgeRange, CopyKey, IndexEntry, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing, MessageSelector,
    Newest, Page, ProjectState, Result, StoreError, Version,
};

/// The largest record whose source is read together with its summary.
const MAX_PREFETCH_BYTES: u64 = 32 << 10;
/// The maximum number of attempts to read a record that is moved meanwhile.
const MAX_ATTEMPTS: usize = 5;

pub(super) const SELECT_VERSION: &str = "SELECT version FROM mailboxes WHERE name = ?1";

/// See [`Store::version`](crate::Store::version). Returns `None` if the mailbox is empty.
pub(super) fn version(database: &Connection, mailbox: &MailboxName) -> Result<Option<u64>> {
    let mut statement = database.prepare_cached(SELECT_VERSION)?;
    Ok(statement.query_row([mailbox.as_str()], |row| get_u64(row, 0)).optional()?)
}

/// See [`Store::list`](crate::Store::list).
pub(super) fn list(database: &Connection, mailbox: &MailboxName, page: Page) -> Result<Listing> {
    // One transaction, so that version and messages are from the same snapshot.
    let snapshot = database.unchecked_transaction()?;
    let Some(version) = version(&snapshot, mailbox)? else { return Ok(Listing::default()) };
    let is_last_page = page.limit.is_some() && page.after.is_none();
    let (columns, order) = (columns!(), if is_last_page { "DESC" } else { "ASC" });
    let mut statement = snapshot.prepare_cached(&format!(
        "SELECT {columns} FROM copies WHERE mailbox = ?1 AND id > ?2 AND id < ?3 ORDER BY id {order} LIMIT ?4"
    ))?;
    let (after, before) = (page.after.map_or(-1, id_to_i64), page.before.map_or(i64::MAX, id_to_i64));
    // A negative limit means no limit.
    let range = params![mailbox.as_str(), after, before, page.limit.map_or(-1, to_i64)];
    let found = statement.query_map(range, |row| Ok(CopyRow::from_row(mailbox, row)?.summary))?;
    let mut messages: Vec<Summary> = found.collect::<rusqlite::Result<_>>()?;
    if is_last_page {
        messages.reverse();
    }
    Ok(Listing { version: Version(version), messages })
}

/// The numbers of a mailbox, also if it is empty, as the columns `version`, `last_number` and `highest_modseq`.
const SELECT_MAILBOX_NUMBERS: &str = "
    SELECT coalesce(version, 0), coalesce(last_number, highest_free_number), max(coalesce(version, last_version), 1)
    FROM state LEFT JOIN mailboxes ON name = ?1";
/// The copies of a mailbox without their texts.
pub(super) const SELECT_INDEX: &str = "SELECT id, number, received, size, seen, flags, tags, modseq
    FROM copies WHERE mailbox = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

/// See [`Store::index`](crate::Store::index).
pub(super) fn index(
    database: &Connection,
    mailbox: &MailboxName,
    after: MessageId,
    limit: usize,
) -> Result<MailboxIndex> {
    let snapshot = database.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(SELECT_MAILBOX_NUMBERS)?;
    let mut index = statement.query_row([mailbox.as_str()], |row| {
        Ok(MailboxIndex {
            version: Version(get_u64(row, 0)?),
            next_number: row.get::<_, u32>(1)?.saturating_add(1),
            highest_modseq: get_u64(row, 2)?,
            entries: Vec::new(),
        })
    })?;
    let mut statement = snapshot.prepare_cached(SELECT_INDEX)?;
    let entries = statement.query_map(params![mailbox.as_str(), id_to_i64(after), to_i64(limit)], |row| {
        let (id, received) = (get_u64(row, 0)?.into(), nanos_to_time(row.get(2)?));
        Ok(IndexEntry { id, number: row.get(1)?, received, size: get_u64(row, 3)?, marks: rows::get_marks(row, 4)? })
    })?;
    index.entries = entries.collect::<rusqlite::Result<_>>()?;
    Ok(index)
}

/// See [`Store::uid_validity`](crate::Store::uid_validity).
pub(super) fn uid_validity(database: &Connection) -> Result<u32> {
    let mut statement = database.prepare_cached("SELECT max(uid_validity, 1) FROM state")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// The version of a mailbox and a result of the same snapshot. `None` if the mailbox is empty.
pub(super) type Versioned<T> = Option<(u64, Option<T>)>;

/// See [`Store::find`](crate::Store::find). A short source is returned too, because callers usually need it next.
pub(super) fn find(
    database: &Connection,
    segments: &Segments,
    mailbox: &MailboxName,
    selector: MessageSelector,
) -> Result<Versioned<(Summary, Option<Source>)>> {
    let snapshot = database.unchecked_transaction()?;
    let Some(version) = version(&snapshot, mailbox)? else { return Ok(None) };
    let by_id = concat!("SELECT ", columns!(), " FROM copies WHERE mailbox = ?1 AND id = ?2");
    let latest = concat!("SELECT ", columns!(), " FROM copies WHERE mailbox = ?1 ORDER BY id DESC LIMIT 1");
    let found = match selector {
        MessageSelector::Id(id) => {
            let mut statement = snapshot.prepare_cached(by_id)?;
            statement
                .query_row(params![mailbox.as_str(), id_to_i64(id)], |row| CopyRow::from_row(mailbox, row))
                .optional()?
        }
        MessageSelector::Latest => {
            let mut statement = snapshot.prepare_cached(latest)?;
            statement.query_row([mailbox.as_str()], |row| CopyRow::from_row(mailbox, row)).optional()?
        }
    };
    let found = found.map(|CopyRow { summary, location, .. }| {
        let source = prefetch_source(segments, &summary, location);
        (summary, source)
    });
    Ok(Some((version, found)))
}

/// Reads a short source. If it cannot be read, the query for the source returns the error.
fn prefetch_source(segments: &Segments, copy: &Summary, at: Location) -> Option<Source> {
    let record = (at.length <= MAX_PREFETCH_BYTES).then(|| segments.read(at).ok()).flatten()?;
    parse_source(record, &copy.mailbox, copy.id, at).ok()
}

/// Copies of all mailboxes, oldest and newest first.
pub(super) const SELECT_COPIES: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies WHERE id > ?1 AND id < ?2 ORDER BY id");
pub(super) const SELECT_COPIES_DESCENDING: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies WHERE id > ?1 AND id < ?2 ORDER BY id DESC");
/// The same, of a project.
pub(super) const SELECT_PROJECT_COPIES: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies WHERE id > ?1 AND id < ?2 AND project = ?3 ORDER BY id");
pub(super) const SELECT_PROJECT_COPIES_DESCENDING: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies WHERE id > ?1 AND id < ?2 AND project = ?3 ORDER BY id DESC");
/// All copies from one on, and the newest one.
pub(super) const SELECT_COPIES_FROM: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies WHERE id >= ?1 ORDER BY id");
pub(super) const SELECT_NEWEST_COPY: &str =
    concat!("SELECT ", columns!(), ", mailbox FROM copies ORDER BY id DESC LIMIT 1");

/// The oldest copies of all mailboxes.
pub(super) const SELECT_OLDEST: &str = concat!(
    "SELECT ",
    columns!(),
    ", mailbox FROM copies WHERE (received, id) > (?1, ?2) AND received < ?3 ORDER BY received, id LIMIT ?4"
);

/// See [`Store::oldest`](crate::Store::oldest).
pub(super) fn oldest(database: &Connection, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
    let mut statement = database.prepare_cached(SELECT_OLDEST)?;
    let (received, id) = range.after_values();
    let mut rows =
        statement.query(params![received, id, range.before.map_or(i64::MAX, time_to_nanos), to_i64(limit)])?;
    let mut copies: Vec<Summary> = Vec::new();
    while let Some(row) = rows.next()? {
        copies.push(CopyRow::with_mailbox(row, copies.last())?.summary);
    }
    Ok(copies)
}

/// See [`Store::messages`](crate::Store::messages). `version` is that of the store before the query, if it is known.
pub(super) fn messages(
    database: &Connection,
    project: Option<&Project>,
    page: Page,
    version: Option<u64>,
) -> Result<MessageListing> {
    let snapshot = database.unchecked_transaction()?;
    let version = match version {
        Some(version) => version,
        None => Counters::load(&snapshot)?.last_version,
    };
    let before = page.before.map(|before| message_at(&snapshot, before)).transpose()?;
    let after = page.after.unwrap_or(MessageId::ZERO);
    let is_last_page = page.after.is_none();
    let range = params![id_to_i64(after), before.map_or(i64::MAX, id_to_i64), project.map(Project::as_str)];
    let (query, range) = match (project, is_last_page) {
        (None, false) => (SELECT_COPIES, &range[..2]),
        (None, true) => (SELECT_COPIES_DESCENDING, &range[..2]),
        (Some(_), false) => (SELECT_PROJECT_COPIES, range),
        (Some(_), true) => (SELECT_PROJECT_COPIES_DESCENDING, range),
    };
    let mut statement = snapshot.prepare_cached(query)?;
    let mut rows = statement.query(range)?;
    let limit = page.limit.unwrap_or(usize::MAX);
    let mut copies: Vec<Summary> = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let copy = CopyRow::with_mailbox(row, copies.last())?.summary;
        // The other copies of the message at the start of the range have higher ids than the message.
        if copy.message <= after {
            continue;
        }
        count += usize::from(copies.last().is_none_or(|last| last.message != copy.message));
        if count > limit {
            break;
        }
        copies.push(copy);
    }
    if is_last_page {
        copies.reverse();
    }
    Ok(MessageListing { version: Version(version), messages: Message::group(copies) })
}

/// Returns the id of the message that has copies below and from this id, or the id itself.
fn message_at(database: &Connection, id: MessageId) -> Result<MessageId> {
    let next = copies_from(database, id, |_| true, 1)?;
    Ok(next.first().map_or(id, |next| next.summary.message.min(id)))
}

/// Returns the copies from an id on, as long as they satisfy a condition, and at most `limit`.
fn copies_from(
    database: &Connection,
    id: MessageId,
    condition: impl Fn(&CopyRow) -> bool,
    limit: usize,
) -> Result<Vec<CopyRow>> {
    let mut statement = database.prepare_cached(SELECT_COPIES_FROM)?;
    let mut rows = statement.query([id_to_i64(id)])?;
    let mut copies: Vec<CopyRow> = Vec::new();
    while copies.len() < limit
        && let Some(row) = rows.next()?
    {
        let copy = CopyRow::with_mailbox(row, copies.last().map(|last| &last.summary))?;
        if !condition(&copy) {
            break;
        }
        copies.push(copy);
    }
    Ok(copies)
}

/// The result of [`find_message`], all from one snapshot.
pub(super) struct FoundMessage {
    pub(super) message: Message,
    /// The versions of the mailboxes of its copies.
    pub(super) versions: Vec<u64>,
    /// The source of the first copy if it is short, because callers usually need it next.
    pub(super) source: Option<Source>,
}

/// See [`Store::find_message`](crate::Store::find_message).
pub(super) fn find_message(
    database: &Connection,
    segments: &Segments,
    selector: MessageSelector,
) -> Result<Option<FoundMessage>> {
    let snapshot = database.unchecked_transaction()?;
    let id = match selector {
        MessageSelector::Id(id) => Some(id),
        MessageSelector::Latest => {
            let mut statement = snapshot.prepare_cached(SELECT_NEWEST_COPY)?;
            let newest = statement.query_row([], |row| CopyRow::with_mailbox(row, None)).optional()?;
            newest.map(|newest| newest.summary.message)
        }
    };
    let Some(id) = id else { return Ok(None) };
    let copies = copies_from(&snapshot, id, |copy| copy.summary.message == id, usize::MAX)?;
    let Some(first) = copies.first() else { return Ok(None) };
    let source = prefetch_source(segments, &first.summary, first.location);
    let mut versions = Vec::with_capacity(copies.len());
    for copy in &copies {
        versions.push(version(&snapshot, &copy.summary.mailbox)?.unwrap_or(0));
    }
    let message = Message::group(copies.into_iter().map(|copy| copy.summary)).pop();
    Ok(message.map(|message| FoundMessage { message, versions, source }))
}

/// See [`Store::source`](crate::Store::source).
pub(super) fn source(
    database: &Connection,
    segments: &Segments,
    mailbox: &MailboxName,
    id: MessageId,
) -> Result<Versioned<Source>> {
    let mut last_error = None;
    for _ in 0..MAX_ATTEMPTS {
        let (version, at) = match locate(database, mailbox, id)? {
            Some((version, Some(at))) => (version, at),
            Some((version, None)) => return Ok(Some((version, None))),
            None => return Ok(None),
        };
        // If the record was not moved since the last attempt, the error is real.
        if let Some((before, error)) = last_error.take()
            && before == at
        {
            return Err(error);
        }
        let read = segments.read(at).map_err(|error| segment_error("reading a message", &error));
        match read.and_then(|record| parse_source(record, mailbox, id, at)) {
            Ok(source) => return Ok(Some((version, Some(source)))),
            // The record may have been removed or moved after it was located.
            Err(error) => last_error = Some((at, error)),
        }
    }
    Err(StoreError::Unavailable(format!("message {id} is being moved")))
}

/// See [`Store::sources`](crate::Store::sources).
pub(super) fn sources(database: &Connection, segments: &Segments, copies: &[CopyKey]) -> Result<Vec<Option<Source>>> {
    let snapshot = database.unchecked_transaction()?;
    let locations: Vec<Option<Location>> =
        copies.iter().map(|copy| location(&snapshot, &copy.mailbox, copy.id)).collect::<Result<_>>()?;
    drop(snapshot);
    let read = |(CopyKey { mailbox, id }, at): (&CopyKey, Option<Location>)| {
        let Some(at) = at else { return Ok(None) };
        match segments.read(at).ok().and_then(|record| parse_source(record, mailbox, *id, at).ok()) {
            Some(source) => Ok(Some(source)),
            // The record may have been removed or moved after it was located.
            None => Ok(source(database, segments, mailbox, *id)?.and_then(|(_, source)| source)),
        }
    };
    copies.iter().zip(locations).map(read).collect()
}

fn locate(database: &Connection, mailbox: &MailboxName, id: MessageId) -> Result<Versioned<Location>> {
    let snapshot = database.unchecked_transaction()?;
    let Some(version) = version(&snapshot, mailbox)? else { return Ok(None) };
    Ok(Some((version, location(&snapshot, mailbox, id)?)))
}

fn location(database: &Connection, mailbox: &MailboxName, id: MessageId) -> Result<Option<Location>> {
    let mut statement =
        database.prepare_cached("SELECT segment, offset, length FROM copies WHERE mailbox = ?1 AND id = ?2")?;
    let found = statement.query_row(params![mailbox.as_str(), id_to_i64(id)], |row| {
        Ok(Location { segment: get_u64(row, 0)?, offset: get_u64(row, 1)?, length: get_u64(row, 2)? })
    });
    Ok(found.optional()?)
}

fn parse_source(record: Vec<u8>, mailbox: &MailboxName, id: MessageId, at: Location) -> Result<Source> {
    let Location { segment, offset, .. } = at;
    let damaged = |cause: &dyn std::fmt::Display| {
        StoreError::Broken(format!("message {id} is damaged, segment {segment} at {offset}: {cause}"))
    };
    let parsed = ParsedRecord::parse(&record).map_err(|error| damaged(&error))?;
    let (trace, body) = parsed.source(mailbox.as_str(), id).ok_or_else(|| damaged(&"it is another message"))?;
    // Slices would keep the whole record in memory, including the trace lines of all other recipients.
    if trace.len() + (record.len() - body) < record.len() / 2 {
        return Ok(Source {
            trace: Bytes::copy_from_slice(&record[trace]),
            body: Bytes::copy_from_slice(&record[body..]),
        });
    }
    let record = Bytes::from(record);
    Ok(Source { trace: record.slice(trace), body: record.slice(body..) })
}

/// The number of copies that are not marked as read, without all but one of each message.
pub(super) const SELECT_UNREAD: &str = "
    SELECT (SELECT coalesce(sum(unseen), 0) FROM mailboxes)
        - (SELECT count(*) - count(DISTINCT message) FROM copies WHERE shared AND NOT seen)";
/// The tags of messages with one copy.
pub(super) const SELECT_TAGS: &str = "SELECT tags, count(*) FROM copies WHERE tags <> '' AND NOT shared GROUP BY tags";
/// The tags of the other messages, per copy.
pub(super) const SELECT_SHARED_TAGS: &str =
    "SELECT message, tags FROM copies WHERE tags <> '' AND shared ORDER BY message";

/// The numbers of messages and of unread ones in a project, whose mailboxes have the names from `?2` to `?3`.
pub(super) const SELECT_PROJECT_COUNTS: &str = "
    SELECT coalesce(sum(messages), 0)
            - (SELECT count(*) - count(DISTINCT message) FROM copies WHERE project = ?1 AND shared),
        coalesce(sum(unseen), 0)
            - (SELECT count(*) - count(DISTINCT message) FROM copies WHERE project = ?1 AND shared AND NOT seen)
    FROM mailboxes WHERE name >= ?2 AND name < ?3";
/// The tags in a project, per copy.
pub(super) const SELECT_PROJECT_TAGS: &str =
    "SELECT message, tags FROM copies WHERE project = ?1 AND tags <> '' ORDER BY message";

/// See [`Store::overview`](crate::Store::overview).
pub(super) fn overview(database: &Connection, project: Option<&Project>) -> Result<Overview> {
    let snapshot = database.unchecked_transaction()?;
    let mut tags = TagCounter::default();
    let parse = |row: &Row<'_>, column| Ok::<_, rusqlite::Error>(Tags::from_encoded(row.get_ref(column)?.as_str()?));
    if let Some(project) = project {
        let [start, end] = project.mailbox_range();
        let mut statement = snapshot.prepare_cached(SELECT_PROJECT_COUNTS)?;
        let (messages, unread) =
            statement.query_row([project.as_str(), &start, &end], |row| Ok((get_u64(row, 0)?, get_u64(row, 1)?)))?;
        let mut statement = snapshot.prepare_cached(SELECT_PROJECT_TAGS)?;
        tags.add_copies(statement.query_map([project.as_str()], |row| Ok((get_u64(row, 0)?, parse(row, 1)?)))?)?;
        return Ok(Overview { messages, unread, tags: tags.counts() });
    }
    let messages = Counters::load(&snapshot)?.usage.messages;
    let unread = snapshot.prepare_cached(SELECT_UNREAD)?.query_row([], |row| get_u64(row, 0))?;
    let mut statement = snapshot.prepare_cached(SELECT_TAGS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let messages = get_u64(row, 1)?;
        parse(row, 0)?.iter().for_each(|tag| tags.add(tag, messages, messages));
    }
    let mut statement = snapshot.prepare_cached(SELECT_SHARED_TAGS)?;
    let copies = statement.query_map([], |row| Ok((get_u64(row, 0)?, parse(row, 1)?)))?;
    tags.add_copies(copies)?;
    Ok(Overview { messages, unread, tags: tags.counts() })
}

/// The first project after `?1`.
pub(super) const SELECT_NEXT_PROJECT: &str = "SELECT min(project) FROM copies WHERE project > ?1";
/// The numbers of copies and of unread ones in the mailboxes with the names from `?1` to `?2`.
pub(super) const SELECT_PROJECT_SUMS: &str =
    "SELECT coalesce(sum(messages), 0), coalesce(sum(unseen), 0) FROM mailboxes WHERE name >= ?1 AND name < ?2";

/// See [`Store::projects`](crate::Store::projects).
pub(super) fn projects(database: &Connection, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
    let snapshot = database.unchecked_transaction()?;
    let mut next = snapshot.prepare_cached(SELECT_NEXT_PROJECT)?;
    let mut sums = snapshot.prepare_cached(SELECT_PROJECT_SUMS)?;
    let mut projects = Vec::new();
    let mut last = after.map_or_else(String::new, Project::to_string);
    while projects.len() < limit
        && let Some(name) = next.query_row([&last], |row| row.get::<_, Option<String>>(0))?
    {
        if let Ok(project) = name.parse::<Project>() {
            let state = |row: &Row<'_>| {
                Ok(ProjectState { name: project.clone(), copies: get_u64(row, 0)?, unseen: get_u64(row, 1)? })
            };
            projects.push(sums.query_row(project.mailbox_range(), state)?);
        }
        last = name;
    }
    Ok(projects)
}

/// Mailboxes in order, each with its newest message, which is its last row.
pub(super) const SELECT_MAILBOXES: &str = "
    SELECT name, messages, unseen, bytes, newest.id, newest.received
    FROM mailboxes CROSS JOIN copies AS newest
    WHERE name >= ?1 AND name <> ?2
      AND newest.mailbox = name AND newest.id = (SELECT max(id) FROM copies WHERE mailbox = name)
    ORDER BY name LIMIT ?3";

/// See [`Store::mailboxes`](crate::Store::mailboxes).
pub(super) fn mailboxes(database: &Connection, page: &MailboxPage) -> Result<Vec<MailboxState>> {
    let mut statement = database.prepare_cached(SELECT_MAILBOXES)?;
    let mut rows = statement.query(params![page.start(), page.after, to_i64(page.limit)])?;
    let mut states = Vec::new();
    while let Some(row) = rows.next()? {
        let name = rows::get_mailbox(row, 0)?;
        // Names with the same prefix are adjacent.
        if !name.as_str().starts_with(&page.prefix) {
            break;
        }
        let newest = Newest { id: get_u64(row, 4)?.into(), received: nanos_to_time(row.get(5)?) };
        let (messages, unseen, bytes) = (get_u64(row, 1)?, get_u64(row, 2)?, get_u64(row, 3)?);
        states.push(MailboxState { name, messages, unseen, bytes, newest });
    }
    Ok(states)
}
