//! Decoding of the Content-Transfer-Encoding (RFC 2045 section 6). The decoders accept any input: invalid bytes are
//! skipped or kept, and counted.

use std::borrow::Cow;

use bytes::Bytes;

use super::base64::{Base64Scan, DecodedContent, ExpectedContent, is_plain_utf8, scan_base64};
use super::line::LineSpan;
use super::{mixed_base64, uuencode};

/// The maximum length of a body of base64 digits that may be words instead of base64.
const MAX_WORD_BYTES: usize = 64;
/// The minimum number of decoded bytes of text whose padding is missing. Shorter words often decode to text.
const MIN_UNPADDED_BYTES: usize = 4;
/// The minimum length of base64 that may contain foreign characters. Shorter input may be words that happen to decode.
const MIN_DAMAGED_BYTES: usize = 16;
/// One foreign character is allowed per this number of decoded bytes.
const BYTES_PER_FOREIGN: usize = 8;

/// The transfer encoding of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferEncoding {
    /// `7bit`, `8bit`, `binary`, or an unknown encoding: the bytes are the content.
    #[default]
    Identity,
    /// `base64`.
    Base64,
    /// `quoted-printable`.
    QuotedPrintable,
    /// `x-uuencode`, which preceded MIME.
    Uuencode,
}

impl TransferEncoding {
    /// Returns the encoding of this name. `None` if it is unknown.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "" | "7bit" | "8bit" | "binary" | "7-bit" | "8-bit" => Some(Self::Identity),
            "base64" | "base-64" | "x-base64" => Some(Self::Base64),
            "quoted-printable" | "quoted_printable" | "quotedprintable" => Some(Self::QuotedPrintable),
            "x-uuencode" | "uuencode" | "x-uue" | "uue" => Some(Self::Uuencode),
            _ => None,
        }
    }

    /// Decodes the content. Does not copy if there is no encoding.
    pub(super) fn decode(self, encoded: &Bytes, expected: ExpectedContent) -> DecodedContent {
        let DecodedContent { content, broken, foreign_lines } = self.decode_slice(encoded, expected);
        let content = match content {
            Cow::Borrowed(_) => encoded.clone(),
            Cow::Owned(content) => content.into(),
        };
        DecodedContent { content, broken, foreign_lines }
    }

    /// Decodes the content. Borrows all of it if there is no encoding.
    pub(super) fn decode_slice(self, encoded: &[u8], expected: ExpectedContent) -> DecodedContent<Cow<'_, [u8]>> {
        let (content, broken, foreign_lines) = match self {
            Self::Identity => (Cow::Borrowed(encoded), 0, 0),
            Self::Base64 => {
                let DecodedContent { content, broken, foreign_lines } = decode_base64_body(encoded, expected);
                (Cow::Owned(content), broken, foreign_lines)
            }
            Self::QuotedPrintable => {
                let (content, broken) = decode_quoted_printable(encoded);
                (Cow::Owned(content), broken, 0)
            }
            Self::Uuencode => match uuencode::decode(encoded) {
                Some((content, broken)) => (Cow::Owned(content), broken, 0),
                None => (Cow::Borrowed(encoded), 1, 0),
            },
        };
        DecodedContent { content, broken, foreign_lines }
    }
}

/// Decodes a base64 body. A body that is not entirely base64 is decoded line by line, unless it is only damaged.
fn decode_base64_body(encoded: &[u8], expected: ExpectedContent) -> DecodedContent<Vec<u8>> {
    let Base64Scan { decoded, broken, foreign_chars: foreign, is_clean: clean, lacks_padding } = scan_base64(encoded);
    let decoded_at_once = |content| DecodedContent { content, broken, foreign_lines: 0 };
    if !clean && expected == ExpectedContent::Binary && foreign == 0 && !decoded.is_empty() {
        // Spaces inside of lines are harmless.
        return decoded_at_once(decoded);
    }
    let is_line = || memchr::memchr(b'\n', encoded.trim_ascii()).is_none();
    if lacks_padding && decoded.len() >= MIN_UNPADDED_BYTES && is_line() && std::str::from_utf8(&decoded).is_ok() {
        // A word hardly decodes to UTF-8. Unlike text between other lines, the content may have control characters.
        return decoded_at_once(decoded);
    }
    if !clean {
        let by_line = mixed_base64::decode(encoded, expected);
        let is_damaged = expected == ExpectedContent::Utf8Text
            && (by_line.foreign_lines > 0 || !is_plain_utf8(&by_line.content))
            && decoded.len() >= MIN_DAMAGED_BYTES
            && foreign <= decoded.len() / BYTES_PER_FOREIGN
            && is_plain_utf8(&decoded);
        return if is_damaged { decoded_at_once(decoded) } else { by_line };
    }
    // A short word can also be valid base64: `Test`.
    let text = encoded.trim_ascii();
    if expected == ExpectedContent::Utf8Text
        && text.len() <= MAX_WORD_BYTES
        && !text.is_empty()
        && text.iter().all(u8::is_ascii_alphabetic)
        && std::str::from_utf8(&decoded).is_err()
    {
        return DecodedContent { content: encoded.to_vec(), broken: 0, foreign_lines: 1 };
    }
    DecodedContent { content: decoded, broken, foreign_lines: 0 }
}

/// Decodes quoted-printable (RFC 2045 section 6.7). Whitespace at the end of a line was added in transit and is
/// removed. An invalid escape is kept. A text that contains invalid escapes, but none that an encoder would write, is
/// not quoted-printable and is returned unchanged: `?id=42&key=zz`.
pub(super) fn decode_quoted_printable(encoded: &[u8]) -> (Vec<u8>, usize) {
    let mut decoded = Vec::with_capacity(encoded.len());
    let (mut broken, mut evident) = (0, false);
    let mut start = 0;
    while start < encoded.len() {
        let line = LineSpan::at(encoded, start);
        let text = encoded[start..line.end].trim_ascii_end();
        let soft = text.last() == Some(&b'=') && !is_horizontal_rule(text);
        let text = if soft { &text[..text.len() - 1] } else { text };
        let before = decoded.len();
        broken += unescape(text, b'=', &mut decoded);
        evident = evident || soft || decoded.len() - before < text.len() && has_evident_escape(text);
        if !soft {
            decoded.extend_from_slice(&encoded[line.end..line.next_start]);
        }
        start = line.next_start;
    }
    if broken > 0 && !evident {
        return (encoded.to_vec(), broken);
    }
    (decoded, broken)
}

/// Returns whether a line consists of equals signs, as under a heading.
fn is_horizontal_rule(line: &[u8]) -> bool {
    line.len() > 2 && line.iter().all(|&b| b == b'=')
}

/// Returns whether the line contains an escape that an encoder would write: of a control character, a space, `=`, an
/// 8-bit byte, or the start of a line that mail servers treat specially (`=46rom`, `=2E`).
fn has_evident_escape(line: &[u8]) -> bool {
    memchr::memchr_iter(b'=', line).any(|at| {
        let byte = escaped_byte(&line[at + 1..]);
        byte.is_some_and(|byte| !byte.is_ascii_graphic() || byte == b'=' || at == 0)
    })
}

/// Replaces every escape (`=41` or `%41`) by its byte. Returns the number of invalid escapes.
pub(super) fn unescape(text: &[u8], escape: u8, decoded: &mut Vec<u8>) -> usize {
    let mut broken = 0;
    let mut rest = text;
    while let Some(at) = memchr::memchr(escape, rest) {
        decoded.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let byte = escaped_byte(&rest[1..]);
        let used = if let Some(byte) = byte {
            decoded.push(byte);
            3
        } else {
            broken += 1;
            decoded.push(escape);
            1
        };
        rest = &rest[used..];
    }
    decoded.extend_from_slice(rest);
    broken
}

/// Returns the byte of the two hexadecimal digits at the start of the text.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [high, low, ..] = *text else { return None };
    let digit = |byte| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::base64::{BASE64_DIGITS, decode_base64};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn word_is_base64_only_if_it_decodes_to_utf_8() {
        for (encoded, content) in
            [("Test", "Test"), ("Regards\r\n", "Regards\r\n"), ("QgAn", "B\0'"), ("SGVsbG8K", "Hello\n")]
        {
            let found = decode_base64_body(encoded.as_bytes(), ExpectedContent::Utf8Text);
            assert_eq!(String::from_utf8_lossy(&found.content), content, "{encoded}");
        }
    }

    #[test]
    fn text_without_padding_is_decoded() {
        for expected in [ExpectedContent::Utf8Text, ExpectedContent::Text, ExpectedContent::Binary] {
            for (encoded, content) in
                [("AAAAAA", &[0; 4][..]), ("\r\nAAAAAAA\r\n", &[0; 5]), ("SGVsbG8AAA", b"Hello\0\0")]
            {
                let found = decode_base64_body(encoded.as_bytes(), expected);
                assert_eq!((found.content.as_slice(), found.broken), (content, 1), "{encoded} {expected:?}");
            }
        }
        for word in ["Thanks", "Regards", "and/or", "Test12", "Hi", "Hello\nmates"] {
            let found = decode_base64_body(word.as_bytes(), ExpectedContent::Utf8Text);
            assert_eq!(String::from_utf8_lossy(&found.content), word);
        }
    }

    #[test]
    fn decodes_valid_and_invalid_base64() {
        let table: &[(&str, &str, usize)] = &[
            ("SGVsbG8=", "Hello", 0),
            ("SGVs\r\nbG8=\r\n", "Hello", 0),
            ("SGVsbG8", "Hello", 1),
            ("SGVs*bG8=", "Hello", 1),
            ("SGk=SGk=", "HiHi", 0),
            ("SGVsbG8=\r\n=\r\n", "Hello", 0),
            ("S", "", 1),
            ("====", "", 0),
            ("", "", 0),
        ];
        for (encoded, content, broken) in table {
            let found = decode_base64(encoded.as_bytes());
            assert_eq!(found, (content.as_bytes().to_vec(), *broken), "{encoded:?}");
        }
    }

    #[test]
    fn decodes_valid_and_invalid_quoted_printable() {
        let table: &[(&str, &str, usize)] = &[
            ("caf=C3=A9", "café", 0),
            ("caf=c3=a9", "café", 0),
            ("soft =\r\nbreak", "soft break", 0),
            ("soft =  \nbreak", "soft break", 0),
            ("blanks \t\r\nat the end ", "blanks\r\nat the end", 0),
            ("kept=20\r\n", "kept \r\n", 0),
            ("1 + 1 =2 =ZZ", "1 + 1 =2 =ZZ", 2),
            ("cut =4", "cut =4", 1),
            ("cut =", "cut ", 0),
        ];
        for (encoded, content, broken) in table {
            let (found, count) = decode_quoted_printable(encoded.as_bytes());
            assert_eq!((String::from_utf8_lossy(&found).as_ref(), count), (*content, *broken), "{encoded:?}");
        }
    }

    fn encode_base64(content: &[u8]) -> String {
        let digits = BASE64_DIGITS;
        let digit = |value: u32| {
            let at = digits.iter().position(|&d| u32::from(d) == value & 63);
            char::from(u8::try_from(at.unwrap_or_default()).unwrap_or_default())
        };
        let mut encoded = String::new();
        for group in content.chunks(3) {
            let bits = group.iter().chain([&0, &0]).take(3).fold(0, |bits, &b| bits << 8 | u32::from(b));
            for n in 0..4 {
                encoded.push(if n <= group.len() { digit(bits >> (18 - 6 * n)) } else { '=' });
            }
        }
        encoded
    }

    proptest! {
        #[test]
        fn base64_round_trip(content: Vec<u8>, wrap in 1_usize..100) {
            let lines: Vec<_> = encode_base64(&content).as_bytes().chunks(wrap).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(decode_base64(&lines.join(&b"\r\n"[..])), (content, 0));
        }

        #[test]
        fn quoted_printable_round_trip(content: Vec<u8>, wrap in 1_usize..30) {
            let escaped: Vec<_> = content.iter().map(|b| format!("={b:02X}")).collect();
            let lines: Vec<_> = escaped.chunks(wrap).map(<[String]>::concat).collect();
            prop_assert_eq!(decode_quoted_printable(lines.join("=\r\n").as_bytes()), (content, 0));
        }
    }
}
