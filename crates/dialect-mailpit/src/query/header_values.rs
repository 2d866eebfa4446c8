//! The values of the header fields of a message, as terms compare them.
//!
//! A search checks many summaries, most of which do not contain the searched text. Therefore the summary is searched as a
//! whole before its values are parsed.

use std::cell::OnceCell;

use restante_mail::message::{Message, Summary};
use restante_mail::mime::{HeaderSummary, SummaryField};

use crate::query::parse::{clean, lowercase, push_lowercase};
use crate::summary::{self, Address};

/// The fields whose values are a part of the search text. The first ones are found fastest.
const SEARCHED_FIELDS: [SummaryField; 6] = [
    SummaryField::Subject,
    SummaryField::From,
    SummaryField::To,
    SummaryField::Cc,
    SummaryField::Bcc,
    SummaryField::ReplyTo,
];

/// The fields to whose recipients those of the envelope are compared.
const RECIPIENT_FIELDS: [SummaryField; 3] = [SummaryField::To, SummaryField::Cc, SummaryField::Bcc];

/// Returns the names and the addresses themselves.
fn texts_of<'a>(addresses: impl IntoIterator<Item = Address<'a>>) -> impl Iterator<Item = &'a str> {
    addresses.into_iter().flat_map(|Address { name, address }| [name, address])
}

/// Texts that are made when they are first used.
type Texts = OnceCell<Vec<String>>;

/// The values of the header fields of a message: those of the summary, and also those of the source if the summary is not
/// complete. So values that a script has set are searched too.
pub(super) struct HeaderValues<'a> {
    pub(super) message: &'a Message,
    /// The header of the source, if it was read and the summary is not complete.
    header: Option<&'a HeaderSummary>,
    /// All texts of the summary in lower case. Every value of the summary is a part of it.
    summary_text: OnceCell<String>,
    /// The values by field, in lower case.
    lowercase: [Texts; SummaryField::COUNT],
    /// The values by field, as they are in the search text.
    cleaned: [Texts; SummaryField::COUNT],
    /// The tags of all copies in lower case. Together they can be more than a message may have.
    tags: Texts,
}

impl<'a> HeaderValues<'a> {
    /// Creates the values of a message whose source was not read.
    pub(super) fn from_summary(message: &'a Message) -> Self {
        Self {
            message,
            header: None,
            summary_text: OnceCell::new(),
            lowercase: Default::default(),
            cleaned: Default::default(),
            tags: Texts::new(),
        }
    }

    /// Creates the values of a message whose source was read.
    pub(super) fn with_header(message: &'a Message, header: &'a HeaderSummary) -> Self {
        let is_complete = message.first().details.is_complete();
        Self { header: (!is_complete).then_some(header), ..Self::from_summary(message) }
    }

    /// Returns the values of a field in the summary.
    fn summary_values(&self, field: SummaryField) -> Vec<&'a str> {
        let Summary { headline, details, .. } = self.message.first();
        match field {
            SummaryField::From => texts_of([summary::sender(self.message)]).collect(),
            SummaryField::To => texts_of(summary::to(self.message)).collect(),
            SummaryField::Cc => texts_of(details.cc().map(Address::parse)).collect(),
            // Whether a recipient is hidden is known only if all values are.
            SummaryField::Bcc if !details.is_complete() => Vec::new(),
            SummaryField::Bcc => texts_of(summary::bcc(self.message)).collect(),
            SummaryField::ReplyTo => texts_of(details.reply_to().map(Address::parse)).collect(),
            SummaryField::MessageId => vec![details.message_id()],
            SummaryField::Subject => vec![headline.subject()],
        }
    }

    /// Returns the values of a field in the header of the source.
    fn header_values(&self, header: &'a HeaderSummary, field: SummaryField) -> Vec<&'a str> {
        let parse = |list: &'a [String]| texts_of(list.iter().map(|address| Address::parse(address))).collect();
        match field {
            SummaryField::From => {
                texts_of(header.from.as_deref().map(Address::parse)).chain([header.from_text.as_str()]).collect()
            }
            SummaryField::To => parse(header.to.as_deref().unwrap_or_default()),
            SummaryField::Cc => parse(&header.cc),
            SummaryField::Bcc => {
                let mut values: Vec<&str> = parse(&header.bcc);
                if !RECIPIENT_FIELDS.into_iter().any(|field| header.truncated.contains(field)) {
                    values.extend(self.message.recipients_without(header.recipients()));
                }
                values
            }
            SummaryField::ReplyTo => parse(&header.reply_to),
            SummaryField::MessageId => vec![&header.message_id],
            SummaryField::Subject => vec![&header.subject],
        }
    }

    /// Returns whether the values of a field may be incomplete.
    fn is_truncated(&self, field: SummaryField) -> bool {
        let truncated = |header: &HeaderSummary, field| header.truncated.contains(field);
        match (self.header, field) {
            (None, _) => !self.message.first().details.is_complete(),
            (Some(header), SummaryField::Bcc) => RECIPIENT_FIELDS.into_iter().any(|field| truncated(header, field)),
            (Some(header), _) => truncated(header, field),
        }
    }

    /// Returns whether one of the values of these fields contains a text, which is in lower case. `None` if that is not
    /// known: a truncated value says only what it contains.
    pub(super) fn contain(&self, fields: &[SummaryField], text: &str) -> Option<bool> {
        let is_found = (self.header.is_some() || self.summary_text().contains(text))
            && fields.iter().any(|&field| self.lowercase(field).iter().any(|value| value.contains(text)));
        (is_found || !fields.iter().any(|&field| self.is_truncated(field))).then_some(is_found)
    }

    fn lowercase(&self, field: SummaryField) -> &[String] {
        self.lowercase[field as usize].get_or_init(|| {
            let header = self.header.map(|header| self.header_values(header, field)).unwrap_or_default();
            self.summary_values(field).into_iter().chain(header).map(lowercase).collect()
        })
    }

    /// Returns whether a part of the search text that the summary knows contains a text, which is cleaned. The search text
    /// has more parts.
    pub(super) fn search_text_contains(&self, text: &str) -> bool {
        // Only characters between words differ in a cleaned value.
        text.split(' ').all(|word| self.summary_text().contains(word))
            && (SEARCHED_FIELDS.into_iter().any(|field| self.cleaned(field).iter().any(|value| value.contains(text)))
                || clean(self.message.first().details.sender()).contains(text))
    }

    fn cleaned(&self, field: SummaryField) -> &[String] {
        self.cleaned[field as usize].get_or_init(|| self.summary_values(field).into_iter().map(clean).collect())
    }

    fn summary_text(&self) -> &str {
        self.summary_text.get_or_init(|| {
            let headline = &self.message.first().headline;
            let details = self.message.copies().iter().map(|copy| copy.details.encoded());
            let mut text = String::new();
            for part in [headline.from(), headline.subject(), headline.recipient_lines()].into_iter().chain(details) {
                push_lowercase(&mut text, part);
            }
            text
        })
    }

    /// Returns the tags of all copies in lower case.
    pub(super) fn tags(&self) -> &[String] {
        self.tags
            .get_or_init(|| self.message.copies().iter().flat_map(|copy| copy.tags.iter()).map(lowercase).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::tests::{TEXT, deliver};

    const FIELDS: [SummaryField; 7] = [
        SummaryField::From,
        SummaryField::To,
        SummaryField::Cc,
        SummaryField::Bcc,
        SummaryField::ReplyTo,
        SummaryField::MessageId,
        SummaryField::Subject,
    ];

    /// Returns a part of a text.
    fn part(text: &str, start: usize, length: usize) -> String {
        text.chars().skip(start).take(length).collect()
    }

    proptest! {
        #[test]
        fn values_of_the_summary_are_found_in_its_whole_text(
            values in prop::collection::vec(TEXT, 7),
            recipient in "[aAbB]{1,3}@[aAbB]{1,3}",
            (start, length) in (0..10_usize, 1..6_usize),
        ) {
            let names = ["From", "To", "Cc", "Bcc", "Reply-To", "Message-ID", "Subject"];
            let header: Vec<_> =
                names.iter().zip(&values).map(|(name, value)| format!("{name}: {value} <a@b>\r\n")).collect();
            let message = deliver(&format!("{}\r\nHi\r\n", header.concat()), &[&recipient], &[]);
            let summary = HeaderValues::from_summary(&message);
            let parts = values.iter().map(|value| part(value, start, length));
            for text in parts.chain([recipient]).map(|text| lowercase(&text)).filter(|text| !text.is_empty()) {
                for field in FIELDS {
                    let is_found = summary.lowercase(field).iter().any(|value| value.contains(&text));
                    prop_assert_eq!(summary.contain(&[field], &text), Some(is_found), "{:?} {}", field, text);
                }
            }
            let cleaned: Vec<&String> = SEARCHED_FIELDS.into_iter().flat_map(|field| summary.cleaned(field)).collect();
            for text in cleaned.iter().map(|value| part(value, start, length)) {
                prop_assert!(summary.search_text_contains(&clean(&text)), "{}", text);
            }
        }
    }
}
