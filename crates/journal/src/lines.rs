//! Lines of a dialogue in one run of bytes, as they are held and stored: there are very many, and hardly anybody ever
//! reads one of them.

/// The most bytes that are kept of one piece of a session. A client that talks without end is cut short.
const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// What stands for what was said then.
const TRUNCATION_NOTICE: &str = "(what was said here is too much to be kept)";
/// How much room a piece gets at first; most need no more.
const INITIAL_CAPACITY: usize = 512;
/// Moment and length stand before each text.
const LINE_HEADER_BYTES: usize = 10;
/// The bit of the moment that says who speaks.
const SERVER_FLAG: u64 = 1 << 63;

/// What was said, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptLines(Vec<u8>);

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptLine<'a> {
    /// When it was said, in microseconds since the session began.
    pub micros: u64,
    /// Who said it.
    pub side: Side,
    /// What was said.
    pub text: &'a str,
}

/// One of the two who speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Side {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl TranscriptLines {
    /// Adds a line, or says that there is no room for it.
    pub fn push(&mut self, line: TranscriptLine<'_>) {
        let room = MAX_CHUNK_BYTES.saturating_sub(self.0.len() + LINE_HEADER_BYTES + TRUNCATION_NOTICE.len());
        if LINE_HEADER_BYTES + line.text.len() <= room {
            self.write(line);
        } else if !self.0.ends_with(TRUNCATION_NOTICE.as_bytes()) && room > 0 {
            self.write(TranscriptLine { text: TRUNCATION_NOTICE, ..line });
        }
    }

    /// The lines in their order.
    pub fn iter(&self) -> impl Iterator<Item = TranscriptLine<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (line, behind) = parse_line(rest)?;
            rest = behind;
            Some(line)
        })
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// As they are stored.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From how they were stored.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Gives back the memory that is not needed, where that is worth while.
    pub(super) fn shrink(&mut self) {
        if self.0.capacity() > INITIAL_CAPACITY || self.0.len() < INITIAL_CAPACITY / 2 {
            self.0.shrink_to_fit();
        }
    }

    fn write(&mut self, TranscriptLine { micros, side, text }: TranscriptLine<'_>) {
        if self.0.capacity() == 0 {
            self.0.reserve(INITIAL_CAPACITY);
        }
        let who = if side == Side::Server { SERVER_FLAG } else { 0 };
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let mut head = [0; LINE_HEADER_BYTES];
        head[..8].copy_from_slice(&(micros & !SERVER_FLAG | who).to_le_bytes());
        head[8..].copy_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(&head);
        self.0.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
    }
}

/// The first line, and what is behind it. What makes no sense is the end.
fn parse_line(bytes: &[u8]) -> Option<(TranscriptLine<'_>, &[u8])> {
    let (moment, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let moment = u64::from_le_bytes(*moment);
    let side = if moment & SERVER_FLAG == 0 { Side::Client } else { Side::Server };
    Some((TranscriptLine { micros: moment & !SERVER_FLAG, side, text: str::from_utf8(text).ok()? }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(micros: u64, side: Side, text: &str) -> TranscriptLine<'_> {
        TranscriptLine { micros, side, text }
    }

    #[test]
    fn lines_come_back() {
        let said = [
            line(0, Side::Server, "220 mx.test ESMTP"),
            line(17, Side::Client, ""),
            line(u64::MAX / 2, Side::Client, "EHLO bücher.test"),
        ];
        let mut lines = TranscriptLines::default();
        assert!(lines.is_empty());
        for line in said {
            lines.push(line);
        }
        assert_eq!(lines.iter().collect::<Vec<_>>(), said);
        let mut torn = lines.as_bytes().to_vec();
        torn.pop();
        assert_eq!(TranscriptLines::from_bytes(torn).iter().collect::<Vec<_>>(), said[..2]);
    }

    #[test]
    fn a_client_that_talks_without_end_is_cut_short() {
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
