//! The record of a dialogue, for a person to read: who said what, line by line. It never holds a password, and
//! of a mail only how long it was. What may be shown of a command is for each protocol to say.

use crate::line::word;

/// The most lines that are kept until somebody takes them.
const MAX_LINES: usize = 10_000;
/// The mechanisms whose name is shown; anything else behind AUTH could be a secret.
const MECHANISMS: [&[u8]; 4] = [b"PLAIN", b"LOGIN", b"CRAM-MD5", b"XOAUTH2"];

/// One line of the dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said, without the end of the line; control characters are escaped.
    pub text: String,
    /// Whether the server refuses something by it.
    pub refusal: bool,
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

/// The dialogue since the record was last taken.
#[derive(Debug)]
pub(crate) struct Recording {
    scope: Scope,
    /// Whether a line of the server is a refusal, which is for each protocol to say.
    refuses: fn(&[u8]) -> bool,
    lines: Vec<Recorded>,
    /// Octets of a mail that are not in a line yet, and who sent them.
    mail: Option<(Speaker, usize)>,
}

impl Recording {
    /// A record that begins now.
    pub(crate) fn new(scope: Scope, refuses: fn(&[u8]) -> bool) -> Self {
        Self { scope, refuses, lines: Vec::new(), mail: None }
    }

    /// What may be shown of a command, which is worked out only when somebody wants to know.
    pub(crate) fn command(&mut self, show: impl FnOnce() -> String) {
        if self.scope == Scope::Everything {
            self.push(Speaker::Client, show());
        }
    }

    /// A line of the peer within an AUTH exchange.
    pub(crate) fn secret(&mut self) {
        self.command(|| "***".to_owned());
    }

    /// The end of a line that was too long.
    pub(crate) fn too_long(&mut self) {
        self.command(|| "(line too long)".to_owned());
    }

    /// Octets of a mail, which become one line when something else is said.
    pub(crate) fn mail(&mut self, speaker: Speaker, octets: usize) {
        if octets > 0 && self.scope == Scope::Everything {
            let (_, sum) = self.mail.get_or_insert((speaker, 0));
            *sum += octets;
        }
    }

    /// Replies of the server, each with its CRLF.
    pub(crate) fn replies(&mut self, replies: &[u8]) {
        for line in replies.split(|byte| *byte == b'\n') {
            let refusal = (self.refuses)(line);
            if refusal || self.scope == Scope::Everything && !line.is_empty() {
                self.push_line(Speaker::Server, escape(line.strip_suffix(b"\r").unwrap_or(line)), refusal);
            }
        }
    }

    /// Everything since the last time.
    pub(crate) fn take(&mut self) -> Vec<Recorded> {
        std::mem::take(&mut self.lines)
    }

    fn push(&mut self, speaker: Speaker, text: String) {
        self.push_line(speaker, text, false);
    }

    fn push_line(&mut self, speaker: Speaker, text: String, refusal: bool) {
        if let Some((sender, octets)) = self.mail.take() {
            self.push(sender, format!("({octets} octets of mail)"));
        }
        if self.lines.len() < MAX_LINES {
            self.lines.push(Recorded { speaker, text, refusal });
        }
    }
}

/// AUTH, by what follows the verb: the mechanism is shown when it surely is one.
pub(crate) fn masked_auth(arguments: &[u8]) -> String {
    let (mechanism, rest) = word(arguments);
    let known = MECHANISMS.iter().find(|known| known.eq_ignore_ascii_case(mechanism));
    match known {
        Some(known) if rest.is_empty() => format!("AUTH {}", escape(known)),
        Some(known) => format!("AUTH {} ***", escape(known)),
        None if mechanism.is_empty() => "AUTH".to_owned(),
        None => "AUTH ***".to_owned(),
    }
}

/// A line of which nothing may be shown.
pub(crate) fn hidden(line: &[u8]) -> String {
    format!("*** ({} octets)", line.len())
}

/// A line of which everything may be shown, its control characters escaped.
pub(crate) fn escape(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for c in String::from_utf8_lossy(line).chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_split_into_lines_and_the_record_is_bounded() {
        let mut recording = Recording::new(Scope::Everything, |_| false);
        recording.replies(b"250-one\r\n250 two\r\n");
        recording.mail(Speaker::Client, 10);
        recording.mail(Speaker::Client, 0);
        recording.mail(Speaker::Client, 7);
        recording.replies(b"250 three\r\n");
        let texts: Vec<String> = recording.take().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["250-one", "250 two", "(17 octets of mail)", "250 three"]);
        for _ in 0..2 * MAX_LINES {
            recording.secret();
        }
        assert_eq!(recording.take().len(), MAX_LINES);
    }

    #[test]
    fn refusals_are_told_from_the_rest_or_stand_alone() {
        let said = |scope| {
            let mut recording = Recording::new(scope, |line| line.starts_with(b"5"));
            recording.command(|| "BOGUS".to_owned());
            recording.replies(b"500 what?\r\n250 fine\r\n");
            recording.secret();
            recording.mail(Speaker::Client, 10);
            recording.replies(b"550 no\r\n");
            recording.take().into_iter().map(|line| (line.text, line.refusal)).collect::<Vec<_>>()
        };
        let line = |text: &str, refusal| (text.to_owned(), refusal);
        let (what, no) = (line("500 what?", true), line("550 no", true));
        let others = ["BOGUS", "250 fine", "***", "(10 octets of mail)"].map(|text| line(text, false));
        let [bogus, fine, secret, mail] = others;
        assert_eq!(said(Scope::Refusals), [what.clone(), no.clone()]);
        assert_eq!(said(Scope::Everything), [bogus, what, fine, secret, mail, no]);
    }
}
