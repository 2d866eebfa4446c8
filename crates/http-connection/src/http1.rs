//! Serves one HTTP connection. This file contains HTTP/1.1 with keep-alive and limits on the header size, the time to
//! send a header and the time to read a response; and the refusal of connections. HTTP/2 is in `http2`.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use restante_net::Stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tower::Service as _;

use crate::clean_path::clean_request_path;
use crate::context::{
    CLOSED_BY_SHUTDOWN, ConnectionGuard, HEADER_TIMEOUT, MAX_BUFFER_BYTES, MAX_HEADER_BYTES, Peer, WRITE_TIMEOUT,
};
use crate::disconnect::MonitoredStream;
use crate::http2;
use crate::write_timeout::TimeoutStream;

/// The time that a refused client has to send its request and to close the connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of reads that discard the input of a refused client.
const MAX_REFUSAL_READS: usize = 64;

/// The response to clients that connect without TLS to a port that requires it.
const HTTPS_REQUIRED: &[u8] = b"This port speaks HTTPS: the URL must begin with https://.\n";

/// The protocols that are offered in a TLS handshake, in order of preference (RFC 7301).
pub const ALPN_PROTOCOLS: [&str; 2] = [ALPN_HTTP2, "http/1.1"];
const ALPN_HTTP2: &str = "h2";

/// The HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// Returns the version that ALPN selected. Without ALPN it is HTTP/1.1.
    pub fn from_alpn(protocol: Option<&[u8]>) -> Self {
        if protocol == Some(ALPN_HTTP2.as_bytes()) { Self::Http2 } else { Self::Http1 }
    }
}

/// Refuses a client that connects without TLS to an HTTPS port. The response is plain text, because its usual reader is
/// a person who mistyped a URL.
pub async fn refuse_plaintext<S: AsyncRead + AsyncWrite + Unpin>(stream: S) {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        HTTPS_REQUIRED.len()
    );
    refuse(stream, &[head.as_bytes(), HTTPS_REQUIRED].concat()).await;
}

/// Writes a response and closes the connection, without reading a request. It waits until the client has closed or the
/// timeout has passed: closing with unread input resets the connection, and the client could miss the response.
pub async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, response: &[u8]) {
    let refusal = async {
        stream.write_all(response).await?;
        stream.shutdown().await?;
        let mut unwanted = [0; 4096];
        for _ in 0..MAX_REFUSAL_READS {
            if stream.read(&mut unwanted).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // The connection is closed in any case.
    drop(timeout(REFUSAL_TIMEOUT, refusal).await);
}

/// Serves a connection of a listener as [`serve_connection`] does. The future is boxed, so that the code of connections is generated with the
/// optimization level of this crate. The code of a future that is not boxed is generated in the crate that polls the future.
pub fn serve_stream(
    stream: Stream,
    peer: Peer,
    version: Version,
    router: Router,
    guard: ConnectionGuard,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(serve_connection(stream, peer, version, router, guard))
}

/// Serves a connection until the client closes it, violates the protocol or a timeout, or the server shuts down. On
/// shutdown, requests in progress are completed if the client reads their responses in time.
pub async fn serve_connection<S>(
    stream: S,
    peer: impl Into<Peer>,
    version: Version,
    router: Router,
    guard: ConnectionGuard,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = peer.into();
    let result = match version {
        Version::Http1 => serve_http1(stream, peer, router, guard).await,
        // Boxed because most connections are HTTP/1.1 and must not need the memory of an HTTP/2 connection.
        Version::Http2 => Box::pin(http2::serve(stream, peer, router, guard)).await,
    };
    // Clients often disconnect in the middle of a request, so this is only a debug message.
    if let Err(reason) = result {
        tracing::debug!(reason, ip = peer.ip.map(display), "HTTP connection failed");
    }
}

async fn serve_http1<S>(stream: S, peer: Peer, router: Router, guard: ConnectionGuard) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request_guard = guard.clone();
    let (stream, disconnect) = MonitoredStream::new(TimeoutStream::new(stream, WRITE_TIMEOUT));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request_guard.set_response_endless(false);
        clean_request_path(&mut request);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(request_guard.clone());
        request.extensions_mut().insert(disconnect.clone());
        let response = router.clone().call(request.map(Body::new));
        async move { response.await.map_err(|never: Infallible| never) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client may close its side after its last request and still read the response (RFC 9112 section 9.6).
        // Endless responses detect a real disconnect themselves.
        .half_close(true)
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(MAX_HEADER_BYTES as usize)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = guard.shutdown_started() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = connection => result,
                () = guard.shutdown_grace_over(|| guard.is_response_endless()) => return Err(CLOSED_BY_SHUTDOWN.to_owned()),
            }
        }
    };
    result.map_err(|error| error.to_string())
}
