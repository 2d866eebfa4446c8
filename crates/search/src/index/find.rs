//! Runs queries on the index, partition by partition, from the newest document on until there are enough results. A
//! message is read only if the index does not know whether it matches.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use rusqlite::{Connection, Error, Result, ffi, params_from_iter};

use super::compile::{Condition, Filter};
use super::partition::Partition;
use super::tokens::TokenPattern;
use super::{IndexQuery, IndexedMessage, Matches, to_i64};
use crate::query::{Query, Term};

/// The number of candidates between two checks of the deadline.
const CANDIDATES_PER_CHECK: usize = 256;
/// The time in which messages are read. A query that needs more time returns what it found, and where to continue.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the matching messages, newest first.
pub(super) fn find(connection: &mut Connection, query: &IndexQuery<'_>) -> Result<Matches> {
    // All statements read the same version of the index.
    let transaction = connection.transaction()?;
    let mut results = Results::new(query);
    for partition in Partition::list(&transaction)?.iter().rev() {
        check_cancelled(query)?;
        if find_in_partition(&transaction, partition, &mut results)?.is_break() {
            break;
        }
    }
    Ok(results.matches)
}

/// Adds the results of a partition. Returns `Break` if the query ends here.
fn find_in_partition(
    connection: &Connection,
    partition: &Partition,
    results: &mut Results<'_>,
) -> Result<ControlFlow<()>> {
    let query = results.query;
    let start = partition.ids.start.max(min_id(query.query));
    let end = partition.ids.end.min(to_i64(query.before.number()));
    if start >= end {
        return Ok(ControlFlow::Continue(()));
    }
    let Filter { words, condition, required } =
        Filter::new(query.query, query.mailbox.map(MailboxName::as_str), partition);
    for patterns in required {
        if !exists(connection, &patterns)? {
            return Ok(ControlFlow::Continue(()));
        }
    }
    let (table, id) = match words {
        Some(_) => ("words CROSS JOIN documents ON documents.id = words.rowid", "words.rowid"),
        None => ("documents", "documents.id"),
    };
    let Condition { sql: condition, mut values } = condition.unwrap_or_default();
    let mut sql =
        format!("SELECT {id}, {condition}, mailbox, seen, tags FROM {table} WHERE {id} >= {start} AND {id} < {end}");
    if let Some(words) = words {
        sql.push_str(" AND words MATCH ?");
        values.push(words.text.into());
    }
    let mut select = connection.prepare(&format!("{sql} ORDER BY {id} DESC"))?;
    let mut rows = select.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let (id, is_match): (u64, Option<bool>) = (row.get(0)?, row.get(1)?);
        if results.skips(id.into(), is_match)? {
            continue;
        }
        let mailbox = MailboxName::from(row.get::<_, String>(2)?);
        let tags = Tags::from_encoded(row.get_ref(4)?.as_str()?);
        let message = IndexedMessage { mailbox, id: id.into(), seen: row.get(3)?, tags };
        if results.add(message, is_match.is_some())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns true if there is a token that matches one of the patterns. It may be one of a deleted document. This is much
/// cheaper than a query of the full-text table, which reads all matches of each word.
fn exists(connection: &Connection, patterns: &[TokenPattern]) -> Result<bool> {
    let mut select = connection.prepare_cached("SELECT 1 FROM tokens WHERE term >= ?1 AND term <= ?2")?;
    for TokenPattern { text, is_prefix } in patterns {
        let last = if *is_prefix { format!("{text}{}", char::MAX) } else { text.clone() };
        if select.exists([text, &last])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The matches so far.
struct Results<'a> {
    query: &'a IndexQuery<'a>,
    matches: Matches,
    candidate_count: usize,
    /// The time until which messages are read; set when the first one is read.
    read_deadline: Option<Instant>,
    /// The documents from this id on are copies of messages that were found.
    found_from: Option<MessageId>,
}

impl<'a> Results<'a> {
    fn new(query: &'a IndexQuery<'a>) -> Self {
        let matches = Matches { messages: Vec::new(), next: None };
        Self { query, matches, candidate_count: 0, read_deadline: None, found_from: None }
    }

    /// Returns true if a document does not match, or if it is another copy of a message that was found. Fails if the
    /// query was cancelled.
    fn skips(&mut self, id: MessageId, is_match: Option<bool>) -> Result<bool> {
        self.candidate_count += 1;
        if self.candidate_count.is_multiple_of(CANDIDATES_PER_CHECK) {
            check_cancelled(self.query)?;
        }
        Ok(is_match == Some(false) || self.found_from.is_some_and(|first| id >= first))
    }

    /// Adds a message if its mailbox is permitted. If it is not known whether it matches, the message is read. Returns
    /// `Break` if the query ends here. Fails if the query was cancelled.
    fn add(&mut self, message: IndexedMessage, is_known: bool) -> Result<ControlFlow<()>> {
        if !(self.query.is_permitted)(&message.mailbox) {
            return Ok(ControlFlow::Continue(()));
        }
        if self.matches.messages.len() == self.query.limit {
            self.matches.next = self.matches.messages.last().map(|message| message.id);
            return Ok(ControlFlow::Break(()));
        }
        let id = message.id;
        let is_match = if is_known { Some(true) } else { (self.query.matches_message)(&message.mailbox, id) };
        let Some(is_match) = is_match else { return Ok(ControlFlow::Break(())) };
        if is_match {
            if let Some(message_of) = self.query.message_of {
                check_cancelled(self.query)?;
                self.found_from = message_of(&message.mailbox, id).or(self.found_from);
            }
            self.matches.messages.push(message);
        }
        if !is_known {
            check_cancelled(self.query)?;
            let deadline = *self.read_deadline.get_or_insert_with(|| Instant::now() + READ_TIMEOUT);
            if Instant::now() >= deadline {
                self.matches.next = Some(id);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Returns the lowest id that can match. The id of a message is never below the microsecond of its arrival.
fn min_id(query: &Query) -> i64 {
    let lowest = |term: &Term| match term {
        Term::After(time) => time.as_microsecond(),
        _ => 0,
    };
    query.evaluate(lowest, |_| 0, i64::max, i64::min).unwrap_or(0)
}

/// Fails if the deadline has passed, or if the caller is gone.
fn check_cancelled(query: &IndexQuery<'_>) -> Result<()> {
    if query.is_cancelled() {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None));
    }
    Ok(())
}
