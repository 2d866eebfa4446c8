//! The index: which words are in which messages, and a table with the other searchable properties of every message. It
//! contains no texts. The messages are in the store, which is the source of truth, so the index can always be rebuilt.
//!
//! Words are in a full-text table of SQLite (FTS5) that stores nothing but the ids of the messages of each token. The
//! `tokens` contain the column of a word and the partition of a message. Queries are compiled by `compile`, and `find`
//! runs them on one partition after the other, starting with the newest messages.
//!
//! The id of a document is the id of its message, which is unique in the store. So the order of ids is the order of
//! arrival.

mod compile;
mod find;
mod partition;
mod schema;
#[cfg(test)]
mod tests;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Instant;

use restante_mail::message::{Marks, MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_sqlite::ErrorKind;
use rusqlite::{Connection, Error, OptionalExtension as _, Result, Transaction, params};

use crate::document::Document;
use crate::query::Query;
use partition::Partitioner;
use schema::OpenedIndex;
use tokens::TokenWriter;

/// The number of database steps between two checks of the deadline. A step can evaluate an expression with hundreds of
/// words, so they are few.
const PROGRESS_HANDLER_STEPS: std::ffi::c_int = 100;

/// The index, open for its only writer.
pub(crate) struct Index {
    connection: Connection,
    /// The path of the file; `None` if the index is in memory.
    path: Option<PathBuf>,
    /// The number of documents.
    count: u64,
    /// True if the mark of a clean shutdown was removed from the file.
    is_marked_dirty: bool,
    token_writer: TokenWriter,
}

/// A message that is added to the index.
pub(crate) struct Entry {
    pub(crate) summary: Summary,
    pub(crate) source: Source,
}

/// Changes that are applied in one transaction.
#[derive(Default)]
pub(crate) struct Changes {
    /// New messages. Those already in the index are left as they are.
    pub(crate) added: Vec<Entry>,
    /// Changed marks, in the order in which they were received.
    pub(crate) marks: Vec<MarkUpdate>,
    /// Deleted messages.
    pub(crate) removed: Vec<MessageId>,
}

/// Marks of a message that is in the index.
pub(crate) struct MarkUpdate {
    id: MessageId,
    marks: Marks,
    /// True if the marks were read from the store. Those of a change are outdated if the index has a later change.
    is_from_store: bool,
}

/// A message in the index, with the properties that can change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IndexedMessage {
    pub(crate) mailbox: MailboxName,
    pub(crate) id: MessageId,
    pub(crate) seen: bool,
    pub(crate) tags: Tags,
}

impl IndexedMessage {
    /// Returns true if the message in the store has the same properties.
    pub(crate) fn agrees_with(&self, summary: &Summary) -> bool {
        self.seen == summary.seen && self.tags == summary.tags
    }
}

/// The result of a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The matching messages, newest first.
    pub(crate) messages: Vec<IndexedMessage>,
    /// If there may be more matches, they have ids below this one.
    pub(crate) next: Option<MessageId>,
}

impl Changes {
    /// Adds the marks of a message that was read from the store. The index gets them in any case.
    pub(crate) fn update(&mut self, summary: &Summary) {
        self.marks.push(MarkUpdate { id: summary.id, marks: summary.marks(), is_from_store: true });
    }

    /// Adds the marks of a message after a change. Changes can be published in another order than they were made in: the
    /// index keeps those of the latest change.
    pub(crate) fn mark(&mut self, id: MessageId, marks: Marks) {
        self.marks.push(MarkUpdate { id, marks, is_from_store: false });
    }

    /// Returns true if there are no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.marks.is_empty() && self.removed.is_empty()
    }
}

impl Index {
    /// Opens the index of a data directory, or a new one in memory. An unusable file is deleted and created again. The
    /// second value is the id up to which the index agrees with the store, if that is known.
    pub(crate) fn open(directory: Option<&Path>) -> Result<(Self, Option<MessageId>)> {
        let OpenedIndex { connection, path, complete_up_to, count } = schema::open(directory)?;
        let index = Self { connection, path, count, is_marked_dirty: false, token_writer: TokenWriter::default() };
        Ok((index, complete_up_to.map(MessageId::from)))
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
        changes.added.sort_unstable_by_key(|entry| entry.summary.id);
        let transaction = self.connection.transaction()?;
        if !self.is_marked_dirty {
            transaction.execute("UPDATE state SET through = NULL", [])?;
        }
        let mut count = self.count;
        count += add_entries(&transaction, &changes.added, &mut self.token_writer)?;
        for update in &changes.marks {
            set_marks(&transaction, update)?;
        }
        count -= delete_entries(&transaction, &changes.removed)?;
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

    /// Returns the entries with ids above `after` and up to `last` in ascending order.
    pub(crate) fn entries_between(
        &self,
        after: MessageId,
        last: MessageId,
        limit: usize,
    ) -> Result<Vec<IndexedMessage>> {
        let sql = "SELECT mailbox, id, seen, tags FROM documents WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
        let mut entries = self.connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = entries.query_map(params![after.number(), to_i64(last.number()), limit], |row| {
            Ok(IndexedMessage {
                mailbox: MailboxName::from(row.get::<_, String>(0)?),
                id: row.get::<_, u64>(1)?.into(),
                seen: row.get(2)?,
                tags: Tags::from_encoded(row.get_ref(3)?.as_str()?),
            })
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

    /// See [`find_with_deadline`].
    pub(crate) fn find(&mut self, query: &IndexQuery<'_>) -> Result<Matches> {
        find_with_deadline(&mut self.connection, query)
    }
}

/// Returns the id of the message that a copy belongs to, if it is known.
type MessageOfCopy<'a> = dyn Fn(&MailboxName, MessageId) -> Option<MessageId> + 'a;

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
    /// Returns true if a message matches the query, for messages whose entry does not say so. Returns `None` if the
    /// message cannot be read; the query ends then.
    pub(crate) matches_message: &'a dyn Fn(&MailboxName, MessageId) -> Option<bool>,
    /// If further copies of a message are left out: returns the id of the message that a matching copy belongs to, or
    /// `None` if it is not known. The copies of a message have ids from that of the message on, without those of others
    /// in between.
    pub(crate) message_of: Option<&'a MessageOfCopy<'a>>,
    /// The query is interrupted at this time.
    pub(crate) deadline: Instant,
    /// The query is interrupted when the caller has dropped its `Arc`.
    pub(crate) caller: Weak<()>,
}

impl IndexQuery<'_> {
    /// Returns true if the result is no longer needed.
    fn is_cancelled(&self) -> bool {
        Instant::now() >= self.deadline || self.caller.strong_count() == 0
    }
}

/// Opens an existing index of a data directory for queries, concurrently with its writer.
pub(crate) fn open_reader(directory: &Path) -> Result<Connection> {
    schema::open_reader(&schema::file_path(directory))
}

/// Returns true if the file is damaged and has to be rebuilt. Unexpected errors, such as a number out of range or a
/// missing column, count as damage, because they would be repeated for ever.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(ErrorKind::classify(error), ErrorKind::Damaged | ErrorKind::Other)
}

/// Returns true if a query was interrupted, by its deadline or because its caller is gone.
pub(crate) fn is_interruption(error: &Error) -> bool {
    ErrorKind::classify(error) == ErrorKind::Interrupted
}

/// Returns the matching messages, newest first.
pub(crate) fn find_with_deadline(connection: &mut Connection, query: &IndexQuery<'_>) -> Result<Matches> {
    let (deadline, caller) = (query.deadline, query.caller.clone());
    let is_cancelled = move || Instant::now() >= deadline || caller.strong_count() == 0;
    connection.progress_handler(PROGRESS_HANDLER_STEPS, Some(is_cancelled))?;
    let matches = find::find(connection, query);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    matches
}

/// Adds entries. Returns the number of messages that were not in the index before.
fn add_entries(transaction: &Transaction<'_>, entries: &[Entry], token_writer: &mut TokenWriter) -> Result<u64> {
    if entries.is_empty() {
        return Ok(0);
    }
    let mut partitioner = Partitioner::new(transaction)?;
    let mut insert_document = transaction.prepare_cached(
        "INSERT OR IGNORE INTO documents (id, mailbox, delay, size, seen, modseq, tags)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut insert_tokens = transaction.prepare_cached("INSERT INTO words (rowid, tokens) VALUES (?1, ?2)")?;
    let mut added = 0;
    for Entry { summary, source } in entries {
        let id = to_i64(summary.id.number());
        let is_new = insert_document.execute(params![
            id,
            summary.mailbox.as_str(),
            id.saturating_sub(summary.received.as_microsecond()),
            to_i64(summary.size),
            summary.seen,
            to_i64(summary.modseq),
            summary.tags.encoded()
        ])? > 0;
        if !is_new {
            continue;
        }
        insert_tags(transaction, id, &summary.tags)?;
        let mime = Mime::parse(source.to_bytes());
        let document = Document::new(summary, Some(&mime));
        insert_tokens.execute(params![id, token_writer.document(&document, partitioner.add(id))])?;
        added += 1;
    }
    partitioner.save(transaction)?;
    Ok(added)
}

/// Replaces the marks of a message, if it is in the index with older ones.
fn set_marks(transaction: &Transaction<'_>, MarkUpdate { id, marks, is_from_store }: &MarkUpdate) -> Result<()> {
    let (id, modseq) = (to_i64(id.number()), to_i64(marks.modseq));
    let mut select = transaction.prepare_cached("SELECT tags, modseq FROM documents WHERE id = ?1")?;
    let mut rows = select.query([id])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    if !is_from_store && modseq <= row.get(1)? {
        return Ok(());
    }
    let before = Tags::from_encoded(row.get_ref(0)?.as_str()?);
    if before != marks.tags {
        delete_tags(transaction, id, &before)?;
        insert_tags(transaction, id, &marks.tags)?;
    }
    let sql = "UPDATE documents SET seen = ?2, modseq = ?3, tags = ?4 WHERE id = ?1";
    let mut update = transaction.prepare_cached(sql)?;
    update.execute(params![id, marks.seen, modseq, marks.tags.encoded()])?;
    Ok(())
}

fn insert_tags(transaction: &Transaction<'_>, id: i64, tags: &Tags) -> Result<()> {
    for tag in tags.iter() {
        let mut insert = transaction.prepare_cached("INSERT OR IGNORE INTO tags (tag, id) VALUES (?1, ?2)")?;
        insert.execute(params![tag.to_lowercase(), id])?;
    }
    Ok(())
}

fn delete_tags(transaction: &Transaction<'_>, id: i64, tags: &Tags) -> Result<()> {
    for tag in tags.iter() {
        let mut delete = transaction.prepare_cached("DELETE FROM tags WHERE tag = ?1 AND id = ?2")?;
        delete.execute(params![tag.to_lowercase(), id])?;
    }
    Ok(())
}

/// Deletes the entries of messages. Returns the number of messages that were in the index.
fn delete_entries(transaction: &Transaction<'_>, removed: &[MessageId]) -> Result<u64> {
    if removed.is_empty() {
        return Ok(0);
    }
    // This costs less than `DELETE ... RETURNING`, which creates a table for its result.
    let mut select = transaction.prepare_cached("SELECT tags FROM documents WHERE id = ?1")?;
    let mut delete_document = transaction.prepare_cached("DELETE FROM documents WHERE id = ?1")?;
    let mut delete_words = transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?;
    let mut count = 0;
    for id in removed.iter().map(|id| to_i64(id.number())) {
        let tags: Option<String> = select.query_row([id], |row| row.get(0)).optional()?;
        let Some(tags) = tags else { continue };
        delete_tags(transaction, id, &Tags::from_encoded(&tags))?;
        delete_document.execute([id])?;
        delete_words.execute([id])?;
        count += 1;
    }
    if count > 0 {
        partition::delete_empty(transaction)?;
    }
    Ok(count)
}

/// Converts a number to the integer type of the database.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
