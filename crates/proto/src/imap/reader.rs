//! Finds the end of each command in the input, and collects its lines and literals.
//!
//! Small literals become a part of the text of the command. The message of APPEND has its own buffer, which is allocated
//! only after the session has accepted the size. Every byte is read once, however the input is split.

use bytes::Bytes;
use memchr::memchr;

use crate::foreign::{self, ForeignInput};

use super::literal::{LiteralHeader, MAX_HEADER_BYTES};

/// The maximum number of bytes of a command, with its small literals and without the message of APPEND.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The same before the login. It is enough for the initial response of AUTHENTICATE.
const MAX_TEXT_BYTES_BEFORE_LOGIN: usize = 16 * 1024;
/// The maximum number of bytes of a literal that is not the message of APPEND.
const MAX_LITERAL_BYTES: u64 = 16 * 1024;
const MAX_LITERAL_BYTES_BEFORE_LOGIN: u64 = 4 * 1024;
/// The maximum number of literals of a command.
const MAX_LITERALS: usize = 256;
/// The maximum size of a non-synchronizing literal that is read and ignored.
const MAX_SKIPPED_BYTES: u64 = u32::MAX as u64;
const MAX_SKIPPED_BYTES_BEFORE_LOGIN: u64 = 1024 * 1024;
/// The maximum number of bytes of a tag.
const MAX_TAG_BYTES: usize = 128;

/// The limits of input, which depend on the state of the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The maximum size of a message.
    pub(super) max_message_bytes: usize,
    /// Whether the client has logged in.
    pub(super) is_authenticated: bool,
}

impl Limits {
    fn max_text_bytes(self) -> usize {
        if self.is_authenticated { MAX_TEXT_BYTES } else { MAX_TEXT_BYTES_BEFORE_LOGIN }
    }

    fn max_literal_bytes(self) -> u64 {
        if self.is_authenticated { MAX_LITERAL_BYTES } else { MAX_LITERAL_BYTES_BEFORE_LOGIN }
    }

    fn max_skipped_bytes(self) -> u64 {
        if self.is_authenticated { MAX_SKIPPED_BYTES } else { MAX_SKIPPED_BYTES_BEFORE_LOGIN }
    }
}

/// The outcome of reading input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// More input is needed.
    Incomplete,
    /// The client waits for a continuation.
    Continuation,
    /// The message of APPEND follows. The session calls [`CommandReader::accept`] or [`CommandReader::reject`]. Nothing is
    /// read before.
    Message {
        /// The tag of the command.
        tag: String,
        /// The size of the message.
        bytes: usize,
        /// Whether the client waits for a continuation, which the session sends after it has accepted the message.
        is_synchronizing: bool,
    },
    /// A complete command.
    Command(CommandText),
    /// The command is too long, or has too many literals. Its rest is ignored.
    TooLong {
        /// The tag, if there is a valid one.
        tag: Option<String>,
    },
    /// A literal is too large. The rest of the command is ignored.
    LiteralTooLarge {
        /// The tag, if there is a valid one.
        tag: Option<String>,
        /// Whether it is the message of APPEND.
        is_message: bool,
        /// Whether the literal is too large to be skipped, so that the session must close.
        must_close: bool,
    },
    /// The input is not that of a mail client. The session must close.
    Foreign(ForeignInput),
}

/// The message of APPEND.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The offset in the text of the command, after the header of the literal.
    pub(super) offset: usize,
    /// The bytes.
    pub(super) bytes: Bytes,
}

/// A complete command that is not parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandText {
    /// The lines and small literals, without the last line end.
    pub(super) text: Vec<u8>,
    /// The message of APPEND.
    pub(super) message: Option<Message>,
}

/// Reads commands.
#[derive(Debug, Default)]
pub(super) struct CommandReader {
    /// The lines and small literals so far. While the rest of a command is ignored: the end of the current line.
    text: Vec<u8>,
    /// The offset of the current line.
    line_start: usize,
    literals: usize,
    /// The offset and the bytes of the message.
    message: Option<(usize, Vec<u8>)>,
    state: State,
}

/// What the next byte of the input belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// A line of a command.
    #[default]
    Line,
    /// A small literal.
    Literal { remaining: u64 },
    /// A message that the session has not accepted yet.
    OfferedMessage { bytes: usize, is_synchronizing: bool },
    /// The message of APPEND.
    Message { remaining: u64 },
    /// A line that is ignored.
    IgnoredLine,
    /// A literal that is ignored.
    IgnoredLiteral { remaining: u64 },
}

impl CommandReader {
    /// Reads from the start of the input. Also returns the number of bytes consumed.
    pub(super) fn read(&mut self, input: &[u8], limits: Limits) -> (usize, Received) {
        let mut rest = input;
        loop {
            if let Some(received) = self.advance(&mut rest, limits) {
                return (input.len() - rest.len(), received);
            }
            if rest.is_empty() {
                return (input.len(), Received::Incomplete);
            }
        }
    }

    /// Returns the bytes of the message that is being read.
    pub(super) fn message_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |(_, message)| message.capacity())
    }

    /// Returns how many octets of a message were received, while one is being read.
    pub(super) fn received_bytes(&self) -> Option<u64> {
        let is_receiving = matches!(self.state, State::Message { .. });
        self.message.as_ref().filter(|_| is_receiving).map(|(_, message)| message.len() as u64)
    }

    /// Accepts the offered message, and allocates its buffer.
    pub(super) fn accept(&mut self) {
        if let State::OfferedMessage { bytes, .. } = self.state {
            self.message = Some((self.text.len(), Vec::with_capacity(bytes)));
            self.state = State::Message { remaining: bytes as u64 };
        }
    }

    /// Rejects the offered message. The rest of the command is ignored.
    pub(super) fn reject(&mut self) {
        if let State::OfferedMessage { bytes, is_synchronizing } = self.state {
            self.ignore_literal(bytes as u64, is_synchronizing);
        }
    }

    fn advance(&mut self, rest: &mut &[u8], limits: Limits) -> Option<Received> {
        match self.state {
            State::Line => self.read_line(rest, limits),
            State::OfferedMessage { bytes, is_synchronizing } => Some(self.offer(bytes, is_synchronizing)),
            State::Literal { remaining } => {
                let (part, remaining) = split_off(rest, remaining);
                self.text.extend_from_slice(part);
                self.line_start = self.text.len();
                self.state = if remaining == 0 { State::Line } else { State::Literal { remaining } };
                None
            }
            State::Message { remaining } => {
                let (part, remaining) = split_off(rest, remaining);
                if let Some((_, message)) = &mut self.message {
                    message.extend_from_slice(part);
                }
                self.state = if remaining == 0 { State::Line } else { State::Message { remaining } };
                None
            }
            State::IgnoredLine => self.ignore_line(rest, limits),
            State::IgnoredLiteral { remaining } => {
                let (_, remaining) = split_off(rest, remaining);
                self.state = if remaining == 0 { State::IgnoredLine } else { State::IgnoredLiteral { remaining } };
                None
            }
        }
    }

    fn read_line(&mut self, rest: &mut &[u8], limits: Limits) -> Option<Received> {
        let end = memchr(b'\n', rest);
        let length = end.map_or(rest.len(), |end| end + 1);
        let room = limits.max_text_bytes().saturating_sub(self.text.len());
        let (part, after) = rest.split_at(length.min(room));
        self.text.extend_from_slice(part);
        *rest = after;
        if self.literals == 0
            && let Some(foreign) = self.foreign_input(limits)
        {
            return Some(Received::Foreign(foreign));
        }
        if length > room {
            let (tag, line) = (self.tag(), self.text.split_off(self.line_start));
            self.clear();
            self.state = State::IgnoredLine;
            self.keep_line_end(&line);
            return Some(Received::TooLong { tag });
        }
        end?;
        match LiteralHeader::at_end_of(&self.text[self.line_start..]) {
            Some(header) => self.start_literal(header, limits),
            None => Some(Received::Command(self.take_command())),
        }
    }

    fn foreign_input(&self, limits: Limits) -> Option<ForeignInput> {
        let detect = if limits.is_authenticated { foreign::detect } else { foreign::detect_before_greeting };
        detect(&self.text)
    }

    fn start_literal(&mut self, header: LiteralHeader, limits: Limits) -> Option<Received> {
        let LiteralHeader { bytes, is_synchronizing, .. } = header;
        let is_message = self.is_message(self.line_start + header.start);
        self.line_start = self.text.len();
        self.literals += 1;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let is_offered = is_message && limits.is_authenticated;
        let room = limits.max_text_bytes().saturating_sub(self.text.len());
        let has_too_many = self.literals > MAX_LITERALS;
        if is_offered && !has_too_many && size <= limits.max_message_bytes {
            return Some(self.offer(size, is_synchronizing));
        }
        if !is_offered && !has_too_many && bytes <= limits.max_literal_bytes() && size <= room {
            self.state = State::Literal { remaining: bytes };
            return is_synchronizing.then_some(Received::Continuation);
        }
        let tag = self.tag();
        let must_close = !is_synchronizing && bytes > limits.max_skipped_bytes();
        self.ignore_literal(bytes, is_synchronizing);
        Some(if has_too_many && !must_close {
            Received::TooLong { tag }
        } else {
            Received::LiteralTooLarge { tag, is_message, must_close }
        })
    }

    /// Returns whether a literal at this offset is the first message of APPEND. The first argument is the mailbox.
    fn is_message(&self, offset: usize) -> bool {
        let is_append = |text: &[u8]| {
            let (_, rest) = split_tag(text)?;
            let (verb, arguments) = rest.strip_prefix(b" ")?.split_at_checked(b"APPEND ".len())?;
            Some(verb.eq_ignore_ascii_case(b"APPEND ") && !arguments.is_empty())
        };
        self.message.is_none() && self.text.get(..offset).and_then(is_append).unwrap_or_default()
    }

    fn offer(&mut self, bytes: usize, is_synchronizing: bool) -> Received {
        self.state = State::OfferedMessage { bytes, is_synchronizing };
        Received::Message { tag: self.tag().unwrap_or_default(), bytes, is_synchronizing }
    }

    fn take_command(&mut self) -> CommandText {
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.len() - if text.ends_with(b"\r\n") { 2 } else { 1 });
        let message = self.message.take().map(|(offset, bytes)| Message { offset, bytes: bytes.into() });
        self.clear();
        CommandText { text, message }
    }

    fn tag(&self) -> Option<String> {
        split_tag(&self.text).map(|(tag, _)| tag.to_owned())
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Ignores a literal and the rest of the command. A client that waits for a continuation sends neither of them.
    fn ignore_literal(&mut self, bytes: u64, is_synchronizing: bool) {
        self.clear();
        if !is_synchronizing {
            self.state = State::IgnoredLiteral { remaining: bytes };
        }
    }

    fn ignore_line(&mut self, rest: &mut &[u8], limits: Limits) -> Option<Received> {
        let end = memchr(b'\n', rest);
        let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        *rest = after;
        self.keep_line_end(part);
        end?;
        let header = LiteralHeader::at_end_of(&self.text);
        self.clear();
        let LiteralHeader { bytes, is_synchronizing, .. } = header?;
        self.ignore_literal(bytes, is_synchronizing);
        let must_close = !is_synchronizing && bytes > limits.max_skipped_bytes();
        must_close.then_some(Received::LiteralTooLarge { tag: None, is_message: false, must_close })
    }

    /// Keeps the end of an ignored line, which may be the header of a literal.
    fn keep_line_end(&mut self, part: &[u8]) {
        self.text.extend_from_slice(&part[part.len().saturating_sub(MAX_HEADER_BYTES)..]);
        self.text.drain(..self.text.len().saturating_sub(MAX_HEADER_BYTES));
    }
}

/// Splits off the tag of a command. Returns `None` if the text does not start with a valid tag and a space.
pub(super) fn split_tag(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().take(MAX_TAG_BYTES + 1).position(|byte| !is_tag_char(*byte))?;
    let (tag, rest) = text.split_at(end);
    let tag = std::str::from_utf8(tag).ok()?;
    (!tag.is_empty() && rest.starts_with(b" ")).then_some((tag, rest))
}

fn is_tag_char(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"(){%*\"\\+".contains(&byte)
}

/// Splits off at most `remaining` bytes. Also returns how many remain.
fn split_off<'a>(rest: &mut &'a [u8], remaining: u64) -> (&'a [u8], u64) {
    let length = usize::try_from(remaining).map_or(rest.len(), |remaining| remaining.min(rest.len()));
    let (part, after) = rest.split_at(length);
    *rest = after;
    (part, remaining - length as u64)
}

#[cfg(test)]
pub(super) mod tests;
