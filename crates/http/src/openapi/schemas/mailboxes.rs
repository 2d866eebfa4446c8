//! The list of mailboxes.

use utoipa::ToSchema;

/// Some of the mailboxes, ascending by name.
#[derive(ToSchema)]
pub(in crate::openapi) struct Mailboxes {
    mailboxes: Vec<Mailbox>,
    /// What to give as `after` to get those that follow; null when these were the last ones.
    #[schema(required)]
    next: Option<String>,
}

/// A mailbox that holds something.
#[derive(ToSchema)]
pub(in crate::openapi) struct Mailbox {
    name: String,
    /// How many messages it holds.
    messages: u64,
    /// How many of them are not marked as seen.
    unseen: u64,
    /// The sum of their sizes.
    bytes: u64,
    newest: Newest,
}

/// The message of a mailbox that came last.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Newest {
    #[schema(pattern = "^[0-9]+$")]
    id: String,
    /// When the server received the message.
    #[schema(format = DateTime)]
    date: String,
    /// The same, in milliseconds since 1970.
    posix_millis: i64,
}
