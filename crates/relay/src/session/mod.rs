//! The client side of SMTP (RFC 5321): opens a session to a target and sends messages over it. It makes no decisions
//! about retries.
//!
//! Servers are not trusted. Every step has a time limit, replies have a limited size, addresses are checked before they
//! are used in commands, and the transcript contains no secrets.

mod client;
mod connector;
mod extensions;
mod login;
mod recorder;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod transaction;

use restante_journal::TranscriptLines;

pub(crate) use connector::{ConnectError, Connector};
pub(crate) use transaction::Session;

/// What happened to a message.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// One result per recipient, in their order.
    pub(crate) recipients: Vec<RecipientResult>,
    /// The reply or error that decided the transaction.
    pub(crate) reply: String,
    /// Whether another message can be sent over this session.
    pub(crate) is_reusable: bool,
    /// Whether the target as a whole refuses service: it replied 421, or the connection broke before the reply to MAIL.
    pub(crate) is_target_failure: bool,
    /// The start of the session and the commands of this message, without secrets and content.
    pub(crate) transcript: TranscriptLines,
}

/// What happened to a message for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipientResult {
    /// Whether it was accepted.
    pub(crate) outcome: RecipientOutcome,
    /// The reply or error.
    pub(crate) reply: String,
}

/// Whether a message was accepted for a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecipientOutcome {
    /// The server accepted the message.
    Accepted,
    /// It may be accepted later.
    Temporary,
    /// It will not be accepted.
    Permanent,
}
