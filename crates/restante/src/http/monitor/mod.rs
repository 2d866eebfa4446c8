//! The live monitor: whoever listens is told of every message that is stored or deleted, from the last ones on. It is
//! spoken as WebSocket in `socket` and as Server-Sent Events in `stream`; `frame` is the JSON that both send. Who is told
//! what, and when, is decided in the mailroom.

mod frame;
mod handshake;
mod socket;
mod stream;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use restante_mail::naming::MailboxName;

use super::Server;
use super::connection::Tenure;
use super::guard::SameOrigin;
use super::problem::Problem;
use super::target::Topic;
use crate::metrics::Monitors;
use crate::net::Place;
use frame::Form;
use handshake::Handshake;
use stream::Resumption;

/// WebSocket, version 1: one summary record for every message that is stored.
pub(super) async fn summaries(State(server): State<Arc<Server>>, listener: Listener, handshake: Handshake) -> Response {
    listen(&server, listener, handshake, Form::Summary)
}

/// WebSocket, version 2: one record for every change.
pub(super) async fn changes(State(server): State<Arc<Server>>, listener: Listener, handshake: Handshake) -> Response {
    listen(&server, listener, handshake, Form::Change)
}

/// Server-Sent Events.
pub(super) async fn events(
    State(server): State<Arc<Server>>,
    listener: Listener,
    Resumption(resume): Resumption,
) -> Response {
    let events = server.mailroom.subscribe(listener.topic, resume);
    stream::answer(events, listener.tenure, Open::new(&server.settings.metrics.monitors, |monitors| &monitors.streams))
}

/// Who may listen, and to what.
pub(super) struct Listener {
    topic: Option<MailboxName>,
    tenure: Option<Tenure>,
    /// Its place among the requests of a client behind a proxy, where these are limited.
    place: Option<Arc<Place>>,
}

impl FromRequestParts<Arc<Server>> for Listener {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        SameOrigin::from_request_parts(parts, server).await?;
        let Topic(topic) = Topic::from_request_parts(parts, server).await?;
        let extensions = &parts.extensions;
        Ok(Self { topic, tenure: extensions.get().cloned(), place: extensions.get().cloned() })
    }
}

fn listen(server: &Server, listener: Listener, handshake: Handshake, form: Form) -> Response {
    let Listener { topic, tenure, place } = listener;
    let events = server.mailroom.subscribe(topic, None);
    let open = Open::new(&server.settings.metrics.monitors, |monitors| &monitors.websockets);
    // HTTP is done with the connection then, so everything that belongs to it goes with the listener.
    handshake.accept(async move |stream| {
        socket::serve(stream, events, form, ending(tenure.as_ref()), &open).await;
        drop(place);
    })
}

/// Waits until the server begins to end.
async fn ending(tenure: Option<&Tenure>) {
    match tenure {
        Some(tenure) => tenure.ending().await,
        None => pending().await,
    }
}

/// One who listens, counted as long as it does.
struct Open {
    monitors: Arc<Monitors>,
    kind: fn(&Monitors) -> &AtomicUsize,
}

impl Open {
    fn new(monitors: &Arc<Monitors>, kind: fn(&Monitors) -> &AtomicUsize) -> Self {
        kind(monitors).fetch_add(1, Ordering::Relaxed);
        Self { monitors: monitors.clone(), kind }
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
