//! Runs queries on the index.
//!
//! A query is evaluated once per segment, on sets of documents. Most terms on texts are known from the segment alone.
//! Other terms depend on the row of a document, and those on header fields that are not in the index on the message
//! itself. So the result of a segment is two sets: the documents that match in any case, and those that may match. Rows
//! are read from the newest document on until there are enough results, and messages only if the row is not enough.
//! Segments that have only older documents are not read then.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use rusqlite::{Connection, Error, Result, Row, ffi, params};

use super::bitmap::Bitmap;
use super::builder::{ATTACHMENT_FACT, FACT_COLUMN, mailbox_fact};
use super::postings::EncodedPostings;
use super::segment::{Segment, damage};
use super::{IndexQuery, IndexedMessage, Matches};
use crate::document::Column;
use crate::query::{Phrase, Query, Term};

/// The maximum number of positions of a word in a segment that are compared. If there are more, the messages are read.
const MAX_POSITIONS: usize = 1 << 20;
/// The number of candidates of a segment that are sorted at a time.
const CANDIDATES_PER_CHUNK: usize = 1024;
/// The number of candidates between two checks of the deadline.
const CANDIDATES_PER_CHECK: usize = 256;
/// The time in which messages are read. A query that needs more time returns what it found, and where to continue.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the matching messages, newest first.
pub(super) fn find(connection: &mut Connection, query: &IndexQuery<'_>) -> Result<Matches> {
    // All statements read the same version of the index.
    let transaction = connection.transaction()?;
    let mut results = Results::new(query);
    if query.mailbox.is_none() && !query.query.terms().any(is_indexed) {
        scan_documents(&transaction, &mut results)?;
        return Ok(results.matches);
    }
    let mut candidates = Candidates::new(&transaction, query)?;
    let sql = "SELECT id, mailbox, delay, size, seen, tags FROM documents WHERE id = ?1";
    let mut select = transaction.prepare_cached(sql)?;
    while let Some(candidate) = candidates.next()? {
        if results.skips_copy(candidate.id)? {
            continue;
        }
        let mut rows = select.query([candidate.id])?;
        let document = Document::from_row(rows.next()?.ok_or_else(damage)?)?;
        let is_match = if candidate.is_match { Some(true) } else { candidates.evaluate(&candidate, &document) };
        if results.add(document, is_match)?.is_break() {
            break;
        }
    }
    Ok(results.matches)
}

/// Runs a query without terms that are in segments.
fn scan_documents(connection: &Connection, results: &mut Results<'_>) -> Result<()> {
    let query = results.query;
    let sql = "SELECT id, mailbox, delay, size, seen, tags FROM documents WHERE id < ?1 AND id >= ?2 ORDER BY id DESC";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params![to_i64(query.before.number()), to_i64(min_id(query.query))])?;
    while let Some(row) = rows.next()? {
        if results.skips_copy(row.get(0)?)? {
            continue;
        }
        let document = Document::from_row(row)?;
        let is_match = query.query.evaluate_known(|term| Some(document.matches(term)));
        if results.add(document, is_match)?.is_break() {
            break;
        }
    }
    Ok(())
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

    /// Returns whether a document is another copy of a message that was found, and is left out. Fails if the query was
    /// cancelled.
    fn skips_copy(&mut self, id: u64) -> Result<bool> {
        let is_skipped = self.found_from.is_some_and(|first| MessageId::from(id) >= first);
        if is_skipped {
            self.count_candidate()?;
        }
        Ok(is_skipped)
    }

    /// Counts a candidate. Fails if the query was cancelled.
    fn count_candidate(&mut self) -> Result<()> {
        self.candidate_count += 1;
        if self.candidate_count.is_multiple_of(CANDIDATES_PER_CHECK) { check_cancelled(self.query) } else { Ok(()) }
    }

    /// Adds a document if it matches and its mailbox is permitted. If it is not known whether it matches, the message
    /// is read. Returns `Break` if the query ends here. Fails if the query was cancelled.
    fn add(&mut self, document: Document, is_match: Option<bool>) -> Result<ControlFlow<()>> {
        self.count_candidate()?;
        if is_match == Some(false) || !(self.query.is_permitted)(&document.mailbox) {
            return Ok(ControlFlow::Continue(()));
        }
        if self.matches.messages.len() == self.query.limit {
            self.matches.next = self.matches.messages.last().map(|message| message.id);
            return Ok(ControlFlow::Break(()));
        }
        let id = document.id.into();
        match is_match.or_else(|| (self.query.matches_message)(&document.mailbox, id)) {
            Some(true) => {
                let Document { mailbox, seen, tags, .. } = document;
                if let Some(message_of) = self.query.message_of {
                    check_cancelled(self.query)?;
                    self.found_from = message_of(&mailbox, id).or(self.found_from);
                }
                self.matches.messages.push(IndexedMessage { mailbox, id, seen, tags });
            }
            Some(false) => {}
            None => return Ok(ControlFlow::Break(())),
        }
        if is_match.is_none() {
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

/// A row of the table of documents.
struct Document {
    id: u64,
    mailbox: MailboxName,
    /// Unix microseconds.
    received: i64,
    size: u64,
    seen: bool,
    tags: Tags,
}

impl Document {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (id, delay): (u64, i64) = (row.get(0)?, row.get(2)?);
        let mailbox = MailboxName::from(row.get::<_, String>(1)?);
        let (size, seen, tags) = (row.get(3)?, row.get(4)?, Tags::from_encoded(row.get_ref(5)?.as_str()?));
        Ok(Self { id, mailbox, received: to_i64(id).saturating_sub(delay), size, seen, tags })
    }

    /// Returns true if the document matches a term that is not in segments.
    fn matches(&self, term: &Term) -> bool {
        match term {
            Term::Seen(seen) => self.seen == *seen,
            Term::Before(time) => self.received < time.as_microsecond(),
            Term::After(time) => self.received >= time.as_microsecond(),
            Term::Larger(bytes) => self.size > *bytes,
            Term::Smaller(bytes) => self.size < *bytes,
            Term::Words { .. }
            | Term::Field(_)
            | Term::FieldWords { .. }
            | Term::Mailbox { .. }
            | Term::Tag(_)
            | Term::Attachment => false,
        }
    }
}

/// A document that may match.
struct Candidate {
    id: u64,
    /// The position of the segment in the list of open ones.
    segment: usize,
    /// The number of the document in the segment.
    number: u32,
    /// True if the document matches, whatever its row contains.
    is_match: bool,
}

/// The documents that may match, newest first.
struct Candidates<'a> {
    connection: &'a Connection,
    query: &'a IndexQuery<'a>,
    /// Only documents from this id on can match.
    min_id: u64,
    /// The segments that were not read yet. The one with the highest id is the last one.
    segments: Vec<Segment>,
    open: Vec<OpenSegment>,
    /// The next candidate of each open segment, and the position of the segment.
    next: BinaryHeap<(u64, usize)>,
}

impl<'a> Candidates<'a> {
    fn new(connection: &'a Connection, query: &'a IndexQuery<'a>) -> Result<Self> {
        let (before, min_id) = (query.before.number(), min_id(query.query));
        let mut segments = Segment::list(connection)?;
        segments.retain(|segment| segment.first_id < before && segment.last_id >= min_id);
        segments.sort_unstable_by_key(|segment| segment.last_id);
        Ok(Self { connection, query, min_id, segments, open: Vec::new(), next: BinaryHeap::new() })
    }

    /// Returns the next candidate.
    fn next(&mut self) -> Result<Option<Candidate>> {
        // The next candidate may be in a segment that has a higher id than the candidates so far.
        while let Some(segment) =
            self.segments.pop_if(|segment| self.next.peek().is_none_or(|(id, _)| *id < segment.last_id))
        {
            check_cancelled(self.query)?;
            let mut open = OpenSegment::new(self.connection, segment, self.query)?;
            if let Some(id) = open.peek(self.connection, self.min_id)? {
                self.next.push((id, self.open.len()));
                self.open.push(open);
            }
        }
        let Some((id, segment)) = self.next.pop() else { return Ok(None) };
        let open = &mut self.open[segment];
        let number = open.pop();
        let is_match = open.matching.contains(number);
        if let Some(id) = open.peek(self.connection, self.min_id)? {
            self.next.push((id, segment));
        }
        Ok(Some(Candidate { id, segment, number, is_match }))
    }

    /// Returns whether a candidate matches the query, or `None` if its row is not enough to decide that.
    fn evaluate(&self, candidate: &Candidate, document: &Document) -> Option<bool> {
        let mut results = self.open[candidate.segment].term_results.iter();
        self.query.query.evaluate_known(|term| match results.next() {
            Some(TermResult::Exactly(documents)) => Some(documents.contains(candidate.number)),
            Some(TermResult::AtMost(documents)) => (!documents.contains(candidate.number)).then_some(false),
            Some(TermResult::Unknown) | None => Some(document.matches(term)),
        })
    }
}

/// The documents of a segment that match a term.
enum TermResult {
    /// These documents match.
    Exactly(Bitmap),
    /// Some of these documents match. It depends on the messages.
    AtMost(Bitmap),
    /// Any document can match. It depends on the rows.
    Unknown,
}

/// A segment whose candidates are known.
struct OpenSegment {
    segment: Segment,
    /// The ids of the documents. Empty until they are needed.
    ids: Vec<u64>,
    /// The documents that match, whatever their rows and messages contain.
    matching: Bitmap,
    /// The documents that may match.
    candidates: Bitmap,
    /// The result of each term. Empty if all candidates match.
    term_results: Vec<TermResult>,
    /// The next candidates, in ascending order.
    chunk: Vec<(u64, u32)>,
    /// Candidates from this id on were returned, or are in `chunk`.
    chunk_start: u64,
}

impl OpenSegment {
    fn new(connection: &Connection, segment: Segment, query: &IndexQuery<'_>) -> Result<Self> {
        let count = segment.count;
        let mut term_results = Vec::new();
        for term in query.query.terms() {
            check_cancelled(query)?;
            term_results.push(term_result(connection, &segment, term)?);
        }
        let mut results = term_results.iter();
        // Two sets: the documents that match, and those that may match.
        let leaf = |_: &Term| match results.next() {
            Some(TermResult::Exactly(documents)) => (documents.clone(), documents.clone()),
            Some(TermResult::AtMost(documents)) => (Bitmap::new(count), documents.clone()),
            Some(TermResult::Unknown) | None => (Bitmap::new(count), Bitmap::full(count)),
        };
        let everything = || (Bitmap::full(count), Bitmap::full(count));
        let (matching, mut candidates) = query
            .query
            .evaluate(
                leaf,
                |(matching, candidates)| (candidates.not(), matching.not()),
                |left, right| (left.0.and(&right.0), left.1.and(&right.1)),
                |left, right| (left.0.or(&right.0), left.1.or(&right.1)),
            )
            .unwrap_or_else(everything);
        if let Some(mailbox) = query.mailbox {
            let fact = mailbox_fact(mailbox.as_str());
            candidates = candidates.and(&fact_documents(connection, &segment, &fact, false)?);
        }
        candidates = candidates.and(&segment.deleted.clone().not());
        if candidates == matching.clone().and(&candidates) {
            term_results.clear();
        }
        let (ids, chunk, chunk_start) = (Vec::new(), Vec::new(), query.before.number());
        Ok(Self { segment, ids, matching, candidates, term_results, chunk, chunk_start })
    }

    /// Returns the id of the next candidate, if it is not below `min_id`.
    fn peek(&mut self, connection: &Connection, min_id: u64) -> Result<Option<u64>> {
        if self.chunk.is_empty() && !self.candidates.is_empty() {
            self.read_chunk(connection, min_id)?;
        }
        Ok(self.chunk.last().map(|(id, _)| *id))
    }

    /// Removes the next candidate and returns its number. There must be one.
    fn pop(&mut self) -> u32 {
        self.chunk.pop().map_or(0, |(_, number)| number)
    }

    /// Reads the next candidates: those with the highest ids below `chunk_start`.
    fn read_chunk(&mut self, connection: &Connection, min_id: u64) -> Result<()> {
        if self.ids.is_empty() {
            self.ids = self.segment.ids(connection)?;
        }
        let (ids, range) = (&self.ids, min_id..self.chunk_start);
        let candidates = self.candidates.iter().map(|number| (ids[number as usize], number));
        self.chunk.extend(candidates.filter(|(id, _)| range.contains(id)));
        let rest = self.chunk.len().saturating_sub(CANDIDATES_PER_CHUNK);
        if rest > 0 {
            self.chunk.select_nth_unstable(rest);
            self.chunk.drain(..rest);
        }
        self.chunk.shrink_to_fit();
        self.chunk.sort_unstable();
        // Without a candidate there is nothing left in the range.
        self.chunk_start = self.chunk.first().map_or(min_id, |(id, _)| *id);
        Ok(())
    }
}

/// Returns true if segments have documents that match the term.
fn is_indexed(term: &Term) -> bool {
    match term {
        Term::Words { .. }
        | Term::Field(_)
        | Term::FieldWords { .. }
        | Term::Mailbox { .. }
        | Term::Tag(_)
        | Term::Attachment => true,
        Term::Seen(_) | Term::Before(_) | Term::After(_) | Term::Larger(_) | Term::Smaller(_) => false,
    }
}

fn term_result(connection: &Connection, segment: &Segment, term: &Term) -> Result<TermResult> {
    let documents = match term {
        Term::Words { columns, phrase } => return phrase_documents(connection, segment, columns, phrase),
        Term::FieldWords { phrase, is_indexed: true, .. } => {
            return phrase_documents(connection, segment, &[Column::Header], phrase);
        }
        Term::FieldWords { marker, is_indexed: false, .. } => {
            return fact_documents(connection, segment, marker, false).map(TermResult::AtMost);
        }
        Term::Field(marker) => fact_documents(connection, segment, marker, false)?,
        Term::Mailbox { name, is_prefix } => fact_documents(connection, segment, &mailbox_fact(name), *is_prefix)?,
        Term::Attachment => fact_documents(connection, segment, ATTACHMENT_FACT, false)?,
        Term::Tag(tag) => tagged_documents(connection, segment, tag)?,
        Term::Seen(_) | Term::Before(_) | Term::After(_) | Term::Larger(_) | Term::Smaller(_) => {
            return Ok(TermResult::Unknown);
        }
    };
    Ok(TermResult::Exactly(documents))
}

fn fact_documents(connection: &Connection, segment: &Segment, fact: &str, is_prefix: bool) -> Result<Bitmap> {
    let mut documents = Bitmap::new(segment.count);
    for_each_term(connection, segment, fact, is_prefix, |column, postings| {
        if column == FACT_COLUMN { insert_documents(&mut documents, postings) } else { Ok(()) }
    })?;
    Ok(documents)
}

/// Returns the documents with a tag. Tags can change, so they are in a table and not in the segment.
fn tagged_documents(connection: &Connection, segment: &Segment, tag: &str) -> Result<Bitmap> {
    let mut select =
        connection.prepare_cached("SELECT id FROM tags WHERE tag = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id")?;
    let range = params![tag, to_i64(segment.first_id), to_i64(segment.last_id)];
    let tagged: Vec<u64> = select.query_map(range, |row| row.get(0))?.collect::<Result<_>>()?;
    let mut documents = Bitmap::new(segment.count);
    if !tagged.is_empty() {
        for (id, number) in segment.ids(connection)?.iter().zip(0..) {
            if tagged.binary_search(id).is_ok() {
                documents.insert(number);
            }
        }
    }
    Ok(documents)
}

fn phrase_documents(
    connection: &Connection,
    segment: &Segment,
    columns: &[Column],
    phrase: &Phrase,
) -> Result<TermResult> {
    let is_searched = |column: u8| columns.iter().any(|&searched| searched as u8 == column);
    let mut candidates = Bitmap::full(segment.count);
    for (word, is_prefix) in phrase.words_with_prefix() {
        let mut documents = Bitmap::new(segment.count);
        for_each_term(connection, segment, word, is_prefix, |column, postings| {
            if is_searched(column) { insert_documents(&mut documents, postings) } else { Ok(()) }
        })?;
        candidates = candidates.and(&documents);
        if candidates.is_empty() {
            return Ok(TermResult::Exactly(candidates));
        }
    }
    if phrase.words.len() == 1 {
        return Ok(TermResult::Exactly(candidates));
    }
    // The positions at which the words so far begin, in each column.
    let mut starts = Vec::new();
    for (offset, (word, is_prefix)) in (0..).zip(phrase.words_with_prefix()) {
        let mut found = Vec::new();
        for_each_term(connection, segment, word, is_prefix, |column, postings| {
            if !is_searched(column) {
                return Ok(());
            }
            let visit = |document, position: u32| {
                // One more than the limit shows that it is exceeded.
                if let Some(start) = position.checked_sub(offset).filter(|_| found.len() <= MAX_POSITIONS) {
                    found.push((document, column, start));
                }
            };
            postings.for_each_position(|document| candidates.contains(document), visit).ok_or_else(damage)
        })?;
        if found.len() > MAX_POSITIONS {
            return Ok(TermResult::AtMost(candidates));
        }
        found.sort_unstable();
        starts = if offset == 0 { found } else { intersect(&starts, &found) };
    }
    let mut documents = Bitmap::new(segment.count);
    for (document, ..) in starts {
        documents.insert(document);
    }
    Ok(TermResult::Exactly(documents))
}

/// Returns the elements that are in both sorted lists.
fn intersect<T: Ord + Copy>(left: &[T], right: &[T]) -> Vec<T> {
    let mut rest = right.iter().peekable();
    let is_in_right = |element: &&T| {
        while rest.next_if(|other| other < element).is_some() {}
        rest.peek() == Some(element)
    };
    left.iter().filter(is_in_right).copied().collect()
}

/// Calls `visit` with the column and the postings of each term of a word, or of all words that start with it.
fn for_each_term(
    connection: &Connection,
    segment: &Segment,
    word: &str,
    is_prefix: bool,
    mut visit: impl FnMut(u8, EncodedPostings<'_>) -> Result<()>,
) -> Result<()> {
    segment.scan(connection, word.as_bytes(), |key, postings| {
        let Some((column, found)) = key.split_last() else { return Err(damage()) };
        let is_match = if is_prefix { found.starts_with(word.as_bytes()) } else { found == word.as_bytes() };
        if !is_match {
            return Ok(ControlFlow::Break(()));
        }
        visit(*column, postings)?;
        Ok(ControlFlow::Continue(()))
    })
}

fn insert_documents(documents: &mut Bitmap, postings: EncodedPostings<'_>) -> Result<()> {
    postings.for_each(|document, _| documents.insert(document).then_some(())).ok_or_else(damage)
}

/// Returns the lowest id that can match. The id of a message is never below the microsecond of its arrival.
fn min_id(query: &Query) -> u64 {
    let lowest = |term: &Term| match term {
        Term::After(time) => u64::try_from(time.as_microsecond()).unwrap_or(0),
        _ => 0,
    };
    query.evaluate(lowest, |_| 0, u64::max, u64::min).unwrap_or(0)
}

/// Fails if the deadline has passed, or if the caller is gone.
fn check_cancelled(query: &IndexQuery<'_>) -> Result<()> {
    if query.is_cancelled() {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None));
    }
    Ok(())
}

/// Converts a number to the integer type of the database.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
