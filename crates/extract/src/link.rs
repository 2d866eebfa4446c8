//! A link of a message.

use serde::Serialize;

use crate::relative_url::scheme;

/// A link of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// The URL. A relative URL is resolved if the document declares a base URL.
    pub href: String,
    /// The displayed text, on one line.
    pub text: String,
    /// The alternative text of its image, if any.
    pub image_alt: Option<String>,
    /// The part of the message that contains the link.
    #[serde(rename = "where")]
    pub source: LinkSource,
    /// The kind of the link.
    pub kind: LinkScheme,
    /// Whether this is the main link: the one that the message asks to follow. At most one link of a message is.
    #[serde(rename = "main")]
    pub is_main: bool,
}

/// The part of a message that contains a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkSource {
    /// In the HTML.
    Html,
    /// In the plain text.
    Text,
    /// In a header field.
    Header,
}

/// The kind of a link, by the scheme of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkScheme {
    /// `http` or `https`.
    Http,
    /// `mailto`.
    Mailto,
    /// Any other scheme, or no scheme.
    Other,
}

impl Link {
    /// Creates a link that is not the main link.
    pub(crate) fn new(href: String, text: String, image_alt: Option<String>, source: LinkSource) -> Self {
        let kind = match scheme(&href) {
            Some(scheme) if ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)) => LinkScheme::Http,
            Some(scheme) if scheme.eq_ignore_ascii_case("mailto") => LinkScheme::Mailto,
            _ => LinkScheme::Other,
        };
        Self { href, text, image_alt, source, kind, is_main: false }
    }
}
