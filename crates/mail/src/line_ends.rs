//! Line ends of messages.

use std::borrow::Cow;

use memchr::{memchr_iter, memchr2};

/// Converts all line ends to CRLF. Servers differ in whether a bare CR or LF ends a line, so that a message with one
/// could end early for some of them (SMTP smuggling).
pub fn with_crlf(text: &[u8]) -> Cow<'_, [u8]> {
    let mut output = Vec::new();
    // The text before this position was copied.
    let mut copied = 0;
    let mut position = 0;
    while let Some(offset) = memchr2(b'\r', b'\n', &text[position..]) {
        let end = position + offset;
        position = end + 1;
        if text[end..].starts_with(b"\r\n") {
            position += 1;
            continue;
        }
        output.reserve(if copied == 0 { text.len() + text.len() / 16 } else { 0 });
        output.extend_from_slice(&text[copied..end]);
        output.extend_from_slice(b"\r\n");
        copied = position;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    output.extend_from_slice(&text[copied..]);
    Cow::Owned(output)
}

/// Converts CRLF to LF. A bare CR is kept.
pub(crate) fn with_lf(text: String) -> String {
    let mut output = String::new();
    let mut copied = 0;
    for position in memchr_iter(b'\r', text.as_bytes()) {
        if text.as_bytes().get(position + 1) == Some(&b'\n') {
            output.reserve(if copied == 0 { text.len() } else { 0 });
            output.push_str(&text[copied..position]);
            copied = position + 1;
        }
    }
    if copied == 0 {
        return text;
    }
    output.push_str(&text[copied..]);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crlf_becomes_lf() {
        let table = [
            ("", ""),
            ("a\nb", "a\nb"),
            ("\r\na\r\n\r\nb", "\na\n\nb"),
            ("\ra\r\r\n\n\r", "\ra\r\n\n\r"),
            ("\r\n", "\n"),
        ];
        for (text, expected) in table {
            assert_eq!(with_lf(text.to_owned()), expected, "{text:?}");
        }
    }

    #[test]
    fn every_line_ends_in_crlf() {
        let table =
            [("", ""), ("a\r\nb", "a\r\nb"), ("a\nb\rc\r\n\n\r", "a\r\nb\r\nc\r\n\r\n\r\n"), ("\r\r\n", "\r\n\r\n")];
        for (text, expected) in table {
            assert_eq!(with_crlf(text.as_bytes()), expected.as_bytes(), "{text:?}");
        }
        assert!(matches!(with_crlf(b"a\r\n"), Cow::Borrowed(_)), "nothing is copied");
    }
}
