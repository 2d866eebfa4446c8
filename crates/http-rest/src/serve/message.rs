//! A message for Inbucket's web interface: its text and its HTML, ready to be inserted into a page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_api_types::MessageRecord;
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::extractors::request_context::LinkRoot;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::inline_images::image_links;
use restante_http_core::response::json;
use restante_http_core::response::message_json::{HeaderMap, complete_record, record_size};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::schema;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::{self, Mime};
use serde::Serialize;
use utoipa::ToSchema;

const MESSAGE: Representation = Representation::new("serve message", Work::Html).with_read_mark();

/// Returns a message as JSON.
pub(crate) async fn compat(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    LinkRoot(root): LinkRoot,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let representation = MESSAGE.with_parameter(root.as_str());
    server
        .renderer
        .json_response(&copy, &if_none_match, representation, move |summary, mime| render_compat(summary, mime, &root))
        .await
}

fn render_compat(summary: &Summary, mime: &Mime, root: &str) -> Result<Bytes, Problem> {
    // Inbucket's page shows no other line breaks.
    let text = restante_html::linkify(&mime.inbucket_text()).replace('\n', "<br/>\n");
    let html = restante_html::sanitize(&mime.html(), &image_links(mime, summary, root));
    let size = json::max_string_len(&text) + json::max_string_len(&html) + 2 * record_size(summary);
    let attachment = |(index, file): (usize, mime::Attachment<'_>)| CompatAttachment {
        id: index.to_string(),
        filename: file.filename,
        content_type: file.content_type,
    };
    let message = CompatMessage {
        record: complete_record(summary, mime),
        header: HeaderMap(mime.header_map()),
        text,
        html,
        attachments: mime.inbucket_attachments().into_iter().enumerate().map(attachment).collect(),
        errors: mime.defects(),
    };
    json::body_with_capacity(&message, size)
}

/// A message for Inbucket's web interface.
#[derive(Serialize, ToSchema)]
pub(crate) struct CompatMessage<'a> {
    #[serde(flatten)]
    record: MessageRecord<'a>,
    /// The values of all header fields by canonical names, unfolded and not decoded.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    header: HeaderMap,
    /// The text as HTML, with links.
    text: String,
    /// The sanitized HTML.
    html: String,
    /// Inline parts first, also those that are a body, then attachments, as in Inbucket.
    attachments: Vec<CompatAttachment>,
    #[schema(value_type = Vec<schema::Defect>)]
    errors: Vec<mime::Defect>,
}

/// An attachment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct CompatAttachment {
    /// The index of the attachment in the list. Links to the attachment contain it.
    id: String,
    filename: String,
    content_type: String,
}
