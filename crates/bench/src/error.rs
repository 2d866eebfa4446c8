//! Errors by cause: refusal by the server, violation of the protocol, network, databases, timeout, or wrong options.

use std::io;

/// The reason why an exchange, or a whole measurement, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The server refused the request; the session can continue.
    #[error("refused: {0}")]
    Refused(String),
    /// The server violated the protocol or exceeded a limit.
    #[error("protocol error of the server: {0}")]
    Protocol(&'static str),
    /// The server closed the connection before a complete response.
    #[error("protocol error of the server: connection closed unexpectedly")]
    Closed,
    /// An error of the operating system, and what was attempted.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
    /// The database cannot be reached or returned an error.
    #[error("the database: {}", with_cause(.0))]
    Database(tokio_postgres::Error),
    /// The database of the durable reference returned an error.
    #[error("the database of messages: {0}")]
    Store(rusqlite::Error),
    /// The server did not respond in time.
    #[error("no response in time")]
    Timeout,
    /// The options are wrong.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// Creates a refusal from the text of the server, on one line.
    pub(crate) fn refused(text: &[u8]) -> Self {
        const MAX_SHOWN: usize = 300;
        let prefix = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]);
        Self::Refused(prefix.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

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
