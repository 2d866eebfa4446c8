//! How a command of SMTP stands in the record of a dialogue: without anything that could be a password.

use crate::record::{escape, hidden, masked_auth};

use super::command::Verb;
use super::fault::Fault;

/// Whether a line that is no command may be a password that the peer sent without being asked for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Nothing speaks for it.
    #[default]
    Open,
    /// There was an attempt at AUTH before it.
    AuthWasTried,
}

impl Mask {
    /// Writes what is shown of a command line, by the command that it was found to be.
    pub(crate) fn show(&mut self, out: &mut String, line: &[u8], command: Result<&(Verb, &[u8]), &Fault>) {
        match command {
            Ok((Verb::Auth, arguments)) => {
                *self = Self::AuthWasTried;
                masked_auth(out, arguments);
            }
            Err(_) if *self == Self::AuthWasTried || mentions_auth(line) => {
                *self = Self::AuthWasTried;
                hidden(out, line);
            }
            Ok(_) | Err(_) => escape(out, line),
        }
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
        let mut mask = Mask::default();
        for (line, expected) in table {
            let mut shown = String::new();
            mask.show(&mut shown, line, command::split(line).as_ref());
            assert_eq!(shown, *expected);
        }
    }
}
