//! Dot-stuffing (RFC 1939 section 3): a line that starts with a dot gets another one, so that it cannot be taken for
//! the end of a multi-line reply.
//!
//! A line starts at the beginning and after every LF, also a bare one. In the RFC only CRLF ends a line, but most
//! clients end it at LF. For them a bare LF, a dot and CRLF within a message would be the end of the reply, and the
//! rest of the message would look like replies of the server.

use memchr::memmem::Finder;

/// The position in a line, before the next octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// At the start, or after CRLF.
    LineStart,
    /// After a bare LF.
    AfterBareLf,
    /// After a CR.
    AfterCr,
    /// Within a line.
    InLine,
}

/// Dot-stuffs one text, which may come in parts.
#[derive(Debug)]
pub(crate) struct DotStuffer {
    state: LineState,
}

impl DotStuffer {
    /// Creates a stuffer at the start of a text.
    pub(crate) fn new() -> Self {
        Self { state: LineState::LineStart }
    }

    /// Appends the next part.
    pub(crate) fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        let finder = Finder::new(b"\n.");
        while !text.is_empty() {
            if text[0] == b'.' && matches!(self.state, LineState::LineStart | LineState::AfterBareLf) {
                out.push(b'.');
            }
            let end = finder.find(text).map_or(text.len(), |lf| lf + 1);
            let (lines, rest) = text.split_at(end);
            out.extend_from_slice(lines);
            self.state = self.state.after(lines);
            text = rest;
        }
    }

    /// Returns the line end that the text lacks. The final dot needs a separate line.
    pub(crate) fn missing_line_end(&self) -> &'static [u8] {
        if self.state == LineState::LineStart { b"" } else { b"\r\n" }
    }
}

impl LineState {
    fn after(self, text: &[u8]) -> Self {
        match text {
            [] => self,
            [.., b'\r', b'\n'] => Self::LineStart,
            [b'\n'] if self == Self::AfterCr => Self::LineStart,
            [.., b'\n'] => Self::AfterBareLf,
            [.., b'\r'] => Self::AfterCr,
            _ => Self::InLine,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stuffed<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut stuffer, mut out) = (DotStuffer::new(), Vec::new());
        parts.into_iter().for_each(|part| stuffer.push(part, &mut out));
        out.extend_from_slice(stuffer.missing_line_end());
        out
    }

    /// Undoes dot-stuffing like a client that ends lines at LF.
    fn unstuffed(text: &[u8]) -> Vec<u8> {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect()
    }

    #[test]
    fn stuffs_dots_at_the_start_of_lines() {
        let table: &[(&str, &str)] = &[
            ("", ""),
            (".", "..\r\n"),
            (".\r\n", "..\r\n"),
            ("a.b\r\n.c\r\n", "a.b\r\n..c\r\n"),
            ("a\r\n.\r\nb\r\n", "a\r\n..\r\nb\r\n"),
            ("a\n.\r\n+OK\r\n", "a\n..\r\n+OK\r\n"),
            ("a\n.\n", "a\n..\n\r\n"),
            ("\n\n..\n", "\n\n...\n\r\n"),
            ("a\r.\r\n", "a\r.\r\n"),
            ("a", "a\r\n"),
            ("a\r", "a\r\r\n"),
            ("a\n", "a\n\r\n"),
        ];
        for (text, expected) in table {
            let octets = text.as_bytes();
            assert_eq!(stuffed([octets]), expected.as_bytes(), "{text:?}");
            assert_eq!(stuffed(octets.chunks(1)), expected.as_bytes(), "{text:?}, octet by octet");
        }
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![3 => Just(b'.'), 3 => Just(b'\n'), 3 => Just(b'\r'), 1 => any::<u8>()];
        prop::collection::vec(octet, 0..200)
    }

    proptest! {
        #[test]
        fn unstuffing_restores_the_text(text in text(), size in 1..50_usize) {
            let stuffed = stuffed(text.chunks(size));
            prop_assert!(stuffed.is_empty() || stuffed.ends_with(b"\r\n"));
            prop_assert!(stuffed.split(|byte| *byte == b'\n').all(|line| line != b"." && line != b".\r"));
            let restored = unstuffed(&stuffed);
            let added = if text.is_empty() || text.ends_with(b"\r\n") { &b""[..] } else { &b"\r\n"[..] };
            prop_assert_eq!(restored, [&text, added].concat());
        }
    }
}
