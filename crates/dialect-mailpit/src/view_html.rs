//! The HTML of a message as a document of its own: links to images of the message, and links that open in a new window.

use std::collections::HashMap;

use restante_html::InlineParts;
use restante_http_core::response::inert_html::offset;
use restante_http_core::response::inline_images::ByteBudget;
use restante_mail::mime::Mime;
use restante_mail::mime::html_tokens::{Attributes, Token, Tokens};

use crate::content::{Files, part_ids};

/// The attributes of links that open in a new window.
const NEW_WINDOW: &str = " target=\"_blank\" rel=\"noreferrer noopener\"";

/// Returns the HTML with links that open in a new window.
pub(crate) fn open_new_windows(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut copied = 0;
    for token in Tokens::without_scripts(html) {
        if let Token::StartTag(name, attributes) = token
            && name.eq_ignore_ascii_case("a")
        {
            let start = offset(html, attributes);
            out.push_str(&html[copied..start]);
            push_link_attributes(&mut out, attributes);
            copied = start + attributes.len();
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// Appends the attributes of a link, with those of [`NEW_WINDOW`] instead of its own.
fn push_link_attributes(out: &mut String, attributes: &str) {
    for (name, value) in Attributes::new(attributes) {
        if name.eq_ignore_ascii_case("target") || name.eq_ignore_ascii_case("rel") {
            continue;
        }
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        // A value without quotes can contain both kinds of them.
        out.push_str(&value.replace('"', "&quot;"));
        out.push('"');
    }
    out.push_str(NEW_WINDOW);
}

/// Replaces the URLs of parts of the message in attributes: `="cid:…"`. With `in_styles`, also in styles: `url(cid:…)`.
pub(crate) fn link_parts(html: &str, parts: &dyn InlineParts, in_styles: bool) -> String {
    const SCHEME: &[u8] = b"cid:";
    let bytes = html.as_bytes();
    let mut out = String::with_capacity(html.len());
    // Text before `checked` contains no other URL, so that each character is examined once.
    let (mut copied, mut checked) = (0, 0);
    for (colon, _) in html.match_indices(':') {
        let Some(start) = (colon + 1).checked_sub(SCHEME.len()) else { continue };
        if start < checked
            || !bytes[start..=colon].eq_ignore_ascii_case(SCHEME)
            || !starts_url(&bytes[..start], in_styles)
        {
            continue;
        }
        let id_end = html[colon + 1..].find(ends_url).map_or(html.len(), |len| colon + 1 + len);
        checked = id_end;
        if let Some(url) = parts.url_by_content_id(&html[colon + 1..id_end]) {
            out.push_str(&html[copied..start]);
            out.push_str(&url);
            copied = id_end;
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// Returns whether a URL can start after this text: after an equals sign, or in `url(`, with or without a quote.
fn starts_url(before: &[u8], in_styles: bool) -> bool {
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before);
    match before.last() {
        Some(b'=') => true,
        Some(b'(') => in_styles,
        _ => false,
    }
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '>' | ';' | ')')
}

/// The links to the parts of a message in this API.
pub(crate) struct PartLinks {
    /// The ids of the parts by their Content-IDs, in lower case.
    parts: HashMap<String, String>,
    /// The URL of the parts, with a slash at the end.
    base: String,
    /// The bytes that links to parts may still add to the document. The other links stay as they were sent.
    budget: ByteBudget,
}

impl PartLinks {
    /// Creates the links of a message. `base` is the URL of its parts, with a slash at the end.
    pub(crate) fn new(mime: &Mime, base: String) -> Self {
        let (Files { inline, attachments }, ids) = (Files::of(mime), part_ids(mime));
        let mut parts = HashMap::new();
        for index in inline.into_iter().chain(attachments) {
            if let Some(content_id) = &mime.parts()[index].content_id {
                parts.entry(content_id.to_lowercase()).or_insert_with(|| ids[index].clone());
            }
        }
        Self { parts, base, budget: ByteBudget::default() }
    }
}

impl InlineParts for PartLinks {
    fn url_by_content_id(&self, content_id: &str) -> Option<String> {
        let url = format!("{}{}", self.base, self.parts.get(&content_id.to_lowercase())?);
        self.budget.try_take(url.len()).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restante_http_core::response::inline_images::MAX_ADDED_BYTES;

    #[test]
    fn links_open_in_a_new_window() {
        let table = [
            (
                "<a href=\"x?a&amp;b\" target=_top>a</a>",
                "<a href=\"x?a&amp;b\" target=\"_blank\" rel=\"noreferrer noopener\">a</a>",
            ),
            (
                "<A REL=x HREF='a\"b' download>",
                "<A HREF=\"a&quot;b\" download=\"\" target=\"_blank\" rel=\"noreferrer noopener\">",
            ),
            ("<a href=x'\"= >", "<a href=\"x'&quot;=\" target=\"_blank\" rel=\"noreferrer noopener\">"),
            ("<a>", "<a target=\"_blank\" rel=\"noreferrer noopener\">"),
            ("<a href=x", "<a href=\"x\" target=\"_blank\" rel=\"noreferrer noopener\""),
            ("<abbr title=x>", "<abbr title=x>"),
        ];
        for (html, expected) in table {
            assert_eq!(open_new_windows(html), expected, "{html}");
        }
    }

    /// Takes very long if every link is examined up to the end of the text.
    #[test]
    fn links_without_an_end_are_examined_once() {
        let html = "=cid:".repeat(400_000);
        let links = PartLinks::new(&Mime::parse("\r\n".into()), "/p/".to_owned());
        assert_eq!(link_parts(&html, &links, true), html);
    }

    #[test]
    fn parts_are_linked() {
        let source = "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\nx\r\n\
            --b\r\nContent-Type: image/png\r\nContent-ID: <Logo@x>\r\n\r\nx\r\n--b--\r\n";
        let links = PartLinks::new(&Mime::parse(source.into()), "/p/".to_owned());
        let table = [
            ("<img src=\"cid:Logo@x\">", "<img src=\"/p/2\">"),
            ("<img src='CID:logo@X' alt=cid:logo@x><p>cid:logo@x", "<img src='/p/2' alt=/p/2><p>cid:logo@x"),
            ("<img src=\"cid:other@x\">", "<img src=\"cid:other@x\">"),
            ("<img src = \"cid:logo@x\">", "<img src = \"cid:logo@x\">"),
            ("<p style=\"background:url(cid:logo@x)\">", "<p style=\"background:url(cid:logo@x)\">"),
            ("<img src=\"acid:logo@x\">cid:", "<img src=\"acid:logo@x\">cid:"),
            ("=cid:logo@x", "=/p/2"),
            (":=cid:", ":=cid:"),
        ];
        for (html, expected) in table {
            assert_eq!(link_parts(html, &links, false), expected, "{html}");
        }
        assert_eq!(link_parts("url(cid:logo@x) url('cid:logo@x')", &links, true), "url(/p/2) url('/p/2')");
    }

    #[test]
    fn added_links_are_limited() {
        let source = "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\nContent-ID: a\r\n\r\nx\r\n--b--\r\n";
        let links = PartLinks::new(&Mime::parse(source.into()), "/".repeat(MAX_ADDED_BYTES / 2));
        assert_eq!(link_parts("=cid:a =cid:a", &links, false).len(), MAX_ADDED_BYTES / 2 + "=1 =cid:a".len());
    }
}
