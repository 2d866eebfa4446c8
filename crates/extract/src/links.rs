//! The links of a message: those of its HTML with the text on them, URLs in its plain text, and URLs in the header
//! fields of mailing lists.

use std::collections::HashSet;

use restante_mail::mime::Mime;
use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};

use crate::list_header;
use crate::relative_url::{resolve_url, scheme};
use crate::text_url::{MAX_URL_BYTES, TextUrl};

/// The maximum number of links of a message.
pub const MAX_LINKS: usize = 2000;
/// The maximum number of links that are examined, including duplicates.
const MAX_EXAMINED: usize = 10 * MAX_LINKS;
/// The maximum number of HTML tokens that are examined.
pub(crate) const MAX_TOKENS: usize = 500_000;
/// The maximum length of the text of a link, in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// Header fields that contain links (RFC 2369 section 3).
const LIST_HEADERS: [&str; 3] = ["List-Unsubscribe", "List-Help", "List-Archive"];

/// A link of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    /// The URL. A relative URL is resolved if the document declares a base URL.
    pub href: String,
    /// The displayed text, on one line.
    pub text: String,
    /// The alternative text of its image, if any.
    pub image_alt: Option<String>,
    /// The part of the message that contains the link.
    pub source: LinkSource,
}

/// The part of a message that contains a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSource {
    /// In the HTML.
    Html,
    /// In the plain text.
    Text,
    /// In a header field.
    Header,
}

/// The kind of a link, by the scheme of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkScheme {
    /// `http` or `https`.
    Http,
    /// `mailto`.
    Mailto,
    /// Any other scheme, or no scheme.
    Other,
}

impl Link {
    /// Returns the kind of the link.
    pub fn kind(&self) -> LinkScheme {
        match scheme(&self.href) {
            Some(scheme) if ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)) => LinkScheme::Http,
            Some(scheme) if scheme.eq_ignore_ascii_case("mailto") => LinkScheme::Mailto,
            _ => LinkScheme::Other,
        }
    }
}

/// Returns the links of a message: first those of the HTML, then those of the text and of the header. A link with the
/// same URL, text and source is returned once.
pub fn links(mime: &Mime) -> Vec<Link> {
    let mut links = LinkCollector::from_bodies(&mime.html(), mime.text_body().as_deref());
    for field in mime.header().iter().filter(|field| LIST_HEADERS.iter().any(|name| field.has_name(name))) {
        for href in list_header::parse_urls(&field.value()) {
            links.add(Link { text: href.clone(), href, image_alt: None, source: LinkSource::Header });
        }
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

    fn add(&mut self, link: Link) {
        self.examined += 1;
        if self.found.len() < MAX_LINKS && link.href.len() <= MAX_URL_BYTES && self.seen_links.insert(link.clone()) {
            self.found.push(link);
        }
    }

    fn read_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(found) = TextUrl::find_first(rest).filter(|_| !self.is_full()) {
            let (url, tail) = rest[found.start..].split_at(found.len);
            if found.is_link {
                let (href, text) = (url.to_owned(), truncate_text(url));
                self.add(Link { href, text, image_alt: None, source: LinkSource::Text });
            }
            rest = tail;
        }
    }

    fn read_html(&mut self, html: &str) {
        let mut base = None;
        let mut open: Option<OpenLink> = None;
        for token in Tokens::new(html).take(MAX_TOKENS) {
            if self.is_full() {
                return;
            }
            match token {
                Token::Text(raw) => {
                    if let Some(open) = &mut open {
                        open.push(raw);
                    }
                }
                Token::StartTag(name, attributes) => match name.to_ascii_lowercase().as_str() {
                    // Only the first one is used (HTML Standard, section 4.2.3).
                    "base" if base.is_none() => base = href(attributes, None),
                    "a" => {
                        self.finish_link(open.take());
                        open = href(attributes, base.as_deref()).map(OpenLink::new);
                    }
                    "area" => {
                        let area = href(attributes, base.as_deref()).map(OpenLink::new);
                        self.finish_link(area.map(|area| area.with_image(attributes)));
                    }
                    "img" => open = open.map(|open| open.with_image(attributes)),
                    // Blocks and cells inside of a link are separated by a space, as a reader sees them.
                    "br" | "p" | "div" | "td" | "tr" | "li" | "h1" | "h2" | "h3" => {
                        if let Some(open) = &mut open {
                            open.push(" ");
                        }
                    }
                    _ => {}
                },
                Token::EndTag(name) if name.eq_ignore_ascii_case("a") => self.finish_link(open.take()),
                Token::EndTag(_) | Token::RawText(_) => {}
            }
        }
        self.finish_link(open);
    }

    fn finish_link(&mut self, open: Option<OpenLink>) {
        let Some(OpenLink { href, text, image_alt }) = open else { return };
        let text = match (normalize_text(&text), &image_alt) {
            (text, Some(alt)) if text.is_empty() => alt.clone(),
            (text, _) => text,
        };
        self.add(Link { href, text, image_alt, source: LinkSource::Html });
    }
}

/// A link of the HTML that is not closed yet.
struct OpenLink {
    href: String,
    text: String,
    image_alt: Option<String>,
}

impl OpenLink {
    fn new(href: String) -> Self {
        Self { href, text: String::new(), image_alt: None }
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

/// Returns the URL of a tag. Surrounding whitespace and line breaks are ignored (URL Standard, section 4.4). A fragment
/// of the message itself is not a link.
fn href(attributes: &str, base: Option<&str>) -> Option<String> {
    let raw = find_attribute(attributes, "href").filter(|raw| raw.len() <= 8 * MAX_URL_BYTES)?;
    let href = resolve(raw, ReferenceContext::Attribute);
    let href: String = href.trim().chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    (!href.is_empty() && !href.starts_with('#')).then(|| resolve_url(&href, base))
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
        let found: Vec<_> = links_of(message).into_iter().map(|link| (link.kind(), link.source, link.href)).collect();
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
