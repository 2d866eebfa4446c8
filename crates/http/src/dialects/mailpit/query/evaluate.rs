//! Decides whether a message matches a query: from its summary if that is possible, otherwise from its source.
//!
//! Very long values of the header are truncated in the summary. Then the summary says only what they contain, and the source
//! decides what they do not contain. The same applies to the numbers of its parts if not all are counted. The limits on the
//! values and parts of a source are higher. A message does not match if they are exceeded and a term cannot be decided: no
//! message is deleted because a part of it was not read.
//!
//! A query can have many terms, so the texts of a message are prepared for all of them: a text is converted to lower case
//! when the first term needs it.

use std::cell::{LazyCell, OnceCell};

use bytes::Bytes;
use restante_mail::message::Message;
use restante_mail::mime::{HeaderSummary, Mime, SummaryField, SummaryFields, header_summary};

use crate::dialects::mailpit::query::parse::{Condition, Query, Term, clean, lowercase};
use crate::dialects::mailpit::query::search_text::search_text;
use crate::dialects::mailpit::summary::{Address, MessageSummary};

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
        let values = LazyCell::new(|| HeaderValues::from_summary(message));
        self.check(|condition| condition.check(message, || &values, None))
    }

    /// Returns whether a message matches. The cost is linear in the size of its source.
    pub(super) fn matches_source(&self, message: &Message, source: Bytes) -> bool {
        let header = header_summary(&source);
        let values = HeaderValues::from_summary(message).with_header(message, &header);
        let has_texts = self.texts().next().is_some();
        let needs_parts = has_texts || !message.first().details.is_complete() && self.needs_part_counts();
        let content = needs_parts.then(|| {
            let mime = Mime::parse(source);
            let text = if has_texts { search_text(message, &header, &mime) } else { String::new() };
            Content { text, mime }
        });
        self.check(|condition| condition.check(message, || &values, content.as_ref())) == Decision::Match
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
        (is_found || !self.mime.omits_fields() && !self.mime.omits_parts()).then_some(is_found)
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
    fn check<'v>(
        &self,
        message: &Message,
        values: impl Fn() -> &'v HeaderValues<'v>,
        content: Option<&Content>,
    ) -> Option<bool> {
        let first = message.first();
        // A truncated value says only what it contains.
        let is_in = |is_found: bool, fields: &[SummaryField]| {
            let is_truncated = || fields.iter().any(|field| values().truncated.contains(*field));
            if is_found || !is_truncated() { Some(is_found) } else { None }
        };
        match self {
            Self::To(text) => is_in(values().to.contain(text), &[SummaryField::To]),
            Self::From(text) => is_in(values().from.contain(text), &[SummaryField::From]),
            Self::Cc(text) => is_in(values().cc.contain(text), &[SummaryField::Cc]),
            Self::Bcc(text) => is_in(values().bcc.contain(text), &[SummaryField::Bcc]),
            Self::ReplyTo(text) => is_in(values().reply_to.contain(text), &[SummaryField::ReplyTo]),
            Self::Addressed(text) => {
                is_in(values().address_fields().into_iter().any(|field| field.contain(text)), &ADDRESS_FIELDS)
            }
            Self::Subject(text) => is_in(values().subjects.contain(text), &[SummaryField::Subject]),
            Self::MessageId(text) => is_in(values().message_ids.contain(text), &[SummaryField::MessageId]),
            Self::Tag(text) => Some(values().tags.lowercase().contains(text)),
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
            Self::Text(searched) => {
                if let Some(content) = content {
                    return content.contains(searched);
                }
                // The search text contains these texts, and more.
                values().known_texts().iter().any(|known| known.contains(searched)).then_some(true)
            }
        }
    }
}

/// The fields with addresses.
const ADDRESS_FIELDS: [SummaryField; 5] =
    [SummaryField::From, SummaryField::To, SummaryField::Cc, SummaryField::Bcc, SummaryField::ReplyTo];

/// Returns the names and the addresses themselves.
fn texts_of<'a>(addresses: impl IntoIterator<Item = Address<'a>>) -> impl Iterator<Item = &'a str> {
    addresses.into_iter().flat_map(|Address { name, address }| [name, address])
}

/// The values of a field of a message.
struct FieldValues<'a> {
    values: Vec<&'a str>,
    /// The values in lower case, from the first use on.
    lowercase: OnceCell<Vec<String>>,
}

impl<'a> FieldValues<'a> {
    fn new(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self { values: values.into_iter().collect(), lowercase: OnceCell::new() }
    }

    fn lowercase(&self) -> &[String] {
        self.lowercase.get_or_init(|| self.values.iter().map(|value| lowercase(value)).collect())
    }

    /// Returns whether one of the values contains a text, which is in lower case.
    fn contain(&self, text: &str) -> bool {
        self.lowercase().iter().any(|value| value.contains(text))
    }
}

/// The values of the header fields of a message: those of the summary, and also those of the source if the summary is not
/// complete. So values that a script has set are searched too.
struct HeaderValues<'a> {
    from: FieldValues<'a>,
    to: FieldValues<'a>,
    cc: FieldValues<'a>,
    /// The addresses of Bcc and the recipients of the envelope that no header field names.
    bcc: FieldValues<'a>,
    reply_to: FieldValues<'a>,
    subjects: FieldValues<'a>,
    message_ids: FieldValues<'a>,
    /// The tags of all copies. Together they can be more than a message may have.
    tags: FieldValues<'a>,
    /// The sender in the envelope.
    sender: &'a str,
    /// The fields whose values are not complete.
    truncated: SummaryFields,
    /// The result of [`Self::known_texts`], from the first use on.
    known_texts: OnceCell<Vec<String>>,
}

impl<'a> HeaderValues<'a> {
    fn from_summary(message: &'a Message) -> Self {
        let MessageSummary { from, to, cc, bcc, reply_to, subject, message_id, .. } = MessageSummary::new(message);
        let is_complete = message.first().details.is_complete();
        Self {
            from: FieldValues::new(texts_of([from])),
            to: FieldValues::new(texts_of(to.unwrap_or_default())),
            cc: FieldValues::new(texts_of(cc.unwrap_or_default())),
            // Whether a recipient is hidden is known only if all values are.
            bcc: FieldValues::new(texts_of(bcc.filter(|_| is_complete).unwrap_or_default())),
            reply_to: FieldValues::new(texts_of(reply_to)),
            subjects: FieldValues::new([subject]),
            message_ids: FieldValues::new([message_id]),
            tags: FieldValues::new(message.copies().iter().flat_map(|copy| copy.tags.iter())),
            sender: message.first().details.sender(),
            truncated: if is_complete { SummaryFields::default() } else { SummaryFields::ALL },
            known_texts: OnceCell::new(),
        }
    }

    /// Adds the values of the header of the source, unless they are known already.
    fn with_header(mut self, message: &'a Message, header: &'a HeaderSummary) -> Self {
        if self.truncated.is_empty() {
            return self;
        }
        let to = header.to.as_deref().unwrap_or_default();
        let parse = |list: &'a [String]| texts_of(list.iter().map(|address| Address::parse(address)));
        self.from.values.extend(texts_of(header.from.as_deref().map(Address::parse)));
        self.from.values.push(&header.from_text);
        self.to.values.extend(parse(to));
        self.cc.values.extend(parse(&header.cc));
        self.bcc.values.extend(parse(&header.bcc));
        self.reply_to.values.extend(parse(&header.reply_to));
        self.subjects.values.push(&header.subject);
        self.message_ids.values.push(&header.message_id);
        self.truncated = header.truncated;
        if [SummaryField::To, SummaryField::Cc, SummaryField::Bcc]
            .into_iter()
            .any(|field| header.truncated.contains(field))
        {
            self.truncated.insert_if(true, SummaryField::Bcc);
        } else {
            self.bcc.values.extend(message.recipients_without(header.recipients()));
        }
        self
    }

    fn address_fields(&self) -> [&FieldValues<'a>; 5] {
        [&self.to, &self.from, &self.cc, &self.bcc, &self.reply_to]
    }

    /// Returns the texts that are a part of the search text, as they are searched.
    fn known_texts(&self) -> &[String] {
        self.known_texts.get_or_init(|| {
            let fields = self.address_fields().into_iter().chain([&self.subjects]);
            let values = fields.flat_map(|field| field.values.iter().copied());
            values.chain([self.sender]).map(clean).collect()
        })
    }
}
