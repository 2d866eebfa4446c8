//! Classification of the URLs in a message's HTML: how a browser interprets each URL, and which are allowed.

use ammonia::Url;
use percent_encoding::percent_decode_str;

/// The target of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UrlTarget {
    /// A part of the same message, by its Content-ID.
    InlinePart(String),
    /// A resource on another host. The URL is absolute.
    Remote(String),
    /// An image in a `data:` URL.
    DataImage(String),
    /// A mail address or a phone number.
    Contact(String),
}

impl UrlTarget {
    /// Parses a URL like a browser does (URL Standard, section 4.4): surrounding whitespace and line breaks are
    /// ignored. Returns `None` for URLs without an allowed target: scripts, inline documents, URLs without a host.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        let url: String =
            raw.trim_matches(|c: char| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        if url.starts_with("//") {
            return Some(Self::Remote(format!("https:{url}")));
        }
        let (scheme, rest) = url.split_once(':')?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => Some(Self::Remote(url)),
            "cid" => Some(Self::InlinePart(content_id(rest))),
            "mailto" | "tel" => Some(Self::Contact(url)),
            "data" => is_image_data(rest).then_some(Self::DataImage(url)),
            _ => None,
        }
    }

    /// Returns the host that a remote URL is loaded from.
    pub(super) fn host(&self) -> Option<String> {
        let Self::Remote(url) = self else { return None };
        Some(Url::parse(url).ok()?.host_str()?.to_owned())
    }
}

/// Returns the Content-ID of a `cid:` URL. It is percent-encoded (RFC 2392 section 2), and sometimes includes the angle
/// brackets of the header field.
fn content_id(encoded: &str) -> String {
    percent_decode_str(encoded).decode_utf8_lossy().trim_matches(['<', '>', ' ']).to_owned()
}

fn is_image_data(rest: &str) -> bool {
    let media_type = rest.split([';', ',']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some(subtype) = media_type.strip_prefix("image/") else { return false };
    matches!(subtype, "png" | "gif" | "jpeg" | "jpg" | "webp" | "avif" | "bmp" | "svg+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls() {
        use UrlTarget::{Contact, DataImage, InlinePart, Remote};
        type Kind = fn(String) -> UrlTarget;
        let table: [(&str, Option<Kind>, &str); 24] = [
            ("http://x/y", Some(Remote), "http://x/y"),
            (" HTTPS://x\n/y\t", Some(Remote), "HTTPS://x/y"),
            ("//x/y", Some(Remote), "https://x/y"),
            ("/\n/x/y", Some(Remote), "https://x/y"),
            ("\u{1}http://x", Some(Remote), "http://x"),
            ("cid:a@b", Some(InlinePart), "a@b"),
            ("CID:<a%40b%zz%4>", Some(InlinePart), "a@b%zz%4"),
            ("mailto:a@b", Some(Contact), "mailto:a@b"),
            ("tel:+1", Some(Contact), "tel:+1"),
            ("data:image/png;base64,AA", Some(DataImage), "data:image/png;base64,AA"),
            ("data:IMAGE/SVG+XML,x", Some(DataImage), "data:IMAGE/SVG+XML,x"),
            ("data:text/html,x", None, ""),
            ("data:image/html,x", None, ""),
            ("data:,x", None, ""),
            ("javascript:alert(1)", None, ""),
            ("java\nscript:alert(1)", None, ""),
            ("\u{1}javascript:alert(1)", None, ""),
            ("vbscript:x", None, ""),
            ("blob:http://x", None, ""),
            ("file:///etc/passwd", None, ""),
            ("/x", None, ""),
            ("\\\\x\\y", None, ""),
            ("#x", None, ""),
            ("", None, ""),
        ];
        for (raw, kind, url) in table {
            assert_eq!(UrlTarget::parse(raw), kind.map(|kind| kind(url.to_owned())), "{raw}");
        }
    }

    #[test]
    fn returns_hosts_of_remote_urls() {
        let table = [
            ("http://Example.org:80/x", Some("example.org")),
            ("https:/\\evil.example", Some("evil.example")),
            ("http://user@bücher.example", Some("xn--bcher-kva.example")),
            ("http://[::1]/", Some("[::1]")),
            ("http://", None),
            ("cid:x", None),
        ];
        for (raw, host) in table {
            assert_eq!(UrlTarget::parse(raw).and_then(|url| url.host()).as_deref(), host, "{raw}");
        }
    }
}
