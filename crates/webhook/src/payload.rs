//! The payload of an event: the body of the request and the id that stays the same in all attempts.

use std::time::Duration;

use jiff::Timestamp;
use restante_api_types::{MessageRecord, json};
use restante_http_client::Request;
use restante_mail::message::Summary;
use restante_queue::Entry;
use ring::digest;
use serde::Serialize;

use crate::endpoint::{Endpoint, short_hex};
use crate::{EventKind, Key};

const USER_AGENT: &str = concat!("Restante/", env!("CARGO_PKG_VERSION"));

/// An event as it is sent. It is the same for all targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The `webhook-id`. A target recognizes repeated events by it. It is the key of an entry in the queue.
    pub(crate) webhook_id: String,
    /// The JSON body. It is the payload of an entry in the queue.
    pub(crate) body: Vec<u8>,
}

impl Payload {
    pub(crate) fn new(event: EventKind, summary: &Summary) -> Self {
        let name = match event {
            EventKind::Stored => "message-stored",
            EventKind::Deleted => "message-deleted",
        };
        let body = PayloadBody { event: name, message: summary.into() };
        // Texts and numbers can always be serialized.
        Self { webhook_id: webhook_id(event, summary), body: json::to_vec(&body).unwrap_or_default() }
    }
}

/// Returns the event of an entry.
pub fn event_of(entry: &Entry) -> EventKind {
    let is_deletion = entry.key.as_ref().is_some_and(|key| key.starts_with(EventKind::Deleted.name()));
    if is_deletion { EventKind::Deleted } else { EventKind::Stored }
}

/// Returns the request that sends an entry to `endpoint` now.
pub(crate) fn to_request(
    entry: &Entry,
    endpoint: &Endpoint,
    key: Option<&Key>,
    now: Timestamp,
    timeout: Duration,
) -> Request {
    let (timestamp, webhook_id) = (now.as_second(), entry.key.clone().unwrap_or_default());
    let mut headers = vec![
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("User-Agent".to_owned(), USER_AGENT.to_owned()),
        ("webhook-id".to_owned(), webhook_id.clone()),
        ("webhook-timestamp".to_owned(), timestamp.to_string()),
    ];
    if let Some(key) = key {
        headers.push(("webhook-signature".to_owned(), key.sign(&webhook_id, timestamp, &entry.payload)));
    }
    if let Some(authorization) = &endpoint.authorization {
        headers.push(("Authorization".to_owned(), authorization.clone()));
    }
    let body = Some(entry.payload.clone());
    Request { method: "POST".to_owned(), url: endpoint.url.clone(), headers, body, timeout }
}

/// The JSON body: what happened, and to which message.
#[derive(Serialize)]
struct PayloadBody<'a> {
    event: &'static str,
    message: MessageRecord<'a>,
}

/// Returns the `webhook-id` of an event. A message id is unique within its mailbox only. The mailbox name is hashed,
/// because it may contain characters that are not allowed in a header field, or the full stop that separates the signed
/// parts.
fn webhook_id(event: EventKind, summary: &Summary) -> String {
    let mailbox = digest::digest(&digest::SHA256, summary.mailbox.as_str().as_bytes());
    format!("{}-{}-{}", event.name(), summary.id, short_hex(mailbox.as_ref()))
}

#[cfg(test)]
mod tests {
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;

    use super::*;

    #[test]
    fn payload_contains_event_and_message_record() {
        let summary = Summary {
            mailbox: "bob".to_owned().into(),
            id: 1_794_699_770_123_456.into(),
            headline: Headline::new("Ann <ann@x.org>", ["<bob@x.org>"], "\"Hi\"\u{8}"),
            received: Timestamp::from_microsecond(1_794_699_770_123_456).unwrap(),
            size: 100,
            seen: true,
            flags: Flags::default(),
            modseq: 1,
            message: 1_794_699_770_123_456.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        };
        for (event, id) in [(EventKind::Stored, "stored"), (EventKind::Deleted, "deleted")] {
            let payload = Payload::new(event, &summary);
            let message = r#"{"mailbox":"bob","id":"1794699770123456","from":"Ann <ann@x.org>","to":["<bob@x.org>"],"subject":"\"Hi\"\u0008","date":"2026-11-14T23:42:50.123456+00:00","posix-millis":1794699770123,"size":100,"seen":true}"#;
            let expected = format!(r#"{{"event":"message-{id}","message":{message}}}"#);
            assert_eq!(String::from_utf8(payload.body).unwrap(), expected);
        }
    }
}
