//! What loading a script comes to: what it has functions for, or why it cannot be used.

use std::fmt;
use std::path::PathBuf;

use crate::event::Event;

/// A script that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedScript {
    /// Its file.
    pub path: PathBuf,
    /// The events it has functions for.
    pub handlers: Vec<Event>,
}

/// Why a script cannot be used. Displayed as a sentence that names the file and, where it can, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    message: String,
    is_permanent: bool,
}

impl ScriptError {
    /// Something is wrong with the script itself.
    pub(crate) fn permanent(sentence: String) -> Self {
        Self { message: sentence, is_permanent: true }
    }

    /// It did not work this time.
    pub(crate) fn transient(sentence: String) -> Self {
        Self { message: sentence, is_permanent: false }
    }

    /// Whether it will not help to try again with the same script.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}
