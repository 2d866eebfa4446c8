//! Parses queries.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::Error;
use crate::query::date;

/// The maximum length of a query in bytes, and the maximum number of its terms. Every term is applied to every message.
const MAX_QUERY_BYTES: usize = 4096;
const MAX_TERMS: usize = 64;

/// A parsed query.
#[derive(Debug, PartialEq)]
pub(crate) struct Query {
    pub(super) terms: Vec<Term>,
    /// The first term with an invalid value. It has no effect, or is searched as a text.
    invalid_term: Option<String>,
}

/// A condition that messages must meet, or must not meet if it is excluded.
#[derive(Debug, PartialEq)]
pub(super) struct Term {
    pub(super) condition: Condition,
    pub(super) is_excluded: bool,
}

/// What a term says about a message. Texts are in lower case and are found anywhere in a value.
#[derive(Debug, PartialEq)]
pub(super) enum Condition {
    To(String),
    From(String),
    Cc(String),
    Bcc(String),
    ReplyTo(String),
    /// In any of the fields above.
    Addressed(String),
    Subject(String),
    MessageId(String),
    /// The message has this tag.
    Tag(String),
    Tagged,
    Read,
    Unread,
    HasInlineParts,
    HasAttachments,
    After(Timestamp),
    Before(Timestamp),
    Larger(u64),
    Smaller(u64),
    /// In the text of the message or in one of some header fields, see `search_text`.
    Text(String),
}

impl Query {
    /// Parses a query. Dates without a time zone are in `zone`, or in that of the server if there is no such zone.
    pub(crate) fn parse(text: &str, zone: Option<&str>) -> Result<Self, Error> {
        if text.len() > MAX_QUERY_BYTES {
            return Err(Error::text(format!("Error: the search query is longer than {MAX_QUERY_BYTES} bytes")));
        }
        let named_zone = zone.filter(|zone| !zone.is_empty()).map(TimeZone::get);
        let has_invalid_zone = matches!(named_zone, Some(Err(_)));
        let zone = named_zone.and_then(Result::ok).unwrap_or_else(TimeZone::system);
        let mut query = Self { terms: Vec::new(), invalid_term: None };
        for word in split(text) {
            if clean(&word).is_empty() {
                continue;
            }
            let is_excluded = word.len() > 1 && word.starts_with(['-', '!']);
            let rest = if is_excluded { &word[1..] } else { &word[..] };
            let (name, value) = rest.split_once(':').unwrap_or_default();
            let term = match name.to_ascii_lowercase().as_str() {
                "after" => time_condition(Condition::After, value, &zone),
                "before" => time_condition(Condition::Before, value, &zone),
                name => field_condition(name, value),
            };
            let is_time = matches!(term, FieldTerm::Condition(Condition::After(_) | Condition::Before(_)));
            if matches!(term, FieldTerm::Blank | FieldTerm::Invalid) || (is_time && has_invalid_zone) {
                query.invalid_term.get_or_insert_with(|| rest.to_owned());
            }
            let condition = match term {
                FieldTerm::Condition(condition) => condition,
                FieldTerm::Blank => continue,
                FieldTerm::Invalid | FieldTerm::Unknown => Condition::Text(clean(rest)),
            };
            query.terms.push(Term { condition, is_excluded });
            if query.terms.len() > MAX_TERMS {
                return Err(Error::text(format!("Error: the search query has more than {MAX_TERMS} terms")));
            }
        }
        Ok(query)
    }

    /// Refuses a query without terms, or with an invalid term. A change by such a query would apply to other messages than
    /// was meant.
    pub(crate) fn check_for_change(&self) -> Result<(), Error> {
        match &self.invalid_term {
            Some(term) => Err(Error::text(format!("Error: a term of the search query is invalid: {term}"))),
            None if self.terms.is_empty() => Err(Error::text("Error: no search query")),
            None => Ok(()),
        }
    }

    /// Returns the texts that are searched in messages, and whether they are excluded.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, bool)> {
        self.terms.iter().filter_map(|term| match &term.condition {
            Condition::Text(text) => Some((text.as_str(), term.is_excluded)),
            _ => None,
        })
    }
}

/// A term with a prefix.
enum FieldTerm {
    Condition(Condition),
    /// The prefix is followed by nothing, or by a time that cannot be parsed. The term has no effect.
    Blank,
    /// The prefix is followed by a value that it cannot have. The term is a text.
    Invalid,
    /// There is no such prefix. The term is a text.
    Unknown,
}

fn time_condition(condition: fn(Timestamp) -> Condition, value: &str, zone: &TimeZone) -> FieldTerm {
    date::parse(&clean(value), zone).map_or(FieldTerm::Blank, |time| FieldTerm::Condition(condition(time)))
}

/// Returns the term with a prefix, in lower case, and this value.
fn field_condition(name: &str, value: &str) -> FieldTerm {
    let cleaned = clean(value);
    let text = |condition: fn(String) -> Condition, text: String| {
        if text.is_empty() { FieldTerm::Blank } else { FieldTerm::Condition(condition(text)) }
    };
    let size = |condition: fn(u64) -> Condition| match parse_size(&cleaned) {
        Some(size) if size > 0 => FieldTerm::Condition(condition(size)),
        _ => FieldTerm::Invalid,
    };
    match name {
        "to" => text(Condition::To, cleaned),
        "from" => text(Condition::From, cleaned),
        "cc" => text(Condition::Cc, cleaned),
        "bcc" => text(Condition::Bcc, cleaned),
        "reply-to" => text(Condition::ReplyTo, cleaned),
        "addressed" => text(Condition::Addressed, cleaned),
        // The subject is compared as it is written.
        "subject" => text(Condition::Subject, lowercase(value)),
        "message-id" => text(Condition::MessageId, cleaned),
        "tag" => text(Condition::Tag, cleaned),
        "larger" => size(Condition::Larger),
        "smaller" => size(Condition::Smaller),
        _ => match (name, lowercase(value).as_str()) {
            ("is", "read") => FieldTerm::Condition(Condition::Read),
            ("is", "unread") => FieldTerm::Condition(Condition::Unread),
            ("is", "tagged") => FieldTerm::Condition(Condition::Tagged),
            ("has", "inline" | "inlines") => FieldTerm::Condition(Condition::HasInlineParts),
            ("has", "attachment" | "attachments") => FieldTerm::Condition(Condition::HasAttachments),
            ("is" | "has", _) => FieldTerm::Invalid,
            _ => FieldTerm::Unknown,
        },
    }
}

/// Splits a query at spaces outside of quotes. The quotes are removed.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.into_iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Returns a text as it is searched: in lower case, without punctuation that separates addresses, and with single spaces.
pub(super) fn clean(text: &str) -> String {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '>' | '<' | '"' | ',' | ';' | '(' | ')');
    let mut cleaned = String::with_capacity(text.len());
    for word in text.split(is_separator).filter(|word| !word.is_empty()) {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        push_lowercase(&mut cleaned, word);
    }
    cleaned
}

/// Returns a text in lower case. Unlike [`str::to_lowercase`], each character is converted by itself, so that a part of a
/// text stays a part of it.
pub(super) fn lowercase(text: &str) -> String {
    let mut lowercase = String::with_capacity(text.len());
    push_lowercase(&mut lowercase, text);
    lowercase
}

/// Appends a text in lower case, as [`lowercase`] converts it.
pub(super) fn push_lowercase(to: &mut String, text: &str) {
    if text.is_ascii() {
        let start = to.len();
        to.push_str(text);
        to[start..].make_ascii_lowercase();
    } else {
        to.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// Parses a size in bytes, such as `2kb`, `4 mb` or `1.5m`, in lower case.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let fraction = text[digits..]
        .strip_prefix('.')
        .map_or(0, |fraction| 1 + fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len()));
    let (number, unit) = text.split_at(digits + fraction);
    if digits == 0 || fraction == 1 {
        return None;
    }
    let factor = match unit.strip_prefix(' ').unwrap_or(unit) {
        "" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        _ => return None,
    };
    let size = number.parse::<f64>().ok()? * factor;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "larger sizes are larger than any message"
    )]
    Some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<Term> {
        Query::parse(text, Some("UTC")).unwrap_or_else(|error| panic!("{text}: {error:?}")).terms
    }

    fn text(text: &str) -> Condition {
        Condition::Text(text.to_owned())
    }

    #[test]
    fn parses_terms() {
        use Condition::*;
        let owned = str::to_owned;
        let noon = "2026-11-16T12:00:00Z".parse().unwrap();
        let table = [
            ("hello", vec![text("hello")]),
            ("Hello  WORLD", vec![text("hello"), text("world")]),
            ("\"Hello  World\"", vec![text("hello world")]),
            ("\"the body 7 <abc;def;>.\"", vec![text("the body 7 abc def .")]),
            ("un\"closed quote", vec![text("unclosed quote")]),
            (" \" \" , <>", vec![]),
            ("from:From-7@example.com", vec![From(owned("from-7@example.com"))]),
            ("FROM:\"Ann B\"", vec![From(owned("ann b"))]),
            (
                "to:a cc:b bcc:c reply-to:\"d\" addressed:e",
                vec![To(owned("a")), Cc(owned("b")), Bcc(owned("c")), ReplyTo(owned("d")), Addressed(owned("e"))],
            ),
            ("subject:\"Line 7, end\"", vec![Subject(owned("line 7, end"))]),
            ("message-id:<X@y>", vec![MessageId(owned("x@y"))]),
            ("tag:\"My Tag\" is:tagged", vec![Tag(owned("my tag")), Tagged]),
            ("is:read Is:Unread", vec![Read, Unread]),
            (
                "has:inline has:inlines has:attachment HAS:attachments",
                vec![HasInlineParts, HasInlineParts, HasAttachments, HasAttachments],
            ),
            ("after:2026-11-16T12:00 before:\"2026-11-16 12:00\"", vec![After(noon), Before(noon)]),
            ("larger:1.5M smaller:10k", vec![Larger(1_572_864), Smaller(10_240)]),
            ("larger:big smaller:0", vec![text("larger:big"), text("smaller:0")]),
            ("is:other has:x from", vec![text("is:other"), text("has:x"), text("from")]),
            ("https://example.com/?a=b", vec![text("https://example.com/?a=b")]),
            ("from: to:\"\" subject: tag:, after:", vec![]),
            ("after:soon before:", vec![]),
        ];
        for (query, expected) in table {
            let expected: Vec<_> =
                expected.into_iter().map(|condition| Term { condition, is_excluded: false }).collect();
            assert_eq!(terms(query), expected, "{query}");
        }
    }

    #[test]
    fn excludes_terms() {
        let table = [
            ("-word", text("word"), true),
            ("!word", text("word"), true),
            ("-\"two words\"", text("two words"), true),
            ("\"-word\"", text("word"), true),
            ("--word", text("-word"), true),
            ("-", text("-"), false),
            ("-from:ann", Condition::From("ann".to_owned()), true),
            ("!IS:read", Condition::Read, true),
            ("-larger:1k", Condition::Larger(1024), true),
            ("-,", text(""), true),
        ];
        for (query, condition, is_excluded) in table {
            assert_eq!(terms(query), [Term { condition, is_excluded }], "{query}");
        }
    }

    #[test]
    fn parses_sizes() {
        let table = [
            ("1m", Some(1_048_576)),
            ("1mb", Some(1_048_576)),
            ("1 m", Some(1_048_576)),
            ("1 mb", Some(1_048_576)),
            ("1k", Some(1024)),
            ("1 kb", Some(1024)),
            ("1.5m", Some(1_572_864)),
            ("1234567890", Some(1_234_567_890)),
            ("invalid", None),
            ("1.2.3", None),
            ("1.2.3m", None),
            ("1.", None),
            (".5k", None),
            ("1g", None),
            ("1  m", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }

    #[test]
    fn changes_need_valid_terms() {
        let table = [
            ("word before:2026-11-16", "", true),
            ("word before:soon", "", false),
            ("word -after:soon", "", false),
            ("word before:", "", false),
            ("word to:", "", false),
            ("-has:attachment -is:tagged -larger:10m -smaller:1", "", true),
            ("-has:atachment", "", false),
            ("-is:tagge", "", false),
            ("is:", "", false),
            ("-larger:10g", "", false),
            ("word !smaller:0", "", false),
            ("-https://example.com", "", true),
            ("to:", "", false),
            (",", "", false),
            ("word", "Mars/Olympus", true),
            ("word before:2026-11-16", "Mars/Olympus", false),
        ];
        for (query, zone, is_valid) in table {
            let query = Query::parse(query, Some(zone)).unwrap();
            assert_eq!(query.check_for_change().is_ok(), is_valid, "{query:?}");
        }
    }

    #[test]
    fn length_and_terms_are_limited() {
        assert_eq!(terms(&"a ".repeat(64)).len(), 64);
        for text in ["a ".repeat(65), "a".repeat(4097)] {
            assert!(Query::parse(&text, None).is_err());
        }
    }
}
