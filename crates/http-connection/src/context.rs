//! The terms of a connection, whichever version of HTTP it is for: who is at the other end, what is held meanwhile, and the
//! bounds for both sides. What is spoken is in `connection` and `http2`.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use restante_net::{Admission, SHUTDOWN_GRACE_PERIOD, Shutdown};

use crate::write_timeout::WriteTimeout;

/// How long a client may take to send the header of its next request, counted from the last answer.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take nothing of an answer, and how fast it must take it in the long run: a line of 128 kbit/s
/// will do.
pub(crate) const WRITE_TIMEOUT: WriteTimeout =
    WriteTimeout { max_stall: Duration::from_mins(1), min_bytes_per_second: 16 * 1024 };
/// How long the client of an endless answer may take for its rest when the server ends.
const ENDLESS_RESPONSE_GRACE: Duration = Duration::from_secs(1);
/// The largest header of a request.
pub(crate) const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// What is read ahead at most, and what may wait to be written before an answer is asked for more.
pub(crate) const MAX_BUFFER_BYTES: usize = 64 * 1024;
/// Why a connection has ended that would have gone on.
pub(crate) const CLOSED_BY_SHUTDOWN: &str = "cut off at the end of the server";

/// Who is at the other end, and how the connection came about. Every request carries it as an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The client's address, be it by the word of a proxy; `None` on a unix socket.
    pub ip: Option<IpAddr>,
    /// The address of the other end itself: the client's or, where a PROXY header named the client, the proxy's.
    pub socket_ip: Option<IpAddr>,
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
        Self { ip, socket_ip: ip, tls: false }
    }
}

/// What is held as long as a connection is there: its place among the connections, and the server's end, which waits for
/// it. Every request carries it as an extension, because a connection that was upgraded is served by somebody else.
#[derive(Clone)]
pub struct ConnectionGuard(Arc<Inner>);

struct Inner {
    /// Held, not used.
    admission: Option<Arc<Admission>>,
    shutdown: Shutdown,
    /// Whether the answer under way only ends when somebody wants it to.
    is_response_endless: AtomicBool,
}

impl ConnectionGuard {
    /// A connection's, with its place if places are counted.
    pub fn new(admission: Option<Admission>, shutdown: Shutdown) -> Self {
        Self::from_parts(admission.map(Arc::new), shutdown)
    }

    /// The same connection's, for one answer beside others.
    pub(crate) fn for_stream(&self) -> Self {
        Self::from_parts(self.0.admission.clone(), self.0.shutdown.clone())
    }

    fn from_parts(admission: Option<Arc<Admission>>, shutdown: Shutdown) -> Self {
        Self(Arc::new(Inner { admission, shutdown, is_response_endless: AtomicBool::new(false) }))
    }

    /// Says whether the answer under way is one that does not end by itself.
    pub fn set_response_endless(&self, endless: bool) {
        self.0.is_response_endless.store(endless, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(crate) fn is_response_endless(&self) -> bool {
        self.0.is_response_endless.load(Ordering::Relaxed)
    }

    /// Waits until the server begins to end.
    pub async fn shutdown_started(&self) {
        self.0.shutdown.clone().triggered().await;
    }

    /// Waits until the server has been ending for so long that the client should have taken the rest of its answer. Of
    /// one that does not end by itself nobody expects a certain rest.
    pub(crate) async fn shutdown_grace_over(&self, is_endless: impl Fn() -> bool) {
        let mut shutdown = self.0.shutdown.clone();
        shutdown.triggered_for(ENDLESS_RESPONSE_GRACE).await;
        if !is_endless() {
            shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD).await;
        }
    }
}
