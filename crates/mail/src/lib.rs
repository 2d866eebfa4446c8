//! The vocabulary of Restante: pure values that every other crate speaks in.
//!
//! Addresses and mailbox names, patterns to pick them by, the envelope of a mail, a stored message's identity and summary, and the MIME view
//! that turns raw bytes into headers, bodies and attachments. Nothing here does I/O or reads a clock.

pub mod address;
pub mod compose;
pub mod date;
pub mod envelope;
pub mod mbox;
pub mod message;
pub mod mime;
pub mod naming;
pub mod patterns;
pub mod terminal_text;
