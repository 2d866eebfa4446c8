//! The POP3 server session (RFC 1939, RFC 2449) without I/O.
//!
//! The driver passes its input to [`Session::step`], performs the returned [`Action`], and writes the queued replies
//! before it waits for the client. These states accept commands:
//!
//! | state           | meaning           | USER  | PASS APOP        | AUTH           | STLS          | UTF8  | STAT DELE RSET NOOP | LIST UIDL        | RETR TOP   | QUIT                 |
//! |-----------------|-------------------|-------|------------------|----------------|---------------|-------|---------------------|------------------|------------|----------------------|
//! | `Authorization` | no open mailbox   | stays | → OpeningMailbox | → AuthExchange | → StartingTls | stays | -ERR                | -ERR             | -ERR       | → Closed             |
//! | `Transaction`   | a mailbox is open | -ERR  | -ERR             | -ERR           | -ERR          | -ERR  | stays               | stays, → Sending | → Fetching | → Updating or Closed |
//!
//! CAPA gets a reply in both of them and changes nothing. The other states accept no commands:
//!
//! | state            | waits for                       | next state                                                       |
//! |------------------|---------------------------------|------------------------------------------------------------------|
//! | `AuthExchange`   | a line of an AUTH exchange      | → OpeningMailbox, or Authorization if it is cancelled or invalid |
//! | `OpeningMailbox` | [`Session::opened`]             | → Transaction; Authorization or AuthExchange if refused          |
//! | `Fetching`       | [`Session::fetched`]            | → Sending, or Transaction if there is nothing to send            |
//! | `Sending`        | the previous part to be written | → Sending, or Transaction at the end of the reply                |
//! | `Updating`       | [`Session::deleted`]            | → Quitting                                                       |
//! | `Quitting`       | the last reply to be written    | → Closed                                                         |
//! | `StartingTls`    | [`Session::tls_started`]        | → Authorization                                                  |
//! | `Closed`         | nothing                         | stays                                                            |
//!
//! Only QUIT deletes messages, and only those marked by DELE. A session that ends in any other way leaves the mailbox
//! unchanged. The message numbers are fixed when the mailbox is opened, but the mailbox is not locked: other clients
//! may read it meanwhile and delete from it.
//!
//! Unknown commands, syntax errors, commands of the other state and failed logins count as bad commands; too many of
//! them end the session. A number without a message is not a bad command.
//!
//! A line of an HTTP request ends the session in both states that accept commands. In `Authorization`, a TLS handshake
//! and a line that is too long end it too. So commands that a web page puts into the body of a request are never
//! executed.

mod command;
mod commands;
mod dot_stuffing;
mod maildrop;
mod mask;
mod multiline;
mod reply;
mod request;
mod session;
mod state;
mod top;
mod transitions;

use restante_mail::message::MessageId;

use crate::{Secret, sasl};
pub use maildrop::Maildrop;
pub use session::Session;

/// The settings of all sessions of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server, in the replies for a shutdown and for too many connections.
    pub domain: String,
    /// Whether STLS is offered while TLS is not active.
    pub stls: bool,
    /// The number of bad commands that ends the session. 0 means no limit.
    pub max_bad_commands: usize,
}

/// What the driver must do next. After it has passed the result of an action, it calls [`Session::step`] again with the
/// remaining input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the replies, then read more input and append it to the input that was not consumed.
    Read,
    /// Write the replies, because there are many, and continue with the remaining input.
    Write,
    /// Check the login and list the mailbox. Pass the result to [`Session::opened`].
    Open {
        /// The name of the mailbox, as sent.
        mailbox: String,
        /// The user name. It is the name of the mailbox, unless AUTH gave another authorization identity.
        user: String,
        /// The password, token or digest.
        proof: Proof,
    },
    /// Get the source of a message. Pass it to [`Session::fetched`].
    Fetch(MessageId),
    /// Delete these messages, at least one. Pass the result to [`Session::deleted`].
    Delete(Vec<MessageId>),
    /// Write the replies, discard all input that was read so far, perform the handshake as server, then call
    /// [`Session::tls_started`]. The given input is already consumed: commands sent before TLS are never executed after
    /// it.
    StartTls,
    /// Write the replies and close the connection. The client has sent QUIT.
    Quit,
    /// Write the replies and close the connection. The client may still be sending.
    Close,
}

/// The proof of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password, as sent.
    Password(Secret),
    /// A bearer token.
    Bearer(Secret),
    /// APOP (RFC 1939 section 7): the MD5 digest of the timestamp followed by the password.
    Apop {
        /// The timestamp of the greeting, with its angle brackets.
        timestamp: String,
        /// The digest, as sent.
        digest: [u8; 16],
    },
}

impl From<sasl::Proof> for Proof {
    fn from(proof: sasl::Proof) -> Self {
        match proof {
            sasl::Proof::Password(password) => Self::Password(password),
            sasl::Proof::Bearer(token) => Self::Bearer(token),
        }
    }
}

/// Why an action is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user name or the proof is wrong.
    WrongCredentials,
    /// The login is valid but does not permit opening this mailbox.
    NotPermitted,
    /// No mailbox can have this name, for this reason.
    InvalidName(String),
    /// The store is not available now.
    Unavailable,
}
