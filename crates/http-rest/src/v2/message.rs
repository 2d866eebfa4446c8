//! A message for the web interface: everything except the HTML, which is shown in a frame.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_api_types::MessageRecord;
use restante_extract::{Code, Link, Unsubscribe};
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::inline_images::image_links;
use restante_http_core::response::json;
use restante_http_core::response::message_json::{complete_record, record_size};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::schema;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::{self, Mime};
use serde::Serialize;
use utoipa::ToSchema;

use crate::v2::extract::PartFields;

/// A possible code with a lower score is usually not a code.
const MIN_CODE_SCORE: f64 = 0.5;

const DETAILS: Representation = Representation::new("v2 details", Work::Html).with_read_mark();

/// Returns a message as JSON.
pub(crate) async fn details(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    server.renderer.json_response(&copy, &if_none_match, DETAILS, render_details).await
}

fn render_details(summary: &Summary, mime: &Mime) -> Result<Bytes, Problem> {
    let text = mime.text();
    let size = json::max_string_len(&text) + 2 * record_size(summary);
    let mut defects = mime.defects();
    defects.extend(restante_extract::otp_token_defects(mime));
    let details = MessageDetails {
        record: complete_record(summary, mime),
        text,
        html: mime.has_html(),
        remote: restante_html::remote_hosts(&mime.html(), &image_links(mime, summary, "")),
        headers: mime.header().iter().map(Into::into).collect(),
        attachments: mime.attachments().into_iter().enumerate().map(AttachmentDetails::new).collect(),
        parts: mime.parts().iter().zip(mime.roles()).map(PartDetails::new).collect(),
        defects,
        code: restante_extract::codes(mime).into_iter().next().filter(|code| code.score >= MIN_CODE_SCORE),
        main_link: restante_extract::links(mime).into_iter().find(|link| link.is_main),
        unsubscribe: restante_extract::unsubscribe(mime),
    };
    json::body_with_capacity(&details, size)
}

/// Everything about a message except its HTML.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MessageDetails<'a> {
    #[serde(flatten)]
    record: MessageRecord<'a>,
    /// The text. If the message has only HTML, a text made from it.
    text: String,
    /// Whether the message has HTML.
    html: bool,
    /// The hosts from which the HTML would load resources, at most 50.
    remote: Vec<String>,
    /// All header fields in the order of the message.
    headers: Vec<HeaderField>,
    attachments: Vec<AttachmentDetails<'a>>,
    /// The MIME structure, depth first.
    #[schema(value_type = Vec<schema::PartDetails>)]
    parts: Vec<PartDetails<'a>>,
    /// The defects of the message.
    #[schema(value_type = Vec<schema::Defect>)]
    defects: Vec<mime::Defect>,
    /// The one-time code, if one has a score of 0.5 or more.
    #[schema(required, value_type = Option<schema::OneTimeCode>)]
    code: Option<Code>,
    /// The link that the message asks to follow, if there is one.
    #[schema(required, value_type = Option<schema::Link>)]
    main_link: Option<Link>,
    #[schema(value_type = schema::Unsubscribe)]
    unsubscribe: Unsubscribe,
}

/// A header field.
#[derive(Serialize, ToSchema)]
struct HeaderField {
    /// The name as written in the message.
    name: String,
    /// The unfolded value.
    value: String,
    /// The decoded value (RFC 2047), if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded: Option<String>,
}

impl From<&mime::HeaderField> for HeaderField {
    fn from(field: &mime::HeaderField) -> Self {
        let (value, decoded) = (field.value(), field.decoded_value());
        let decoded = (decoded != value).then_some(decoded);
        Self { name: field.raw_name().into_owned(), value, decoded }
    }
}

/// An attachment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct AttachmentDetails<'a> {
    /// The index of the attachment in the list. Links to the attachment contain it.
    #[schema(value_type = u64)]
    index: usize,
    filename: String,
    content_type: String,
    /// The length of the decoded content, in bytes.
    #[schema(value_type = u64)]
    size: usize,
    /// The MD5 digest of the decoded content, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    md5: String,
    #[schema(required)]
    content_id: Option<&'a str>,
    /// Whether the part belongs to the HTML: it is in a `multipart/related`, has a content id, and is not marked as an
    /// attachment. Counts of attachments leave it out.
    inline: bool,
}

impl<'a> AttachmentDetails<'a> {
    fn new((index, file): (usize, mime::Attachment<'a>)) -> Self {
        let (size, md5) = file.len_and_md5();
        let content_id = file.part.content_id.as_deref();
        let inline = file.is_inline;
        Self { index, filename: file.filename, content_type: file.content_type, size, md5, content_id, inline }
    }
}

/// A part of the MIME structure.
#[derive(Serialize)]
struct PartDetails<'a> {
    #[serde(flatten)]
    fields: PartFields<'a, Role>,
    attachment: Option<usize>,
}

impl<'a> PartDetails<'a> {
    fn new((part, role): (&'a mime::Part, mime::Role)) -> Self {
        let (role, attachment) = match role {
            mime::Role::Multipart => (Role::Multipart, None),
            mime::Role::Text => (Role::Text, None),
            mime::Role::Html => (Role::Html, None),
            mime::Role::Attachment(index) => (Role::Attachment, Some(index)),
        };
        Self { fields: PartFields::new(part, part.body.len(), role), attachment }
    }
}

/// The role of a part for a reader.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Role {
    Multipart,
    Text,
    Html,
    Attachment,
}
