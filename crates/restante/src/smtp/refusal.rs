//! What a sender is told when the store does not take its mail. The mail stays with the sender, who tries again (RFC
//! 5321 section 4.2). By these words such refusals are told apart from those of policy and scripts when they are
//! counted.

use restante_mail::envelope::Refusal;
use restante_store::StoreError;

/// The store is full.
pub(crate) const NO_ROOM: &str = "4.3.1 No room for this mail at the moment";
/// The store does not answer.
pub(crate) const UNAVAILABLE: &str = "4.3.0 The mail cannot be stored at the moment";
/// The store, or what it holds, is not as it should be.
pub(crate) const BROKEN: &str = "4.3.5 The mail cannot be stored because of a fault here";

/// The refusal of a mail that the store did not take.
pub(super) fn of(error: &StoreError) -> Refusal {
    match error {
        StoreError::NoSpace(_) => Refusal::new(452, NO_ROOM),
        StoreError::Unavailable(_) => Refusal::new(451, UNAVAILABLE),
        StoreError::Broken(_) => Refusal::new(451, BROKEN),
    }
}
