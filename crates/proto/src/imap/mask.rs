//! Masks IMAP commands for the transcript: nothing that could be a password or a token is shown.

use crate::line::split_word;
use crate::transcript::{write_escaped, write_hidden};

use super::command::{Command, Request};
use super::parse::ParseError;

/// The maximum length of a command in a transcript.
const MAX_SHOWN_BYTES: usize = 1000;

/// Writes the part of a command that may be shown. A command that cannot be parsed may contain an unexpected password, so
/// only its tag and verb are shown.
pub(super) fn write_masked(out: &mut String, text: &[u8], parsed: &Result<Request, ParseError>) {
    match parsed {
        Ok(Request { tag, command: Command::Login { user, .. } }) => {
            write_escaped(out, format!("{tag} LOGIN {user} ***").as_bytes());
        }
        Ok(Request { tag, command: Command::Authenticate { mechanism, initial_response } }) => {
            let secret = if initial_response.is_some() { " ***" } else { "" };
            write_escaped(out, format!("{tag} AUTHENTICATE {mechanism}{secret}").as_bytes());
        }
        Ok(_) => write_escaped(out, &text[..text.len().min(MAX_SHOWN_BYTES)]),
        Err(ParseError { tag: None, .. }) => write_hidden(out, text),
        Err(_) => {
            let (tag, rest) = split_word(text);
            let (verb, arguments) = split_word(rest);
            write_escaped(out, tag);
            out.push(' ');
            if verb.iter().all(u8::is_ascii_alphabetic) && !arguments.is_empty() {
                write_escaped(out, verb);
                out.push_str(" ***");
            } else {
                write_hidden(out, rest);
            }
        }
    }
}
