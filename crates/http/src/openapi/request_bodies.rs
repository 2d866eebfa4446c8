//! The schemas of request bodies. Handlers are more lenient than these descriptions, so they do not use these types.
#![expect(dead_code, reason = "the fields are read by the macro only")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// How to mark a message.
#[derive(ToSchema)]
pub(super) struct Mark {
    seen: bool,
}

/// How to change a message. At least one member is required.
#[derive(ToSchema)]
pub(super) struct MessageChanges {
    /// Whether the message is marked as seen.
    seen: Option<bool>,
    /// The tags, which replace the current ones: at most 20, each with at most 64 characters.
    tags: Option<Vec<String>>,
}

/// Messages.
#[derive(ToSchema)]
pub(super) struct Ids {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    ids: Vec<String>,
}

/// Messages, and how to mark them.
#[derive(ToSchema)]
pub(super) struct IdsAndMark {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    ids: Vec<String>,
    seen: bool,
}

/// Where a message is sent to.
#[derive(ToSchema)]
pub(super) struct Release {
    /// The name of the target. It may be left out if there is only one.
    target: Option<String>,
    /// The recipients, at most 100. By default those of the envelope.
    to: Option<Vec<String>>,
}

/// Entries of the relay queue. Exactly one member is required.
#[derive(ToSchema)]
pub(super) struct RelaySelection {
    /// The ids of the entries, at most 1,000. Ids of entries that do not exist are ignored.
    ids: Option<Vec<String>>,
    /// The name of a target, for all of its entries.
    target: Option<String>,
    /// `true` for all entries.
    all: Option<bool>,
}

/// The fields of a new message.
#[derive(ToSchema)]
pub(super) struct NewMail {
    /// The author, with or without a name.
    from: String,
    /// The recipients in the header. By default the mailbox to which the message is delivered.
    to: Option<Vec<String>>,
    cc: Option<Vec<String>>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    /// Additional header fields.
    headers: Option<BTreeMap<String, String>>,
    attachments: Option<Vec<NewAttachment>>,
    /// The date in the header. By default the current time.
    #[schema(format = DateTime)]
    date: Option<String>,
}

/// An attachment of a new message.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
struct NewAttachment {
    filename: Option<String>,
    content_type: Option<String>,
    /// The content in base64.
    content: String,
    /// The content id by which the HTML refers to the attachment.
    content_id: Option<String>,
}
