//! The links of a message. No request leaves the server: the syntax of links is checked, not whether they work.
//!
//! The links and their order are those of Mailpit: links, style sheets and images of the HTML, then the links in the text,
//! each link once. Differences from Mailpit: a valid link has the status code 0 and the status `Not checked`, and only
//! invalid links count as errors.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use axum::extract::State;
use bytes::Bytes;
use regex::Regex;
use restante_http_core::extractors::query::has_valid_escapes;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::json;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};
use serde::Serialize;

use crate::content;
use crate::error::HandlerResult;
use crate::success;
use crate::target::TargetMessage;

/// The maximum number of links. Mailpit has the same.
const MAX_LINKS: usize = 100;
/// The maximum length of a link. Longer ones are ignored.
const MAX_LINK_BYTES: usize = 8 * 1024;
/// The maximum number of occurrences in the text, of each form.
const MAX_TEXT_MATCHES: usize = 3 * MAX_LINKS;

/// The beginning of a URL up to its first character after the slashes, as a regular expression.
const URL_START: &str = r"(?i-u:https?)://[-0-9A-Za-z_@:%+'!.~#?,&/=;]";
/// The beginning of a URL, not within a word.
static URL: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"(?-u:\b){URL_START}")));
/// A URL that follows another character than `<`.
static PLAIN_URL: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"[^<](?-u:\b)({URL_START}+)")));
/// A URL in angle brackets, which may contain spaces (RFC 2396 appendix E).
static BRACKETED_URL: LazyLock<Regex> = LazyLock::new(|| regex(&format!("<({URL_START}[^>]+)>")));

fn regex(expression: &str) -> Regex {
    Regex::new(expression).expect("a valid expression")
}

/// Returns the links of a message. Marks it as read, as Mailpit does.
pub(crate) async fn link_check(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| render(mime);
    let form = Representation::new("mailpit link check", Work::Extract);
    let body = server.renderer.render(target.message.first(), form, write).await?;
    target.mark_as_read(&server).await?;
    Ok(success::json_body(body))
}

fn render(mime: &Mime) -> Result<Bytes, Problem> {
    let html = content::html(mime);
    let text = content::text(mime, &html);
    let links: Vec<_> = links(&html, &text).into_iter().map(CheckedLink::new).collect();
    json::body(&Report { errors: links.iter().filter(|link| !link.is_valid).count(), links })
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    errors: usize,
    links: Vec<CheckedLink>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CheckedLink {
    #[serde(rename = "URL")]
    url: String,
    status_code: u16,
    status: &'static str,
    #[serde(skip)]
    is_valid: bool,
}

impl CheckedLink {
    fn new(url: String) -> Self {
        let is_valid = is_valid_url(&url);
        Self { url, status_code: 0, status: if is_valid { "Not checked" } else { "Invalid URL" }, is_valid }
    }
}

/// Links without repetitions, up to [`MAX_LINKS`].
#[derive(Default)]
struct LinkSet {
    known: HashSet<String>,
    links: Vec<String>,
}

impl LinkSet {
    fn add(&mut self, link: String) {
        if self.links.len() < MAX_LINKS && link.len() <= MAX_LINK_BYTES && self.known.insert(link.clone()) {
            self.links.push(link);
        }
    }
}

/// Returns the links of a message.
fn links(html: &str, text: &str) -> Vec<String> {
    let mut found = LinkSet::default();
    for (element, attribute) in [("a", "href"), ("link", "href"), ("img", "src")] {
        let links = Tokens::new(html).filter_map(|token| html_link(&token, element, attribute));
        links.filter(|link| URL.is_match(link)).for_each(|link| found.add(link));
    }
    PLAIN_URL.captures_iter(text).take(MAX_TEXT_MATCHES).for_each(|link| found.add(link[1].to_owned()));
    BRACKETED_URL.captures_iter(text).take(MAX_TEXT_MATCHES).for_each(|link| found.add(link[1].replace('\n', "")));
    found.links
}

/// Returns the link in this attribute of a token, if the token starts such an element. Of the elements `link`, only style
/// sheets count.
fn html_link(token: &Token<'_>, element: &str, attribute: &str) -> Option<String> {
    let Token::StartTag(name, attributes) = token else { return None };
    let is_style_sheet = || find_attribute(attributes, "rel") == Some("stylesheet");
    if !name.eq_ignore_ascii_case(element) || (element == "link" && !is_style_sheet()) {
        return None;
    }
    find_attribute(attributes, attribute).map(|value| resolve(value, ReferenceContext::Attribute))
}

/// Returns whether a URL has the syntax of an HTTP URL, as Go parses it.
fn is_valid_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        || url.contains(|c: char| c.is_ascii_control())
    {
        return false;
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(ipv6) => match ipv6.split_once(']') {
            Some((host, port)) => (host, port),
            None => return false,
        },
        None => host_and_port.split_at(host_and_port.find(':').unwrap_or(host_and_port.len())),
    };
    let is_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let path = &rest[..rest.find('?').unwrap_or(rest.len())];
    !host.is_empty()
        && is_port
        && !authority.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
        && has_valid_escapes(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_html_come_first() {
        let html = "<head><link rel=stylesheet href=\"http://remote/style.css\"><link rel=icon href=http://icon>\
            <script src=\"https://script\"></script></head><p href=http://no>\
            <a href=\"http://example.com\">1</a><a HREF='https://example.com'>2</a><a href=\"HTTPS://EXAMPLE.COM\">3</a>\
            <img src=https://example.com/image.jpg><a href=\"http://example.com\">again</a><a href=\"/relative\">\
            <a href=\"mailto:a@b.c\"><a href=\"http://link with spaces\"><a href=\"http://example.com/?a=b&amp;c=d\">";
        let expected = [
            "http://example.com",
            "https://example.com",
            "HTTPS://EXAMPLE.COM",
            "http://link with spaces",
            "http://example.com/?a=b&c=d",
            "http://remote/style.css",
            "https://example.com/image.jpg",
        ];
        assert_eq!(links(html, ""), expected);
    }

    #[test]
    fn links_of_text_follow_other_characters() {
        let text = "A line with http://example.com https://example.com\n\tHTTPS://EXAMPLE.COM\n[http://localhost]\n\
            www.example.com |||http://example.com/?some=query-string||| xhttp://no.example\n\
            <https://example.com/ link with\n spaces> <http://x> (http://last.example).";
        let expected = [
            "http://example.com",
            "https://example.com",
            "HTTPS://EXAMPLE.COM",
            "http://localhost",
            "http://example.com/?some=query-string",
            "http://last.example",
            "https://example.com/ link with spaces",
        ];
        assert_eq!(links("", text), expected);
        assert_eq!(links("", "http://first.example http://second.example"), ["http://second.example"]);
        let many = (0..200).map(|number| format!("http://example.com/{number}")).collect::<Vec<_>>().join(" ");
        assert_eq!(links("", &many).len(), MAX_LINKS);
        // Takes very long if every link is examined up to the end of the text.
        assert_eq!(links("", &"<http://a".repeat(400_000)).len(), 0);
    }

    #[test]
    fn syntax_of_urls_is_checked() {
        let valid = [
            "http://example.com",
            "HTTPS://EXAMPLE.COM",
            "https://user:pw@example.com:8443/a%20b?x=%zz#y",
            "http://[::1]:80/",
            "https://example.com/ link with spaces",
            "http://localhost",
        ];
        let invalid = [
            "http://",
            "http://link with spaces",
            "http://example.com:port/",
            "http://example.com/%zz",
            "http://example.com/%2",
            "http://[::1",
            "see http://example.com",
            "http://a\tb",
            "ftp://example.com",
        ];
        for url in valid {
            assert!(is_valid_url(url), "{url}");
        }
        for url in invalid {
            assert!(!is_valid_url(url), "{url}");
        }
    }
}
