//! Live events: a subscriber gets every message that is stored or deleted, starting with the most recent ones.
//! `restante_http_core::subscriber` sends events over WebSocket, `stream` as Server-Sent Events. The events of messages as a whole
//! are one per stored message; the others are one per copy. `frame` filters events and renders their JSON. The mailroom
//! decides which events a subscription contains.

pub(crate) mod frame;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use restante_http_core::server::Server;
use restante_http_core::subscriber::event_selector::EventSelector;
use restante_http_core::subscriber::handshake::Handshake;
use restante_http_core::subscriber::{self, SubscribeRequest, SubscriberGuard};
use restante_mailroom::events::Position;

use frame::{EventFilter, EventFormat};
use stream::LastEventId;

/// Returns the handler of a WebSocket that sends events in this format.
pub(crate) fn websocket(format: EventFormat) -> MethodRouter<Arc<Server>> {
    get(move |State(server): State<Arc<Server>>, request: SubscribeRequest, handshake: Handshake| async move {
        accept_websocket(&server, request, handshake, format)
    })
}

/// Server-Sent Events or, if the client requests that, a WebSocket: sends a record for every stored message and every
/// deleted copy.
pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    request: SubscribeRequest,
    handshake: Option<Handshake>,
    LastEventId(resume): LastEventId,
) -> Response {
    match handshake {
        Some(handshake) => accept_websocket(&server, request, handshake, EventFormat::Message),
        None => event_stream(&server, request, resume),
    }
}

fn event_stream(server: &Server, request: SubscribeRequest, resume: Option<Position>) -> Response {
    let SubscribeRequest { mailbox, grant, cancellation, permit, .. } = request;
    // In one mailbox there is one event per message.
    let selects_messages = mailbox.is_none();
    let events = server.mailroom.subscribe(mailbox, resume);
    let is_resumed = resume.is_some() && !events.has_gap();
    let selector = selects_messages.then(|| EventSelector::new(is_resumed));
    let monitors = &server.settings.metrics.monitors;
    let guard = SubscriberGuard::new(monitors, &monitors.streams, permit);
    let filter = EventFilter { format: EventFormat::Message, grant, selector };
    if let Some(connection) = &cancellation.connection {
        connection.set_response_endless(true);
    }
    stream::response(events, filter, cancellation, guard)
}

fn accept_websocket(server: &Server, request: SubscribeRequest, handshake: Handshake, format: EventFormat) -> Response {
    let (mailbox, grant) = (request.mailbox.clone(), request.grant.clone());
    // In one mailbox there is one event per message.
    let selects_messages = format == EventFormat::Message && mailbox.is_none();
    let selector = selects_messages.then(|| EventSelector::new(false));
    let events = server.mailroom.subscribe(mailbox, None);
    let filter = EventFilter { format, grant, selector };
    subscriber::accept_websocket(server, request, handshake, events, filter)
}
