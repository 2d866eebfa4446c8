//! Reading of mbox files: many messages in one file, each after a line that starts with `From `. The file is read as a
//! stream, so its size is not limited. Programs that write mbox files agree on little more than the first five
//! characters of that line. [`restante_mail::mbox`] writes mbox files.

use std::io::{self, BufRead, Read as _};

use jiff::Timestamp;
use restante_mail::mbox::is_quoted_from_line;

use super::from_line;

/// The maximum number of bytes that are read at once. A hostile file may have no line ends.
const MAX_CHUNK_BYTES: u64 = 64 * 1024;

/// Reads the messages of an mbox file.
#[derive(Debug)]
pub(super) struct MboxReader<R> {
    input: R,
    /// The maximum size of a message that is kept in memory.
    limit: usize,
    /// The line, or the part of a line, that was read last.
    chunk: Vec<u8>,
    /// Whether the next chunk is the start of a line.
    is_at_line_start: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was read yet.
    Start,
    /// The `From ` line of a message was read. Contains its time.
    FromLine(Option<Timestamp>),
    End,
}

/// A message of an mbox file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The time in its `From ` line.
    pub(super) date: Option<Timestamp>,
    /// The source with CRLF line ends. `None` if it is larger than the limit.
    pub(super) source: Option<Vec<u8>>,
}

impl<R: BufRead> MboxReader<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, chunk: Vec::new(), is_at_line_start: true, state: State::Start }
    }

    /// Returns the next message, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        if matches!(self.state, State::Start) {
            self.state = self.read_first_from_line()?;
        }
        match std::mem::replace(&mut self.state, State::End) {
            State::FromLine(date) => self.read_source().map(|source| Some(Entry { date, source })),
            State::Start | State::End => Ok(None),
        }
    }

    fn read_first_from_line(&mut self) -> io::Result<State> {
        while self.read_chunk()? {
            if is_blank(&self.chunk) {
                continue;
            }
            // Any first line with this prefix is accepted: it cannot be anything else.
            let Some(line) = self.chunk.strip_prefix(b"From ") else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "is not an mbox file: it does not start with \"From \"",
                ));
            };
            return Ok(State::FromLine(from_line::parse_time(line)));
        }
        Ok(State::End)
    }

    /// Reads up to the next `From ` line. After a blank line, every line with this prefix counts: programs quote such
    /// lines of the text, and a missed separator would merge two messages. Elsewhere the line must look like a `From `
    /// line, because some files are not quoted.
    fn read_source(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut source = Some(Vec::new());
        // The blank line before the next message is a separator and belongs to neither message.
        let mut after_blank = false;
        loop {
            let is_line_start = self.is_at_line_start;
            if !self.read_chunk()? {
                return Ok(source);
            }
            if is_line_start
                && let Some(line) = self.chunk.strip_prefix(b"From ")
                && (after_blank || from_line::is_from_line(line))
            {
                self.state = State::FromLine(from_line::parse_time(line));
                return Ok(source);
            }
            let Some(content) = &mut source else {
                after_blank = is_line_start && is_blank(&self.chunk);
                continue;
            };
            if after_blank {
                content.extend_from_slice(b"\r\n");
            }
            after_blank = is_line_start && is_blank(&self.chunk);
            if !after_blank {
                append_line(content, &self.chunk, is_line_start);
            }
            if content.len() > self.limit {
                source = None;
            }
        }
    }

    /// Reads a line or a part of it. Returns false at the end of the file.
    fn read_chunk(&mut self) -> io::Result<bool> {
        self.chunk.clear();
        self.input.by_ref().take(MAX_CHUNK_BYTES).read_until(b'\n', &mut self.chunk)?;
        self.is_at_line_start = self.chunk.ends_with(b"\n");
        Ok(!self.chunk.is_empty())
    }
}

/// Appends a chunk, unquoted and with a CRLF line end.
fn append_line(source: &mut Vec<u8>, chunk: &[u8], is_line_start: bool) {
    let chunk = if is_line_start && is_quoted_from_line(chunk) { &chunk[1..] } else { chunk };
    let Some(text) = chunk.strip_suffix(b"\n") else {
        source.extend_from_slice(chunk);
        return;
    };
    source.extend_from_slice(text);
    if !source.ends_with(b"\r") {
        source.push(b'\r');
    }
    source.push(b'\n');
}

fn is_blank(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

#[cfg(test)]
mod tests {
    use restante_mail::mbox::write_message;

    use super::*;

    const LIMIT: usize = 1000;

    fn write_to_string(source: &str) -> String {
        let mut out = Vec::new();
        let at = "2026-11-05T02:52:50.9Z".parse().unwrap();
        write_message(&mut out, "ann@x.org", at, source.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read(file: &str) -> io::Result<Vec<Entry>> {
        let mut mbox = MboxReader::new(file.as_bytes(), LIMIT);
        std::iter::from_fn(|| mbox.next().transpose()).collect()
    }

    fn sources(file: &str) -> Vec<String> {
        read(file).unwrap().into_iter().map(|entry| String::from_utf8(entry.source.unwrap()).unwrap()).collect()
    }

    #[test]
    fn reads_messages() {
        let p = "From a@x Thu Nov  5 02:52:50 2026\n";
        let table: &[(&str, String, &[&str])] = &[
            ("empty", String::new(), &[]),
            ("blank lines only", "\n\r\n".to_owned(), &[]),
            ("LF becomes CRLF", format!("{p}A: b\n\nhi\n\n"), &["A: b\r\n\r\nhi\r\n"]),
            ("CRLF stays", format!("{p}A: b\r\n\r\nhi\r\n\r\n"), &["A: b\r\n\r\nhi\r\n"]),
            ("two", format!("{p}one\n\n{p}two\n\n"), &["one\r\n", "two\r\n"]),
            ("no end", format!("{p}one\n\n{p}two"), &["one\r\n", "two"]),
            ("blank lines of a message", format!("{p}one\n\n\n\n{p}two\n"), &["one\r\n\r\n\r\n", "two\r\n"]),
            ("quoting", format!("{p}>From x\n>>From x\n> From x\n>\n\n"), &["From x\r\n>From x\r\n> From x\r\n>\r\n"]),
            ("any first line", "From x\none\n".to_owned(), &["one\r\n"]),
            ("empty messages", format!("{p}\n{p}\n"), &["", ""]),
        ];
        for (name, file, expected) in table {
            assert_eq!(sources(file), *expected, "{name}");
        }
        assert_eq!(read("Subject: x\n\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    /// The line between two messages, then whether it separates them after a blank line, and without one.
    #[test]
    fn recognizes_separator_lines() {
        let table = [
            ("From a@x Thu Nov  5 02:52:50 2026", true, true),
            ("From a@x Thu Nov  5 02:52:50 2026 remote from y", true, true),
            ("From a@x Thu, 5 Nov 2026 02:52:50 +0000", true, true),
            ("From a@x 2026-11-05T02:52:50Z", true, true),
            ("From a@x", true, true),
            ("From a", true, true),
            ("From - Thu Nov  5 02:52:50 2026", true, true),
            ("From - 2026-11-05T02:52:50Z", true, false),
            // Other lines with this prefix are text, unless a blank line precedes them.
            ("From here on it is text", true, false),
            ("From ", true, false),
            (">From a@x Thu Nov  5 02:52:50 2026", false, false),
            (" From a@x Thu Nov  5 02:52:50 2026", false, false),
            ("Fromage", false, false),
        ];
        for (line, after_blank_line, after_text) in table {
            let count = |between| sources(&format!("From a\none\n{between}{line}\ntwo\n")).len();
            assert_eq!((count("\n") == 2, count("") == 2), (after_blank_line, after_text), "{line}");
        }
    }

    #[test]
    fn skips_messages_over_the_limit() {
        let p = "From a@x Thu Nov  5 02:52:50 2026\n";
        let long = "x".repeat(200_000);
        let many = "line\n".repeat(50_000);
        let file = format!("{p}{long}\n\n{p}{many}\n{p}small\n\n");
        let lengths: Vec<_> =
            read(&file).unwrap().into_iter().map(|entry| entry.source.map(|source| source.len())).collect();
        assert_eq!(lengths, [None, None, Some(7)]);
    }

    #[test]
    fn reads_long_lines_in_chunks() {
        // The CR of the line end is the last byte of a chunk.
        let line = format!("{}\r\n", "x".repeat(usize::try_from(MAX_CHUNK_BYTES).unwrap() - 1));
        let file = format!("From a\n{line}y\n");
        let mut mbox = MboxReader::new(file.as_bytes(), 1 << 20);
        assert_eq!(mbox.next().unwrap().unwrap().source.unwrap(), format!("{line}y\r\n").into_bytes());
    }

    proptest::proptest! {
        #[test]
        fn reads_back_written_messages(messages in proptest::collection::vec("((>{0,2}From |x|>)?[ a-z]{0,5}\r\n){0,8}", 0..5)) {
            let file: String = messages.iter().map(|message| write_to_string(message)).collect();
            proptest::prop_assert_eq!(sources(&file), messages);
        }
    }
}
