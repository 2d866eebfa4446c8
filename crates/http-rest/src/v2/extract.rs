//! Extracts of a message for tests: links, one-time codes, unsubscribe links, and the tree of MIME parts. The
//! extraction itself is in the crate `restante_extract`; the content of a part is served by `render::file`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_http_core::extractors::messages::{PathCopy, PathPart};
use restante_http_core::render::file::{PartSelector, content};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::json;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::viewer::Viewer;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::{self, Mime, Role};
use serde::Serialize;

type HandlerResult = Result<Response, Problem>;

const LINKS: Representation = Representation::new("v2 links", Work::Extract);
const CODES: Representation = Representation::new("v2 codes", Work::Extract);
const UNSUBSCRIBE: Representation = Representation::new("v2 unsubscribe", Work::Extract);
const PARTS: Representation = Representation::new("v2 parts", Work::Extract);

/// Returns the links of a message.
pub(crate) async fn links(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&BTreeMap::from([("links", restante_extract::links(mime))]));
    server.renderer.json_response(&copy, &if_none_match, LINKS, write).await
}

/// Returns the possible one-time codes of a message.
pub(crate) async fn codes(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&BTreeMap::from([("codes", restante_extract::codes(mime))]));
    server.renderer.json_response(&copy, &if_none_match, CODES, write).await
}

/// Returns the unsubscribe links of a message.
pub(crate) async fn unsubscribe(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&restante_extract::unsubscribe(mime));
    server.renderer.json_response(&copy, &if_none_match, UNSUBSCRIBE, write).await
}

/// Returns the MIME parts of a message, depth first.
pub(crate) async fn parts(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&BTreeMap::from([("parts", part_list(mime))]));
    server.renderer.json_response(&copy, &if_none_match, PARTS, write).await
}

/// Returns the content of a part. The part may be a text or contain other parts.
pub(crate) async fn part_content(
    State(server): State<Arc<Server>>,
    PathPart { copy, index }: PathPart,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> HandlerResult {
    server.renderer.file_response(&copy, PartSelector::Part(index), &if_none_match, (Purpose::View, viewer)).await
}

fn part_list<'a>(mime: &'a Mime) -> Vec<Part<'a>> {
    let part = |(index, (part, role)): (usize, (&'a mime::Part, Role))| Part {
        index,
        parent: part.parent,
        fields: PartFields::new(part, content(mime, part).len(), PartRole::new(part, role)),
    };
    mime.parts().iter().zip(mime.roles()).enumerate().map(part).collect()
}

/// A part of the MIME structure.
#[derive(Serialize)]
struct Part<'a> {
    index: usize,
    parent: Option<usize>,
    #[serde(flatten)]
    fields: PartFields<'a, PartRole>,
}

/// The fields of a part that all lists of parts have.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PartFields<'a, R> {
    depth: usize,
    content_type: &'a str,
    charset: Option<&'a str>,
    encoding: &'a str,
    disposition: Option<mime::Disposition>,
    filename: Option<&'a str>,
    content_id: Option<&'a str>,
    size: usize,
    role: R,
}

impl<'a, R> PartFields<'a, R> {
    pub(super) fn new(part: &'a mime::Part, size: usize, role: R) -> Self {
        Self {
            depth: part.depth,
            content_type: &part.content_type,
            charset: part.charset.as_deref(),
            encoding: &part.encoding_name,
            disposition: part.disposition,
            filename: part.filename.as_deref(),
            content_id: part.content_id.as_deref(),
            size,
            role,
        }
    }
}

/// The role of a part for a reader.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum PartRole {
    Container,
    Text,
    Html,
    Inline,
    Attachment,
}

impl PartRole {
    /// Returns the role of a part. A part with a content id and without a disposition is used by the HTML.
    fn new(part: &mime::Part, role: Role) -> Self {
        match (role, part.disposition) {
            (Role::Multipart, _) => Self::Container,
            (Role::Text, _) => Self::Text,
            (Role::Html, _) => Self::Html,
            (Role::Attachment(_), Some(mime::Disposition::Inline)) => Self::Inline,
            (Role::Attachment(_), None) if part.content_id.is_some() => Self::Inline,
            (Role::Attachment(_), _) => Self::Attachment,
        }
    }
}
