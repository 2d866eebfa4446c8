//! What the operator may say about scripts.

use std::path::PathBuf;
use std::time::Duration;

use restante_mail::naming::Naming;

/// How scripts are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The script file is the first of these that exists, and is no directory; when none does, there is no script.
    pub paths: Vec<PathBuf>,
    /// Whether scripts are kept away from files, programs and the environment.
    pub sandbox: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// How many bytes a Lua state may hold.
    pub memory: usize,
    /// How many states, each with a thread, are kept ready for `before` hooks.
    pub states: usize,
    /// How many there are for `after` hooks.
    pub after_states: usize,
    /// The most calls of `before` hooks at the same time. Beyond the states that are kept ready, one is made for each while
    /// calls are slow.
    pub max_calls: usize,
    /// How many events may wait for `after` hooks.
    pub queue: usize,
    /// How addresses become mailbox names.
    pub naming: Naming,
}
