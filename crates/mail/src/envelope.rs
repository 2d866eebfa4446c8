//! What the peer said around a mail: who it is, who sends, who shall receive. The words of SMTP without its wire form.

use std::net::IpAddr;

use crate::address::Address;
use crate::naming::{MailboxName, NameError, Naming};

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
    pub recipients: Vec<Recipient>,
}

/// A recipient and the mailbox that its mail goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The address, from RCPT.
    pub address: Address,
    /// The mailbox that is named after the address.
    pub mailbox: MailboxName,
}

impl Recipient {
    /// Names the mailbox of a recipient. Fails if no mailbox can be named after the address.
    pub fn new(address: Address, naming: Naming) -> Result<Self, NameError> {
        let mailbox = naming.mailbox_for(&address)?;
        Ok(Self { address, mailbox })
    }
}

/// A refusal as the peer gets it: an SMTP reply code and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply code, 400 to 599.
    pub code: u16,
    /// The text after the code. It may begin with an enhanced status code (RFC 3463).
    pub text: String,
}

impl Refusal {
    /// Creates a refusal with this code and text.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Why a sender is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderRefusal {
    /// The policy does not accept mail from the sender's domain.
    Policy,
    /// A hook refuses the sender and gives its own reply.
    Hook(Refusal),
}

impl SenderRefusal {
    /// Returns the reason that this refusal is counted under.
    pub fn reason(&self) -> RefusalReason {
        match self {
            Self::Policy | Self::Hook(_) => RefusalReason::Policy,
        }
    }
}

/// Why a recipient is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientRefusal {
    /// No mailbox can be named after the recipient.
    UnusableName(NameError),
    /// The client's credentials do not permit mail to the recipient's mailbox.
    NotPermitted,
    /// A hook refuses the recipient and gives its own reply.
    Hook(Refusal),
    /// The policy does not accept mail to the recipient's domain.
    Policy,
}

impl RecipientRefusal {
    /// Returns the reason that this refusal is counted under.
    pub fn reason(&self) -> RefusalReason {
        match self {
            Self::UnusableName(_) => RefusalReason::Address,
            Self::NotPermitted | Self::Hook(_) | Self::Policy => RefusalReason::Policy,
        }
    }
}

/// The reason of a refusal, as metrics count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The policy, a hook or the client's credentials do not permit it.
    Policy,
    /// The mail is too long.
    Size,
    /// The mail has too many recipients.
    Recipients,
    /// The address is malformed, or no mailbox can be named after it.
    Address,
    /// The command is unknown, malformed or out of order.
    Syntax,
    /// A login failed or is missing.
    Auth,
    /// The store is full.
    StoreFull,
    /// The store failed.
    StoreFailed,
    /// There are too many connections, or there is no memory for one more mail.
    Busy,
}

impl RefusalReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 9] = [
        Self::Policy,
        Self::Size,
        Self::Recipients,
        Self::Address,
        Self::Syntax,
        Self::Auth,
        Self::StoreFull,
        Self::StoreFailed,
        Self::Busy,
    ];

    /// Returns the name of the reason in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Size => "size",
            Self::Recipients => "recipients",
            Self::Address => "address",
            Self::Syntax => "syntax",
            Self::Auth => "auth",
            Self::StoreFull => "store_full",
            Self::StoreFailed => "store_failed",
            Self::Busy => "busy",
        }
    }
}

/// The text between the angle brackets of a reverse-path.
pub fn reverse_path_text(from: &ReversePath) -> String {
    from.as_ref().map(Address::text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_reasons_in_the_order_of_their_discriminants() {
        for (index, reason) in RefusalReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
