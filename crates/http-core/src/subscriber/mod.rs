//! Subscribers of live events over WebSocket, for all APIs that have them: the request, its limits, and the connection.
//!
//! - `handshake`: the opening handshake
//! - `socket`: the connection after it
//! - `event_selector`: one event per message

pub mod event_selector;
pub mod handshake;
mod socket;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use restante_auth::Grant;
use restante_mail::naming::MailboxName;
use restante_mailroom::events::{PublishedEvent, Subscription};
use restante_metrics::{Gauge, Monitors, Total};
use restante_net::ClientSlot;
use tokio::sync::OwnedSemaphorePermit;

use crate::extractors::cancellation::Cancellation;
use crate::extractors::parameters::{OptionalPathMailbox, request_grant};
use crate::response::problem::Problem;
use crate::server::Server;
use handshake::Handshake;

/// A request to subscribe to events.
pub struct SubscribeRequest {
    /// The mailbox, or `None` for all.
    pub mailbox: Option<MailboxName>,
    /// The mailboxes whose events the subscriber may get.
    pub grant: Grant,
    /// The conditions that end the subscription.
    pub cancellation: Cancellation,
    /// The slot of the client among its requests through a proxy, if these are limited.
    client_slot: Option<Arc<ClientSlot>>,
    /// The permit of the subscriber, if the number of subscribers is limited.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl FromRequestParts<Arc<Server>> for SubscribeRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let OptionalPathMailbox(mailbox) = OptionalPathMailbox::from_request_parts(parts, server).await?;
        let grant = request_grant(parts)?.clone();
        let permit = subscriber_permit(server)?;
        let Ok(cancellation) = Cancellation::from_request_parts(parts, server).await;
        Ok(Self { mailbox, grant, cancellation, client_slot: parts.extensions.get().cloned(), permit })
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

/// Converts events to the messages of a WebSocket.
pub trait EventWriter: Send {
    /// Returns the JSON of an event, or `None` if the subscriber does not get it. Called once for each event, in their
    /// order.
    fn write_event(&mut self, published: &PublishedEvent) -> impl Future<Output = Option<Bytes>> + Send;

    /// Returns the JSON that follows a batch of events. Called after at most 64 events.
    fn finish_batch(&mut self) -> impl Future<Output = Vec<Bytes>> + Send {
        std::future::ready(Vec::new())
    }

    /// Waits until there are other messages than events. Must be cancel safe.
    fn report_ready(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Returns the JSON of these messages.
    fn write_report(&mut self) -> impl Future<Output = Vec<Bytes>> + Send {
        std::future::ready(Vec::new())
    }
}

/// Returns the response that accepts a WebSocket, and sends it events until it ends.
pub fn accept_websocket(
    server: &Server,
    request: SubscribeRequest,
    handshake: Handshake,
    events: Subscription,
    mut writer: impl EventWriter + 'static,
) -> Response {
    let SubscribeRequest { cancellation, client_slot, permit, .. } = request;
    let monitors = &server.settings.metrics.monitors;
    let guard = SubscriberGuard::new(monitors, &monitors.websockets, permit);
    // HTTP does not use the connection any more, so the task of the subscriber holds everything that belongs to it.
    handshake.accept(async move |stream| {
        socket::serve(stream, events, &mut writer, close_requested(&cancellation), &guard).await;
        drop(client_slot);
    })
}

/// The reason why the server closes a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The server shuts down.
    Shutdown,
    /// The credentials of the client are not valid any more.
    Revoked,
}

/// Waits until the server has a reason to close the subscription.
pub async fn close_requested(cancellation: &Cancellation) -> CloseReason {
    tokio::select! {
        () = cancellation.shutdown_started() => CloseReason::Shutdown,
        _ = cancellation.credentials_revoked() => CloseReason::Revoked,
    }
}

/// Counts a subscriber in the metrics and holds its permit, until it is dropped.
pub struct SubscriberGuard {
    open: Gauge,
    lagged: Total,
    _permit: Option<OwnedSemaphorePermit>,
}

impl SubscriberGuard {
    /// Counts a subscriber until this is dropped.
    pub fn new(monitors: &Monitors, open: &Gauge, permit: Option<OwnedSemaphorePermit>) -> Self {
        open.inc();
        Self { open: open.clone(), lagged: monitors.lagged.clone(), _permit: permit }
    }

    /// Counts a subscriber that was too slow.
    pub fn count_lagged(&self) {
        self.lagged.inc();
    }
}

impl Drop for SubscriberGuard {
    fn drop(&mut self) {
        self.open.dec();
    }
}
