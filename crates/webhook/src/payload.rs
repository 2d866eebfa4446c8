//! The payload of an event: the body of the request and the id that stays the same in all attempts.

use std::fmt::Write as _;
use std::time::Duration;

use aws_lc_rs::digest;
use jiff::Timestamp;
use restante_api_types::{MessageRecord, json};
use restante_http_client::Request;
use restante_mail::message::Summary;
use serde::Serialize;

use crate::endpoint::Endpoint;
use crate::{Event, Key};

const USER_AGENT: &str = concat!("Restante/", env!("CARGO_PKG_VERSION"));

/// An event as it is sent. It is the same for all targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The `webhook-id`. A target recognizes repeated events by it.
    pub(crate) webhook_id: String,
    /// When the event happened, in Unix milliseconds.
    pub(crate) occurred_at_millis: i64,
    /// The JSON body.
    pub(crate) body: String,
}

impl Payload {
    pub(crate) fn new(event: Event, summary: &Summary, now: Timestamp) -> Self {
        Self {
            webhook_id: webhook_id(event, summary),
            occurred_at_millis: now.as_millisecond(),
            body: PayloadBody::new(event, summary).to_json(),
        }
    }

    /// Returns the approximate memory use.
    pub(crate) fn size_bytes(&self) -> u64 {
        u64::try_from(self.webhook_id.len() + self.body.len()).unwrap_or(u64::MAX)
    }

    /// Returns the request that sends this payload to `endpoint` now.
    pub(crate) fn to_request(
        &self,
        endpoint: &Endpoint,
        key: Option<&Key>,
        now: Timestamp,
        timeout: Duration,
    ) -> Request {
        let timestamp = now.as_second();
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), USER_AGENT.to_owned()),
            ("webhook-id".to_owned(), self.webhook_id.clone()),
            ("webhook-timestamp".to_owned(), timestamp.to_string()),
        ];
        if let Some(key) = key {
            headers.push(("webhook-signature".to_owned(), key.sign(&self.webhook_id, timestamp, &self.body)));
        }
        if let Some(authorization) = &endpoint.authorization {
            headers.push(("Authorization".to_owned(), authorization.clone()));
        }
        let body = Some(self.body.clone().into_bytes());
        Request { method: "POST".to_owned(), url: endpoint.url.clone(), headers, body, timeout }
    }
}

/// The JSON body: what happened, and to which message.
#[derive(Serialize)]
struct PayloadBody<'a> {
    event: &'static str,
    message: MessageRecord<'a>,
}

impl<'a> PayloadBody<'a> {
    fn new(event: Event, summary: &'a Summary) -> Self {
        let event = match event {
            Event::Stored => "message-stored",
            Event::Deleted => "message-deleted",
        };
        Self { event, message: summary.into() }
    }

    fn to_json(&self) -> String {
        // Texts and numbers can always be serialized, and JSON is UTF-8.
        json::to_vec(self).ok().and_then(|body| String::from_utf8(body).ok()).unwrap_or_default()
    }
}

/// Returns the `webhook-id` of an event. A message id is unique within its mailbox only. The mailbox name is hashed,
/// because it may contain characters that are not allowed in a header field, or the full stop that separates the signed
/// parts.
fn webhook_id(event: Event, summary: &Summary) -> String {
    let mut id = format!("{}-{}-", event.name(), summary.id);
    let mailbox = digest::digest(&digest::SHA256, summary.mailbox.as_str().as_bytes());
    for byte in mailbox.as_ref().iter().take(8) {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use restante_mail::details::Details;
    use restante_mail::message::Headline;
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
            message: 1_794_699_770_123_456.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        };
        for (event, id) in [(Event::Stored, "stored"), (Event::Deleted, "deleted")] {
            let payload = Payload::new(event, &summary, Timestamp::UNIX_EPOCH);
            let message = r#"{"mailbox":"bob","id":"1794699770123456","from":"Ann <ann@x.org>","to":["<bob@x.org>"],"subject":"\"Hi\"\u0008","date":"2026-11-14T23:42:50.123456+00:00","posix-millis":1794699770123,"size":100,"seen":true}"#;
            assert_eq!(payload.body, format!(r#"{{"event":"message-{id}","message":{message}}}"#));
        }
    }
}
