//! The context of a connection, for all versions of HTTP: the address of the peer, the resources that are held while
//! the connection is open, and the limits for both sides. The protocols are in `http1` and `http2`.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use restante_net::{Admission, SHUTDOWN_GRACE_PERIOD, Shutdown};

use crate::write_timeout::WriteTimeout;

/// The time that a client has to send the header of its next request, from the end of the last response.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The limits for a client that reads its response slowly or not at all. A link of 128 kbit/s is fast enough.
pub(crate) const WRITE_TIMEOUT: WriteTimeout =
    WriteTimeout { max_stall: Duration::from_mins(1), min_bytes_per_second: 16 * 1024 };
/// The time that a client has to read the rest of an endless response when the server shuts down.
const ENDLESS_RESPONSE_GRACE: Duration = Duration::from_secs(1);
/// The maximum size of a request header.
pub(crate) const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// The maximum number of bytes that are read ahead, and that wait to be written before a response is polled for more.
pub(crate) const MAX_BUFFER_BYTES: usize = 64 * 1024;
/// The reason that is logged for a connection that was closed by the shutdown.
pub(crate) const CLOSED_BY_SHUTDOWN: &str = "closed by the shutdown of the server";

/// The peer of a connection. Every request carries it as an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The address of the client, or `None` on a Unix socket. A trusted proxy may have provided it.
    pub ip: Option<IpAddr>,
    /// The address at the other end of the socket: that of the client or, if a PROXY header named the client, that of
    /// the proxy.
    pub socket_ip: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

impl Peer {
    /// Returns the scheme of URLs for this connection.
    pub fn scheme(self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl From<Option<IpAddr>> for Peer {
    /// Creates a peer without a proxy, on a connection without TLS.
    fn from(ip: Option<IpAddr>) -> Self {
        Self { ip, socket_ip: ip, tls: false }
    }
}

/// The resources that are held while a connection is open: its slot among the connections, and a handle for which the
/// shutdown waits. Every request carries it as an extension, because the task that serves an upgraded connection must
/// hold it too. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionGuard(Arc<Inner>);

struct Inner {
    /// Only held, never read.
    admission: Option<Arc<Admission>>,
    shutdown: Shutdown,
    /// Whether the current response ends only when one side closes it.
    is_response_endless: AtomicBool,
}

impl ConnectionGuard {
    /// Creates the guard of a connection. `admission` is its slot, if connections are limited.
    pub fn new(admission: Option<Admission>, shutdown: Shutdown) -> Self {
        Self::from_parts(admission.map(Arc::new), shutdown)
    }

    /// Creates a guard for one HTTP/2 stream of the same connection.
    pub(crate) fn for_stream(&self) -> Self {
        Self::from_parts(self.0.admission.clone(), self.0.shutdown.clone())
    }

    fn from_parts(admission: Option<Arc<Admission>>, shutdown: Shutdown) -> Self {
        Self(Arc::new(Inner { admission, shutdown, is_response_endless: AtomicBool::new(false) }))
    }

    /// Sets whether the current response ends only when one side closes it.
    pub fn set_response_endless(&self, endless: bool) {
        self.0.is_response_endless.store(endless, Ordering::Relaxed);
    }

    /// Returns whether the current response ends only when one side closes it.
    pub(crate) fn is_response_endless(&self) -> bool {
        self.0.is_response_endless.load(Ordering::Relaxed)
    }

    /// Waits until the shutdown of the server starts.
    pub async fn shutdown_started(&self) {
        self.0.shutdown.clone().triggered().await;
    }

    /// Waits until the grace period of the shutdown is over, in which the client can read the rest of its response. An
    /// endless response gets less time, because it has no end that the client could reach.
    pub(crate) async fn shutdown_grace_over(&self, is_endless: impl Fn() -> bool) {
        let mut shutdown = self.0.shutdown.clone();
        shutdown.triggered_for(ENDLESS_RESPONSE_GRACE).await;
        if !is_endless() {
            shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD).await;
        }
    }
}
