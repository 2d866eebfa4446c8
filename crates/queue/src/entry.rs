//! Entries: something about one message that is sent to one target.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
/// The state of an entry.
pub use restante_api_types::QueueEntryState as EntryState;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::sql_values::to_i64;
use restante_store::{Result, StoreError};

/// The reply of an entry that expired before its first attempt.
pub(crate) const EXPIRED_REPLY: &str = "expired before the first attempt";

/// The id of an entry. Ids ascend in the order in which entries are added, and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EntryId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_canonical = !text.starts_with(['0', '+']) && text.len() <= 19;
        text.parse().ok().filter(|_| is_canonical).map(Self).ok_or("a number")
    }
}

/// An entry to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// The message.
    pub message: MessageId,
    /// The mailbox of the copy that it is about.
    pub mailbox: MailboxName,
    /// The name of the target.
    pub target: String,
    /// Identifies the entry among those of its target. An entry with the key of another one is not added.
    pub key: Option<String>,
    /// What is sent, as the user of the queue encodes it.
    pub payload: Vec<u8>,
    /// When it was added.
    pub created: Timestamp,
    /// When it fails if it could not be sent before.
    pub expires: Timestamp,
}

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id.
    pub id: EntryId,
    /// The message.
    pub message: MessageId,
    /// The mailbox of the copy that it is about.
    pub mailbox: MailboxName,
    /// The name of the target.
    pub target: String,
    /// Identifies the entry among those of its target.
    pub key: Option<String>,
    /// What is sent, as the user of the queue encodes it.
    pub payload: Vec<u8>,
    /// When it was added.
    pub created: Timestamp,
    /// When it fails if it could not be sent before.
    pub expires: Timestamp,
    /// The state.
    pub state: EntryState,
    /// The number of attempts so far.
    pub attempts: u32,
    /// When it is attempted next. `None` unless it is queued.
    pub next_attempt: Option<Timestamp>,
    /// When it was last attempted.
    pub last_attempt: Option<Timestamp>,
    /// The last reply of the target, or the error that prevented it. Empty before the first attempt.
    pub last_reply: String,
    /// The number of the claim whose result is expected, or 0.
    pub claim: u64,
}

/// Returns the number of a state in a database. The SQL statements contain these numbers: those from 2 on are final.
pub(crate) const fn state_number(state: EntryState) -> i16 {
    state as i16
}

/// Returns the state with a number.
pub(crate) fn parse_state(number: i16) -> Result<EntryState> {
    let state = EntryState::ALL.into_iter().find(|state| state_number(*state) == number);
    state.ok_or_else(|| StoreError::Broken(format!("an entry of a queue has the unknown state {number}")))
}

/// The result of an attempt to send an entry.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// The entry.
    pub id: EntryId,
    /// The claim to which the result belongs: [`Entry::claim`] of the claimed entry.
    pub claim: u64,
    /// What happened.
    pub outcome: AttemptOutcome,
}

/// What happened to a claimed entry.
#[derive(Clone, Debug)]
pub enum AttemptOutcome {
    /// It was not attempted. It is queued again as it was.
    Released,
    /// It was attempted.
    Attempted {
        /// The new state: queued, delivered or failed.
        state: EntryState,
        /// When it is attempted next, if it is queued.
        next_attempt: Option<Timestamp>,
        /// When it was attempted.
        at: Timestamp,
        /// The new payload.
        payload: Vec<u8>,
        /// The last reply of the target, or the error that prevented it.
        reply: String,
        /// What is kept of the attempt, as the user of the queue encodes it.
        log: Vec<u8>,
    },
}

/// Selects entries for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only entries of this message.
    pub message: Option<MessageId>,
    /// Only entries of this target.
    pub target: Option<String>,
    /// Only entries in this state.
    pub state: Option<EntryState>,
    /// Only entries with ids below this one.
    pub before: Option<EntryId>,
    /// Whether the payloads of the entries are left empty.
    pub omits_payloads: bool,
    /// The maximum number of entries.
    pub limit: usize,
}

/// Selects entries for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These entries.
    Ids(Vec<EntryId>),
    /// All entries of a target, or of all targets.
    Target(Option<String>),
}

impl Selection {
    /// Returns the target and the ids, for a statement in which a value that is null selects everything.
    pub(crate) fn parts(&self) -> (Option<&str>, Option<Vec<i64>>) {
        match self {
            Self::Ids(ids) => (None, Some(ids.iter().map(|id| to_i64(id.0)).collect())),
            Self::Target(target) => (target.as_deref(), None),
        }
    }
}

/// A number of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// The name of the target.
    pub target: String,
    /// The state.
    pub state: EntryState,
    /// The number of entries.
    pub count: u64,
    /// The size of their payloads.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_numbers_of_the_statements() {
        let numbers = EntryState::ALL.map(|state| (state_number(state), state.name()));
        assert_eq!(numbers, [(0, "queued"), (1, "sending"), (2, "delivered"), (3, "failed"), (4, "cancelled")]);
        assert!(EntryState::ALL.iter().all(|state| state.is_final() == (state_number(*state) >= 2)));
        assert!(parse_state(5).is_err());
    }
}
