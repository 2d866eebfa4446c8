//! The 7-bit charsets of Japan and Korea (ISO 2022), brought into a form that the web's decoders read. What the
//! characters mean is left to these.

use std::borrow::Cow;

use encoding_rs::{EUC_KR, ISO_2022_JP};

const ESCAPE: u8 = 0x1b;
/// Japanese escape sequences, as far as RFC 1468 and common use go, are of one length.
const JAPANESE_ESCAPE_BYTES: usize = 3;
/// RFC 1557: announces that shifted text is KS C 5601; it says nothing that the label has not said.
const KOREAN_DESIGNATOR: &[u8] = b"\x1b$)C";

/// Which of the charsets bytes without a label are in, if they are: escape sequences give them away, to every other
/// decoder they are pure ASCII.
pub(super) fn detect(bytes: &[u8]) -> Option<Iso2022> {
    memchr::memmem::find(bytes, b"\x1b$")?;
    let korean = memchr::memmem::find(bytes, KOREAN_DESIGNATOR).is_some();
    Some(if korean { Iso2022::Korean } else { Iso2022::Japanese })
}

/// A charset of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iso2022 {
    /// ISO-2022-JP (RFC 1468).
    Japanese,
    /// ISO-2022-KR (RFC 1557).
    Korean,
}

impl Iso2022 {
    /// The text, and whether some of it could not be read.
    pub(super) fn decode(self, bytes: &[u8]) -> (String, bool) {
        let (encoding, bytes) = match self {
            Self::Japanese => (ISO_2022_JP, remove_redundant_escapes(bytes)),
            Self::Korean => (EUC_KR, Cow::Owned(set_eighth_bits(bytes))),
        };
        let (text, replaced) = encoding.decode_without_bom_handling(&bytes);
        (text.into_owned(), replaced)
    }
}

/// Drops every escape that another one follows directly. Such pairs stand where encoded words or pieces of a text were
/// joined, and the web's decoder takes them for an attack.
fn remove_redundant_escapes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut output = Vec::new();
    let mut start = 0;
    for at in memchr::memchr_iter(ESCAPE, bytes) {
        let next = at + JAPANESE_ESCAPE_BYTES;
        if is_japanese_escape(&bytes[at..]) && bytes.get(next..).is_some_and(is_japanese_escape) {
            output.extend_from_slice(&bytes[start..at]);
            start = next;
        }
    }
    if start == 0 {
        return Cow::Borrowed(bytes);
    }
    output.extend_from_slice(&bytes[start..]);
    Cow::Owned(output)
}

fn is_japanese_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [ESCAPE, b'(', b'B' | b'J' | b'I', ..] | [ESCAPE, b'$', b'@' | b'B', ..])
}

/// RFC 1557: between SO and SI, and never beyond a line, stand the bytes of EUC-KR without their eighth bit.
fn set_eighth_bits(bytes: &[u8]) -> Vec<u8> {
    const SHIFT_OUT: u8 = 0x0e;
    const SHIFT_IN: u8 = 0x0f;
    let mut shifted = false;
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut pos = 0;
    while let Some(&byte) = bytes.get(pos) {
        pos += 1;
        match byte {
            ESCAPE if bytes[pos - 1..].starts_with(KOREAN_DESIGNATOR) => pos += KOREAN_DESIGNATOR.len() - 1,
            SHIFT_OUT | SHIFT_IN => shifted = byte == SHIFT_OUT,
            0x21..=0x7e if shifted => eight_bit.push(byte | 0x80),
            _ => {
                shifted &= byte != b'\n';
                eight_bit.push(byte);
            }
        }
    }
    eight_bit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_japanese_and_korean() {
        let table: &[(&[u8], Iso2022, &str, bool)] = &[
            (b"\x1b$BF|K\\8l\x1b(B", Iso2022::Japanese, "日本語", false),
            (b"\x1b$BF|K\\\x1b(B\x1b$B8l\x1b(B", Iso2022::Japanese, "日本語", false),
            (b"\x1b$BF|K\\\x1b(B\x1b(J\x1b(B\x1b$B8l\x1b(B.", Iso2022::Japanese, "日本語.", false),
            (b"\x1b$B\x1b(Ba\x1b(B\x1b$B\x1b(B", Iso2022::Japanese, "a", false),
            (b"\x1b$B\x1b", Iso2022::Japanese, "\u{fffd}", true),
            (b"\x1b$)C\x0eGQ1[\x0f!\n", Iso2022::Korean, "한글!\n", false),
            (b"\x1b$)C\x0eGQ\nGQ\x0e1[", Iso2022::Korean, "한\nGQ글", false),
        ];
        for (bytes, charset, text, broken) in table {
            assert_eq!(detect(bytes), Some(*charset), "{text}");
            assert_eq!(charset.decode(bytes), ((*text).to_owned(), *broken));
        }
        assert_eq!(detect(b"\x1b[1m$ plain"), None);
    }
}
