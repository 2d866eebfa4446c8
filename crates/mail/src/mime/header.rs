//! Parsing of header fields: their ranges, canonical names and unfolded values. The syntax of values (parameters,
//! encoded words, addresses) is parsed elsewhere.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr;

use super::encoded_words;
use super::line::LineSpan;

/// The byte order mark that some programs write before the first field. Trace fields of a server can precede it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One header field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderField {
    name: Bytes,
    value: Bytes,
}

impl HeaderField {
    /// Returns the name in canonical form: `Mime-Version`, `X-My-Header`.
    pub fn name(&self) -> String {
        canonical_name(&self.raw_name())
    }

    /// Returns the name as it is written in the message.
    pub fn raw_name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// Returns whether the field has this name, ignoring case.
    pub fn has_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns the bytes after the colon, still folded.
    pub fn raw_value(&self) -> &[u8] {
        &self.value
    }

    /// Returns the unfolded value, not decoded. Bytes that are not UTF-8 become U+FFFD.
    pub fn value(&self) -> String {
        String::from_utf8_lossy(&unfold(&self.value)).into_owned()
    }

    /// Returns the unfolded value with its encoded words (RFC 2047) and 8-bit bytes decoded.
    pub fn decoded_value(&self) -> String {
        decode_field(&self.value)
    }

    pub(super) fn new(source: &Bytes, field: &RawField) -> Self {
        Self { name: source.slice(field.name.clone()), value: source.slice(field.value.clone()) }
    }
}

/// A field as byte ranges of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawField {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

/// An iterator over the fields of one header. Does not allocate, and finds the start of the body.
///
/// A header ends at an empty line (RFC 5322 section 2.1). In malformed messages it also ends at the end of the source,
/// at a boundary line (which only the caller can recognize), or at a line that is not a field. Such a line is skipped
/// with its folded lines if a field follows them. Otherwise the body starts there. The `From ` lines of mbox files are
/// skipped in the same way; trace fields of a server can precede them.
pub(super) struct Fields<'a, F> {
    source: &'a [u8],
    pos: usize,
    is_boundary: F,
    ended: bool,
    /// The number of skipped lines that are not fields, without their folded lines.
    pub(super) malformed_lines: usize,
    /// Whether the body starts without an empty line before it.
    pub(super) missing_empty_line: bool,
}

impl<'a, F: Fn(&[u8]) -> bool> Fields<'a, F> {
    pub(super) fn new(source: &'a [u8], start: usize, is_boundary: F) -> Self {
        Self { source, pos: start, is_boundary, ended: false, malformed_lines: 0, missing_empty_line: false }
    }

    /// Returns the start of the body. Valid after the iterator has returned `None`.
    pub(super) fn body_start(&self) -> usize {
        self.pos
    }

    fn end_header_at(&mut self, pos: usize) {
        self.pos = pos;
        self.ended = true;
    }

    /// Reads a field with its folded lines. Its name ends at `name_end`, and its first line is `line`.
    fn read_field(&mut self, name_end: usize, line: &LineSpan) -> RawField {
        let name = self.pos..self.pos + name_end;
        // The colon is usually the next byte.
        let colon = name.end + self.source[name.end..line.end].iter().position(|&b| b == b':').unwrap_or(0);
        let mut end = line.end;
        let mut next = line.next_start;
        while matches!(self.source.get(next), Some(b' ' | b'\t')) {
            let folded = LineSpan::at(self.source, next);
            end = folded.end;
            next = folded.next_start;
        }
        self.pos = next;
        RawField { name, value: colon + 1..end }
    }
}

impl<F: Fn(&[u8]) -> bool> Iterator for Fields<'_, F> {
    type Item = RawField;

    fn next(&mut self) -> Option<RawField> {
        while !self.ended {
            if self.pos >= self.source.len() {
                self.end_header_at(self.source.len());
                break;
            }
            let line = LineSpan::at(self.source, self.pos);
            let text = &self.source[self.pos..line.end];
            if text.is_empty() {
                self.end_header_at(line.next_start);
            } else if text.starts_with(b"--") && (self.is_boundary)(text) {
                self.end_header_at(self.pos);
            } else if let Some(name_end) = field_name_len(text) {
                return Some(self.read_field(name_end, &line));
            } else if text.strip_prefix(BYTE_ORDER_MARK).is_some_and(|text| field_name_len(text).is_some()) {
                self.pos += BYTE_ORDER_MARK.len();
            } else {
                self.skip_malformed_line(text, line.next_start);
            }
        }
        None
    }
}

impl<F: Fn(&[u8]) -> bool> Fields<'_, F> {
    /// Skips a line that is not a field, and its folded lines, if a field follows them. Otherwise ends the header at this
    /// line.
    fn skip_malformed_line(&mut self, text: &[u8], next: usize) {
        let separator = is_mbox_separator(text);
        let next = if separator { self.skip_mbox_separators(next) } else { next };
        let next = self.skip_folded_lines(next);
        if self.is_field_at(next) {
            self.malformed_lines += usize::from(!separator);
            self.pos = next;
        } else {
            self.missing_empty_line = true;
            self.end_header_at(self.pos);
        }
    }

    /// Returns the position after the mbox separator lines at `start`. A forwarded message can have several.
    fn skip_mbox_separators(&self, start: usize) -> usize {
        let mut pos = start;
        while pos < self.source.len() && is_mbox_separator(&self.source[pos..]) {
            pos = LineSpan::at(self.source, pos).next_start;
        }
        pos
    }

    /// Returns the position after the folded lines at `start`. A blank line is not one of them: without a field before it,
    /// it is more likely a part of the body.
    fn skip_folded_lines(&self, start: usize) -> usize {
        let mut pos = start;
        while matches!(self.source.get(pos), Some(b' ' | b'\t')) {
            let line = LineSpan::at(self.source, pos);
            if self.source[pos..line.end].trim_ascii().is_empty() {
                break;
            }
            pos = line.next_start;
        }
        pos
    }

    fn is_field_at(&self, start: usize) -> bool {
        let line = LineSpan::at(self.source, start);
        let text = &self.source[start..line.end];
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        field_name_len(text).is_some() && !(text.starts_with(b"--") && (self.is_boundary)(text))
    }
}

/// An iterator over the fields of the header of a message: names, and the bytes after the colon, still folded. It follows
/// the same rules for malformed headers as [`Mime`](super::Mime), and does not allocate.
pub struct RawFields<'a>(Fields<'a, fn(&[u8]) -> bool>);

impl<'a> RawFields<'a> {
    /// Starts at the first field.
    pub fn new(source: &'a [u8]) -> Self {
        Self(Fields::new(source, 0, |_| false))
    }

    /// Returns the remaining fields as ranges of the source: their names, and their values without the line end.
    pub fn into_ranges(self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + use<'a> {
        self.0.map(|field| (field.name, field.value))
    }

    /// Returns the body. Skips the remaining fields.
    pub fn into_body(mut self) -> &'a [u8] {
        self.by_ref().for_each(drop);
        &self.0.source[self.0.body_start()..]
    }
}

impl<'a> Iterator for RawFields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.0.next()?;
        Some((&self.0.source[field.name], &self.0.source[field.value]))
    }
}

/// Decodes the value of a field as [`HeaderField::decoded_value`] does.
pub fn decode_field(value: &[u8]) -> String {
    encoded_words::decode_line(&unfold(value))
}

/// Unfolds a value: trims its lines and joins them with one space, as existing clients expect.
pub fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\n', value).is_none() {
        return Cow::Borrowed(value.trim_ascii());
    }
    let mut unfolded = Vec::with_capacity(value.len());
    for line in value.split(|&b| b == b'\n') {
        let line = line.trim_ascii();
        if !unfolded.is_empty() && !line.is_empty() {
            unfolded.push(b' ');
        }
        unfolded.extend_from_slice(line);
    }
    Cow::Owned(unfolded)
}

/// Converts `mime-version` to `Mime-Version`. A name with characters that are not allowed in tokens is not changed.
pub(super) fn canonical_name(name: &str) -> String {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !name.bytes().all(token) {
        return name.to_owned();
    }
    let mut start = true;
    name.chars()
        .map(|c| {
            let cased = if start { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            start = c == '-';
            cased
        })
        .collect()
}

/// Returns the length of the field name at the start of a line. RFC 5322 section 2.2: printable ASCII without colon;
/// section 4.5 allows whitespace before the colon.
pub(super) fn field_name_len(line: &[u8]) -> Option<usize> {
    let end = line.iter().position(|&b| !b.is_ascii_graphic() || b == b':')?;
    let rest = line[end..].trim_ascii_start();
    (end > 0 && rest.first() == Some(&b':')).then_some(end)
}

/// Returns whether the line is the separator that mbox files have before a message. It occurs if an mbox file is piped
/// into an SMTP client.
fn is_mbox_separator(line: &[u8]) -> bool {
    line.starts_with(b"From ") || line.starts_with(b">From ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> (Vec<(String, String)>, String) {
        let bytes = source.as_bytes();
        let mut fields = Fields::new(bytes, 0, |line| line == b"--b");
        let mut found = Vec::new();
        for field in &mut fields {
            let name = String::from_utf8_lossy(&bytes[field.name]).into_owned();
            found.push((name, String::from_utf8_lossy(&unfold(&bytes[field.value])).into_owned()));
        }
        (found, source[fields.body_start()..].to_owned())
    }

    #[test]
    fn finds_fields_and_body_start() {
        type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let table: &[Row] = &[
            ("A: 1\r\nB: 2\r\n\r\nbody", &[("A", "1"), ("B", "2")], "body"),
            ("A: 1\nB: 2\n\nbody", &[("A", "1"), ("B", "2")], "body"),
            ("A: 1\n\r\nbody", &[("A", "1")], "body"),
            ("A: one\r\n two\r\n\tthree\r\n\r\n", &[("A", "one two three")], ""),
            ("A:\r\n folded at once\r\n\r\n", &[("A", "folded at once")], ""),
            ("A : blank before the colon\n\n", &[("A", "blank before the colon")], ""),
            ("A:\n\n", &[("A", "")], ""),
            ("From me Mon Jan  1\nA: 1\n\nx", &[("A", "1")], "x"),
            ("From me Mon\n>From you Tue\nA: 1\n\nx", &[("A", "1")], "x"),
            ("A: 1\nFrom me Mon\n>From you Tue\nB: 2\n\nx", &[("A", "1"), ("B", "2")], "x"),
            ("\u{feff}A: 1\nB: 2\n\nx", &[("A", "1"), ("B", "2")], "x"),
            ("A: 1\n\u{feff}B: 2\nC: 3\n\nx", &[("A", "1"), ("B", "2"), ("C", "3")], "x"),
            ("A: 1\n\u{feff}\nx", &[("A", "1")], "\u{feff}\nx"),
            ("A: 1\nFrom me\nto you\n\nx", &[("A", "1")], "From me\nto you\n\nx"),
            ("From now on\nthere is no header", &[], "From now on\nthere is no header"),
            ("A: 1\nno field\nB: 2\n\nx", &[("A", "1"), ("B", "2")], "x"),
            ("A: 1\nno field\n\nx", &[("A", "1")], "no field\n\nx"),
            ("A: 1\nno field\n folded\n\ttwice\nB: 2\n\nx", &[("A", "1"), ("B", "2")], "x"),
            ("A: 1\nFrom\n : a@x\nB: 2\n\nx", &[("A", "1"), ("B", "2")], "x"),
            ("no field\n folded\nA: 1\n\nx", &[("A", "1")], "x"),
            ("From me Mon\n folded\nA: 1\n\nx", &[("A", "1")], "x"),
            ("A: 1\nno field\n folded\n\nx", &[("A", "1")], "no field\n folded\n\nx"),
            ("A: 1\nno field\n \t\nB: 2\n\nx", &[("A", "1")], "no field\n \t\nB: 2\n\nx"),
            ("A: 1\nno field\n folded\n--b\nB: 2\n\n", &[("A", "1")], "no field\n folded\n--b\nB: 2\n\n"),
            ("no header at all\nx", &[], "no header at all\nx"),
            ("\nbody only", &[], "body only"),
            ("A: 1\n--b\nB: 2\n\n", &[("A", "1")], "--b\nB: 2\n\n"),
            ("A: 1", &[("A", "1")], ""),
            ("", &[], ""),
        ];
        for (source, fields, body) in table {
            let (found, rest) = parse(source);
            let found: Vec<_> = found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!((&found[..], rest.as_str()), (*fields, *body), "{source:?}");
        }
    }

    #[test]
    fn returns_raw_fields_and_body() {
        let source = b"A : 1\r\n 2\r\nmalformed\r\nB:\r\n\r\nC: 3\r\n";
        let mut fields = RawFields::new(source);
        assert_eq!(fields.next(), Some((&b"A"[..], &b" 1\r\n 2"[..])));
        assert_eq!(fields.next(), Some((&b"B"[..], &b""[..])));
        assert_eq!((fields.next(), fields.into_body()), (None, &b"C: 3\r\n"[..]));
        assert_eq!(RawFields::new(source).into_body(), b"C: 3\r\n");
        assert_eq!(RawFields::new(b"").into_body(), b"");
    }

    #[test]
    fn converts_names_to_canonical_form() {
        let table = [
            ("mime-version", "Mime-Version"),
            ("MESSAGE-ID", "Message-Id"),
            ("x-my-header", "X-My-Header"),
            ("x--y", "X--Y"),
            ("odd(name", "odd(name"),
        ];
        for (name, canonical) in table {
            assert_eq!(canonical_name(name), canonical);
        }
    }
}
