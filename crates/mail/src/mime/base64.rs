//! The decoder of base64 (RFC 2045 section 6.8), and the results that the decoders of transfer encodings share.

use bytes::Bytes;

/// What a decoder may expect of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedContent {
    /// Any bytes.
    Binary,
    /// Text in a charset other than UTF-8.
    Text,
    /// Text in UTF-8 or of no declared charset.
    Utf8Text,
}

/// Content with its transfer encoding undone, and what was wrong with the encoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodedContent<B = Bytes> {
    pub(super) content: B,
    /// How many places cannot be decoded.
    pub(super) broken: usize,
    /// How many lines are not in the encoding. They are kept if the content is text, otherwise dropped.
    pub(super) foreign_lines: usize,
}

/// Decodes base64, skipping what is not of its alphabet (RFC 2045 section 6.8). Padding ends a group wherever it
/// stands, so that pieces encoded one by one and then joined come out whole. Returns the number of broken places, too.
pub(super) fn decode_base64(encoded: &[u8]) -> (Vec<u8>, usize) {
    let Base64Scan { decoded, broken, .. } = scan_base64(encoded);
    (decoded, broken)
}

/// What one pass over base64 found.
pub(super) struct Base64Scan {
    pub(super) decoded: Vec<u8>,
    /// Foreign characters and incomplete groups.
    pub(super) broken: usize,
    /// Foreign characters.
    pub(super) foreign_chars: usize,
    /// Whether it was base64 and nothing else: complete, with padding only at the end, without blanks in lines.
    pub(super) is_clean: bool,
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
    broken += foreign + usize::from(digits != 0);
    flush_group(&mut decoded, group, digits);
    Base64Scan { decoded, broken, foreign_chars: foreign, is_clean: clean && broken == 0 }
}

/// Whether these bytes are UTF-8 without control characters that no text holds.
pub(super) fn is_plain_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !has_non_text_controls(bytes)
}

/// Whether there are control characters that no text holds. Escape and shifts are in the charsets of East Asia.
pub(super) fn has_non_text_controls(bytes: &[u8]) -> bool {
    bytes.iter().any(|&b| matches!(b, 0..=8 | 0x0b | 0x10..=0x1a | 0x1c..=0x1f | 0x7f))
}

const LINE_END: u8 = 64;
const BLANK: u8 = 65;
const PAD: u8 = 66;
const FOREIGN: u8 = 67;

/// What each byte means in base64: a digit, or one of the four above.
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

/// Whether this byte is a digit of base64.
pub(super) fn is_base64_digit(byte: u8) -> bool {
    BASE64_DIGITS[usize::from(byte)] < LINE_END
}

/// Writes the bytes that an incomplete group of base64 holds.
fn flush_group(decoded: &mut Vec<u8>, group: u32, digits: usize) {
    let bytes = (group << (6 * (4 - digits))).to_be_bytes();
    match digits {
        2 => decoded.push(bytes[1]),
        3 => decoded.extend_from_slice(&bytes[1..3]),
        _ => {}
    }
}
