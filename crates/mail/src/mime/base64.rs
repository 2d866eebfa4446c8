//! Decoding of base64 (RFC 2045 section 6.8), and the result type that all decoders of transfer encodings share.

use bytes::Bytes;

/// The kind of content that a decoder expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedContent {
    /// Any bytes.
    Binary,
    /// Text in a charset other than UTF-8.
    Text,
    /// Text in UTF-8, or without a declared charset.
    Utf8Text,
}

/// Decoded content, and the errors of its transfer encoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodedContent<B = Bytes> {
    pub(super) content: B,
    /// The number of places that cannot be decoded.
    pub(super) broken: usize,
    /// The number of lines that are not in the encoding. They are kept if the content is text, otherwise dropped.
    pub(super) foreign_lines: usize,
}

/// Decodes base64 and skips foreign characters (RFC 2045 section 6.8). Padding ends a group at any position, so that
/// concatenated segments are decoded completely. Also returns the number of errors.
pub(super) fn decode_base64(encoded: &[u8]) -> (Vec<u8>, usize) {
    let Base64Scan { decoded, broken, .. } = scan_base64(encoded);
    (decoded, broken)
}

/// The result of one pass over base64.
pub(super) struct Base64Scan {
    pub(super) decoded: Vec<u8>,
    /// The number of foreign characters and incomplete groups.
    pub(super) broken: usize,
    /// The number of foreign characters.
    pub(super) foreign_chars: usize,
    /// Whether the input is only base64: complete, with padding only at the end, without spaces inside of lines.
    pub(super) is_clean: bool,
    /// Whether only the padding at the end is missing.
    pub(super) lacks_padding: bool,
}

/// Decodes base64 in one pass.
pub(super) fn scan_base64(encoded: &[u8]) -> Base64Scan {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
    let (mut broken, mut foreign, mut clean, mut padded) = (0, 0, true, false);
    let mut group = 0_u32;
    let mut digits = 0;
    let mut rest = encoded;
    loop {
        if digits == 0 {
            while let Some((quad, tail)) = rest.split_first_chunk::<4>()
                && let values = quad.map(|byte| u32::from(BASE64_DIGITS[usize::from(byte)]))
                && values[0] | values[1] | values[2] | values[3] < u32::from(LINE_END)
            {
                let bits = values[0] << 18 | values[1] << 12 | values[2] << 6 | values[3];
                decoded.extend_from_slice(&bits.to_be_bytes()[1..]);
                clean &= !padded;
                rest = tail;
            }
        }
        let Some((&byte, tail)) = rest.split_first() else { break };
        rest = tail;
        match BASE64_DIGITS[usize::from(byte)] {
            LINE_END => {}
            BLANK => clean = false,
            FOREIGN => foreign += 1,
            PAD => {
                broken += usize::from(digits == 1);
                padded = true;
                flush_group(&mut decoded, group, digits);
                (group, digits) = (0, 0);
            }
            digit => {
                clean &= !padded;
                group = group << 6 | u32::from(digit);
                digits += 1;
                if digits == 4 {
                    decoded.extend_from_slice(&group.to_be_bytes()[1..]);
                    (group, digits) = (0, 0);
                }
            }
        }
    }
    let lacks_padding = clean && broken + foreign == 0 && digits > 1;
    broken += foreign + usize::from(digits != 0);
    flush_group(&mut decoded, group, digits);
    Base64Scan { decoded, broken, foreign_chars: foreign, is_clean: clean && broken == 0, lacks_padding }
}

/// Returns whether the bytes are UTF-8 without control characters that do not occur in text.
pub(super) fn is_plain_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !has_non_text_controls(bytes)
}

/// Returns whether the bytes contain control characters that do not occur in text. Escape and shift characters occur in
/// East Asian charsets.
pub(super) fn has_non_text_controls(bytes: &[u8]) -> bool {
    bytes.iter().any(|&b| matches!(b, 0..=8 | 0x0b | 0x10..=0x1a | 0x1c..=0x1f | 0x7f))
}

const LINE_END: u8 = 64;
const BLANK: u8 = 65;
const PAD: u8 = 66;
const FOREIGN: u8 = 67;

/// The value of each byte in base64: a digit, or one of the four constants above.
pub(super) static BASE64_DIGITS: [u8; 256] = base64_digits();

const fn base64_digits() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [FOREIGN; 256];
    let mut digit = 0;
    while digit < 64 {
        table[alphabet[digit as usize] as usize] = digit;
        digit += 1;
    }
    table[b' ' as usize] = BLANK;
    table[b'\t' as usize] = BLANK;
    table[b'\r' as usize] = LINE_END;
    table[b'\n' as usize] = LINE_END;
    table[b'=' as usize] = PAD;
    table
}

/// Returns whether the byte is a base64 digit.
pub(super) fn is_base64_digit(byte: u8) -> bool {
    BASE64_DIGITS[usize::from(byte)] < LINE_END
}

/// Writes the bytes of an incomplete group.
fn flush_group(decoded: &mut Vec<u8>, group: u32, digits: usize) {
    let bytes = (group << (6 * (4 - digits))).to_be_bytes();
    match digits {
        2 => decoded.push(bytes[1]),
        3 => decoded.extend_from_slice(&bytes[1..3]),
        _ => {}
    }
}
