//! Live events: a subscriber gets every message that is stored or deleted, starting with the most recent ones. `socket`
//! sends events over WebSocket, `stream` as Server-Sent Events. The events of messages as a whole are one per stored
//! message, which `event_selector` selects; the others are one per copy. `frame` filters events and renders their JSON. The
//! mailroom decides which events a subscription contains.

mod event_selector;
pub(crate) mod frame;
mod handshake;
mod socket;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use restante_auth::Grant;
use restante_http_connection::context::ConnectionGuard;
use restante_http_connection::disconnect::Disconnect;
use restante_mail::naming::MailboxName;
use restante_mailroom::events::Position;
use restante_metrics::Monitors;
use restante_net::ClientSlot;
use tokio::sync::OwnedSemaphorePermit;

use crate::extractors::accepted_credentials::AcceptedCredentials;
use crate::extractors::cancellation;
use crate::extractors::parameters::{OptionalPathMailbox, request_grant};
use crate::response::problem::Problem;
use crate::state::Server;
use event_selector::EventSelector;
use frame::{EventFilter, EventFormat};
use handshake::Handshake;
use stream::LastEventId;

/// WebSocket, version 1: sends a summary record for every stored message.
pub(crate) async fn summaries(
    State(server): State<Arc<Server>>,
    request: SubscribeRequest,
    handshake: Handshake,
) -> Response {
    accept_websocket(&server, request, handshake, EventFormat::Summary)
}

/// WebSocket, version 2: sends a record for every change.
pub(crate) async fn changes(
    State(server): State<Arc<Server>>,
    request: SubscribeRequest,
    handshake: Handshake,
) -> Response {
    accept_websocket(&server, request, handshake, EventFormat::Change)
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
    let SubscribeRequest { mailbox, grant, credentials, connection, disconnect, permit, .. } = request;
    // In one mailbox there is one event per message.
    let selects_messages = mailbox.is_none();
    let events = server.mailroom.subscribe(mailbox, resume);
    let is_resumed = resume.is_some() && !events.has_gap();
    let selector = selects_messages.then(|| EventSelector::new(is_resumed));
    let guard = SubscriberGuard::new(&server.settings.metrics.monitors, |gauges| &gauges.streams, permit);
    let filter = EventFilter { format: EventFormat::Message, grant, selector };
    if let Some(connection) = &connection {
        connection.set_response_endless(true);
    }
    let close_requested = async move { close_requested(connection.as_ref(), credentials.as_ref()).await };
    stream::response(events, filter, close_requested, disconnect, guard)
}

/// A request to subscribe to events.
pub(crate) struct SubscribeRequest {
    mailbox: Option<MailboxName>,
    /// The mailboxes whose events the subscriber may get.
    grant: Grant,
    /// The credentials of the request, if authentication is enabled.
    credentials: Option<AcceptedCredentials>,
    connection: Option<ConnectionGuard>,
    /// The slot of the client among its requests through a proxy, if these are limited.
    client_slot: Option<Arc<ClientSlot>>,
    disconnect: Option<Disconnect>,
    /// The permit of the subscriber, if the number of subscribers is limited.
    permit: Option<OwnedSemaphorePermit>,
}

impl FromRequestParts<Arc<Server>> for SubscribeRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let OptionalPathMailbox(mailbox) = OptionalPathMailbox::from_request_parts(parts, server).await?;
        let grant = request_grant(parts)?.clone();
        let permit = subscriber_permit(server)?;
        let extensions = &parts.extensions;
        let (connection, client_slot, disconnect) =
            (extensions.get().cloned(), extensions.get().cloned(), extensions.get().cloned());
        Ok(Self { mailbox, grant, credentials: extensions.get().cloned(), connection, client_slot, disconnect, permit })
    }
}

/// Acquires a permit for a subscriber. Returns `None` if subscribers are not limited.
fn subscriber_permit(server: &Server) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let Some(permits) = &server.subscriber_permits else { return Ok(None) };
    let permit = permits.clone().try_acquire_owned();
    if permit.is_err() && server.log_throttles.subscribers.should_log() {
        tracing::warn!("limit of live event subscribers reached, refusing new ones; see the setting web.maxmonitors");
    }
    permit.map(Some).map_err(|_| Problem::TooManySubscribers)
}

fn accept_websocket(server: &Server, request: SubscribeRequest, handshake: Handshake, format: EventFormat) -> Response {
    let SubscribeRequest { mailbox, grant, credentials, connection, client_slot, permit, .. } = request;
    // In one mailbox there is one event per message.
    let selects_messages = format == EventFormat::Message && mailbox.is_none();
    let selector = selects_messages.then(|| EventSelector::new(false));
    let events = server.mailroom.subscribe(mailbox, None);
    let guard = SubscriberGuard::new(&server.settings.metrics.monitors, |gauges| &gauges.websockets, permit);
    // HTTP does not use the connection any more, so the task of the subscriber holds everything that belongs to it.
    let filter = EventFilter { format, grant, selector };
    handshake.accept(async move |stream| {
        socket::serve(stream, events, filter, close_requested(connection.as_ref(), credentials.as_ref()), &guard).await;
        drop(client_slot);
    })
}

/// The reason why the server closes a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseReason {
    /// The server shuts down.
    Shutdown,
    /// The credentials of the client are not valid any more.
    Revoked,
}

/// Waits until the server has a reason to close the subscription.
async fn close_requested(
    connection: Option<&ConnectionGuard>,
    credentials: Option<&AcceptedCredentials>,
) -> CloseReason {
    tokio::select! {
        () = cancellation::shutdown_started(connection) => CloseReason::Shutdown,
        _ = cancellation::credentials_revoked(credentials) => CloseReason::Revoked,
    }
}

/// Counts a subscriber in the metrics and holds its permit, until it is dropped.
struct SubscriberGuard {
    gauges: Arc<Monitors>,
    gauge: fn(&Monitors) -> &AtomicUsize,
    _permit: Option<OwnedSemaphorePermit>,
}

impl SubscriberGuard {
    fn new(gauges: &Arc<Monitors>, gauge: fn(&Monitors) -> &AtomicUsize, permit: Option<OwnedSemaphorePermit>) -> Self {
        gauge(gauges).fetch_add(1, Ordering::Relaxed);
        Self { gauges: gauges.clone(), gauge, _permit: permit }
    }

    /// Counts a subscriber that was too slow.
    fn count_lagged(&self) {
        self.gauges.lagged.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for SubscriberGuard {
    fn drop(&mut self) {
        (self.gauge)(&self.gauges).fetch_sub(1, Ordering::Relaxed);
    }
}
