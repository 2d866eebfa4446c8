//! Messages as version 1 tells of them.

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// What is told of a message wherever it is mentioned.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct MessageRecord {
    /// The mailbox that holds the message.
    mailbox: String,
    /// The id of the message, unique in its mailbox.
    #[schema(pattern = "^[0-9]+$")]
    id: String,
    /// The sender by the message's header, decoded; without one, the sender of the envelope.
    from: String,
    /// The recipients by the message's header, decoded; without any, those of the envelope.
    to: Vec<String>,
    /// The subject, decoded.
    subject: String,
    /// When the server received the message.
    #[schema(format = DateTime)]
    date: String,
    /// The same, in milliseconds since 1970.
    posix_millis: i64,
    /// The length of the source, in bytes.
    size: u64,
    /// Whether the message is marked as seen.
    seen: bool,
}

/// A message with what its MIME structure holds.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Message {
    #[serde(flatten)]
    record: MessageRecord,
    body: Body,
    /// The values of every header, by canonical names; unfolded and not decoded.
    header: BTreeMap<String, Vec<String>>,
    /// Inline parts first, then attachments.
    attachments: Vec<Attachment>,
}

/// What a message says.
#[derive(ToSchema)]
pub(in crate::openapi) struct Body {
    /// The text; of a message that has only HTML, a text made from that.
    text: String,
    /// The HTML as it was sent: it is not made safe for a browser. Empty where there is none.
    html: String,
}

/// A file that a message brings along.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Attachment {
    filename: String,
    content_type: String,
    /// Where to save it from.
    download_link: String,
    /// Where to look at it.
    view_link: String,
    /// The MD5 digest of the decoded content, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    md5: String,
}
