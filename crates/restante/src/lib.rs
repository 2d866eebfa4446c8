//! The `restante` program as a library: command line, wiring, signals and health checks. Everything else is in the crates that it
//! depends on.

pub mod command_line;
pub mod completions;
pub mod extensions;
pub mod health;
pub mod mailpit;
pub mod process;
pub mod script;
mod script_relay;
pub mod serve;
pub mod storage;
pub mod token;
pub mod transfer;
pub mod user;
