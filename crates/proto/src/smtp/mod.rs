//! The (E)SMTP and LMTP server session (RFC 5321, RFC 2033) without I/O.
//!
//! The driver passes its input to [`Session::step`], performs the returned [`Action`], and writes the queued replies
//! before it waits for the client. These states accept commands:
//!
//! | state         | meaning                    | HELO EHLO LHLO | MAIL             | RCPT                | DATA            | BDAT              | AUTH           | STARTTLS      | RSET    |
//! |---------------|----------------------------|----------------|------------------|---------------------|-----------------|-------------------|----------------|---------------|---------|
//! | `BeforeHello` | no greeting yet            | → Ready        | 503              | 503                 | 503             | → DiscardingChunk | 503            | → StartingTls | stays   |
//! | `Ready`       | no transaction             | → Ready        | → CheckingSender | 503                 | 503             | → DiscardingChunk | → AuthExchange | → StartingTls | stays   |
//! | `Mail`        | sender, 0..n recipients    | → Ready        | 503              | → CheckingRecipient | → ReceivingData | → ReceivingChunk  | 503            | → StartingTls | → Ready |
//! | `Chunked`     | BDAT without LAST received | → Ready        | 503              | 503                 | 503             | → ReceivingChunk  | 503            | → StartingTls | → Ready |
//!
//! NOOP, HELP and VRFY get a reply in each of them and change nothing. QUIT closes the session. The other states accept
//! no commands:
//!
//! | state               | waits for                      | next state                                                            |
//! |---------------------|--------------------------------|-----------------------------------------------------------------------|
//! | `AuthExchange`      | a line of an AUTH exchange     | → AuthExchange, CheckingLogin, or Ready if it is cancelled or invalid |
//! | `AwaitingChallenge` | [`Session::challenge_created`] | → AuthExchange                                                        |
//! | `CheckingLogin`     | [`Session::authenticated`]     | → Ready, or AuthExchange if a bearer token is refused                 |
//! | `CheckingSender`    | [`Session::sender_checked`]    | → Mail, or Ready if refused                                           |
//! | `CheckingRecipient` | [`Session::recipient_checked`] | → Mail                                                                |
//! | `ReceivingData`     | the end of the data            | → Delivering, or Ready if the message is too long                     |
//! | `ReceivingChunk`    | the octets of a BDAT           | → Chunked, Delivering after LAST, or Ready if the message is too long |
//! | `DiscardingChunk`   | the octets of a refused BDAT   | → the previous state                                                  |
//! | `Delivering`        | [`Session::delivered`]         | → Ready                                                               |
//! | `StartingTls`       | [`Session::tls_started`]       | → BeforeHello                                                         |
//! | `Closed`            | nothing                        | stays                                                                 |
//!
//! Unknown commands, syntax errors, commands out of order and failed logins count as bad commands; too many of them end
//! the session. After the greeting, RCPT, DATA and BDAT out of order do not count: a client that pipelines sends them
//! after a MAIL or RCPT before it learns that it was refused (RFC 2920 section 3.1).
//!
//! A line of an HTTP request ends the session in every state that accepts commands. In `BeforeHello`, a TLS handshake
//! and a line that is too long end it too. So commands that a web page puts into the body of a request are never
//! executed.

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

use std::sync::Arc;

use restante_mail::address::Address;
use restante_mail::envelope::Envelope;

use crate::Secret;
pub use reply::{recipient_refusal, sender_refusal};
pub use session::Session;

/// The settings of all sessions of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate setting")]
pub struct Settings {
    /// The name of this server, in the greeting and in the reply to EHLO.
    pub domain: String,
    /// The protocol of the listener.
    pub protocol: Protocol,
    /// The configured address of the listener, for the envelopes of its messages.
    pub listener: Option<Arc<str>>,
    /// The largest accepted message, in bytes, after dot-stuffing is undone.
    pub max_message_bytes: usize,
    /// The largest number of recipients of a message.
    pub max_recipients: usize,
    /// The number of bad commands that ends the session. 0 means no limit.
    pub max_bad_commands: usize,
    /// Whether STARTTLS is offered while TLS is not active.
    pub starttls: bool,
    /// Whether MAIL and AUTH are refused while TLS is not active. It has no effect without `starttls`.
    pub require_starttls: bool,
    /// Whether MAIL is refused before a successful AUTH.
    pub require_auth: bool,
    /// Whether CRAM-MD5 is offered. The driver can verify a digest only if it knows the plain passwords, or accepts any
    /// login.
    pub cram_md5: bool,
    /// Whether unknown parameters of MAIL and RCPT, and arguments of commands that take none, are errors. Otherwise
    /// they are ignored, as by many servers.
    pub strict: bool,
    /// The commands that are refused with 502.
    pub disabled_commands: Vec<OptionalCommand>,
}

/// A command that can be disabled, because no client needs it to send mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalCommand {
    /// HELP: lists the commands.
    Help,
    /// VRFY: never says whether an address exists, see RFC 5321 section 3.5.3.
    Vrfy,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMTP (RFC 5321): starts with HELO or EHLO, one reply per message.
    Smtp,
    /// LMTP (RFC 2033): starts with LHLO, one reply per accepted recipient of a message.
    Lmtp,
}

/// The proof of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password, as sent.
    Password(Secret),
    /// A bearer token.
    Bearer(Secret),
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
    /// The user name, the password or the token is wrong. This counts as a bad command.
    WrongCredentials,
    /// Too many logins have failed, so this one is not checked (RFC 4954 section 6).
    TooManyFailures,
    /// The login cannot be checked now, because the identity provider cannot be used.
    Unavailable,
    /// The token is valid but does not permit sending mail.
    NotPermitted,
    /// The refusal is simulated, with this reply code.
    Chaos(u16),
}

/// Why the store did not accept a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRefusal {
    /// The store is full.
    Full,
    /// The store cannot be reached.
    Unavailable,
    /// The store or its data is damaged.
    Broken,
    /// The message is larger than one of its mailboxes may be.
    TooLarge,
}

/// What the driver must do next. After it has passed the result of an action, it calls [`Session::step`] again with the
/// remaining input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the replies, then read more input and append it to the input that was not consumed.
    Read,
    /// Write the replies, because there are many, and continue with the remaining input.
    Write,
    /// Check whether the sender of [`Session::envelope`] is accepted. Pass the result to [`Session::sender_checked`].
    CheckSender,
    /// Check whether this recipient is accepted. Pass the address with its mailbox to [`Session::recipient_checked`].
    CheckRecipient(Address),
    /// Create a challenge for CRAM-MD5 that was never used before, such as `<process.time@domain>`. Pass it to
    /// [`Session::challenge_created`].
    CreateChallenge,
    /// Check a login. Pass the result to [`Session::authenticated`].
    Authenticate {
        /// The user name, as sent.
        user: String,
        /// The password, token or digest.
        proof: Proof,
    },
    /// Store a message. Pass the result to [`Session::delivered`].
    Deliver {
        /// The envelope, with at least one recipient.
        envelope: Envelope,
        /// The message, byte for byte, with dot-stuffing undone.
        body: Vec<u8>,
    },
    /// Write the replies, discard all input that was read so far, perform the handshake as server, then call
    /// [`Session::tls_started`]. The given input is already consumed: commands sent before TLS are never executed after
    /// it.
    StartTls,
    /// Write the replies and close the connection. The client has sent QUIT.
    Quit,
    /// Write the replies and close the connection. The client may still be sending.
    Close,
}
