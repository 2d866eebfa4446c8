//! The errors of commands that are refused without the driver. The texts are in [`super::reply`].

use restante_mail::address::AddressError;

use super::reply::ErrorReply;

/// Why a command is refused without the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    /// The command counts as a bad command.
    Bad(ErrorReply),
    /// The command is well-formed but cannot be executed.
    Refused(ErrorReply),
    /// The sender or the recipient is not a valid address. The text is the start of the reply.
    InvalidAddress(&'static str, AddressError),
    /// The client cancelled AUTH (RFC 4954 section 4). The reply is an error, but nothing was refused.
    AuthCancelled,
}
