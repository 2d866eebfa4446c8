//! Runs Lua scripts that take part in delivery, made for Inbucket or for Restante.
//!
//! [`Host`] is the way in: it implements the mailroom's hooks. Scripts run on threads of their own (`pool`), each in a Lua
//! state (`engine`) that knows the objects (`objects`) and modules (`modules`) of `docs/scripting.md`.

mod call_error;
mod calls;
mod commands;
mod counts;
mod engine;
mod event;
#[cfg(test)]
mod fake_mail;
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

pub use counts::{Counts, Outcome};
pub use event::Event;
pub use host::Host;
pub use loaded::{LoadedScript, ScriptError};
pub use scripts::check;
pub use testing::run_tests;

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
    pub max_memory_bytes: usize,
    /// How many states, each with a thread, are kept ready for `before` hooks.
    pub before_states: usize,
    /// How many there are for `after` hooks.
    pub after_states: usize,
    /// The most calls of `before` hooks at the same time. Beyond the states that are kept ready, one is made for each while
    /// calls are slow.
    pub max_calls: usize,
    /// How many events may wait for `after` hooks.
    pub max_queued_events: usize,
    /// How addresses become mailbox names.
    pub naming: Naming,
}
