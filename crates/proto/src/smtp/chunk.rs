//! BDAT (RFC 3030): parses the command and counts the octets of a chunk. The octets are not searched or changed.

use crate::line::split_word;

use super::command_error::CommandError;
use super::reply;

/// An announced chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    size: u64,
    /// The octets that have not arrived.
    pub(crate) remaining: u64,
    /// Whether it is the last chunk of the message.
    pub(crate) is_last: bool,
}

impl Chunk {
    /// Parses the arguments: a size, and optionally LAST. Without a valid size the start of the next command is
    /// unknown, so the chunk cannot be skipped.
    pub(crate) fn parse(arguments: &[u8]) -> Result<Self, CommandError> {
        let malformed = || CommandError::Bad(reply::SYNTAX_BDAT);
        let (size, rest) = split_word(arguments);
        let is_last = match split_word(rest) {
            (b"", _) => false,
            (word, b"") if word.eq_ignore_ascii_case(b"LAST") => true,
            _ => return Err(malformed()),
        };
        if size.is_empty() || size.len() > 20 || !size.iter().all(u8::is_ascii_digit) {
            return Err(malformed());
        }
        let size = std::str::from_utf8(size).ok().and_then(|digits| digits.parse().ok());
        let size = size.ok_or_else(malformed)?;
        Ok(Self { size, remaining: size, is_last })
    }

    /// Returns the octets of this chunk at the start of the input, and counts them as received.
    pub(crate) fn receive<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let length = usize::try_from(self.remaining).map_or(input.len(), |remaining| remaining.min(input.len()));
        self.remaining -= length as u64;
        &input[..length]
    }

    /// Returns the number of octets that have arrived.
    pub(crate) fn received_bytes(self) -> u64 {
        self.size - self.remaining
    }

    /// Returns whether all octets have arrived.
    pub(crate) fn is_complete(self) -> bool {
        self.remaining == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_bdat_arguments() {
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
    fn counts_octets_across_reads() {
        let mut chunk = Chunk { size: 5, remaining: 5, is_last: false };
        assert_eq!(chunk.receive(b"ab"), b"ab");
        assert_eq!(chunk.receive(b""), b"");
        assert_eq!(chunk.receive(b"\r\n.\r\nQUIT\r\n"), b"\r\n.");
        assert!(chunk.is_complete());
        assert_eq!(chunk.receive(b"QUIT\r\n"), b"");
    }
}
