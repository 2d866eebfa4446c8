//! Errors by cause: refusal by the server, violation of the protocol, network, database, timeout, or wrong options.

use std::fmt;
use std::io;

/// The reason why an exchange, or a whole measurement, failed.
#[derive(Debug)]
pub(crate) enum Error {
    /// The server refused the request; the session can continue.
    Refused(String),
    /// The server violated the protocol or exceeded a limit.
    Protocol(&'static str),
    /// An error of the operating system, and what was attempted.
    Io(&'static str, io::Error),
    /// The database cannot be reached or returned an error.
    Database(tokio_postgres::Error),
    /// The server did not respond in time.
    Timeout,
    /// The options are wrong.
    Usage(String),
}

impl Error {
    /// Creates a refusal from the text of the server, on one line.
    pub(crate) fn refused(text: &[u8]) -> Self {
        const MAX_SHOWN: usize = 300;
        let prefix = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]);
        Self::Refused(prefix.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Creates an error of the operating system during `action`.
    pub(crate) fn io(action: &'static str, error: io::Error) -> Self {
        Self::Io(action, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reply) => write!(f, "refused: {reply}"),
            Self::Protocol(violation) => write!(f, "protocol error of the server: {violation}"),
            Self::Io(action, error) => write!(f, "{action}: {error}"),
            Self::Database(error) => write!(f, "the database: {}", with_cause(error)),
            Self::Timeout => f.write_str("no response in time"),
            Self::Usage(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

/// Formats an error with the last of its causes.
fn with_cause(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let mut source = error;
    while let Some(cause) = source.source() {
        source = cause;
    }
    let cause = source.to_string();
    if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
}
