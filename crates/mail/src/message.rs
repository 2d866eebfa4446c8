//! A stored message from the outside: its identity, its summary record, and its source bytes.

use std::fmt;
use std::str::FromStr;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use crate::naming::MailboxName;

/// A message's identity within its mailbox. Ids ascend with arrival and are never given twice.
///
/// The number is the microsecond of arrival, moved up where that one is taken. It needs no memory of the past beyond
/// the last id given, so ids stay unique across a purge and across the restart of a store that forgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

impl MessageId {
    /// The id below every other.
    pub const ZERO: Self = Self(0);

    /// The id for a message that arrived at `received` in a store whose last id was `last`.
    #[must_use]
    pub fn following(last: Self, received: Timestamp) -> Self {
        let arrival = u64::try_from(received.as_microsecond()).unwrap_or(0);
        Self(arrival.max(last.0 + 1))
    }

    /// The id as a number.
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

/// The text is no id that this server ever gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchId;

impl FromStr for MessageId {
    type Err = NoSuchId;

    /// Takes only the form that [`fmt::Display`] prints, so that one message has one address.
    fn from_str(text: &str) -> Result<Self, NoSuchId> {
        if text.starts_with(['0', '+']) {
            return Err(NoSuchId);
        }
        text.parse().map(Self).map_err(|_| NoSuchId)
    }
}

/// The summary record of a stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The mailbox that holds this copy.
    pub mailbox: MailboxName,
    /// The id within the mailbox.
    pub id: MessageId,
    /// `Display Name <address>` of the sender, decoded.
    pub from: Box<str>,
    /// The recipients in the same form.
    pub to: Box<[Box<str>]>,
    /// The decoded subject.
    pub subject: Box<str>,
    /// When the server received the message.
    pub received: Timestamp,
    /// The length of the source in bytes.
    pub size: u64,
    /// Whether somebody marked it as read.
    pub seen: bool,
}

/// The bytes of a stored message: the lines added for its mailbox, then the mail as it was received.
///
/// The two are kept apart because a mail for several mailboxes is held once. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Return-Path and Received, which differ for every mailbox.
    pub trace: Bytes,
    /// The mail, byte for byte.
    pub body: Bytes,
}

impl Source {
    /// The length of both together: the `size` of the summary record.
    pub fn len(&self) -> usize {
        self.trace.len() + self.body.len()
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Both as one run of bytes; copies.
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
    fn ids_ascend_also_when_the_clock_stands_or_goes_back() {
        let noon = Timestamp::from_microsecond(1_000_000).unwrap();
        let before = Timestamp::from_microsecond(999).unwrap();
        let first = MessageId::following(MessageId::ZERO, noon);
        let second = MessageId::following(first, noon);
        let third = MessageId::following(second, before);
        assert_eq!([first, second, third].map(MessageId::number), [1_000_000, 1_000_001, 1_000_002]);
    }

    #[test]
    fn an_id_has_one_text_form() {
        assert_eq!("17".parse(), Ok(MessageId::from(17)));
        for other in ["", "017", "+17", " 17", "17 ", "-1", "latest", "99999999999999999999"] {
            assert_eq!(other.parse::<MessageId>(), Err(NoSuchId), "{other:?}");
        }
    }
}
