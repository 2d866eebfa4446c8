//! Records a session: the transcript, without secrets and content, and the reply that is being read.

use std::mem;
use std::time::Instant;

use restante_journal::{Side, TranscriptLine, TranscriptLines};

/// The maximum size of a reply in bytes, including all its lines.
const MAX_REPLY_BYTES: usize = 64 * 1024;
/// The maximum length of a line in the transcript, in characters.
const MAX_LINE_CHARS: usize = 1000;
/// The maximum number of lines of one reply in the transcript.
const MAX_REPLY_LINES: usize = 100;
/// What replaces a secret.
const MASK: &str = "***";
/// The minimum length of a secret that is masked in lines of the server. Shorter ones would mask parts of other words.
const MIN_MASKED_BYTES: usize = 4;

/// What the client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// Commands, which are recorded.
    Commands,
    /// The lines of a login, whose arguments are masked. Of the replies, only the status is recorded.
    Login,
    /// The content of a message, which is not recorded.
    Content,
}

/// The record of a session.
pub(super) struct Recorder {
    started: Instant,
    lines: TranscriptLines,
    /// The lines until the first message. The transcript of every message starts with them.
    opening: TranscriptLines,
    write_mode: WriteMode,
    /// The line that the client is writing.
    written_line: Vec<u8>,
    /// The line that is being read.
    read_line: Vec<u8>,
    /// The lines of the reply that is being read.
    reply: String,
    reply_lines: usize,
    /// The number of bytes that the reply may still have.
    remaining_reply_bytes: usize,
    /// Texts that the server may repeat, and that must not be shown.
    secrets: Vec<String>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            lines: TranscriptLines::default(),
            opening: TranscriptLines::default(),
            write_mode: WriteMode::Commands,
            written_line: Vec::new(),
            read_line: Vec::new(),
            reply: String::new(),
            reply_lines: 0,
            remaining_reply_bytes: MAX_REPLY_BYTES,
            secrets: Vec::new(),
        }
    }

    /// Sets what the client writes next.
    pub(super) fn set_write_mode(&mut self, mode: WriteMode) {
        // An incomplete reply belongs to what was written before.
        self.finish_line();
        self.write_mode = mode;
    }

    /// Masks a text in all further lines of the server.
    pub(super) fn add_secret(&mut self, secret: &str) {
        if secret.len() >= MIN_MASKED_BYTES {
            self.secrets.push(secret.to_owned());
        }
    }

    /// Records bytes that were sent to the server.
    pub(super) fn record_written(&mut self, mut bytes: &[u8]) {
        if self.write_mode == WriteMode::Content {
            return;
        }
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.written_line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = mem::take(&mut self.written_line);
            let text = clean_line(&line);
            let text = if self.write_mode == WriteMode::Login { mask_login_line(&text) } else { text };
            self.push(Side::Client, &text);
        }
        self.written_line.extend_from_slice(bytes);
    }

    /// Prepares for the next reply.
    pub(super) fn start_reply(&mut self) {
        self.finish_line();
        self.reply.clear();
        self.reply_lines = 0;
        self.remaining_reply_bytes = MAX_REPLY_BYTES;
    }

    /// Records bytes of the reply that were read. Returns false if it is too long.
    pub(super) fn record_read(&mut self, bytes: &[u8]) -> bool {
        let Some(remaining) = self.remaining_reply_bytes.checked_sub(bytes.len()) else { return false };
        self.remaining_reply_bytes = remaining;
        self.read_line.extend_from_slice(bytes);
        if bytes.ends_with(b"\n") {
            self.finish_line();
        }
        true
    }

    /// Returns the lines of the reply, which are separated by line breaks.
    pub(super) fn take_reply(&mut self) -> String {
        mem::take(&mut self.reply)
    }

    /// Adds a line that is not part of the conversation.
    pub(super) fn add_note(&mut self, text: &str) {
        self.push(Side::Client, &format!("({text})"));
    }

    /// Ends the opening of the session.
    pub(super) fn end_opening(&mut self) {
        self.opening = mem::take(&mut self.lines);
    }

    /// Starts the transcript of a message.
    pub(super) fn start_message(&mut self) {
        self.lines = self.opening.clone();
    }

    /// Returns the transcript.
    pub(super) fn take_transcript(&mut self) -> TranscriptLines {
        self.finish_line();
        mem::take(&mut self.lines)
    }

    /// Records the line that was read, even if it is incomplete.
    fn finish_line(&mut self) {
        if self.read_line.is_empty() {
            return;
        }
        let line = mem::take(&mut self.read_line);
        let mut text = clean_line(&line);
        for secret in &self.secrets {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        self.reply_lines += 1;
        if self.reply_lines <= MAX_REPLY_LINES {
            self.push(Side::Server, if self.write_mode == WriteMode::Login { status_of(&text) } else { &text });
        }
        if !self.reply.is_empty() {
            self.reply.push('\n');
        }
        self.reply.push_str(&text);
    }

    fn push(&mut self, side: Side, text: &str) {
        let text = truncate(text, MAX_LINE_CHARS);
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.lines.push(TranscriptLine { micros, side, text });
    }
}

/// Returns the start of a text, with at most this number of characters.
pub(super) fn truncate(text: &str, max_chars: usize) -> &str {
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}

/// Returns a line without its line break and control characters.
fn clean_line(line: &[u8]) -> String {
    let line = line.trim_ascii_end();
    let mut text = String::from_utf8_lossy(line).into_owned();
    text.retain(|c| !c.is_control());
    text
}

/// Returns the code at the start of a line of a reply, with the enhanced status code (RFC 3463) if it has one. The rest
/// of a reply to a login can repeat the password in any form.
pub(super) fn status_of(line: &str) -> &str {
    let is_number = |text: &str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(code) = line.get(..3).filter(|code| is_number(code)) else { return MASK };
    let status = line[3..].strip_prefix([' ', '-']).and_then(|text| text.split(' ').next()).unwrap_or_default();
    let mut numbers = status.split('.');
    let is_enhanced = matches!(numbers.next(), Some("2" | "4" | "5"))
        && numbers.next().is_some_and(is_number)
        && numbers.next().is_some_and(is_number)
        && numbers.next().is_none();
    if is_enhanced { &line[..code.len() + 1 + status.len()] } else { code }
}

/// Keeps the mechanism of `AUTH` only.
fn mask_login_line(line: &str) -> String {
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("AUTH"), Some(mechanism), None) => format!("AUTH {mechanism}"),
        (Some("AUTH"), Some(mechanism), Some(_)) => format!("AUTH {mechanism} {MASK}"),
        _ => MASK.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(recorder: &mut Recorder) -> Vec<String> {
        recorder.take_transcript().iter().map(|line| format!("{}: {}", line.side.name(), line.text)).collect()
    }

    #[test]
    fn masks_secrets_and_content() {
        let mut recorder = Recorder::new();
        recorder.add_secret("hunter2");
        recorder.add_secret("x");
        recorder.set_write_mode(WriteMode::Login);
        recorder.record_written(b"AUTH PLAIN aHVud");
        recorder.record_written(b"GVyMg==\r\nAUTH LOGIN\r\nYW5u\r\n");
        assert!(recorder.record_read(b"535-5.7.8 hunter2 is wrong\r\n"));
        assert!(recorder.record_read(b"535 hunt"));
        recorder.set_write_mode(WriteMode::Content);
        recorder.record_written(b"Subject: x\r\n");
        recorder.set_write_mode(WriteMode::Commands);
        recorder.record_written(b"QUIT\r\n");
        recorder.start_reply();
        assert!(recorder.record_read(b"250-hunter2: \x1b[31mhunter2\r\n"));
        assert_eq!(recorder.take_reply(), "250-***: [31m***");
        assert!(recorder.record_read(b"221"));
        let expected = [
            "client: AUTH PLAIN ***",
            "client: AUTH LOGIN",
            "client: ***",
            "server: 535-5.7.8",
            "server: 535",
            "client: QUIT",
            "server: 250-***: [31m***",
            "server: 221",
        ];
        assert_eq!(texts(&mut recorder), expected);
    }

    #[test]
    fn status_has_no_text() {
        let table = [
            ("535 5.7.8 hunter2", "535 5.7.8"),
            ("535-5.7.606 hunter2", "535-5.7.606"),
            ("535 5.7.8", "535 5.7.8"),
            ("454 4.7.0hunter2", "454"),
            ("535 hunter2", "535"),
            ("535-hunter2", "535"),
            ("535 3.7.8 x", "535"),
            ("535 5.7.8.9 x", "535"),
            ("535 5.7 x", "535"),
            ("535 5.7.1234 x", "535"),
            ("535hunter2", "535"),
            ("535_5.7.8", "535"),
            ("535\u{fc}5.7.8", "535"),
            ("334", "334"),
            ("33", "***"),
            ("hunter2", "***"),
            ("\u{fc}\u{fc}", "***"),
            ("", "***"),
        ];
        for (line, expected) in table {
            assert_eq!(status_of(line), expected, "{line}");
        }
    }

    #[test]
    fn replies_are_limited() {
        let mut recorder = Recorder::new();
        let accepted = (0..100_000).take_while(|_| recorder.record_read(b"250-\r\n")).count();
        assert_eq!(accepted, MAX_REPLY_BYTES / 6);
        assert_eq!(texts(&mut recorder).len(), MAX_REPLY_LINES);
        recorder.start_reply();
        assert!(recorder.record_read(b"250 ok\r\n"));
        assert_eq!(recorder.take_reply(), "250 ok");
    }

    #[test]
    fn every_message_has_the_opening() {
        let mut recorder = Recorder::new();
        recorder.add_note("connected to 127.0.0.1:25");
        recorder.end_opening();
        for _ in 0..2 {
            recorder.start_message();
            recorder.record_written(b"MAIL FROM:<>\r\n");
            assert_eq!(texts(&mut recorder), ["client: (connected to 127.0.0.1:25)", "client: MAIL FROM:<>"]);
        }
    }
}
