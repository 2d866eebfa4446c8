//! What happened, for whoever listens. Delivery only appends to a short ring; a task of its own tells the listeners, at a
//! pace that leaves the processors to the mail. A listener who falls behind is told so and never slows anybody else.
//!
//! The ring owns the events, and beside it only the history does, so what listeners do or do not read takes no memory: they
//! hold weak references, and a listener who finds one dead has fallen behind. No wire format is known here, but a place is kept for
//! one, so that an event is rendered once for all who listen.

mod dispatcher;
mod hub;
mod ring;
mod subscriber_group;
mod subscription;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::naming::MailboxName;

pub(crate) use hub::Hub;
pub use subscription::Subscription;

/// A change of what the store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored(Summary),
    /// A message was deleted: by a reader, by age, by the cap or by the bound.
    Deleted(Summary),
}

impl Event {
    /// The message that it happened to.
    pub fn summary(&self) -> &Summary {
        match self {
            Self::Stored(summary) | Self::Deleted(summary) => summary,
        }
    }

    fn matches_topic(&self, topic: Option<&MailboxName>) -> bool {
        topic.is_none_or(|mailbox| *mailbox == self.summary().mailbox)
    }
}

/// An event in its place among all others.
#[derive(Debug)]
pub struct PublishedEvent {
    /// Its place in the ring.
    seq: u64,
    position: Position,
    event: Event,
    rendered: OnceLock<Bytes>,
}

impl PublishedEvent {
    fn new(seq: u64, position: Position, event: Event) -> Self {
        Self { seq, position, event, rendered: OnceLock::new() }
    }

    /// Where it stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// What happened.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The form in which it is sent: the first who asks renders it, and the others get the same bytes. All who ask must
    /// therefore mean the same form.
    pub fn rendered(&self, render: impl FnOnce(&Event) -> Bytes) -> Bytes {
        self.rendered.get_or_init(|| render(&self.event)).clone()
    }
}

/// A place in the order of all events, by which a listener can go on where it was cut off. It prints as `{run}-{number}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Tells this run of the server from those before it, whose events nobody remembers. Zero where all nodes of a shared
    /// store number the events in the same way, in every run.
    run: u64,
    number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.number)
    }
}

/// The text is no position.
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

/// The listener is so far behind that it has missed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;
