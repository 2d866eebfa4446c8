//! Live events as Server-Sent Events (HTML Standard, section 9.2): a response that does not end while the client is
//! connected. A client that connects again sends the id of the last event that it got.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_http_core::subscriber::{CloseReason, SubscriberGuard, close_requested};
use restante_mailroom::events::{Event, Lagged, Position, PublishedEvent, Subscription};
use tokio::time::sleep;

use crate::live::frame::EventFilter;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Sent first: the number of milliseconds to wait before connecting again.
const PREAMBLE: &[u8] = b"retry: 1000\n\n";
/// A comment. It keeps proxies from closing an idle connection, and writing it detects a broken one.
const KEEP_ALIVE: &[u8] = b":\n";
/// The time without events after which a keep-alive comment is sent. It contains the current event id: the position of
/// the client becomes outdated even if only other mailboxes get messages.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Reports that events are missing at this position of the stream.
const LAGGED_EVENT: &[u8] = b"event: lagged\ndata: {}\n\n";
/// A comment with the reason for the end of the stream. A client that connects again is refused with 401.
const REVOKED_COMMENT: &[u8] = b": the credentials are no longer valid\n\n";
/// A chunk that has reached this size gets no further events.
const MAX_CHUNK_BYTES: usize = 16 * 1024;

/// The last event that the client got before it was disconnected, from `Last-Event-ID` or, for clients that cannot send
/// headers, `?lastEventId=`. Text that is not a position was not sent by this server: such a client starts from the
/// beginning, as after a restart of the server.
pub(crate) struct LastEventId(pub(crate) Option<Position>);

impl FromRequestParts<Arc<Server>> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, Problem> {
        if let Some(id) = parts.headers.get(LAST_EVENT_ID) {
            return Ok(Self(id.to_str().ok().and_then(|id| id.parse().ok())));
        }
        Ok(Self(QueryPairs::parse_leniently(&parts.uri)?.first("lastEventId").and_then(|id| id.parse().ok())))
    }
}

/// Returns the response with the event stream.
pub(crate) fn response(
    events: Subscription,
    filter: EventFilter,
    cancellation: Cancellation,
    guard: SubscriberGuard,
) -> Response {
    let close_requested = Box::pin(async move {
        tokio::select! {
            reason = close_requested(&cancellation) => Some(reason),
            () = cancellation.disconnected() => None,
        }
    });
    let stream = EventStream { events, filter, close_requested, guard, has_started: false, is_finished: false };
    let chunks = unfold(stream, async |mut stream| {
        let chunk = stream.next_chunk().await?;
        Some((Ok::<_, Infallible>(chunk), stream))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, success::NO_STORE);
    // Without this header, nginx would buffer events until its buffer is full.
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

struct EventStream {
    events: Subscription,
    filter: EventFilter,
    /// Ready when the server shuts down, when the credentials become invalid or, with `None`, when the client has
    /// disconnected.
    close_requested: Pin<Box<dyn Future<Output = Option<CloseReason>> + Send>>,
    guard: SubscriberGuard,
    has_started: bool,
    is_finished: bool,
}

impl EventStream {
    /// Returns the next chunk, or `None` at the end of the stream. A client that was too slow connects again with the
    /// last id that it got, and gets the missed events if they are still available.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        if self.is_finished {
            return None;
        }
        if !std::mem::replace(&mut self.has_started, true) {
            let gap = if self.events.has_gap() { LAGGED_EVENT } else { b"" };
            return Some([PREAMBLE, gap].concat().into());
        }
        let mut next = tokio::select! {
            biased;
            reason = &mut self.close_requested => {
                self.is_finished = true;
                return (reason == Some(CloseReason::Revoked)).then(|| Bytes::from_static(REVOKED_COMMENT));
            }
            published = self.events.next() => published.map(Some),
            // Also advances the position past events of other mailboxes.
            () = sleep(KEEP_ALIVE_INTERVAL) => self.events.try_next(),
        };
        if let Ok(None) = next {
            return Some(self.keep_alive());
        }
        let mut chunk = Vec::new();
        while let Ok(Some(published)) = &next {
            write_event(&mut chunk, &mut self.filter, published);
            if chunk.len() >= MAX_CHUNK_BYTES {
                break;
            }
            next = self.events.try_next();
        }
        if let Err(Lagged) = next {
            self.guard.count_lagged();
            self.is_finished = true;
            chunk.extend_from_slice(LAGGED_EVENT);
        }
        Some(chunk.into())
    }

    fn keep_alive(&self) -> Bytes {
        let mut chunk = KEEP_ALIVE.to_vec();
        if let Some(position) = self.events.position() {
            chunk.extend_from_slice(format!("id: {position}\n").as_bytes());
        }
        chunk.push(b'\n');
        chunk.into()
    }
}

/// Appends an event. The JSON contains no line feeds, so it is one line of data.
fn write_event(out: &mut Vec<u8>, filter: &mut EventFilter, published: &PublishedEvent) {
    let Some(data) = filter.render(published) else { return };
    let name = match published.event() {
        Event::Stored(..) => "message-stored",
        Event::Deleted(_) => "message-deleted",
    };
    out.extend_from_slice(format!("event: {name}\nid: {}\ndata: ", published.position()).as_bytes());
    out.extend_from_slice(&data);
    out.extend_from_slice(b"\n\n");
}
