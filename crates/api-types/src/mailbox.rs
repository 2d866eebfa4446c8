//! The entries of the list of mailboxes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A mailbox that contains messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mailbox<'a> {
    /// The name of the mailbox.
    #[schema(
        pattern = r#"^(([a-z0-9][a-z0-9-]{0,61})?[a-z0-9]:)?([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])(,[^\x00-\x1F%*\x7F-\x9F]+)?$"#
    )]
    pub name: Cow<'a, str>,
    /// The number of messages in the mailbox.
    pub messages: u64,
    /// The number of messages that are not marked as seen.
    pub unseen: u64,
    /// The sum of the sizes of the messages, in bytes.
    pub bytes: u64,
    /// The newest message.
    pub newest: Newest<'a>,
}

/// The newest message of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Newest<'a> {
    /// The id of the message.
    #[serde(default)]
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The time at which the server received the message.
    #[schema(format = DateTime)]
    pub date: Cow<'a, str>,
    /// The same time in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    #[schema(required)]
    pub posix_millis: i64,
}
