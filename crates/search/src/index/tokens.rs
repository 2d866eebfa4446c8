//! The tokens of documents in the full-text table. A token is the number of the partition, a letter for the column, and
//! the word. So the words of a column with the same prefix are adjacent, and there is no need to store columns.

use std::fmt::{self, Write as _};

use crate::document::{Column, Document, MARKER};

/// The token that every document has.
pub(super) const ANY: &str = "x";
/// The token of documents with an attachment.
pub(super) const ATTACHMENT: &str = "a";
/// Punctuation and capital letters in mailbox names are mapped to private-use characters from here on, because the tokenizer
/// would split the name and convert it to lower case.
const PRIVATE_USE_START: char = '\u{e000}';
/// Precedes a private-use character that a mailbox name itself contains, if it is in the range up to this one.
const ESCAPE: char = '\u{e080}';
/// The number of recent tokens that are compared with a new one. It is a power of two.
const MAX_RECENT_TOKENS: usize = 1024;
/// The number of bytes of memory for tokens that are kept between two documents.
const MAX_KEPT_BYTES: usize = 64 << 10;

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
            _ if c.is_ascii_lowercase() || c.is_ascii_digit() || !c.is_ascii() => token.push(c),
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

/// Writes the tokens of documents. The full-text table ignores a token that a document already has, but it costs less to
/// leave out most of them here.
pub(super) struct TokenWriter {
    /// The tokens of the current document, with a space before each.
    text: String,
    /// A space, the number of the partition, and the letter of the column.
    prefix: String,
    /// Positions of tokens in `text`, by their hashes. They can be those of an earlier document, so the text is compared.
    recent: Box<[u32; MAX_RECENT_TOKENS]>,
}

impl Default for TokenWriter {
    fn default() -> Self {
        Self { text: String::new(), prefix: String::new(), recent: Box::new([0; MAX_RECENT_TOKENS]) }
    }
}

impl TokenWriter {
    /// Returns the tokens of a document in a partition, separated by spaces.
    pub(super) fn document(&mut self, document: &Document<'_>, partition: i64) -> &str {
        self.text.clear();
        self.text.shrink_to(MAX_KEPT_BYTES);
        self.prefix.clear();
        // Writing to a string does not fail.
        let _ = write!(self.prefix, " {partition}");
        self.add(&[ANY]);
        self.add(&[&mailbox(document.summary().mailbox.as_str())]);
        if document.has_attachment() {
            self.add(&[ATTACHMENT]);
        }
        for column in Column::ALL {
            self.prefix.push(letter(column));
            document.for_each_indexed_word(column, |parts| {
                // A marker without a name only separates words.
                if parts != [MARKER] {
                    self.add(parts);
                }
            });
            self.prefix.pop();
        }
        &self.text
    }

    /// Adds a token, unless it was added recently.
    fn add(&mut self, parts: &[&str]) {
        let start = self.text.len();
        self.text.push_str(&self.prefix);
        self.text.extend(parts.iter().copied());
        let (before, token) = self.text.as_bytes().split_at(start);
        let recent = &mut self.recent[hash(token)];
        // Another token or the new one follows each token, so a space follows.
        let is_repeated = before.get(*recent as usize..).is_some_and(|before| {
            before.starts_with(token) && before.get(token.len()).is_none_or(|next| *next == b' ')
        });
        if is_repeated {
            self.text.truncate(start);
        } else {
            *recent = u32::try_from(start).unwrap_or(0);
        }
    }
}

/// Returns a number below [`MAX_RECENT_TOKENS`]. Different tokens with the same number only cost time.
fn hash(token: &[u8]) -> usize {
    let (chunks, rest) = token.as_chunks::<8>();
    let numbers = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).chain(rest.iter().copied().map(u64::from));
    let hash = numbers.fold(0, |hash: u64, number| (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The high bits depend on all bytes. They always fit.
    usize::try_from(hash >> (u64::BITS - MAX_RECENT_TOKENS.ilog2())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_tokens_are_left_out() {
        let mut writer = TokenWriter { prefix: " 1b".to_owned(), ..TokenWriter::default() };
        for (words, expected) in [
            (["ab", "abc", "ab", "a", "abc", "bc"], " 1bab 1babc 1ba 1bbc"),
            (["abc", "ab", "a", "a", "x", "abc"], " 1babc 1bab 1ba 1bx"),
            (["abcd", "abc", "ab", "bc", "abc", "abcd"], " 1babcd 1babc 1bab 1bbc"),
        ] {
            writer.text.clear();
            for word in words {
                writer.add(&[word]);
            }
            assert_eq!(writer.text, expected);
        }
    }

    #[test]
    fn mailboxes_have_different_tokens() {
        let names = [
            "a.b",
            "a b",
            "ab",
            "a\u{e02e}b",
            "a\u{e080}b",
            "a\u{e080}.b",
            "a\u{e080}\u{e02e}b",
            "a\u{e081}b",
            "a,B",
            "a,b",
        ];
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
