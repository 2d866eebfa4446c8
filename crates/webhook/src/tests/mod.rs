//! Webhooks as a whole: with targets that do as a test says, with a data directory, and on the wire.

mod delivery;
mod durable;
mod http;
pub(crate) mod support;
