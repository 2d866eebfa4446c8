//! Runs Lua scripts that take part in delivery, made for Inbucket or for Restante.
//!
//! [`Host`] is the way in: it implements the mailroom's hooks. Scripts run on threads of their own (`pool`), each in a Lua
//! state (`engine`) that knows the objects (`objects`) and modules (`modules`) of `docs/scripting.md`.

mod calls;
mod commands;
mod context;
mod counts;
mod engine;
mod event;
mod failure;
mod host;
mod limits;
mod loaded;
mod log;
mod modules;
mod objects;
mod pool;
mod scripts;
mod services;
mod settings;
#[cfg(test)]
mod shelf;
mod stored_mail;
mod testing;

pub use counts::{Counts, Outcome};
pub use event::Event;
pub use host::Host;
pub use loaded::{Loaded, ScriptError};
pub use scripts::check;
pub use settings::Settings;
pub use testing::test;
