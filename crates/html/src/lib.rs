//! Preparation of a message's HTML and text for display: pure functions that turn untrusted input into harmless HTML.
//! Request handling and response headers are in `http`.
//!
//! HTML is processed in three steps. `normalize` limits its size and repairs its nesting, so that the next step is
//! linear. The sanitizer, configured in `policy`, parses it like a browser and keeps the allowed elements and
//! attributes. `rewrite_urls` processes the URLs and styles in the result. Nothing here fails: content beyond a limit
//! is removed, and a note at the end says so. Time and memory are linear in the size of the message.

mod css;
mod elements;
mod escape;
mod linkify;
mod normalize;
mod policy;
mod preview;
mod rewrite_urls;
#[cfg(test)]
mod tests;
mod url_target;

use normalize::normalize;
use policy::STRICT_SANITIZER;
use rewrite_urls::UrlRewriter;

pub use css::tokens::Tokens as CssTokens;
pub use cssparser::Token as CssToken;
pub use escape::push_escaped;
pub use linkify::linkify;
pub use preview::{remote_hosts, render_preview};

/// The note at the end of truncated HTML.
const TRUNCATION_NOTE: &str = "<p>The rest of this message is too large to display.</p>";

/// Provides the URLs of the inline parts of a message.
pub trait InlineParts {
    /// Returns the URL of the part with this Content-ID, which has no angle brackets. The URL is written to the output
    /// without validation, so it must not be under the control of the sender.
    fn url_by_content_id(&self, content_id: &str) -> Option<String>;

    /// Returns the URL of the part with this Content-Location (RFC 2557 section 4.2). Web pages that are sent as
    /// messages use it for images.
    fn url_by_location(&self, _location: &str) -> Option<String> {
        None
    }
}

/// The options of a preview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PreviewOptions {
    /// Whether images and fonts are loaded from other hosts.
    pub allow_remote: bool,
    /// The color scheme of the preview. If `None`, it is light, unless the message supports both.
    pub scheme: Option<ColorScheme>,
}

/// A color scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorScheme {
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

/// Sanitizes the HTML of a message so that it can be inserted into another page: allow-lists for elements, attributes
/// and CSS properties, no style sheets, no names. Remote images are kept.
pub fn sanitize(html: &str, inline: &dyn InlineParts) -> String {
    let normalized = normalize(html);
    let mut result = UrlRewriter::strict(inline).rewrite(&STRICT_SANITIZER.clean(&normalized.markup).to_string());
    if normalized.is_truncated {
        result.push_str(TRUNCATION_NOTE);
    }
    result
}
