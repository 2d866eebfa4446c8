//! What can go wrong, told apart by whose fault it is: the server said no, the server broke the protocol, the network
//! failed, the database did not do it, or the command line asks for something impossible.

use std::fmt;
use std::io;

/// The reason why one exchange, or a whole measurement, did not happen.
#[derive(Debug)]
pub(crate) enum Error {
    /// The server understood and refused; the session can go on.
    Refused(String),
    /// The server sent what its protocol does not know, or more of it than we accept.
    Protocol(&'static str),
    /// The operating system said no while doing the thing named.
    Io(&'static str, io::Error),
    /// The database cannot be reached or did not do as it was told.
    Database(tokio_postgres::Error),
    /// The server did not answer in time.
    Timeout,
    /// The options cannot be followed.
    Usage(String),
}

impl Error {
    /// A refusal, told on one line in the server's own words.
    pub(crate) fn refused(answer: &[u8]) -> Self {
        const MAX_SHOWN: usize = 300;
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(MAX_SHOWN)]);
        Self::Refused(shown.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// An error of the operating system while doing `what`.
    pub(crate) fn io(what: &'static str, error: io::Error) -> Self {
        Self::Io(what, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reply) => write!(f, "refused: {reply}"),
            Self::Protocol(what) => write!(f, "protocol error of the server: {what}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Database(error) => write!(f, "the database: {}", with_cause(error)),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Usage(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// An error says what was tried, and the last of its causes why that failed.
fn with_cause(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    let cause = last.to_string();
    if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
}
