//! What a sender is told when the store does not take its mail, or when its login is not enough. By the words about the store
//! such refusals are told apart from those of policy and scripts when they are counted; the mail stays with the sender, who
//! tries again (RFC 5321 section 4.2).

use restante_mail::envelope::Refusal;
use restante_metrics::refusal::{BROKEN, NO_ROOM, UNAVAILABLE};
use restante_store::StoreError;

/// So many logins have failed that this one is not even looked at (RFC 4954 section 6).
const TOO_MANY_LOGINS: &str = "4.7.0 Too many logins have failed, try again later";
/// The token is known, and not for sending mail.
const NOT_ALLOWED: &str = "5.7.8 The token does not allow this";
/// The token that the client has logged in with is for other mailboxes.
const OUT_OF_REACH: &str = "5.7.1 The credentials are not for this mailbox";

/// The refusal of a login for now.
pub(super) fn too_many_logins() -> Refusal {
    Refusal::new(454, TOO_MANY_LOGINS)
}

/// The refusal of a login that is right, and does not allow to send mail.
pub(super) fn not_allowed() -> Refusal {
    Refusal::new(535, NOT_ALLOWED)
}

/// The refusal of a recipient that is not the client's to write to.
pub(super) fn out_of_reach() -> Refusal {
    Refusal::new(550, OUT_OF_REACH)
}

/// The refusal of a mail that the store did not take.
pub(super) fn of(error: &StoreError) -> Refusal {
    match error {
        StoreError::NoSpace(_) => Refusal::new(452, NO_ROOM),
        StoreError::Unavailable(_) => Refusal::new(451, UNAVAILABLE),
        StoreError::Broken(_) => Refusal::new(451, BROKEN),
    }
}
