//! Runs Lua scripts that take part in delivery, made for Inbucket or for Restante.
//!
//! [`Host`](host) is the way in: it implements the mailroom's hooks. Scripts run on threads of their own ([`pool`]), each in
//! a Lua state ([`engine`]) that knows the objects ([`objects`]) and modules ([`modules`]) of `docs/scripting.md`.

mod context;
mod event;
mod host;
mod modules;
mod objects;
mod services;
mod settings;

pub use event::Event;
pub use host::{Counts, Host, Loaded, Outcome, ScriptError};
pub use settings::Settings;
