//! Why a command did not do what it was asked to, and the exit code that tells a shell script.

use std::fmt;
use std::io;

/// Why a command ends early. The display form is one sentence for the person at the terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// What was looked for is not there, or did not come in time. Without a sentence where the exit code says enough.
    Nothing(Option<String>),
    /// The command line, or what the server says is wrong with it.
    Usage(String),
    /// No server answers, or not in time.
    Unreachable(String),
    /// The credentials are missing, wrong, or do not allow it.
    Refused(String),
    /// The server cannot do it, or answers what nobody understands.
    Server(String),
    /// The mail server does not take the mail.
    Undelivered {
        /// What it says.
        sentence: String,
        /// Whether it may take it later.
        for_now: bool,
        /// Whether it is a recipient that it does not want.
        recipient: bool,
    },
    /// A file here, or standard output.
    Local(String),
    /// Nobody reads the output any more, so nothing is left to do.
    Unread,
}

impl Failure {
    /// What the process ends with.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Nothing(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Refused(_) | Self::Undelivered { for_now: false, .. } => 4,
            Self::Server(_) | Self::Local(_) | Self::Undelivered { for_now: true, .. } => 5,
        }
    }

    /// What to tell on standard error, if anything.
    pub(crate) fn sentence(&self) -> Option<&str> {
        match self {
            Self::Unread => None,
            Self::Nothing(sentence) => sentence.as_deref(),
            Self::Usage(sentence)
            | Self::Unreachable(sentence)
            | Self::Refused(sentence)
            | Self::Server(sentence)
            | Self::Undelivered { sentence, .. }
            | Self::Local(sentence) => Some(sentence),
        }
    }

    /// Nothing was found, and this is what to say about it.
    pub(crate) fn nothing(sentence: impl Into<String>) -> Self {
        Self::Nothing(Some(sentence.into()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence().unwrap_or_default())
    }
}

impl std::error::Error for Failure {}

/// Only standard output is written to without saying where: whatever else fails is told with its name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Local(format!("Standard output cannot be written: {error}.")),
        }
    }
}
