//! Decides whether a message matches a query: from its summary if that is possible, otherwise from its source.
//!
//! Very long values of the header are truncated in the summary. Then the summary says only what they contain, and the source
//! decides what they do not contain. The same applies to the numbers of its parts if not all are counted. The limits on the
//! values and parts of a source are higher. A message does not match if they are exceeded and a term cannot be decided: no
//! message is deleted because a part of it was not read.
//!
//! A query can have many terms, so the texts of a message are prepared for all of them: a text is converted to lower case
//! when the first term needs it.

use bytes::Bytes;
use memchr::memmem;
use restante_mail::message::Message;
use restante_mail::mime::{Mime, SummaryField, header_summary};

use crate::query::header_values::HeaderValues;
use crate::query::parse::{Condition, Query, Term};
use crate::query::search_text::search_text;

/// The fields with addresses.
const ADDRESS_FIELDS: [SummaryField; 5] =
    [SummaryField::From, SummaryField::To, SummaryField::Cc, SummaryField::Bcc, SummaryField::ReplyTo];

/// What the summary of a message says about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Match,
    NoMatch,
    /// Texts are not decided, all other terms match. The source of the message is needed, or an index of its words.
    UndecidedTexts,
    /// The source of the message is needed.
    Undecided,
}

impl Decision {
    pub(super) fn is_undecided(self) -> bool {
        matches!(self, Self::UndecidedTexts | Self::Undecided)
    }
}

impl Query {
    /// Decides from the summary of a message.
    pub(super) fn check_summary(&self, message: &Message) -> Decision {
        let values = HeaderValues::from_summary(message);
        self.check(|condition| condition.check(&values, None))
    }

    /// Returns whether a message matches whose summary leaves only texts undecided. `search_text` is its complete search text.
    pub(super) fn matches_search_text(&self, search_text: &[u8]) -> bool {
        self.texts().all(|(text, is_excluded)| memmem::find(search_text, text.as_bytes()).is_some() != is_excluded)
    }

    /// Returns whether a message matches, and its search text if that was needed and is complete. The cost is linear in the
    /// size of its source.
    pub(super) fn check_source(&self, message: &Message, source: Bytes) -> (bool, Option<String>) {
        let header = header_summary(&source);
        let values = HeaderValues::with_header(message, &header);
        let has_texts = self.texts().next().is_some();
        let needs_parts = has_texts || !message.first().details.is_complete() && self.needs_part_counts();
        let content = needs_parts.then(|| {
            let mime = Mime::parse(source);
            let text = if has_texts { search_text(message, &header, &mime) } else { String::new() };
            Content { text, mime }
        });
        let is_match = self.check(|condition| condition.check(&values, content.as_ref())) == Decision::Match;
        (is_match, content.filter(|content| has_texts && content.is_complete()).map(|content| content.text))
    }

    fn needs_part_counts(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.condition, Condition::HasInlineParts | Condition::HasAttachments))
    }

    /// Combines the results of all terms. `meets` returns `None` if it cannot say whether a condition is met.
    fn check(&self, meets: impl Fn(&Condition) -> Option<bool>) -> Decision {
        let mut decision = Decision::Match;
        for Term { condition, is_excluded } in &self.terms {
            match condition.check_excluded(*is_excluded, &meets) {
                Some(true) => {}
                Some(false) => return Decision::NoMatch,
                None if decision == Decision::Undecided || !matches!(condition, Condition::Text(_)) => {
                    decision = Decision::Undecided;
                }
                None => decision = Decision::UndecidedTexts,
            }
        }
        decision
    }
}

/// The content of a message whose source was parsed.
struct Content {
    /// The search text. Empty if the query has no texts.
    text: String,
    mime: Mime,
}

impl Content {
    /// Returns whether the search text contains a text, or `None` if that is not known.
    fn contains(&self, text: &str) -> Option<bool> {
        let is_found = self.text.contains(text);
        (is_found || self.is_complete()).then_some(is_found)
    }

    /// Returns whether the search text is that of the whole message.
    fn is_complete(&self) -> bool {
        !self.mime.omits_fields() && !self.mime.omits_parts()
    }

    /// Returns whether the message has parts that `select` selects from the numbers of attached and inline parts, or `None`
    /// if that is not known.
    fn has_parts(&self, select: impl Fn((usize, usize)) -> usize) -> Option<bool> {
        let is_found = select(self.mime.disposition_counts()) > 0;
        (is_found || !self.mime.omits_parts()).then_some(is_found)
    }
}

impl Condition {
    /// Returns whether a term with this condition matches. An excluded limit also excludes messages that are exactly at
    /// the limit of a size, but not those at the limit of a time.
    fn check_excluded(&self, is_excluded: bool, meets: impl Fn(&Self) -> Option<bool>) -> Option<bool> {
        match self {
            _ if !is_excluded => meets(self),
            Self::After(time) => meets(&Self::Before(*time)),
            Self::Before(time) => meets(&Self::After(*time)),
            Self::Larger(size) => meets(&Self::Smaller(*size)),
            Self::Smaller(size) => meets(&Self::Larger(*size)),
            _ => meets(self).map(|meets| !meets),
        }
    }

    /// Returns whether a message meets the condition, or `None` if that is not known. `content` is the content of the source,
    /// if it is known.
    fn check(&self, values: &HeaderValues<'_>, content: Option<&Content>) -> Option<bool> {
        let message = values.message;
        let first = message.first();
        match self {
            Self::To(text) => values.contain(&[SummaryField::To], text),
            Self::From(text) => values.contain(&[SummaryField::From], text),
            Self::Cc(text) => values.contain(&[SummaryField::Cc], text),
            Self::Bcc(text) => values.contain(&[SummaryField::Bcc], text),
            Self::ReplyTo(text) => values.contain(&[SummaryField::ReplyTo], text),
            Self::Addressed(text) => values.contain(&ADDRESS_FIELDS, text),
            Self::Subject(text) => values.contain(&[SummaryField::Subject], text),
            Self::MessageId(text) => values.contain(&[SummaryField::MessageId], text),
            Self::Tag(text) => Some(values.tags().contains(text)),
            Self::Tagged => Some(message.copies().iter().any(|copy| !copy.tags.is_empty())),
            Self::Read => Some(message.is_seen()),
            Self::Unread => Some(!message.is_seen()),
            Self::HasInlineParts if !first.details.is_complete() => content?.has_parts(|(_, inline)| inline),
            Self::HasInlineParts => Some(first.details.inline_parts() > 0),
            Self::HasAttachments if !first.details.is_complete() => content?.has_parts(|(attached, _)| attached),
            Self::HasAttachments => Some(first.details.attached_parts() > 0),
            Self::After(time) => Some(first.received.as_millisecond() >= time.as_millisecond()),
            Self::Before(time) => Some(first.received.as_millisecond() <= time.as_millisecond()),
            Self::Larger(size) => Some(first.size > *size),
            Self::Smaller(size) => Some(first.size < *size),
            Self::Text(text) => match content {
                Some(content) => content.contains(text),
                None => values.search_text_contains(text).then_some(true),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::tests::{TEXT, deliver};

    proptest! {
        #[test]
        fn search_text_decides_like_the_source(
            (subject, body, query) in (TEXT, TEXT, "-?[aAbBÄßİıΣς]{1,3} (-?\"[aAbB .]{1,4}\")?"),
            is_html: bool,
        ) {
            let content_type = if is_html { "Content-Type: text/html\r\n" } else { "" };
            let source = format!("From: a@b\r\nSubject: {subject}\r\n{content_type}\r\n{body}\r\n");
            let message = deliver(&source, &["hidden@x.org"], &[]);
            let query = Query::parse(&query, None).unwrap();
            let (is_match, text) = query.check_source(&message, source.into());
            if query.check_summary(&message) == Decision::UndecidedTexts {
                prop_assert_eq!(query.matches_search_text(text.unwrap().as_bytes()), is_match);
            }
        }
    }
}
