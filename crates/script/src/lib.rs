//! Runs Lua scripts that take part in delivery, written for Inbucket or Restante.
//!
//! [`Host`] is the entry point: it implements the hooks of the mailroom. Scripts run on their own threads (`pool`),
//! each with a Lua state (`engine`) that contains the objects (`objects`) and modules (`modules`) described in
//! `docs/scripting.md`.

mod call_error;
mod calls;
mod commands;
mod counts;
mod engine;
mod event;
mod host;
mod limits;
mod loaded;
mod log;
mod modules;
mod objects;
mod pool;
mod scripts;
mod services;
mod stored_mail;
mod testing;
#[cfg(test)]
mod tests;

pub use counts::{Counts, Outcome};
pub use event::ScriptEvent;
pub use host::Host;
pub use loaded::{LoadedScript, ScriptError};
pub use scripts::check;
pub use services::{Release, Releaser};
pub use testing::run_tests;

use std::path::PathBuf;
use std::time::Duration;

use restante_mail::naming::Naming;

/// The settings of scripts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Candidates for the script file. The first one that exists and is not a directory is used. If none exists, there
    /// is no script.
    pub paths: Vec<PathBuf>,
    /// Whether the script and the files that it requires are loaded only if no other user can have written them.
    pub trusted_files_only: bool,
    /// Whether scripts are denied access to files, programs and the environment.
    pub sandbox: bool,
    /// The maximum duration of a call.
    pub timeout: Duration,
    /// The maximum memory of a Lua state.
    pub max_memory_bytes: usize,
    /// How many states, each with a thread, are kept ready for `before` hooks.
    pub before_states: usize,
    /// How many states, each with a thread, there are for `after` hooks.
    pub after_states: usize,
    /// The maximum number of concurrent calls of `before` hooks. While calls are slow, states are created in addition
    /// to those kept ready.
    pub max_calls: usize,
    /// The maximum number of events in the queue of `after` hooks.
    pub max_queued_events: usize,
    /// How addresses are converted to mailbox names.
    pub naming: Naming,
}
