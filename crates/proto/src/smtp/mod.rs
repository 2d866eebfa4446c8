//! The (E)SMTP and LMTP server session (RFC 5321, RFC 2033) without I/O.
//!
//! The driver passes what it read to [`Session::step`], does what the returned [`Action`] asks for, and writes the
//! queued replies before it waits for the peer. The states, and what the commands do in them:
//!
//! | state      | means                         | HELO EHLO LHLO | MAIL      | RCPT        | DATA     | BDAT        | AUTH        | STARTTLS | RSET    |
//! |------------|-------------------------------|----------------|-----------|-------------|----------|-------------|-------------|----------|---------|
//! | `Fresh`    | the peer gave no name yet     | → Ready        | 503       | 503         | 503      | → Swallow   | 503         | → Tls    | stays   |
//! | `Ready`    | it did; no mail is under way  | → Ready        | → Sender  | 503         | 503      | → Swallow   | → Challenge | → Tls    | stays   |
//! | `Mail`     | sender and 0..n recipients    | → Ready        | 503       | → Recipient | → Data   | → Chunk     | 503         | → Tls    | → Ready |
//! | `Chunked`  | some BDAT came, but no LAST   | → Ready        | 503       | 503         | 503      | → Chunk     | 503         | → Tls    | → Ready |
//!
//! NOOP, HELP and VRFY are answered in each of them and change nothing; QUIT closes. The other states take no commands:
//!
//! | state        | waits for                          | then                                                      |
//! |--------------|------------------------------------|-----------------------------------------------------------|
//! | `Challenge`  | a line of an AUTH exchange         | → Challenge, Login, or Ready when it was cancelled or bad |
//! | `Challenging`| [`Session::challenge`]             | → Challenge                                               |
//! | `Login`      | [`Session::authenticated`]         | → Ready                                                   |
//! | `Sender`     | [`Session::sender`]                | → Mail, or Ready when refused                             |
//! | `Recipient`  | [`Session::recipient`]             | → Mail                                                    |
//! | `Data`       | the end of the data                | → Delivering, or Ready when there was too much of it      |
//! | `Chunk`      | the octets of a BDAT               | → Chunked, Delivering after LAST, or Ready when too much  |
//! | `Swallow`    | the octets of a refused BDAT       | → the state before it                                     |
//! | `Delivering` | [`Session::delivered`]             | → Ready                                                   |
//! | `Tls`        | [`Session::tls_started`]           | → Fresh                                                   |
//! | `Closed`     | nothing                            | stays                                                     |
//!
//! Unknown commands, syntax errors, commands out of order and failed logins count as bad commands; too many of them end
//! the session. Once the peer gave its name, RCPT, DATA and BDAT out of order do not count, because a peer that pipelines
//! sends them behind a MAIL or RCPT before it learns that it was refused (RFC 2920 section 3.1).
//!
//! A line of an HTTP request ends the session in every state that takes commands. In `Fresh`, a TLS handshake and a line that is
//! too long end it too. So commands that a web page puts into the body of a request are never executed.

mod auth;
mod body;
mod chunk;
mod command;
mod command_error;
mod commands;
mod data;
mod mask;
mod params;
mod reply;
mod session;
mod state;
mod transitions;

use restante_mail::address::Address;
use restante_mail::envelope::Envelope;

use crate::Secret;
pub use reply::{recipient_refusal, sender_refusal};
pub use session::Session;

/// What every session of one listener knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Settings {
    /// The name of this server, in the greeting and in the reply to EHLO.
    pub domain: String,
    /// Which protocol the listener speaks.
    pub dialect: Dialect,
    /// The longest mail that is taken, in bytes, dot-stuffing undone.
    pub max_message_bytes: usize,
    /// The most recipients of one mail.
    pub max_recipients: usize,
    /// The bad command that ends the session; 0 means that none does.
    pub max_bad_commands: usize,
    /// Whether STARTTLS is offered as long as TLS is not on.
    pub starttls: bool,
    /// Whether MAIL is refused before a successful AUTH.
    pub require_auth: bool,
    /// Whether CRAM-MD5 is offered: the driver can verify a digest only if it knows the plain passwords, or accepts any.
    pub cram_md5: bool,
    /// Whether unknown parameters of MAIL and RCPT, and arguments of commands that take none, are errors. They are ignored
    /// otherwise, as by many servers.
    pub strict: bool,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RFC 5321: opened by HELO or EHLO, one reply for each mail.
    Smtp,
    /// RFC 2033: opened by LHLO, one reply for each accepted recipient of a mail.
    Lmtp,
}

/// What a client has to show for a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password, as sent.
    Password(Secret),
    /// The HMAC-MD5 of a challenge, with the password as the key (RFC 2195).
    CramMd5 {
        /// The challenge.
        challenge: String,
        /// The digest, as sent.
        digest: [u8; 16],
    },
}

/// Why a login is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRefusal {
    /// The user name or the password is wrong. This counts as a bad command.
    WrongCredentials,
    /// Too many logins have failed, so this one is not checked (RFC 4954 section 6).
    TooManyFailures,
    /// The token is valid but does not permit sending mail.
    NotPermitted,
}

/// Why the store did not take a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRefusal {
    /// The store is full.
    Full,
    /// The store cannot be reached.
    Unavailable,
    /// The store or its data is damaged.
    Broken,
}

/// What the driver does next. After an answered question it calls [`Session::step`] again with the input left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// All usable input is consumed: flush the replies, then read more and pass it behind what was not consumed.
    Read,
    /// Flush the replies: there are many of them. Then go on with the input left over.
    Write,
    /// Ask whether mail from the sender of [`Session::envelope`] is taken; answer by [`Session::sender`].
    CheckSender,
    /// Ask whether mail for this recipient is accepted; answer by [`Session::recipient`] with this address and its mailbox.
    CheckRecipient(Address),
    /// Make a challenge for CRAM-MD5 that was never used before, such as `<process.time@domain>`; answer by
    /// [`Session::challenge`].
    CreateChallenge,
    /// Check a login; answer by [`Session::authenticated`].
    Authenticate {
        /// The user name, as sent.
        user: String,
        /// The password or digest.
        proof: Proof,
    },
    /// Store a mail; answer by [`Session::delivered`] when it is stored or cannot be.
    Deliver {
        /// The envelope; it has at least one recipient.
        envelope: Envelope,
        /// The mail, byte for byte, dot-stuffing undone.
        body: Vec<u8>,
    },
    /// Flush the replies, throw away all input that was read so far, do the handshake as server, then call
    /// [`Session::tls_started`]. The given input is consumed already: what came before TLS is never obeyed behind it.
    StartTls,
    /// The peer said goodbye: flush the replies and close the connection.
    Quit,
    /// Flush the replies and close the connection, although the peer may still be sending.
    Close,
}
