//! Entity tags: what a client shows to learn that nothing has changed (RFC 9110 section 8.8.3).

use std::convert::Infallible;
use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use jiff::Timestamp;
use restante_html::{ColorScheme, PreviewOptions};
use restante_mail::message::MessageId;
use restante_store::Version;

/// What can be found in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Extract {
    /// Its links.
    Links,
    /// The codes in it.
    Codes,
    /// The ways to unsubscribe.
    Unsubscribe,
    /// The tree of its parts.
    Parts,
}

/// Makes the tags. A store that forgets counts its versions anew after a restart, and a new program may render the
/// same message in another way: so a tag holds the time at which the service started.
#[derive(Debug)]
pub(crate) struct EntityTags {
    epoch: i64,
}

impl EntityTags {
    /// Tags of a service that starts now.
    pub(crate) fn new() -> Self {
        Self { epoch: Timestamp::now().as_microsecond() }
    }

    /// The tag of a listing, whole or in part.
    pub(crate) fn listing(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("l{:x}", version.0))
    }

    /// The tag of a message as JSON.
    pub(crate) fn message(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("m{:x}.{}", id.number(), u8::from(seen)))
    }

    /// The tag of a message's source.
    pub(crate) fn source(&self, id: MessageId) -> HeaderValue {
        self.tag(format_args!("s{:x}", id.number()))
    }

    /// The tag of an attachment.
    pub(crate) fn attachment(&self, id: MessageId, index: usize) -> HeaderValue {
        self.tag(format_args!("a{:x}.{index}", id.number()))
    }

    /// The tag of a message as the JSON of Inbucket's page.
    pub(crate) fn compat(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("c{:x}.{}", id.number(), u8::from(seen)))
    }

    /// The tag of a message as the JSON of our page.
    pub(crate) fn details(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("d{:x}.{}", id.number(), u8::from(seen)))
    }

    /// The tag of the preview of a message.
    pub(crate) fn preview(&self, id: MessageId, shown: PreviewOptions) -> HeaderValue {
        let scheme = match shown.scheme {
            None => "",
            Some(ColorScheme::Light) => "l",
            Some(ColorScheme::Dark) => "d",
        };
        self.tag(format_args!("p{:x}.{}{scheme}", id.number(), u8::from(shown.allow_remote)))
    }

    /// The tag of what was found in a message.
    pub(crate) fn extract(&self, id: MessageId, what: Extract) -> HeaderValue {
        let what = match what {
            Extract::Links => 'l',
            Extract::Codes => 'c',
            Extract::Unsubscribe => 'u',
            Extract::Parts => 'p',
        };
        self.tag(format_args!("x{:x}.{what}", id.number()))
    }

    /// The tag of a part.
    pub(crate) fn part(&self, id: MessageId, index: usize) -> HeaderValue {
        self.tag(format_args!("t{:x}.{index}", id.number()))
    }

    /// The tag of how many attachments messages have.
    pub(crate) fn counts(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("n{:x}", version.0))
    }

    /// The tag of the description of the API.
    pub(crate) fn description(&self) -> HeaderValue {
        self.tag("o")
    }

    /// The tag of the same as a page. What is in it depends on the URL that it is asked for under, and a tag needs to be
    /// another one only where that is the same.
    pub(crate) fn docs(&self) -> HeaderValue {
        self.tag("h")
    }

    fn tag(&self, state: impl Display) -> HeaderValue {
        // These characters are all valid in a header, so the other branch is never taken.
        let tag = format!("\"{:x}-{state}\"", self.epoch);
        HeaderValue::from_maybe_shared(bytes::Bytes::from(tag)).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// The tags that the client already has an answer for: `If-None-Match`.
#[derive(Debug)]
pub(crate) struct IfNoneMatch(Vec<HeaderValue>);

impl IfNoneMatch {
    /// Whether the client has the answer with this tag. The comparison is the weak one, and `*` stands for every tag when
    /// it stands alone (RFC 9110 section 13.1.2).
    pub(crate) fn matches(&self, tag: &HeaderValue) -> bool {
        if let [only] = self.0.as_slice()
            && only.as_bytes().trim_ascii() == b"*"
        {
            return true;
        }
        let listed = self.0.iter().flat_map(|value| elements(value.as_bytes()));
        listed.map(<[u8]>::trim_ascii).any(|one| one.strip_prefix(b"W/").unwrap_or(one) == tag)
    }
}

/// The elements of a list of tags: what stands between commas, except for those inside of a tag.
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
    fn what_the_client_knows() {
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
            let known = IfNoneMatch(values.iter().map(|&value| HeaderValue::from_static(value)).collect());
            assert_eq!(known.matches(&tag), expected, "{values:?}");
        }
    }

    #[test]
    fn tags_differ_where_answers_do() {
        let tags = EntityTags { epoch: 1 };
        let id = MessageId::from(5);
        let all = [
            tags.listing(Version(5)),
            tags.listing(Version(6)),
            tags.message(id, false),
            tags.message(id, true),
            tags.source(id),
            tags.attachment(id, 0),
            tags.attachment(id, 1),
            tags.compat(id, false),
            tags.compat(id, true),
            tags.details(id, false),
            tags.details(id, true),
            tags.preview(id, PreviewOptions { allow_remote: false, scheme: None }),
            tags.preview(id, PreviewOptions { allow_remote: true, scheme: None }),
            tags.preview(id, PreviewOptions { allow_remote: false, scheme: Some(ColorScheme::Light) }),
            tags.preview(id, PreviewOptions { allow_remote: false, scheme: Some(ColorScheme::Dark) }),
            tags.extract(id, Extract::Links),
            tags.extract(id, Extract::Codes),
            tags.extract(id, Extract::Unsubscribe),
            tags.extract(id, Extract::Parts),
            tags.part(id, 0),
            tags.part(id, 1),
            tags.counts(Version(5)),
            tags.description(),
            tags.docs(),
            EntityTags { epoch: 2 }.listing(Version(5)),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
