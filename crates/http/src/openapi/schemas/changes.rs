//! What clients ask to be changed, how much of it was, and what those who listen are told.

use utoipa::ToSchema;

use crate::openapi::schemas::MessageRecord;

/// How a message shall be marked.
#[derive(ToSchema)]
pub(in crate::openapi) struct Mark {
    seen: bool,
}

/// Messages of a mailbox.
#[derive(ToSchema)]
pub(in crate::openapi) struct Ids {
    /// Their ids. Those of messages that are not there do no harm.
    ids: Vec<String>,
}

/// Messages of a mailbox, and how they shall be marked.
#[derive(ToSchema)]
pub(in crate::openapi) struct IdsAndMark {
    /// Their ids. Those of messages that are not there do no harm.
    ids: Vec<String>,
    seen: bool,
}

/// How many messages were deleted.
#[derive(ToSchema)]
pub(in crate::openapi) struct Deleted {
    deleted: u64,
}

/// How many messages were marked.
#[derive(ToSchema)]
pub(in crate::openapi) struct Marked {
    marked: u64,
}

/// What happened to a message.
#[derive(ToSchema)]
pub(in crate::openapi) struct Change {
    variant: Variant,
    /// The message that was deleted; null when one was stored.
    #[schema(required)]
    identifier: Option<Identifier>,
    /// The message that was stored; null when one was deleted.
    #[schema(required)]
    header: Option<MessageRecord>,
}

/// The kinds of changes.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Variant {
    MessageStored,
    MessageDeleted,
}

/// A message by its name.
#[derive(ToSchema)]
pub(in crate::openapi) struct Identifier {
    mailbox: String,
    #[schema(pattern = "^[0-9]+$")]
    id: String,
}
