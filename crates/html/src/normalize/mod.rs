//! The first step for the HTML of a mail: the same content as markup that is small enough, nested properly, and built of
//! known elements only. It is one linear pass with a bounded stack. What a parser does with broken markup (moving
//! content out of tables, opening lost formatting again and again) takes time that grows with the square of the mail,
//! and a sender decides how broken it is; behind this pass nothing is broken. Whether a value is harmless is not asked
//! here.

mod nesting;
mod serialize;

use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};

use super::elements::{find_element, is_void};
use nesting::OpenElement;
use serialize::push_attributes;

/// How much of a mail's HTML is looked at, and how much of it is left at most, but for the last piece.
pub(super) const MAX_HTML_BYTES: usize = 2 << 20;
/// How many elements the result has at most, but for a few.
pub(super) const MAX_ELEMENTS: usize = 50_000;
/// How deep elements are nested in the result; tags of deeper ones are left out.
pub(super) const MAX_DEPTH: usize = 200;

/// The parts of a mail's HTML.
#[derive(Debug, Default)]
pub(super) struct NormalizedHtml {
    /// The content of the body.
    pub(super) markup: String,
    /// The attributes of the body.
    pub(super) body_attributes: String,
    /// The style sheets.
    pub(super) sheets: Vec<StyleSheet>,
    /// Whether something is missing at the end.
    pub(super) is_truncated: bool,
}

/// A style sheet of the mail: for which media it is, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StyleSheet {
    pub(super) media: String,
    pub(super) css: String,
}

/// Makes the HTML of a mail fit for a parser.
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

/// What the next raw text is good for.
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
    /// Formatting that ended with a block and goes on with the next words.
    pending_formatting: Vec<OpenElement>,
    reopened_count: usize,
    /// How many tags were left out because they were too deep and wait for their end tags.
    too_deep: usize,
    /// How many costly characters were written since the last comment.
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

    /// The tags that leave something although they name no element of ours.
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
            // Missing and crossed end tags.
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
            // What is left out.
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
