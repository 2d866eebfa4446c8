//! Extracts of a message for tests: links, one-time codes, unsubscribe links, and the tree of MIME parts. The
//! extraction itself is in the crate `restante_extract`; the content of a part is served by `state::attachment`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_extract::{Code, CodeSource, LinkScheme, LinkSource, UnsubscribeMethod};
use restante_mail::message::Summary;
use restante_mail::mime::{self, Mime, Role};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extractors::messages::{PathCopy, PathPart};
use crate::response::etag::IfNoneMatch;
use crate::response::json;
use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::response::viewer::Viewer;
use crate::state::Server;
use crate::state::attachment::{PartSelector, content};
use crate::state::message::{Extract, Representation};

type HandlerResult = Result<Response, Problem>;

/// Returns the links of a message.
pub(crate) async fn links(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&Links::from_mime(mime));
    server.json_response(&copy, &if_none_match, Representation::Extract(Extract::Links), write).await
}

/// Returns the possible one-time codes of a message.
pub(crate) async fn codes(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&Codes::from_mime(mime));
    server.json_response(&copy, &if_none_match, Representation::Extract(Extract::Codes), write).await
}

/// Returns the unsubscribe links of a message.
pub(crate) async fn unsubscribe(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&Unsubscribe::from_mime(mime));
    server.json_response(&copy, &if_none_match, Representation::Extract(Extract::Unsubscribe), write).await
}

/// Returns the MIME parts of a message, depth first.
pub(crate) async fn parts(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| json::body(&Parts::from_mime(mime));
    server.json_response(&copy, &if_none_match, Representation::Extract(Extract::Parts), write).await
}

/// Returns the content of a part. The part may be a text or contain other parts.
pub(crate) async fn part_content(
    State(server): State<Arc<Server>>,
    PathPart { copy, index }: PathPart,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> HandlerResult {
    server.file_response(&copy, PartSelector::Part(index), &if_none_match, (Purpose::View, viewer)).await
}

/// The links of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Links {
    /// The links in the order of the message. A link that occurs in several places is listed once for each place.
    links: Vec<Link>,
}

impl Links {
    fn from_mime(mime: &Mime) -> Self {
        Self { links: restante_extract::links(mime).into_iter().map(Into::into).collect() }
    }
}

/// A link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Link {
    href: String,
    /// The visible text of the link.
    text: String,
    /// The alternative text of the image in the link, or null without an image.
    #[schema(required)]
    image_alt: Option<String>,
    r#where: LinkLocation,
    kind: LinkKind,
    /// Whether this is the link that the message asks to follow. At most one link is.
    main: bool,
}

impl From<restante_extract::Link> for Link {
    fn from(link: restante_extract::Link) -> Self {
        let kind = match link.kind() {
            LinkScheme::Http => LinkKind::Http,
            LinkScheme::Mailto => LinkKind::Mailto,
            LinkScheme::Other => LinkKind::Other,
        };
        let location = match link.source {
            LinkSource::Html => LinkLocation::Html,
            LinkSource::Text => LinkLocation::Text,
            LinkSource::Header => LinkLocation::Header,
        };
        let main = link.is_main;
        Self { href: link.href, text: link.text, image_alt: link.image_alt, r#where: location, kind, main }
    }
}

/// Where a link was found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = LinkPlace)]
enum LinkLocation {
    Html,
    Text,
    Header,
}

/// The kind of target of a link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum LinkKind {
    Http,
    Mailto,
    Other,
}

/// The possible one-time codes of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Codes {
    /// The codes, the most likely first.
    codes: Vec<OneTimeCode>,
}

impl Codes {
    fn from_mime(mime: &Mime) -> Self {
        Self { codes: restante_extract::codes(mime).into_iter().map(Into::into).collect() }
    }
}

/// A possible one-time code.
#[derive(Serialize, ToSchema)]
struct OneTimeCode {
    code: String,
    /// How likely this is a one-time code, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    score: f64,
    /// The text before the code.
    before: String,
    /// The text after the code.
    after: String,
    r#where: CodeLocation,
}

impl From<Code> for OneTimeCode {
    fn from(Code { code, score, before, after, source: location }: Code) -> Self {
        let location = match location {
            CodeSource::Subject => CodeLocation::Subject,
            CodeSource::Text => CodeLocation::Text,
            CodeSource::Html => CodeLocation::Html,
        };
        Self { code, score, before, after, r#where: location }
    }
}

/// Where a code was found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CodePlace)]
enum CodeLocation {
    Subject,
    Text,
    Html,
}

/// How to unsubscribe from the mailing list that sent the message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Unsubscribe {
    /// Whether a single POST request unsubscribes (RFC 8058).
    one_click: bool,
    /// The links in `List-Unsubscribe` (RFC 2369).
    links: Vec<UnsubscribeLink>,
    #[schema(required)]
    list_id: Option<String>,
}

impl Unsubscribe {
    fn from_mime(mime: &Mime) -> Self {
        let restante_extract::Unsubscribe { one_click, links, list_id } = restante_extract::unsubscribe(mime);
        Self { one_click, links: links.into_iter().map(Into::into).collect(), list_id }
    }
}

/// An unsubscribe link.
#[derive(Serialize, ToSchema)]
#[schema(as = Way)]
struct UnsubscribeLink {
    href: String,
    kind: UnsubscribeLinkKind,
}

impl From<restante_extract::UnsubscribeLink> for UnsubscribeLink {
    fn from(restante_extract::UnsubscribeLink { href, kind }: restante_extract::UnsubscribeLink) -> Self {
        let kind = match kind {
            UnsubscribeMethod::Https => UnsubscribeLinkKind::Https,
            UnsubscribeMethod::Http => UnsubscribeLinkKind::Http,
            UnsubscribeMethod::Mailto => UnsubscribeLinkKind::Mailto,
        };
        Self { href, kind }
    }
}

/// The kind of an unsubscribe link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = WayKind)]
enum UnsubscribeLinkKind {
    Https,
    Http,
    Mailto,
}

/// The MIME structure of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Parts<'a> {
    /// The parts, depth first.
    parts: Vec<Part<'a>>,
}

impl<'a> Parts<'a> {
    fn from_mime(mime: &'a Mime) -> Self {
        let parts = mime.parts().iter().zip(mime.roles()).enumerate();
        Self { parts: parts.map(|(index, (part, role))| Part::new(mime, index, part, role)).collect() }
    }
}

/// A part of the MIME structure.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Part<'a> {
    /// The index of the part in the list.
    #[schema(value_type = u64)]
    index: usize,
    /// The index of the part that contains this part, or null for the root.
    #[schema(value_type = Option<u64>, required)]
    parent: Option<usize>,
    /// The number of parts that contain this part.
    #[schema(value_type = u64)]
    depth: usize,
    content_type: &'a str,
    #[schema(required)]
    charset: Option<&'a str>,
    /// The transfer encoding.
    encoding: &'a str,
    #[schema(required)]
    disposition: Option<Disposition>,
    #[schema(required)]
    filename: Option<&'a str>,
    #[schema(required)]
    content_id: Option<&'a str>,
    /// The length of the decoded content, in bytes.
    #[schema(value_type = u64)]
    size: usize,
    role: PartRole,
}

impl<'a> Part<'a> {
    fn new(mime: &Mime, index: usize, part: &'a mime::Part, role: Role) -> Self {
        Self {
            index,
            parent: part.parent,
            depth: part.depth,
            content_type: &part.content_type,
            charset: part.charset.as_deref(),
            encoding: &part.encoding_name,
            disposition: part.disposition.map(Into::into),
            filename: part.filename.as_deref(),
            content_id: part.content_id.as_deref(),
            size: content(mime, part).len(),
            role: PartRole::new(part, role),
        }
    }
}

/// The disposition of a part.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Disposition {
    Inline,
    Attachment,
}

impl From<mime::Disposition> for Disposition {
    fn from(disposition: mime::Disposition) -> Self {
        match disposition {
            mime::Disposition::Inline => Self::Inline,
            mime::Disposition::Attachment => Self::Attachment,
        }
    }
}

/// The role of a part for a reader.
#[derive(Serialize, ToSchema)]
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
