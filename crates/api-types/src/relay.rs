//! The relay: its targets, and the entries of its queue.

use std::borrow::Cow;

use restante_mail::named_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::queue::{QueueEntryCounts, QueueEntryProgress};

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
    pub entries: QueueEntryCounts,
}

named_enum! {
    /// The state of a target.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RelayTargetState {
        /// Messages are sent.
        Ready = "ready",
        /// The target could not be reached. Its entries wait.
        Paused = "paused",
    }
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
    /// The state of the entry, and its attempts.
    #[serde(flatten)]
    pub progress: QueueEntryProgress<'a>,
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

named_enum! {
    /// The state of a recipient of an entry.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RelayRecipientState {
        /// The message was not yet accepted.
        Waiting = "waiting",
        /// The message was accepted.
        Delivered = "delivered",
        /// The recipient was refused, or the entry expired.
        Failed = "failed",
    }
}

named_enum! {
    /// Why a message is sent.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RelayOrigin {
        /// A client requested it.
        Release = "release",
        /// A rule matched.
        Forward = "forward",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json() {
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
