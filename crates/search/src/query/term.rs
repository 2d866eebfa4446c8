//! One term of a query: its meaning, how it is parsed, and whether a message matches it.

use jiff::Timestamp;
use restante_mail::naming::canonical_prefix;

use super::lexer::RawTerm;
use super::{QueryError, size, time};
use crate::document::{Column, Document, field_marker, field_word, is_field_indexed};
use crate::words;

/// The columns that are searched if no field is given.
const DEFAULT_COLUMNS: &[Column] = &[Column::From, Column::To, Column::Cc, Column::Subject, Column::Body];
/// The valid field names.
const FIELD_NAMES: &str =
    "from, to, cc, subject, body, filename, header, mailbox, tag, has, is, before, after, larger, smaller";

/// A condition on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// One of these columns contains this phrase.
    Words { columns: &'static [Column], phrase: Phrase },
    /// The message has the header field of this marker.
    Field(String),
    /// A header field contains this phrase. `marker` is that of the field.
    FieldWords { marker: String, phrase: Phrase, is_indexed: bool },
    /// The mailbox has this name, or a name that begins with it.
    Mailbox { name: String, is_prefix: bool },
    /// The message has this tag, in lower case.
    Tag(String),
    /// The message has an attachment.
    Attachment,
    /// The message is marked as read, or is not.
    Seen(bool),
    /// The message was received before this time.
    Before(Timestamp),
    /// The message was received at this time or later.
    After(Timestamp),
    /// The message is larger than this number of bytes.
    Larger(u64),
    /// The message is smaller than this number of bytes.
    Smaller(u64),
}

/// Consecutive words of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// At least one word.
    pub(crate) words: Vec<String>,
    /// True if longer words that start like the last word match too.
    pub(crate) is_prefix: bool,
}

impl Phrase {
    /// Returns the words, and for each of them whether longer words match too.
    pub(crate) fn words_with_prefix(&self) -> impl Iterator<Item = (&str, bool)> {
        let last = self.words.len() - 1;
        self.words.iter().enumerate().map(move |(position, word)| (word.as_str(), self.is_prefix && position == last))
    }

    /// Returns true if the text of a column contains the phrase.
    fn is_in(&self, text: &str) -> bool {
        let end = if self.is_prefix { "" } else { " " };
        text.contains(&format!(" {}{end}", self.words.join(" ")))
    }
}

impl Term {
    /// Returns true if the summary is not enough to evaluate the term.
    pub(super) fn needs_source(&self) -> bool {
        match self {
            Self::Words { columns, .. } => columns.iter().any(|column| !column.is_in_summary()),
            Self::Field(_) | Self::FieldWords { .. } | Self::Attachment => true,
            _ => false,
        }
    }

    /// Returns the phrase that the term searches in the body, if any.
    pub(super) fn phrase_in_body(&self) -> Option<&Phrase> {
        match self {
            Self::Words { columns, phrase } => columns.contains(&Column::Body).then_some(phrase),
            _ => None,
        }
    }

    pub(super) fn matches(&self, document: &Document<'_>) -> bool {
        let summary = document.summary();
        match self {
            Self::Words { columns, phrase } => columns.iter().any(|&column| phrase.is_in(document.text(column))),
            Self::Field(marker) => document.text(Column::Header).contains(&format!(" {marker} ")),
            Self::FieldWords { phrase, .. } => phrase.is_in(document.text(Column::Header)),
            Self::Mailbox { name, is_prefix: false } => summary.mailbox.as_str() == name,
            Self::Mailbox { name, is_prefix: true } => summary.mailbox.as_str().starts_with(name),
            Self::Tag(tag) => summary.tags.contains(tag),
            Self::Attachment => document.has_attachment(),
            Self::Seen(seen) => summary.seen == *seen,
            Self::Before(time) => summary.received.as_microsecond() < time.as_microsecond(),
            Self::After(time) => summary.received.as_microsecond() >= time.as_microsecond(),
            Self::Larger(bytes) => summary.size > *bytes,
            Self::Smaller(bytes) => summary.size < *bytes,
        }
    }
}

/// Parses the term at this byte of the query. Returns `None` for ASCII punctuation without a word. Other symbols
/// without a word, such as emoji, are an error, because they cannot be found.
pub(super) fn parse(text: &str, offset: usize, raw: &RawTerm<'_>, now: Timestamp) -> Result<Option<Term>, QueryError> {
    let field = raw.field.to_ascii_lowercase();
    let error = |message: String| Err(QueryError::new(text, raw.text_offset, message));
    let columns: &'static [Column] = match field.as_str() {
        "" => {
            return match default_term(raw.text, raw) {
                None if !raw.text.is_ascii() => error("this contains no word to search for".to_owned()),
                term => Ok(term),
            };
        }
        "from" => &[Column::From],
        "to" => &[Column::To],
        "cc" => &[Column::Cc],
        "subject" => &[Column::Subject],
        "body" => &[Column::Body],
        "filename" => &[Column::Filename],
        "header" => return parse_header(text, raw).map(Some),
        "mailbox" if raw.text.is_empty() => return error("the name of a mailbox must follow mailbox:".to_owned()),
        "mailbox" => return Ok(Some(Term::Mailbox { name: canonical_prefix(raw.text), is_prefix: raw.has_star })),
        "tag" if raw.text.trim().is_empty() => return error("a tag must follow tag:".to_owned()),
        "tag" if raw.has_star => return error("a tag must be given in full".to_owned()),
        "tag" => return Ok(Some(Term::Tag(raw.text.trim().to_lowercase()))),
        "has" | "is" | "before" | "after" | "larger" | "smaller" => {
            return parse_fact(&field, raw, now).map_or_else(error, |term| Ok(Some(term)));
        }
        // The prefix of a reply: `Re: Hello`.
        _ if raw.text.is_empty() && !raw.is_quoted => return Ok(default_term(raw.field, raw)),
        _ => {
            let message =
                format!("unknown field {field}; the fields are {FIELD_NAMES}; put a text with a colon in quotes");
            return Err(QueryError::new(text, offset, message));
        }
    };
    match parse_phrase(raw.text, raw) {
        Some(phrase) => Ok(Some(Term::Words { columns, phrase })),
        None => error(format!("a word must follow {field}:")),
    }
}

fn default_term(text: &str, raw: &RawTerm<'_>) -> Option<Term> {
    parse_phrase(text, raw).map(|phrase| Term::Words { columns: DEFAULT_COLUMNS, phrase })
}

/// Parses the words of a term. The last one is a prefix, unless the term is in quotation marks without a star.
fn parse_phrase(text: &str, raw: &RawTerm<'_>) -> Option<Phrase> {
    let words = words::split(text);
    (!words.is_empty()).then_some(Phrase { words, is_prefix: raw.has_star || !raw.is_quoted })
}

/// Parses `header:Name`, `header:Name=value` or `header:Name="a phrase"`.
fn parse_header(text: &str, raw: &RawTerm<'_>) -> Result<Term, QueryError> {
    let error = |message: &str| Err(QueryError::new(text, raw.text_offset, message));
    let (name, value) = match (raw.is_quoted, raw.text.split_once('=')) {
        (true, _) => (raw.before_quote.trim_end_matches('='), Some(raw.text)),
        (false, Some((name, value))) => (name, Some(value)),
        (false, None) => (raw.text, None),
    };
    if name.is_empty() {
        return error("the name of a header field must follow, as in header:X-Mailer or header:X-Mailer=word");
    }
    match value {
        None if raw.has_star => error("the name of a header field must be given in full"),
        None => Ok(Term::Field(field_marker(name))),
        Some(value) => match parse_phrase(value, raw) {
            None => error("a word must follow the equals sign"),
            Some(Phrase { words, is_prefix }) => {
                let words = words.iter().map(|word| field_word(name, word)).collect();
                let (marker, is_indexed) = (field_marker(name), is_field_indexed(name));
                Ok(Term::FieldWords { marker, phrase: Phrase { words, is_prefix }, is_indexed })
            }
        },
    }
}

/// Parses a term that is not about words.
fn parse_fact(field: &str, raw: &RawTerm<'_>, now: Timestamp) -> Result<Term, String> {
    let value = if raw.has_star { "" } else { raw.text };
    let term = match field {
        "has" => value.eq_ignore_ascii_case("attachment").then_some(Term::Attachment),
        "is" if value.eq_ignore_ascii_case("seen") => Some(Term::Seen(true)),
        "is" => value.eq_ignore_ascii_case("unseen").then_some(Term::Seen(false)),
        "before" => time::parse(value, now).map(Term::Before),
        "after" => time::parse(value, now).map(Term::After),
        "larger" => size::parse(value).map(Term::Larger),
        _ => size::parse(value).map(Term::Smaller),
    };
    term.ok_or_else(|| {
        let expected = match field {
            "has" => "attachment",
            "is" => "seen or unseen",
            "before" | "after" => {
                "a date such as 2026-11-15 or 2026-11-15T10:00Z, an age such as 30m, 2h or 7d, today or yesterday"
            }
            _ => "a size such as 500, 10k or 2M",
        };
        format!("{field}: must be followed by {expected}")
    })
}
