//! Parsing and validation of request URLs. Callers can validate a URL before they send a request.

use std::net::IpAddr;

use ureq::http::Uri;
use url::{Host, Url};

use crate::HttpError;
use crate::public_address::is_public;

/// Parses a URL like the client does. Returns it in normal form and without a fragment. A request for a URL that fails
/// here always fails.
pub fn parse_url(text: &str) -> Result<Url, HttpError> {
    let url =
        Url::parse(text).map_err(|error| HttpError::InvalidRequest(format!("{text} is not a valid URL: {error}")))?;
    validate_url(url)
}

/// Returns whether the host of a URL is evidently not public: an address that is not public, or `localhost`. The
/// addresses of other names are known only after a lookup.
pub fn has_private_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => !is_public(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// Validates a parsed URL for [`parse_url`].
pub(crate) fn validate_url(mut url: Url) -> Result<Url, HttpError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(HttpError::InvalidRequest(format!("{url} is not an http or https URL")));
    }
    url.set_fragment(None);
    match url.as_str().parse::<Uri>() {
        Ok(_) => Ok(url),
        Err(error) => Err(HttpError::InvalidRequest(format!("{url} is not a valid URL: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_urls() {
        let table = [
            ("http://x.org", Some("http://x.org/")),
            ("HTTP://X.org:80/a/../b#top", Some("http://x.org/b")),
            ("https://x.org:443?a=b", Some("https://x.org/?a=b")),
            ("http://0x7f.1/", Some("http://127.0.0.1/")),
            ("http://bücher.example/ü", Some("http://xn--bcher-kva.example/%C3%BC")),
            ("ftp://x.org", None),
            ("x.org/hook", None),
            ("http://1.2.3.256/", None),
            ("http://x.org:99999/", None),
            ("http://a b/", None),
            ("http://[::1/", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_url(text).ok().as_ref().map(Url::as_str), expected, "{text}");
        }
        let endless = format!("http://x.org/?{}", "x".repeat(70_000));
        assert!(matches!(parse_url(&endless), Err(HttpError::InvalidRequest(_))), "no request can be this long");
    }

    #[test]
    fn recognizes_private_hosts() {
        let table = [
            ("http://localhost", true),
            ("http://LOCALHOST.:3000/x", true),
            ("http://ci.localhost", true),
            ("http://u:p@127.0.0.1/", true),
            ("http://0x7f.1", true),
            ("http://127.1", true),
            ("http://2130706433", true),
            ("http://[::1]:80", true),
            ("http://[::ffff:10.0.0.1]", true),
            ("http://[fd00::1]", true),
            ("http://169.254.169.254/latest", true),
            ("http://0.0.0.0", true),
            ("http://ci.example.org", false),
            ("http://notlocalhost", false),
            ("http://8.8.8.8", false),
            ("http://[2606:4700:4700::1111]", false),
            ("https://h/localhost", false),
        ];
        for (text, expected) in table {
            assert_eq!(has_private_host(&parse_url(text).unwrap()), expected, "{text}");
        }
    }
}
