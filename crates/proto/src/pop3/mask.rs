//! Masks POP3 commands for the transcript: nothing that could be a password or a digest is shown.

use crate::line::split_word;
use crate::transcript::{write_escaped, write_hidden, write_masked_auth, write_masked_verb};

use super::command::{self, Command, Verb};

/// Writes the part of a line that may be shown. An unknown line may be an unexpected password, so nothing of it is
/// shown.
pub(crate) fn write_masked(out: &mut String, line: &[u8]) {
    let Ok(verb) = command::parse_verb(line) else { return write_hidden(out, line) };
    match (verb, command::parse(line)) {
        (Verb::Pass, _) => out.push_str("PASS ***"),
        (Verb::Apop, Ok(Command::Apop { user, .. })) => {
            out.push_str("APOP ");
            write_escaped(out, user.as_bytes());
            out.push_str(" ***");
        }
        (Verb::Apop, _) => out.push_str("APOP ***"),
        (Verb::Auth, _) => write_masked_auth(out, line[4..].trim_ascii()),
        (_, Ok(_)) => write_escaped(out, line),
        // A user may have typed the password after the name, or where no argument belongs.
        (_, Err(_)) => {
            let (verb, arguments) = split_word(line);
            write_masked_verb(out, verb, arguments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_secrets() {
        let table: &[(&[u8], &str)] = &[
            (b"STAT", "STAT"),
            (b"retr 7", "retr 7"),
            (b"retr x", "retr ***"),
            (b"RETR", "RETR"),
            (b"QUIT hunter2", "QUIT ***"),
            (b"RSET hunter2", "RSET ***"),
            (b"USER james", "USER james"),
            (b"USER james hunter2", "USER ***"),
            (b"PASS hunter2", "PASS ***"),
            (b"pass\thunter2", "PASS ***"),
            (b" PASS hunter2", "*** (13 octets)"),
            (b"PASShunter2", "*** (11 octets)"),
            (b"PASS hunter2\0", "*** (13 octets)"),
            (b"APOP james c4c9334bac560ecc979e58001b3e22fb", "APOP james ***"),
            (b"APOP hunter2", "APOP ***"),
            (b"AUTH", "AUTH"),
            (b"auth plain", "AUTH PLAIN"),
            (b"AUTH PLAIN aHVudGVyMg==", "AUTH PLAIN ***"),
            (b"AUTH hunter2", "AUTH ***"),
            (b"aHVudGVyMg==", "*** (12 octets)"),
            (b"", "*** (0 octets)"),
        ];
        for (line, expected) in table {
            let mut masked = String::new();
            write_masked(&mut masked, line);
            assert_eq!(masked, *expected);
        }
    }
}
