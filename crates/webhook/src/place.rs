//! Where a target is: its URL, taken apart into what is asked for, what may be shown, and what proves who asks.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A target's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// What is asked for: the URL without user and fragment.
    pub(crate) url: String,
    /// What logs and metrics show: scheme, host and port. Path and query are often secrets that let anybody in.
    pub(crate) label: String,
    /// The value of the Authorization field, when the URL names a user.
    pub(crate) authorization: Option<String>,
}

impl Place {
    /// Takes a URL apart. The error does not repeat the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        // Programs disagree about what a backslash means in a URL, and about who its host is then.
        if url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err("the URL of a webhook must not contain blanks, control characters or backslashes".to_owned());
        }
        let found = url.split_once("://").map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
        let Some((scheme, rest)) = found.filter(|(scheme, _)| scheme == "http" || scheme == "https") else {
            return Err("the URL of a webhook must begin with http:// or https://".to_owned());
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if host.is_empty() || host.starts_with(':') {
            return Err("the URL of a webhook must name a host".to_owned());
        }
        Ok(Self {
            url: format!("{scheme}://{host}{tail}"),
            label: format!("{scheme}://{host}"),
            authorization: user.map(basic),
        })
    }

    /// What the target is known by where its URL must not be shown.
    pub(crate) fn digest(&self) -> Digest {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(self.url.as_bytes());
        // A URL has no blanks.
        context.update(b" ");
        context.update(self.authorization.as_deref().unwrap_or_default().as_bytes());
        let mut digest = Digest::default();
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }
}

/// See [`Place::digest`].
pub(crate) type Digest = [u8; 32];

/// RFC 7617: user and password as they are meant, not as they are written in a URL.
fn basic(user: &str) -> String {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let plain = [&percent_decoded(name)[..], b":", &percent_decoded(password)].concat();
    format!("Basic {}", STANDARD.encode(plain))
}

/// A `%` that is not followed by two hexadecimal digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2)));
        if let Some((high, low)) = digits.filter(|_| byte == b'%') {
            decoded.extend(u8::try_from(high * 16 + low));
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let table = [
            ("https://x.org/hook", "https://x.org/hook", "https://x.org", None),
            ("HTTP://x.org:8080?token=1#top", "http://x.org:8080?token=1", "http://x.org:8080", None),
            ("http://ann:s%40f@x.org/a?b", "http://x.org/a?b", "http://x.org", Some("ann:s@f")),
            ("http://ann@[::1]:80/", "http://[::1]:80/", "http://[::1]:80", Some("ann:")),
            ("http://a:100%@x.org", "http://x.org", "http://x.org", Some("a:100%")),
            ("http://x.org/a@b", "http://x.org/a@b", "http://x.org", None),
        ];
        for (text, url, label, user) in table {
            let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
            let expected = Place { url: url.to_owned(), label: label.to_owned(), authorization };
            assert_eq!(Place::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for text in
            ["", "secret.org/hook", "ftp://secret.org", "http://", "http://:80/secret", "http://secret@", "http://a b"]
        {
            let error = Place::parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
