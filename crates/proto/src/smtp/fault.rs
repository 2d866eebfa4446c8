//! What can be wrong with a command before anybody is asked about it. The words for it are in [`super::reply`].

use restante_mail::address::AddressError;

/// Why a command is refused before anybody is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The reply to a command that counts as a bad one.
    Bad(&'static str),
    /// The reply to a command that is well-formed but cannot be.
    Refused(&'static str),
    /// The sender is no address.
    Sender(AddressError),
    /// The recipient is no address.
    Recipient(AddressError),
}
