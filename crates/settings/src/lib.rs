//! The configuration: one table of settings, and everything that is generated from it.
//!
//! [`SETTINGS`] is the only place that defines the name, default, help and parser of a setting. The flags, the
//! variables, the keys of the TOML file, `--help` and `docs/config.md` are generated from it, so they cannot differ.
//! [`load()`] takes flags, environment and a file reader as values and returns the checked configuration. It also
//! checks whether the log, the pid file and the data directory can be written, and whether a greeting exists. Nothing
//! here opens a socket, writes a file or starts the log.

mod api_mount;
mod check;
mod credential;
mod example;
mod file;
mod load;
mod options;
mod policies;
mod problem;
mod projects;
mod protocols;
mod relay;
mod render;
mod setting;
mod sources;
mod table;
mod types;
mod values;
mod webhook;

use std::io;
use std::path::Path;

pub use api_mount::{ApiMount, ApiName};
pub use check::Purpose;
pub use credential::{Credential, MailboxPassword, SigningKey};
pub use example::render_example;
pub use load::{EffectiveSetting, Flags, Loaded, Preset, load};
pub use problem::{Origin, Problem, report};
pub use protocols::ProtocolListeners;
pub use render::{render_docs, render_effective};
pub use restante_logging::{Level, Output as LogOutput};
pub use setting::{Apply, Setting, Status, Value};
pub use table::SETTINGS;
pub use types::{
    AllowList, CertSource, Config, Durability, Imap, Lmtp, Pop3, Scripting, Search, Smtp, Storage, StoreKind, Tls, Web,
};
pub use values::parse_boolean;

/// Reads a file: `std::fs::read` in the program, a table of texts in a test.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;
