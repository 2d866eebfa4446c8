//! Mail protocols as state machines, SMTP with LMTP and POP3: bytes in, replies and actions out.
//!
//! Nothing here owns a socket, reads a clock or knows a runtime, so every conversation can be tested as text. The
//! drivers that move the bytes live in the binary.

mod foreign;
mod line;
pub mod pop3;
pub mod proxy;
mod reply_text;
mod sasl;
mod secret;
pub mod smtp;
mod transcript;
mod transport;

pub use secret::Secret;
pub use transcript::{RecordedLine, Speaker, TransactionStage, TranscriptBuffer, TranscriptScope};
