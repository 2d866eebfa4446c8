//! How the values of an entry are stored in the columns of a database.

use restante_store::{Result, StoreError};

use super::transitions::fail_waiting;
use crate::entry::{EntryRecipient, EntryState, Origin};

/// Returns the number of a state. The SQL statements contain these numbers: those from 2 on are final.
pub(super) const fn state_number(state: EntryState) -> i16 {
    match state {
        EntryState::Queued => 0,
        EntryState::Sending => 1,
        EntryState::Delivered => 2,
        EntryState::Failed => 3,
        EntryState::Cancelled => 4,
    }
}

/// Returns the state with a number.
pub(super) fn state_from_number(number: i16) -> Result<EntryState> {
    let state = EntryState::ALL.into_iter().find(|state| state_number(*state) == number);
    state.ok_or_else(|| StoreError::Broken(format!("a relay entry has the unknown state {number}")))
}

/// Encodes recipients.
pub(super) fn encode_recipients(recipients: &[EntryRecipient]) -> Result<String> {
    serde_json::to_string(recipients).map_err(|error| StoreError::Broken(error.to_string()))
}

/// Decodes the recipients of an entry. An entry expires without a change of its recipients: those that still wait have
/// failed.
pub(super) fn decode_recipients(text: &[u8], state: EntryState) -> Result<Vec<EntryRecipient>> {
    let mut recipients: Vec<EntryRecipient> = serde_json::from_slice(text)
        .map_err(|error| StoreError::Broken(format!("the recipients of a relay entry are unreadable: {error}")))?;
    if state == EntryState::Failed {
        fail_waiting(&mut recipients);
    }
    Ok(recipients)
}

/// Returns the columns of an origin: whether a rule matched, and who released the message.
pub(super) fn origin_columns(origin: &Origin) -> (bool, Option<&str>) {
    match origin {
        Origin::Forward => (true, None),
        Origin::Release { by } => (false, by.as_deref()),
    }
}

/// Returns the origin of an entry.
pub(super) fn origin_from_columns(is_forwarded: bool, released_by: Option<String>) -> Origin {
    if is_forwarded { Origin::Forward } else { Origin::Release { by: released_by } }
}
