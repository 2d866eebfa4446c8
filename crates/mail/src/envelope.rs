//! The envelope of a message: the peer, the sender and the recipients, and the reasons to refuse them. The syntax of
//! SMTP is in `proto`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::Address;
use crate::named_enum;
use crate::naming::{MailboxName, NameError, Naming};

/// The sender of a message. `None` is the null reverse-path `<>` of bounces (RFC 5321 section 4.5.5).
pub type ReversePath = Option<Address>;

/// The peer at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The IP address of the peer. `None` on a Unix socket.
    pub ip: Option<IpAddr>,
    /// The name that the peer sent in HELO, EHLO or LHLO. Empty over HTTP.
    pub helo: String,
}

/// The envelope of one message.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The peer that sent the message.
    pub peer: Peer,
    /// The name with which the peer logged in. `None` if it did not log in.
    pub login: Option<String>,
    /// The API key of the request. It is never stored.
    pub key: Option<Arc<str>>,
    /// The configured address of the listener, such as `localhost:2500`. `None` over HTTP.
    pub listener: Option<Arc<str>>,
    /// The sender, from MAIL.
    pub from: ReversePath,
    /// The accepted recipients in the order of RCPT. Not empty when a message is delivered.
    pub recipients: Vec<Recipient>,
}

/// The API key is not shown.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, login, key, listener, from, recipients } = self;
        f.debug_struct("Envelope")
            .field("peer", peer)
            .field("login", login)
            .field("key", &key.as_ref().map(|_| "***"))
            .field("listener", listener)
            .field("from", from)
            .field("recipients", recipients)
            .finish()
    }
}

/// A recipient and the mailbox that receives its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The address, from RCPT.
    pub address: Address,
    /// The mailbox that the address belongs to.
    pub mailbox: MailboxName,
    /// Whether the project of the mailbox can still change, because it depends on the header of the message.
    pub awaits_header: bool,
}

impl Recipient {
    /// Creates a recipient and determines its mailbox. Fails if the address cannot be mapped to a mailbox name.
    pub fn new(address: Address, naming: Naming) -> Result<Self, NameError> {
        let mailbox = naming.mailbox_for(&address)?;
        Ok(Self { address, mailbox, awaits_header: false })
    }
}

/// A refusal as it is sent to the peer: an SMTP reply code and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply code, 400 to 599.
    pub code: u16,
    /// The text after the code. It may start with an enhanced status code (RFC 3463).
    pub text: String,
}

impl Refusal {
    /// Creates a refusal with this code and text.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// The reason why a sender is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderRefusal {
    /// The policy does not accept mail from the sender's domain.
    Policy,
    /// A hook refuses the sender and gives its own reply.
    Hook(Refusal),
    /// The refusal is simulated, with this reply code.
    Chaos(u16),
}

impl SenderRefusal {
    /// Returns the reason that this refusal is counted under.
    pub fn reason(&self) -> RefusalReason {
        match self {
            Self::Policy | Self::Hook(_) | Self::Chaos(_) => RefusalReason::Policy,
        }
    }
}

/// The reason why a recipient is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientRefusal {
    /// The address cannot be mapped to a mailbox name.
    UnusableName(NameError),
    /// The recipient's domain belongs to a leased run that has expired, or that another server has leased.
    UnknownRun,
    /// The client's credentials do not permit mail to the recipient's mailbox.
    NotPermitted,
    /// A hook refuses the recipient and gives its own reply.
    Hook(Refusal),
    /// The policy does not accept mail to the recipient's domain.
    Policy,
    /// The policy does not accept mail to the recipient's address.
    NotAllowed,
    /// The refusal is simulated, with this reply code.
    Chaos(u16),
}

impl RecipientRefusal {
    /// Returns the reason that this refusal is counted under.
    pub fn reason(&self) -> RefusalReason {
        match self {
            Self::UnusableName(_) | Self::UnknownRun => RefusalReason::Address,
            Self::NotPermitted | Self::Hook(_) | Self::Policy | Self::NotAllowed | Self::Chaos(_) => {
                RefusalReason::Policy
            }
        }
    }
}

named_enum! {
    /// The reason of a refusal, as a label of metrics.
    pub enum RefusalReason {
        /// The policy, a hook or the client's credentials do not permit it.
        Policy = "policy",
        /// The message is too large.
        Size = "size",
        /// The message has too many recipients.
        Recipients = "recipients",
        /// The address is malformed or cannot be mapped to a mailbox name.
        Address = "address",
        /// The command is unknown, malformed or out of order.
        Syntax = "syntax",
        /// A login failed or is missing.
        Auth = "auth",
        /// The store is full.
        StoreFull = "store_full",
        /// The store failed.
        StoreFailed = "store_failed",
        /// There are too many connections, or not enough memory for another message.
        Busy = "busy",
    }
}

/// Returns the text between the angle brackets of a reverse-path.
pub fn reverse_path_text(from: &ReversePath) -> String {
    from.as_ref().map(Address::text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_key() {
        let peer = Peer { ip: None, helo: String::new() };
        let key = Some("SG.secret".into());
        let envelope = Envelope { peer, login: None, key, listener: None, from: None, recipients: Vec::new() };
        let text = format!("{envelope:?}");
        assert!(text.contains("key: Some(\"***\")") && !text.contains("SG."), "{text}");
    }
}
