//! The first step: converts HTML to markup of limited size that is properly nested and contains only known elements. It
//! is one linear pass with a bounded stack. HTML parsers repair malformed markup (moving content out of tables,
//! reopening formatting) in time that is quadratic in the size of the message, and the sender controls how malformed it
//! is. After this pass nothing is malformed. Values are not validated here.

mod nesting;
mod serialize;

use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};

use super::elements::{find_element, is_void};
use nesting::OpenElement;
use serialize::push_attributes;

/// The maximum size of the HTML that is read, and of the result, except for its last token.
pub(super) const MAX_HTML_BYTES: usize = 2 << 20;
/// The maximum number of elements in the result. It may be exceeded by a few.
pub(super) const MAX_ELEMENTS: usize = 50_000;
/// The maximum nesting depth of the result. Tags of deeper elements are dropped.
pub(super) const MAX_DEPTH: usize = 200;

/// Normalized HTML.
#[derive(Debug, Default)]
pub(super) struct NormalizedHtml {
    /// The content of the body.
    pub(super) markup: String,
    /// The attributes of the body.
    pub(super) body_attributes: String,
    /// The style sheets.
    pub(super) sheets: Vec<StyleSheet>,
    /// Whether content at the end was removed.
    pub(super) is_truncated: bool,
}

/// A style sheet of the message: its media query and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StyleSheet {
    pub(super) media: String,
    pub(super) css: String,
}

/// Normalizes the HTML of a message.
pub(super) fn normalize(html: &str) -> NormalizedHtml {
    let end = html.floor_char_boundary(MAX_HTML_BYTES);
    let mut normalizer = Normalizer::default();
    normalizer.output.is_truncated = end < html.len();
    for token in Tokens::new(&html[..end]) {
        if normalizer.element_count >= MAX_ELEMENTS || normalizer.output.markup.len() > MAX_HTML_BYTES {
            normalizer.output.is_truncated = true;
            break;
        }
        match token {
            Token::Text(text) => normalizer.text(text),
            Token::StartTag(name, attributes) => normalizer.start_tag(name, attributes),
            Token::RawText(text) => normalizer.raw(text),
            Token::EndTag(name) => normalizer.end_tag(name),
        }
    }
    normalizer.output.is_truncated |= normalizer.output.markup.len() > MAX_HTML_BYTES;
    normalizer.close_down_to(0);
    normalizer.output
}

/// The use of the next raw text.
#[derive(Debug, Default)]
enum RawTextUse {
    #[default]
    Discard,
    Text,
    Style(String),
}

#[derive(Default)]
struct Normalizer {
    output: NormalizedHtml,
    stack: Vec<OpenElement>,
    element_count: usize,
    /// Formatting elements that were closed with a block and are reopened before the next words.
    pending_formatting: Vec<OpenElement>,
    reopened_count: usize,
    /// The number of open elements whose tags were dropped because they are too deep.
    too_deep: usize,
    /// The number of costly characters that were written since the last comment.
    costly_chars: usize,
    raw: RawTextUse,
    has_body: bool,
}

impl Normalizer {
    fn text(&mut self, text: &str) {
        if !text.bytes().all(|b| b.is_ascii_whitespace()) {
            self.ensure_cell();
            self.reopen_formatting();
        }
        self.push_text(text);
    }

    fn raw(&mut self, text: &str) {
        match std::mem::take(&mut self.raw) {
            RawTextUse::Discard => {}
            RawTextUse::Text => self.text(text),
            RawTextUse::Style(media) => {
                let css = text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "");
                self.output.sheets.push(StyleSheet { media, css });
            }
        }
    }

    fn start_tag(&mut self, name: &str, attributes: &str) {
        let Some((name, kind)) = find_element(name) else { return self.other_start_tag(name, attributes) };
        if kind.is_table_part() {
            if !self.enter_table_part(kind) {
                return;
            }
        } else if !self.prepare_for(name, kind) {
            return;
        }
        if self.stack.len() >= MAX_DEPTH && !is_void(name) {
            self.too_deep += 1;
            return;
        }
        let mut tag = format!("<{name}");
        push_attributes(&mut tag, attributes);
        tag.push('>');
        self.push_element(name, kind, tag);
    }

    /// Handles tags that have an effect although they are not in the table of elements.
    fn other_start_tag(&mut self, name: &str, attributes: &str) {
        if name.eq_ignore_ascii_case("body") && !self.has_body {
            self.has_body = true;
            push_attributes(&mut self.output.body_attributes, attributes);
        } else if name.eq_ignore_ascii_case("style") {
            let media = find_attribute(attributes, "media").unwrap_or_default();
            self.raw = RawTextUse::Style(media.to_owned());
        } else if name.eq_ignore_ascii_case("textarea") || name.eq_ignore_ascii_case("xmp") {
            self.raw = RawTextUse::Text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_markup() {
        let table = [
            ("a<b>c</b>d", "a<b>c</b>d"),
            ("a < b <", "a &lt; b &lt;"),
            ("& &amp;&#38 &;&", "&amp; &amp;&#38 &amp;;&amp;"),
            ("<B Class=x CLASS=y onclick=z>a", "<b class=\"x\">a</b>"),
            ("<a href='\"x\"'>y", "<a href=\"&quot;x&quot;\">y</a>"),
            ("x\0y<b cl\0ass=a>", "xy<b></b>"),
            ("«\u{a0}»", "«\u{a0}»"),
            // Missing and misnested end tags.
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c"),
            ("<ul><li>a<ul><li>b</ul>c", "<ul><li>a<ul><li>b</li></ul>c</li></ul>"),
            ("<dl><dt>a<dd>b<dt>c", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
            ("<h1>a<h2>b</h1>c", "<h1>a</h1><h2>b</h2>c"),
            ("</div></p>a</b>", "a"),
            ("<b><i>a</b>b</i>c", "<b><i>a</i></b><i>b</i>c"),
            ("<p><b>a<p>b", "<p><b>a</b></p><p><b>b</b></p>"),
            ("<div><b>a</div>b</b>c", "<div><b>a</b></div><b>b</b>c"),
            ("<div><b>a</div></b>c", "<div><b>a</b></div>c"),
            ("<b><div>a</b>b</div>c", "<b><div>ab</div></b>c"),
            ("<span><div>a</span>b</div>c", "<span><div>ab</div>c</span>"),
            ("<a>x<a>y", "<a>x</a><a>y</a>"),
            ("<br></br><img>", "<br><img>"),
            // Tables.
            (
                "<table><tr><td>a<td>b<tr><th>c</table>d",
                "<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>d",
            ),
            ("<td>a</td><tr>b</tr>", "ab"),
            ("<table>a<tr><td>b", "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"),
            ("<table><div><tr><td>b</div>c", "<table><tr><td>bc</td></tr></table>"),
            ("<table><tr><table><tr><td>a", "<table><tr><td><table><tr><td>a</td></tr></table></td></tr></table>"),
            ("<table><td><b>a<td>b", "<table><tr><td><b>a</b></td><td>b</td></tr></table>"),
            ("<table><col><col><tbody><td>a", "<table><col><col><tbody><tr><td>a</td></tr></tbody></table>"),
            ("<table><td><p>a</table>b", "<table><tr><td><p>a</p></td></tr></table>b"),
            ("<div><table><td></div>a", "<div><table><tr><td>a</td></tr></table></div>"),
            // Removed content.
            ("<o:p>a</o:p><svg><g>b</svg>", "ab"),
            ("<script>a</script><title>b</title><noscript>c</noscript>d", "d"),
            ("<textarea>a<b></textarea>c", "a&lt;b>c"),
            ("<!--[if mso]><b>a</b><![endif]-->b<![if !mso]>c<![endif]>", "bc"),
            ("<![CDATA[a>b]]>", "b]]>"),
        ];
        for (html, markup) in table {
            assert_eq!(normalize(html).markup, markup, "{html}");
        }
    }

    #[test]
    fn extracts_body_attributes_and_style_sheets() {
        let normalized = normalize(
            "<html><head><style media=print>a{}</style></head><body bgcolor=red onload=x><STYLE>b{}</style>c</body>",
        );
        let sheet = |media: &str, css: &str| StyleSheet { media: media.to_owned(), css: css.to_owned() };
        assert_eq!(normalized.sheets, [sheet("print", "a{}"), sheet("", "b{}")]);
        assert_eq!(normalized.body_attributes, " bgcolor=\"red\"");
        assert_eq!(normalized.markup, "c");
    }

    #[test]
    fn truncates_long_documents() {
        assert!(!normalize(&"x".repeat(MAX_HTML_BYTES)).is_truncated);
        assert!(normalize(&"é".repeat(MAX_HTML_BYTES)).is_truncated);
        let many = normalize(&"<br>".repeat(MAX_ELEMENTS + 1));
        assert!(many.is_truncated && many.markup.len() == 4 * MAX_ELEMENTS);
        let deep = normalize(&format!("{}x{}y", "<div>".repeat(300), "</div>".repeat(300)));
        assert!(!deep.is_truncated && deep.markup.contains("<div>x</div>") && deep.markup.ends_with("</div>y"));
    }
}
