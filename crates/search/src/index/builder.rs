//! Collects the terms of new documents.
//!
//! A term is a word and its column. Its key is the word followed by one byte for the column. No word contains such a
//! byte, so that the keys of a word in all columns are adjacent, and so are those of all words with the same prefix.

use std::collections::HashMap;

use rusqlite::Result;

use super::Entry;
use super::postings::Postings;
use crate::document::{Column, is_marker};

/// The byte that follows a fact in its key: the mailbox, the presence of a header field, and so on. Facts have no
/// positions.
pub(super) const FACT_COLUMN: u8 = 1 + Column::Header as u8;
/// The fact of documents with an attachment.
pub(super) const ATTACHMENT_FACT: &str = "¤attachment";
/// The first character of the fact that names the mailbox.
const MAILBOX_PREFIX: char = '§';

/// The terms of new documents.
#[derive(Default)]
pub(super) struct TermsBuilder {
    /// The number of each key, in the order of its first occurrence.
    numbers: HashMap<Box<[u8]>, u32>,
    /// The occurrences of terms in the order of documents, columns and positions.
    occurrences: Vec<Occurrence>,
    /// The number of documents.
    count: u32,
    /// The key of the current term.
    key: Vec<u8>,
}

/// One occurrence of a term in a document. Facts have the position zero.
#[derive(Clone, Copy, Default)]
struct Occurrence {
    term: u32,
    document: u32,
    position: u32,
}

/// Returns the fact that a document is in this mailbox.
pub(super) fn mailbox_fact(name: &str) -> String {
    format!("{MAILBOX_PREFIX}{name}")
}

impl TermsBuilder {
    /// Adds a document. Documents are numbered in the order of these calls, from zero.
    pub(super) fn add(&mut self, entry: &Entry) {
        for (column, text) in Column::ALL.into_iter().zip(&entry.texts) {
            let words = text.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            for (position, word) in (0..).zip(words) {
                if !is_marker(word) {
                    self.add_term(word, column as u8, position);
                } else if column == Column::Header {
                    self.add_term(word, FACT_COLUMN, 0);
                }
            }
        }
        self.add_term(mailbox_fact(entry.summary.mailbox.as_str()).as_bytes(), FACT_COLUMN, 0);
        if entry.has_attachment {
            self.add_term(ATTACHMENT_FACT.as_bytes(), FACT_COLUMN, 0);
        }
        self.count += 1;
    }

    /// Calls `write` with each key and its postings, in the ascending order of the keys.
    pub(super) fn finish(self, mut write: impl FnMut(&[u8], &Postings) -> Result<()>) -> Result<()> {
        let (ends, occurrences) = group_by_term(self.numbers.len(), &self.occurrences);
        let mut terms: Vec<_> = self.numbers.into_iter().collect();
        terms.sort_unstable();
        let mut postings = Postings::default();
        for (key, number) in terms {
            let number = number as usize;
            let start = number.checked_sub(1).map_or(0, |previous| ends[previous]);
            let has_positions = key.last() != Some(&FACT_COLUMN);
            postings.clear();
            for document in occurrences[start..ends[number]].chunk_by(|left, right| left.document == right.document) {
                push_document(&mut postings, document, has_positions);
            }
            write(&key, &postings)?;
        }
        Ok(())
    }

    fn add_term(&mut self, word: &[u8], column: u8, position: u32) {
        self.key.clear();
        self.key.extend_from_slice(word);
        self.key.push(column);
        let term = if let Some(number) = self.numbers.get(self.key.as_slice()) {
            *number
        } else {
            let number = to_u32(self.numbers.len());
            self.numbers.insert(self.key.as_slice().into(), number);
            number
        };
        self.occurrences.push(Occurrence { term, document: self.count, position });
    }
}

/// Groups occurrences by term. Those of a term stay in their order. Returns where the group of each term ends, too.
fn group_by_term(term_count: usize, occurrences: &[Occurrence]) -> (Vec<usize>, Vec<Occurrence>) {
    let mut positions = vec![0; term_count];
    for occurrence in occurrences {
        positions[occurrence.term as usize] += 1;
    }
    let mut start = 0;
    for position in &mut positions {
        start += std::mem::replace(position, start);
    }
    let mut grouped = vec![Occurrence::default(); occurrences.len()];
    for &occurrence in occurrences {
        let position = &mut positions[occurrence.term as usize];
        grouped[*position] = occurrence;
        *position += 1;
    }
    (positions, grouped)
}

/// Converts a number of terms or occurrences. A batch of messages is limited, so it is always small enough.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Appends a document, given all occurrences of the term in it.
fn push_document(postings: &mut Postings, occurrences: &[Occurrence], has_positions: bool) {
    let Some(first) = occurrences.first() else { return };
    if !has_positions {
        // The fact is repeated if a message has two header fields of the same name.
        postings.push_document(first.document, 1);
        return;
    }
    let mut last = 0;
    for occurrence in occurrences {
        postings.push_position(occurrence.position - last);
        last = occurrence.position;
    }
    postings.push_document(first.document, to_u32(occurrences.len()));
}
