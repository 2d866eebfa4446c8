//! Events for subscribers. A delivery only appends to a short ring and notifies the listeners of its `topic`. Subscribers
//! read the ring, at a rate that leaves the processors to deliveries. A subscriber that falls behind is notified of it
//! and never delays others.
//!
//! Only the ring and the history own events. Subscribers hold weak references to the few hundred that they have read and
//! not returned, so that the texts of old events take no memory; a dead reference means that the subscriber has fallen
//! behind. This module contains no wire format, but an
//! event caches its rendered form, so that it is rendered once for all subscribers.

mod hub;
mod marks;
mod ring;
mod subscription;
#[cfg(test)]
mod tests;
mod topic;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::naming::MailboxName;

pub(crate) use hub::Hub;
pub(crate) use marks::MarkPublisher;
pub use marks::{ChangedMarks, MarkChange, MarkSubscription};
pub use subscription::Subscription;
pub(crate) use topic::TopicReceiver;

/// A change of the store. There is one event per copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored(Summary, MessageCopies),
    /// A message was deleted: by a client, by retention or by a limit.
    Deleted(Summary),
}

impl Event {
    /// Returns the summary of the message.
    pub fn summary(&self) -> &Summary {
        match self {
            Self::Stored(summary, _) | Self::Deleted(summary) => summary,
        }
    }

    /// Returns all copies of the message that were stored with this one, in the order of their events. For a deletion it
    /// is the deleted copy.
    pub fn copies(&self) -> &[Summary] {
        match self {
            Self::Stored(_, MessageCopies(Some(copies))) => copies,
            Self::Stored(summary, MessageCopies(None)) | Self::Deleted(summary) => std::slice::from_ref(summary),
        }
    }

    fn matches_topic(&self, topic: Option<&MailboxName>) -> bool {
        topic.is_none_or(|mailbox| *mailbox == self.summary().mailbox)
    }
}

/// All copies of a stored message, if there are several. The events of the copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageCopies(Option<Arc<[Summary]>>);

impl MessageCopies {
    pub(crate) fn new(copies: &[Summary]) -> Self {
        Self((copies.len() > 1).then(|| copies.into()))
    }
}

/// An event with its position.
#[derive(Debug)]
pub struct PublishedEvent {
    /// The sequence number in the ring.
    seq: u64,
    position: Position,
    event: Event,
    rendered: OnceLock<Bytes>,
}

impl PublishedEvent {
    fn new(seq: u64, position: Position, event: Event) -> Self {
        Self { seq, position, event, rendered: OnceLock::new() }
    }

    /// Returns the position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Returns the rendered form. The first call renders it, later calls return the same bytes. All callers must
    /// therefore use the same format.
    pub fn rendered(&self, render: impl FnOnce(&Event) -> Bytes) -> Bytes {
        self.rendered.get_or_init(|| render(&self.event)).clone()
    }
}

/// A position in the order of all events. A subscriber can resume after it. It is displayed as `{run}-{number}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Distinguishes this run of the server from earlier ones, whose events are lost. Zero for a shared store, whose
    /// numbers are valid on all nodes and in every run.
    run: u64,
    number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.number)
    }
}

/// The error of a text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPosition;

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let parse = |digits: &str| {
            if digits.starts_with('+') { Err(InvalidPosition) } else { digits.parse().map_err(|_| InvalidPosition) }
        };
        let (run, number) = text.split_once('-').ok_or(InvalidPosition)?;
        Ok(Self { run: parse(run)?, number: parse(number)? })
    }
}

/// The error of a subscriber that has missed events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;
