//! Messages as lists, search results and events have them.

use std::borrow::Cow;

use restante_mail::message::Summary;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::Time;

/// What is told of a message wherever it is mentioned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MessageRecord<'a> {
    /// The mailbox that holds the message.
    #[schema(
        pattern = r#"^([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])$"#
    )]
    pub mailbox: Cow<'a, str>,
    /// The id of the message, unique in its mailbox.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The sender by the message's header, decoded; without one, the sender of the envelope.
    #[serde(default)]
    #[schema(required)]
    pub from: Cow<'a, str>,
    /// The recipients by the message's header, decoded; without any, those of the envelope.
    #[serde(default, deserialize_with = "list_or_null")]
    #[schema(required)]
    pub to: Vec<Cow<'a, str>>,
    /// The subject, decoded.
    #[serde(default)]
    #[schema(required)]
    pub subject: Cow<'a, str>,
    /// When the server received the message.
    #[schema(format = DateTime)]
    pub date: Cow<'a, str>,
    /// The same, in milliseconds since 1970.
    #[serde(default)]
    #[schema(required)]
    pub posix_millis: i64,
    /// The length of the source, in bytes.
    #[serde(default)]
    #[schema(required)]
    pub size: u64,
    /// Whether the message is marked as seen.
    #[serde(default)]
    #[schema(required)]
    pub seen: bool,
}

impl<'a> From<&'a Summary> for MessageRecord<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self {
            mailbox: summary.mailbox.as_str().into(),
            id: summary.id.to_string().into(),
            from: summary.headline.from().into(),
            to: summary.headline.to().map(Into::into).collect(),
            subject: summary.headline.subject().into(),
            date: Time(summary.received).to_string().into(),
            posix_millis: summary.received.as_millisecond(),
            size: summary.size,
            seen: summary.seen,
        }
    }
}

/// A message by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identifier<'a> {
    /// The mailbox that holds the message.
    #[schema(
        pattern = r#"^([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])$"#
    )]
    pub mailbox: Cow<'a, str>,
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
}

/// A message that a search has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundMessage<'a> {
    /// The message.
    #[serde(flatten)]
    pub record: MessageRecord<'a>,
    /// Some words of the message around what was looked for, piece by piece.
    #[serde(default)]
    #[schema(required)]
    pub snippet: Vec<SnippetFragment<'a>>,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnippetFragment<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// Whether this is what was looked for.
    pub hit: bool,
}

/// Reads a list. Programs written in Go write `null` for an empty one.
fn list_or_null<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cow<'a, str>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_servers_are_read() {
        let text = r#"{"mailbox":"ann","id":"7","to":null,"date":"2026-01-02T03:04:05Z","snippet":[]}"#;
        let found: FoundMessage<'static> = serde_json::from_str(text).unwrap();
        assert_eq!((&*found.record.mailbox, &*found.record.id, found.record.to.len()), ("ann", "7", 0));
        for missing in ["mailbox", "id", "date"] {
            let record = text.replace(missing, "other");
            assert!(serde_json::from_str::<MessageRecord<'_>>(&record).is_err(), "{missing}");
        }
    }
}
