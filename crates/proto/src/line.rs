//! Splits input into command lines, and lines into words. A line above its limit is discarded while it arrives and
//! reported once at its end, so an endless line never makes a buffer grow.

use memchr::memchr;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead<'a> {
    /// A line without its end. CRLF ends a command. A bare LF is accepted too, for people who type into `nc`.
    Complete(&'a [u8]),
    /// The end of a line that was too long and was discarded.
    TooLong,
    /// The line is not complete.
    Incomplete,
}

/// Reads lines.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    /// Whether the input starts within a line that is too long.
    pub(crate) is_discarding: bool,
}

impl LineReader {
    /// Reads a line from the start of the input. Also returns the number of bytes consumed.
    pub(crate) fn read_line<'a>(&mut self, input: &'a [u8], limit: usize) -> (usize, LineRead<'a>) {
        let mut start = 0;
        if !self.is_discarding {
            let window = &input[..input.len().min(limit)];
            if let Some(end) = memchr(b'\n', window) {
                let line = &input[..end];
                return (end + 1, LineRead::Complete(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            if input.len() < limit {
                return (0, LineRead::Incomplete);
            }
            start = limit;
        }
        let end = memchr(b'\n', &input[start..]);
        self.is_discarding = end.is_none();
        match end {
            Some(end) => (start + end + 1, LineRead::TooLong),
            None => (input.len(), LineRead::Incomplete),
        }
    }
}

/// Splits off the first word. The rest starts with the next word.
pub(crate) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| matches!(byte, b' ' | b'\t')) {
        Some(end) => (&text[..end], text[end..].trim_ascii_start()),
        None => (text, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 512;

    #[test]
    fn reads_lines_that_end_in_lf() {
        let table: &[(&[u8], usize, LineRead<'_>)] = &[
            (b"", 0, LineRead::Incomplete),
            (b"NOOP", 0, LineRead::Incomplete),
            (b"NOOP\r", 0, LineRead::Incomplete),
            (b"NOOP\r\nQUIT", 6, LineRead::Complete(b"NOOP")),
            (b"NOOP\nQUIT", 5, LineRead::Complete(b"NOOP")),
            (b"NO\rOP\r\r\n", 8, LineRead::Complete(b"NO\rOP\r")),
            (b"\r\n", 2, LineRead::Complete(b"")),
            (b"12345678\r\n", 10, LineRead::Complete(b"12345678")),
            (b"123456789\r\nQUIT", 11, LineRead::TooLong),
            (b"1234567890", 10, LineRead::Incomplete),
        ];
        for (input, consumed, line) in table {
            let result = LineReader::default().read_line(input, 10);
            assert_eq!((result.0, &result.1), (*consumed, line), "{input:?}");
        }
    }

    #[test]
    fn endless_line_is_discarded_while_it_arrives() {
        let mut reader = LineReader::default();
        assert_eq!(reader.read_line(&[b'x'; 600], LIMIT), (600, LineRead::Incomplete));
        for _ in 0..100 {
            assert_eq!(reader.read_line(&[b'x'; 4096], LIMIT), (4096, LineRead::Incomplete));
        }
        assert_eq!(reader.read_line(b"x\r\nNOOP\r\n", LIMIT), (3, LineRead::TooLong));
        assert_eq!(reader.read_line(b"NOOP\r\n", LIMIT), (6, LineRead::Complete(b"NOOP")));
    }
}
