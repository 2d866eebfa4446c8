//! The JSON of listings and of messages of version 1, the parts that several message types have in common, and the
//! approximate sizes of the JSON of messages.

use bytes::Bytes;
use restante_api_types::MessageRecord;
use restante_mail::message::{self, Summary};
use restante_mail::mime::{self, Mime};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::response::{json, links};

/// The approximate size of a summary record, without its texts.
const RECORD_BYTES: usize = 192;
/// The approximate size of an entry, without its texts and lists.
const ENTRY_BYTES: usize = 256;
/// The approximate size of the fields that only a single message has, without its copies.
const ENVELOPE_BYTES: usize = 64;
/// The approximate size of a mailbox in an entry, or of a copy, without its texts.
const COPY_BYTES: usize = 64;

/// Returns the approximate size of the listing of these messages.
pub fn listing_size(messages: &[Summary]) -> usize {
    messages.iter().map(record_size).sum()
}

/// Returns a listing: an array of summary records.
pub fn listing(messages: &[Summary]) -> Result<Bytes, Problem> {
    json::body_with_capacity(&Listing(messages), listing_size(messages) + 3)
}

/// Returns the approximate size of a summary record.
pub fn record_size(summary: &Summary) -> usize {
    RECORD_BYTES + summary.mailbox.as_str().len() + summary.headline.text_len()
}

/// Returns the summary record of a message, with its complete subject.
pub fn complete_record<'a>(summary: &'a Summary, mime: &Mime) -> MessageRecord<'a> {
    MessageRecord { subject: mime.complete_subject(summary.headline.subject()), ..summary.into() }
}

/// Returns the approximate size of the list of these messages.
pub fn entries_size(messages: &[message::Message]) -> usize {
    messages.iter().map(entry_size).sum::<usize>() + ENVELOPE_BYTES
}

/// Returns the approximate size of an entry.
pub fn entry_size(message: &message::Message) -> usize {
    let copies: usize = message.copies().iter().map(copy_size).sum();
    ENTRY_BYTES + message.first().headline.text_len() + copies
}

/// Returns the approximate size of a message with its envelope and its copies.
pub fn whole_message_size(message: &message::Message) -> usize {
    2 * entry_size(message) + ENVELOPE_BYTES
}

fn copy_size(copy: &Summary) -> usize {
    COPY_BYTES + copy.mailbox.as_str().len() + copy.details.encoded().len() + copy.tags.encoded().len()
}

/// Returns a message: the fields of its summary record, with its complete subject, then those of its MIME view.
pub fn message(summary: &Summary, mime: &Mime, base_url: &str) -> Result<Bytes, Problem> {
    let body = Body { text: mime.inbucket_text(), html: mime.html() };
    let size = json::max_string_len(&body.text) + json::max_string_len(&body.html) + record_size(summary);
    let attachment = |(index, file): (usize, mime::Attachment<'_>)| Attachment {
        download_link: links::attachment(base_url, Purpose::Download, summary, index, &file.filename),
        view_link: links::attachment(base_url, Purpose::View, summary, index, &file.filename),
        md5: file.md5_hex(),
        filename: file.filename,
        content_type: file.content_type,
    };
    let message = Message {
        record: complete_record(summary, mime),
        body,
        header: HeaderMap(mime.header_map()),
        attachments: mime.attachments().into_iter().enumerate().map(attachment).collect(),
    };
    json::body_with_capacity(&message, size + 8 * RECORD_BYTES)
}

/// A listing. Records are made one after the other, because a listing can have very many.
struct Listing<'a>(&'a [Summary]);

impl Serialize for Listing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(MessageRecord::from))
    }
}

/// A message with its MIME content.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Message<'a> {
    #[serde(flatten)]
    record: MessageRecord<'a>,
    body: Body,
    /// The values of all header fields by canonical names, unfolded and not decoded.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    header: HeaderMap,
    /// Inline parts first, then attachments.
    attachments: Vec<Attachment>,
}

/// The texts of a message.
#[derive(Serialize, ToSchema)]
pub struct Body {
    /// The text. If the message has only HTML, a text made from it.
    text: String,
    /// The HTML as it was sent: not sanitized, not safe for a browser. Empty if the message has no HTML.
    html: String,
}

/// An attachment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Attachment {
    filename: String,
    content_type: String,
    /// The URL to save the attachment.
    download_link: String,
    /// The URL to show the attachment.
    view_link: String,
    /// The MD5 digest of the decoded content, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    md5: String,
}

/// The values of all header fields by canonical names.
pub struct HeaderMap(pub Vec<(String, Vec<String>)>);

impl Serialize for HeaderMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
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
                flags: Flags::default(),
                modseq: 1,
                message: 1_794_699_770_123_456.into(),
                number: 1,
                tags: Tags::default(),
                details: Details::default(),
            };
            let messages = vec![message; 10];
            let (estimate, length) = (listing_size(&messages), listing(&messages).unwrap().len());
            assert!(length <= estimate && estimate < length * 5 / 4, "{length} {estimate}");
        }
    }
}
