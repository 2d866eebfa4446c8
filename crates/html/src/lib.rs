//! What a mail's HTML and text look like when they are shown to somebody: pure functions from a hostile string to a
//! harmless one. Who asks for them, and with which headers the answers are sent, is the matter of `http`.
//!
//! HTML takes three steps. `tame` makes it small and orderly, so that the next one takes no more time than it should.
//! The sanitiser, set up in `policy`, parses it as a browser does and keeps the elements and attributes that are
//! allowed. `dress` then goes through the addresses and styles in what is left. Nothing here fails: what exceeds a limit
//! is cut off, and a note at the end says so. Time and memory are linear in the size of the mail.

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

pub use escape::push_escaped;
pub use linkify::linkify;
pub use preview::{remote_hosts, render_preview};

/// What stands at the end of HTML that was too much.
const TRUNCATION_NOTE: &str = "<p>The rest of this mail is too much to be shown.</p>";

/// Where the content of the mail's inline parts is.
pub trait InlineParts {
    /// The address of the part that has this Content-ID (without its angle brackets), if there is one. It goes into the
    /// result without being judged, so it must not lead where a sender wants it to.
    fn url_by_content_id(&self, content_id: &str) -> Option<String>;

    /// The same for the part that has this Content-Location (RFC 2557 section 4.2), which is how a page that was sent as a
    /// mail names its images.
    fn url_by_location(&self, _location: &str) -> Option<String> {
        None
    }
}

/// What a preview may do beyond showing the mail itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PreviewOptions {
    /// Images and fonts of other hosts are loaded.
    pub allow_remote: bool,
    /// The colour scheme that the mail is shown in. Without one it is light, unless the mail says that it knows both.
    pub scheme: Option<ColorScheme>,
}

/// A colour scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorScheme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

/// A mail's HTML, safe to be put into somebody's page: elements, attributes and CSS properties by an allow-list, no
/// style sheets, no names. Remote images stay as they are.
pub fn sanitize(html: &str, inline: &dyn InlineParts) -> String {
    let normalized = normalize(html);
    let mut result = UrlRewriter::strict(inline).rewrite(&STRICT_SANITIZER.clean(&normalized.markup).to_string());
    if normalized.is_truncated {
        result.push_str(TRUNCATION_NOTE);
    }
    result
}
