//! Writing of mbox files: many messages in one file, each after a line that starts with `From `. Uses the reversible
//! quoting "mboxrd" and LF as line end.

use std::io::{self, Write};

use jiff::Timestamp;

/// Replaces a sender that is empty, or that contains whitespace or control characters.
const FALLBACK_SENDER: &str = "MAILER-DAEMON";
/// The format of C's `asctime`, in UTC (RFC 4155 appendix A).
const ASCTIME_FORMAT: &str = "%a %b %e %H:%M:%S %Y";

/// Writes one message.
pub fn write_message(out: &mut dyn Write, sender: &str, received: Timestamp, source: &[u8]) -> io::Result<()> {
    let is_valid = !sender.is_empty() && !sender.contains(|c: char| c.is_whitespace() || c.is_control());
    writeln!(out, "From {} {}", if is_valid { sender } else { FALLBACK_SENDER }, received.strftime(ASCTIME_FORMAT))?;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        if is_quoted_from_line(line) || line.starts_with(b"From ") {
            out.write_all(b">")?;
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) => {
                out.write_all(text)?;
                out.write_all(b"\n")?;
            }
            None => out.write_all(line)?,
        }
    }
    // If the last line has no line end, it needs one. Otherwise the blank line before the next message would be
    // missing.
    let end: &[u8] = if source.ends_with(b"\n") || source.is_empty() { b"\n" } else { b"\n\n" };
    out.write_all(end)
}

/// Returns whether a line consists of one or more `>` followed by `From `.
pub fn is_quoted_from_line(line: &[u8]) -> bool {
    let marks = line.iter().take_while(|byte| **byte == b'>').count();
    marks > 0 && line[marks..].starts_with(b"From ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_to_string(source: &str) -> String {
        let mut out = Vec::new();
        let at = "2026-11-05T02:52:50.9Z".parse().unwrap();
        write_message(&mut out, "ann@x.org", at, source.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_from_lines_and_writes_lf() {
        let from_line = "From ann@x.org Thu Nov  5 02:52:50 2026\n";
        let table = [
            ("A: b\r\n\r\nhi\r\n", "A: b\n\nhi\n\n"),
            ("A: b\r\n\r\nno end", "A: b\n\nno end\n\n"),
            ("", "\n"),
            (
                "From x\r\n>From x\r\n>>From x\r\n> From x\r\nFromage\r\n",
                ">From x\n>>From x\n>>>From x\n> From x\nFromage\n\n",
            ),
            ("a\rb\nc\r\n", "a\rb\nc\n\n"),
        ];
        for (source, expected) in table {
            assert_eq!(write_to_string(source), format!("{from_line}{expected}"));
        }
    }

    #[test]
    fn replaces_invalid_senders() {
        for sender in ["", "\"a b\"@x.org", "a\nb"] {
            let mut out = Vec::new();
            write_message(&mut out, sender, Timestamp::UNIX_EPOCH, b"x").unwrap();
            assert_eq!(out, b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970\nx\n\n");
        }
    }
}
