//! The last step: rewriting of URLs and styles. The input was written by the sanitizer, so every tag is complete and
//! every value is quoted. Links get `target` and `rel` attributes, `cid:` URLs are replaced, and remote resources are
//! kept or blocked.

use std::collections::BTreeSet;

use restante_mail::mime::html_tokens::{Attributes, Token, Tokens};

use super::InlineParts;
use super::css;
use super::escape::{push_escaped, unescape};
use super::url_target::UrlTarget;

/// The maximum number of hosts that are recorded.
const MAX_HOSTS: usize = 50;

/// Rewrites sanitized markup.
pub(super) struct UrlRewriter<'a> {
    inline: &'a dyn InlineParts,
    allows_remote: bool,
    is_strict: bool,
    /// The hosts of all remote resources.
    pub(super) hosts: BTreeSet<String>,
}

impl<'a> UrlRewriter<'a> {
    /// Creates a rewriter for HTML that is inserted into another page.
    pub(super) fn strict(inline: &'a dyn InlineParts) -> Self {
        Self { inline, allows_remote: true, is_strict: true, hosts: BTreeSet::new() }
    }

    /// Creates a rewriter for a document in a separate frame.
    pub(super) fn preview(inline: &'a dyn InlineParts, allows_remote: bool) -> Self {
        Self { inline, allows_remote, is_strict: false, hosts: BTreeSet::new() }
    }

    /// Rewrites the URLs and styles of the markup.
    pub(super) fn rewrite(&mut self, markup: &str) -> String {
        let mut result = String::with_capacity(markup.len());
        let mut is_pre = false;
        // A carriage return from a character reference would be converted to a line feed when the output is parsed.
        let markup = markup.replace('\r', "\n");
        for token in Tokens::new(&markup) {
            let was_pre = std::mem::take(&mut is_pre);
            match token {
                Token::Text(text) => {
                    // The first line break in `pre` is ignored by parsers, so it must be doubled.
                    if was_pre && text.starts_with('\n') {
                        result.push('\n');
                    }
                    result.push_str(text);
                }
                Token::StartTag(name, attributes) => {
                    is_pre = name == "pre";
                    self.write_tag(&mut result, name, attributes);
                }
                Token::RawText(_) => {}
                Token::EndTag(name) => {
                    result.push_str("</");
                    result.push_str(name);
                    result.push('>');
                }
            }
        }
        result
    }

    /// Rewrites the URLs of a style sheet or of declarations.
    pub(super) fn rewrite_css(&mut self, style: &str) -> String {
        css::rewrite_css(style, &mut |raw| match self.resolve_resource(raw) {
            Resource::Url(url) => Some(url),
            Resource::Blocked | Resource::Missing => None,
        })
    }

    fn write_tag(&mut self, result: &mut String, name: &str, attributes: &str) {
        result.push('<');
        result.push_str(name);
        for (attribute, value) in Attributes::new(attributes) {
            self.write_attribute(result, name, attribute, &unescape(value));
        }
        result.push('>');
    }

    fn write_attribute(&mut self, result: &mut String, element: &str, name: &str, value: &str) {
        match name {
            "href" => {
                if let Some(UrlTarget::Remote(url) | UrlTarget::Contact(url)) = UrlTarget::parse(value) {
                    push_attribute(result, name, &url);
                    push_attribute(result, "target", "_blank");
                    push_attribute(result, "rel", "noopener noreferrer nofollow");
                }
            }
            "src" => match self.resolve_resource(value) {
                Resource::Url(url) => push_attribute(result, name, &url),
                Resource::Blocked => push_attribute(result, "data-blocked", ""),
                Resource::Missing => {}
            },
            "background" => {
                if let Resource::Url(url) = self.resolve_resource(value) {
                    push_attribute(result, name, &url);
                }
            }
            "srcset" => {
                let candidates = self.rewrite_srcset(value);
                if !candidates.is_empty() {
                    push_attribute(result, name, &candidates);
                }
            }
            "style" => {
                let style = if self.is_strict { css::filter_declarations(value) } else { self.rewrite_css(value) };
                if !style.is_empty() {
                    push_attribute(result, name, &style);
                }
            }
            "usemap" if element != "img" || !value.starts_with('#') => {}
            _ => push_attribute(result, name, value),
        }
    }

    /// Returns the candidates of a `srcset` that may be loaded (HTML Standard, section 4.8.4.2.1).
    fn rewrite_srcset(&mut self, srcset: &str) -> String {
        let mut candidates: Vec<String> = Vec::new();
        let mut rest = srcset;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            if rest.is_empty() {
                return candidates.join(", ");
            }
            let (url_text, tail) = rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len()));
            let descriptor = if url_text.ends_with(',') { "" } else { tail.split(',').next().unwrap_or_default() };
            rest = &tail[descriptor.len()..];
            if let Resource::Url(url) = self.resolve_resource(url_text.trim_end_matches(',')) {
                candidates.push(format!("{url} {}", descriptor.trim()).trim_end().to_owned());
            }
        }
    }

    /// Resolves the URL of an image or a font.
    fn resolve_resource(&mut self, raw: &str) -> Resource {
        if let Some(url) = self.inline.url_by_location(raw.trim()) {
            return Resource::Url(url);
        }
        let Some(target) = UrlTarget::parse(raw) else { return Resource::Missing };
        if self.hosts.len() < MAX_HOSTS {
            self.hosts.extend(target.host());
        }
        match target {
            UrlTarget::InlinePart(id) => self.inline.url_by_content_id(&id).map_or(Resource::Missing, Resource::Url),
            UrlTarget::Remote(url) if self.allows_remote => Resource::Url(url),
            UrlTarget::Remote(_) => Resource::Blocked,
            UrlTarget::DataImage(url) => Resource::Url(url),
            UrlTarget::Contact(_) => Resource::Missing,
        }
    }
}

/// The result of resolving a resource.
enum Resource {
    Url(String),
    Blocked,
    Missing,
}

fn push_attribute(tag: &mut String, name: &str, value: &str) {
    tag.push(' ');
    tag.push_str(name);
    tag.push_str("=\"");
    push_escaped(tag, value);
    tag.push('"');
}
