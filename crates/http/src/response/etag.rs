//! Entity tags, with which a client can check that nothing has changed (RFC 9110 section 8.8.3).

use std::convert::Infallible;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hasher as _};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use jiff::Timestamp;
use restante_html::{ColorScheme, PreviewOptions};
use restante_mail::message::MessageId;
use restante_store::Version;

/// The kinds of extracts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Extract {
    /// Its links.
    Links,
    /// Its one-time codes.
    Codes,
    /// Its unsubscribe links.
    Unsubscribe,
    /// The tree of its parts.
    Parts,
    /// The check of its HTML.
    HtmlCheck,
    /// The check of its HTML, in the format of Mailpit.
    MailpitHtmlCheck,
}

/// The forms of the body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BodyFormat {
    /// Its HTML, as it was sent.
    Html,
    /// Its text, made from the HTML if there is no other.
    Text,
}

/// Creates entity tags. A memory store counts its versions from the beginning after a restart, and a new program
/// version may render the same message differently. Therefore a tag contains the time at which the server started.
#[derive(Debug)]
pub(crate) struct EntityTags {
    epoch: i64,
}

impl EntityTags {
    /// Creates the tags of a server that starts now.
    pub(crate) fn new() -> Self {
        Self { epoch: Timestamp::now().as_microsecond() }
    }

    /// Returns the tag of a listing, complete or in part.
    pub(crate) fn listing(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("l{:x}", version.0))
    }

    /// Returns the tag of a list of messages of all mailboxes.
    pub(crate) fn messages(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("e{:x}", version.0))
    }

    /// Returns the tag of a list of messages of one mailbox.
    pub(crate) fn copies(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("f{:x}", version.0))
    }

    /// Returns the tag of a response that depends on more than a version: a digest of its body.
    pub(crate) fn body(&self, body: &[u8]) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        hasher.write(body);
        self.tag(format_args!("b{:x}", hasher.finish()))
    }

    /// Returns the tag of a message as JSON.
    pub(crate) fn message(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("m{:x}.{}", id.number(), u8::from(seen)))
    }

    /// Returns the tag of the source of a message.
    pub(crate) fn source(&self, id: MessageId) -> HeaderValue {
        self.tag(format_args!("s{:x}", id.number()))
    }

    /// Returns the tag of an attachment.
    pub(crate) fn attachment(&self, id: MessageId, index: usize) -> HeaderValue {
        self.tag(format_args!("a{:x}.{index}", id.number()))
    }

    /// Returns the tag of the archive of all attachments.
    pub(crate) fn archive(&self, id: MessageId) -> HeaderValue {
        self.tag(format_args!("z{:x}", id.number()))
    }

    /// Returns the tag of the decoded body of a message.
    pub(crate) fn decoded_body(&self, id: MessageId, format: BodyFormat) -> HeaderValue {
        let format = match format {
            BodyFormat::Html => 'h',
            BodyFormat::Text => 't',
        };
        self.tag(format_args!("f{:x}.{format}", id.number()))
    }

    /// Returns the tag of a message as JSON for Inbucket's web interface.
    pub(crate) fn compat(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("c{:x}.{}", id.number(), u8::from(seen)))
    }

    /// Returns the tag of a message as JSON for this web interface.
    pub(crate) fn details(&self, id: MessageId, seen: bool) -> HeaderValue {
        self.tag(format_args!("d{:x}.{}", id.number(), u8::from(seen)))
    }

    /// Returns the tag of the preview of a message.
    pub(crate) fn preview(&self, id: MessageId, options: PreviewOptions) -> HeaderValue {
        let scheme = match options.scheme {
            None => "",
            Some(ColorScheme::Light) => "l",
            Some(ColorScheme::Dark) => "d",
        };
        self.tag(format_args!("p{:x}.{}{scheme}", id.number(), u8::from(options.allow_remote)))
    }

    /// Returns the tag of an extract of a message.
    pub(crate) fn extract(&self, id: MessageId, extract: Extract) -> HeaderValue {
        let extract = match extract {
            Extract::Links => 'l',
            Extract::Codes => 'c',
            Extract::Unsubscribe => 'u',
            Extract::Parts => 'p',
            Extract::HtmlCheck => 'h',
            Extract::MailpitHtmlCheck => 'm',
        };
        self.tag(format_args!("x{:x}.{extract}", id.number()))
    }

    /// Returns the tag of a part.
    pub(crate) fn part(&self, id: MessageId, index: usize) -> HeaderValue {
        self.tag(format_args!("t{:x}.{index}", id.number()))
    }

    /// Returns the tag of a file in the API of Mailpit. The id of the part must be valid in a header.
    pub(crate) fn mailpit_part(&self, id: MessageId, part: &str) -> HeaderValue {
        self.tag(format_args!("y{:x}.{part}", id.number()))
    }

    /// Returns the tag of a body in the API of Mailpit. `form` identifies its form.
    pub(crate) fn mailpit_view(&self, id: MessageId, form: &str) -> HeaderValue {
        self.tag(format_args!("w{:x}.{form}", id.number()))
    }

    /// Returns the tag of attachment counts.
    pub(crate) fn counts(&self, version: Version) -> HeaderValue {
        self.tag(format_args!("n{:x}", version.0))
    }

    /// Returns the tag of the OpenAPI document.
    pub(crate) fn description(&self) -> HeaderValue {
        self.tag("o")
    }

    /// Returns the tag of the API page. The page contains the URL under which it was requested, but tags are compared
    /// only for the same URL.
    pub(crate) fn docs(&self) -> HeaderValue {
        self.tag("h")
    }

    fn tag(&self, state: impl Display) -> HeaderValue {
        // All these characters are valid in a header, so the fallback is never used.
        let tag = format!("\"{:x}-{state}\"", self.epoch);
        HeaderValue::from_maybe_shared(bytes::Bytes::from(tag)).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// Returns the tag of the document in which a browser shows the file with this tag.
pub(crate) fn of_document(tag: &HeaderValue) -> HeaderValue {
    let tag = [tag.as_bytes().strip_suffix(b"\"").unwrap_or_default(), b"-document\""].concat();
    // The tag of the file is valid in a header, so the fallback is never used.
    HeaderValue::from_maybe_shared(bytes::Bytes::from(tag)).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The tags of responses that the client has already: `If-None-Match`.
#[derive(Debug)]
pub(crate) struct IfNoneMatch(Vec<HeaderValue>);

impl IfNoneMatch {
    /// Returns whether the client has the response with this tag. The comparison is weak, and a single `*` matches
    /// every tag (RFC 9110 section 13.1.2).
    pub(crate) fn matches(&self, tag: &HeaderValue) -> bool {
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
        let id = MessageId::from(5);
        let all = [
            tags.listing(Version(5)),
            tags.listing(Version(6)),
            tags.messages(Version(5)),
            tags.messages(Version(6)),
            tags.copies(Version(5)),
            tags.copies(Version(6)),
            tags.body(b"5"),
            tags.body(b"6"),
            tags.message(id, false),
            tags.message(id, true),
            tags.source(id),
            tags.attachment(id, 0),
            tags.attachment(id, 1),
            tags.archive(id),
            tags.decoded_body(id, BodyFormat::Html),
            tags.decoded_body(id, BodyFormat::Text),
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
            tags.mailpit_part(id, "1"),
            tags.mailpit_part(id, "1.1"),
            tags.mailpit_view(id, "t"),
            tags.mailpit_view(id, "h"),
            tags.counts(Version(5)),
            tags.description(),
            tags.docs(),
            EntityTags { epoch: 2 }.listing(Version(5)),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
