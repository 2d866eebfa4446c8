//! The relay: its targets, and the entries of its queue.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An SMTP server that messages can be sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelayTarget<'a> {
    /// The name of the target.
    pub name: Cow<'a, str>,
    /// The host name or IP address.
    pub host: Cow<'a, str>,
    /// The port.
    pub port: u16,
    /// Patterns of the recipients that messages may be sent to. If it is empty, nothing is sent.
    #[serde(default)]
    #[schema(required)]
    pub allowed: Vec<Cow<'a, str>>,
    /// Patterns of recipients that messages are not sent to, even if they are allowed.
    #[serde(default)]
    #[schema(required)]
    pub blocked: Vec<Cow<'a, str>>,
    /// Whether messages are sent.
    pub state: RelayTargetState,
    /// When the next connection is attempted, or null if the target is not paused.
    #[schema(required, format = DateTime)]
    pub paused_until: Option<Cow<'a, str>>,
    /// Why the last connection failed, or null if it did not.
    #[schema(required)]
    pub last_error: Option<Cow<'a, str>>,
    /// The number of entries in the queue. All are 0 if the credentials do not allow the relay of all mailboxes.
    #[serde(default)]
    #[schema(required)]
    pub entries: RelayEntryCounts,
}

/// The state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayTargetState {
    /// Messages are sent.
    Ready,
    /// The target could not be reached. Its entries wait.
    Paused,
}

impl RelayTargetState {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Paused => "paused",
        }
    }
}

/// The number of entries of a target in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RelayEntryCounts {
    /// Waiting for the next attempt.
    #[schema(required)]
    pub queued: u64,
    /// Being sent.
    #[schema(required)]
    pub sending: u64,
    /// Accepted for all recipients.
    #[schema(required)]
    pub delivered: u64,
    /// Refused for at least one recipient, or expired.
    #[schema(required)]
    pub failed: u64,
    /// Cancelled.
    #[schema(required)]
    pub cancelled: u64,
}

/// An entry of the relay queue: a message, to be sent to some recipients through one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelayEntry<'a> {
    /// The id of the entry.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub message: Cow<'a, str>,
    /// The mailbox of the copy that is sent.
    pub mailbox: Cow<'a, str>,
    /// The name of the target.
    pub target: Cow<'a, str>,
    /// The sender of the envelope. Empty for the null sender of bounces.
    #[serde(default)]
    #[schema(required)]
    pub sender: Cow<'a, str>,
    /// The recipients. Those whose mailboxes the credentials do not allow are left out, unless the same credentials
    /// released the message.
    #[serde(default)]
    #[schema(required)]
    pub recipients: Vec<RelayRecipient<'a>>,
    /// Why the message is sent.
    pub origin: RelayOrigin,
    /// The name of the user or token that released the message, if authentication is configured.
    #[schema(required)]
    pub by: Option<Cow<'a, str>>,
    /// The state of the entry.
    pub state: RelayEntryState,
    /// The number of attempts so far.
    #[serde(default)]
    #[schema(required)]
    pub attempts: u32,
    /// When the entry was added.
    #[schema(format = DateTime)]
    pub created: Cow<'a, str>,
    /// When the entry fails if it could not be sent before.
    #[schema(format = DateTime)]
    pub expires: Cow<'a, str>,
    /// When it is attempted next, or null if it is not queued.
    #[schema(required, format = DateTime)]
    pub next_attempt: Option<Cow<'a, str>>,
    /// When it was last attempted, or null before the first attempt.
    #[schema(required, format = DateTime)]
    pub last_attempt: Option<Cow<'a, str>>,
    /// The last reply of the target, or the error that prevented one. Empty before the first attempt, and if recipients
    /// are left out.
    #[serde(default)]
    #[schema(required)]
    pub last_reply: Cow<'a, str>,
}

/// A recipient of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RelayRecipient<'a> {
    /// The address.
    pub address: Cow<'a, str>,
    /// Whether the message was accepted for this recipient.
    pub state: RelayRecipientState,
    /// The last reply about this recipient. Empty before the first attempt.
    #[serde(default)]
    #[schema(required)]
    pub reply: Cow<'a, str>,
}

/// The state of a recipient of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayRecipientState {
    /// The message was not yet accepted.
    Waiting,
    /// The message was accepted.
    Delivered,
    /// The recipient was refused, or the entry expired.
    Failed,
}

impl RelayRecipientState {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayOrigin {
    /// A client requested it.
    Release,
    /// A rule matched.
    Forward,
}

impl RelayOrigin {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Forward => "forward",
        }
    }
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayEntryState {
    /// It waits for its next attempt.
    Queued,
    /// It is being sent.
    Sending,
    /// All recipients were accepted.
    Delivered,
    /// At least one recipient was refused permanently, or not accepted in time.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RelayEntryState {
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

    /// Returns whether an entry in this state is not sent again, unless it is retried by hand.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json() {
        for state in RelayEntryState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for state in [RelayRecipientState::Waiting, RelayRecipientState::Delivered, RelayRecipientState::Failed] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for state in [RelayTargetState::Ready, RelayTargetState::Paused] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for origin in [RelayOrigin::Release, RelayOrigin::Forward] {
            assert_eq!(serde_json::to_value(origin).unwrap(), origin.name());
        }
    }
}
