//! Reads the message after DATA: finds its end and undoes dot-stuffing (RFC 5321 section 4.5.2).
//!
//! Only CRLF ends a line here. A bare LF or CR is content like any other byte. Otherwise two servers could disagree
//! about where a message ends (SMTP smuggling).

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::body::BodyBuffer;

/// A line that starts with a dot. Nothing else in the data has a meaning.
static DOTTED_LINE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n."));
static END_OF_DATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n.\r\n"));

/// Reads the data of a message.
#[derive(Debug)]
pub(crate) struct DataReader {
    /// The message, complete after the end of the data was read.
    pub(crate) body: BodyBuffer,
    state: LineState,
}

/// The position in a line, after the last byte.
#[derive(Clone, Copy, Debug)]
enum LineState {
    /// At the start, or after CRLF.
    LineStart,
    /// After a dot at the start of a line. The dot is never part of the message.
    AfterDot,
    /// After that dot and a CR, which belongs to the message unless LF follows.
    AfterDotCr,
    /// Within a line, after a CR that was stored.
    AfterCr,
    /// Within a line.
    InLine,
}

impl DataReader {
    /// Creates a reader at the start of the data.
    pub(crate) fn new(body: BodyBuffer) -> Self {
        Self { body, state: LineState::LineStart }
    }

    /// Reads input. Returns the number of bytes consumed, and whether the end of the data was reached. Without the end,
    /// all input is consumed.
    pub(crate) fn feed(&mut self, input: &[u8]) -> (usize, bool) {
        if input.len() > self.body.spare_capacity() {
            self.reserve_exact(input);
        }
        let mut pos = 0;
        while let Some(&byte) = input.get(pos) {
            match (self.state, byte) {
                (LineState::LineStart, b'.') => {
                    self.state = LineState::AfterDot;
                    pos += 1;
                }
                (LineState::AfterDot, b'\r') => {
                    self.state = LineState::AfterDotCr;
                    pos += 1;
                }
                (LineState::AfterDotCr, b'\n') => return (pos + 1, true),
                (LineState::AfterDotCr, _) => {
                    self.body.push(b"\r");
                    self.state = LineState::AfterCr;
                }
                (LineState::AfterCr, b'\n') => {
                    self.body.push(b"\n");
                    self.state = LineState::LineStart;
                    pos += 1;
                }
                (LineState::LineStart | LineState::AfterDot | LineState::AfterCr | LineState::InLine, _) => {
                    pos = self.copy_lines(input, pos);
                }
            }
        }
        (pos, false)
    }

    /// Copies the input up to the next line that starts with a dot, including the CRLF before it. Returns where to
    /// continue: after that dot, or at the end of the input.
    fn copy_lines(&mut self, input: &[u8], pos: usize) -> usize {
        let rest = &input[pos..];
        if let Some(found) = DOTTED_LINE.find(rest) {
            self.body.push(&rest[..found + 2]);
            self.state = LineState::AfterDot;
            return pos + found + 3;
        }
        self.body.push(rest);
        self.state = match rest {
            [.., b'\r', b'\n'] => LineState::LineStart,
            [.., b'\r'] => LineState::AfterCr,
            _ => LineState::InLine,
        };
        input.len()
    }

    /// Reserves the exact size if the end of the data is in the input, so that a small message takes one allocation of
    /// exactly its size. A wrong guess costs only memory.
    fn reserve_exact(&mut self, input: &[u8]) {
        if matches!(self.state, LineState::LineStart) && input.starts_with(b".\r\n") {
            return;
        }
        if let Some(end) = END_OF_DATA.find(input) {
            self.body.reserve(end + 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::body::TooLong;
    use super::*;

    /// Reads the parts one after the other. Returns the message and the input after its end.
    fn read(parts: &[&[u8]]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut reader = DataReader::new(BodyBuffer::new(usize::MAX, 0));
        let mut parts = parts.iter();
        while let Some(part) = parts.next() {
            let (consumed, end) = reader.feed(part);
            if end {
                let rest = parts.fold(part[consumed..].to_vec(), |rest, part| [&rest, *part].concat());
                return Some((reader.body.finish().unwrap(), rest));
            }
            assert_eq!(consumed, part.len());
        }
        None
    }

    /// A simple reader that follows RFC 5321: split at CRLF, a single dot ends the data, any other leading dot is
    /// removed.
    fn read_naively(input: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut message = Vec::new();
        let mut rest = input;
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
            let line = &rest[..end];
            rest = &rest[end + 2..];
            if line == b"." {
                return Some((message, rest.to_vec()));
            }
            message.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            message.extend_from_slice(b"\r\n");
        }
        None
    }

    #[test]
    fn finds_the_end_and_removes_dots() {
        type MessageAndRest = Option<(&'static [u8], &'static [u8])>;
        let table: &[(&[u8], MessageAndRest)] = &[
            (b".\r\n", Some((b"", b""))),
            (b"\r\n.\r\n", Some((b"\r\n", b""))),
            (b"a\r\n.\r\nQUIT\r\n", Some((b"a\r\n", b"QUIT\r\n"))),
            (b"..\r\n.\r\n", Some((b".\r\n", b""))),
            (b"a\r\n..b\r\n.c\r\n...\r\n.\r\n", Some((b"a\r\n.b\r\nc\r\n..\r\n", b""))),
            (b"a.\r\nb.\r\n.\r\n", Some((b"a.\r\nb.\r\n", b""))),
            (b"a\r\n.\r\r\n.\r\n", Some((b"a\r\n\r\r\n", b""))),
            (b"a\r\r\n.\r\n", Some((b"a\r\r\n", b""))),
            (b"a\r\n.", None),
            (b"a\r\n.\r", None),
            (b"a", None),
            (b"", None),
        ];
        for (input, expected) in table {
            let expected = expected.map(|(message, rest)| (message.to_vec(), rest.to_vec()));
            assert_eq!(read(&[input]), expected, "{input:?}");
            let bytes: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(read(&bytes), expected, "{input:?} byte by byte");
        }
    }

    #[test]
    fn smuggling_variants_do_not_end_the_message() {
        let variants: &[&[u8]] = &[
            b"\n.\n",
            b"\n.\r\n",
            b"\r\n.\n",
            b"\r.\r",
            b"\r.\r\n",
            b"\r\n.\r",
            b"\n.\r",
            b"\r.\n",
            b"\r\n.\0\r\n",
            b"\r\n\0.\r\n",
            b"\r\0\n.\r\n",
            b"\r\n. \r\n",
            b"\r\n.\r\0\n",
            b"\r\n.\r\r\n",
            b"\n\n.\n\n",
            b"\r\r.\r\r",
            b"\r\n.\x85",
            b"\xe2\x80\xa8.\xe2\x80\xa8",
        ];
        let smuggled = b"MAIL FROM:<evil@x>\r\nRCPT TO:<b@x>\r\nDATA\r\nsmuggled\r\n";
        for variant in variants {
            let input = [b"mail", *variant, smuggled, b".\r\n"].concat();
            let (message, rest) = read(&[&input]).unwrap();
            assert!(rest.is_empty(), "{variant:?} ended the message");
            assert!(message.ends_with(smuggled), "{variant:?}");
            let bytes: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(read(&bytes), Some((message, rest)), "{variant:?} byte by byte");
        }
    }

    #[test]
    fn message_in_one_read_is_allocated_exactly() {
        let mut reader = DataReader::new(BodyBuffer::new(10_000, 0));
        let input = [&b"Subject: x\r\n\r\n"[..], &[b'y'; 777], b"\r\n.\r\nQUIT\r\n"].concat();
        assert_eq!(reader.feed(&input), (input.len() - 6, true));
        let message = reader.body.finish().unwrap();
        assert_eq!((message.len(), message.capacity()), (input.len() - 9, input.len() - 9));
    }

    #[test]
    fn endless_data_is_discarded() {
        let mut reader = DataReader::new(BodyBuffer::new(10_000, 0));
        for _ in 0..100 {
            assert_eq!(reader.feed(&[b'x'; 4_096]), (4_096, false));
            assert!(reader.body.len() <= 10_000);
        }
        assert_eq!(reader.body.len(), 0);
        assert_eq!(reader.feed(b"\r\n.\r\nQUIT\r\n"), (5, true));
        assert_eq!(reader.body.finish(), Err(TooLong));
    }

    proptest! {
        #[test]
        fn matches_the_naive_reader_for_any_input_and_split(
            input in prop::collection::vec(prop_oneof![
                4 => Just(b'\r'), 4 => Just(b'\n'), 4 => Just(b'.'), 2 => Just(b'a'), 1 => any::<u8>(),
            ], 0..60),
            cuts in prop::collection::vec(0..60_usize, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&parts), read_naively(&input));
            prop_assert_eq!(read(&[&input]), read_naively(&input));
        }
    }
}
