//! The tokens of documents in the full-text table. A token is the number of the partition, a letter for the column, and
//! the word. So the words of a column with the same prefix are adjacent, and there is no need to store columns.

use std::fmt;

use super::Entry;
use crate::document::{Column, MARKER};

/// The token that every document has.
pub(super) const ANY: &str = "x";
/// The token of documents with an attachment.
pub(super) const ATTACHMENT: &str = "a";
/// Punctuation in mailbox names is mapped to private-use characters from here on, because the tokenizer would split the
/// name.
const PRIVATE_USE_START: u32 = 0xe000;

/// Matches a token, or all tokens that start with it. Displays as an expression of the full-text table.
pub(super) struct TokenPattern {
    pub(super) text: String,
    pub(super) is_prefix: bool,
}

impl fmt::Display for TokenPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

/// Returns the token of a word, or of a marker, in a column.
pub(super) fn word(column: Column, word: &str) -> String {
    format!("{}{word}", letter(column))
}

/// Returns the token of the documents in a mailbox.
pub(super) fn mailbox(name: &str) -> String {
    let is_punctuation = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    let mapped =
        |c: char| if is_punctuation(c) { char::from_u32(PRIVATE_USE_START + u32::from(c)).unwrap_or(c) } else { c };
    std::iter::once('m').chain(name.chars().map(mapped)).collect()
}

fn letter(column: Column) -> char {
    match column {
        Column::From => 'f',
        Column::To => 't',
        Column::Cc => 'c',
        Column::Subject => 's',
        Column::Body => 'b',
        Column::Filename => 'n',
        Column::Header => 'h',
    }
}

/// Returns all tokens of a document in a partition, separated by spaces.
pub(super) fn document(entry: &Entry, partition: i64) -> String {
    let mut tokens = format!("{partition}{ANY} {partition}{}", mailbox(entry.summary.mailbox.as_str()));
    if entry.has_attachment {
        tokens.push_str(&format!(" {partition}{ATTACHMENT}"));
    }
    for (column, text) in Column::ALL.into_iter().zip(&entry.texts) {
        let start = format!(" {partition}{}", letter(column));
        // A marker without a name only separates words.
        for word in text.split_ascii_whitespace().filter(|word| *word != MARKER) {
            tokens.push_str(&start);
            tokens.push_str(word);
        }
    }
    tokens
}
