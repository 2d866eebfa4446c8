//! The links of a message: those of its HTML with the text on them, URLs in its plain text, and URLs in the header
//! fields of mailing lists.

use std::collections::HashSet;
use std::ops::Range;

use restante_mail::mime::Mime;
use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};
use restante_mail::mime::url;

use crate::link::{Link, LinkSource};
use crate::list_header;
use crate::main_link::{self, ButtonStyle, Evidence, is_button_tag};
use crate::relative_url::resolve_url;
use crate::text_url::{MAX_URL_BYTES, TextUrl};

/// The maximum number of links of a message.
pub const MAX_LINKS: usize = 2000;
/// The maximum number of links that are examined, including duplicates.
const MAX_EXAMINED: usize = 10 * MAX_LINKS;
/// The maximum number of HTML tokens that are examined.
pub(crate) const MAX_TOKENS: usize = 500_000;
/// The maximum length of the text of a link, in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// The maximum length of the text around a link that is kept, in bytes.
const MAX_CONTEXT_BYTES: usize = 300;

/// The elements that start a new block.
const BLOCKS: [&str; 23] = [
    "br",
    "p",
    "div",
    "table",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "center",
    "hr",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "header",
    "footer",
    "article",
];

/// Header fields that contain links (RFC 2369 section 3).
const LIST_HEADERS: [&str; 3] = ["List-Unsubscribe", "List-Help", "List-Archive"];

/// Returns the links of a message: first those of the HTML, then those of the text and of the header. A link with the
/// same URL, text and source is returned once.
pub fn links(mime: &Mime) -> Vec<Link> {
    let mut links = LinkCollector::from_bodies(&mime.html(), mime.text_body().as_deref());
    for field in mime.header().iter().filter(|field| LIST_HEADERS.iter().any(|name| field.has_name(name))) {
        for href in list_header::parse_urls(&field.value()) {
            let text = href.clone();
            links.add(Link::new(href, text, None, LinkSource::Header), Evidence::default());
        }
    }
    let main = main_link::choose(&links.found, &links.evidence);
    if let Some(main) = main.and_then(|index| links.found.get_mut(index)) {
        main.is_main = true;
    }
    links.found
}

/// Returns the links of the HTML and of the text.
pub(crate) fn links_in_bodies(html: &str, text: Option<&str>) -> Vec<Link> {
    LinkCollector::from_bodies(html, text).found
}

#[derive(Default)]
struct LinkCollector {
    found: Vec<Link>,
    /// The evidence for each of the links.
    evidence: Vec<Evidence>,
    seen_links: HashSet<Link>,
    examined: usize,
}

impl LinkCollector {
    fn from_bodies(html: &str, text: Option<&str>) -> Self {
        let mut links = Self::default();
        links.read_html(html);
        links.read_text(text.unwrap_or_default());
        links
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MAX_LINKS || self.examined >= MAX_EXAMINED
    }

    fn add(&mut self, link: Link, evidence: Evidence) {
        self.examined += 1;
        if self.found.len() < MAX_LINKS && link.href.len() <= MAX_URL_BYTES && self.seen_links.insert(link.clone()) {
            self.found.push(link);
            self.evidence.push(evidence);
        }
    }

    fn read_text(&mut self, text: &str) {
        let signature = signature_start(text);
        let mut at = 0;
        while let Some(found) = TextUrl::find_first(&text[at..]).filter(|_| !self.is_full()) {
            let start = at + found.start;
            at = start + found.len;
            if found.is_link {
                let url = &text[start..at];
                let link = Link::new(url.to_owned(), truncate_text(url), None, LinkSource::Text);
                let context = text_context(text, start..at);
                self.add(link, Evidence { context, is_in_signature: start >= signature, ..Evidence::default() });
            }
        }
    }

    fn read_html(&mut self, html: &str) {
        let mut base = None;
        let mut open: Option<OpenLink> = None;
        let mut block = Block::default();
        for token in Tokens::new(html).take(MAX_TOKENS) {
            if self.is_full() {
                break;
            }
            match token {
                Token::Text(raw) => {
                    block.push(raw);
                    if let Some(open) = &mut open {
                        open.push(raw);
                    }
                }
                Token::StartTag(name, attributes) => match name.to_ascii_lowercase().as_str() {
                    // Only the first one is used (HTML Standard, section 4.2.3).
                    "base" if base.is_none() => base = href(attributes, None),
                    "a" => {
                        self.finish_link(open.take());
                        let is_button = block.is_button(ButtonStyle::new(attributes));
                        open = href(attributes, base.as_deref()).map(|href| OpenLink::new(href, is_button));
                    }
                    "area" => {
                        let area = href(attributes, base.as_deref()).map(|href| OpenLink::new(href, false));
                        self.finish_link(area.map(|area| area.with_image(attributes)));
                    }
                    "img" => open = open.map(|open| open.with_image(attributes)),
                    name => {
                        if let Some(open) = &mut open {
                            open.start_tag(name, attributes);
                        } else if BLOCKS.contains(&name) {
                            self.finish_block(&mut block, ButtonStyle::new(attributes));
                        }
                    }
                },
                Token::EndTag(name) if name.eq_ignore_ascii_case("a") => self.finish_link(open.take()),
                Token::EndTag(name) => {
                    if open.is_none() && BLOCKS.contains(&name.to_ascii_lowercase().as_str()) {
                        self.finish_block(&mut block, ButtonStyle::default());
                    }
                }
                Token::RawText(_) => {}
            }
        }
        self.finish_link(open);
        self.finish_block(&mut block, ButtonStyle::default());
    }

    /// Ends a block: its text is the context of the links in it. Starts another one, whose element has this style.
    fn finish_block(&mut self, block: &mut Block, style: ButtonStyle) {
        let context = normalize_text(&block.text);
        for evidence in &mut self.evidence[block.first_link..] {
            evidence.context.clone_from(&context);
        }
        *block = Block { first_link: self.evidence.len(), text: String::new(), style };
    }

    fn finish_link(&mut self, open: Option<OpenLink>) {
        let Some(OpenLink { href, text, image_alt, is_button }) = open else { return };
        let text = match (normalize_text(&text), &image_alt) {
            (text, Some(alt)) if text.is_empty() => alt.clone(),
            (text, _) => text,
        };
        let link = Link::new(href, text, image_alt, LinkSource::Html);
        self.add(link, Evidence { is_button, ..Evidence::default() });
    }
}

/// A block of the HTML, such as a paragraph or a table cell, up to the next one.
#[derive(Default)]
struct Block {
    /// The number of links before the block.
    first_link: usize,
    /// The start of the text.
    text: String,
    /// The style of the element.
    style: ButtonStyle,
}

impl Block {
    fn push(&mut self, raw: &str) {
        if self.text.len() < MAX_CONTEXT_BYTES {
            let enough = truncate(raw, MAX_CONTEXT_BYTES);
            self.text.push_str(&resolve(enough, ReferenceContext::Text));
        }
    }

    /// Returns whether a link with this style that starts now is a button. The block is a part of it if there is no other
    /// text before the link.
    fn is_button(&self, link: ButtonStyle) -> bool {
        link.is_button() || self.text.trim().is_empty() && link.is_button_in(self.style)
    }
}

/// A link of the HTML that is not closed yet.
struct OpenLink {
    href: String,
    text: String,
    image_alt: Option<String>,
    is_button: bool,
}

impl OpenLink {
    fn new(href: String, is_button: bool) -> Self {
        Self { href, text: String::new(), image_alt: None, is_button }
    }

    /// Handles a start tag inside of the link.
    fn start_tag(&mut self, name: &str, attributes: &str) {
        self.is_button |= is_button_tag(name, attributes);
        // Blocks and cells inside of a link are separated by a space, as a reader sees them.
        if matches!(name, "br" | "p" | "div" | "td" | "tr" | "li" | "h1" | "h2" | "h3") {
            self.push(" ");
        }
    }

    fn push(&mut self, raw: &str) {
        if self.text.len() < MAX_TEXT_BYTES {
            // A character reference is longer than the character it represents, so this is enough.
            let enough = truncate(raw, 8 * MAX_TEXT_BYTES);
            self.text.push_str(&resolve(enough, ReferenceContext::Text));
        }
    }

    /// Sets the alternative text of an image, unless there is one already.
    fn with_image(mut self, attributes: &str) -> Self {
        let alt = find_attribute(attributes, "alt")
            .map(|alt| normalize_text(&resolve(truncate(alt, 8 * MAX_TEXT_BYTES), ReferenceContext::Attribute)));
        self.image_alt = self.image_alt.or(alt.filter(|alt| !alt.is_empty()));
        self
    }
}

/// Returns the URL of a tag, without blanks. A fragment of the message itself is not a link.
fn href(attributes: &str, base: Option<&str>) -> Option<String> {
    let raw = find_attribute(attributes, "href").filter(|raw| raw.len() <= 8 * MAX_URL_BYTES)?;
    let href = resolve(raw, ReferenceContext::Attribute);
    let href = url::without_blanks(&href);
    (!href.is_empty() && !href.starts_with('#')).then(|| resolve_url(&href, base))
}

/// Returns the start of the signature of a text, or its end if there is none (RFC 3676 section 4.3).
fn signature_start(text: &str) -> usize {
    text.find("\n-- \n").or_else(|| text.find("\n--\n")).unwrap_or(text.len())
}

/// Returns the text around a URL: its line or, if the URL is alone on its line, the line before that is not blank. Reads
/// only the text near the URL.
fn text_context(text: &str, url: Range<usize>) -> String {
    let near_start = text.ceil_char_boundary(url.start.saturating_sub(2 * MAX_CONTEXT_BYTES));
    let near_end = text.floor_char_boundary(url.end.saturating_add(MAX_CONTEXT_BYTES));
    let (before, after) = (&text[near_start..url.start], &text[url.end..near_end]);
    let (previous, before) = before.rsplit_once('\n').unwrap_or(("", before));
    let after = after.split('\n').next().unwrap_or_default();
    let is_alone = !before.chars().chain(after.chars()).any(char::is_alphanumeric);
    if is_alone {
        previous.trim_end().rsplit('\n').next().unwrap_or_default().to_owned()
    } else {
        format!("{before} {after}")
    }
}

/// Puts a text on one line, with one space between words, and truncates it. Invisible characters are removed.
fn normalize_text(text: &str) -> String {
    let is_visible = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' | '\u{34f}');
    let visible: String = text.chars().filter(is_visible).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate_text(&line)
}

fn truncate_text(text: &str) -> String {
    truncate(text, MAX_TEXT_BYTES).to_owned()
}

fn truncate(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::link::LinkScheme;

    fn links_of(message: &str) -> Vec<Link> {
        links(&Mime::parse(Bytes::copy_from_slice(message.as_bytes())))
    }

    /// Formats the links of a document as `text|href`, with `(alt)` if there is an alternative text.
    fn format_links_of_html(html: &str) -> Vec<String> {
        let format_link = |link: Link| {
            let alt = link.image_alt.map(|alt| format!("({alt})")).unwrap_or_default();
            format!("{}{alt}|{}", link.text, link.href)
        };
        links_of(&format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}"))
            .into_iter()
            .map(format_link)
            .collect()
    }

    #[test]
    fn finds_links_of_html() {
        let table: &[(&str, &[&str])] = &[
            ("<a href=http://x/>Go</a>", &["Go|http://x/"]),
            (
                "<A HREF=' http://x/?a=1&amp;b=2\n '>Verify <b>your\n  mail</b></A>",
                &["Verify your mail|http://x/?a=1&b=2"],
            ),
            ("<a href=http://x><img src=y alt='Sign&nbsp;up'></a>", &["Sign up(Sign up)|http://x"]),
            ("<a href=http://x><img alt=''><img alt=Logo> Shop</a>", &["Shop(Logo)|http://x"]),
            ("<a href=http://x><div>Two</div><div>lines</div></a>", &["Two lines|http://x"]),
            ("<a href=http://x>one<a href=http://y>two", &["one|http://x", "two|http://y"]),
            ("<map><area href=http://x alt=Left><area href=http://y></map>", &["Left(Left)|http://x", "|http://y"]),
            ("<base href='https://h/a/'><base href='https://no/'><a href=b>c</a>", &["c|https://h/a/b"]),
            ("<a href='#top'>up</a><a href=''>none</a><a name=x>none</a>", &[]),
            ("<a href=http://x>a</a> <a href=http://x>a</a> <a href=http://x>b</a>", &["a|http://x", "b|http://x"]),
            ("<!-- <a href=http://x>a</a> --><style><a href=http://y></style>", &[]),
            ("<a href='http://h/a b'>Go</a>", &["Go|http://h/a%20b"]),
            ("<a href=http://x>z\u{200b}&zwnj;w</a>", &["zw|http://x"]),
        ];
        for (html, expected) in table {
            assert_eq!(format_links_of_html(html), *expected, "{html}");
        }
    }

    #[test]
    fn finds_links_of_all_sources_in_order() {
        let message = "List-Unsubscribe: <mailto:off@example.org>, <https://example.org/off>\r\n\
            List-Post: <mailto:list@example.org>\r\n\
            Content-Type: multipart/alternative; boundary=b\r\n\r\n\
            --b\r\n\r\nhttps://example.org/a (ftp://no) mailto:b@example.org.\r\n\
            --b\r\nContent-Type: text/html\r\n\r\n<a href=https://example.org/a>A</a> <a href=tel:123>call</a>\r\n--b--";
        let found: Vec<_> = links_of(message).into_iter().map(|link| (link.kind, link.source, link.href)).collect();
        let expected = [
            (LinkScheme::Http, LinkSource::Html, "https://example.org/a"),
            (LinkScheme::Other, LinkSource::Html, "tel:123"),
            (LinkScheme::Http, LinkSource::Text, "https://example.org/a"),
            (LinkScheme::Mailto, LinkSource::Text, "mailto:b@example.org"),
            (LinkScheme::Mailto, LinkSource::Header, "mailto:off@example.org"),
            (LinkScheme::Http, LinkSource::Header, "https://example.org/off"),
        ];
        assert_eq!(found, expected.map(|(kind, source, href)| (kind, source, href.to_owned())));
    }

    #[test]
    fn limits_the_number_of_links() {
        let many =
            (0..10_000).map(|n| format!("<a href=http://x/{n}>{}", "y".repeat(2000))).collect::<Vec<_>>().concat();
        let found = links_of(&format!("Content-Type: text/html\r\n\r\n{many}"));
        assert_eq!(found.len(), MAX_LINKS);
        assert!(found.iter().all(|link| link.text.len() <= MAX_TEXT_BYTES));
        let long = format!("<a href=http://x/{}>y</a>", "z".repeat(MAX_URL_BYTES));
        assert!(format_links_of_html(&long).is_empty());
    }
}
