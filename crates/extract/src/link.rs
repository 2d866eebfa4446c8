//! A link of a message.

use crate::relative_url::scheme;

/// A link of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    /// The URL. A relative URL is resolved if the document declares a base URL.
    pub href: String,
    /// The displayed text, on one line.
    pub text: String,
    /// The alternative text of its image, if any.
    pub image_alt: Option<String>,
    /// The part of the message that contains the link.
    pub source: LinkSource,
    /// Whether this is the main link: the one that the message asks to follow. At most one link of a message is.
    pub is_main: bool,
}

/// The part of a message that contains a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSource {
    /// In the HTML.
    Html,
    /// In the plain text.
    Text,
    /// In a header field.
    Header,
}

/// The kind of a link, by the scheme of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkScheme {
    /// `http` or `https`.
    Http,
    /// `mailto`.
    Mailto,
    /// Any other scheme, or no scheme.
    Other,
}

impl Link {
    /// Returns the kind of the link.
    pub fn kind(&self) -> LinkScheme {
        match scheme(&self.href) {
            Some(scheme) if ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)) => LinkScheme::Http,
            Some(scheme) if scheme.eq_ignore_ascii_case("mailto") => LinkScheme::Mailto,
            _ => LinkScheme::Other,
        }
    }
}
