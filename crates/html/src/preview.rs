//! The preview: the HTML of a message as a complete document for a sandboxed frame. Content that must not be loaded is
//! removed here, and is also blocked by the Content-Security-Policy of the response.

use std::fmt::Write as _;

use super::escape::push_escaped;
use super::normalize::{NormalizedHtml, StyleSheet, normalize};
use super::policy::PREVIEW_SANITIZER;
use super::rewrite_urls::UrlRewriter;
use super::{ColorScheme, InlineParts, PreviewOptions, TRUNCATION_NOTE};

/// The default style of a message. A blocked image leaves a box of its size, unless the styles of the message override
/// it.
const BASE_STYLE: &str = "body{margin:8px;font-family:system-ui,sans-serif;overflow-wrap:break-word}\
    img{max-width:100%}\
    :where(img[data-blocked]){display:inline-block;overflow:hidden;font:12px/1.4 system-ui,sans-serif;color:#767676}\
    img[data-blocked]{outline:1px dashed #8888;outline-offset:-1px;min-width:1px;min-height:1px}";

/// The style of a message in dark mode that only supports a light background: all colors are inverted, as mail clients
/// do, and images are inverted back. A dark color scheme alone could show white text on a white background that the
/// message sets.
const INVERTED_STYLE: &str = "html{background:#fff;filter:invert(1) hue-rotate(180deg)}\
    img:not([data-blocked]),[background]{filter:invert(1) hue-rotate(180deg)}";

/// Renders a complete document for a sandboxed frame. Style sheets and inline styles are kept; active content is
/// removed.
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
        // Writing to a string cannot fail.
        let _ = write!(document, "\">{css}</style>");
    }
    let PreviewParts { body_attributes: body, content, .. } = parts;
    let note = if normalized.is_truncated { TRUNCATION_NOTE } else { "" };
    let _ = write!(document, "</head><body{body}>{content}{note}</body></html>");
    document
}

/// Returns the hosts of all remote resources that the HTML would load (images, srcset, backgrounds, url() in CSS,
/// fonts): sorted, without duplicates, at most 50.
pub fn remote_hosts(html: &str, inline: &dyn InlineParts) -> Vec<String> {
    let mut rewriter = UrlRewriter::preview(inline, true);
    PreviewParts::new(&normalize(html), &mut rewriter);
    rewriter.hosts.into_iter().collect()
}

/// The processed parts of a preview document.
struct PreviewParts {
    /// The attributes of the body.
    body_attributes: String,
    content: String,
    sheets: Vec<StyleSheet>,
}

impl PreviewParts {
    fn new(normalized: &NormalizedHtml, rewriter: &mut UrlRewriter<'_>) -> Self {
        // The attributes of the body are sanitized like those of a `div`.
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

/// Returns whether the character is allowed in a media query. A query with any other character is dropped.
fn is_media_query_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '(' | ')' | ':' | ',' | '-' | '.' | '/' | '<' | '>' | '=')
}
