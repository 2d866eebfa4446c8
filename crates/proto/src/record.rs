//! The record of a dialogue, for a person to read: who said what, line by line. It never holds a password, and
//! of a mail only how long it was. What may be shown of a command is for each protocol to say.
//!
//! A server may record every dialogue, so a line costs its text and no piece of memory of its own.

use std::fmt::Write as _;

use memchr::memchr;

use crate::line::word;

/// The most lines that are kept until somebody clears them.
const MAX_LINES: usize = 10_000;
/// How much of its memory a record keeps when it is cleared.
const KEPT: usize = 1024;
/// The mechanisms whose name is shown; anything else behind AUTH could be a secret.
const MECHANISMS: [&str; 4] = ["PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2"];
/// How long a word is, in letters, that may be the verb of a command that is not known here.
const VERB: std::ops::RangeInclusive<usize> = 3..=8;

/// One line of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded<'a> {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said, without the end of the line; control characters are escaped.
    pub text: &'a str,
    /// Whether the server refuses something by it.
    pub refusal: bool,
    /// What it means for the mail under way, where it means anything.
    pub stage: Option<Stage>,
}

/// What of a dialogue is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Everything,
    /// Only the lines by which the server refuses something, which costs next to nothing.
    Refusals,
}

/// One side of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The peer.
    Client,
    /// This server.
    Server,
}

/// Where a mail has come to by a line. A mail that has begun ends by one of the others, or with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The client begins a mail, and the driver is asked about its sender.
    Begun,
    /// The server has taken the mail.
    Accepted,
    /// The server does not take the mail.
    Refused,
    /// The client has given the mail up.
    Abandoned,
}

/// The lines since the record was last cleared.
#[derive(Debug, Default)]
pub struct Dialogue {
    text: String,
    entries: Vec<Entry>,
}

/// A line that ends here in the text and begins where the one before it ends.
#[derive(Debug)]
struct Entry {
    end: usize,
    speaker: Speaker,
    refusal: bool,
    stage: Option<Stage>,
}

impl Dialogue {
    /// The lines in their order.
    pub fn lines(&self) -> impl Iterator<Item = Recorded<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let text = self.text.get(start..entry.end).unwrap_or_default();
            start = entry.end;
            Recorded { speaker: entry.speaker, text, refusal: entry.refusal, stage: entry.stage }
        })
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets the lines.
    pub fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        self.entries.clear();
        self.entries.shrink_to(KEPT / size_of::<Entry>());
    }

    /// Adds a line with the text that the function writes.
    fn push(&mut self, speaker: Speaker, refusal: bool, write: impl FnOnce(&mut String)) {
        if self.entries.len() < MAX_LINES {
            write(&mut self.text);
            self.entries.push(Entry { end: self.text.len(), speaker, refusal, stage: None });
        }
    }
}

/// A dialogue that is being recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    scope: Scope,
    pub(crate) dialogue: Dialogue,
    /// Octets of a mail that are not in a line yet, and who sent them.
    mail: Option<(Speaker, usize)>,
}

impl Recording {
    /// A record that begins now.
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope, dialogue: Dialogue::default(), mail: None }
    }

    /// What may be shown of a command, which is written only when somebody wants to know.
    pub(crate) fn command(&mut self, show: impl FnOnce(&mut String)) {
        if self.scope == Scope::Everything {
            self.push(Speaker::Client, false, show);
        }
    }

    /// A line of the peer within an AUTH exchange.
    pub(crate) fn secret(&mut self) {
        self.command(|out| out.push_str("***"));
    }

    /// Records a remark in place of a line that is not kept.
    pub(crate) fn remark(&mut self, text: &'static str) {
        self.command(|out| out.push_str(text));
    }

    /// The end of a line that was too long.
    pub(crate) fn too_long(&mut self) {
        self.remark("(line too long)");
    }

    /// Octets of a mail, which become one line when something else is said.
    pub(crate) fn mail(&mut self, speaker: Speaker, octets: usize) {
        if octets > 0 && self.scope == Scope::Everything {
            let (_, sum) = self.mail.get_or_insert((speaker, 0));
            *sum += octets;
        }
    }

    /// Records replies of the server, each with its CRLF. `refusal` says whether they are errors.
    pub(crate) fn replies(&mut self, mut replies: &[u8], refusal: bool) {
        if !refusal && self.scope != Scope::Everything {
            return;
        }
        while !replies.is_empty() {
            let end = memchr(b'\n', replies).map_or(replies.len(), |end| end + 1);
            let (line, rest) = replies.split_at(end);
            let line = line.strip_suffix(b"\r\n").unwrap_or(line);
            replies = rest;
            if !line.is_empty() {
                self.push(Speaker::Server, refusal, |out| escape(out, line));
            }
        }
    }

    /// Says what the last line means for the mail under way.
    pub(crate) fn mark(&mut self, stage: Stage) {
        if self.scope == Scope::Everything
            && let Some(last) = self.dialogue.entries.last_mut()
        {
            last.stage = Some(stage);
        }
    }

    /// Nothing more will be said: what has come of a mail becomes a line.
    pub(crate) fn end(&mut self) {
        if let Some((sender, octets)) = self.mail.take() {
            self.dialogue.push(sender, false, |out| {
                // Writing to a string cannot fail.
                let _ = write!(out, "({octets} octets of mail)");
            });
        }
    }

    fn push(&mut self, speaker: Speaker, refusal: bool, write: impl FnOnce(&mut String)) {
        self.end();
        self.dialogue.push(speaker, refusal, write);
    }
}

/// Writes AUTH, by what follows the verb: the mechanism is shown when it surely is one.
pub(crate) fn masked_auth(out: &mut String, arguments: &[u8]) {
    let (mechanism, rest) = word(arguments);
    let known = MECHANISMS.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(mechanism));
    out.push_str("AUTH");
    if let Some(known) = known {
        out.push(' ');
        out.push_str(known);
    }
    if known.is_none() && !mechanism.is_empty() || !rest.is_empty() {
        out.push_str(" ***");
    }
}

/// Writes a command of which only the verb may be shown.
pub(crate) fn masked_verb(out: &mut String, verb: &[u8], arguments: &[u8]) {
    escape(out, verb);
    if !arguments.is_empty() {
        out.push_str(" ***");
    }
}

/// Writes a line that is no command. It may be a misspelt AUTH, a password that nobody asked for, or a header of HTTP: the
/// first word is shown when it has capitals only, as programs write verbs, and is not all there is.
pub(crate) fn masked_unknown(out: &mut String, line: &[u8]) {
    let (verb, arguments) = word(line);
    if VERB.contains(&verb.len()) && verb.iter().all(u8::is_ascii_uppercase) && !arguments.is_empty() {
        escape(out, verb);
        out.push(' ');
    }
    hidden(out, line);
}

/// Writes a line of which nothing may be shown.
pub(crate) fn hidden(out: &mut String, line: &[u8]) {
    // Writing to a string cannot fail.
    let _ = write!(out, "*** ({} octets)", line.len());
}

/// Writes a line of which everything may be shown, its control characters escaped.
pub(crate) fn escape(out: &mut String, line: &[u8]) {
    // To look at all of the bytes is quicker than to stop at the first, because many are looked at together.
    let plain = line.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    match str::from_utf8(line) {
        Ok(text) if plain => out.push_str(text),
        _ => {
            for c in String::from_utf8_lossy(line).chars() {
                if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(recording: &Recording) -> Vec<&str> {
        recording.dialogue.lines().map(|line| line.text).collect()
    }

    #[test]
    fn replies_are_split_into_lines_and_the_record_is_bounded() {
        let mut recording = Recording::new(Scope::Everything);
        recording.replies(b"250-one\r\n250 two\r\n", false);
        recording.mail(Speaker::Client, 10);
        recording.mail(Speaker::Client, 0);
        recording.mail(Speaker::Client, 7);
        recording.replies(b"250 three\r\n", false);
        assert_eq!(texts(&recording), ["250-one", "250 two", "(17 octets of mail)", "250 three"]);
        recording.dialogue.clear();
        for _ in 0..2 * MAX_LINES {
            recording.secret();
        }
        assert_eq!(recording.dialogue.lines().count(), MAX_LINES);
    }

    #[test]
    fn refusals_are_told_from_the_rest_or_stand_alone() {
        let said = |scope| {
            let mut recording = Recording::new(scope);
            recording.command(|out| out.push_str("BOGUS"));
            recording.replies(b"500 what?\r\n", true);
            recording.replies(b"250 fine\r\n", false);
            recording.secret();
            recording.mail(Speaker::Client, 10);
            recording.replies(b"550 no\r\n", true);
            recording.dialogue.lines().map(|line| (line.text.to_owned(), line.refusal)).collect::<Vec<_>>()
        };
        let line = |text: &str, refusal| (text.to_owned(), refusal);
        let (what, no) = (line("500 what?", true), line("550 no", true));
        let others = ["BOGUS", "250 fine", "***", "(10 octets of mail)"].map(|text| line(text, false));
        let [bogus, fine, secret, mail] = others;
        assert_eq!(said(Scope::Refusals), [what.clone(), no.clone()]);
        assert_eq!(said(Scope::Everything), [bogus, what, fine, secret, mail, no]);
    }

    #[test]
    fn a_mail_that_breaks_off_is_on_record_when_the_dialogue_ends() {
        let mut recording = Recording::new(Scope::Everything);
        recording.mail(Speaker::Client, 10);
        assert!(recording.dialogue.is_empty(), "more may come");
        recording.end();
        recording.end();
        assert_eq!(texts(&recording), ["(10 octets of mail)"]);
    }
}
