//! The POP3 server session (RFC 1939, RFC 2449) without I/O.
//!
//! The driver passes what it read to [`Session::step`], does what the returned [`Action`] asks for, and writes the
//! queued replies before it waits for the peer. The states in which commands are taken, and what the commands do in them:
//!
//! | state           | means                   | USER  | PASS APOP | AUTH        | STLS  | UTF8  | STAT DELE RSET NOOP | LIST UIDL        | RETR TOP   | QUIT                 |
//! |-----------------|-------------------------|-------|-----------|-------------|-------|-------|---------------------|------------------|------------|----------------------|
//! | `Authorization` | the peer has no mailbox | stays | → Opening | → Challenge | → Tls | stays | -ERR                | -ERR             | -ERR       | → Closed             |
//! | `Transaction`   | it has opened one       | -ERR  | -ERR      | -ERR        | -ERR  | -ERR  | stays               | stays, → Sending | → Fetching | → Updating or Closed |
//!
//! CAPA is answered in both of them and changes nothing. The other states take no commands:
//!
//! | state       | waits for                        | then                                                       |
//! |-------------|----------------------------------|------------------------------------------------------------|
//! | `Challenge` | the line of an AUTH exchange     | → Opening, or Authorization when it was cancelled or bad   |
//! | `Opening`   | [`Session::opened`]              | → Transaction, or Authorization when refused               |
//! | `Fetching`  | [`Session::fetched`]             | → Sending, or Transaction when there is nothing to send    |
//! | `Sending`   | the portion before to be written | → Sending, or Transaction at the end of the answer         |
//! | `Updating`  | [`Session::deleted`]             | → Leaving                                                  |
//! | `Leaving`   | the last reply to be written     | → Closed                                                   |
//! | `Tls`       | [`Session::tls_started`]         | → Authorization                                            |
//! | `Closed`    | nothing                          | stays                                                      |
//!
//! Only QUIT deletes, and only what was marked: a session that ends in any other way leaves the mailbox as it was. The
//! numbers of the messages are fixed when the mailbox is opened, but it is not locked: others may read it meanwhile, and
//! delete from it.
//!
//! Unknown commands, syntax errors, commands of the other state and failed logins count as bad commands; too many of them
//! end the session. To ask for a message that is not there is no bad command.
//!
//! A line of an HTTP request ends the session in both states that take commands. In `Authorization`, a TLS handshake and a line
//! that is too long end it too. So commands that a web page puts into the body of a request are never executed.

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

use crate::Secret;
pub use maildrop::Maildrop;
pub use session::Session;

/// What every session of one listener knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server, in what it says when it has to close.
    pub domain: String,
    /// Whether STLS is offered as long as TLS is not on.
    pub stls: bool,
    /// The bad command that ends the session; 0 means that none does.
    pub max_bad_commands: usize,
}

/// What the driver does next. After an answered question it calls [`Session::step`] again with the input left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// All usable input is consumed: flush the replies, then read more and pass it behind what was not consumed.
    Read,
    /// Flush the replies: there are many of them. Then go on with the input left over.
    Write,
    /// Log in and list the mailbox; answer by [`Session::opened`].
    Open {
        /// The name of the mailbox, as sent.
        mailbox: String,
        /// Who wants to open it. It is the name of the mailbox again unless AUTH gave another identity to act as.
        user: String,
        /// What the user has to show for it.
        proof: Proof,
    },
    /// Get the source of a message; answer by [`Session::fetched`].
    Fetch(MessageId),
    /// Delete these messages, at least one; answer by [`Session::deleted`].
    Delete(Vec<MessageId>),
    /// Flush the replies, throw away all input that was read so far, do the handshake as server, then call
    /// [`Session::tls_started`]. The given input is consumed already: what came before TLS is never obeyed behind it.
    StartTls,
    /// The peer said goodbye: flush the replies and close the connection.
    Quit,
    /// Flush the replies and close the connection, although the peer may still be sending.
    Close,
}

/// How a user proves who he is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password itself.
    Password(Secret),
    /// APOP (RFC 1939 section 7): the MD5 digest of the timestamp and the password, one behind the other.
    Apop {
        /// The timestamp of the greeting, with its angle brackets.
        timestamp: String,
        /// The digest that the peer has sent.
        digest: [u8; 16],
    },
}

/// Why a question of the session is answered with no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user or the proof is wrong.
    WrongCredentials,
    /// The proof is right, and does not allow to open this mailbox.
    NotPermitted,
    /// The name can be that of no mailbox, and this is why.
    InvalidName(String),
    /// The store cannot answer now.
    Unavailable,
}
