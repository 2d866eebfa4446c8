//! The reasons why sessions of SMTP, LMTP and POP3 end.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEndReason {
    /// The client sent QUIT.
    Quit,
    /// The client disconnected, or the connection broke.
    Disconnected,
    /// The client was silent or too slow.
    Timeout,
    /// The session was closed because of errors of the client.
    Errors,
    /// The TLS handshake failed.
    TlsFailed,
    /// There were too many connections, or no memory was left.
    Refused,
    /// The server was shut down.
    Shutdown,
}

impl SessionEndReason {
    /// All reasons.
    pub const ALL: [Self; 7] =
        [Self::Quit, Self::Disconnected, Self::Timeout, Self::Errors, Self::TlsFailed, Self::Refused, Self::Shutdown];

    /// Returns the name used in labels and transcripts.
    pub fn label(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Disconnected => "left",
            Self::Timeout => "timeout",
            Self::Errors => "errors",
            Self::TlsFailed => "tls",
            Self::Refused => "refused",
            Self::Shutdown => "shutdown",
        }
    }
}
