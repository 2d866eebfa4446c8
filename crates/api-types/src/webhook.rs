//! Webhooks: their targets, and the entries of their queue.

use std::borrow::Cow;

use restante_mail::named_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::queue::{QueueEntryCounts, QueueEntryProgress};

/// A URL that events are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookTarget<'a> {
    /// The name of the target. It is derived from the URL and does not reveal it.
    pub name: Cow<'a, str>,
    /// The scheme, host and port of the URL. The rest may be a secret.
    pub url: Cow<'a, str>,
    /// Events that match any of these filters are sent. Empty if the credentials do not allow the scope `relay` for all
    /// mailboxes.
    #[serde(default)]
    #[schema(required)]
    pub filters: Vec<WebhookFilter<'a>>,
    /// Whether events are sent.
    pub state: WebhookTargetState,
    /// When the next request is attempted, or null if the target is not failing.
    #[schema(required, format = DateTime)]
    pub next_attempt: Option<Cow<'a, str>>,
    /// Why the target cannot be reached, or null if it can.
    #[schema(required)]
    pub last_error: Option<Cow<'a, str>>,
    /// The number of entries in the queue. All are 0 if the credentials do not allow the scope `relay` for all mailboxes.
    #[serde(default)]
    #[schema(required)]
    pub entries: QueueEntryCounts,
}

/// Which events are sent to a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookFilter<'a> {
    /// The events.
    pub events: Vec<WebhookEvent>,
    /// Patterns of mailbox names. Empty for all mailboxes.
    pub mailboxes: Vec<Cow<'a, str>>,
}

named_enum! {
    /// An event of a message.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum WebhookEvent {
        /// The message was stored.
        Stored = "stored",
        /// The message was deleted.
        Deleted = "deleted",
    }
}

named_enum! {
    /// The state of a target of webhooks.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum WebhookTargetState {
        /// Events are sent.
        Active = "active",
        /// The target was paused by hand. Its entries wait until it is resumed.
        Paused = "paused",
        /// The target cannot be reached. Its entries wait.
        Failing = "failing",
    }
}

/// An entry of the webhook queue: an event, to be sent to one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookEntry<'a> {
    /// The id of the entry.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub message: Cow<'a, str>,
    /// The mailbox of the copy that was stored or deleted.
    pub mailbox: Cow<'a, str>,
    /// The name of the target.
    pub target: Cow<'a, str>,
    /// What happened to the message.
    pub event: WebhookEvent,
    /// The header field `webhook-id` of the requests, the same in every attempt and for every target.
    pub webhook_id: Cow<'a, str>,
    /// The state of the entry, and its attempts.
    #[serde(flatten)]
    pub progress: QueueEntryProgress<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json() {
        for event in [WebhookEvent::Stored, WebhookEvent::Deleted] {
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
        for state in [WebhookTargetState::Active, WebhookTargetState::Paused, WebhookTargetState::Failing] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }
}
