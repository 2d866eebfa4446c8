//! The last step for the HTML of a mail: addresses and styles. What comes in was written by the sanitiser, so every tag
//! is whole and every value quoted; here links get their manners, parts of the mail their places, and what would be
//! loaded from elsewhere is kept or blocked.

use std::collections::BTreeSet;

use restante_mail::mime::html_tokens::{Attributes, Token, Tokens};

use super::Inline;
use super::address::Address;
use super::css;
use super::escape::{push_escaped, unescaped};

/// How many hosts are remembered.
const MAX_HOSTS: usize = 50;

/// Goes through sanitised markup by the rules of one view.
pub(super) struct Dresser<'a> {
    inline: &'a dyn Inline,
    is_remote_shown: bool,
    is_strict: bool,
    /// The hosts that something would be loaded from.
    pub(super) hosts: BTreeSet<String>,
}

impl<'a> Dresser<'a> {
    /// For somebody else's page.
    pub(super) fn strict(inline: &'a dyn Inline) -> Self {
        Self { inline, is_remote_shown: true, is_strict: true, hosts: BTreeSet::new() }
    }

    /// For a frame of its own.
    pub(super) fn preview(inline: &'a dyn Inline, is_remote_shown: bool) -> Self {
        Self { inline, is_remote_shown, is_strict: false, hosts: BTreeSet::new() }
    }

    /// The markup with its addresses and styles put right.
    pub(super) fn dress(&mut self, markup: &str) -> String {
        let mut result = String::with_capacity(markup.len());
        let mut is_pre = false;
        // A carriage return that came as a reference is one no more when it is read again.
        let markup = markup.replace('\r', "\n");
        for token in Tokens::new(&markup) {
            let was_pre = std::mem::take(&mut is_pre);
            match token {
                Token::Text(text) => {
                    // The first line break in `pre` does not count, so one that does needs another before it.
                    if was_pre && text.starts_with('\n') {
                        result.push('\n');
                    }
                    result.push_str(text);
                }
                Token::StartTag(name, attributes) => {
                    is_pre = name == "pre";
                    self.tag(&mut result, name, attributes);
                }
                Token::RawText(_) => {}
                Token::EndTag(name) => {
                    result.push_str("</");
                    result.push_str(name);
                    result.push('>');
                }
            }
        }
        result
    }

    /// The style sheet or declarations with the addresses in it put right.
    pub(super) fn style(&mut self, style: &str) -> String {
        css::rewritten(style, &mut |raw| match self.load(raw) {
            Loaded::From(url) => Some(url),
            Loaded::Blocked | Loaded::Nothing => None,
        })
    }

    fn tag(&mut self, result: &mut String, name: &str, attributes: &str) {
        result.push('<');
        result.push_str(name);
        for (attribute, value) in Attributes::new(attributes) {
            self.attribute(result, name, attribute, &unescaped(value));
        }
        result.push('>');
    }

    fn attribute(&mut self, result: &mut String, element: &str, name: &str, value: &str) {
        match name {
            "href" => {
                if let Some(Address::Remote(address) | Address::Contact(address)) = Address::parse(value) {
                    push_attribute(result, name, &address);
                    push_attribute(result, "target", "_blank");
                    push_attribute(result, "rel", "noopener noreferrer nofollow");
                }
            }
            "src" => match self.load(value) {
                Loaded::From(url) => push_attribute(result, name, &url),
                Loaded::Blocked => push_attribute(result, "data-blocked", ""),
                Loaded::Nothing => {}
            },
            "background" => {
                if let Loaded::From(url) = self.load(value) {
                    push_attribute(result, name, &url);
                }
            }
            "srcset" => {
                let candidates = self.candidates(value);
                if !candidates.is_empty() {
                    push_attribute(result, name, &candidates);
                }
            }
            "style" => {
                let style = if self.is_strict { css::strict(value) } else { self.style(value) };
                if !style.is_empty() {
                    push_attribute(result, name, &style);
                }
            }
            "usemap" if element != "img" || !value.starts_with('#') => {}
            _ => push_attribute(result, name, value),
        }
    }

    /// The candidates of a `srcset` that may be loaded (HTML Standard, section 4.8.4.2.1).
    fn candidates(&mut self, srcset: &str) -> String {
        let mut kept: Vec<String> = Vec::new();
        let mut rest = srcset;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            if rest.is_empty() {
                return kept.join(", ");
            }
            let (address, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len()));
            let descriptor = if address.ends_with(',') { "" } else { behind.split(',').next().unwrap_or_default() };
            rest = &behind[descriptor.len()..];
            if let Loaded::From(url) = self.load(address.trim_end_matches(',')) {
                kept.push(format!("{url} {}", descriptor.trim()).trim_end().to_owned());
            }
        }
    }

    /// Where a picture or a font is loaded from.
    fn load(&mut self, raw: &str) -> Loaded {
        if let Some(url) = self.inline.located(raw.trim()) {
            return Loaded::From(url);
        }
        let Some(address) = Address::parse(raw) else { return Loaded::Nothing };
        if self.hosts.len() < MAX_HOSTS {
            self.hosts.extend(address.host());
        }
        match address {
            Address::Part(id) => self.inline.url(&id).map_or(Loaded::Nothing, Loaded::From),
            Address::Remote(url) if self.is_remote_shown => Loaded::From(url),
            Address::Remote(_) => Loaded::Blocked,
            Address::Picture(url) => Loaded::From(url),
            Address::Contact(_) => Loaded::Nothing,
        }
    }
}

/// What became of something that a mail wants to load.
enum Loaded {
    From(String),
    Blocked,
    Nothing,
}

fn push_attribute(tag: &mut String, name: &str, value: &str) {
    tag.push(' ');
    tag.push_str(name);
    tag.push_str("=\"");
    push_escaped(tag, value);
    tag.push('"');
}
