//! Serves one HTTP/2 connection with many concurrent requests. Everything that a client can make grow is limited:
//! streams, headers, windows, and frames that cause work without a request.
//!
//! Canceled requests need no detection here: hyper drops their future or response body. Therefore `disconnect` is not
//! used.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};
use tower::Service as _;

use crate::clean_path::clean_request_path;
use crate::context::{
    CLOSED_BY_SHUTDOWN, ConnectionGuard, HEADER_TIMEOUT, MAX_BUFFER_BYTES, MAX_HEADER_BYTES, Peer, WRITE_TIMEOUT,
};
use crate::h2_progress::{ResponseTracker, TrackedBody};
use crate::write_timeout::TimeoutStream;

/// The maximum number of concurrent requests on one connection.
const MAX_STREAMS: u32 = 100;
/// The flow-control window of one request body: the bytes that are received before the handler reads them.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The flow-control window of all request bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// The number of unprocessed requests that a client may reset before the connection is closed (CVE-2023-44487).
const MAX_PENDING_RESETS: usize = 20;
/// The number of streams that the server may reset because of client errors before the connection is closed
/// (RUSTSEC-2024-0003).
const MAX_ERROR_RESETS: usize = 1024;
/// The interval of pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time that the client has to respond to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval at which the progress of responses is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Serves a connection until it ends. The error contains the reason for the log if it did not end regularly.
pub(crate) async fn serve<S>(stream: S, peer: Peer, router: Router, guard: ConnectionGuard) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tracker = ResponseTracker::new(WRITE_TIMEOUT);
    let (connection_guard, request_tracker) = (guard.clone(), tracker.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let guard = connection_guard.for_stream();
        let progress = request_tracker.track(guard.clone());
        clean_request_path(&mut request);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(guard);
        let response = router.clone().call(request.map(Body::new));
        async move { response.await.map(|response| response.map(|body| TrackedBody::new(body, progress))) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(MAX_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(TimeoutStream::new(stream, WRITE_TIMEOUT)), service);
    let mut connection = pin!(connection);
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_shutting_down = false;
    let mut idle_time = Duration::ZERO;
    loop {
        tokio::select! {
            result = connection.as_mut() => return result.map_err(|error| error.to_string()),
            () = guard.shutdown_started(), if !is_shutting_down => {
                is_shutting_down = true;
                connection.as_mut().graceful_shutdown();
            }
            () = guard.shutdown_grace_over(|| tracker.has_only_endless_responses()) => return Err(CLOSED_BY_SHUTDOWN.to_owned()),
            _ = checks.tick() => {
                if !tracker.check_progress(CHECK_INTERVAL) {
                    return Err("the client read a response too slowly".to_owned());
                }
                idle_time = if tracker.was_idle_since_last_check() { idle_time + CHECK_INTERVAL } else { Duration::ZERO };
                // An idle client can connect again. A request that is already on its way is still served: after the
                // GOAWAY frame of the graceful shutdown, the client has the same time again before the connection is
                // closed.
                if idle_time > 2 * HEADER_TIMEOUT {
                    return Err("the idle client did not close the connection".to_owned());
                }
                if idle_time > HEADER_TIMEOUT && !is_shutting_down {
                    is_shutting_down = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
