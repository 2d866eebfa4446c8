//! SMTP sessions: conversations in `smtp/`, tables of addresses, and the limit on recipients.

use std::fmt::Write as _;

use super::conversation::{self, Servers};
use super::run;
use crate::mailpit::server::Server;

#[test]
fn smtp_replies_are_those_of_mailpit() {
    run("smtp", |checks| {
        conversation::run_folder(checks, "smtp", Server::smtp);
        let mut servers = Servers::new();
        for (name, command, first) in
            [("senders", "MAIL", ""), ("recipients", "RCPT", "C: MAIL FROM:<ann@one.test>\nS~ 250\n")]
        {
            let text = addresses(command, first);
            conversation::run(checks, &mut servers, name, &text, Server::smtp);
        }
        conversation::run(checks, &mut servers, "101 recipients", &many_recipients(), Server::smtp);
    });
}

const BLANKS: &str = "blanks before the address are ignored";
const CONTROL: &str = "no command may contain them";

/// Arguments of MAIL and RCPT after `FROM:` or `TO:`, and their reply codes.
const ARGUMENTS: [(&str, &str); 15] = [
    ("", "501"),
    ("\\x20", "501"),
    ("\\x20\\x20", "501"),
    ("<kim@one.test>", "250"),
    (" <kim@one.test>", "250"),
    ("<kim.one.test>", "553"),
    (" <kim.one.test>", "553"),
    ("<kim@@one.test>", "553"),
    (" <kim@@one.test>", "553"),
    ("<kim@one@two.test>", "553"),
    (" <kim@one@two.test>", "553"),
    (" < kim@one.test >", "553"),
    (" < kim@one.test>", "553"),
    (" <kim@one.test >", "553"),
    ("<@relay.test kim@one.test>", "553"),
];
/// Arguments with the codes of Mailpit and of Restante, and the reason.
const DIFFERENT: [(&str, &str, &str, &str); 5] = [
    ("  <kim@one.test>", "501", "250", BLANKS),
    ("  <kim.one.test>", "501", "553", BLANKS),
    ("  <kim\\rone.test>", "501", "500", CONTROL),
    ("<kim\\rone.test>", "553", "500", CONTROL),
    (" <kim\\rone.test>", "553", "500", CONTROL),
];

/// Returns a conversation with all arguments of a command. `first` are the lines before each command.
fn addresses(command: &str, first: &str) -> String {
    let keyword = if command == "MAIL" { "FROM" } else { "TO" };
    let mut text = format!("S~ 220\nC: EHLO client.test\nS~ 250\n{first}C: {command}\nS~ 501\n");
    let mut add = |argument: &str, replies: &str| {
        write!(text, "C: {command} {keyword}:{argument}\n{replies}\nC: RSET\nS~ 250\n{first}").unwrap();
    };
    for (argument, code) in ARGUMENTS {
        add(argument, &format!("S~ {code}"));
    }
    for (argument, mailpit, restante, reason) in DIFFERENT {
        add(argument, &format!("S~ {mailpit}\nR {restante} | {reason}"));
    }
    // An empty sender is valid, an empty recipient is not.
    add("<>", if command == "MAIL" { "S~ 250" } else { "S~ 501\nR 553 | it is an address, and it is bad" });
    let long = format!("<{}@{}.test>", "kim".repeat(400), "one".repeat(20));
    add(&long, "S~ 500\nR 553 | an address has at most 320 characters");
    text + "C: QUIT\nS~ 221\nEOF\n"
}

/// Returns a conversation with more recipients than the limit, which is 100.
fn many_recipients() -> String {
    let mut text = "S~ 220\nC: EHLO client.test\nS~ 250\nC: MAIL FROM:<ann@one.test>\nS~ 250\n".to_owned();
    for number in 1..=101 {
        let code = if number <= 100 { "250" } else { "452" };
        write!(text, "C: RCPT TO:<user{number}@two.test>\nS~ {code}\n").unwrap();
    }
    text + "C: RSET\nS~ 250\nC: MAIL FROM:<>\nS~ 250\nC: RCPT TO:<user@two.test>\nS~ 250\nC: QUIT\nS~ 221\nEOF\n"
}
