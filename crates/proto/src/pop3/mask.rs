//! How a command of POP3 stands in the record of a dialogue: without anything that could be a password or a digest.

use crate::record::{escape, hidden, masked_auth};

use super::command::{self, Command, Verb};

/// What is shown of a command line. A line that is no command may be a password that the peer sent without being asked
/// for it, so nothing is shown of it.
pub(crate) fn show(line: &[u8]) -> String {
    let Ok(verb) = command::verb(line) else { return hidden(line) };
    match (verb, command::parse(line)) {
        (Verb::Pass, _) => "PASS ***".to_owned(),
        (Verb::Apop, Ok(Command::Apop { user, .. })) => format!("APOP {} ***", escape(user.as_bytes())),
        (Verb::Apop, _) => "APOP ***".to_owned(),
        (Verb::Auth, _) => masked_auth(line[4..].trim_ascii()),
        // Somebody may have written the password behind the name.
        (Verb::User, Err(_)) => "USER ***".to_owned(),
        _ => escape(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let table: &[(&[u8], &str)] = &[
            (b"STAT", "STAT"),
            (b"retr x", "retr x"),
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
            assert_eq!(show(line), *expected);
        }
    }
}
