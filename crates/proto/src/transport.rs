//! What carries a connection: whether a session may start TLS depends on it.

/// What carries the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

impl Transport {
    /// A connection that began with a TLS handshake, or did not.
    pub(crate) fn new(tls: bool) -> Self {
        if tls { Self::Tls } else { Self::Plain }
    }
}
