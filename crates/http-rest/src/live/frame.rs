//! The JSON of events, and the filter of a subscriber. Each event is rendered once, in the format of version 2, for all
//! subscribers. The JSON of version 1 is a slice of it. The JSON of Server-Sent Events adds the message as a whole, which
//! depends on the grant of the subscriber.

use bytes::Bytes;
use restante_api_types::{Identifier, MessageEntry, MessageRecord};
use restante_auth::Grant;
use restante_http_core::response::message_json;
use restante_http_core::subscriber::EventWriter;
use restante_http_core::subscriber::event_selector::EventSelector;
use restante_mail::message::{Message, Summary};
use restante_mail::naming::Project;
use restante_mailroom::events::{Event, PublishedEvent};
use serde::Serialize;
use utoipa::ToSchema;

const STORED_PREFIX: &[u8] = b"{\"variant\":\"message-stored\",\"identifier\":null,\"header\":";
const STORED_SUFFIX: &[u8] = b"}";
const MESSAGE_FIELD: &[u8] = b",\"message\":";

/// The usual size of the fields of an entry that are not in a record.
const USUAL_ENTRY_GROWTH_BYTES: usize = 512;

/// The events that a subscriber gets, and their format.
#[derive(Debug)]
pub(super) struct EventFilter {
    /// The format of the events.
    pub(super) format: EventFormat,
    /// Only events of the mailboxes that this grant allows are sent.
    pub(super) grant: Grant,
    /// Selects one event per message. `None` if the subscriber gets those of all copies.
    pub(super) selector: Option<EventSelector>,
}

impl EventFilter {
    /// Returns the JSON of an event, or `None` if the subscriber does not get it. Call it once for each event, in their
    /// order.
    pub(super) fn render(&mut self, published: &PublishedEvent) -> Option<Bytes> {
        if !self.grant.covers(&published.event().summary().mailbox) {
            return None;
        }
        if !self.selector.as_mut().is_none_or(|selector| selector.selects(published.event(), &self.grant)) {
            return None;
        }
        let change = match self.grant.home() {
            None => published.rendered(render_change),
            home => render_relative_change(published.event(), home),
        };
        match (self.format, published.event()) {
            (EventFormat::Change, _) => Some(change),
            (EventFormat::Message, event) => Some(add_message(&change, event, &self.grant)),
            (EventFormat::Summary, Event::Stored(..)) => {
                Some(change.slice(STORED_PREFIX.len()..change.len() - STORED_SUFFIX.len()))
            }
            (EventFormat::Summary, Event::Deleted(_)) => None,
        }
    }
}

impl EventWriter for EventFilter {
    async fn write_event(&mut self, published: &PublishedEvent) -> Option<Bytes> {
        self.render(published)
    }
}

/// The formats of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFormat {
    /// Version 1: the summary record of a stored copy. Deletions are not sent.
    Summary,
    /// Version 2: what happened, and to which copy.
    Change,
    /// As version 2, with the message as a whole.
    Message,
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

impl<'a> Change<'a> {
    /// Creates the change of an event whose names of mailboxes are relative to a home.
    pub(super) fn new(event: &'a Event, home: Option<&Project>) -> Self {
        let mailbox = event.summary().mailbox.shown_in(home).into();
        match event {
            Event::Stored(summary, _) => {
                let header = MessageRecord { mailbox, ..summary.into() };
                Self { variant: Variant::MessageStored, identifier: None, header: Some(header) }
            }
            Event::Deleted(summary) => {
                let identifier = Identifier { mailbox, id: summary.id.to_string().into() };
                Self { variant: Variant::MessageDeleted, identifier: Some(identifier), header: None }
            }
        }
    }
}

/// What happened to a message, with the message as a whole.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageChange<'a> {
    #[serde(flatten)]
    pub(crate) change: Change<'a>,
    pub(crate) message: ChangedMessage<'a>,
}

/// The message that was changed.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChangedMessage<'a> {
    /// The stored message.
    Stored(Box<MessageEntry<'a>>),
    /// The message of the deleted copy.
    Deleted(DeletedMessage<'a>),
}

impl<'a> From<&'a Message> for ChangedMessage<'a> {
    fn from(stored: &'a Message) -> Self {
        Self::Stored(Box::new(stored.into()))
    }
}

impl<'a> ChangedMessage<'a> {
    pub(super) fn deleted(copy: &'a Summary, home: Option<&Project>) -> Self {
        Self::Deleted(DeletedMessage { id: copy.message.to_string(), mailboxes: vec![copy.mailbox.shown_in(home)] })
    }
}

/// The message of a deleted copy. Other copies of it may still exist.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedMessage<'a> {
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    id: String,
    /// The mailbox that contained the deleted copy.
    mailboxes: Vec<&'a str>,
}

/// The kind of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    MessageStored,
    MessageDeleted,
}

/// Renders a [`Change`] for subscribers without a home.
pub(crate) fn render_change(event: &Event) -> Bytes {
    render_relative_change(event, None)
}

/// Renders a [`Change`] for subscribers with this home.
fn render_relative_change(event: &Event, home: Option<&Project>) -> Bytes {
    let mut out = Vec::with_capacity(message_json::record_size(event.summary()) + STORED_PREFIX.len());
    append(&mut out, &Change::new(event, home));
    // The rendered event is kept for a while, and its size was overestimated.
    out.shrink_to_fit();
    out.into()
}

/// Adds the message as a whole to a rendered [`Change`], with the copies that the grant allows: a [`MessageChange`].
pub(crate) fn add_message(change: &[u8], event: &Event, grant: &Grant) -> Bytes {
    let fields = change.strip_suffix(b"}").unwrap_or(change);
    let mut out = Vec::with_capacity(2 * change.len() + USUAL_ENTRY_GROWTH_BYTES);
    out.extend_from_slice(fields);
    out.extend_from_slice(MESSAGE_FIELD);
    match event {
        Event::Stored(..) => {
            let copies = event.copies().iter().filter(|copy| grant.covers(&copy.mailbox)).cloned();
            // The events of a message have only its own copies.
            if let Some(message) = Message::group(copies).pop() {
                append(&mut out, &ChangedMessage::from(&message.relative_to(grant.home())));
            }
        }
        Event::Deleted(summary) => append(&mut out, &ChangedMessage::deleted(summary, grant.home())),
    }
    out.push(b'}');
    out.into()
}

fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    // Cannot fail: the values have only texts, numbers and lists.
    let _ = restante_api_types::json::append(out, value);
}
