//! How replies are put into lines, the same in every protocol. Which replies there are is for each protocol to say.

use std::fmt::Display;
use std::io::Write as _;

/// Appends a line with its end.
pub(crate) fn write_line(out: &mut Vec<u8>, text: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{text}\r\n");
}

/// What stands on the wire for a character of somebody else's words: a reply is printable ASCII.
pub(crate) fn to_printable_ascii(c: char) -> u8 {
    match u8::try_from(c) {
        Ok(byte) if byte == b' ' || byte.is_ascii_graphic() => byte,
        Ok(byte) if byte.is_ascii() => b' ',
        _ => b'?',
    }
}
