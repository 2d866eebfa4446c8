//! Readable text for mail that only has HTML. The renderer is another project's and its time grows with the square of
//! the nesting, so it only sees documents that a linear scan found harmless; the others lose their tags and no more.

use std::panic::{AssertUnwindSafe, catch_unwind};

use html2text::config;
use html2text::render::TextDecorator;

use super::tags::{Token, Tokens};

/// The largest document that is rendered.
const MAX_SIZE: usize = 1024 * 1024;
/// How many tags a rendered document may have.
const MAX_TAGS: usize = 20_000;
/// How many elements may be open at once in a rendered document.
const MAX_OPEN: usize = 100;
/// How many formatting elements may be open at once: each of them is opened again in every block behind it.
const MAX_FORMATTING: usize = 20;
/// Lines are not wrapped for a screen: who reads the text through an interface searches it for sentences and links.
const WIDTH: usize = 100_000;

/// The text of an HTML document.
pub(super) fn from_html(html: &str) -> String {
    if is_harmless(html)
        && let Some(text) = render(html)
    {
        return text;
    }
    strip_tags(html)
}

/// Whether rendering takes about linear time: bounded size, tags and nesting. A false `false` costs some beauty.
fn is_harmless(html: &str) -> bool {
    if html.len() > MAX_SIZE {
        return false;
    }
    let mut open: Vec<&str> = Vec::new();
    let mut formatting = 0_usize;
    for (count, token) in Tokens::new(html).enumerate() {
        match token {
            _ if count > 2 * MAX_TAGS => return false,
            Token::Text(_) => {}
            Token::Open(name) if is_one_of(name, UNUSUAL) => return false,
            Token::Open(name) if is_one_of(name, CHILDLESS) => {}
            Token::Open(name) if is_one_of(name, FORMATTING) => formatting += 1,
            Token::Open(name) => open.push(name),
            Token::Close(name) if is_one_of(name, FORMATTING) => formatting = formatting.saturating_sub(1),
            Token::Close(name) => {
                if let Some(at) = open.iter().rposition(|open| open.eq_ignore_ascii_case(name)) {
                    open.truncate(at);
                }
            }
        }
        if open.len() > MAX_OPEN || formatting > MAX_FORMATTING {
            return false;
        }
    }
    true
}

/// Renders with the library; `None` when it gives up. It is foreign code on hostile input: a panic in it must not
/// cost more than the beauty of this one text.
fn render(html: &str) -> Option<String> {
    let rendered = catch_unwind(AssertUnwindSafe(|| {
        config::with_decorator(Plain::default())
            .raw_mode(true)
            .allow_width_overflow()
            .string_from_read(html.as_bytes(), WIDTH)
            .ok()
    }));
    let text = rendered.ok().flatten()?;
    Some(tidy(&text))
}

/// Removes the tags, breaks lines at blocks and resolves the common character references.
fn strip_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    for token in Tokens::new(html) {
        match token {
            Token::Text(raw) => push_collapsed(&mut text, raw),
            Token::Open(name) | Token::Close(name) if !is_one_of(name, INLINE) => text.push('\n'),
            Token::Open(_) | Token::Close(_) => {}
        }
    }
    tidy(&text)
}

/// Trims every line and lets at most one empty line stand between two others.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() {
            empty += 1;
            continue;
        }
        if !tidied.is_empty() {
            tidied.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        tidied.push_str(line);
        empty = 0;
    }
    if !tidied.is_empty() {
        tidied.push('\n');
    }
    tidied
}

/// Appends text with runs of white space as one blank and character references resolved.
fn push_collapsed(text: &mut String, raw: &str) {
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        let (c, len) = if c == '&' { reference(rest).unwrap_or(('&', 1)) } else { (c, c.len_utf8()) };
        rest = &rest[len..];
        if !c.is_whitespace() {
            text.push(c);
        } else if !text.ends_with(char::is_whitespace) {
            text.push(' ');
        }
    }
}

/// The character that a reference at the start of the text stands for, and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let window = text.as_bytes().iter().take(12);
    let end = window.clone().position(|&b| b == b';')?;
    let name = text.get(1..end)?;
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some((c, end + 1))
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Elements that are parsed by rules of their own, which the scan does not follow. Mail has no honest use for them.
const UNUSUAL: &[&str] = &["svg", "math", "template", "plaintext", "select", "frameset"];
/// Elements that hold nothing, or whose start tag ends the one before, so that they do not nest by themselves.
const CHILDLESS: &[&str] = &[
    "area", "base", "basefont", "bgsound", "body", "br", "col", "dd", "dt", "embed", "head", "hr", "html", "img",
    "input", "li", "link", "meta", "option", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "wbr",
];
const FORMATTING: &[&str] =
    &["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Elements that do not break the line.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "big", "cite", "code", "em", "font", "i", "img", "kbd", "label", "mark", "nobr", "q", "s",
    "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "wbr",
];

/// How elements look in the text: links are followed by their address, everything else is left to the words.
#[derive(Default)]
struct Plain {
    /// The address of the open link.
    link: String,
}

impl TextDecorator for Plain {
    type Annotation = ();

    fn decorate_link_start(&mut self, url: &str) -> (String, ()) {
        url.clone_into(&mut self.link);
        (String::new(), ())
    }

    fn decorate_link_end(&mut self) -> String {
        let link = std::mem::take(&mut self.link);
        if link.is_empty() || link.starts_with('#') { String::new() } else { format!(" ( {link} )") }
    }

    fn decorate_em_start(&self) -> (String, ()) {
        (String::new(), ())
    }

    fn decorate_em_end(&self) -> String {
        String::new()
    }

    fn decorate_strong_start(&self) -> (String, ()) {
        (String::new(), ())
    }

    fn decorate_strong_end(&self) -> String {
        String::new()
    }

    fn decorate_strikeout_start(&self) -> (String, ()) {
        (String::new(), ())
    }

    fn decorate_strikeout_end(&self) -> String {
        String::new()
    }

    fn decorate_code_start(&self) -> (String, ()) {
        (String::new(), ())
    }

    fn decorate_code_end(&self) -> String {
        String::new()
    }

    fn decorate_preformat_first(&self) {}

    fn decorate_preformat_cont(&self) {}

    fn decorate_image(&mut self, _source: &str, title: &str) -> (String, ()) {
        (title.to_owned(), ())
    }

    fn header_prefix(&self, _level: usize) -> String {
        String::new()
    }

    fn quote_prefix(&self) -> String {
        "> ".to_owned()
    }

    fn unordered_item_prefix(&self) -> String {
        "* ".to_owned()
    }

    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }

    fn make_subblock_decorator(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn html_as_text() {
        let table = [
            ("<p>Hello <b>world</b></p><p>Bye</p>", "Hello world\n\nBye\n"),
            ("one<br>two", "one\ntwo\n"),
            (
                "<a href=\"https://example.org/x?a=1&amp;b=2\">Confirm</a>",
                "Confirm ( https://example.org/x?a=1&b=2 )\n",
            ),
            ("<ul><li>one<li>two</ul>", "* one\n* two\n"),
            ("<ol><li>one<li>two</ol>", "1. one\n2. two\n"),
            ("<blockquote>quoted</blockquote>", "> quoted\n"),
            ("<table><tr><td>a</td><td>b</td></tr></table>", "a\nb\n"),
            ("<style>p {}</style><script>x()</script><p>caf&eacute;</p>", "café\n"),
            ("<img src=x alt=\"Logo\"><h1>Title</h1>", "Logo\n\nTitle\n"),
            ("", ""),
        ];
        for (html, text) in table {
            assert_eq!(from_html(html), text, "{html}");
        }
    }

    #[test]
    fn long_paragraphs_and_rules_stay_readable() {
        let sentence = "word ".repeat(1000);
        assert_eq!(from_html(&format!("<p>{sentence}</p>")).lines().count(), 1);
        assert!(from_html("<p>a</p><hr><p>b</p>").len() < 1000);
    }

    #[test]
    fn tags_are_stripped_without_a_tree() {
        let table = [
            ("<div>Hello <b>world</b></div><div>Bye</div>", "Hello world\n\nBye\n"),
            ("a&amp;b &#233; &#xe9; &nosuch; &", "a&b é é &nosuch; &\n"),
            ("&#1114112; &#x110000;", "&#1114112; &#x110000;\n"),
            ("<script>x</script>  a \n b ", "a b\n"),
            ("1 &lt; 2", "1 < 2\n"),
        ];
        for (html, text) in table {
            assert_eq!(strip_tags(html), text, "{html}");
        }
    }

    #[test]
    fn documents_that_would_take_long_are_not_rendered() {
        let fonts: String = (0..1000).map(|n| format!("<font size={n}>")).collect();
        let table = [
            ("depth", "<div>".repeat(100_000)),
            ("hidden depth", "<div></span></div ".repeat(1000) + &"<div>".repeat(200)),
            ("depth behind a raw element", "<div><script></div></script>".repeat(1000)),
            ("depth behind an attribute", "<div><br title='</div>'>".repeat(1000)),
            ("tags", "<br>".repeat(100_000)),
            ("size", "x".repeat(MAX_SIZE + 1)),
            ("formatting", fonts),
            ("foreign", "<svg>".to_owned()),
        ];
        for (what, html) in table {
            assert!(!is_harmless(&html), "{what}");
        }
        assert!(is_harmless(&"<table><tr><td><p>x<p>y<li>z</td></tr></table>".repeat(100)));
        assert!(from_html(&("<div>".repeat(100_000) + "deep")).contains("deep"));
    }

    proptest! {
        #[test]
        fn no_html_is_too_strange(pieces in prop::collection::vec(prop::sample::select(vec![
            "<table>", "</table>", "<tr>", "<td colspan=9999999>", "<td rowspan=0>", "<a href=x>", "</a>", "<p>", "<b>", "</b>",
            "<ol start=-99999999999>", "<ul>", "<li>", "<pre>", "</pre>", "<hr>", "<br>", "<h1>", "<img alt='x'>", "&amp;",
            "&#x202e;", "<!--", "-->", "<blockquote>", "<div>", "</div>", "text ", "日本語", "\n", "<sup>", "<dl>", "<dt>", "<dd>",
            "\u{200b}", "<", ">", "\"",
        ]), 0..60)) {
            from_html(&pieces.concat());
        }
    }
}
