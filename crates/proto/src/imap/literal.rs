//! The header of a literal: `{n}`, `{n+}` and `~{n}` at the end of a line (RFC 3501 section 4.3, RFC 7888, RFC 3516).

/// The maximum number of digits of a size. A longer number is not a size.
const MAX_DIGITS: usize = 20;

/// The maximum number of bytes of a header with the line end.
pub(super) const MAX_HEADER_BYTES: usize = MAX_DIGITS + "~{+}\r\n".len();

/// The header of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiteralHeader {
    /// The offset in the line.
    pub(super) start: usize,
    /// The number of bytes that follow the line. A number that does not fit is the greatest one.
    pub(super) bytes: u64,
    /// Whether the client waits for a continuation before it sends the bytes.
    pub(super) is_synchronizing: bool,
    /// Whether the bytes may contain NUL (`~`).
    pub(super) is_binary: bool,
}

impl LiteralHeader {
    /// Returns the header at the end of a line. The line includes its line end.
    pub(super) fn at_end_of(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n")?;
        let rest = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"}")?;
        let (rest, is_synchronizing) = rest.strip_suffix(b"+").map_or((rest, true), |rest| (rest, false));
        let digits = rest.iter().rev().take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, digits) = rest.split_at(rest.len() - digits);
        let rest = rest.strip_suffix(b"{")?;
        if digits.is_empty() || digits.len() > MAX_DIGITS {
            return None;
        }
        let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        let is_binary = rest.ends_with(b"~");
        Some(Self {
            start: rest.len() - usize::from(is_binary),
            bytes: digits.iter().fold(0, add),
            is_synchronizing,
            is_binary,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_headers_at_the_end_of_lines() {
        let header = |start, bytes, is_synchronizing, is_binary| {
            Some(LiteralHeader { start, bytes, is_synchronizing, is_binary })
        };
        let table: &[(&[u8], Option<LiteralHeader>)] = &[
            (b"{0}\r\n", header(0, 0, true, false)),
            (b"a {10}\n", header(2, 10, true, false)),
            (b"a {007+}\r\n", header(2, 7, false, false)),
            (b"a ~{7}\r\n", header(2, 7, true, true)),
            (b"(~{7+}\r\n", header(1, 7, false, true)),
            (b"{18446744073709551615}\r\n", header(0, u64::MAX, true, false)),
            (b"{99999999999999999999}\r\n", header(0, u64::MAX, true, false)),
            (b"{000000000000000000001}\r\n", None),
            (b"{}\r\n", None),
            (b"{+}\r\n", None),
            (b"{-1}\r\n", None),
            (b"{1-}\r\n", None),
            (b"{1++}\r\n", None),
            (b"{1} \r\n", None),
            (b"{1}\r\r\n", None),
            (b"{1}", None),
            (b"1}\r\n", None),
            (b"}\r\n", None),
            (b"\r\n", None),
            (b"", None),
        ];
        for (line, expected) in table {
            assert_eq!(LiteralHeader::at_end_of(line), *expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
