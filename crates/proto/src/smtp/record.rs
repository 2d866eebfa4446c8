//! The record of a dialogue, for a person to read: who said what, line by line. It never holds a password, and
//! of a mail only how long it was. What a peer sends where a command is due counts as a command.

use crate::line::word;

use super::command::{self, Verb};

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
#[derive(Debug, Default)]
pub(crate) struct Recording {
    lines: Vec<Recorded>,
    octets: usize,
    suspicion: Suspicion,
}

/// Whether a line that is no command may be a password that the peer sent without being asked for it.
#[derive(Debug, Default, PartialEq, Eq)]
enum Suspicion {
    #[default]
    None,
    AuthWasTried,
}

impl Recording {
    /// A command line of the peer.
    pub(crate) fn command(&mut self, line: &[u8]) {
        let text = match command::split(line) {
            Ok((Verb::Auth, arguments)) => {
                self.suspicion = Suspicion::AuthWasTried;
                masked_auth(arguments)
            }
            Err(_) if self.suspicion == Suspicion::AuthWasTried || mentions_auth(line) => {
                self.suspicion = Suspicion::AuthWasTried;
                hidden(line.len())
            }
            Ok(_) | Err(_) => escape(line),
        };
        self.push(Speaker::Client, text);
    }

    /// A line of the peer within an AUTH exchange.
    pub(crate) fn secret(&mut self) {
        self.push(Speaker::Client, "***".to_owned());
    }

    /// The end of a line that was too long.
    pub(crate) fn too_long(&mut self) {
        self.push(Speaker::Client, "(line too long)".to_owned());
    }

    /// Octets of a mail, which become one line when something else is said.
    pub(crate) fn data(&mut self, octets: usize) {
        self.octets += octets;
    }

    /// Replies of the server, each with its CRLF.
    pub(crate) fn replies(&mut self, replies: &[u8]) {
        for line in replies.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                self.push(Speaker::Server, escape(line.strip_suffix(b"\r").unwrap_or(line)));
            }
        }
    }

    /// Everything since the last time.
    pub(crate) fn take(&mut self) -> Vec<Recorded> {
        std::mem::take(&mut self.lines)
    }

    fn push(&mut self, speaker: Speaker, text: String) {
        if self.octets > 0 {
            let octets = std::mem::take(&mut self.octets);
            self.push(Speaker::Client, format!("({octets} octets of mail)"));
        }
        if self.lines.len() < MAX_LINES {
            self.lines.push(Recorded { speaker, text });
        }
    }
}

fn masked_auth(arguments: &[u8]) -> String {
    let (mechanism, rest) = word(arguments);
    let known = MECHANISMS.iter().find(|known| known.eq_ignore_ascii_case(mechanism));
    match known {
        Some(known) if rest.is_empty() => format!("AUTH {}", escape(known)),
        Some(known) => format!("AUTH {} ***", escape(known)),
        None if mechanism.is_empty() => "AUTH".to_owned(),
        None => "AUTH ***".to_owned(),
    }
}

/// Whether a broken line looks like an attempt at AUTH.
fn mentions_auth(line: &[u8]) -> bool {
    line.windows(4).any(|window| window.eq_ignore_ascii_case(b"AUTH"))
}

fn hidden(octets: usize) -> String {
    format!("*** ({octets} octets)")
}

fn escape(line: &[u8]) -> String {
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
    fn secrets_are_masked() {
        let table: &[(&[u8], &str)] = &[
            (b"EHLO client", "EHLO client"),
            (b"NO\0OP\x1b[31m", "NO\\u{0}OP\\u{1b}[31m"),
            (b"NOPE nope", "NOPE nope"),
            (b" auth plain hunter2", "*** (19 octets)"),
            (b"\0AUTH PLAIN hunter2", "*** (19 octets)"),
            (b"auth plain hunter2", "AUTH PLAIN ***"),
            (b"AUTH LOGIN", "AUTH LOGIN"),
            (b"AUTH", "AUTH"),
            (b"AUTH hunter2", "AUTH ***"),
            // Sent behind an AUTH that was refused, this may be what was meant for it.
            (b"aHVudGVyMg==", "*** (12 octets)"),
            (b"QUIT", "QUIT"),
        ];
        let mut recording = Recording::default();
        for (line, expected) in table {
            recording.command(line);
            assert_eq!(recording.take(), [Recorded { speaker: Speaker::Client, text: (*expected).to_owned() }]);
        }
    }

    #[test]
    fn replies_are_split_into_lines_and_the_record_is_bounded() {
        let mut recording = Recording::default();
        recording.replies(b"250-one\r\n250 two\r\n");
        recording.data(10);
        recording.data(0);
        recording.data(7);
        recording.replies(b"250 three\r\n");
        let texts: Vec<String> = recording.take().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["250-one", "250 two", "(17 octets of mail)", "250 three"]);
        for _ in 0..2 * MAX_LINES {
            recording.secret();
        }
        assert_eq!(recording.take().len(), MAX_LINES);
    }
}
