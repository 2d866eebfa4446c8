//! The types of JSON responses that more than one crate needs, and the serializer that writes JSON.
//!
//! The server serializes each type, the command line deserializes it, and OpenAPI describes it: the doc comments are
//! the descriptions in the OpenAPI document. Types that only the HTTP server needs are next to its handlers.
//! Deserialization is lenient: fields that other servers leave out have defaults.

mod entry;
pub mod json;
mod mailbox;
mod message;
mod queue;
mod relay;
mod time;
mod webhook;

pub use entry::{Client, MessageCopy, MessageEntry, WholeMessage};
pub use mailbox::{Mailbox, Newest};
pub use message::{ExcerptPart, FoundMessage, Identifier, MessageRecord};
pub use queue::{QueueEntryCounts, QueueEntryProgress, QueueEntryState};
pub use relay::{RelayEntry, RelayOrigin, RelayRecipient, RelayRecipientState, RelayTarget, RelayTargetState};
pub use time::Time;
pub use webhook::{WebhookEntry, WebhookEvent, WebhookFilter, WebhookTarget, WebhookTargetState};
