//! JSON bodies of responses. Most responses are types that are serialized here. Hot paths write their JSON with the
//! functions below, directly into a buffer; tests compare it with the serialized types.

use std::io::Write as _;

use bytes::Bytes;
use restante_api_types::json::append;
use serde::Serialize;

use crate::response::problem::{Problem, internal_error};

/// Returns a value as a body: JSON with a final line feed.
pub(crate) fn body(value: &impl Serialize) -> Result<Bytes, Problem> {
    body_with_capacity(value, 0)
}

/// Returns a value as a body of about this size. Allocating a large body at once takes half of the memory that growing
/// takes.
pub(crate) fn body_with_capacity(value: &impl Serialize, size: usize) -> Result<Bytes, Problem> {
    let mut out = Vec::with_capacity(size);
    append(&mut out, value).map_err(|error| internal_error(&error))?;
    out.push(b'\n');
    // The body may be cached, and the size is an estimate.
    out.shrink_to_fit();
    Ok(out.into())
}

/// Appends a string in quotes, with only the escapes that RFC 8259 section 7 requires.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => display(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Returns an upper limit for the length of a string in JSON. It is close unless many characters are escaped.
pub(crate) fn max_string_len(text: &str) -> usize {
    let escaped = text.bytes().filter(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').count();
    text.len() + "\\u0000".len() * escaped + 2
}

/// Appends the items in brackets, separated by commas.
pub(crate) fn array<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, item: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    list(out, items, item);
    out.push(b']');
}

/// Appends the members in braces, separated by commas.
pub(crate) fn object<T>(out: &mut Vec<u8>, members: impl IntoIterator<Item = T>, member: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'{');
    list(out, members, member);
    out.push(b'}');
}

fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut item: impl FnMut(&mut Vec<u8>, T)) {
    for (index, value) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item(out, value);
    }
}

/// Appends the `Display` form of a value, which must need no quotes and no escapes, such as a number or boolean.
pub(crate) fn display(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings() {
        let table = [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("say \"hi\" \\o/", r#""say \"hi\" \\o/""#),
            ("a\r\n\tb", r#""a\r\n\tb""#),
            ("\0\u{1f}\u{7f}", "\"\\u0000\\u001f\u{7f}\""),
            ("Grüße 📬", "\"Grüße 📬\""),
        ];
        for (text, expected) in table {
            assert_eq!(written(text), expected);
        }
    }

    #[test]
    fn bodies_end_with_line_feed() {
        assert_eq!(body(&[1, 2]).unwrap(), "[1,2]\n");
        let large = body_with_capacity(&"x".repeat(1000), 1);
        assert_eq!(large.unwrap().len(), 1003);
    }

    #[test]
    fn arrays() {
        let mut out = Vec::new();
        array(&mut out, [1, 2, 3], display);
        array(&mut out, [] as [u8; 0], display);
        assert_eq!(out, b"[1,2,3][]");
    }

    proptest::proptest! {
        #[test]
        fn strings_round_trip(text in ".*|[\\x00-\\x7f]*") {
            proptest::prop_assert!(written(&text).len() <= max_string_len(&text));
            proptest::prop_assert_eq!(body(&text).unwrap(), format!("{}\n", written(&text)));
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&written(&text)).ok(), Some(text));
        }
    }
}
