//! Helpers to write reply lines, the same in every protocol. The replies are in the protocol modules.

use std::fmt::Display;
use std::io::Write as _;

/// Appends a line with CRLF.
pub(crate) fn write_line(out: &mut Vec<u8>, text: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{text}\r\n");
}

/// Converts a character of an external text for a reply, which is printable ASCII.
pub(crate) fn to_printable_ascii(c: char) -> u8 {
    match u8::try_from(c) {
        Ok(byte) if byte == b' ' || byte.is_ascii_graphic() => byte,
        Ok(byte) if byte.is_ascii() => b' ',
        _ => b'?',
    }
}
