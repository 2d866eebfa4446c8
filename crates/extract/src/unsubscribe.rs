//! The ways to unsubscribe from a mailing list that the header of a message declares (RFC 2369 section 3.2, RFC 8058).
//! Unsubscribe links in the body are ordinary links.

use restante_mail::mime::{HeaderField, Mime};
use restante_mail::named_enum;
use serde::Serialize;

use crate::list_header;
use crate::relative_url::scheme;

/// The ways to unsubscribe from the mailing list of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unsubscribe {
    /// Whether one POST to the first `https` URL is enough, without confirmation on a web page.
    pub one_click: bool,
    /// The links, in the order of the message, which is the order of preference.
    pub links: Vec<UnsubscribeLink>,
    /// The id of the list (RFC 2919), without its brackets.
    pub list_id: Option<String>,
}

/// A link to unsubscribe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnsubscribeLink {
    /// The URL.
    pub href: String,
    /// The method.
    pub kind: UnsubscribeMethod,
}

named_enum! {
    /// A method to unsubscribe, named after the scheme of its URL.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum UnsubscribeMethod {
        /// An encrypted request.
        Https = "https",
        /// An unencrypted request.
        Http = "http",
        /// A mail message.
        Mailto = "mailto",
    }
}

/// Returns the ways to unsubscribe that the header of a message declares.
pub fn unsubscribe(mime: &Mime) -> Unsubscribe {
    let field = |name: &str| mime.header().iter().find(|field| field.has_name(name)).map(HeaderField::value);
    let urls = field("List-Unsubscribe").map(|value| list_header::parse_urls(&value)).unwrap_or_default();
    let links: Vec<_> = urls.into_iter().filter_map(UnsubscribeLink::from_url).collect();
    let has_one_click_field = field("List-Unsubscribe-Post").is_some_and(|value| {
        // RFC 8058 section 3.1: the field must contain exactly this pair.
        value.trim().eq_ignore_ascii_case("List-Unsubscribe=One-Click")
    });
    Unsubscribe {
        one_click: has_one_click_field && links.iter().any(|link| link.kind == UnsubscribeMethod::Https),
        links,
        list_id: field("List-Id").and_then(|value| list_id(&value)),
    }
}

impl UnsubscribeLink {
    fn from_url(href: String) -> Option<Self> {
        let kind = UnsubscribeMethod::from_name(&scheme(&href)?.to_ascii_lowercase())?;
        Some(Self { href, kind })
    }
}

/// Returns the identifier in `Some words <list.example.org>`, or the whole value if there are no brackets.
fn list_id(value: &str) -> Option<String> {
    let bracketed = value.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(id, _)| id);
    let id = bracketed.unwrap_or(value).trim();
    (!id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn parse_header(header: &str) -> Unsubscribe {
        unsubscribe(&Mime::parse(Bytes::from(format!("{header}\r\n\r\nx"))))
    }

    #[test]
    fn one_click_needs_both_fields_and_an_https_url() {
        const POST: &str = "List-Unsubscribe-Post: List-Unsubscribe=One-Click";
        let table = [
            (format!("List-Unsubscribe: <https://x/off>\r\n{POST}"), true),
            (format!("List-Unsubscribe: <mailto:a@x>,\r\n <https://x/off>\r\n{POST}"), true),
            (format!("{POST}\r\nlist-unsubscribe: <HTTPS://x/off>"), true),
            ("List-Unsubscribe: <https://x/off>".to_owned(), false),
            ("List-Unsubscribe: <https://x/off>\r\nList-Unsubscribe-Post: yes".to_owned(), false),
            (format!("List-Unsubscribe: <http://x/off>\r\n{POST}"), false),
            (format!("List-Unsubscribe: <mailto:a@x>\r\n{POST}"), false),
            (POST.to_owned(), false),
        ];
        for (header, expected) in table {
            assert_eq!(parse_header(&header).one_click, expected, "{header}");
        }
    }

    #[test]
    fn parses_links_and_list_id() {
        let found = parse_header(
            "List-Unsubscribe: <ftp://x>, <http://x/a>, <mailto:b@x>\r\nList-Id: News \"of\" <news.example.org>",
        );
        let links: Vec<_> = found.links.iter().map(|link| (link.kind, link.href.as_str())).collect();
        assert_eq!(links, [(UnsubscribeMethod::Http, "http://x/a"), (UnsubscribeMethod::Mailto, "mailto:b@x")]);
        assert_eq!(found.list_id.as_deref(), Some("news.example.org"));
        assert_eq!(parse_header("List-Id: plain.example.org").list_id.as_deref(), Some("plain.example.org"));
        assert_eq!(parse_header("List-Id: <>\r\nSubject: x"), Unsubscribe::default());
    }
}
