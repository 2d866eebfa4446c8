//! What the peer said around a mail: who it is, who sends, who shall receive. The words of SMTP without its wire form.

use std::net::IpAddr;

use crate::address::Address;

/// The sender of a mail; `None` is the null reverse-path `<>` of bounces (RFC 5321 section 4.5.5).
pub type ReversePath = Option<Address>;

/// The peer at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address; `None` on a unix socket.
    pub ip: Option<IpAddr>,
    /// The name it gave in HELO, EHLO or LHLO.
    pub helo: String,
}

/// One mail's envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Who delivered it.
    pub peer: Peer,
    /// The sender, from MAIL.
    pub from: ReversePath,
    /// The accepted recipients in the order of RCPT; never empty when a mail is delivered.
    pub recipients: Vec<Address>,
}

/// A refusal in the words that the peer gets: an SMTP reply code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply code, 400 to 599.
    pub code: u16,
    /// The text behind the code, which may open with an enhanced status code (RFC 3463).
    pub text: String,
}

impl Refusal {
    /// A refusal with this code and text.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// The text between the angle brackets of a reverse-path.
pub fn reverse_path_text(from: &ReversePath) -> String {
    from.as_ref().map(Address::text).unwrap_or_default()
}
