//! How a command of SMTP stands in the record of a dialogue: without anything that could be a password.

use crate::line::split_word;
use crate::transcript::{write_escaped, write_hidden, write_masked_auth, write_masked_unknown, write_masked_verb};

use super::command::Verb;
use super::command_error::CommandError;

/// Whether a line that is no command may be a password that the peer sent without being asked for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum CommandMask {
    /// Nothing speaks for it.
    #[default]
    NoAuthSeen,
    /// There was an attempt at AUTH before it, or a line that may have been one.
    AuthAttempted,
}

impl CommandMask {
    /// Writes what is shown of a command line, by the command that it was found to be.
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

    /// A line was too long to be kept. It may have been an AUTH, and what follows may belong to it.
    pub(crate) fn note_lost_line(&mut self) {
        *self = Self::AuthAttempted;
    }
}

/// Whether the arguments of a command are of those that tell of a mail and its way. What stands behind any other means
/// nothing, and may be there by mistake.
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

/// Whether a broken line looks like an attempt at AUTH.
fn mentions_auth(line: &[u8]) -> bool {
    line.windows(4).any(|window| window.eq_ignore_ascii_case(b"AUTH"))
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    #[test]
    fn secrets_are_masked() {
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
            // Sent behind an AUTH that was refused, this may be what was meant for it.
            (b"aHVudGVyMg==", "*** (12 octets)"),
            (b"MY SECRET", "*** (9 octets)"),
            (b"QUIT", "QUIT"),
        ];
        let mut mask = CommandMask::default();
        for (line, expected) in table {
            let mut shown = String::new();
            mask.write_masked(&mut shown, line, command::split_verb(line).as_ref());
            assert_eq!(shown, *expected, "{}", String::from_utf8_lossy(line));
            // Only HTTP names AUTH before its time has come.
            if line.starts_with(b"Authorization") {
                mask = CommandMask::default();
            }
        }
    }
}
