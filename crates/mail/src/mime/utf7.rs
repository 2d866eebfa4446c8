//! Decoding of UTF-7 (RFC 2152). The WHATWG Encoding Standard omits it, but old messages use it. An invalid shifted
//! run becomes U+FFFD.

use super::base64::decode_base64;

/// Decodes UTF-7.
pub(super) fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(shift) = memchr::memchr(b'+', rest) {
        push_direct(&mut text, &rest[..shift]);
        rest = &rest[shift + 1..];
        let end = rest.iter().position(|&b| !is_base64_digit(b)).unwrap_or(rest.len());
        let run = &rest[..end];
        let closed = rest.get(end) == Some(&b'-');
        if run.is_empty() && closed {
            text.push('+');
        } else {
            push_shifted(&mut text, run);
        }
        rest = &rest[end + usize::from(closed)..];
    }
    push_direct(&mut text, rest);
    text
}

/// Only ASCII is allowed outside of shifted runs, but UTF-8 is accepted.
fn push_direct(text: &mut String, bytes: &[u8]) {
    text.push_str(&String::from_utf8_lossy(bytes));
}

/// Decodes a shifted run: UTF-16 in big-endian order, in base64 without padding.
fn push_shifted(text: &mut String, run: &[u8]) {
    let (bytes, _) = decode_base64(run);
    let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    text.extend(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_samples_of_rfc_2152_and_invalid_input() {
        let table = [
            ("A+ImIDkQ.", "A≢Α."),
            ("Hi Mom -+Jjo--!", "Hi Mom -☺-!"),
            ("+ZeVnLIqe-", "日本語"),
            ("1 +- 1 = 2", "1 + 1 = 2"),
            ("+2D3eAA-", "😀"),
            ("+2D0-", "\u{fffd}"),
            ("cut +", "cut "),
        ];
        for (encoded, text) in table {
            assert_eq!(decode(encoded.as_bytes()), text, "{encoded}");
        }
    }
}
