//! Messages as entries of lists, search results and events.

use std::borrow::Cow;

use restante_mail::message::Summary;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::Time;

/// The summary of a message, as it appears in lists, search results and events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MessageRecord<'a> {
    /// The mailbox that contains the message.
    #[schema(
        pattern = r#"^(([a-z0-9][a-z0-9-]{0,61})?[a-z0-9]:)?([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])(,[^\x00-\x1F%*\x7F-\x9F]+)?$"#
    )]
    pub mailbox: Cow<'a, str>,
    /// The id of the message, unique in its mailbox.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The sender from the message header, decoded. Without this header field, the sender of the envelope.
    #[serde(default)]
    #[schema(required)]
    pub from: Cow<'a, str>,
    /// The recipients from the message header, decoded. Without these header fields, the recipients of the envelope.
    #[serde(default, deserialize_with = "list_or_null")]
    #[schema(required)]
    pub to: Vec<Cow<'a, str>>,
    /// The subject, decoded.
    #[serde(default)]
    #[schema(required)]
    pub subject: Cow<'a, str>,
    /// The time at which the server received the message.
    #[schema(format = DateTime)]
    pub date: Cow<'a, str>,
    /// The same time in milliseconds since 1970-01-01 UTC.
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
            mailbox: summary.mailbox.shown().into(),
            id: summary.id.to_string().into(),
            from: summary.headline.from().into(),
            to: summary.to().collect(),
            subject: summary.headline.subject().into(),
            date: Time(summary.received).to_string().into(),
            posix_millis: summary.received.as_millisecond(),
            size: summary.size,
            seen: summary.seen,
        }
    }
}

/// Identifies a message by its mailbox and its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identifier<'a> {
    /// The mailbox that contains the message.
    #[schema(
        pattern = r#"^(([a-z0-9][a-z0-9-]{0,61})?[a-z0-9]:)?([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])(,[^\x00-\x1F%*\x7F-\x9F]+)?$"#
    )]
    pub mailbox: Cow<'a, str>,
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
}

/// A message found by a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundMessage<'a> {
    /// The message.
    #[serde(flatten)]
    pub record: MessageRecord<'a>,
    /// An excerpt of the message around the matches, split into matching and other text.
    #[serde(default, rename = "snippet")]
    #[schema(required)]
    pub excerpt: Vec<ExcerptPart<'a>>,
}

/// A part of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Piece)]
pub struct ExcerptPart<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// Whether this text matches the query.
    pub hit: bool,
}

/// Deserializes a list. Accepts `null`, which programs written in Go write for an empty list.
fn list_or_null<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cow<'a, str>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_records_of_other_servers() {
        let text = r#"{"mailbox":"ann","id":"7","to":null,"date":"2026-01-02T03:04:05Z","snippet":[]}"#;
        let found: FoundMessage<'static> = serde_json::from_str(text).unwrap();
        assert_eq!((&*found.record.mailbox, &*found.record.id, found.record.to.len()), ("ann", "7", 0));
        for missing in ["mailbox", "id", "date"] {
            let record = text.replace(missing, "other");
            assert!(serde_json::from_str::<MessageRecord<'_>>(&record).is_err(), "{missing}");
        }
    }
}
