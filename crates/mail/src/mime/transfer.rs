//! Content-Transfer-Encoding undone (RFC 2045 section 6). Both decoders read anything: what is no encoding of
//! anything is skipped or kept as it stands, and counted.

use bytes::Bytes;

use super::line::Line;

/// How the content of a part is written into the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferEncoding {
    /// `7bit`, `8bit`, `binary`, or an encoding that is not known: the bytes are the content.
    #[default]
    Identity,
    /// `base64`.
    Base64,
    /// `quoted-printable`.
    QuotedPrintable,
}

impl TransferEncoding {
    /// The encoding of that name, `None` when there is no such encoding.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "" | "7bit" | "8bit" | "binary" | "7-bit" | "8-bit" => Some(Self::Identity),
            "base64" => Some(Self::Base64),
            "quoted-printable" => Some(Self::QuotedPrintable),
            _ => None,
        }
    }

    /// The content behind the encoding, and how many places of it are broken.
    pub(super) fn decode(self, encoded: &Bytes) -> (Bytes, usize) {
        let (decoded, broken) = match self {
            Self::Identity => return (encoded.clone(), 0),
            Self::Base64 => base64(encoded),
            Self::QuotedPrintable => quoted_printable(encoded),
        };
        (decoded.into(), broken)
    }
}

/// Decodes base64, skipping what is not of its alphabet (RFC 2045 section 6.8). Padding ends a group wherever it
/// stands, so that pieces encoded one by one and then joined come out whole.
pub(super) fn base64(encoded: &[u8]) -> (Vec<u8>, usize) {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
    let mut broken = 0;
    let mut group = 0_u32;
    let mut digits = 0;
    for &byte in encoded {
        match BASE64_DIGITS[usize::from(byte)] {
            SKIP => {}
            FOREIGN => broken += 1,
            PAD => {
                broken += usize::from(digits == 1);
                flush(&mut decoded, group, digits);
                (group, digits) = (0, 0);
            }
            digit => {
                group = group << 6 | u32::from(digit);
                digits += 1;
                if digits == 4 {
                    decoded.extend_from_slice(&group.to_be_bytes()[1..]);
                    (group, digits) = (0, 0);
                }
            }
        }
    }
    broken += usize::from(digits != 0);
    flush(&mut decoded, group, digits);
    (decoded, broken)
}

/// Decodes quoted-printable (RFC 2045 section 6.7). Blanks at the end of a line were added on the way and go; an
/// escape that is none stays as it stands.
pub(super) fn quoted_printable(encoded: &[u8]) -> (Vec<u8>, usize) {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut broken = 0;
    let mut start = 0;
    while start < encoded.len() {
        let line = Line::at(encoded, start);
        let text = encoded[start..line.end].trim_ascii_end();
        let soft = text.last() == Some(&b'=');
        let text = if soft { &text[..text.len() - 1] } else { text };
        broken += unescape(text, b'=', &mut decoded);
        if !soft {
            decoded.extend_from_slice(&encoded[line.end..line.next]);
        }
        start = line.next;
    }
    (decoded, broken)
}

/// Replaces every escape (`=41` or `%41`) by its byte and gives the number of escapes that are none.
pub(super) fn unescape(text: &[u8], escape: u8, decoded: &mut Vec<u8>) -> usize {
    let mut broken = 0;
    let mut rest = text;
    while let Some(at) = memchr::memchr(escape, rest) {
        decoded.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let byte = rest.get(1..3).and_then(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
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

const SKIP: u8 = 64;
const PAD: u8 = 65;
const FOREIGN: u8 = 66;

/// What each byte means in base64: a digit, or one of the three above.
static BASE64_DIGITS: [u8; 256] = base64_digits();

const fn base64_digits() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [FOREIGN; 256];
    let mut digit = 0;
    while digit < 64 {
        table[alphabet[digit as usize] as usize] = digit;
        digit += 1;
    }
    table[b' ' as usize] = SKIP;
    table[b'\t' as usize] = SKIP;
    table[b'\r' as usize] = SKIP;
    table[b'\n' as usize] = SKIP;
    table[b'=' as usize] = PAD;
    table
}

/// Writes the bytes that an incomplete group of base64 holds.
fn flush(decoded: &mut Vec<u8>, group: u32, digits: usize) {
    let bytes = (group << (6 * (4 - digits))).to_be_bytes();
    match digits {
        2 => decoded.push(bytes[1]),
        3 => decoded.extend_from_slice(&bytes[1..3]),
        _ => {}
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base64_whole_and_broken() {
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
            let found = base64(encoded.as_bytes());
            assert_eq!(found, (content.as_bytes().to_vec(), *broken), "{encoded:?}");
        }
    }

    #[test]
    fn quoted_printable_whole_and_broken() {
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
            let (found, count) = quoted_printable(encoded.as_bytes());
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
            prop_assert_eq!(base64(&lines.join(&b"\r\n"[..])), (content, 0));
        }

        #[test]
        fn quoted_printable_round_trip(content: Vec<u8>, wrap in 1_usize..30) {
            let escaped: Vec<_> = content.iter().map(|b| format!("={b:02X}")).collect();
            let lines: Vec<_> = escaped.chunks(wrap).map(<[String]>::concat).collect();
            prop_assert_eq!(quoted_printable(lines.join("=\r\n").as_bytes()), (content, 0));
        }
    }
}
