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
const PRIVATE_USE_START: char = '\u{e000}';
/// Precedes a private-use character that a mailbox name itself contains, if it is in the range up to this one.
const ESCAPE: char = '\u{e080}';

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

/// Returns the token of the documents in a mailbox. No other name has the same token, and a name that starts with this one
/// has a token that starts with this token.
pub(super) fn mailbox(name: &str) -> String {
    let mut token = "m".to_owned();
    for c in name.chars() {
        match c {
            PRIVATE_USE_START..=ESCAPE => token.extend([ESCAPE, c]),
            _ if c.is_alphanumeric() || !c.is_ascii() => token.push(c),
            _ => token.extend(char::from_u32(u32::from(PRIVATE_USE_START) + u32::from(c))),
        }
    }
    token
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
        tokens.extend([" ", &partition.to_string(), ATTACHMENT]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_have_different_tokens() {
        let names = ["a.b", "a b", "ab", "a\u{e02e}b", "a\u{e080}b", "a\u{e080}.b", "a\u{e080}\u{e02e}b", "a\u{e081}b"];
        for (position, name) in names.iter().enumerate() {
            let token = mailbox(name);
            assert!(token.chars().all(|c| c.is_ascii_alphanumeric() || !c.is_ascii()), "{name}: the token is one word");
            for other in &names[..position] {
                assert!(!token.starts_with(&mailbox(other)) && !mailbox(other).starts_with(&token), "{name}, {other}");
            }
            assert!(token.starts_with(&mailbox(&name[..1])));
        }
    }
}
