//! One HTTP connection. HTTP/1.1 is spoken here: with keep-alive, bounded in header size and in the time that a client may
//! take to send its header and to take its answer. HTTP/2 is in `http2`.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tower::Service as _;

use super::departure::Observed;
use super::http2;
use super::impatient::{Impatient, Patience};
use super::problem::Problem;
use crate::net::{Admission, GRACE, Shutdown, TooMany};

/// How long a client may take to send the header of its next request, counted from the last answer.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take nothing of an answer, and how fast it must take it in the long run: a line of 128 kbit/s
/// will do.
pub(super) const WRITE_PATIENCE: Patience = Patience { stock: Duration::from_mins(1), rate: 16 * 1024 };
/// How long the client of an endless answer may take for its rest when the server ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// The largest header of a request.
pub(super) const MAX_HEADER: u32 = 32 * 1024;
/// How long a client that is refused has to send its request and to close.
const REFUSAL_TIME: Duration = Duration::from_millis(500);
/// How many reads of what it sends meanwhile are thrown away.
const REFUSAL_READS: usize = 64;
/// What is read ahead at most, and what may wait to be written before an answer is asked for more.
pub(super) const MAX_BUFFER: usize = 64 * 1024;

/// Why a connection has ended that would have gone on.
pub(super) const CUT_OFF: &str = "cut off at the end of the server";
/// What is said to those who come without TLS where it is needed.
const SPEAKS_HTTPS: &[u8] = b"This port speaks HTTPS: the URL must begin with https://.\n";

/// What can be agreed on in a TLS handshake, the best first (RFC 7301).
pub const PROTOCOLS: [&str; 2] = [HTTP2, "http/1.1"];
const HTTP2: &str = "h2";

/// The version of HTTP that a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// The one that was agreed on. Who agrees on nothing speaks what everybody does.
    pub fn agreed(protocol: Option<&[u8]>) -> Self {
        if protocol == Some(HTTP2.as_bytes()) { Self::Http2 } else { Self::Http1 }
    }
}

/// Who is at the other end, and how the connection came about. Every request carries it as an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The client's address, be it by the word of a proxy; `None` on a unix socket.
    pub ip: Option<IpAddr>,
    /// The address of the other end itself: the client's or, where a PROXY header named the client, the proxy's.
    pub via: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

impl Peer {
    /// The scheme of a URL for this connection.
    pub fn scheme(self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl From<Option<IpAddr>> for Peer {
    /// A peer that speaks for itself, on a connection that is not encrypted.
    fn from(ip: Option<IpAddr>) -> Self {
        Self { ip, via: ip, tls: false }
    }
}

/// What is held as long as a connection is there: its place among the connections, and the server's end, which waits for
/// it. Every request carries it as an extension, because a connection that was upgraded is served by somebody else.
#[derive(Clone)]
pub struct Tenure(Arc<Held>);

struct Held {
    /// Held, not used.
    admission: Option<Arc<Admission>>,
    shutdown: Shutdown,
    /// Whether the answer under way only ends when somebody wants it to.
    is_endless: AtomicBool,
}

impl Tenure {
    /// A connection's, with its place if places are counted.
    pub fn new(admission: Option<Admission>, shutdown: Shutdown) -> Self {
        Self::of(admission.map(Arc::new), shutdown)
    }

    /// The same connection's, for one answer beside others.
    pub(super) fn for_one_answer(&self) -> Self {
        Self::of(self.0.admission.clone(), self.0.shutdown.clone())
    }

    fn of(admission: Option<Arc<Admission>>, shutdown: Shutdown) -> Self {
        Self(Arc::new(Held { admission, shutdown, is_endless: AtomicBool::new(false) }))
    }

    /// Says whether the answer under way is one that does not end by itself.
    pub(super) fn answer_is_endless(&self, endless: bool) {
        self.0.is_endless.store(endless, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(super) fn is_endless(&self) -> bool {
        self.0.is_endless.load(Ordering::Relaxed)
    }

    /// Waits until the server begins to end.
    pub async fn ending(&self) {
        self.0.shutdown.clone().begun().await;
    }

    /// Waits until the server has been ending for so long that the client should have taken the rest of its answer. Of
    /// one that does not end by itself nobody expects a certain rest.
    pub(super) async fn overdue(&self, is_endless: impl Fn() -> bool) {
        let mut shutdown = self.0.shutdown.clone();
        shutdown.going_on_for(FAREWELL).await;
        if !is_endless() {
            shutdown.going_on_for(GRACE).await;
        }
    }
}

/// Refuses a connection that is one too many. It is closed only when the client has closed or had the time to: closing
/// with a request unread would make the system reset the connection, and the client could miss the answer.
pub async fn refuse_connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, too_many: TooMany) {
    refuse(stream, &refusal(&too_many.into())).await;
}

/// Tells a client that has come to a port for HTTPS without TLS where it is. It is text, because those who see it are
/// people who have mistyped something.
pub async fn refuse_plain<S: AsyncRead + AsyncWrite + Unpin>(stream: S) {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        SPEAKS_HTTPS.len()
    );
    refuse(stream, &[head.as_bytes(), SPEAKS_HTTPS].concat()).await;
}

async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &[u8]) {
    let refusal = async {
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        let mut unwanted = [0; 4096];
        for _ in 0..REFUSAL_READS {
            if stream.read(&mut unwanted).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // Nobody waits for the outcome: the connection goes either way.
    drop(timeout(REFUSAL_TIME, refusal).await);
}

/// Serves a connection until the client ends it, breaks the rules or the time, or the server ends: then the requests under
/// way are finished, if the client does its part in time.
pub async fn serve_connection<S>(stream: S, peer: impl Into<Peer>, version: Version, router: Router, tenure: Tenure)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = peer.into();
    let ended = match version {
        Version::Http1 => serve_http1(stream, peer, router, tenure).await,
        // Most connections are of the other kind, and shall not take the memory that this one needs.
        Version::Http2 => Box::pin(http2::serve(stream, peer, router, tenure)).await,
    };
    // Clients leave in the middle of things all the time; only somebody who looks for a fault wants to know.
    if let Err(reason) = ended {
        tracing::debug!(reason, ip = peer.ip.map(display), "HTTP connection broke off");
    }
}

async fn serve_http1<S>(stream: S, peer: Peer, router: Router, tenure: Tenure) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let held = tenure.clone();
    let (stream, departure) = Observed::new(Impatient::new(stream, WRITE_PATIENCE));
    let service = service_fn(move |mut request: Request<Incoming>| {
        held.answer_is_endless(false);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(held.clone());
        request.extensions_mut().insert(departure.clone());
        let answer = router.clone().call(request.map(Body::new));
        async move { answer.await.map_err(|never: Infallible| never) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client that has sent its last request may say so; the answer is still for it (RFC 9112 section 9.6).
        // Whether it listens at all matters to answers that do not end; they look for themselves.
        .half_close(true)
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(MAX_HEADER as usize)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = tenure.ending() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = tenure.overdue(|| tenure.is_endless()) => return Err(CUT_OFF.to_owned()),
            }
        }
    };
    ended.map_err(|error| error.to_string())
}

/// A problem as a whole answer, for a connection on which no request is read.
fn refusal(problem: &Problem) -> Vec<u8> {
    let (status, body) = (problem.status(), problem.body());
    // `StatusCode` writes itself with its phrase.
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nretry-after: {}\r\n\
         connection: close\r\n\r\n",
        body.len(),
        problem.retry_after().unwrap_or("1"),
    );
    [head.into_bytes(), body].concat()
}
