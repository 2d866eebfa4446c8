//! The transcript of a session, line by line, for people to read. It never contains a password. Of a message it
//! contains only the length. Each protocol decides which part of a command is shown.
//!
//! A server may record every session, so the lines share one buffer instead of having an allocation each.

use std::fmt::Write as _;

use memchr::memchr;

use crate::line::split_word;

/// The number of lines that are kept until the transcript is cleared. Further lines are dropped.
const MAX_LINES: usize = 10_000;
/// The capacity that is kept when the transcript is cleared.
const RETAINED_BYTES: usize = 1024;
/// The mechanisms whose names are shown. Anything else after AUTH could be a secret.
const MECHANISMS: [&str; 5] = ["PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2", "OAUTHBEARER"];
/// The length of a word that may be an unknown verb, in letters.
const VERB_LETTERS: std::ops::RangeInclusive<usize> = 3..=8;

/// One line of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLine<'a> {
    /// The side that sent it.
    pub speaker: Speaker,
    /// The text without the line end. Control characters are escaped.
    pub text: &'a str,
    /// Whether the line is a refusal by the server.
    pub is_refusal: bool,
    /// The effect on the mail transaction, if it has one.
    pub stage: Option<TransactionStage>,
}

/// The part of a session that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptScope {
    /// All lines.
    Everything,
    /// Only refusals by the server, which costs almost nothing.
    Refusals,
}

/// A side of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The effect of a line on the mail transaction. A started transaction ends with one of the other stages, or with the
/// session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStage {
    /// The client starts a transaction. Its sender is about to be checked.
    Started,
    /// The server has accepted the message.
    Accepted,
    /// The server has refused the message.
    Refused,
    /// The client has abandoned the transaction.
    Abandoned,
}

/// The lines since the transcript was last cleared.
#[derive(Debug, Default)]
pub struct TranscriptBuffer {
    text: String,
    entries: Vec<Entry>,
}

/// The end of a line in the text. The line starts at the end of the previous one.
#[derive(Debug)]
struct Entry {
    end: usize,
    speaker: Speaker,
    is_refusal: bool,
    stage: Option<TransactionStage>,
}

impl TranscriptBuffer {
    /// Returns the lines in order.
    pub fn lines(&self) -> impl Iterator<Item = RecordedLine<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let text = self.text.get(start..entry.end).unwrap_or_default();
            start = entry.end;
            RecordedLine { speaker: entry.speaker, text, is_refusal: entry.is_refusal, stage: entry.stage }
        })
    }

    /// Returns whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes the lines.
    pub fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(RETAINED_BYTES);
        self.entries.clear();
        self.entries.shrink_to(RETAINED_BYTES / size_of::<Entry>());
    }

    /// Adds a line. `write` writes its text.
    fn push(&mut self, speaker: Speaker, is_refusal: bool, write: impl FnOnce(&mut String)) {
        if self.entries.len() < MAX_LINES {
            write(&mut self.text);
            self.entries.push(Entry { end: self.text.len(), speaker, is_refusal, stage: None });
        }
    }
}

/// Records the transcript of a session.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// `None` if nothing is recorded.
    scope: Option<TranscriptScope>,
    pub(crate) transcript: TranscriptBuffer,
    /// Octets of a message that are not yet in a line, and their sender.
    pending_mail: Option<(Speaker, usize)>,
}

impl Recorder {
    /// Creates an empty transcript.
    pub(crate) fn new(scope: TranscriptScope) -> Self {
        Self { scope: Some(scope), ..Self::default() }
    }

    /// Returns whether there is a transcript.
    pub(crate) fn is_recording(&self) -> bool {
        self.scope.is_some()
    }

    /// Records a command. `write` writes its masked text; it is called only if the line is recorded.
    pub(crate) fn record_command(&mut self, write: impl FnOnce(&mut String)) {
        if self.scope == Some(TranscriptScope::Everything) {
            self.push(Speaker::Client, false, write);
        }
    }

    /// Records a note instead of a line that is not kept, such as a line of an AUTH exchange.
    pub(crate) fn record_note(&mut self, text: &'static str) {
        self.record_command(|out| out.push_str(text));
    }

    /// Records octets of a message. They become one line when something else is recorded.
    pub(crate) fn record_mail_octets(&mut self, speaker: Speaker, octets: usize) {
        if octets > 0 && self.scope == Some(TranscriptScope::Everything) {
            let (_, total) = self.pending_mail.get_or_insert((speaker, 0));
            *total += octets;
        }
    }

    /// Records replies of the server, each with its CRLF. `is_refusal` says whether they are errors.
    pub(crate) fn record_replies(&mut self, mut replies: &[u8], is_refusal: bool) {
        match self.scope {
            Some(TranscriptScope::Everything) => {}
            Some(TranscriptScope::Refusals) if is_refusal => {}
            _ => return,
        }
        while !replies.is_empty() {
            let end = memchr(b'\n', replies).map_or(replies.len(), |end| end + 1);
            let (line, rest) = replies.split_at(end);
            let line = line.strip_suffix(b"\r\n").unwrap_or(line);
            replies = rest;
            if !line.is_empty() {
                self.push(Speaker::Server, is_refusal, |out| write_escaped(out, line));
            }
        }
    }

    /// Sets the stage of the last line.
    pub(crate) fn mark_stage(&mut self, stage: TransactionStage) {
        if self.scope == Some(TranscriptScope::Everything)
            && let Some(last) = self.transcript.entries.last_mut()
        {
            last.stage = Some(stage);
        }
    }

    /// Ends the transcript: pending octets of a message become a line.
    pub(crate) fn finish(&mut self) {
        if let Some((speaker, octets)) = self.pending_mail.take() {
            self.transcript.push(speaker, false, |out| {
                // Writing to a string cannot fail.
                let _ = write!(out, "({octets} octets of mail)");
            });
        }
    }

    fn push(&mut self, speaker: Speaker, is_refusal: bool, write: impl FnOnce(&mut String)) {
        self.finish();
        self.transcript.push(speaker, is_refusal, write);
    }
}

/// Writes AUTH with these arguments.
pub(crate) fn write_masked_auth(out: &mut String, arguments: &[u8]) {
    let (mechanism, rest) = split_word(arguments);
    out.push_str("AUTH");
    write_masked_mechanism(out, mechanism, !rest.is_empty());
}

/// Writes the arguments of an authentication command. The mechanism is shown only if it is known.
pub(crate) fn write_masked_mechanism(out: &mut String, mechanism: &[u8], has_more: bool) {
    let known = MECHANISMS.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(mechanism));
    if let Some(known) = known {
        out.push(' ');
        out.push_str(known);
    }
    if known.is_none() && !mechanism.is_empty() || has_more {
        out.push_str(" ***");
    }
}

/// Writes a command of which only the verb may be shown.
pub(crate) fn write_masked_verb(out: &mut String, verb: &[u8], arguments: &[u8]) {
    write_escaped(out, verb);
    if !arguments.is_empty() {
        out.push_str(" ***");
    }
}

/// Writes a line that is not a command. It may be a misspelled AUTH, an unexpected password, or an HTTP header. The
/// first word is shown only if it has the form of a verb, in capitals, and is followed by something.
pub(crate) fn write_masked_unknown(out: &mut String, line: &[u8]) {
    let (verb, arguments) = split_word(line);
    if VERB_LETTERS.contains(&verb.len()) && verb.iter().all(u8::is_ascii_uppercase) && !arguments.is_empty() {
        write_escaped(out, verb);
        out.push(' ');
    }
    write_hidden(out, line);
}

/// Writes a line of which nothing may be shown.
pub(crate) fn write_hidden(out: &mut String, line: &[u8]) {
    // Writing to a string cannot fail.
    let _ = write!(out, "*** ({} octets)", line.len());
}

/// Writes a line as it is, with control characters escaped.
pub(crate) fn write_escaped(out: &mut String, line: &[u8]) {
    match str::from_utf8(line) {
        Ok(text) if is_printable(line) => out.push_str(text),
        _ => {
            for c in String::from_utf8_lossy(line).chars() {
                if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
            }
        }
    }
}

/// Returns true if all bytes are printable characters of ASCII. Checks eight bytes at a time.
fn is_printable(line: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = 0x80 * ONES;
    let (words, rest) = line.as_chunks();
    let is_word_printable = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        // The high bit of a byte is set in `below` if the byte is below a space, and in `above` if the byte is above a tilde. Such a byte may
        // also set the high bit of the next byte, which does not change the result.
        let (below, above) = (word.wrapping_sub(0x20 * ONES) & !word, word.wrapping_add(ONES) | word);
        (below | above) & HIGH_BITS == 0
    };
    words.iter().all(is_word_printable) && rest.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(recorder: &Recorder) -> Vec<&str> {
        recorder.transcript.lines().map(|line| line.text).collect()
    }

    #[test]
    fn printable_characters_are_those_from_space_to_tilde() {
        for length in [1, 7, 8, 9, 16, 20] {
            for position in 0..length {
                for byte in 0..=u8::MAX {
                    for other in *b" a~" {
                        let mut line = vec![other; length];
                        line[position] = byte;
                        assert_eq!(is_printable(&line), matches!(byte, b' '..=b'~'), "{line:?}");
                    }
                }
            }
        }
        assert!(is_printable(b""));
    }

    #[test]
    fn splits_replies_into_lines_and_limits_their_number() {
        let mut recorder = Recorder::new(TranscriptScope::Everything);
        recorder.record_replies(b"250-one\r\n250 two\r\n", false);
        recorder.record_mail_octets(Speaker::Client, 10);
        recorder.record_mail_octets(Speaker::Client, 0);
        recorder.record_mail_octets(Speaker::Client, 7);
        recorder.record_replies(b"250 three\r\n", false);
        assert_eq!(texts(&recorder), ["250-one", "250 two", "(17 octets of mail)", "250 three"]);
        recorder.transcript.clear();
        for _ in 0..2 * MAX_LINES {
            recorder.record_note("***");
        }
        assert_eq!(recorder.transcript.lines().count(), MAX_LINES);
    }

    #[test]
    fn marks_refusals_and_can_record_only_them() {
        let recorded = |scope| {
            let mut recorder = Recorder::new(scope);
            recorder.record_command(|out| out.push_str("BOGUS"));
            recorder.record_replies(b"500 what?\r\n", true);
            recorder.record_replies(b"250 fine\r\n", false);
            recorder.record_note("***");
            recorder.record_mail_octets(Speaker::Client, 10);
            recorder.record_replies(b"550 no\r\n", true);
            recorder.transcript.lines().map(|line| (line.text.to_owned(), line.is_refusal)).collect::<Vec<_>>()
        };
        let line = |text: &str, refusal| (text.to_owned(), refusal);
        let (unknown, no) = (line("500 what?", true), line("550 no", true));
        let others = ["BOGUS", "250 fine", "***", "(10 octets of mail)"].map(|text| line(text, false));
        let [bogus, fine, secret, octets] = others;
        assert_eq!(recorded(TranscriptScope::Refusals), [unknown.clone(), no.clone()]);
        assert_eq!(recorded(TranscriptScope::Everything), [bogus, unknown, fine, secret, octets, no]);
    }

    #[test]
    fn records_the_octets_of_an_incomplete_message() {
        let mut recorder = Recorder::new(TranscriptScope::Everything);
        recorder.record_mail_octets(Speaker::Client, 10);
        assert!(recorder.transcript.is_empty(), "more octets may follow");
        recorder.finish();
        recorder.finish();
        assert_eq!(texts(&recorder), ["(10 octets of mail)"]);
    }
}
