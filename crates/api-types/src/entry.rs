//! Messages as a whole: what all copies of a message have in common, and its copies.

use std::borrow::Cow;

use restante_mail::message::{Message, Summary};
use restante_mail::tags::Tags;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Time;

/// A message as a whole, as it appears in lists and events. It has one copy in the mailbox of each recipient.
///
/// Recipients, mailboxes, the read mark and the tags are only those of the copies that the credentials allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageEntry<'a> {
    /// The id of the message.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The sender from the message header, decoded. Without this header field, the sender of the envelope.
    #[serde(default)]
    #[schema(required)]
    pub from: Cow<'a, str>,
    /// The recipients from the message header, decoded. Without these header fields, the recipients of the envelope.
    #[serde(default)]
    #[schema(required)]
    pub to: Vec<Cow<'a, str>>,
    /// The addresses of the header field Cc, decoded.
    #[serde(default)]
    #[schema(required)]
    pub cc: Vec<Cow<'a, str>>,
    /// The recipients of the envelope.
    #[serde(default)]
    #[schema(required)]
    pub recipients: Vec<Cow<'a, str>>,
    /// The mailboxes that contain a copy.
    #[serde(default)]
    #[schema(required)]
    pub mailboxes: Vec<Cow<'a, str>>,
    /// The subject, decoded.
    #[serde(default)]
    #[schema(required)]
    pub subject: Cow<'a, str>,
    /// The first words of the text.
    #[serde(default)]
    #[schema(required)]
    pub snippet: Cow<'a, str>,
    /// The time at which the server received the message.
    #[schema(format = DateTime)]
    pub received: Cow<'a, str>,
    /// The length of the source of the first copy, in bytes.
    #[serde(default)]
    #[schema(required)]
    pub size: u64,
    /// The number of attachments.
    #[serde(default)]
    #[schema(required)]
    pub attachments: u32,
    /// Whether all copies are marked as seen.
    #[serde(default)]
    #[schema(required)]
    pub seen: bool,
    /// The tags of all copies.
    #[serde(default)]
    #[schema(required)]
    pub tags: Vec<Cow<'a, str>>,
}

impl<'a> From<&'a Message> for MessageEntry<'a> {
    fn from(message: &'a Message) -> Self {
        let first = message.first();
        Self {
            id: message.id().to_string().into(),
            from: first.headline.from().into(),
            to: message.to().collect(),
            cc: first.details.cc().map(Into::into).collect(),
            recipients: message.recipients().map(Into::into).collect(),
            mailboxes: message.mailboxes().map(|mailbox| mailbox.shown().into()).collect(),
            subject: first.headline.subject().into(),
            snippet: first.details.snippet().into(),
            received: Time(first.received).to_string().into(),
            size: first.size,
            attachments: first.details.attachments(),
            seen: message.is_seen(),
            tags: owned_tags(&message.tags()),
        }
    }
}

/// A message as a whole, with its envelope and its copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WholeMessage<'a> {
    /// The fields of the message in lists.
    #[serde(flatten)]
    pub entry: MessageEntry<'a>,
    /// The sender of the envelope. Empty for the null sender of bounces.
    #[serde(default)]
    #[schema(required)]
    pub sender: Cow<'a, str>,
    /// The client that delivered the message.
    pub client: Client<'a>,
    /// The copies, ascending by id.
    #[serde(default)]
    #[schema(required)]
    pub copies: Vec<MessageCopy<'a>>,
}

impl<'a> From<&'a Message> for WholeMessage<'a> {
    fn from(message: &'a Message) -> Self {
        let details = &message.first().details;
        let client = Client {
            ip: Some(details.ip()).filter(|ip| !ip.is_empty()).map(Into::into),
            helo: details.helo(),
            login: details.login().map(Into::into),
        };
        Self {
            entry: message.into(),
            sender: details.sender().into(),
            client,
            copies: message.copies().iter().map(Into::into).collect(),
        }
    }
}

/// The client that delivered a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Client<'a> {
    /// The IP address, or null if it is not known.
    #[schema(required)]
    pub ip: Option<Cow<'a, str>>,
    /// The name that the client sent in HELO, EHLO or LHLO.
    #[serde(default)]
    #[schema(required)]
    pub helo: Cow<'a, str>,
    /// The name with which the client logged in, or null without a login.
    #[schema(required)]
    pub login: Option<Cow<'a, str>>,
}

/// The copy of a message in one mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageCopy<'a> {
    /// The mailbox that contains the copy.
    #[schema(
        pattern = r#"^(([a-z0-9][a-z0-9-]{0,61})?[a-z0-9]:)?([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])(,[^\x00-\x1F%*\x7F-\x9F]+)?$"#
    )]
    pub mailbox: Cow<'a, str>,
    /// The id of the copy in its mailbox.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    pub id: Cow<'a, str>,
    /// The number of the copy in its mailbox. Numbers ascend and are never reused.
    #[serde(default)]
    #[schema(required)]
    pub number: u32,
    /// The recipients of the envelope for which the copy was stored.
    #[serde(default)]
    #[schema(required)]
    pub recipients: Vec<Cow<'a, str>>,
    /// Whether the copy is marked as seen.
    #[serde(default)]
    #[schema(required)]
    pub seen: bool,
    /// The tags of the copy.
    #[serde(default)]
    #[schema(required)]
    pub tags: Vec<Cow<'a, str>>,
}

impl<'a> From<&'a Summary> for MessageCopy<'a> {
    fn from(copy: &'a Summary) -> Self {
        Self {
            mailbox: copy.mailbox.shown().into(),
            id: copy.id.to_string().into(),
            number: copy.number,
            recipients: copy.details.recipients().map(Into::into).collect(),
            seen: copy.seen,
            tags: copy.tags.iter().map(Into::into).collect(),
        }
    }
}

fn owned_tags<'a>(tags: &Tags) -> Vec<Cow<'a, str>> {
    tags.iter().map(|tag| tag.to_owned().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_entries_without_optional_fields() {
        let text = r#"{"id":"7","received":"2026-01-02T03:04:05Z","client":{"ip":null,"login":null},"new":1}"#;
        let whole: WholeMessage<'static> = serde_json::from_str(text).unwrap();
        assert_eq!((&*whole.entry.id, whole.entry.tags.len(), whole.copies.len()), ("7", 0, 0));
        for missing in ["id", "received"] {
            let entry = text.replace(missing, "other");
            assert!(serde_json::from_str::<MessageEntry<'_>>(&entry).is_err(), "{missing}");
        }
    }
}
