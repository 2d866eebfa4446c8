//! The JSON of an event, and whom it is for. It is rendered once, as a record of version 2, whoever listens: version 1 is a
//! part of it.

use bytes::Bytes;
use restante_api_types::{Identifier, MessageRecord};
use restante_auth::Grant;
use restante_mailroom::events::{Event, PublishedEvent};
use serde::Serialize;
use utoipa::ToSchema;

use crate::response::{json, message_json};

const STORED_PREFIX: &[u8] = b"{\"variant\":\"message-stored\",\"identifier\":null,\"header\":";
const STORED_SUFFIX: &[u8] = b"}";
const DELETED_PREFIX: &[u8] = b"{\"variant\":\"message-deleted\",\"identifier\":{";
const DELETED_SUFFIX: &[u8] = b"},\"header\":null}";

/// What a listener is told of events.
#[derive(Clone, Debug)]
pub(crate) struct EventFilter {
    /// In which form.
    pub(crate) format: EventFormat,
    /// Of which mailboxes: those that this reaches.
    pub(crate) grant: Grant,
}

impl EventFilter {
    /// The JSON of an event; `None` when it is not for this listener.
    pub(crate) fn render(&self, told: &PublishedEvent) -> Option<Bytes> {
        let is_theirs = self.grant.covers(&told.event().summary().mailbox);
        if is_theirs { self.format.render(told) } else { None }
    }
}

/// The two forms of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFormat {
    /// Version 1: the summary record of a stored message. Deletions are not told.
    Summary,
    /// Version 2: what happened, and to which message.
    Change,
}

impl EventFormat {
    /// The JSON of an event; `None` when this form does not tell it.
    fn render(self, told: &PublishedEvent) -> Option<Bytes> {
        match (self, told.event()) {
            (Self::Change, _) => Some(told.rendered(render_change)),
            (Self::Summary, Event::Stored(_)) => {
                let change = told.rendered(render_change);
                Some(change.slice(STORED_PREFIX.len()..change.len() - STORED_SUFFIX.len()))
            }
            (Self::Summary, Event::Deleted(_)) => None,
        }
    }
}

/// What happened to a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Change<'a> {
    variant: Variant,
    /// The message that was deleted; null when one was stored.
    #[schema(required)]
    identifier: Option<Identifier<'a>>,
    /// The message that was stored; null when one was deleted.
    #[schema(required)]
    header: Option<MessageRecord<'a>>,
}

impl<'a> From<&'a Event> for Change<'a> {
    fn from(event: &'a Event) -> Self {
        match event {
            Event::Stored(summary) => {
                Self { variant: Variant::MessageStored, identifier: None, header: Some(summary.into()) }
            }
            Event::Deleted(summary) => {
                let identifier =
                    Identifier { mailbox: summary.mailbox.as_str().into(), id: summary.id.to_string().into() };
                Self { variant: Variant::MessageDeleted, identifier: Some(identifier), header: None }
            }
        }
    }
}

/// The kinds of changes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    MessageStored,
    MessageDeleted,
}

/// Writes a [`Change`]. Every message that is stored has one, so its record is not made into a value first.
pub(crate) fn render_change(event: &Event) -> Bytes {
    let mut out = Vec::with_capacity(message_json::record_size(event.summary()) + STORED_PREFIX.len());
    match event {
        Event::Stored(summary) => {
            out.extend_from_slice(STORED_PREFIX);
            message_json::record(&mut out, summary);
            out.extend_from_slice(STORED_SUFFIX);
        }
        Event::Deleted(summary) => {
            out.extend_from_slice(DELETED_PREFIX);
            message_json::field(&mut out, "mailbox", summary.mailbox.as_str());
            json::display(&mut out, format_args!(",\"id\":\"{}\"", summary.id));
            out.extend_from_slice(DELETED_SUFFIX);
        }
    }
    // It is kept for a while, and the guess of its size was generous.
    out.shrink_to_fit();
    out.into()
}
