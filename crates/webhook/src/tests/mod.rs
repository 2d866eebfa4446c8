//! Tests of the whole crate: with fake targets, with a data directory, and with the real HTTP client.

mod delivery;
mod durable;
mod http;
pub(crate) mod support;
