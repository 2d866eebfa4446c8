//! Why a command did not do what it was asked to, and the exit code that tells a shell script.

use std::fmt;
use std::io;

/// Why a command ends early. The display form is one sentence for the person at the terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandError {
    /// What was looked for is not there, or did not come in time. Without a sentence where the exit code says enough.
    NotFound(Option<String>),
    /// The command line, or what the server says is wrong with it.
    Usage(String),
    /// No server answers, or not in time.
    Unreachable(String),
    /// The credentials are missing, wrong, or do not allow it.
    Unauthorized(String),
    /// The server cannot do it, or answers what nobody understands.
    Server(String),
    /// The mail server does not take the mail.
    Undelivered {
        /// What it says.
        message: String,
        /// Whether it may take it later.
        is_temporary: bool,
        /// Whether it is a recipient that it does not want.
        is_recipient: bool,
    },
    /// A file here, or standard output.
    Local(String),
    /// Nobody reads the output any more, so nothing is left to do.
    OutputClosed,
}

impl CommandError {
    /// What the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::NotFound(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Unauthorized(_) | Self::Undelivered { is_temporary: false, .. } => 4,
            Self::Server(_) | Self::Local(_) | Self::Undelivered { is_temporary: true, .. } => 5,
        }
    }

    /// What to tell on standard error, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::OutputClosed => None,
            Self::NotFound(sentence) => sentence.as_deref(),
            Self::Usage(sentence)
            | Self::Unreachable(sentence)
            | Self::Unauthorized(sentence)
            | Self::Server(sentence)
            | Self::Undelivered { message: sentence, .. }
            | Self::Local(sentence) => Some(sentence),
        }
    }

    /// Nothing was found, and this is what to say about it.
    pub(crate) fn not_found(sentence: impl Into<String>) -> Self {
        Self::NotFound(Some(sentence.into()))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().unwrap_or_default())
    }
}

impl std::error::Error for CommandError {}

/// Only standard output is written to without saying where: whatever else fails is told with its name.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Local(format!("Standard output cannot be written: {error}.")),
        }
    }
}
