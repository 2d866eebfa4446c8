//! SMTP, LMTP, POP3 and IMAP as state machines: bytes in, replies and actions out.
//!
//! This crate does no I/O, reads no clock and uses no runtime, so every conversation can be tested as text. The
//! `mail-server` crate runs the sessions on connections.

mod foreign;
pub mod imap;
mod line;
pub mod pop3;
pub mod proxy;
mod reply_text;
pub mod sasl;
mod secret;
pub mod smtp;
mod transcript;

pub use secret::Secret;
pub use transcript::{RecordedLine, Speaker, TransactionStage, TranscriptBuffer, TranscriptScope};
