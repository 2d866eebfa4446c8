//! Tracks the responses that are being sent on one HTTP/2 connection, and how fast the client reads each of them. If a
//! client does not read one response, the connection as a whole is not blocked. Therefore this module checks each
//! response, as `write_timeout` checks an HTTP/1.1 connection.
//!
//! A response is sent in chunks. A chunk is dropped after it has been written, wherever it was buffered. Dropping it
//! counts its bytes as written.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

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

/// A response, and how long its client may still read nothing of it.
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
    pub(crate) fn new(patience: WriteTimeout) -> Self {
        Self(Arc::new(Mutex::new(TrackerState { timeout: patience, responses: Vec::new(), has_new_request: true })))
    }

    /// Starts to track the response to a new request.
    pub(crate) fn track(&self, tenure: ConnectionGuard) -> Arc<ResponseProgress> {
        let entry = Arc::new(ResponseProgress {
            connection: tenure,
            pending_bytes: AtomicUsize::new(0),
            written_bytes: AtomicUsize::new(0),
        });
        let mut book = self.lock();
        book.has_new_request = true;
        let left = book.timeout.max_stall;
        // There are at most as many as streams, but finished ones must not pile up between two checks.
        if book.responses.len() == book.responses.capacity() {
            book.responses.retain(TrackedResponse::is_open);
        }
        book.responses.push(TrackedResponse { progress: Arc::downgrade(&entry), remaining: left });
        entry
    }

    /// Returns whether all unfinished responses are endless.
    pub(crate) fn has_only_endless_responses(&self) -> bool {
        self.lock()
            .responses
            .iter()
            .filter_map(|line| line.progress.upgrade())
            .all(|entry| entry.connection.is_response_endless())
    }

    /// Returns whether no response is unfinished and no request has arrived since the last call.
    pub(crate) fn was_idle_since_last_check(&self) -> bool {
        let mut book = self.lock();
        let is_fresh = std::mem::replace(&mut book.has_new_request, false);
        !is_fresh && !book.responses.iter().any(TrackedResponse::is_open)
    }

    /// Returns whether the client reads every response fast enough. `since_last_time` is the time since the last call.
    pub(crate) fn check_progress(&self, since_last_time: Duration) -> bool {
        let mut book = self.lock();
        let WriteTimeout { max_stall: stock, min_bytes_per_second: rate } = book.timeout;
        book.responses.retain(TrackedResponse::is_open);
        let open = book.responses.iter_mut().filter_map(|line| Some((line.progress.upgrade()?, &mut line.remaining)));
        let waiting: Vec<_> = open.filter(|(entry, _)| entry.pending_bytes.load(Ordering::Relaxed) > 0).collect();
        // The responses share one connection, so each may be slower by the number of responses.
        let sharers = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        waiting.into_iter().all(|(entry, left)| {
            let taken = u32::try_from(entry.written_bytes.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX);
            let regained = Duration::from_secs(1) * taken / rate;
            let regained = left.saturating_add(regained.saturating_mul(sharers)).min(stock);
            *left = regained.saturating_sub(since_last_time);
            !left.is_zero()
        })
    }

    fn lock(&self) -> MutexGuard<'_, TrackerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) fn new(body: Body, entry: Arc<ResponseProgress>) -> Self {
        Self { body, progress: entry, rest: Bytes::new() }
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
        let piece = TrackedChunk::new(self.rest.split_to(length), self.progress.clone());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
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
    fn new(bytes: Bytes, entry: Arc<ResponseProgress>) -> Self {
        entry.pending_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes, progress: entry }
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

    const PATIENCE: WriteTimeout = WriteTimeout { max_stall: Duration::from_mins(1), min_bytes_per_second: 1000 };
    const SECOND: Duration = Duration::from_secs(1);

    fn tenure() -> ConnectionGuard {
        ConnectionGuard::new(None, ShutdownTrigger::new().1)
    }

    fn piece(entry: &Arc<ResponseProgress>, length: usize) -> TrackedChunk {
        TrackedChunk::new(Bytes::from(vec![0; length]), entry.clone())
    }

    #[tokio::test]
    async fn a_body_stays_what_it_is() {
        for length in [0, 1, MAX_CHUNK_BYTES - 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 10 * MAX_CHUNK_BYTES + 7] {
            let bytes: Bytes = (0..length).map(|number| number.to_le_bytes()[0]).collect();
            let ledger = ResponseTracker::new(PATIENCE);
            let mut body = TrackedBody::new(Body::from(bytes.clone()), ledger.track(tenure()));
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(length as u64));
            let mut read = Vec::new();
            while let Some(frame) = body.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= MAX_CHUNK_BYTES);
                read.extend_from_slice(&piece);
                assert_eq!(http_body::Body::size_hint(&body).exact(), Some((length - read.len()) as u64));
            }
            assert!(read == bytes && http_body::Body::is_end_stream(&body), "{length}");
        }
    }

    /// Returns for how many seconds responses are served if this number of bytes of each is read per second.
    fn served(answers: usize, bytes: usize) -> usize {
        let ledger = ResponseTracker::new(PATIENCE);
        let entries: Vec<_> = (0..answers).map(|_| ledger.track(tenure())).collect();
        let _held: Vec<_> = entries.iter().map(|entry| piece(entry, 1)).collect();
        let in_time = |_: &usize| {
            for entry in &entries {
                drop(piece(entry, bytes));
            }
            ledger.check_progress(SECOND)
        };
        (0..1000).take_while(in_time).count()
    }

    #[test]
    fn who_is_waited_for() {
        assert_eq!(served(1, 0), 59);
        assert_eq!(served(1, 500), 118);
        assert_eq!(served(1, 1000), 1000);
        // Two responses share a connection.
        assert_eq!(served(2, 500), 1000);
        assert_eq!(served(2, 250), 118);
    }

    #[test]
    fn an_answer_that_has_nothing_to_say_is_not_waited_for() {
        let ledger = ResponseTracker::new(PATIENCE);
        let _entry = ledger.track(tenure());
        assert!((0..1000).all(|_| ledger.check_progress(SECOND)));
    }

    #[test]
    fn quiet_is_where_nothing_is_asked_or_answered() {
        let ledger = ResponseTracker::new(PATIENCE);
        assert_eq!(
            (ledger.was_idle_since_last_check(), ledger.was_idle_since_last_check()),
            (false, true),
            "a connection has just begun"
        );
        let entry = ledger.track(tenure());
        let last = piece(&entry, 1);
        drop(entry);
        assert_eq!(
            (ledger.was_idle_since_last_check(), ledger.was_idle_since_last_check()),
            (false, false),
            "an answer is on its way"
        );
        drop(last);
        assert!(ledger.was_idle_since_last_check());
        drop(ledger.track(tenure()));
        assert_eq!(
            (ledger.was_idle_since_last_check(), ledger.was_idle_since_last_check()),
            (false, true),
            "a request has come"
        );
    }

    #[test]
    fn endless_is_a_connection_with_nothing_else() {
        let ledger = ResponseTracker::new(PATIENCE);
        let (finite, endless) = (tenure(), tenure());
        endless.set_response_endless(true);
        let (finite, _endless) = (ledger.track(finite), ledger.track(endless));
        assert!(!ledger.has_only_endless_responses());
        drop(finite);
        assert!(ledger.has_only_endless_responses());
    }
}
