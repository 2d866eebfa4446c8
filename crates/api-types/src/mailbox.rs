//! Mailboxes as the list of mailboxes has them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A mailbox that holds something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mailbox<'a> {
    /// The name of the mailbox.
    #[schema(
        pattern = r#"^([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])$"#
    )]
    pub name: Cow<'a, str>,
    /// How many messages it holds.
    pub messages: u64,
    /// How many of them are not marked as seen.
    pub unseen: u64,
    /// The sum of their sizes.
    pub bytes: u64,
    /// The message that came last.
    pub newest: Newest<'a>,
}

/// The message of a mailbox that came last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Newest<'a> {
    /// The id of the message.
    #[serde(default)]
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// When the server received the message.
    #[schema(format = DateTime)]
    pub date: Cow<'a, str>,
    /// The same, in milliseconds since 1970.
    #[serde(default)]
    #[schema(required)]
    pub posix_millis: i64,
}
