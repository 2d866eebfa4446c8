//! One term of a question: what it asks, how it is read, and whether a message answers it.

use jiff::Timestamp;
use restante_mail::naming::canonical_prefix;

use super::lexer::RawTerm;
use super::{QueryError, size, time};
use crate::document::{Column, Document, field_marker, field_word};
use crate::words;

/// Where a word is looked for when no field is named.
const DEFAULT_COLUMNS: &[Column] = &[Column::From, Column::To, Column::Cc, Column::Subject, Column::Body];
/// What can stand before a colon.
const FIELD_NAMES: &str =
    "from, to, cc, subject, body, filename, header, mailbox, has, is, before, after, larger, smaller";

/// What a term asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// Is this phrase in one of these columns?
    Words { columns: &'static [Column], phrase: Phrase },
    /// Is this the name of the mailbox, or the beginning of it?
    Mailbox { name: String, is_prefix: bool },
    /// Is something attached?
    Attachment,
    /// Was it marked as read, or not?
    Seen(bool),
    /// Was it received before this time?
    Before(Timestamp),
    /// Was it received at this time or later?
    After(Timestamp),
    /// Has it more bytes than this?
    Larger(u64),
    /// Has it fewer bytes than this?
    Smaller(u64),
}

/// Words that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// At least one.
    pub(crate) words: Vec<String>,
    /// Whether the last one may go on.
    pub(crate) is_prefix: bool,
}

impl Phrase {
    /// Whether it is in the text of a column.
    fn is_in(&self, text: &str) -> bool {
        let end = if self.is_prefix { "" } else { " " };
        text.contains(&format!(" {}{end}", self.words.join(" ")))
    }
}

impl Term {
    /// Whether the summary of a message is not enough to say.
    pub(super) fn needs_source(&self) -> bool {
        match self {
            Self::Words { columns, .. } => columns.iter().any(|column| !column.is_in_summary()),
            Self::Attachment => true,
            _ => false,
        }
    }

    /// The phrase that is looked for in the text of a mail, if one is.
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
            Self::Mailbox { name, is_prefix: false } => summary.mailbox.as_str() == name,
            Self::Mailbox { name, is_prefix: true } => summary.mailbox.as_str().starts_with(name),
            Self::Attachment => document.has_attachment(),
            Self::Seen(seen) => summary.seen == *seen,
            Self::Before(time) => summary.received.as_microsecond() < time.as_microsecond(),
            Self::After(time) => summary.received.as_microsecond() >= time.as_microsecond(),
            Self::Larger(bytes) => summary.size > *bytes,
            Self::Smaller(bytes) => summary.size < *bytes,
        }
    }
}

/// Reads the term that starts at this byte of a text. Signs that are no word are no term, but whoever asks for a picture is told
/// that it is not looked for.
pub(super) fn parse(text: &str, at: usize, raw: &RawTerm<'_>, now: Timestamp) -> Result<Option<Term>, QueryError> {
    let field = raw.field.to_ascii_lowercase();
    let wrong = |problem: String| Err(QueryError::new(text, raw.text_offset, problem));
    let columns: &'static [Column] = match field.as_str() {
        "" => {
            return match default_term(raw.text, raw.has_star) {
                None if !raw.text.is_ascii() => wrong("there is no word in this".to_owned()),
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
        "mailbox" if raw.text.is_empty() => return wrong("the name of a mailbox must follow".to_owned()),
        "mailbox" => return Ok(Some(Term::Mailbox { name: canonical_prefix(raw.text), is_prefix: raw.has_star })),
        "has" | "is" | "before" | "after" | "larger" | "smaller" => {
            return parse_fact(&field, raw, now).map_or_else(wrong, |term| Ok(Some(term)));
        }
        // The beginning of an answer: `Re: Hello`.
        _ if raw.text.is_empty() && !raw.is_quoted => return Ok(default_term(raw.field, raw.has_star)),
        _ => {
            let problem =
                format!("there is no field {field}, but {FIELD_NAMES}; a text with a colon is written in quotes");
            return Err(QueryError::new(text, at, problem));
        }
    };
    match parse_phrase(raw.text, raw.has_star) {
        Some(phrase) => Ok(Some(Term::Words { columns, phrase })),
        None => wrong(format!("a word must follow {field}:")),
    }
}

fn default_term(text: &str, star: bool) -> Option<Term> {
    parse_phrase(text, star).map(|phrase| Term::Words { columns: DEFAULT_COLUMNS, phrase })
}

fn parse_phrase(text: &str, is_prefix: bool) -> Option<Phrase> {
    let words = words::split(text);
    (!words.is_empty()).then_some(Phrase { words, is_prefix })
}

/// `header:Name`, `header:Name=value`, `header:Name="a phrase"`.
fn parse_header(text: &str, raw: &RawTerm<'_>) -> Result<Term, QueryError> {
    let wrong = |problem: &str| Err(QueryError::new(text, raw.text_offset, problem));
    let (name, value) = match (raw.is_quoted, raw.text.split_once('=')) {
        (true, _) => (raw.before_quote.trim_end_matches('='), Some(raw.text)),
        (false, Some((name, value))) => (name, Some(value)),
        (false, None) => (raw.text, None),
    };
    if name.is_empty() {
        return wrong("the name of a header field must follow, as in header:X-Mailer or header:X-Mailer=word");
    }
    let phrase = match value {
        None if raw.has_star => return wrong("the name of a header field must be given in full"),
        None => Phrase { words: vec![field_marker(name)], is_prefix: false },
        Some(value) => match parse_phrase(value, raw.has_star) {
            None => return wrong("a word must follow the equals sign"),
            Some(Phrase { words, is_prefix }) => {
                Phrase { words: words.iter().map(|word| field_word(name, word)).collect(), is_prefix }
            }
        },
    };
    Ok(Term::Words { columns: &[Column::Header], phrase })
}

/// A term about something other than words.
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
                "a date such as 2026-11-15 or 2026-11-15T10:00Z, so long ago as in 30m, 2h or 7d, today or yesterday"
            }
            _ => "a size such as 500, 10k or 2M",
        };
        format!("what must follow {field}: is {expected}")
    })
}
