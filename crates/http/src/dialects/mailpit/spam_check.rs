//! The check of a message with SpamAssassin, which is not there.

use crate::dialects::mailpit::error::Error;
use crate::extractors::parameters::RequestGrant;

/// Responds as Mailpit without SpamAssassin.
pub(crate) async fn spam_check(_: RequestGrant) -> Error {
    Error::NotFound("File not found\n")
}
