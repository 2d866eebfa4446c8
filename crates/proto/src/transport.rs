//! The transport of a connection. A session may start TLS only on a plain connection.

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

impl Transport {
    /// Returns the transport of a new connection. `is_tls` says whether it started with a TLS handshake.
    pub(crate) fn new(is_tls: bool) -> Self {
        if is_tls { Self::Tls } else { Self::Plain }
    }
}
