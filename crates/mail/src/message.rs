//! A stored message as its readers see it: its id, its summary and its source bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use crate::naming::MailboxName;

/// The id of a message within its mailbox. Ids ascend in the order of arrival and are never reused.
///
/// An id is the time of arrival in microseconds, or the last id plus one if that is higher. Only the last id is needed
/// to assign an id. So ids stay unique after a purge, and after a restart of a store that does not persist anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

impl MessageId {
    /// The id below all others.
    pub const ZERO: Self = Self(0);

    /// The id above all others.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the id for a message that was received at `received` in a store whose last id is `last`.
    #[must_use]
    pub fn next_after(last: Self, received: Timestamp) -> Self {
        let arrival = u64::try_from(received.as_microsecond()).unwrap_or(0);
        Self(arrival.max(last.0 + 1))
    }

    /// Returns the id as a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for MessageId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMessageIdError;

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    /// Accepts only the form that [`fmt::Display`] writes, so that each message has exactly one URL.
    fn from_str(text: &str) -> Result<Self, ParseMessageIdError> {
        if text.starts_with(['0', '+']) {
            return Err(ParseMessageIdError);
        }
        text.parse().map(Self).map_err(|_| ParseMessageIdError)
    }
}

/// The summary record of a stored message. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The mailbox that holds this copy.
    pub mailbox: MailboxName,
    /// The id within the mailbox.
    pub id: MessageId,
    /// Sender, recipients and subject.
    pub headline: Headline,
    /// The time when the server received the message.
    pub received: Timestamp,
    /// The length of the source in bytes.
    pub size: u64,
    /// Whether the message is marked as read.
    pub seen: bool,
}

/// Sender, recipients and subject of a message, decoded. Addresses have the form `Display Name <address>`.
///
/// A store can contain very many headlines. So all texts are in one allocation, which the copies of a message share.
#[derive(Clone, PartialEq, Eq)]
pub struct Headline {
    /// Sender, subject and recipients, concatenated. Each recipient ends in a line feed.
    text: Arc<str>,
    from_end: u32,
    subject_end: u32,
}

impl Headline {
    /// Creates a headline. Line feeds are replaced by spaces; no header field can contain one.
    pub fn new<'a>(from: &str, to: impl IntoIterator<Item = &'a str>, subject: &str) -> Self {
        let offset = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let mut text = one_line(from).into_owned();
        let from_end = offset(&text);
        text.push_str(&one_line(subject));
        let subject_end = offset(&text);
        for recipient in to {
            text.push_str(&one_line(recipient));
            text.push('\n');
        }
        Self { text: text.into(), from_end, subject_end }
    }

    /// Returns the sender.
    pub fn from(&self) -> &str {
        self.slice(0, self.from_end)
    }

    /// Returns the subject.
    pub fn subject(&self) -> &str {
        self.slice(self.from_end, self.subject_end)
    }

    /// Returns the recipients.
    pub fn to(&self) -> impl Iterator<Item = &str> {
        self.recipient_lines().split_terminator('\n')
    }

    /// Returns the recipients as one text, in which each recipient ends in a line feed.
    pub fn recipient_lines(&self) -> &str {
        self.slice(self.subject_end, u32::MAX)
    }

    /// Returns the length of all texts together, in bytes.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    fn slice(&self, start: u32, end: u32) -> &str {
        let at = |offset: u32| (offset as usize).min(self.text.len());
        &self.text[at(start)..at(end)]
    }
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { text.replace('\n', " ").into() } else { text.into() }
}

impl fmt::Debug for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to: Vec<&str> = self.to().collect();
        f.debug_struct("Headline")
            .field("from", &self.from())
            .field("to", &to)
            .field("subject", &self.subject())
            .finish()
    }
}

/// The source of a stored message: the trace fields added for its mailbox, then the message as it was received.
///
/// The two are separate because a message for several mailboxes is stored once. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Return-Path and Received. They differ per mailbox.
    pub trace: Bytes,
    /// The message, byte for byte.
    pub body: Bytes,
}

impl Source {
    /// Returns the length of trace and body together. This is the `size` of the summary.
    pub fn len(&self) -> usize {
        self.trace.len() + self.body.len()
    }

    /// Returns whether both are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns trace and body as one buffer. Copies both.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.len());
        all.extend_from_slice(&self.trace);
        all.extend_from_slice(&self.body);
        all.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_if_the_clock_stops_or_goes_back() {
        let now = Timestamp::from_microsecond(1_000_000).unwrap();
        let earlier = Timestamp::from_microsecond(999).unwrap();
        let first = MessageId::next_after(MessageId::ZERO, now);
        let second = MessageId::next_after(first, now);
        let third = MessageId::next_after(second, earlier);
        assert_eq!([first, second, third].map(MessageId::number), [1_000_000, 1_000_001, 1_000_002]);
    }

    #[test]
    fn headline_returns_the_texts_it_was_created_from() {
        let table: &[(&str, &[&str], &str)] = &[
            ("Ann <a@x>", &["<b@x>", "Bö <c@x>"], "Grüße"),
            ("", &[], ""),
            ("<a@x>", &[""], "x"),
            ("", &["", ""], ""),
        ];
        for (from, to, subject) in table {
            let headline = Headline::new(from, to.iter().copied(), subject);
            assert_eq!((headline.from(), headline.subject()), (*from, *subject));
            assert_eq!(
                headline.text_len(),
                from.len() + subject.len() + to.iter().map(|recipient| recipient.len() + 1).sum::<usize>()
            );
            assert_eq!(headline.to().collect::<Vec<_>>(), *to);
        }
        let hostile = Headline::new("a\nb", ["c\nd"], "e\nf");
        assert_eq!((hostile.from(), hostile.to().collect(), hostile.subject()), ("a b", vec!["c d"], "e f"));
    }

    #[test]
    fn parses_ids_only_in_canonical_form() {
        assert_eq!("17".parse(), Ok(MessageId::from(17)));
        for other in ["", "017", "+17", " 17", "17 ", "-1", "latest", "99999999999999999999"] {
            assert_eq!(other.parse::<MessageId>(), Err(ParseMessageIdError), "{other:?}");
        }
    }
}
