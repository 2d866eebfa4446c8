//! Messages as pages ask for them.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use crate::openapi::schemas::MessageRecord;

/// Everything about a message but its HTML.
#[derive(ToSchema)]
pub(in crate::openapi) struct MessageDetails {
    #[serde(flatten)]
    record: MessageRecord,
    /// The text; of a message that has only HTML, a text made from that.
    text: String,
    /// Whether there is HTML.
    html: bool,
    /// The hosts that the HTML would load something from, at most 50.
    remote: Vec<String>,
    /// Every field, in the order of the message.
    headers: Vec<HeaderField>,
    attachments: Vec<AttachmentDetails>,
    /// The MIME structure, depth first.
    parts: Vec<PartDetails>,
    /// What is wrong with the message.
    defects: Vec<Defect>,
}

/// A field of a header.
#[derive(ToSchema)]
pub(in crate::openapi) struct HeaderField {
    /// As it is written.
    name: String,
    /// Unfolded.
    value: String,
    /// In readable form (RFC 2047), where that differs.
    decoded: Option<String>,
}

/// A file that a message brings along.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct AttachmentDetails {
    /// Its place in the list, which is in the links to it.
    index: u64,
    filename: String,
    content_type: String,
    /// The length of the decoded content, in bytes.
    size: u64,
    /// The MD5 digest of the decoded content, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    md5: String,
    #[schema(required)]
    content_id: Option<String>,
}

/// A part of the MIME structure.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct PartDetails {
    /// How many parts it is in.
    depth: u64,
    content_type: String,
    #[schema(required)]
    charset: Option<String>,
    /// Its transfer encoding.
    encoding: String,
    #[schema(required)]
    disposition: Option<Disposition>,
    #[schema(required)]
    filename: Option<String>,
    #[schema(required)]
    content_id: Option<String>,
    /// The length of its body in the source, in bytes.
    size: u64,
    role: Role,
    /// Its place in the list of attachments, if it is one.
    #[schema(required)]
    attachment: Option<u64>,
}

/// How a part wants to be shown.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Disposition {
    Inline,
    Attachment,
}

/// What a part is for a reader.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Role {
    Multipart,
    Text,
    Html,
    Attachment,
}

/// Something that is wrong with a message.
#[derive(ToSchema)]
pub(in crate::openapi) struct Defect {
    name: String,
    detail: String,
    /// Whether something of the message may be missing because of it.
    severe: bool,
}

/// How many attachments messages have, by their ids.
#[derive(ToSchema)]
pub(in crate::openapi) struct AttachmentCounts(BTreeMap<String, u64>);

/// A message as the web page of Inbucket reads it.
#[derive(ToSchema)]
pub(in crate::openapi) struct CompatMessage {
    #[serde(flatten)]
    record: MessageRecord,
    /// The values of every header, by canonical names; unfolded and not decoded.
    header: BTreeMap<String, Vec<String>>,
    /// The text as HTML, with links.
    text: String,
    /// The HTML, sanitised.
    html: String,
    attachments: Vec<CompatAttachment>,
    errors: Vec<Defect>,
}

/// A file that a message brings along.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct CompatAttachment {
    /// Its place in the list, which is in the links to it.
    id: String,
    filename: String,
    content_type: String,
}
