//! One part of a mail: what its header says about it and where it lies. How parts are found is the splitter's business.

use std::ops::Range;

use super::base64::ExpectedContent;
use super::defect::{Defect, Defects};
use super::header::RawField;
use super::params::StructuredValue;
use super::transfer_encoding::TransferEncoding;

/// How much of a name that is not known is shown, in bytes.
const MAX_DISPLAY_BYTES: usize = 80;

/// How a part asks to be presented (RFC 2183).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Shown with the mail.
    Inline,
    /// A file that comes with the mail. Dispositions that nobody knows count as this one (section 2.8).
    Attachment,
}

/// A part of a mail; the mail itself is the root part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The index of the part that holds this one: a multipart, or a text that a file is written into; `None` for the root.
    pub parent: Option<usize>,
    /// How many multiparts are around this part.
    pub depth: usize,
    /// `type/subtype`, lower-cased; what the standard assumes when it is missing.
    pub content_type: String,
    /// The declared charset, as written.
    pub charset: Option<String>,
    /// How the content is encoded.
    pub transfer_encoding: TransferEncoding,
    /// What the part calls that, lower-cased; `7bit` when it says nothing (RFC 2045 section 6.1).
    pub encoding_name: String,
    /// How the part asks to be presented, when it does.
    pub disposition: Option<Disposition>,
    /// The file name that the part declares, decoded but otherwise as sent; it may hold path separators.
    pub filename: Option<String>,
    /// The Content-ID without its angle brackets, as `cid:` links name it.
    pub content_id: Option<String>,
    /// The Content-Location (RFC 2557 section 4.2), as links name it.
    pub content_location: Option<String>,
    /// Where the header lies in the source.
    pub header: Range<usize>,
    /// Where the body lies in the source, its transfer encoding not undone.
    pub body: Range<usize>,
    /// Whether lines of the text are flowed (RFC 3676).
    pub(super) flowed: Option<Flowed>,
    /// The bytes that separate the parts of a multipart.
    pub(super) boundary: Option<Vec<u8>>,
    /// Whether this is a file in uuencode that is written into the text of its parent.
    pub(super) is_in_text: bool,
}

/// The parameters of `format=flowed` (RFC 3676).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flowed {
    /// `delsp=yes`: the blank at a soft line break is not part of the text.
    pub(super) delete_space: bool,
}

impl Part {
    /// Whether this part only holds other parts.
    pub fn is_multipart(&self) -> bool {
        self.content_type.starts_with("multipart/")
    }

    /// Whether the content is text of any kind.
    pub fn is_text(&self) -> bool {
        self.content_type.starts_with("text/")
    }

    /// A file in uuencode that is written into a text.
    pub(super) fn uuencoded_file(text: usize, depth: usize, filename: String, body: Range<usize>) -> Self {
        Self {
            parent: Some(text),
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

    /// What the decoder of the transfer encoding may expect.
    pub(super) fn expected_content(&self) -> ExpectedContent {
        let utf8 = |label: &str| matches!(label.to_ascii_lowercase().as_str(), "utf-8" | "utf8" | "us-ascii" | "ascii");
        match (self.is_text(), self.charset.as_deref()) {
            (false, _) => ExpectedContent::Binary,
            (true, Some(label)) if !utf8(label) => ExpectedContent::Text,
            (true, _) => ExpectedContent::Utf8Text,
        }
    }

    /// Whether the part is to be handed out as a file and not to be shown.
    pub fn is_attachment(&self) -> bool {
        self.disposition == Some(Disposition::Attachment) || self.content_type == "application/octet-stream"
    }
}

/// The fields of a part's header that say what the part is.
#[derive(Default)]
pub(super) struct ContentFields<'a> {
    content_type: Option<&'a [u8]>,
    encoding: Option<&'a [u8]>,
    disposition: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    location: Option<&'a [u8]>,
}

impl<'a> ContentFields<'a> {
    /// Remembers the field if it is one of them; the first of each kind counts.
    pub(super) fn record(&mut self, source: &'a [u8], field: &RawField) {
        let name = &source[field.name.clone()];
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

    /// The part that these fields describe, still without its place. `default_type` is what the standard assumes
    /// when nothing is said.
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

/// RFC 2183 section 2.8: a disposition that is not known is an attachment. What is no disposition at all says nothing.
fn parse_disposition(field: &StructuredValue, defects: &mut Defects) -> Option<Disposition> {
    match field.value.as_str() {
        "" => None,
        "inline" => Some(Disposition::Inline),
        "attachment" => Some(Disposition::Attachment),
        other if is_token(other) && !field.has_extra_words => Some(Disposition::Attachment),
        other => {
            let shown: String = other.chars().take(MAX_DISPLAY_BYTES).collect();
            defects.add_minor(Defect::DISPOSITION, format!("{shown:?} is no disposition, ignored"));
            None
        }
    }
}

/// Whether this is a token (RFC 2045 section 5.1).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}

/// RFC 2046 section 5.1.1: blanks at the end of a boundary are not part of it.
fn parse_boundary(declared: &[u8]) -> Option<Vec<u8>> {
    let boundary = declared.trim_ascii_end();
    (!boundary.is_empty()).then(|| boundary.to_vec())
}

/// RFC 2045 section 5.2: a type that cannot be read is plain text, unless it comes with a file name.
fn resolve_content_type(declared: &str, default_type: &str, has_filename: bool, defects: &mut Defects) -> String {
    if declared.is_empty() {
        return default_type.to_owned();
    }
    if declared.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub)) {
        return declared.to_owned();
    }
    let assumed = if has_filename && declared != "text" { "application/octet-stream" } else { "text/plain" };
    let shown: String = declared.chars().take(80).collect();
    defects.add_minor(Defect::CONTENT_TYPE, format!("{shown:?} is no content type, read as {assumed}"));
    assumed.to_owned()
}

/// The encoding that the field names, and the name as it is shown.
fn parse_transfer_encoding(field: Option<&[u8]>, defects: &mut Defects) -> (TransferEncoding, String) {
    let mut name = field.map(|field| StructuredValue::parse(field).value).unwrap_or_default();
    name.truncate(name.floor_char_boundary(MAX_DISPLAY_BYTES));
    let encoding = TransferEncoding::from_name(&name).unwrap_or_else(|| {
        defects.add_severe(Defect::ENCODING, format!("transfer encoding {name:?} is not known, content left as it is"));
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

/// RFC 2557 section 4.4.1: a long location is folded into lines, and the blanks that this adds are not part of it.
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
            let (part, noted) = part(header);
            assert_eq!((part.content_type.as_str(), noted), (content_type, defects), "{header}");
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
        for (value, disposition, filename, noted) in table {
            let (part, defects) = part(&format!("Content-Disposition: {value}"));
            assert_eq!(
                (part.disposition, part.filename.as_deref(), defects),
                (disposition, filename, noted),
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
            (&long, TransferEncoding::Identity, &"x".repeat(MAX_DISPLAY_BYTES), 1),
        ];
        for (header, encoding, name, noted) in table {
            let (part, defects) = part(header);
            assert_eq!((part.transfer_encoding, &*part.encoding_name, defects), (encoding, name, noted), "{header}");
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
