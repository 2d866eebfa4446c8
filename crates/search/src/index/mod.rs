//! The index: a full-text table, and a table with the other searchable properties of every message. It contains no
//! texts, only the positions of words. The messages are in the store, which is the source of truth, so the index can
//! always be rebuilt.
//!
//! The id of a document is the id of its message, which is unique in the store. So the order of ids is the order of
//! arrival, and the newest documents come first without sorting.

mod compile;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Instant;

use restante_mail::message::{MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_sqlite::ErrorKind;
use rusqlite::{Connection, Error, Result, Transaction, params, params_from_iter};

use crate::document::{Column, Document};
use crate::query::Query;
use schema::OpenedIndex;

/// The number of database steps between two checks of the deadline.
const PROGRESS_HANDLER_STEPS: std::ffi::c_int = 10_000;

/// The index, open for its only writer.
pub(crate) struct Index {
    connection: Connection,
    /// The path of the file; `None` if the index is in memory.
    path: Option<PathBuf>,
    /// The number of documents.
    count: u64,
    /// True if the mark of a clean shutdown was removed from the file.
    is_marked_dirty: bool,
}

/// The index, open for queries.
pub(crate) struct Reader(Connection);

/// A message as it is added to the index.
pub(crate) struct Entry {
    summary: Summary,
    texts: [String; Column::ALL.len()],
    facts: String,
}

/// Changes that are applied in one transaction.
#[derive(Default)]
pub(crate) struct Changes {
    /// New messages. Those already in the index are left as they are.
    pub(crate) added: Vec<Entry>,
    /// Messages whose read mark changed, in the order of the changes.
    pub(crate) seen: Vec<(MessageId, bool)>,
    /// Deleted messages.
    pub(crate) removed: Vec<MessageId>,
}

/// The result of a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The matching messages, newest first, each with its read mark in the index.
    pub(crate) messages: Vec<(MailboxName, MessageId, bool)>,
    /// True if there may be more matches.
    pub(crate) has_more: bool,
}

impl Changes {
    /// Returns true if there are no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.seen.is_empty() && self.removed.is_empty()
    }
}

impl Entry {
    /// Creates the entry of a message from its whole source.
    pub(crate) fn new(summary: Summary, mime: &Mime) -> Self {
        let document = Document::new(&summary, Some(mime));
        let texts = Column::ALL.map(|column| document.text(column).to_owned());
        let facts = compile::facts_text(&summary.mailbox, document.has_attachment());
        Self { summary, texts, facts }
    }

    /// Returns the approximate number of bytes to write.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

impl Index {
    /// Opens the index of a data directory, or a new one in memory. An unusable file is deleted and created again. The
    /// second value is the id up to which the index agrees with the store, if that is known.
    pub(crate) fn open(directory: Option<&Path>) -> Result<(Self, Option<MessageId>)> {
        let OpenedIndex { connection, path, complete_up_to, count } = schema::open(directory)?;
        Ok((Self { connection, path, count, is_marked_dirty: false }, complete_up_to.map(MessageId::from)))
    }

    /// Deletes a damaged index, so that it can be rebuilt.
    pub(crate) fn discard(self) {
        let Self { connection, path, .. } = self;
        drop(connection);
        if let Some(path) = path {
            schema::discard(&path);
        }
    }

    /// Deletes the index files of a data directory. The index must not be open.
    pub(crate) fn delete_files(directory: &Path) {
        schema::discard(&schema::file_path(directory));
    }

    /// Returns the number of messages in the index.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Applies all changes, or none if it fails.
    pub(crate) fn write(&mut self, mut changes: Changes) -> Result<()> {
        // The full-text index buffers documents as long as their ids ascend. Any other id flushes the buffer.
        changes.added.sort_unstable_by_key(|entry| entry.summary.id);
        let transaction = self.connection.transaction()?;
        if !self.is_marked_dirty {
            transaction.execute("UPDATE state SET through = NULL", [])?;
        }
        let mut count = self.count;
        for entry in &changes.added {
            count += u64::from(insert_entry(&transaction, entry)?);
        }
        for (id, seen) in &changes.seen {
            let mut update = transaction.prepare_cached("UPDATE documents SET seen = ?2 WHERE id = ?1")?;
            update.execute(params![id.number(), seen])?;
        }
        for id in &changes.removed {
            count -= u64::from(delete_entry(&transaction, *id)?);
        }
        transaction.commit()?;
        self.count = count;
        self.is_marked_dirty = true;
        Ok(())
    }

    /// Marks the index as complete up to this id and closes it. The next change removes the mark.
    pub(crate) fn close(self, complete_up_to: MessageId) -> Result<()> {
        self.connection.execute("UPDATE state SET through = ?1", [complete_up_to.number()])?;
        self.connection.close().map_err(|(_, error)| error)
    }

    /// Returns the entries with ids above `after` in ascending order, each with its mailbox and read mark.
    pub(crate) fn entries_after(&self, after: MessageId, limit: usize) -> Result<Vec<(MailboxName, MessageId, bool)>> {
        let sql = "SELECT mailbox, id, seen FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut entries = self.connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = entries.query_map(params![after.number(), limit], |row| {
            Ok((MailboxName::from(row.get::<_, String>(0)?), row.get::<_, u64>(1)?.into(), row.get(2)?))
        })?;
        rows.collect()
    }

    /// Returns the messages that are not in the index.
    pub(crate) fn filter_missing(&self, summaries: Vec<Summary>) -> Result<Vec<Summary>> {
        let mut select = self.connection.prepare_cached("SELECT 1 FROM documents WHERE id = ?1")?;
        let mut missing = Vec::new();
        for summary in summaries {
            if !select.exists([summary.id.number()])? {
                missing.push(summary);
            }
        }
        Ok(missing)
    }

    /// See [`Reader::find`].
    pub(crate) fn find(&mut self, query: &IndexQuery<'_>) -> Result<Matches> {
        find_with_deadline(&mut self.connection, query)
    }
}

/// A query of the index.
pub(crate) struct IndexQuery<'a> {
    pub(crate) query: &'a Query,
    /// Restricts the query to this mailbox.
    pub(crate) mailbox: Option<&'a MailboxName>,
    /// Restricts the query to mailboxes for which this returns true.
    pub(crate) is_permitted: &'a dyn Fn(&MailboxName) -> bool,
    /// Restricts the query to ids below this one.
    pub(crate) before: MessageId,
    /// The maximum number of results.
    pub(crate) limit: usize,
    /// The query is interrupted at this time.
    pub(crate) deadline: Instant,
    /// The query is interrupted when the caller has dropped its `Arc`.
    pub(crate) caller: Weak<()>,
}

impl Reader {
    /// Opens an existing index of a data directory for queries, concurrently with its writer.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        schema::open_reader(&schema::file_path(directory)).map(Self)
    }

    /// Returns the matching messages, newest first.
    pub(crate) fn find(&mut self, query: &IndexQuery<'_>) -> Result<Matches> {
        find_with_deadline(&mut self.0, query)
    }
}

/// Returns true if the file is damaged and has to be rebuilt.
pub(crate) fn is_damage(error: &Error) -> bool {
    ErrorKind::classify(error) == ErrorKind::Damaged
}

/// Returns true if a query was interrupted, by its deadline or because its caller is gone.
pub(crate) fn is_interruption(error: &Error) -> bool {
    ErrorKind::classify(error) == ErrorKind::Interrupted
}

fn find_with_deadline(connection: &mut Connection, query: &IndexQuery<'_>) -> Result<Matches> {
    let (deadline, caller) = (query.deadline, query.caller.clone());
    let is_cancelled = move || Instant::now() >= deadline || caller.strong_count() == 0;
    connection.progress_handler(PROGRESS_HANDLER_STEPS, Some(is_cancelled))?;
    let matches = run_query(connection, query);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    matches
}

fn run_query(connection: &Connection, query: &IndexQuery<'_>) -> Result<Matches> {
    let before = i64::try_from(query.before.number()).unwrap_or(i64::MAX);
    let statement = compile::build_statement(query.query, query.mailbox, before);
    let mut select = connection.prepare(&statement.sql)?;
    let mut rows = select.query(params_from_iter(statement.values))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let mailbox = MailboxName::from(row.get::<_, String>(1)?);
        if !(query.is_permitted)(&mailbox) {
            continue;
        }
        if messages.len() == query.limit {
            return Ok(Matches { messages, has_more: true });
        }
        messages.push((mailbox, row.get::<_, u64>(0)?.into(), row.get(2)?));
    }
    Ok(Matches { messages, has_more: false })
}

/// Adds an entry. Returns false if the message was already in the index.
fn insert_entry(transaction: &Transaction<'_>, Entry { summary, texts, facts }: &Entry) -> Result<bool> {
    let id = summary.id.number();
    let sql = "INSERT OR IGNORE INTO documents (id, mailbox, received, size, seen) VALUES (?1, ?2, ?3, ?4, ?5)";
    let received = summary.received.as_microsecond();
    let added = transaction.prepare_cached(sql)?.execute(params![
        id,
        summary.mailbox.as_str(),
        received,
        i64::try_from(summary.size).unwrap_or(i64::MAX),
        summary.seen
    ])?;
    if added == 0 {
        return Ok(false);
    }
    let mut insert = transaction.prepare_cached(schema::INSERT_WORDS)?;
    let [from, to, cc, subject, body, filename, header] = texts;
    insert.execute(params![id, from, to, cc, subject, body, filename, header, facts])?;
    Ok(true)
}

/// Deletes an entry. Returns false if the message was not in the index.
fn delete_entry(transaction: &Transaction<'_>, id: MessageId) -> Result<bool> {
    let id = id.number();
    if transaction.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([id])? == 0 {
        return Ok(false);
    }
    transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([id])?;
    Ok(true)
}
