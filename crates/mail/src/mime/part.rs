//! One part of a message: its properties from its header, and its byte ranges. The splitter in `split` finds the parts.

use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;

use super::base64::ExpectedContent;
use super::charset::{self, DecodedText};
use super::defect::{Defect, Defects};
use super::header::RawField;
use super::params::StructuredValue;
use super::transfer_encoding::TransferEncoding;

/// The maximum length of a malformed value in a defect, in characters, and of the name of a transfer encoding, in
/// bytes.
const MAX_DISPLAY_LEN: usize = 80;

/// The requested presentation of a part (RFC 2183).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    /// Displayed with the message.
    Inline,
    /// A file attached to the message. Unknown dispositions are treated like this one (section 2.8).
    Attachment,
}

/// A part of a message. The message itself is the root part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The index of the part that contains this one: a multipart, or a text with a file inside of it. `None` for the
    /// root.
    pub parent: Option<usize>,
    /// The position among the parts of the parent, counted from one. Blank parts, which are left out, count too. Zero for
    /// the root.
    pub number: usize,
    /// The number of parts that contain this part.
    pub depth: usize,
    /// `type/subtype`, in lower case. The default of the standard if it is missing.
    pub content_type: String,
    /// The declared charset, as written.
    pub charset: Option<String>,
    /// The transfer encoding of the content.
    pub transfer_encoding: TransferEncoding,
    /// The declared name of the transfer encoding, in lower case. `7bit` if it is missing (RFC 2045 section 6.1).
    pub encoding_name: String,
    /// The requested presentation, if any.
    pub disposition: Option<Disposition>,
    /// The declared file name, decoded but otherwise as sent. It may contain path separators.
    pub filename: Option<String>,
    /// The Content-ID without its angle brackets, as `cid:` links use it.
    pub content_id: Option<String>,
    /// The Content-Location (RFC 2557 section 4.2), as links use it.
    pub content_location: Option<String>,
    /// The range of the header in the source.
    pub header: Range<usize>,
    /// The range of the body in the source, still encoded.
    pub body: Range<usize>,
    /// Whether the lines of the text are flowed (RFC 3676).
    pub(super) flowed: Option<Flowed>,
    /// The bytes that separate the parts of a multipart.
    pub(super) boundary: Option<Vec<u8>>,
    /// Whether this is a uuencoded file inside of the text of its parent.
    pub(super) is_in_text: bool,
}

/// The parameters of `format=flowed` (RFC 3676).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flowed {
    /// `delsp=yes`: the space at a soft line break is not part of the text.
    pub(super) delete_space: bool,
}

impl Part {
    /// Returns whether this part only contains other parts.
    pub fn is_multipart(&self) -> bool {
        self.content_type.starts_with("multipart/")
    }

    /// Returns whether the content is text of any kind.
    pub fn is_text(&self) -> bool {
        self.content_type.starts_with("text/")
    }

    /// Creates the part for a uuencoded file inside of a text. `text` is the index of its parent, and `number` its position
    /// among the files in the text.
    pub(super) fn uuencoded_file(
        text: usize,
        number: usize,
        depth: usize,
        filename: String,
        body: Range<usize>,
    ) -> Self {
        Self {
            parent: Some(text),
            number,
            depth,
            content_type: "application/octet-stream".to_owned(),
            charset: None,
            transfer_encoding: TransferEncoding::Uuencode,
            encoding_name: "x-uuencode".to_owned(),
            disposition: Some(Disposition::Attachment),
            filename: Some(filename),
            content_id: None,
            content_location: None,
            header: body.start..body.start,
            body,
            flowed: None,
            boundary: None,
            is_in_text: true,
        }
    }

    /// Returns the kind of content that the decoder of the transfer encoding can expect.
    pub(super) fn expected_content(&self) -> ExpectedContent {
        let utf8 = |label: &str| matches!(label.to_ascii_lowercase().as_str(), "utf-8" | "utf8" | "us-ascii" | "ascii");
        match (self.is_text(), self.charset.as_deref()) {
            (false, _) => ExpectedContent::Binary,
            (true, Some(label)) if !utf8(label) => ExpectedContent::Text,
            (true, _) => ExpectedContent::Utf8Text,
        }
    }

    /// Decodes the content of a text. A charset that is not declared in the header may be declared in HTML.
    pub(super) fn decode_charset(&self, content: &[u8]) -> DecodedText {
        let is_html = self.content_type == "text/html";
        let declared_in_html = match self.charset {
            None if is_html => charset::charset_declared_in_html(content),
            _ => None,
        };
        charset::decode(self.charset.as_deref().or(declared_in_html.as_deref()), content)
    }

    /// Returns whether the declared transfer encoding is known. The content of other parts is not decoded.
    pub fn has_known_encoding(&self) -> bool {
        TransferEncoding::from_name(&self.encoding_name).is_some()
    }

    /// Decodes the transfer encoding and returns the content. `source` is the message that contains the part. Does not copy
    /// if there is no encoding.
    pub fn decode_content(&self, source: &Bytes) -> Bytes {
        self.transfer_encoding.decode(&source.slice(self.body.clone()), self.expected_content()).content
    }

    /// Returns the content of a text in UTF-8, with its line ends as sent. `source` is the message that contains the part.
    pub fn decode_text(&self, source: &Bytes) -> String {
        self.decode_charset(&self.decode_content(source)).text
    }

    /// Returns whether the part is offered as a file and not displayed.
    pub fn is_attachment(&self) -> bool {
        self.disposition == Some(Disposition::Attachment) || self.content_type == "application/octet-stream"
    }
}

/// The header fields that describe the content of a part.
#[derive(Default)]
pub(super) struct ContentFields<'a> {
    content_type: Option<&'a [u8]>,
    encoding: Option<&'a [u8]>,
    disposition: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    location: Option<&'a [u8]>,
}

impl<'a> ContentFields<'a> {
    /// Records the field if it describes the content. Only the first field of each name is used.
    pub(super) fn record(&mut self, source: &'a [u8], field: &RawField) {
        let name = &source[field.name.clone()];
        // Most fields of a message do not describe its content.
        if !matches!(name, [b'C' | b'c', _, _, _, _, _, _, b'-', ..]) {
            return;
        }
        let slot = if name.eq_ignore_ascii_case(b"content-type") {
            &mut self.content_type
        } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
            &mut self.encoding
        } else if name.eq_ignore_ascii_case(b"content-disposition") {
            &mut self.disposition
        } else if name.eq_ignore_ascii_case(b"content-id") {
            &mut self.id
        } else if name.eq_ignore_ascii_case(b"content-location") {
            &mut self.location
        } else {
            return;
        };
        slot.get_or_insert(&source[field.value.clone()]);
    }

    /// Returns whether these fields certainly describe plain text without a transfer encoding, in a charset that
    /// contains ASCII, such as `text/plain; charset=utf-8`. Only the most common forms are recognized, because this is
    /// called for every message that arrives.
    pub(super) fn is_unencoded_text(&self) -> bool {
        let is_unencoded = |name: &[u8]| [&b"7bit"[..], b"8bit"].iter().any(|known| known.eq_ignore_ascii_case(name));
        self.disposition.is_none()
            && self.encoding.is_none_or(|field| is_unencoded(field.trim_ascii()))
            && self.content_type.is_none_or(|field| is_common_text_type(field.trim_ascii()))
    }

    /// Creates the part that these fields describe, without its position. `default_type` is used if the type is
    /// missing.
    pub(super) fn into_part(self, default_type: &str, defects: &mut Defects) -> Part {
        let kind = self.content_type.map(StructuredValue::parse).unwrap_or_default();
        let disposition = self.disposition.map(StructuredValue::parse);
        let declared = |name| disposition.as_ref().and_then(|d| d.parameter(name));
        let filename = declared("filename")
            .or_else(|| kind.parameter("name"))
            .or_else(|| declared("file"))
            .or_else(|| kind.parameter("filename").or_else(|| kind.parameter("file")));
        let flowed = kind.parameter("format").is_some_and(|format| format.eq_ignore_ascii_case("flowed"));
        let (transfer_encoding, encoding_name) = parse_transfer_encoding(self.encoding, defects);
        let delete_space = kind.parameter("delsp").is_some_and(|delsp| delsp.eq_ignore_ascii_case("yes"));
        Part {
            parent: None,
            number: 0,
            depth: 0,
            content_type: resolve_content_type(&kind.value, default_type, filename.is_some(), defects),
            charset: kind.parameter("charset"),
            transfer_encoding,
            encoding_name,
            disposition: disposition.and_then(|d| self::parse_disposition(&d, defects)),
            filename,
            content_id: self.id.and_then(parse_content_id),
            content_location: self.location.and_then(parse_content_location),
            header: 0..0,
            body: 0..0,
            flowed: flowed.then_some(Flowed { delete_space }),
            boundary: kind.raw_parameter("boundary").and_then(parse_boundary),
            is_in_text: false,
        }
    }
}

/// Returns whether this is `text/plain`, without parameters or with a common charset.
fn is_common_text_type(value: &[u8]) -> bool {
    let Some(parameters) = strip_prefix_ignore_case(value, b"text/plain") else { return false };
    if parameters.is_empty() {
        return true;
    }
    let parameter = parameters.strip_prefix(b";").unwrap_or_default().trim_ascii_start();
    let Some(label) = strip_prefix_ignore_case(parameter, b"charset=") else { return false };
    let label = label.strip_prefix(b"\"").and_then(|label| label.strip_suffix(b"\"")).unwrap_or(label);
    [&b"utf-8"[..], b"us-ascii", b"iso-8859-1"].iter().any(|known| known.eq_ignore_ascii_case(label))
}

fn strip_prefix_ignore_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Parses a disposition. RFC 2183 section 2.8: an unknown disposition is an attachment. A malformed one is ignored.
fn parse_disposition(field: &StructuredValue, defects: &mut Defects) -> Option<Disposition> {
    match field.value.as_str() {
        "" => None,
        "inline" => Some(Disposition::Inline),
        "attachment" => Some(Disposition::Attachment),
        other if is_token(other) && !field.has_extra_words => Some(Disposition::Attachment),
        other => {
            let displayed: String = other.chars().take(MAX_DISPLAY_LEN).collect();
            defects.add_minor(Defect::DISPOSITION, format!("{displayed:?} is not a valid disposition. It is ignored."));
            None
        }
    }
}

/// Returns whether this is a token (RFC 2045 section 5.1).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}

/// Parses a boundary. RFC 2046 section 5.1.1: whitespace at the end is not part of it.
fn parse_boundary(declared: &[u8]) -> Option<Vec<u8>> {
    let boundary = declared.trim_ascii_end();
    (!boundary.is_empty()).then(|| boundary.to_vec())
}

/// Returns the content type. RFC 2045 section 5.2: a malformed type is plain text, unless the part has a file name.
fn resolve_content_type(declared: &str, default_type: &str, has_filename: bool, defects: &mut Defects) -> String {
    if declared.is_empty() {
        return default_type.to_owned();
    }
    if declared.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub)) {
        return declared.to_owned();
    }
    let assumed = if has_filename && declared != "text" { "application/octet-stream" } else { "text/plain" };
    let displayed: String = declared.chars().take(MAX_DISPLAY_LEN).collect();
    defects.add_minor(
        Defect::CONTENT_TYPE,
        format!("{displayed:?} is not a valid content type. The part is read as {assumed}."),
    );
    assumed.to_owned()
}

/// Returns the encoding of the field, and its name for display.
fn parse_transfer_encoding(field: Option<&[u8]>, defects: &mut Defects) -> (TransferEncoding, String) {
    let mut name = field.map(|field| StructuredValue::parse(field).value).unwrap_or_default();
    name.truncate(name.floor_char_boundary(MAX_DISPLAY_LEN));
    let encoding = TransferEncoding::from_name(&name).unwrap_or_else(|| {
        defects.add_severe(
            Defect::ENCODING,
            format!("The transfer encoding {name:?} is unknown. The content is not decoded."),
        );
        TransferEncoding::Identity
    });
    if name.is_empty() {
        name.push_str("7bit");
    }
    (encoding, name)
}

fn parse_content_id(field: &[u8]) -> Option<String> {
    let text = super::encoded_words::decode_line(&super::header::unfold(field));
    let id = text.trim_start_matches('<').trim_end_matches('>').trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Parses a Content-Location. RFC 2557 section 4.4.1: a long location is folded, and the whitespace this adds is not
/// part of it.
fn parse_content_location(field: &[u8]) -> Option<String> {
    let text = super::encoded_words::decode_line(&super::header::unfold(field));
    let location: String = text.split_whitespace().collect();
    (!location.is_empty()).then_some(location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::header::Fields;

    fn part(header: &str) -> (Part, usize) {
        let mut fields = ContentFields::default();
        for field in Fields::new(header.as_bytes(), 0, |_| false) {
            fields.record(header.as_bytes(), &field);
        }
        let mut defects = Defects::default();
        let part = fields.into_part("text/plain", &mut defects);
        (part, defects.into_vec().len())
    }

    #[test]
    fn parses_content_types() {
        let table = [
            ("", "text/plain", 0),
            ("Content-Type: Text/HTML; charset=x", "text/html", 0),
            ("Content-Type: text", "text/plain", 1),
            ("Content-Type: text; name=a.txt", "text/plain", 1),
            ("Content-Type: pdf; name=a.pdf", "application/octet-stream", 1),
            ("Content-Type: a/b/c", "text/plain", 1),
            ("Content-Type: a b/c", "text/plain", 1),
            ("Content-Type: ; charset=x", "text/plain", 0),
            ("Content-Type: text/html charset=utf-8", "text/html", 0),
            ("Content-Type: image/png\nContent-Type: text/html", "image/png", 0),
        ];
        for (header, content_type, defects) in table {
            let (part, defect_count) = part(header);
            assert_eq!((part.content_type.as_str(), defect_count), (content_type, defects), "{header}");
        }
    }

    #[test]
    fn parses_dispositions_names_and_ids() {
        let (inline, _) =
            part("Content-Disposition: INLINE; filename=a.png\nContent-ID: <a@b>\nContent-Type: image/png; name=b.png");
        assert_eq!(inline.disposition, Some(Disposition::Inline));
        assert_eq!(inline.filename.as_deref(), Some("a.png"));
        assert_eq!(inline.content_id.as_deref(), Some("a@b"));
        let (named, _) = part("Content-Type: image/png; name=b.png");
        assert_eq!((named.disposition, named.filename.as_deref()), (None, Some("b.png")));
        let (unknown, _) = part("Content-Disposition: x-special");
        assert!(unknown.is_attachment());
        let table = [
            ("inline; ==", Some(Disposition::Inline), None, 0),
            ("attachment filename=a.txt", Some(Disposition::Attachment), Some("a.txt"), 0),
            ("attachment; file=a.txt", Some(Disposition::Attachment), Some("a.txt"), 0),
            ("attachment; file=a.txt; filename=b.txt", Some(Disposition::Attachment), Some("b.txt"), 0),
            ("x-odd filename=a.txt", Some(Disposition::Attachment), Some("a.txt"), 0),
            ("this is no disposition; filename", None, None, 1),
            ("\"inline", None, None, 1),
            ("foo/bar=;", None, None, 1),
            ("; filename=a.txt", None, Some("a.txt"), 0),
        ];
        for (value, disposition, filename, expected_defects) in table {
            let (part, defects) = part(&format!("Content-Disposition: {value}"));
            assert_eq!(
                (part.disposition, part.filename.as_deref(), defects),
                (disposition, filename, expected_defects),
                "{value}"
            );
        }
    }

    #[test]
    fn reports_unknown_transfer_encodings() {
        let long = format!("Content-Transfer-Encoding: {}", "x".repeat(1000));
        let table = [
            ("", TransferEncoding::Identity, "7bit", 0),
            ("Content-Transfer-Encoding: BASE64", TransferEncoding::Base64, "base64", 0),
            ("Content-Transfer-Encoding: 8bit", TransferEncoding::Identity, "8bit", 0),
            ("Content-Transfer-Encoding: X-UUencode", TransferEncoding::Uuencode, "x-uuencode", 0),
            ("Content-Transfer-Encoding: x-rot13", TransferEncoding::Identity, "x-rot13", 1),
            (&long, TransferEncoding::Identity, &"x".repeat(MAX_DISPLAY_LEN), 1),
        ];
        for (header, encoding, name, expected_defects) in table {
            let (part, defects) = part(header);
            assert_eq!(
                (part.transfer_encoding, &*part.encoding_name, defects),
                (encoding, name, expected_defects),
                "{header}"
            );
        }
    }

    #[test]
    fn parses_locations() {
        let table = [
            ("Content-Location: image.png", Some("image.png")),
            (
                "Content-Location: http://example.org/\r\n a/very/long/\r\n path.png",
                Some("http://example.org/a/very/long/path.png"),
            ),
            ("Content-Location:", None),
            ("", None),
        ];
        for (header, location) in table {
            assert_eq!(part(header).0.content_location.as_deref(), location, "{header}");
        }
    }
}
