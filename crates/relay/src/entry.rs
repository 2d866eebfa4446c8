//! Entries of the queue: one message, to be sent to some recipients through one target.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use serde::{Deserialize, Serialize};

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
    /// The mailbox of the copy whose source is sent.
    pub mailbox: MailboxName,
    /// The id of that copy.
    pub copy: MessageId,
    /// The name of the target.
    pub target: String,
    /// The sender of the envelope. Empty for the null reverse-path.
    pub sender: String,
    /// The recipients. Not empty.
    pub recipients: Vec<String>,
    /// Why it is sent.
    pub origin: Origin,
    /// When it was added.
    pub created: Timestamp,
    /// When it fails if it could not be sent before.
    pub expires: Timestamp,
}

/// Why a message is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client requested it.
    Release {
        /// The name of its user or token, if authentication is configured.
        by: Option<String>,
    },
    /// A rule matched.
    Forward,
}

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id.
    pub id: EntryId,
    /// The message.
    pub message: MessageId,
    /// The mailbox of the copy whose source is sent.
    pub mailbox: MailboxName,
    /// The id of that copy.
    pub copy: MessageId,
    /// The name of the target.
    pub target: String,
    /// The sender of the envelope. Empty for the null reverse-path.
    pub sender: String,
    /// The recipients.
    pub recipients: Vec<EntryRecipient>,
    /// Why it is sent.
    pub origin: Origin,
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
    /// The last reply of the server, or the error that prevented it. Empty before the first attempt.
    pub last_reply: String,
    /// The number of the claim whose result is expected. Always 0 in queues that cannot lose the reply to a claim.
    pub claim: u64,
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// It waits for its next attempt.
    Queued,
    /// It is being sent.
    Sending,
    /// All recipients were accepted.
    Delivered,
    /// At least one recipient was refused permanently or not accepted in time. None waits any more.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl EntryState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Sending, Self::Delivered, Self::Failed, Self::Cancelled];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether an entry in this state is never sent again, unless it is retried by hand.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending)
    }
}

impl FromStr for EntryState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let state = Self::ALL.into_iter().find(|state| state.name() == text);
        state.ok_or("queued, sending, delivered, failed or cancelled")
    }
}

/// A recipient of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRecipient {
    /// The address.
    pub address: String,
    /// The state.
    pub state: RecipientState,
    /// The last reply about this recipient. Empty before the first attempt.
    pub reply: String,
}

/// The state of a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecipientState {
    /// The message was not yet accepted for this recipient.
    Waiting,
    /// The message was accepted.
    Delivered,
    /// The recipient was refused permanently, or the entry expired.
    Failed,
}

impl RecipientState {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}
