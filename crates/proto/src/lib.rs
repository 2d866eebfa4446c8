//! Mail protocols as state machines: bytes in, replies and actions out.
//!
//! Nothing here owns a socket, reads a clock or knows a runtime, so every conversation can be tested as text. The
//! drivers that move the bytes live in the binary.

mod line;
pub mod proxy;
mod record;
mod sasl;
pub mod smtp;
