//! Tracks the responses that are being sent on one HTTP/2 connection, and how fast the client reads each of them. If a
//! client does not read one response, the connection as a whole is not blocked. Therefore this module checks each
//! response, as `write_timeout` checks an HTTP/1.1 connection.
//!
//! A response is sent in chunks. A chunk is dropped after it has been written, wherever it was buffered. Dropping it
//! counts its bytes as written.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::context::ConnectionGuard;
use crate::write_timeout::WriteTimeout;

/// The maximum size of a chunk: the default maximum size of a frame (RFC 9113 section 4.2).
const MAX_CHUNK_BYTES: usize = 16 * 1024;

/// Tracks the responses of one connection. See the module documentation. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ResponseTracker(Arc<Mutex<TrackerState>>);

struct TrackerState {
    timeout: WriteTimeout,
    responses: Vec<TrackedResponse>,
    /// Whether a request has arrived since the last idle check.
    has_new_request: bool,
}

/// A response, and the time for which its client may still stall before it is disconnected.
struct TrackedResponse {
    progress: Weak<ResponseProgress>,
    remaining: Duration,
}

/// The progress of a response that is being produced or sent.
pub(crate) struct ResponseProgress {
    connection: ConnectionGuard,
    /// The number of bytes that were passed to hyper and are not written yet.
    pending_bytes: AtomicUsize,
    /// The number of bytes that were written since the last check.
    written_bytes: AtomicUsize,
}

impl ResponseTracker {
    /// Creates a tracker that enforces this timeout.
    pub(crate) fn new(timeout: WriteTimeout) -> Self {
        Self(Arc::new(Mutex::new(TrackerState { timeout, responses: Vec::new(), has_new_request: true })))
    }

    /// Starts to track the response to a new request.
    pub(crate) fn track(&self, connection: ConnectionGuard) -> Arc<ResponseProgress> {
        let progress = Arc::new(ResponseProgress {
            connection,
            pending_bytes: AtomicUsize::new(0),
            written_bytes: AtomicUsize::new(0),
        });
        let mut state = self.0.lock();
        state.has_new_request = true;
        let remaining = state.timeout.max_stall;
        // There are at most as many open responses as streams, but finished ones must not pile up between two checks.
        if state.responses.len() == state.responses.capacity() {
            state.responses.retain(TrackedResponse::is_open);
        }
        state.responses.push(TrackedResponse { progress: Arc::downgrade(&progress), remaining });
        progress
    }

    /// Returns whether all unfinished responses are endless.
    pub(crate) fn has_only_endless_responses(&self) -> bool {
        self.0
            .lock()
            .responses
            .iter()
            .filter_map(|response| response.progress.upgrade())
            .all(|progress| progress.connection.is_response_endless())
    }

    /// Returns whether no response is unfinished and no request has arrived since the last call.
    pub(crate) fn was_idle_since_last_check(&self) -> bool {
        let mut state = self.0.lock();
        let has_new_request = std::mem::replace(&mut state.has_new_request, false);
        !has_new_request && !state.responses.iter().any(TrackedResponse::is_open)
    }

    /// Returns whether the client reads every response fast enough. `since_last_call` is the time since the last call.
    pub(crate) fn check_progress(&self, since_last_call: Duration) -> bool {
        let mut state = self.0.lock();
        let WriteTimeout { max_stall, min_bytes_per_second } = state.timeout;
        state.responses.retain(TrackedResponse::is_open);
        let open = state
            .responses
            .iter_mut()
            .filter_map(|response| Some((response.progress.upgrade()?, &mut response.remaining)));
        let pending: Vec<_> = open.filter(|(progress, _)| progress.pending_bytes.load(Ordering::Relaxed) > 0).collect();
        // The responses share one connection, so each may be slower by the number of responses.
        let pending_count = u32::try_from(pending.len()).unwrap_or(u32::MAX);
        pending.into_iter().all(|(progress, remaining)| {
            let written = u32::try_from(progress.written_bytes.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX);
            let regained = Duration::from_secs(1) * written / min_bytes_per_second;
            let replenished = remaining.saturating_add(regained.saturating_mul(pending_count)).min(max_stall);
            *remaining = replenished.saturating_sub(since_last_call);
            !remaining.is_zero()
        })
    }
}

impl TrackedResponse {
    fn is_open(&self) -> bool {
        self.progress.strong_count() > 0
    }
}

/// A response body in tracked chunks.
pub(crate) struct TrackedBody {
    body: Body,
    progress: Arc<ResponseProgress>,
    /// Data from the body that is not sent yet.
    rest: Bytes,
}

impl TrackedBody {
    pub(crate) fn new(body: Body, progress: Arc<ResponseProgress>) -> Self {
        Self { body, progress, rest: Bytes::new() }
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(MAX_CHUNK_BYTES);
        let chunk = TrackedChunk::new(self.rest.split_to(length), self.progress.clone());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// A chunk of a response. It counts as pending until it is dropped.
struct TrackedChunk {
    bytes: Bytes,
    progress: Arc<ResponseProgress>,
}

impl TrackedChunk {
    fn new(bytes: Bytes, progress: Arc<ResponseProgress>) -> Self {
        progress.pending_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes, progress }
    }
}

impl AsRef<[u8]> for TrackedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for TrackedChunk {
    fn drop(&mut self) {
        self.progress.pending_bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.progress.written_bytes.fetch_add(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use restante_net::ShutdownTrigger;

    const TIMEOUT: WriteTimeout = WriteTimeout { max_stall: Duration::from_mins(1), min_bytes_per_second: 1000 };
    const SECOND: Duration = Duration::from_secs(1);

    fn connection() -> ConnectionGuard {
        ConnectionGuard::new(None, ShutdownTrigger::new().1)
    }

    fn chunk(progress: &Arc<ResponseProgress>, length: usize) -> TrackedChunk {
        TrackedChunk::new(Bytes::from(vec![0; length]), progress.clone())
    }

    #[tokio::test]
    async fn body_is_unchanged() {
        for length in [0, 1, MAX_CHUNK_BYTES - 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 10 * MAX_CHUNK_BYTES + 7] {
            let bytes: Bytes = (0..length).map(|number| number.to_le_bytes()[0]).collect();
            let tracker = ResponseTracker::new(TIMEOUT);
            let mut body = TrackedBody::new(Body::from(bytes.clone()), tracker.track(connection()));
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(length as u64));
            let mut read = Vec::new();
            while let Some(frame) = body.frame().await {
                let chunk = frame.unwrap().into_data().unwrap();
                assert!(chunk.len() <= MAX_CHUNK_BYTES);
                read.extend_from_slice(&chunk);
                assert_eq!(http_body::Body::size_hint(&body).exact(), Some((length - read.len()) as u64));
            }
            assert!(read == bytes && http_body::Body::is_end_stream(&body), "{length}");
        }
    }

    /// Returns for how many seconds responses are served if this number of bytes of each is read per second.
    fn seconds_until_timeout(count: usize, bytes: usize) -> usize {
        let tracker = ResponseTracker::new(TIMEOUT);
        let responses: Vec<_> = (0..count).map(|_| tracker.track(connection())).collect();
        let _held: Vec<_> = responses.iter().map(|progress| chunk(progress, 1)).collect();
        let in_time = |_: &usize| {
            for progress in &responses {
                drop(chunk(progress, bytes));
            }
            tracker.check_progress(SECOND)
        };
        (0..1000).take_while(in_time).count()
    }

    #[test]
    fn slow_responses_time_out() {
        assert_eq!(seconds_until_timeout(1, 0), 59);
        assert_eq!(seconds_until_timeout(1, 500), 118);
        assert_eq!(seconds_until_timeout(1, 1000), 1000);
        // Two responses share a connection.
        assert_eq!(seconds_until_timeout(2, 500), 1000);
        assert_eq!(seconds_until_timeout(2, 250), 118);
    }

    #[test]
    fn response_without_pending_data_does_not_time_out() {
        let tracker = ResponseTracker::new(TIMEOUT);
        let _progress = tracker.track(connection());
        assert!((0..1000).all(|_| tracker.check_progress(SECOND)));
    }

    #[test]
    fn idle_without_requests_and_responses() {
        let tracker = ResponseTracker::new(TIMEOUT);
        assert_eq!(
            (tracker.was_idle_since_last_check(), tracker.was_idle_since_last_check()),
            (false, true),
            "a new connection"
        );
        let progress = tracker.track(connection());
        let last = chunk(&progress, 1);
        drop(progress);
        assert_eq!(
            (tracker.was_idle_since_last_check(), tracker.was_idle_since_last_check()),
            (false, false),
            "a response is being sent"
        );
        drop(last);
        assert!(tracker.was_idle_since_last_check());
        drop(tracker.track(connection()));
        assert_eq!(
            (tracker.was_idle_since_last_check(), tracker.was_idle_since_last_check()),
            (false, true),
            "a request has arrived"
        );
    }

    #[test]
    fn endless_only_if_all_responses_are() {
        let tracker = ResponseTracker::new(TIMEOUT);
        let (finite, endless) = (connection(), connection());
        endless.set_response_endless(true);
        let (finite, _endless) = (tracker.track(finite), tracker.track(endless));
        assert!(!tracker.has_only_endless_responses());
        drop(finite);
        assert!(tracker.has_only_endless_responses());
    }
}
