//! The index: a full text table, and beside it what else a question can be about, of every message. It holds no text, only which
//! words are where; mail itself is in the store, which is the truth. Whatever is wrong with the index, it can be made again.
//!
//! The number of a document is the id of its message, which no other message of a store has in any mailbox. So the order of
//! numbers is the order of arrival, and the newest come first without anything being sorted.

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

/// After so many steps of the database somebody looks at the clock.
const PROGRESS_HANDLER_STEPS: std::ffi::c_int = 10_000;

/// The index, open for its one writer.
pub(crate) struct Index {
    connection: Connection,
    /// Where it is, unless it is in memory.
    path: Option<PathBuf>,
    /// How many documents are in it.
    count: u64,
    /// Whether the file says that it is in use.
    is_marked_dirty: bool,
}

/// The index, open for questions.
pub(crate) struct Reader(Connection);

/// A message, ready to be put into the index.
pub(crate) struct Entry {
    summary: Summary,
    texts: [String; Column::ALL.len()],
    facts: String,
}

/// What is done to the index at once.
#[derive(Default)]
pub(crate) struct Changes {
    /// Messages that are new to it; those that it has already are left as they are.
    pub(crate) added: Vec<Entry>,
    /// Messages that were marked as read or as unread, in the order in which that happened.
    pub(crate) seen: Vec<(MessageId, bool)>,
    /// Messages that are gone.
    pub(crate) removed: Vec<MessageId>,
}

/// What a question found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The newest first, with whether they are marked as read in the index.
    pub(crate) messages: Vec<(MailboxName, MessageId, bool)>,
    /// Whether there may be more.
    pub(crate) has_more: bool,
}

impl Changes {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.seen.is_empty() && self.removed.is_empty()
    }
}

impl Entry {
    /// The entry of a message, of its whole source.
    pub(crate) fn new(summary: Summary, mime: &Mime) -> Self {
        let document = Document::new(&summary, Some(mime));
        let texts = Column::ALL.map(|column| document.text(column).to_owned());
        let facts = compile::facts_text(&summary.mailbox, document.has_attachment());
        Self { summary, texts, facts }
    }

    /// How much there is to write, about.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

impl Index {
    /// Opens the index of a data directory, or one in memory. What is there and of no use is thrown away. The second value is the
    /// id up to which nothing can be missing or too much, if that is known.
    pub(crate) fn open(directory: Option<&Path>) -> Result<(Self, Option<MessageId>)> {
        let OpenedIndex { connection, path, complete_up_to: through, count } = schema::open(directory)?;
        Ok((Self { connection, path, count, is_marked_dirty: false }, through.map(MessageId::from)))
    }

    /// Throws the index away, so that it is made again. For an index that makes no sense.
    pub(crate) fn discard(self) {
        let Self { connection, path, .. } = self;
        drop(connection);
        if let Some(path) = path {
            schema::discard(&path);
        }
    }

    /// Throws away what a data directory holds of an index, while there is none.
    pub(crate) fn delete_files(directory: &Path) {
        schema::discard(&schema::file_path(directory));
    }

    /// How many messages are in it.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Does all of this, or nothing.
    pub(crate) fn write(&mut self, mut changes: Changes) -> Result<()> {
        // The full text index gathers what comes in ascending order, and writes what it has when something does not.
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

    /// Notes that nothing is missing up to this id and nothing is too much, until the next change.
    pub(crate) fn close(self, through: MessageId) -> Result<()> {
        self.connection.execute("UPDATE state SET through = ?1", [through.number()])?;
        self.connection.close().map_err(|(_, error)| error)
    }

    /// The messages behind an id that are in the index, ascending, with their mailboxes and whether they are marked as read.
    pub(crate) fn entries_after(&self, after: MessageId, limit: usize) -> Result<Vec<(MailboxName, MessageId, bool)>> {
        let sql = "SELECT mailbox, id, seen FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut held = self.connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = held.query_map(params![after.number(), limit], |row| {
            Ok((MailboxName::from(row.get::<_, String>(0)?), row.get::<_, u64>(1)?.into(), row.get(2)?))
        })?;
        rows.collect()
    }

    /// Which of these messages are not in the index.
    pub(crate) fn filter_missing(&self, summaries: Vec<Summary>) -> Result<Vec<Summary>> {
        let mut known = self.connection.prepare_cached("SELECT 1 FROM documents WHERE id = ?1")?;
        let mut missing = Vec::new();
        for summary in summaries {
            if !known.exists([summary.id.number()])? {
                missing.push(summary);
            }
        }
        Ok(missing)
    }

    /// See [`Reader::find`].
    pub(crate) fn find(&mut self, question: &IndexQuery<'_>) -> Result<Matches> {
        find_with_deadline(&mut self.connection, question)
    }
}

/// What is asked of the index.
pub(crate) struct IndexQuery<'a> {
    pub(crate) query: &'a Query,
    /// Only messages of this mailbox.
    pub(crate) mailbox: Option<&'a MailboxName>,
    /// Only messages of these mailboxes.
    pub(crate) is_permitted: &'a dyn Fn(&MailboxName) -> bool,
    /// Only messages with ids below this one.
    pub(crate) before: MessageId,
    /// At most so many.
    pub(crate) limit: usize,
    /// The time at which it is given up.
    pub(crate) deadline: Instant,
    /// When this is gone, nobody waits for the answer any longer.
    pub(crate) caller: Weak<()>,
}

impl Reader {
    /// Opens the index of a data directory, which must be there, for questions beside its writer.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        schema::open_reader(&schema::file_path(directory)).map(Self)
    }

    /// The messages that are asked for, the newest first.
    pub(crate) fn find(&mut self, question: &IndexQuery<'_>) -> Result<Matches> {
        find_with_deadline(&mut self.0, question)
    }
}

/// Whether the file itself makes no sense, so that another one must be made.
pub(crate) fn is_damage(error: &Error) -> bool {
    ErrorKind::classify(error) == ErrorKind::Damaged
}

/// Whether a question was given up because it took too long, or because nobody waits for it.
pub(crate) fn is_interruption(error: &Error) -> bool {
    ErrorKind::classify(error) == ErrorKind::Interrupted
}

fn find_with_deadline(connection: &mut Connection, question: &IndexQuery<'_>) -> Result<Matches> {
    let (deadline, asker) = (question.deadline, question.caller.clone());
    let is_over = move || Instant::now() >= deadline || asker.strong_count() == 0;
    connection.progress_handler(PROGRESS_HANDLER_STEPS, Some(is_over))?;
    let found = run_query(connection, question);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    found
}

fn run_query(connection: &Connection, question: &IndexQuery<'_>) -> Result<Matches> {
    let before = i64::try_from(question.before.number()).unwrap_or(i64::MAX);
    let statement = compile::build_statement(question.query, question.mailbox, before);
    let mut select = connection.prepare(&statement.sql)?;
    let mut rows = select.query(params_from_iter(statement.values))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let mailbox = MailboxName::from(row.get::<_, String>(1)?);
        if !(question.is_permitted)(&mailbox) {
            continue;
        }
        if messages.len() == question.limit {
            return Ok(Matches { messages, has_more: true });
        }
        messages.push((mailbox, row.get::<_, u64>(0)?.into(), row.get(2)?));
    }
    Ok(Matches { messages, has_more: false })
}

/// Whether it was new.
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

/// Whether it was there.
fn delete_entry(transaction: &Transaction<'_>, id: MessageId) -> Result<bool> {
    let id = id.number();
    if transaction.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([id])? == 0 {
        return Ok(false);
    }
    transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([id])?;
    Ok(true)
}
