//! Errors of commands, and their exit codes.

use std::io;

/// An error of a command. It displays as one sentence for the user.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message().unwrap_or_default())]
pub enum CommandError {
    /// Nothing was found, or no message arrived in time. The message is `None` if the exit code is enough.
    NotFound(Option<String>),
    /// The command line is wrong, or the server refused the request as invalid.
    Usage(String),
    /// The server cannot be reached, or does not respond in time.
    Unreachable(String),
    /// The credentials are missing or wrong, or do not allow the request.
    Unauthorized(String),
    /// The server failed, or sent an unexpected response.
    Server(String),
    /// The mail server did not accept the message.
    Undelivered {
        /// The reply of the server.
        message: String,
        /// True if a later attempt may succeed.
        is_temporary: bool,
        /// True if a recipient was refused.
        is_recipient: bool,
    },
    /// A local file or standard output failed.
    Local(String),
    /// The command of `restante run` has ended with this exit code.
    CommandFailed(u8),
    /// The reader of standard output is gone, so there is nothing left to do.
    OutputClosed,
}

impl CommandError {
    /// Returns the exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::CommandFailed(code) => *code,
            Self::NotFound(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Unauthorized(_) | Self::Undelivered { is_temporary: false, .. } => 4,
            Self::Server(_) | Self::Local(_) | Self::Undelivered { is_temporary: true, .. } => 5,
        }
    }

    /// Returns true if a later request to the server may succeed.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Server(_))
    }

    /// Returns the message for standard error, if any.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::OutputClosed | Self::CommandFailed(_) => None,
            Self::NotFound(message) => message.as_deref(),
            Self::Usage(message)
            | Self::Unreachable(message)
            | Self::Unauthorized(message)
            | Self::Server(message)
            | Self::Undelivered { message, .. }
            | Self::Local(message) => Some(message),
        }
    }

    /// Creates a [`CommandError::NotFound`] with a message.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(Some(message.into()))
    }
}

/// I/O errors without further information come from standard output. All others are converted with the name of the
/// file.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Local(format!("Standard output cannot be written: {error}.")),
        }
    }
}
