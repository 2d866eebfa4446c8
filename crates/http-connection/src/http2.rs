//! HTTP/2 on one connection, on which many requests are under way at the same time. Everything that a client can make
//! grow is bounded: streams, headers, windows, and the frames that make work without asking for anything.
//!
//! A request that is given up is noticed without help here: its future, or the body of its answer, is dropped. What
//! `departure` does for HTTP/1.1 is therefore not done.

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

use crate::clean_path::clean;
use crate::context::{CUT_OFF, HEADER_TIMEOUT, MAX_BUFFER, MAX_HEADER, Peer, Tenure, WRITE_PATIENCE};
use crate::h2_progress::{Ledger, Metered};
use crate::write_timeout::Impatient;

/// The most requests at the same time on one connection.
const MAX_STREAMS: u32 = 100;
/// What is taken of one request's body before somebody reads it.
const STREAM_WINDOW: u32 = 64 * 1024;
/// What is taken of all of them.
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// How many requests may be taken back before they were looked at, and how many streams we may have to break off for a
/// client's mistakes, before it is sent away (CVE-2023-44487, RUSTSEC-2024-0003).
const MAX_TAKEN_BACK: usize = 20;
const MAX_MISTAKES: usize = 1024;
/// How often a client has to show that it is there, and how long it may take to.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// How often it is looked how fast answers are taken.
const LOOK: Duration = Duration::from_secs(5);

/// Serves a connection to its end. The error says, for the log, why that was no good one.
pub(crate) async fn serve<S>(stream: S, peer: Peer, router: Router, tenure: Tenure) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ledger = Ledger::new(WRITE_PATIENCE);
    let (held, book) = (tenure.clone(), ledger.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let tenure = held.for_one_answer();
        let entry = book.open(tenure.clone());
        clean(&mut request);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(tenure);
        let answer = router.clone().call(request.map(Body::new));
        async move { answer.await.map(|answer| answer.map(|body| Metered::new(body, entry))) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_BUFFER)
        .max_pending_accept_reset_streams(MAX_TAKEN_BACK)
        .max_local_error_reset_streams(MAX_MISTAKES)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .serve_connection(TokioIo::new(Impatient::new(stream, WRITE_PATIENCE)), service);
    let mut connection = pin!(connection);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_leaving = false;
    let mut quiet = Duration::ZERO;
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
            () = tenure.ending(), if !is_leaving => {
                is_leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tenure.overdue(|| ledger.is_endless()) => return Err(CUT_OFF.to_owned()),
            _ = looks.tick() => {
                if !ledger.is_taken(LOOK) {
                    return Err("an answer was taken too slowly".to_owned());
                }
                quiet = if ledger.is_quiet() { quiet + LOOK } else { Duration::ZERO };
                // Whoever has nothing to ask can come again. A request that is on its way is still answered, so a client
                // that knows that it shall leave has as much time again.
                if quiet > 2 * HEADER_TIMEOUT {
                    return Err("the client has nothing to ask and does not leave".to_owned());
                }
                if quiet > HEADER_TIMEOUT && !is_leaving {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
