//! The endpoint of a target: its URL, split into the request URL, a label without secrets, and the credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use restante_http_client::parse_url;
use ring::hmac;

/// A parsed target URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The URL without user information and fragment.
    pub(crate) url: String,
    /// Scheme, host and port, for logs and metrics. Path and query often contain secrets.
    pub(crate) label: String,
    /// The value of the Authorization field, if the URL contains a user.
    pub(crate) authorization: Option<String>,
}

impl Endpoint {
    /// Parses and normalizes a URL. Equivalent URLs give equal endpoints. The error does not repeat the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let mut url =
            parse_url(url).map_err(|_| "the URL must be an http or https URL such as https://x.org/hook".to_owned())?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        let authorization = has_user.then(|| basic_authorization(url.username(), url.password().unwrap_or_default()));
        // These fail only if the URL has no host, which `parse_url` rejects.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Ok(Self { label: url.origin().ascii_serialization(), url: url.into(), authorization })
    }

    /// Returns a name that identifies the target without revealing its URL: 16 hexadecimal digits. Without the secret of
    /// the queue, it does not help to guess a password.
    pub(crate) fn name(&self, secret: &str) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        context.update(self.url.as_bytes());
        // A separator: a URL contains no spaces.
        context.update(b" ");
        context.update(self.authorization.as_deref().unwrap_or_default().as_bytes());
        short_hex(context.sign().as_ref())
    }
}

/// Returns the first eight bytes of a digest as hexadecimal digits.
pub(crate) fn short_hex(digest: &[u8]) -> String {
    let first = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("{first:016x}")
}

/// Returns the value of a Basic Authorization field (RFC 7617). The percent encoding of the URL is decoded first.
fn basic_authorization(name: &str, password: &str) -> String {
    let credentials: Vec<u8> = percent_decode_str(name).chain(*b":").chain(percent_decode_str(password)).collect();
    format!("Basic {}", STANDARD.encode(credentials))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_normalizes_urls() {
        let table = [
            ("https://x.org/hook", "https://x.org/hook", "https://x.org", None),
            ("https://X.org:443/a/../hook", "https://x.org/hook", "https://x.org", None),
            ("HTTP://x.org:8080?token=1#top", "http://x.org:8080/?token=1", "http://x.org:8080", None),
            ("http://ann:s%40f@x.org/a?b", "http://x.org/a?b", "http://x.org", Some("ann:s@f")),
            ("http://ann@[::1]:80/", "http://[::1]/", "http://[::1]", Some("ann:")),
            ("http://a:100%@x.org", "http://x.org/", "http://x.org", Some("a:100%")),
            ("http://x.org/a@b", "http://x.org/a@b", "http://x.org", None),
        ];
        for (text, url, label, user) in table {
            let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
            let expected = Endpoint { url: url.to_owned(), label: label.to_owned(), authorization };
            assert_eq!(Endpoint::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn name_depends_on_url_credentials_and_secret() {
        let name = |url: &str, secret: &str| Endpoint::parse(url).unwrap().name(secret);
        let names = [
            name("http://x.org/", "one"),
            name("http://x.org/", "other"),
            name("http://ann:a@x.org/", "one"),
            name("http://ann:b@x.org/", "one"),
            name("http://x.org/a", "one"),
        ];
        for (index, text) in names.iter().enumerate() {
            assert!(text.len() == 16 && !names[..index].contains(text), "{names:?}");
        }
        assert_eq!(name("HTTP://X.org:80", "one"), names[0]);
    }

    #[test]
    fn error_of_invalid_url_does_not_repeat_it() {
        let table =
            ["", "secret.org/hook", "ftp://secret.org", "http://", "http://secret:x/", "http://secret@", "http://a b"];
        for text in table {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
