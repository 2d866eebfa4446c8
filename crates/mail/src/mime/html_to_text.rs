//! Conversion of HTML to text, in one linear pass over its tokens. It builds no tree: rendering a tree takes time that
//! is quadratic in its depth, which the sender controls.

use std::ops::ControlFlow;

use super::html_tokens::{Token, Tokens, find_attribute};
use super::references::{ReferenceContext, resolve, resolve_keeping_nbsp};
use super::url;

/// The maximum number of quotes or lists that indent a line. Deeper ones add no prefix.
const MAX_PREFIX_LEVELS: usize = 8;
/// The headings that Inbucket underlines.
const UNDERLINED_HEADINGS: [&str; 3] = ["h1", "h2", "h3"];

/// The style of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// For people: rows, list items and images are where a reader expects them.
    #[default]
    Readable,
    /// As Inbucket writes it: headings between lines of stars or dashes, `*bold*`, the cells of a table on one line,
    /// list items without numbers, non-breaking spaces, and no line end at the end.
    Inbucket,
}

/// Converts an HTML document to text. Lines are not wrapped, because programs search the text for sentences and links.
/// The URL of a link follows its text: `text ( https://example.org )`.
pub(super) fn from_html(html: &str, style: Style) -> String {
    let mut text = TextWriter { style, ..TextWriter::default() };
    let _ = convert(html, &mut text, |_| ControlFlow::Continue(()));
    text.finish()
}

/// Converts the start of an HTML document to readable text without the URLs of links, and passes it to `consume`, piece by
/// piece, until `consume` breaks.
pub(super) fn read_html(html: &str, mut consume: impl FnMut(&str) -> ControlFlow<()>) {
    let mut text = TextWriter { omits_urls: true, ..TextWriter::default() };
    let mut consumed = 0;
    let converted = convert(html, &mut text, |text| {
        let piece = &text[consumed..];
        consumed = text.len();
        if piece.is_empty() { ControlFlow::Continue(()) } else { consume(piece) }
    });
    if converted.is_continue() {
        let _ = consume(&text.output[consumed..]);
    }
}

/// Converts an HTML document. Calls `check` with the text so far before every tag. Text that was written never changes
/// in the readable style. Breaks if `check` does.
fn convert(html: &str, text: &mut TextWriter, mut check: impl FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
    // Text up to the next tag. A `<` that starts no tag is a separate token, but belongs to the text around it.
    let mut run = String::new();
    let mut is_textarea = false;
    for token in Tokens::new(html) {
        if let Token::Text(raw) = token {
            if raw != "<" && !run.ends_with('<') {
                text.push_run(&mut run);
            }
            run.push_str(raw);
            continue;
        }
        text.push_run(&mut run);
        check(&text.output)?;
        match token {
            Token::StartTag(name, attributes) => {
                is_textarea = name.eq_ignore_ascii_case("textarea");
                text.start_tag(&name.to_ascii_lowercase(), attributes);
            }
            Token::RawText(raw) if is_textarea => text.push_text(raw),
            Token::Text(_) | Token::RawText(_) => {}
            Token::EndTag(name) => text.end_tag(&name.to_ascii_lowercase()),
        }
    }
    text.push_run(&mut run);
    ControlFlow::Continue(())
}

/// The separation between the last word and the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Blank,
    Line,
    Paragraph,
}

/// The text written so far, and the open elements around the next word.
#[derive(Default)]
struct TextWriter {
    style: Style,
    /// Whether the URLs of links are left out.
    omits_urls: bool,
    output: String,
    gap: Gap,
    quotes: usize,
    /// The open lists: the number of the next item, or `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// The marker of a list item. It is written before the next word.
    marker: Option<String>,
    preformatted: usize,
    /// The URL of the open link.
    link: Option<String>,
    /// The start of the text of the open link in the output.
    link_start: usize,
    /// The number of stars that are written before the next word, because bold text starts there.
    pending_stars: usize,
    /// The number of stars of the open bold text.
    open_stars: usize,
    /// The open heading and its start in the output.
    heading: Option<(&'static str, usize)>,
}

impl TextWriter {
    fn start_tag(&mut self, name: &str, attributes: &str) {
        let is_inbucket = self.style == Style::Inbucket;
        self.widen_gap(gap_around(name, self.style));
        match name {
            "br" => self.line_break(),
            "a" => {
                self.end_unclosed_link();
                self.link = find_attribute(attributes, "href").map(|href| resolve(href, ReferenceContext::Attribute));
                self.link_start = self.output.len();
            }
            "img" if is_inbucket && self.link.is_none() => {}
            "img" => self.push_text(find_attribute(attributes, "alt").unwrap_or_default()),
            "hr" if !is_inbucket => {
                self.push_word("---");
                self.widen_gap(Gap::Paragraph);
            }
            "blockquote" => self.quotes += 1,
            "pre" => self.preformatted += 1,
            "ul" => self.lists.push(None),
            "ol" => {
                let start = find_attribute(attributes, "start").and_then(|start| start.parse().ok());
                self.lists.push(Some(start.unwrap_or(1)));
            }
            "li" => self.start_item(),
            "b" | "strong" if is_inbucket => self.pending_stars += 1,
            _ if is_inbucket && self.heading.is_none() => {
                let heading = UNDERLINED_HEADINGS.into_iter().find(|heading| *heading == name);
                self.heading = heading.map(|heading| (heading, self.output.len()));
            }
            _ => {}
        }
    }

    fn end_tag(&mut self, name: &str) {
        let is_inbucket = self.style == Style::Inbucket;
        match name {
            "a" => self.end_link(),
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            "ul" | "ol" => {
                self.lists.pop();
                self.marker = None;
            }
            "b" | "strong" if is_inbucket => self.end_bold(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_heading(),
            _ => {}
        }
        self.widen_gap(gap_around(name, self.style));
    }

    /// Ends bold text with a star. If the bold text is empty, its first star is dropped as well.
    fn end_bold(&mut self) {
        if self.pending_stars > 0 {
            self.pending_stars -= 1;
        } else if self.open_stars > 0 {
            self.open_stars -= 1;
            self.output.push('*');
        }
    }

    /// Writes the lines around a heading. Headings do not nest, so each heading is moved at most once.
    fn end_heading(&mut self) {
        let Some((heading, start)) = self.heading.take() else { return };
        let text = self.output[start..].trim_start();
        let start = self.output.len() - text.len();
        let width = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        if width == 0 {
            return;
        }
        let mark = if heading == "h1" { "*" } else { "-" };
        let rule = mark.repeat(width);
        if heading != "h3" {
            self.output.insert_str(start, &format!("{rule}\n"));
        }
        self.output.push('\n');
        self.output.push_str(&rule);
    }

    /// Writes the text that was collected between two tags.
    fn push_run(&mut self, run: &mut String) {
        if !run.is_empty() {
            self.push_text(run);
            run.clear();
        }
    }

    /// Writes text between tags. Whitespace is collapsed to one space, unless the text is preformatted.
    fn push_text(&mut self, raw: &str) {
        let is_inbucket = self.style == Style::Inbucket;
        let text = if is_inbucket {
            resolve_keeping_nbsp(raw, ReferenceContext::Text)
        } else {
            resolve(raw, ReferenceContext::Text)
        };
        if self.preformatted > 0 {
            for (n, line) in text.split('\n').enumerate() {
                if n > 0 {
                    self.line_break();
                }
                let line = line.trim_end();
                if !line.is_empty() {
                    self.push_word(line);
                }
            }
            return;
        }
        if is_inbucket {
            return self.push_inbucket_text(&text);
        }
        for (n, word) in text.split(char::is_whitespace).enumerate() {
            if n > 0 {
                self.widen_gap(Gap::Blank);
            }
            if !word.is_empty() {
                self.push_word(word);
            }
        }
    }

    /// Inbucket writes a space between texts of different elements, unless the second text starts with a full stop.
    fn push_inbucket_text(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('.') {
            self.widen_gap(Gap::Blank);
        }
        for (n, word) in text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()).enumerate() {
            if n > 0 {
                self.widen_gap(Gap::Blank);
            }
            self.push_word(word);
        }
    }

    /// Writes a word, preceded by its separation from the last word.
    fn push_word(&mut self, word: &str) {
        match (self.output.is_empty(), self.gap) {
            (true, _) => self.start_line(),
            (false, Gap::None) => {}
            (false, Gap::Blank) => self.output.push(' '),
            (false, Gap::Line) => {
                self.output.push('\n');
                self.start_line();
            }
            (false, Gap::Paragraph) => {
                self.output.push_str("\n\n");
                self.start_line();
            }
        }
        self.gap = Gap::None;
        for _ in 0..self.pending_stars.min(MAX_PREFIX_LEVELS) {
            self.output.push('*');
            self.open_stars += 1;
        }
        self.pending_stars = 0;
        self.output.push_str(word);
    }

    /// Writes the prefix of a line: quote marks, and the indentation or the marker of a list item.
    fn start_line(&mut self) {
        self.output.push_str(&"> ".repeat(self.quotes.min(MAX_PREFIX_LEVELS)));
        let depth = if self.style == Style::Inbucket { 0 } else { self.lists.len().min(MAX_PREFIX_LEVELS) };
        match self.marker.take() {
            Some(marker) => {
                self.output.push_str(&"  ".repeat(depth.saturating_sub(1)));
                self.output.push_str(&marker);
            }
            None => self.output.push_str(&"  ".repeat(depth)),
        }
    }

    fn start_item(&mut self) {
        self.marker = Some(match self.lists.last_mut() {
            Some(Some(number)) if self.style == Style::Readable => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "* ".to_owned(),
        });
    }

    /// Writes the URL of a link, unless it equals the text of the link or points into the document itself.
    fn end_link(&mut self) {
        let Some(link) = self.link.take().filter(|_| !self.omits_urls) else { return };
        let url = url::without_blanks(&link);
        let url = url.strip_prefix("mailto:").unwrap_or(&url);
        let is_fragment = url.starts_with('#') && self.style == Style::Readable;
        if url.is_empty() || is_fragment || self.output.ends_with(url) {
            return;
        }
        self.widen_gap(Gap::Blank);
        self.push_word(&format!("( {url} )"));
    }

    /// Ends a link at the next link or at the end of the document, because links do not nest. Its URL directly follows
    /// its text, regardless of elements that were opened or closed since.
    fn end_unclosed_link(&mut self) {
        if self.link.is_none() {
            return;
        }
        let len = self.output.len();
        // A link without text stands where the next word would be.
        let gap = if len > self.link_start { std::mem::take(&mut self.gap) } else { Gap::None };
        self.end_link();
        self.widen_gap(gap);
        if self.output.len() > len {
            self.widen_gap(Gap::Blank);
        }
    }

    /// Ends the line. If the line has already ended, an empty line follows.
    fn line_break(&mut self) {
        self.gap = if self.gap >= Gap::Line { Gap::Paragraph } else { Gap::Line };
    }

    fn widen_gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn finish(mut self) -> String {
        self.end_unclosed_link();
        match self.style {
            Style::Readable if !self.output.is_empty() => self.output.push('\n'),
            Style::Readable => {}
            Style::Inbucket => {
                let end = self.output.trim_end().len();
                self.output.truncate(end);
                let start = self.output.len() - self.output.trim_start().len();
                self.output.drain(..start);
            }
        }
        self.output
    }
}

/// Returns the separation of an element from its surroundings.
fn gap_around(name: &str, style: Style) -> Gap {
    if style == Style::Inbucket {
        return match name {
            "p" | "h1" | "h2" | "h3" | "blockquote" | "table" | "ul" => Gap::Paragraph,
            "div" | "li" => Gap::Line,
            _ => Gap::None,
        };
    }
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "pre" | "table" | "hr" | "dl" => Gap::Paragraph,
        "td" | "th" | "textarea" => Gap::Blank,
        "div" | "tr" | "li" | "ul" | "ol" | "dt" | "dd" | "caption" | "center" | "form" | "fieldset" | "body"
        | "header" | "footer" | "section" | "article" | "aside" | "nav" | "main" | "address" | "figure"
        | "figcaption" | "option" | "thead" | "tbody" | "tfoot" => Gap::Line,
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn converts_html_to_readable_text() {
        let table = [
            ("<p>Hello <b>world</b>!</p>\n<p>Bye</p>", "Hello world!\n\nBye\n"),
            ("<div>one</div><div>two</div>", "one\ntwo\n"),
            ("one<br>two<br/>\nthree", "one\ntwo\nthree\n"),
            ("one<br><br>two", "one\n\ntwo\n"),
            (" a \n\t b ", "a b\n"),
            (
                "<a href=\"https://example.org/?a=1&amp;b=2\">Confirm</a>.",
                "Confirm ( https://example.org/?a=1&b=2 ).\n",
            ),
            ("<a href=\"https://example.org\">https://example.org</a>", "https://example.org\n"),
            ("<a href=\"mailto:j@x\">Jane</a> <a href='#top'>top</a> <a>none</a>", "Jane ( j@x ) top none\n"),
            ("<ul><li>one<li>two</ul>after", "* one\n* two\nafter\n"),
            ("<ol start=3><li>one</li><li>two<ul><li>deep</li></ul></li></ol>", "3. one\n4. two\n  * deep\n"),
            (
                "<blockquote>quoted<blockquote>twice<br>so</blockquote></blockquote>me",
                "> quoted\n\n> > twice\n> > so\n\nme\n",
            ),
            ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>", "a b\nc\n"),
            ("<style>p {}</style><script>x()</script><title>t</title><p>x", "x\n"),
            ("<img src=x alt=\"Our logo\"><h1>Title</h1>text<hr>end", "Our logo\n\nTitle\n\ntext\n\n---\n\nend\n"),
            ("<pre>\n  a  b\nc\n\nd</pre>", "  a  b\nc\n\nd\n"),
            ("caf&eacute;&nbsp;&#146;&lt b&gt;", "café ’< b>\n"),
            ("<a href='/?x&copy=1&amp;y'>&copy</a>", "© ( /?x&copy=1&y )\n"),
            ("<a href=' http://h/a b\n c '>go</a>", "go ( http://h/a%20b%20c )\n"),
            ("<a href='http://h/a b'>http://h/a b</a>", "http://h/a b ( http://h/a%20b )\n"),
            ("</ul></blockquote></a></pre>x", "x\n"),
            ("I <3 you, a<5, 1 < 2<", "I <3 you, a<5, 1 < 2<\n"),
            ("<pre>a <3  b</pre>", "a <3  b\n"),
            ("go <a href=https://x.example>here", "go here ( https://x.example )\n"),
            ("<a href=/1>one <p><a href=/2>two</a> three</a>", "one ( /1 )\n\ntwo ( /2 ) three\n"),
            ("<a href=/1>one<a name=x>two", "one ( /1 ) two\n"),
            ("one<a href=''>t<a href=#x>w</a>o", "onetwo\n"),
            ("<p>one</p><a href=/1><a href=/2>two", "one\n\n( /1 ) two ( /2 )\n"),
            ("a<textarea>x &amp; <b>\ny</textarea>b<style>c</style>", "a x & <b> y b\n"),
            ("<!-- x -->", ""),
            ("", ""),
        ];
        for (html, text) in table {
            assert_eq!(from_html(html, Style::Readable), text, "{html}");
        }
    }

    #[test]
    fn converts_html_like_inbucket() {
        let table = [
            (
                "<h1>One</h1>text<h2>Two two</h2>t<h3>Three</h3>t<h4>Four</h4>t",
                "***\nOne\n***\n\ntext\n\n-------\nTwo two\n-------\n\nt\n\nThree\n-----\n\nt Four t",
            ),
            ("<p>a <b>bold</b> <strong>two</strong> <i>it</i>.</p>", "a *bold* *two* it."),
            ("one<br>two<br/>\nthree<br><br>four", "one\ntwo\nthree\n\nfour"),
            ("<div>one</div><div>two</div><p>p1</p><p>p2</p>text", "one\ntwo\n\np1\n\np2\n\ntext"),
            ("<ul><li>one</li><li>two<ul><li>deep</li></ul></li></ul>after", "* one\n* two\n\n* deep\n\nafter"),
            ("<p>a</p><ol start=3><li>x</li><li>y</li></ol>", "a\n\n* x\n* y"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th><td>d</td></tr></table>after", "a b c d\n\nafter"),
            ("a<hr>b", "a b"),
            (
                "<img src=x alt='Our logo'> text <a href='http://x.org/'><img src=z alt='Pic'></a>",
                "text Pic ( http://x.org/ )",
            ),
            (
                "<a href=\"https://e.org/?a=1&amp;b=2\">Go</a>. <a href='mailto:j@x.org'>Jane</a> <a href='#top'>top</a>",
                "Go ( https://e.org/?a=1&b=2 ). Jane ( j@x.org ) top ( #top )",
            ),
            ("<a href='https://e.org'>https://e.org</a> <a href='http://e.org'></a>", "https://e.org ( http://e.org )"),
            ("<a href='http://h/a b'>go</a>", "go ( http://h/a%20b )"),
            ("caf&eacute;&nbsp;&nbsp;x &lt;b&gt;", "café\u{a0}\u{a0}x <b>"),
            ("<p>x</p><p>&nbsp;</p><p>y</p>", "x\n\ny"),
            (
                "<h1>Title <b>b</b> <a href='http://e.org'>l</a></h1>",
                "****************************\nTitle *b* l ( http://e.org )\n****************************",
            ),
            ("<h1>日本語</h1>", "***\n日本語\n***"),
            ("<strong><a href='http://e.org'>link</a></strong>", "*link ( http://e.org )*"),
            ("<h2></h2>x<b></b>", "x"),
            ("<pre>\n  a  b\nc\n\nd</pre>", "a  b\nc\n\nd"),
            ("<p>Hello <b>Sam</b>, welcome</p>", "Hello *Sam* , welcome"),
            ("I <3 you, a<5, 1 < 2<", "I <3 you, a<5, 1 < 2<"),
            ("a<!-- x -->b", "a b"),
            ("go <a href=https://x.example>here", "go here ( https://x.example )"),
            ("<a href=/1>one<p><a href=/2>two</a> three</a>", "one ( /1 )\n\ntwo ( /2 ) three"),
            ("<button>B</button><textarea>x\ny &amp; <b></textarea>z", "B x y & <b> z"),
            ("", ""),
        ];
        for (html, text) in table {
            assert_eq!(from_html(html, Style::Inbucket), text, "{html}");
        }
    }

    #[test]
    fn deep_nesting_is_linear() {
        for tag in ["<div>", "<h1>", "<b>", "<blockquote>", "<ul><li>", "<font size=1>", "<table><tr><td>"] {
            let html = tag.repeat(100_000) + "deep";
            let text = from_html(&html, Style::Readable);
            assert!(text.ends_with("deep\n") && text.len() < 100, "{tag}");
            let text = from_html(&html, Style::Inbucket);
            assert!(text.ends_with("deep") && text.len() < 100, "{tag}");
        }
    }

    #[test]
    fn conversion_is_linear() {
        let families = [
            ("<!--", "-", "x"),
            ("", "&", "x"),
            ("", "&#", "x"),
            ("&", "a", "x"),
            ("&#", "1", "x"),
            ("<a href='", "&amp", "'>x</a>"),
            ("", "<a href=x>", "y"),
            ("<pre>", "\n", "x"),
            ("<pre>", " ", "x"),
            ("", " ", "x"),
            ("<ul>", "<li>", "x"),
            ("", "</a></ul></pre>", "x"),
            ("", "<h1>x</h1>", "x"),
            ("", "<h1>", "x"),
            ("<h1>", "x</h1>", "x"),
            ("", "<b>x", "x"),
            ("", "<b>x</b>", "x"),
            ("<b>", "</b>", "x"),
            ("", "<", "x"),
            ("", "a<", "x"),
            ("", "< <!---->", "x"),
            ("", "<textarea>x</textarea>", "x"),
        ];
        for (start, piece, end) in families {
            let html = format!("{start}{}{end}", piece.repeat((1 << 19) / piece.len()));
            for style in [Style::Readable, Style::Inbucket] {
                assert!(from_html(&html, style).len() <= html.len() + 1, "{start} {piece} {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn converts_any_sequence_of_tokens(pieces in prop::collection::vec(prop::sample::select(vec![
            "<table>", "</table>", "<tr>", "<td colspan=9999999>", "<a href=x>", "</a>", "<p>", "<b>", "</b>", "<ol start=18446744073709551615>",
            "<ul>", "</ul>", "<li>", "<pre>", "</pre>", "<hr>", "<br>", "<img alt='x'>", "&amp;", "&", "&#x202e;", "<!--", "-->",
            "<blockquote>", "</blockquote>", "<h1>", "</h2>", "<h3>", "<div ", "=", "'", "/", "text ", "日本語", "\n", "\u{200b}", "<", ">", "\"", "<script>",
        ]), 0..60)) {
            from_html(&pieces.concat(), Style::Readable);
            from_html(&pieces.concat(), Style::Inbucket);
        }
    }
}
