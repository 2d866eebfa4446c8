//! The live monitor: whoever listens is told of every message that is stored or deleted, from the last ones on. It is
//! spoken as WebSocket in `socket` and as Server-Sent Events in `stream`; `frame` is the JSON that both send. Who is told
//! what, and when, is decided in the mailroom.

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
use restante_metrics::Monitors;
use restante_net::ClientSlot;
use tokio::sync::OwnedSemaphorePermit;

use crate::extractors::cancellation;
use crate::extractors::login_session::Admitted;
use crate::extractors::parameters::{Topic, granted};
use crate::response::problem::Problem;
use crate::state::Server;
use frame::{Audience, Form};
use handshake::Handshake;
use stream::Resumption;

/// WebSocket, version 1: one summary record for every message that is stored.
pub(crate) async fn summaries(State(server): State<Arc<Server>>, listener: Listener, handshake: Handshake) -> Response {
    listen(&server, listener, handshake, Form::Summary)
}

/// WebSocket, version 2: one record for every change.
pub(crate) async fn changes(State(server): State<Arc<Server>>, listener: Listener, handshake: Handshake) -> Response {
    listen(&server, listener, handshake, Form::Change)
}

/// Server-Sent Events.
pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    listener: Listener,
    Resumption(resume): Resumption,
) -> Response {
    let Listener { topic, grant, admitted, tenure, departure, seat, .. } = listener;
    let events = server.mailroom.subscribe(topic, resume);
    let open = Open::new(&server.settings.metrics.monitors, |monitors| &monitors.streams, seat);
    let audience = Audience { form: Form::Change, grant };
    if let Some(tenure) = &tenure {
        tenure.set_response_endless(true);
    }
    let ending = async move { ending(tenure.as_ref(), admitted.as_ref()).await };
    stream::answer(events, audience, ending, departure, open)
}

/// Who may listen, and to what.
pub(crate) struct Listener {
    topic: Option<MailboxName>,
    /// What it may hear of.
    grant: Grant,
    /// Who it is, where one has to say so.
    admitted: Option<Admitted>,
    tenure: Option<ConnectionGuard>,
    /// Its place among the requests of a client behind a proxy, where these are limited.
    place: Option<Arc<ClientSlot>>,
    departure: Option<Disconnect>,
    /// Its place among all who listen, where these are limited.
    seat: Option<OwnedSemaphorePermit>,
}

impl FromRequestParts<Arc<Server>> for Listener {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let Topic(topic) = Topic::from_request_parts(parts, server).await?;
        let grant = granted(parts)?.clone();
        let seat = seat(server)?;
        let extensions = &parts.extensions;
        let (tenure, place, departure) =
            (extensions.get().cloned(), extensions.get().cloned(), extensions.get().cloned());
        Ok(Self { topic, grant, admitted: extensions.get().cloned(), tenure, place, departure, seat })
    }
}

/// A place among all who listen; none where these are not limited.
fn seat(server: &Server) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let Some(seats) = &server.monitors else { return Ok(None) };
    let seat = seats.clone().try_acquire_owned();
    if seat.is_err() && server.told.monitors.is_due() {
        tracing::warn!("too many listen to the live monitor: new ones are refused");
    }
    seat.map(Some).map_err(|_| Problem::TooManyMonitors)
}

fn listen(server: &Server, listener: Listener, handshake: Handshake, form: Form) -> Response {
    let Listener { topic, grant, admitted, tenure, place, seat, .. } = listener;
    let events = server.mailroom.subscribe(topic, None);
    let open = Open::new(&server.settings.metrics.monitors, |monitors| &monitors.websockets, seat);
    // HTTP is done with the connection then, so everything that belongs to it goes with the listener.
    let audience = Audience { form, grant };
    handshake.accept(async move |stream| {
        socket::serve(stream, events, &audience, ending(tenure.as_ref(), admitted.as_ref()), &open).await;
        drop(place);
    })
}

/// Why nothing more is told, although the client still listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// The server begins to end.
    Shutdown,
    /// The client would not be let in any more.
    Revoked,
}

/// Waits until there is a reason to end on this side.
async fn ending(tenure: Option<&ConnectionGuard>, admitted: Option<&Admitted>) -> Notice {
    tokio::select! {
        () = cancellation::ending(tenure) => Notice::Shutdown,
        _ = cancellation::lost(admitted) => Notice::Revoked,
    }
}

/// One who listens, counted as long as it does.
struct Open {
    monitors: Arc<Monitors>,
    kind: fn(&Monitors) -> &AtomicUsize,
    _seat: Option<OwnedSemaphorePermit>,
}

impl Open {
    fn new(monitors: &Arc<Monitors>, kind: fn(&Monitors) -> &AtomicUsize, seat: Option<OwnedSemaphorePermit>) -> Self {
        kind(monitors).fetch_add(1, Ordering::Relaxed);
        Self { monitors: monitors.clone(), kind, _seat: seat }
    }

    /// Notes that this one could not follow.
    fn lagged(&self) {
        self.monitors.lagged.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.kind)(&self.monitors).fetch_sub(1, Ordering::Relaxed);
    }
}
