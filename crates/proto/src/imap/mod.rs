//! The IMAP server session (RFC 3501, RFC 9051) without I/O.

pub mod command;

/// The settings of all sessions of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server, in its greeting.
    pub domain: String,
    /// Whether STARTTLS is offered while TLS is not active.
    pub starttls: bool,
    /// The number of bad commands that ends the session. 0 means no limit.
    pub max_bad_commands: usize,
    /// The maximum size of a message of APPEND in bytes.
    pub max_message_bytes: usize,
}
mod date;
pub mod search;
pub mod sort;
mod subject;
pub mod thread;
mod view;
pub mod write;

pub use view::{MessageView, UnknownEncoding};
pub mod keywords;
#[allow(dead_code, reason = "the session uses it")]
mod literal;
#[allow(dead_code, reason = "the session uses it")]
mod parse;
#[allow(dead_code, reason = "the session uses it")]
mod reader;
mod sequence_set;
#[allow(dead_code, reason = "the session uses it")]
mod utf7;
