//! BDAT (RFC 3030): the announcement of a chunk, and the count of its octets. They are exact: nothing is looked for in
//! them and nothing is taken out.

use crate::line::split_word;

use super::command_error::CommandError;
use super::reply;

/// A chunk that was announced, and how much of it is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    size: u64,
    /// The octets still to come.
    pub(crate) remaining: u64,
    /// Whether the mail ends with it.
    pub(crate) is_last: bool,
}

impl Chunk {
    /// Parses what follows the verb: a size, and perhaps LAST. Without a valid size nobody knows where the next
    /// command starts, so there is nothing to skip.
    pub(crate) fn parse(arguments: &[u8]) -> Result<Self, CommandError> {
        let malformed = || CommandError::Bad(reply::SYNTAX_BDAT);
        let (size, rest) = split_word(arguments);
        let last = match split_word(rest) {
            (b"", _) => false,
            (word, b"") if word.eq_ignore_ascii_case(b"LAST") => true,
            _ => return Err(malformed()),
        };
        if size.is_empty() || size.len() > 20 || !size.iter().all(u8::is_ascii_digit) {
            return Err(malformed());
        }
        let size = std::str::from_utf8(size).ok().and_then(|digits| digits.parse().ok());
        let size = size.ok_or_else(malformed)?;
        Ok(Self { size, remaining: size, is_last: last })
    }

    /// The octets of this chunk at the start of the input.
    pub(crate) fn take<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let length = usize::try_from(self.remaining).map_or(input.len(), |remaining| remaining.min(input.len()));
        self.remaining -= length as u64;
        &input[..length]
    }

    /// The octets that have come.
    pub(crate) fn received_bytes(self) -> u64 {
        self.size - self.remaining
    }

    /// Whether all octets have come.
    pub(crate) fn is_complete(self) -> bool {
        self.remaining == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements() {
        let table: &[(&str, Option<(u64, bool)>)] = &[
            ("0", Some((0, false))),
            ("0 LAST", Some((0, true))),
            ("86 last", Some((86, true))),
            ("86\tLAST", Some((86, true))),
            ("00000000000000000086", Some((86, false))),
            ("18446744073709551615", Some((u64::MAX, false))),
            ("18446744073709551616", None),
            ("000000000000000000000", None),
            ("", None),
            ("LAST", None),
            ("-1", None),
            ("+1", None),
            ("1x", None),
            ("1 LAST LAST", None),
            ("1 FIRST", None),
        ];
        for (arguments, expected) in table {
            let parsed = Chunk::parse(arguments.as_bytes()).ok().map(|chunk| (chunk.remaining, chunk.is_last));
            assert_eq!(parsed, *expected, "{arguments:?}");
        }
    }

    #[test]
    fn octets_are_counted_across_reads() {
        let mut chunk = Chunk { size: 5, remaining: 5, is_last: false };
        assert_eq!(chunk.take(b"ab"), b"ab");
        assert_eq!(chunk.take(b""), b"");
        assert_eq!(chunk.take(b"\r\n.\r\nQUIT\r\n"), b"\r\n.");
        assert!(chunk.is_complete());
        assert_eq!(chunk.take(b"QUIT\r\n"), b"");
    }
}
