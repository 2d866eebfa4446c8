//! Masks SMTP commands for the transcript: nothing that could be a password is shown.

use crate::line::split_word;
use crate::transcript::{write_escaped, write_hidden, write_masked_auth, write_masked_unknown, write_masked_verb};

use super::command::Verb;
use super::command_error::CommandError;

/// Whether an unknown line may be an unexpected password.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum CommandMask {
    /// There was no sign of AUTH.
    #[default]
    NoAuthSeen,
    /// There was an AUTH command before it, or a line that may have been one.
    AuthAttempted,
}

impl CommandMask {
    /// Writes the part of a line that may be shown. `command` is the result of parsing the line.
    pub(crate) fn write_masked(
        &mut self,
        out: &mut String,
        line: &[u8],
        command: Result<&(Verb, &[u8]), &CommandError>,
    ) {
        match command {
            Ok((Verb::Auth, arguments)) => {
                *self = Self::AuthAttempted;
                write_masked_auth(out, arguments);
            }
            Ok((verb, arguments)) if has_public_arguments(*verb, arguments) => write_escaped(out, line),
            Ok((_, arguments)) => write_masked_verb(out, split_word(line).0, arguments),
            Err(_) if *self == Self::AuthAttempted || mentions_auth(line) => {
                *self = Self::AuthAttempted;
                write_hidden(out, line);
            }
            Err(_) => write_masked_unknown(out, line),
        }
    }

    /// Records that a line was too long to be kept. It may have been an AUTH, and the next lines may belong to it.
    pub(crate) fn note_lost_line(&mut self) {
        *self = Self::AuthAttempted;
    }
}

/// Returns whether the arguments describe the message or the client, so that they can be shown. Arguments of other
/// commands have no meaning, and may be there by mistake.
fn has_public_arguments(verb: Verb, arguments: &[u8]) -> bool {
    match verb {
        Verb::Helo | Verb::Ehlo | Verb::Lhlo | Verb::Mail | Verb::Rcpt | Verb::Vrfy => true,
        Verb::Bdat => {
            let (size, last) = split_word(arguments);
            size.iter().all(u8::is_ascii_digit) && (last.is_empty() || last.eq_ignore_ascii_case(b"LAST"))
        }
        _ => false,
    }
}

/// Returns whether an invalid line looks like AUTH.
fn mentions_auth(line: &[u8]) -> bool {
    line.windows(4).any(|window| window.eq_ignore_ascii_case(b"AUTH"))
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    #[test]
    fn masks_secrets() {
        let table: &[(&[u8], &str)] = &[
            (b"EHLO client", "EHLO client"),
            (b"MAIL FROM:<a@x.test>\x1b", "MAIL *** (21 octets)"),
            (b"VRFY james", "VRFY james"),
            (b"noop", "noop"),
            (b"RSET secret", "RSET ***"),
            (b"quit secret", "quit ***"),
            (b"DATA secret", "DATA ***"),
            (b"STARTTLS secret", "STARTTLS ***"),
            (b"NOOP secret", "NOOP ***"),
            (b"EXPN secret", "EXPN ***"),
            (b"BDAT 12 last", "BDAT 12 last"),
            (b"BDAT 12 LAST aHVudGVyMg==", "BDAT ***"),
            (b"BDAT aHVudGVyMg==", "BDAT ***"),
            (b"NO\0OP\x1b[31m", "*** (10 octets)"),
            (b"NOPE nope", "NOPE *** (9 octets)"),
            (b"PASS secret", "PASS *** (11 octets)"),
            (b"AUHT PLAIN AGFubgBzZWNyZXQ=", "AUHT *** (27 octets)"),
            (b"GET / HTTP/1.1", "GET *** (14 octets)"),
            (b"Cookie: x=y", "*** (11 octets)"),
            (b"Authorization: Basic YW5uOnNlY3JldA==", "*** (37 octets)"),
            (b"correct horse battery", "*** (21 octets)"),
            (b"PASSWORDS secret", "*** (16 octets)"),
            (b"H4X0R secret", "*** (12 octets)"),
            (b"UFdTRUNSRVQ=", "*** (12 octets)"),
            (b"SECRET", "*** (6 octets)"),
            (b"SECRET ", "*** (7 octets)"),
            (b"", "*** (0 octets)"),
            (b" auth plain hunter2", "*** (19 octets)"),
            (b"\0AUTH PLAIN hunter2", "*** (19 octets)"),
            (b"auth plain hunter2", "AUTH PLAIN ***"),
            (b"AUTH LOGIN", "AUTH LOGIN"),
            (b"AUTH", "AUTH"),
            (b"AUTH hunter2", "AUTH ***"),
            // Sent after a refused AUTH, this may be its response.
            (b"aHVudGVyMg==", "*** (12 octets)"),
            (b"MY SECRET", "*** (9 octets)"),
            (b"QUIT", "QUIT"),
        ];
        let mut mask = CommandMask::default();
        for (line, expected) in table {
            let mut masked = String::new();
            mask.write_masked(&mut masked, line, command::split_verb(line).as_ref());
            assert_eq!(masked, *expected, "{}", String::from_utf8_lossy(line));
            // Only the HTTP header contains AUTH before the AUTH commands of this table.
            if line.starts_with(b"Authorization") {
                mask = CommandMask::default();
            }
        }
    }
}
