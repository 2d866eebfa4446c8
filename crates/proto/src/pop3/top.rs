//! Finds the end of the part that TOP sends (RFC 1939 section 7): the header, the blank line, and a number of lines of
//! the body.

use memchr::memchr_iter;
use restante_mail::message::Source;

/// Returns the number of octets up to the end of the header and of `lines` lines after it. A message without a blank
/// line is all header. A bare LF ends a line here, as in [`super::dot_stuffing`].
pub(crate) fn length(source: &Source, lines: u64) -> usize {
    let mut remaining = None;
    let mut offset = 0;
    // The incomplete line at the end of the previous part.
    let mut incomplete_line: &[u8] = b"";
    for part in [&source.trace, &source.body] {
        let mut start = 0;
        for end in memchr_iter(b'\n', part) {
            let is_blank = matches!((incomplete_line, &part[start..end]), (b"", b"" | b"\r") | (b"\r", b""));
            (incomplete_line, start) = (b"", end + 1);
            remaining = match remaining {
                None if is_blank => Some(lines),
                None => None,
                Some(count) => Some(count - 1),
            };
            if remaining == Some(0) {
                return offset + start;
            }
        }
        offset += part.len();
        incomplete_line = &part[start..];
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_of_the_header_and_lines() {
        let table: &[(&str, u64, &str)] = &[
            ("A: b\r\n\r\none\r\ntwo\r\n", 0, "A: b\r\n\r\n"),
            ("A: b\r\n\r\none\r\ntwo\r\n", 1, "A: b\r\n\r\none\r\n"),
            ("A: b\r\n\r\none\r\ntwo\r\n", 2, "A: b\r\n\r\none\r\ntwo\r\n"),
            ("A: b\r\n\r\none\r\ntwo\r\n", u64::MAX, "A: b\r\n\r\none\r\ntwo\r\n"),
            ("A: b\r\n\r\none\r\ntwo", 1, "A: b\r\n\r\none\r\n"),
            ("A: b\r\n\r\none\r\ntwo", 2, "A: b\r\n\r\none\r\ntwo"),
            ("A: b\n\none\ntwo\n", 1, "A: b\n\none\n"),
            ("A: b\n\r\none\n\n\ntwo\n", 2, "A: b\n\r\none\n\n"),
            ("A: b\r\n", 5, "A: b\r\n"),
            ("A: b", 0, "A: b"),
            ("A: b\r\n\r\n", 5, "A: b\r\n\r\n"),
            ("\r\nbody\r\n", 0, "\r\n"),
            ("A: b\r\n\r\r\n\r\nx", 0, "A: b\r\n\r\r\n\r\n"),
            ("", 0, ""),
        ];
        for (text, lines, expected) in table {
            // The boundary between the two parts has no effect, wherever it is.
            for boundary in 0..=text.len() {
                let (trace, body) = text.as_bytes().split_at(boundary);
                let source = Source { trace: trace.to_vec().into(), body: body.to_vec().into() };
                assert_eq!(length(&source, *lines), expected.len(), "{text:?}, {lines}, {boundary}");
            }
        }
    }
}
