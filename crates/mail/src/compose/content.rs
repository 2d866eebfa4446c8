//! Writing of message parts and the encoding of their content (RFC 2045, 2046, 2183, 2231).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::field::{FieldWriter, check_line};
use super::{Attachment, DraftError, LineEnds};
use crate::line_ends::with_crlf;
use crate::named_enum;

/// The maximum length of a line without its end (RFC 5322 section 2.1.1).
const MAX_LINE_BYTES: usize = 998;
/// The maximum length of a line of encoded content (RFC 2045 sections 6.7 and 6.8), and the number of bytes that such a
/// line of base64 encodes.
const ENCODED_LINE_BYTES: usize = 76;
const BASE64_LINE_INPUT_BYTES: usize = ENCODED_LINE_BYTES / 4 * 3;
/// The maximum length of a file name: the limit of common file systems.
const MAX_FILENAME_BYTES: usize = 255;
/// The maximum length of a content type with its parameters, and of a Content-ID.
const MAX_VALUE_BYTES: usize = 250;
/// The maximum length of an encoded file name in one parameter.
const PARAMETER_SEGMENT_BYTES: usize = 60;

/// A message that is being written.
pub(super) struct MessageWriter<'a> {
    out: Vec<u8>,
    /// Text that no part contains by chance. Every boundary ends in it.
    unique_token: &'a str,
    line_ends: LineEnds,
    multipart_count: usize,
    /// The boundary of the multipart that is being written.
    open_boundary: Option<String>,
}

impl<'a> MessageWriter<'a> {
    pub(super) fn new(unique: &'a str, line_ends: LineEnds) -> Self {
        Self { out: Vec::new(), unique_token: unique, line_ends, multipart_count: 0, open_boundary: None }
    }

    pub(super) fn write_field(&mut self, name: &str, write: impl FnOnce(&mut FieldWriter<'_>)) {
        let mut field = FieldWriter::new(&mut self.out, name);
        write(&mut field);
        field.end_line();
    }

    /// Writes a multipart. The closure writes its parts.
    pub(super) fn write_multipart(
        &mut self,
        kind: &str,
        parts: impl FnOnce(&mut Self) -> Result<(), DraftError>,
    ) -> Result<(), DraftError> {
        self.multipart_count += 1;
        // Encoded content never contains "=_", and no other content contains the unique token.
        let boundary = format!("=_{}.{}", self.multipart_count, self.unique_token);
        self.write_field("Content-Type", |field| {
            field.push_token(&format!("multipart/{kind};"));
            field.push_token(&format!("boundary=\"{boundary}\""));
        });
        let outer_boundary = self.open_boundary.replace(boundary.clone());
        parts(self)?;
        self.open_boundary = outer_boundary;
        self.write_line(&format!("\r\n--{boundary}--"));
        Ok(())
    }

    /// Writes a part of the open multipart.
    pub(super) fn write_part(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<(), DraftError>,
    ) -> Result<(), DraftError> {
        if let Some(boundary) = &self.open_boundary {
            // The line end before a boundary belongs to the boundary, not to the part before it. The first one ends the
            // header.
            let delimiter = format!("\r\n--{boundary}");
            self.write_line(&delimiter);
        }
        part(self)
    }

    /// Writes a text part.
    pub(super) fn write_text(&mut self, subtype: &str, text: &str) {
        let text = match self.line_ends {
            LineEnds::Crlf => with_crlf(text.as_bytes()),
            LineEnds::Unchanged => Cow::Borrowed(text.as_bytes()),
        };
        let encoding = self.choose_encoding(&text);
        self.write_field("Content-Type", |field| field.push_token(&format!("text/{subtype}; charset=utf-8")));
        self.write_content(encoding, &text);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.line_ends == LineEnds::Crlf && !self.out.ends_with(b"\r\n") {
            self.out.extend_from_slice(b"\r\n");
        }
        self.out
    }

    fn write_line(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Ends the header of a part and writes its content.
    fn write_content(&mut self, encoding: Encoding, content: &[u8]) {
        self.write_field("Content-Transfer-Encoding", |field| field.push_token(encoding.name()));
        self.write_line("");
        match encoding {
            Encoding::SevenBit | Encoding::EightBit => self.out.extend_from_slice(content),
            Encoding::QuotedPrintable => write_quoted_printable(&mut self.out, content),
            Encoding::Base64 => write_base64_lines(&mut self.out, content),
        }
    }

    /// Returns the encoding that leaves the text most readable.
    fn choose_encoding(&self, text: &[u8]) -> Encoding {
        let bare_line_ends = count_bare_line_ends(text);
        if bare_line_ends == 0 && self.fits_unencoded(text) && is_printable(text) {
            return Encoding::SevenBit;
        }
        let escapes = text.iter().filter(|&&byte| byte == b'=' || !is_printable(&[byte])).count() + bare_line_ends;
        if escapes * 6 > text.len() { Encoding::Base64 } else { Encoding::QuotedPrintable }
    }

    /// Returns whether the text can be written without encoding: no line is too long or contains NUL, and no line can
    /// be a boundary.
    fn fits_unencoded(&self, text: &[u8]) -> bool {
        let is_valid_line =
            |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).len() <= MAX_LINE_BYTES && !line.contains(&0);
        text.split(|&byte| byte == b'\n').all(is_valid_line)
            && memmem::find(text, self.unique_token.as_bytes()).is_none()
    }
}

impl Attachment {
    /// Writes this file as a part. `at` is its index in the draft.
    pub(super) fn write(&self, out: &mut MessageWriter<'_>, at: usize) -> Result<(), DraftError> {
        let invalid = |field: &str, problem: &str| DraftError::new(format!("attachments[{at}].{field}"), problem);
        let content_type = self.content_type.as_deref().unwrap_or("application/octet-stream").trim();
        if !is_content_type(content_type) {
            return Err(invalid("content-type", "is not of the form type/subtype"));
        }
        let lower = content_type.to_ascii_lowercase();
        if lower.starts_with("multipart/") {
            return Err(invalid("content-type", "is a multipart, which an attachment cannot be"));
        }
        out.write_field("Content-Type", |field| content_type.split(' ').for_each(|token| field.push_token(token)));
        self.write_disposition(out, at)?;
        if let Some(id) = &self.content_id {
            let id = id.trim_start_matches('<').trim_end_matches('>');
            let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'<' && byte != b'>';
            if id.is_empty() || id.len() > MAX_VALUE_BYTES || !id.bytes().all(is_allowed) {
                return Err(invalid("content-id", "is not a valid Content-ID"));
            }
            out.write_field("Content-ID", |field| field.push_token(&format!("<{id}>")));
        }
        if !lower.starts_with("message/") {
            out.write_content(Encoding::Base64, &self.content);
            return Ok(());
        }
        // RFC 2046 section 5.2: a message inside of a message is not encoded.
        let message = with_crlf(&self.content);
        if !out.fits_unencoded(&message) {
            return Err(invalid("content", "is a message with lines that are too long or contain NUL"));
        }
        let encoding = if message.is_ascii() { Encoding::SevenBit } else { Encoding::EightBit };
        out.write_content(encoding, &message);
        Ok(())
    }

    fn write_disposition(&self, out: &mut MessageWriter<'_>, at: usize) -> Result<(), DraftError> {
        let disposition = if self.content_id.is_some() { "inline" } else { "attachment" };
        let Some(name) = &self.filename else {
            out.write_field("Content-Disposition", |field| field.push_token(disposition));
            return Ok(());
        };
        let field_path = format!("attachments[{at}].filename");
        check_line(&field_path, name)?;
        if name.len() > MAX_FILENAME_BYTES {
            return Err(DraftError::new(field_path, format!("has more than {MAX_FILENAME_BYTES} bytes")));
        }
        out.write_field("Content-Disposition", |field| {
            field.push_token(&format!("{disposition};"));
            write_filename(field, name);
        });
        Ok(())
    }
}

named_enum! {
    enum Encoding {
        SevenBit = "7bit",
        EightBit = "8bit",
        QuotedPrintable = "quoted-printable",
        Base64 = "base64",
    }
}

/// Writes a file name as a parameter: in quotes if all readers understand that, otherwise encoded and in segments (RFC
/// 2231).
fn write_filename(field: &mut FieldWriter<'_>, name: &str) {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if name.len() <= PARAMETER_SEGMENT_BYTES
        && name.trim() == name
        && name.bytes().all(is_plain)
        && !name.contains("=?")
    {
        return field.push_token(&format!("filename=\"{name}\""));
    }
    let encoded = format!("utf-8''{}", utf8_percent_encode(name, ESCAPED));
    if encoded.len() <= PARAMETER_SEGMENT_BYTES {
        return field.push_token(&format!("filename*={encoded}"));
    }
    let mut rest = encoded.as_str();
    for number in 0.. {
        let mut end = rest.len().min(PARAMETER_SEGMENT_BYTES);
        // Do not split an escape.
        if end < rest.len()
            && let Some(escape) = rest[end - 2..end].find('%')
        {
            end = end - 2 + escape;
        }
        let (head, tail) = rest.split_at(end);
        let separator = if tail.is_empty() { "" } else { ";" };
        field.push_token(&format!("filename*{number}*={head}{separator}"));
        rest = tail;
        if rest.is_empty() {
            return;
        }
    }
}

fn is_content_type(text: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_essence = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    is_essence && text.len() <= MAX_VALUE_BYTES && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Returns how often CR or LF occur alone. RFC 5322 section 2.3 does not allow that in a message.
fn count_bare_line_ends(text: &[u8]) -> usize {
    memchr::memchr2_iter(b'\r', b'\n', text).count() - 2 * memmem::find_iter(text, b"\r\n").count()
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n'))
}

fn write_base64_lines(out: &mut Vec<u8>, content: &[u8]) {
    out.reserve(content.len() / BASE64_LINE_INPUT_BYTES * (ENCODED_LINE_BYTES + 2) + ENCODED_LINE_BYTES + 2);
    let mut line = String::with_capacity(ENCODED_LINE_BYTES);
    for chunk in content.chunks(BASE64_LINE_INPUT_BYTES) {
        line.clear();
        STANDARD.encode_string(chunk, &mut line);
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes quoted-printable (RFC 2045 section 6.7). CRLF is kept, and LF is encoded and followed by a soft line break. Spaces
/// before line ends are encoded, because servers may remove them.
fn write_quoted_printable(out: &mut Vec<u8>, text: &[u8]) {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let (line, end): (_, &[u8]) = match line.strip_suffix(b"\r\n") {
            Some(line) => (line, b"\r\n"),
            None if lines.peek().is_some() => (line, b"=\r\n"),
            None => (line, b""),
        };
        let mut column = 0;
        for (at, &byte) in line.iter().enumerate() {
            let is_literal =
                matches!(byte, b'!'..=b'<' | b'>'..=b'~') || matches!(byte, b' ' | b'\t') && at + 1 < line.len();
            let width = if is_literal { 1 } else { 3 };
            if column + width >= ENCODED_LINE_BYTES {
                out.extend_from_slice(b"=\r\n");
                column = 0;
            }
            if is_literal {
                out.push(byte);
            } else {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.extend([b'=', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
            column += width;
        }
        out.extend_from_slice(end);
    }
}
