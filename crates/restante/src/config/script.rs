//! What the command line asks of a script, as values. How the flags are spelt is known to `cli`.

use std::path::PathBuf;

/// `restante script`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The script.
    pub file: PathBuf,
    /// What to do with it.
    pub task: ScriptTask,
}

/// What can be done with a script without serving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptTask {
    /// Load it and list its handlers.
    Check,
    /// Run its tests: those of these names, or all when there are none.
    Test(Vec<String>),
}
