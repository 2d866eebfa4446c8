//! The data types of Restante that all other crates share.
//!
//! Addresses and mailbox names, patterns that match them, the envelope of a message, the id, summary, details and tags
//! of a stored message, durations as text, message composition, and the MIME view, which turns raw bytes into headers,
//! bodies and attachments. Nothing here does I/O or reads a clock.

pub mod address;
pub mod compose;
pub mod date;
pub mod details;
pub mod duration;
pub mod envelope;
pub mod line_ends;
pub mod mbox;
pub mod message;
pub mod mime;
mod named_enum;
pub mod naming;
pub mod network;
pub mod patterns;
pub mod rules;
pub mod tags;
pub mod terminal_text;
