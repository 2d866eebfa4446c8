//! What tests want out of a message.

use utoipa::ToSchema;

use crate::openapi::schemas::pages::Disposition;

/// The links of a message.
#[derive(ToSchema)]
pub(in crate::openapi) struct Links {
    /// In the order of the message, each once for each place.
    links: Vec<Link>,
}

/// A link.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Link {
    href: String,
    /// What a reader sees of it.
    text: String,
    /// What stands in for the picture in it, if it has one.
    #[schema(required)]
    image_alt: Option<String>,
    r#where: LinkPlace,
    kind: LinkKind,
}

/// Where a link is.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum LinkPlace {
    Html,
    Text,
    Header,
}

/// What a link leads to.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum LinkKind {
    Http,
    Mailto,
    Other,
}

/// What may be one-time codes in a message.
#[derive(ToSchema)]
pub(in crate::openapi) struct Codes {
    /// The best first.
    codes: Vec<OneTimeCode>,
}

/// What may be a one-time code.
#[derive(ToSchema)]
pub(in crate::openapi) struct OneTimeCode {
    code: String,
    /// How much speaks for it, up to 1.
    #[schema(minimum = 0, maximum = 1)]
    score: f64,
    /// The words before it.
    before: String,
    /// The words after it.
    after: String,
    r#where: CodePlace,
}

/// Where a code is.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum CodePlace {
    Subject,
    Text,
    Html,
}

/// The ways to get off the list that a message came by.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Unsubscribe {
    /// Whether one request is enough (RFC 8058).
    one_click: bool,
    /// What `List-Unsubscribe` says (RFC 2369).
    links: Vec<Way>,
    #[schema(required)]
    list_id: Option<String>,
}

/// A way to get off a list.
#[derive(ToSchema)]
pub(in crate::openapi) struct Way {
    href: String,
    kind: WayKind,
}

/// How a way is gone.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum WayKind {
    Https,
    Http,
    Mailto,
}

/// The MIME structure of a message.
#[derive(ToSchema)]
pub(in crate::openapi) struct Parts {
    /// Depth first.
    parts: Vec<Part>,
}

/// A part of the MIME structure.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Part {
    /// Its place in the list.
    index: u64,
    /// The place of the part that it is in.
    #[schema(required)]
    parent: Option<u64>,
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
    /// The length of the decoded content, in bytes.
    size: u64,
    role: PartRole,
}

/// What a part is for a reader.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum PartRole {
    Container,
    Text,
    Html,
    Inline,
    Attachment,
}
