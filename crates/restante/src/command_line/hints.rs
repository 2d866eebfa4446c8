//! Hints for invalid command lines: flags of other mail servers, and commands that other servers are started with.

use std::ffi::OsString;

use restante_net::ListenAddr;
use restante_settings::{SETTINGS, Value, parse_boolean};

use super::arguments;
use crate::mailpit::OPTIONS;

/// Words that are mistaken for the command that starts the server.
const START_COMMANDS: &[&str] = &["serve", "server", "start", "run", "daemon"];

/// Flags of Mailpit, MailHog, MailDev and similar servers, without their dashes, and what replaces them here.
const FOREIGN_FLAGS: &[(&[&str], Replacement)] = &[
    (&["port", "p"], Replacement::Address(&[("--smtp-addr", "SMTP"), ("--web-addr", "the web interface")])),
    (&["smtp", "s", "smtp-port", "smtp-bind-addr", "smtp-listen"], Replacement::Address(&[("--smtp-addr", "SMTP")])),
    (&["pop3", "pop3-port"], Replacement::Address(&[("--pop3-addr", "POP3")])),
    (&["imap", "imap-port", "imapport"], Replacement::Address(&[("--imap-addr", "IMAP")])),
    (
        &["listen", "l", "web", "w", "web-port", "http", "http-port", "http-addr", "ui-bind-addr", "api-bind-addr"],
        Replacement::Address(&[("--web-addr", "the web interface")]),
    ),
    (
        &["database", "d", "db-file", "mail-directory", "maildir-path", "storage"],
        Replacement::Flag("--data DIR", "to keep messages in a directory"),
    ),
    (&["max", "m"], Replacement::Flag("--storage-maxmessages NUMBER", "to limit the number of messages")),
    (&["max-age"], Replacement::Flag("--storage-retentionperiod DURATION", "to limit the age of messages")),
    (&["verbose", "v"], Replacement::Flag("--loglevel debug", "to log details")),
    (&["quiet", "q", "silent"], Replacement::Flag("--loglevel error", "to log errors only")),
];

/// What replaces a flag.
enum Replacement {
    /// Flags for an address, and what is served there.
    Address(&'static [(&'static str, &'static str)]),
    /// A flag with its value, and its purpose.
    Flag(&'static str, &'static str),
}

/// Returns hints for a command line that is invalid, or an empty text.
pub(super) fn hints(args: &[OsString]) -> String {
    let words: Vec<&str> = args.iter().skip(1).filter_map(|arg| arg.to_str()).collect();
    let hints = [start_hint(&words), equals_sign_hint(&words), foreign_flag_hint(&words)];
    hints.into_iter().flatten().fold(String::new(), |text, hint| text + "\n" + &hint + "\n")
}

fn start_hint(words: &[&str]) -> Option<String> {
    let first = words.first().filter(|first| START_COMMANDS.contains(first))?;
    Some(format!("The server starts without a command: leave out {first}."))
}

/// Returns a hint for `--smtp-defaultaccept false`, which the parser takes for a complete flag and a superfluous word.
fn equals_sign_hint(words: &[&str]) -> Option<String> {
    words.windows(2).find_map(|pair| {
        let (flag, value) = (pair[0], pair[1]);
        let name = flag.strip_prefix("--")?;
        let is_bool = SETTINGS.iter().any(|setting| setting.value == Value::Bool && setting.flag() == name);
        (is_bool && parse_boolean(value).is_ok()).then(|| format!("Write {flag}={value}, with an equals sign."))
    })
}

/// Returns a hint for the first flag of another server. Commands have other flags, for which the hints would be wrong.
fn foreign_flag_hint(words: &[&str]) -> Option<String> {
    let command = arguments::command();
    if words.iter().any(|word| command.find_subcommand(word).is_some()) {
        return None;
    }
    words.iter().enumerate().find_map(|(index, word)| {
        let flag = word.strip_prefix('-')?.trim_start_matches('-');
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let (_, replacement) = FOREIGN_FLAGS.iter().find(|(names, _)| names.contains(&name))?;
        let value = value.or_else(|| words.get(index + 1).copied());
        let hint = match replacement {
            Replacement::Address(flags) => {
                let address = address(value);
                let flags: Vec<String> =
                    flags.iter().map(|(flag, purpose)| format!("{flag} {address} for {purpose}")).collect();
                format!("Use {}.", flags.join(", or "))
            }
            Replacement::Flag(flag, purpose) => format!("Use {flag} {purpose}."),
        };
        let is_mailpit =
            OPTIONS.iter().any(|option| option.flag == name || option.short.is_some_and(|c| name == c.to_string()));
        let mailpit = if is_mailpit { " To use the flags of Mailpit, begin with: restante --as mailpit" } else { "" };
        Some(format!("{hint}{mailpit}"))
    })
}

/// Returns the value as an address to listen on, or an example.
fn address(value: Option<&str>) -> String {
    match value {
        Some(port) if port.parse::<u16>().is_ok() => format!("localhost:{port}"),
        Some(address) if address.parse::<ListenAddr>().is_ok() => address.to_owned(),
        _ => "localhost:PORT".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_flags_for_those_of_other_servers() {
        let table = [
            ("serve", "The server starts without a command: leave out serve."),
            (
                "--port 2525",
                "Use --smtp-addr localhost:2525 for SMTP, or --web-addr localhost:2525 for the web interface.",
            ),
            ("-p=80", "Use --smtp-addr localhost:80 for SMTP, or --web-addr localhost:80 for the web interface."),
            ("-smtp-bind-addr 0.0.0.0:1025", "Use --smtp-addr 0.0.0.0:1025 for SMTP."),
            ("--loglevel debug --web", "Use --web-addr localhost:PORT for the web interface."),
            ("--http-port nine", "Use --web-addr localhost:PORT for the web interface."),
            ("--mail-directory x", "Use --data DIR to keep messages in a directory."),
            (
                "--smtp :1025",
                "Use --smtp-addr :1025 for SMTP. To use the flags of Mailpit, begin with: restante --as mailpit",
            ),
            ("--smtp-defaultaccept false", "Write --smtp-defaultaccept=false, with an equals sign."),
        ];
        for (words, expected) in table {
            let args: Vec<OsString> = ["restante"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
            assert_eq!(hints(&args), format!("\n{expected}\n"), "{words}");
        }
        for words in ["send --smtp x", "--nope", "serf", "x -", "--as"] {
            let args: Vec<OsString> = ["restante"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
            assert_eq!(hints(&args), "", "{words}");
        }
    }
}
