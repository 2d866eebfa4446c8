//! The preview: a mail's HTML as a document of its own, for a sandboxed frame. It looks like the mail; what it must not
//! load is left out here already, and forbidden once more by the policy that the answer is sent with.

use std::fmt::Write as _;

use super::escape::push_escaped;
use super::normalize::{NormalizedHtml, StyleSheet, normalize};
use super::policy::PREVIEW_SANITIZER;
use super::rewrite_urls::UrlRewriter;
use super::{ColorScheme, InlineParts, PreviewOptions, TRUNCATION_NOTE};

/// How a mail looks that says nothing about it. A picture that is not loaded leaves a box of its size, unless the mail's
/// own styles have another idea of it.
const BASE_STYLE: &str = "body{margin:8px;font-family:system-ui,sans-serif;overflow-wrap:break-word}\
    img{max-width:100%}\
    :where(img[data-blocked]){display:inline-block;overflow:hidden;font:12px/1.4 system-ui,sans-serif;color:#767676}\
    img[data-blocked]{outline:1px dashed #8888;outline-offset:-1px;min-width:1px;min-height:1px}";

/// How a mail looks in the dark that was made for white paper only: turned round as a whole, as mail programs do it, and
/// pictures turned back. Text in the colours of the dark would be white on the white that the mail asks for.
const INVERTED_STYLE: &str = "html{background:#fff;filter:invert(1) hue-rotate(180deg)}\
    img:not([data-blocked]),[background]{filter:invert(1) hue-rotate(180deg)}";

/// A whole document to be shown in a sandboxed frame: keeps style sheets and inline styles; nothing active survives.
pub fn render_preview(html: &str, inline: &dyn InlineParts, options: PreviewOptions) -> String {
    let normalized = normalize(html);
    let parts = PreviewParts::new(&normalized, &mut UrlRewriter::preview(inline, options.allow_remote));
    let supports_dark = parts.sheets.iter().any(|sheet| sheet.css.contains("color-scheme"));
    let (scheme, inverted) = match options.scheme {
        Some(ColorScheme::Dark) if supports_dark => ("dark", ""),
        Some(ColorScheme::Dark) => ("light", INVERTED_STYLE),
        None if supports_dark => ("light dark", ""),
        Some(ColorScheme::Light) | None => ("light", ""),
    };
    let mut document = format!(
        "<!doctype html><html><head><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
        <meta name=\"color-scheme\" content=\"{scheme}\">\
        <style>:root{{color-scheme:{scheme}}}{BASE_STYLE}{inverted}</style>"
    );
    for StyleSheet { media, css } in &parts.sheets {
        document.push_str("<style media=\"");
        push_escaped(&mut document, media);
        // Writing to a string does not fail.
        let _ = write!(document, "\">{css}</style>");
    }
    let PreviewParts { body_attributes: body, content, .. } = parts;
    let note = if normalized.is_truncated { TRUNCATION_NOTE } else { "" };
    let _ = write!(document, "</head><body{body}>{content}{note}</body></html>");
    document
}

/// The hosts that the HTML would load something from that the mail does not bring along (images, srcset, backgrounds,
/// url() in CSS, fonts), sorted, without doubles, at most 50.
pub fn remote_hosts(html: &str, inline: &dyn InlineParts) -> Vec<String> {
    let mut rewriter = UrlRewriter::preview(inline, true);
    PreviewParts::new(&normalize(html), &mut rewriter);
    rewriter.hosts.into_iter().collect()
}

/// A mail's HTML, ready to be put together.
struct PreviewParts {
    /// The attributes of the body.
    body_attributes: String,
    content: String,
    sheets: Vec<StyleSheet>,
}

impl PreviewParts {
    fn new(normalized: &NormalizedHtml, rewriter: &mut UrlRewriter<'_>) -> Self {
        // The attributes of a body are judged like those of any block.
        let block = PREVIEW_SANITIZER.clean(&format!("<div{}></div>", normalized.body_attributes)).to_string();
        let block = rewriter.rewrite(&block);
        let body = block.strip_prefix("<div").and_then(|block| block.strip_suffix("></div>")).unwrap_or_default();
        let content = rewriter.rewrite(&PREVIEW_SANITIZER.clean(&normalized.markup).to_string());
        let sheets = normalized.sheets.iter().filter(|sheet| sheet.media.chars().all(is_media_query_char));
        let sheets =
            sheets.map(|sheet| StyleSheet { media: sheet.media.clone(), css: rewriter.rewrite_css(&sheet.css) });
        Self { body_attributes: body.to_owned(), content, sheets: sheets.collect() }
    }
}

/// Whether media queries are written with this character. What they are not written with needs no guess.
fn is_media_query_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '(' | ')' | ':' | ',' | '-' | '.' | '/' | '<' | '>' | '=')
}
