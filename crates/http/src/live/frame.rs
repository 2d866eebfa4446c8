//! The JSON of events, and the filter of a subscriber. Each event is rendered once, in the format of version 2, for all
//! subscribers. The JSON of version 1 is a slice of it.

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

/// The events that a subscriber gets, and their format.
#[derive(Clone, Debug)]
pub(crate) struct EventFilter {
    /// The format of the events.
    pub(crate) format: EventFormat,
    /// Only events of the mailboxes that this grant allows are sent.
    pub(crate) grant: Grant,
}

impl EventFilter {
    /// Returns the JSON of an event, or `None` if the subscriber does not get it.
    pub(crate) fn render(&self, published: &PublishedEvent) -> Option<Bytes> {
        let is_visible = self.grant.covers(&published.event().summary().mailbox);
        if is_visible { self.format.render(published) } else { None }
    }
}

/// The two formats of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFormat {
    /// Version 1: the summary record of a stored message. Deletions are not sent.
    Summary,
    /// Version 2: what happened, and to which message.
    Change,
}

impl EventFormat {
    /// Returns the JSON of an event, or `None` if this format does not include it.
    fn render(self, published: &PublishedEvent) -> Option<Bytes> {
        match (self, published.event()) {
            (Self::Change, _) => Some(published.rendered(render_change)),
            (Self::Summary, Event::Stored(..)) => {
                let change = published.rendered(render_change);
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
    /// The deleted message. Null if a message was stored.
    #[schema(required)]
    identifier: Option<Identifier<'a>>,
    /// The stored message. Null if a message was deleted.
    #[schema(required)]
    header: Option<MessageRecord<'a>>,
}

impl<'a> From<&'a Event> for Change<'a> {
    fn from(event: &'a Event) -> Self {
        match event {
            Event::Stored(summary, _) => {
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

/// The kind of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    MessageStored,
    MessageDeleted,
}

/// Renders a [`Change`]. This happens for every stored message, so the record is written directly instead of building a
/// value first.
pub(crate) fn render_change(event: &Event) -> Bytes {
    let mut out = Vec::with_capacity(message_json::record_size(event.summary()) + STORED_PREFIX.len());
    match event {
        Event::Stored(summary, _) => {
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
    // The rendered event is kept for a while, and its size was overestimated.
    out.shrink_to_fit();
    out.into()
}
