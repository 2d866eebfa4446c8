//! The lines of a conversation, encoded into one buffer, in memory and in storage: there are very many of them, and few
//! are ever read.

use restante_mail::named_enum;
use serde::Serialize;

/// The maximum size of the lines of one chunk. Further lines are left out.
const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// The line that replaces the lines that are left out. It is part of the stored format.
const TRUNCATION_NOTICE: &str = "(what was said here is too much to be kept)";
/// The initial capacity of the buffer. Most chunks need no more.
const INITIAL_CAPACITY: usize = 512;
/// The length of the header of a line: time and length of the text.
const LINE_HEADER_BYTES: usize = 10;
/// The bit of the time that marks a line of the server.
const SERVER_FLAG: u64 = 1 << 63;

/// The lines of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptLines(Vec<u8>);

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptLine<'a> {
    /// When it was sent, in microseconds since the start of the session.
    pub micros: u64,
    /// The side that sent it.
    pub side: Side,
    /// The text.
    pub text: &'a str,
}

named_enum! {
    /// A side of the conversation.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Side {
        /// The client.
        Client = "client",
        /// The server.
        Server = "server",
    }
}

impl TranscriptLines {
    /// Adds a line. If the limit is reached, adds a notice once instead.
    pub fn push(&mut self, line: TranscriptLine<'_>) {
        let free = MAX_CHUNK_BYTES.saturating_sub(self.0.len() + LINE_HEADER_BYTES + TRUNCATION_NOTICE.len());
        if LINE_HEADER_BYTES + line.text.len() <= free {
            self.write(line);
        } else if !self.0.ends_with(TRUNCATION_NOTICE.as_bytes()) && free > 0 {
            self.write(TranscriptLine { text: TRUNCATION_NOTICE, ..line });
        }
    }

    /// Returns the lines, in order.
    pub fn iter(&self) -> impl Iterator<Item = TranscriptLine<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (line, after) = parse_line(rest)?;
            rest = after;
            Some(line)
        })
    }

    /// Returns whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the encoded lines, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates the value from encoded lines. Invalid bytes end the list of lines.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Frees unused capacity, if that is worth it.
    pub fn shrink(&mut self) {
        if self.0.capacity() > INITIAL_CAPACITY || self.0.len() < INITIAL_CAPACITY / 2 {
            self.0.shrink_to_fit();
        }
    }

    fn write(&mut self, TranscriptLine { micros, side, text }: TranscriptLine<'_>) {
        if self.0.capacity() == 0 {
            self.0.reserve(INITIAL_CAPACITY);
        }
        let flag = if side == Side::Server { SERVER_FLAG } else { 0 };
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let mut head = [0; LINE_HEADER_BYTES];
        head[..8].copy_from_slice(&(micros & !SERVER_FLAG | flag).to_le_bytes());
        head[8..].copy_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(&head);
        self.0.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
    }
}

/// Returns the first line and the rest. Invalid bytes end the list.
fn parse_line(bytes: &[u8]) -> Option<(TranscriptLine<'_>, &[u8])> {
    let (time, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let time = u64::from_le_bytes(*time);
    let side = if time & SERVER_FLAG == 0 { Side::Client } else { Side::Server };
    Some((TranscriptLine { micros: time & !SERVER_FLAG, side, text: str::from_utf8(text).ok()? }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(micros: u64, side: Side, text: &str) -> TranscriptLine<'_> {
        TranscriptLine { micros, side, text }
    }

    #[test]
    fn lines_are_decoded_as_encoded() {
        let expected = [
            line(0, Side::Server, "220 mx.test ESMTP"),
            line(17, Side::Client, ""),
            line(u64::MAX / 2, Side::Client, "EHLO bücher.test"),
        ];
        let mut lines = TranscriptLines::default();
        assert!(lines.is_empty());
        for line in expected {
            lines.push(line);
        }
        assert_eq!(lines.iter().collect::<Vec<_>>(), expected);
        let mut truncated = lines.as_bytes().to_vec();
        truncated.pop();
        assert_eq!(TranscriptLines::from_bytes(truncated).iter().collect::<Vec<_>>(), expected[..2]);
    }

    #[test]
    fn truncates_long_conversations() {
        let mut lines = TranscriptLines::default();
        for micros in 0..100_000 {
            lines.push(line(micros, Side::Client, "NOOP"));
            lines.push(line(micros, Side::Client, &"x".repeat(60_000)));
        }
        assert!(lines.bytes() <= MAX_CHUNK_BYTES, "{}", lines.bytes());
        let texts: Vec<&str> = lines.iter().map(|line| line.text).collect();
        assert_eq!((texts[0], texts[1].len(), texts[2], texts[3]), ("NOOP", 60_000, "NOOP", TRUNCATION_NOTICE));
    }
}
