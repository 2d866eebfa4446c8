//! The JSON of listings and of messages of version 1, which most requests return. It is written field by field,
//! without a tree in between. Tests compare it with the serialized types, [`MessageRecord`] and [`Message`]. Also
//! contains the parts that several message types have in common.

use bytes::Bytes;
use restante_api_types::{MessageRecord, Time};
use restante_mail::message::Summary;
use restante_mail::mime::{self, Mime};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::response::links::Purpose;
use crate::response::{json, links};

/// The approximate size of a summary record, without its texts.
const RECORD_BYTES: usize = 192;

/// Returns the approximate size of the listing of these messages.
pub(crate) fn listing_size(messages: &[Summary]) -> usize {
    messages.iter().map(record_size).sum()
}

/// Returns a listing: an array of summary records.
pub(crate) fn listing(messages: &[Summary]) -> Bytes {
    let mut out = Vec::with_capacity(listing_size(messages) + 3);
    json::array(&mut out, messages, record);
    out.push(b'\n');
    // The body may be cached, and the size is an estimate.
    out.shrink_to_fit();
    out.into()
}

/// Appends a summary record.
pub(crate) fn record(out: &mut Vec<u8>, summary: &Summary) {
    out.push(b'{');
    summary_fields(out, summary, summary.headline.subject());
    out.push(b'}');
}

/// Returns the approximate size of a summary record.
pub(crate) fn record_size(summary: &Summary) -> usize {
    RECORD_BYTES + summary.mailbox.as_str().len() + summary.headline.text_len()
}

/// Returns the summary record of a message, with its complete subject.
pub(crate) fn complete_record<'a>(summary: &'a Summary, mime: &Mime) -> MessageRecord<'a> {
    MessageRecord { subject: mime.complete_subject(summary.headline.subject()), ..summary.into() }
}

/// Returns a message: the fields of its summary record, with its complete subject, then those of its MIME view.
pub(crate) fn message(summary: &Summary, mime: &Mime, base_url: &str) -> Bytes {
    let (text, html) = (mime.inbucket_text(), mime.html());
    // The texts are most of it. Allocating memory for them at once takes half of the memory that growing takes.
    let mut out = Vec::with_capacity(
        json::max_string_len(&text) + json::max_string_len(&html) + record_size(summary) + 8 * RECORD_BYTES,
    );
    out.push(b'{');
    summary_fields(&mut out, summary, &mime.complete_subject(summary.headline.subject()));
    out.extend_from_slice(b",\"body\":{");
    field(&mut out, "text", &text);
    out.push(b',');
    field(&mut out, "html", &html);
    out.extend_from_slice(b"},");
    header(&mut out, mime);
    out.extend_from_slice(b",\"attachments\":");
    json::array(&mut out, mime.attachments().iter().enumerate(), |out, (index, file)| {
        attachment(out, summary, index, file, base_url);
    });
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}

/// Appends the fields of a summary record with this subject.
fn summary_fields(out: &mut Vec<u8>, summary: &Summary, subject: &str) {
    field(out, "mailbox", summary.mailbox.as_str());
    json::display(out, format_args!(",\"id\":\"{}\",", summary.id));
    field(out, "from", summary.headline.from());
    out.extend_from_slice(b",\"to\":");
    json::array(out, summary.headline.to(), json::string);
    out.push(b',');
    field(out, "subject", subject);
    let (date, millis, size, seen) =
        (Time(summary.received), summary.received.as_millisecond(), summary.size, summary.seen);
    json::display(out, format_args!(",\"date\":\"{date}\",\"posix-millis\":{millis},\"size\":{size},\"seen\":{seen}"));
}

/// Appends the field with the message header by canonical names.
fn header(out: &mut Vec<u8>, mime: &Mime) {
    out.extend_from_slice(b"\"header\":");
    json::object(out, &mime.header_map(), |out, (name, values)| {
        json::string(out, name);
        out.push(b':');
        json::array(out, values, |out, value| json::string(out, value));
    });
}

fn attachment(out: &mut Vec<u8>, summary: &Summary, index: usize, file: &mime::Attachment<'_>, base_url: &str) {
    let link = |purpose| links::attachment(base_url, purpose, summary, index, &file.filename);
    out.push(b'{');
    field(out, "filename", &file.filename);
    out.push(b',');
    field(out, "content-type", &file.content_type);
    out.push(b',');
    field(out, "download-link", &link(Purpose::Download));
    out.push(b',');
    field(out, "view-link", &link(Purpose::View));
    out.push(b',');
    field(out, "md5", &file.md5_hex());
    out.push(b'}');
}

/// Appends a field with a string value. The name must need no escapes.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    json::string(out, value);
}

/// A message with its MIME content.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Message<'a> {
    #[serde(flatten)]
    pub(crate) record: MessageRecord<'a>,
    pub(crate) body: Body,
    /// The values of all header fields by canonical names, unfolded and not decoded.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub(crate) header: HeaderMap,
    /// Inline parts first, then attachments.
    pub(crate) attachments: Vec<Attachment>,
}

/// The texts of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Body {
    /// The text. If the message has only HTML, a text made from it.
    pub(crate) text: String,
    /// The HTML as it was sent: not sanitized, not safe for a browser. Empty if the message has no HTML.
    pub(crate) html: String,
}

/// An attachment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Attachment {
    pub(crate) filename: String,
    pub(crate) content_type: String,
    /// The URL to save the attachment.
    pub(crate) download_link: String,
    /// The URL to show the attachment.
    pub(crate) view_link: String,
    /// The MD5 digest of the decoded content, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub(crate) md5: String,
}

/// The values of all header fields by canonical names.
pub(crate) struct HeaderMap(Vec<(String, Vec<String>)>);

impl HeaderMap {
    /// Returns the header of a message, in its order.
    pub(crate) fn from_mime(mime: &Mime) -> Self {
        Self(mime.header_map())
    }

    /// Returns the header of a message after a change, in alphabetical order.
    pub(crate) fn sorted_from_mime(mime: &Mime, change: impl FnOnce(&mut Vec<(String, Vec<String>)>)) -> Self {
        let mut map = mime.header_map();
        change(&mut map);
        map.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self(map)
    }
}

impl Serialize for HeaderMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

/// A defect of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Defect {
    name: &'static str,
    detail: String,
    /// Whether a part of the message may be missing because of the defect.
    severe: bool,
}

impl From<mime::Defect> for Defect {
    fn from(mime::Defect { name, detail, severe }: mime::Defect) -> Self {
        Self { name, detail, severe }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::Headline;
    use restante_mail::tags::Tags;

    use super::*;

    #[test]
    fn listing_size_is_estimated() {
        let (short, long) = ("<a@example.org>", "x".repeat(2000));
        let table = [(short, vec![short], ""), (&long, vec![short; 3], "Hello"), (short, vec![&long; 9], &long)];
        for (from, to, subject) in table {
            let message = Summary {
                mailbox: "test".to_owned().into(),
                id: 1_794_699_770_123_456.into(),
                headline: Headline::new(from, to, subject),
                received: Timestamp::UNIX_EPOCH,
                size: 1000,
                seen: false,
                message: 1_794_699_770_123_456.into(),
                number: 1,
                tags: Tags::default(),
                details: Details::default(),
            };
            let messages = vec![message; 10];
            let (estimate, length) = (listing_size(&messages), listing(&messages).len());
            assert!(length <= estimate && estimate < length * 5 / 4, "{length} {estimate}");
        }
    }
}
