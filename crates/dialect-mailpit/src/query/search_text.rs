//! The text of a message in which words and phrases are searched, as Mailpit builds it: some header fields, the text of
//! the HTML with the targets of its links or else the plain text, and the names of attached files.

use restante_mail::message::Message;
use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};
use restante_mail::mime::{HeaderSummary, Mime};

use crate::content::Files;
use crate::query::parse::clean;

/// The header fields that are searched. Only the first field of each name is.
const FIELDS: [&str; 6] = ["From", "Subject", "To", "Cc", "Bcc", "Reply-To"];

/// Elements that may be in the head of a document. Others end it.
const HEAD_ELEMENTS: [&str; 8] = ["base", "link", "meta", "noscript", "script", "style", "template", "title"];

/// Elements whose text does not continue in a tag that follows directly, separated by spaces.
const BLOCKS: &str = "\
    address article aside blockquote div dl dt footer h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre table td \
    tfoot th thead ul video";

/// Returns the search text of a message, in lower case. `header` is the summary of its header. The cost is linear in the size
/// of the message.
pub(super) fn search_text(message: &Message, header: &HeaderSummary, mime: &Mime) -> String {
    let mut text = String::new();
    let mut push = |part: &str| {
        text.push_str(part);
        text.push(' ');
    };
    for name in FIELDS {
        if let Some(field) = mime.header().iter().find(|field| field.has_name(name)) {
            push(&field.decoded_value());
        }
        if name == "Bcc" {
            // Mailpit adds the recipients that no field names.
            message.recipients_without(header.recipients()).into_iter().for_each(&mut push);
        }
    }
    push(message.first().details.sender());
    let html_text = if mime.has_html() { strip_html(&mime.html()) } else { String::new() };
    if html_text.trim().is_empty() {
        push(&mime.text());
    } else {
        push(&html_text);
    }
    let attached = Files::of(mime).attachments.into_iter();
    attached.filter_map(|index| mime.parts()[index].filename.as_deref()).for_each(push);
    clean(&text)
}

/// Returns the text between the tags of a document, with the targets of links after their texts.
fn strip_html(html: &str) -> String {
    let (mut text, mut link) = (String::new(), None);
    let (mut is_head, mut is_hidden, mut follows_block) = (false, false, false);
    for token in Tokens::new(html) {
        if follows_block && !matches!(token, Token::Text(_)) {
            text.push(' ');
        }
        follows_block = false;
        match token {
            Token::Text(raw) if !is_head && !is_hidden => text.push_str(&resolve(raw, ReferenceContext::Text)),
            Token::Text(_) | Token::RawText(_) => {}
            Token::StartTag(name, attributes) => {
                let name = name.to_ascii_lowercase();
                is_head = name == "head" || is_head && HEAD_ELEMENTS.contains(&name.as_str());
                is_hidden |= name == "noscript";
                match name.as_str() {
                    "br" | "img" => text.push(' '),
                    "a" => {
                        end_link(&mut text, &mut link);
                        let target = find_attribute(attributes, "href");
                        let target = target.map(|target| resolve(target, ReferenceContext::Attribute));
                        link = target.filter(|target| has_web_scheme(target));
                    }
                    _ => {}
                }
            }
            Token::EndTag(name) => {
                let name = name.to_ascii_lowercase();
                is_head &= name != "head";
                is_hidden &= name != "noscript";
                follows_block = BLOCKS.split(' ').any(|block| block == name);
                if name == "a" {
                    end_link(&mut text, &mut link);
                }
            }
        }
    }
    end_link(&mut text, &mut link);
    text.chars().map(|c| if is_invisible(c) { ' ' } else { c }).collect()
}

fn end_link(text: &mut String, link: &mut Option<String>) {
    if let Some(target) = link.take() {
        text.push(' ');
        text.push_str(&target);
        text.push(' ');
    }
}

fn has_web_scheme(target: &str) -> bool {
    target.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"))
}

/// Returns whether a character separates words although it is neither a space nor visible.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_html() {
        let table = [
            ("<p>Hello <b>big</b> world</p>", "hello big world"),
            ("<p>one</p><p>two</p>", "one two"),
            ("<p>one</p>two", "onetwo"),
            ("<span>one</span><span>two</span>", "onetwo"),
            ("one<br>two<br />three<img src=x>four", "one two three four"),
            ("a &amp; b&nbsp;c &lt;d&gt;", "a & b c d"),
            ("zero\u{200b}width", "zero width"),
            ("<a href='HTTPS://example.org/?a=1&amp;b=2'>Click</a>here", "click https://example.org/?a=1&b=2 here"),
            ("<a href='mailto:a@b'>Mail</a><a href=/x>y</a>", "maily"),
            ("<a href=http://x.org>open", "open http://x.org"),
            ("<html><head><title>T</title><style>p{}</style>H</head><body>B<script>s</script></body>", "b"),
            ("<head><meta charset=utf-8><p>Visible", "visible"),
            ("<noscript>Hidden</noscript>Shown<!-- comment -->", "shown"),
            ("", ""),
        ];
        for (html, expected) in table {
            assert_eq!(clean(&strip_html(html)), expected, "{html}");
        }
    }
}
