//! The 7-bit charsets of Japan and Korea (ISO 2022). The text is converted to a form that `encoding_rs` decodes.

use std::borrow::Cow;

use encoding_rs::{EUC_KR, ISO_2022_JP};

const ESCAPE: u8 = 0x1b;
/// The length of Japanese escape sequences. RFC 1468 and common extensions use only this length.
const JAPANESE_ESCAPE_BYTES: usize = 3;
/// RFC 1557: announces that shifted text is KS C 5601. It adds nothing to the label of the charset.
const KOREAN_DESIGNATOR: &[u8] = b"\x1b$)C";

/// Detects one of these charsets in bytes without a label by its escape sequences. To all other decoders the bytes are
/// ASCII.
pub(super) fn detect(bytes: &[u8]) -> Option<Iso2022> {
    // One byte is found faster than two, and most texts do not contain it.
    memchr::memchr(ESCAPE, bytes)?;
    memchr::memmem::find(bytes, b"\x1b$")?;
    let korean = memchr::memmem::find(bytes, KOREAN_DESIGNATOR).is_some();
    Some(if korean { Iso2022::Korean } else { Iso2022::Japanese })
}

/// A charset of this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iso2022 {
    /// ISO-2022-JP (RFC 1468).
    Japanese,
    /// ISO-2022-KR (RFC 1557).
    Korean,
}

impl Iso2022 {
    /// Decodes the text. Also returns whether some bytes are invalid, such as all 8-bit bytes.
    pub(super) fn decode(self, bytes: &[u8]) -> (String, bool) {
        let (encoding, converted) = match self {
            Self::Japanese => (ISO_2022_JP, remove_redundant_escapes(bytes)),
            Self::Korean => (EUC_KR, Cow::Owned(set_eighth_bits(bytes))),
        };
        let (text, has_errors) = encoding.decode_without_bom_handling(&converted);
        (text.into_owned(), has_errors || !bytes.is_ascii())
    }
}

/// Removes every escape sequence that is directly followed by another one. Such pairs occur where encoded words or
/// parts of a text were joined. `encoding_rs` treats them as an attack.
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

/// Sets the eighth bit of shifted bytes. RFC 1557: between SO and SI, within one line, are the bytes of EUC-KR without
/// their eighth bit.
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
