//! What the relay and the webhooks have in common: the state of the entries of their queues.

use std::borrow::Cow;
use std::str::FromStr;

use restante_mail::named_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The number of entries of a target in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct QueueEntryCounts {
    /// Waiting for the next attempt.
    #[schema(required)]
    pub queued: u64,
    /// Being sent.
    #[schema(required)]
    pub sending: u64,
    /// Accepted by the target, for all recipients of a message.
    #[schema(required)]
    pub delivered: u64,
    /// Refused, for at least one recipient of a message, or expired.
    #[schema(required)]
    pub failed: u64,
    /// Cancelled.
    #[schema(required)]
    pub cancelled: u64,
}

/// The state of an entry of a queue, and its attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueueEntryProgress<'a> {
    /// The state of the entry.
    pub state: QueueEntryState,
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
    /// The last reply of the target, or the error that prevented one. Empty before the first attempt, and if recipients of
    /// a message are left out.
    #[serde(default)]
    #[schema(required)]
    pub last_reply: Cow<'a, str>,
}

named_enum! {
    /// The state of an entry of a queue.
    #[derive(Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum QueueEntryState {
        /// It waits for its next attempt.
        Queued = "queued",
        /// It is being sent.
        Sending = "sending",
        /// The target accepted it, for all recipients of a message.
        Delivered = "delivered",
        /// The target refused it permanently, for at least one recipient of a message, or did not accept it in time.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

impl QueueEntryState {
    /// Returns whether an entry in this state is not sent again, unless it is retried by hand.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending)
    }
}

impl FromStr for QueueEntryState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or("queued, sending, delivered, failed or cancelled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json() {
        for state in QueueEntryState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }
}
