//! Masks IMAP commands for the transcript: nothing that could be a password or a token is shown.

use crate::line::split_word;
use crate::transcript::{write_escaped, write_hidden, write_masked_mechanism};

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
            write_escaped(out, format!("{tag} AUTHENTICATE").as_bytes());
            write_masked_mechanism(out, mechanism.as_bytes(), initial_response.is_some());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::parse;
    use crate::imap::reader::CommandText;

    #[test]
    fn hides_what_may_be_secret() {
        // The command and the line of the transcript.
        let table = [
            ("a NOOP", "a NOOP"),
            ("a LOGIN bob secret", "a LOGIN bob ***"),
            ("a LOGIN bob", "a LOGIN ***"),
            ("a AUTHENTICATE PLAIN", "a AUTHENTICATE PLAIN"),
            ("a authenticate plain AGJvYgBzZWNyZXQ=", "a AUTHENTICATE PLAIN ***"),
            ("a AUTHENTICATE XOAUTH2 dG9rZW4=", "a AUTHENTICATE XOAUTH2 ***"),
            ("a AUTHENTICATE secret", "a AUTHENTICATE ***"),
            ("a AUTHENTICATE secret more", "a AUTHENTICATE ***"),
            ("secret", "*** (6 octets)"),
        ];
        for (command, expected) in table {
            let text = CommandText { text: command.as_bytes().to_vec(), message: None };
            let mut shown = String::new();
            write_masked(&mut shown, &text.text, &parse::parse(&text, false));
            assert_eq!(shown, expected, "{command}");
        }
    }
}
