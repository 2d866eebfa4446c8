//! The result of loading a script: its events, or an error.

use std::path::PathBuf;

use thiserror::Error;

use crate::event::ScriptEvent;

/// A script that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedScript {
    /// The file.
    pub path: PathBuf,
    /// The events that the script has functions for.
    pub handlers: Vec<ScriptEvent>,
}

/// The reason why a script cannot be used. Displayed as a sentence with the file and, if known, the line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ScriptError {
    message: String,
    kind: ErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorKind {
    Permanent,
    Transient,
    Untrusted,
}

impl ScriptError {
    /// Creates an error of the script itself.
    pub(crate) fn permanent(message: String) -> Self {
        Self { message, kind: ErrorKind::Permanent }
    }

    /// Creates an error that may not occur again.
    pub(crate) fn transient(message: String) -> Self {
        Self { message, kind: ErrorKind::Transient }
    }

    /// Creates an error of a file that another user can have written.
    pub(crate) fn untrusted(message: String) -> Self {
        Self { message, kind: ErrorKind::Untrusted }
    }

    /// Returns whether loading the same script again cannot succeed.
    pub fn is_permanent(&self) -> bool {
        self.kind != ErrorKind::Transient
    }

    /// Returns whether the script was not read because another user can have written it.
    pub fn is_untrusted(&self) -> bool {
        self.kind == ErrorKind::Untrusted
    }
}
