//! Entity tags, with which a client can check that nothing has changed (RFC 9110 section 8.8.3).

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use jiff::Timestamp;

/// Creates entity tags. A memory store counts its versions from the beginning after a restart, and a new program
/// version may render the same message differently. Therefore a tag contains the time of the first connection.
#[derive(Debug)]
pub struct EntityTags {
    epoch: i64,
}

impl EntityTags {
    /// Creates the tags of a server that gets its first connection now.
    pub(crate) fn new() -> Self {
        Self { epoch: Timestamp::now().as_microsecond() }
    }

    /// Returns the tag of a response that is determined by this state. The state must identify the kind of the response, too.
    /// It does not need to contain the URL, because tags are compared only for the same URL.
    pub fn of(&self, state: &impl Hash) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        header_value(format!("\"{:x}-{:x}\"", self.epoch, hasher.finish()).into())
    }
}

/// Returns the tag of the document in which a browser shows the file with this tag.
pub fn of_document(tag: &HeaderValue) -> HeaderValue {
    let tag = [tag.as_bytes().strip_suffix(b"\"").unwrap_or_default(), b"-document\""].concat();
    header_value(tag.into())
}

fn header_value(tag: Bytes) -> HeaderValue {
    // All characters of tags are valid in a header, so the fallback is never used.
    HeaderValue::from_maybe_shared(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The tags of responses that the client has already: `If-None-Match`.
#[derive(Debug)]
pub struct IfNoneMatch(Vec<HeaderValue>);

impl IfNoneMatch {
    /// Returns whether the client has the response with this tag. The comparison is weak, and a single `*` matches
    /// every tag (RFC 9110 section 13.1.2).
    pub fn matches(&self, tag: &HeaderValue) -> bool {
        if let [only] = self.0.as_slice()
            && only.as_bytes().trim_ascii() == b"*"
        {
            return true;
        }
        let listed = self.0.iter().flat_map(|value| elements(value.as_bytes()));
        listed.map(<[u8]>::trim_ascii).any(|element| element.strip_prefix(b"W/").unwrap_or(element) == tag)
    }
}

/// Returns the elements of a list of tags: splits at commas, except for those inside of a tag.
fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    list.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_matches() {
        let tag = HeaderValue::from_static("\"e-1\"");
        let table: [(&[&'static str], bool); 16] = [
            (&[], false),
            (&["\"e-1\""], true),
            (&["W/\"e-1\""], true),
            (&["*"], true),
            (&[" * "], true),
            (&["\"a,*,b\""], false),
            (&["\"a\", *"], false),
            (&["*", "\"a\""], false),
            (&["\"a,\"e-1\",b\""], false),
            (&["\"a,b\",\"e-1\""], true),
            (&["\"e-2\", \"e-1\""], true),
            (&["\"e-2\"", "W/\"e-3\",W/\"e-1\""], true),
            (&["\"e-2\""], false),
            (&["e-1"], false),
            (&["\"e-11\""], false),
            (&["", ",,", "W/"], false),
        ];
        for (values, expected) in table {
            let if_none_match = IfNoneMatch(values.iter().map(|&value| HeaderValue::from_static(value)).collect());
            assert_eq!(if_none_match.matches(&tag), expected, "{values:?}");
        }
    }

    #[test]
    fn tags_are_distinct() {
        let tags = EntityTags { epoch: 1 };
        let all = [
            tags.of(&("listing", 5)),
            tags.of(&("listing", 6)),
            tags.of(&("messages", 5)),
            tags.of(&"5"),
            tags.of(&"6"),
            EntityTags { epoch: 2 }.of(&("listing", 5)),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
