//! JSON bodies of responses.

use bytes::Bytes;
use restante_api_types::json::append;
use serde::Serialize;

use crate::response::problem::{Problem, internal_error};

/// Returns a value as a body: JSON with a final line feed.
pub fn body(value: &impl Serialize) -> Result<Bytes, Problem> {
    body_with_capacity(value, 0)
}

/// Returns a value as a body of about this size. Allocating a large body at once takes half of the memory that growing
/// takes.
pub fn body_with_capacity(value: &impl Serialize, size: usize) -> Result<Bytes, Problem> {
    let mut out = Vec::with_capacity(size);
    append(&mut out, value).map_err(|error| internal_error(&error))?;
    out.push(b'\n');
    // The body may be cached, and the size is an estimate.
    out.shrink_to_fit();
    Ok(out.into())
}

/// Returns an upper limit for the length of a string in JSON. It is close unless many characters are escaped.
pub fn max_string_len(text: &str) -> usize {
    let escaped = text.bytes().filter(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').count();
    text.len() + "\\u0000".len() * escaped + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_end_with_line_feed() {
        assert_eq!(body(&[1, 2]).unwrap(), "[1,2]\n");
        let large = body_with_capacity(&"x".repeat(1000), 1);
        assert_eq!(large.unwrap().len(), 1003);
    }

    proptest::proptest! {
        #[test]
        fn length_of_strings_is_limited(text in ".*|[\\x00-\\x7f]*") {
            proptest::prop_assert!(body(&text).unwrap().len() <= max_string_len(&text) + 1);
        }
    }
}
