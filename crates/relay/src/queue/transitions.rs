//! How entries change. The backends differ only in how they store them.

use std::time::Duration;

use jiff::Timestamp;

use crate::entry::{Entry, EntryId, EntryRecipient, EntryState, NewEntry, RecipientState};

/// The reply of an entry that expired before its first attempt.
pub(super) const EXPIRED_REPLY: &str = "expired before the first attempt";

/// No entry is queued for a later time than this. The delay between attempts is at most 15 minutes, so an entry that is
/// due later was queued before the clock was set back. It is claimed at once.
const MAX_DELAY: Duration = Duration::from_mins(30);

/// Returns the time above which an entry is due at once.
pub(super) fn latest_due(now: Timestamp) -> Timestamp {
    now.checked_add(MAX_DELAY).unwrap_or(Timestamp::MAX)
}

/// Creates the entry that is added. It is due when it is created.
pub(super) fn queued_entry(id: EntryId, new: NewEntry) -> Entry {
    Entry {
        id,
        message: new.message,
        mailbox: new.mailbox,
        copy: new.copy,
        target: new.target,
        sender: new.sender,
        recipients: waiting_recipients(new.recipients),
        origin: new.origin,
        created: new.created,
        expires: new.expires,
        state: EntryState::Queued,
        attempts: 0,
        next_attempt: Some(new.created),
        last_attempt: None,
        last_reply: String::new(),
        claim: 0,
    }
}

/// Returns the recipients of a new entry.
pub(super) fn waiting_recipients(addresses: Vec<String>) -> Vec<EntryRecipient> {
    let recipient = |address| EntryRecipient { address, state: RecipientState::Waiting, reply: String::new() };
    addresses.into_iter().map(recipient).collect()
}

/// Returns the state that an attempt leads to. It is queued unless the attempt was the last one.
pub(super) fn state_after(reported: EntryState) -> EntryState {
    if reported.is_final() { reported } else { EntryState::Queued }
}

/// Lets waiting recipients fail.
pub(super) fn fail_waiting(recipients: &mut [EntryRecipient]) {
    replace_state(recipients, RecipientState::Waiting, RecipientState::Failed);
}

/// Lets failed recipients wait again. Returns whether any recipient waits.
pub(super) fn retry_failed(recipients: &mut [EntryRecipient]) -> bool {
    replace_state(recipients, RecipientState::Failed, RecipientState::Waiting);
    recipients.iter().any(|recipient| recipient.state == RecipientState::Waiting)
}

fn replace_state(recipients: &mut [EntryRecipient], from: RecipientState, to: RecipientState) {
    for recipient in recipients.iter_mut().filter(|recipient| recipient.state == from) {
        recipient.state = to;
    }
}

/// Returns whether an entry in this state can be retried by hand.
pub(super) fn can_be_retried(state: EntryState) -> bool {
    matches!(state, EntryState::Queued | EntryState::Failed | EntryState::Cancelled)
}

/// Returns when the entry is due after an attempt.
pub(super) fn due_after(next_attempt: Option<Timestamp>, at: Timestamp) -> Timestamp {
    next_attempt.unwrap_or(at)
}
