//! Parses a command line. The error is the reply that says what is wrong. [`super::commands`] decides whether a command
//! is allowed in a state.

use restante_mail::named_enum;

use crate::Secret;
use crate::line::split_word;
use crate::sasl::{self, Exchange, Mechanism, Step, decode_md5_hex};

use super::reply;

/// The longest command line, CRLF included (RFC 2449 section 4).
const MAX_COMMAND_BYTES: usize = 255;
/// The longest line with a name or a password. RFC 2449 allows a server to accept more than 255, and an address of 320
/// characters in UTF-8 (RFC 6856 section 2.2) needs it.
const MAX_LOGIN_COMMAND_BYTES: usize = 2_048;

/// A valid command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Capa,
    User(String),
    Pass(Secret),
    Apop {
        user: String,
        digest: [u8; 16],
    },
    Auth(AuthCommand),
    Stls,
    Utf8,
    Stat,
    /// With the number of a message, or for all.
    List(Option<u64>),
    Uidl(Option<u64>),
    Retr(u64),
    Top {
        number: u64,
        lines: u64,
    },
    Dele(u64),
    Rset,
    Noop,
    Quit,
}

/// The arguments of AUTH.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthCommand {
    /// A request for the list of mechanisms.
    Mechanisms,
    /// The first step of an exchange.
    Start(Step),
}

named_enum! {
    /// The first word of a command.
    pub(crate) enum Verb {
        Capa = "CAPA",
        User = "USER",
        Pass = "PASS",
        Apop = "APOP",
        Auth = "AUTH",
        Stls = "STLS",
        Utf8 = "UTF8",
        Stat = "STAT",
        List = "LIST",
        Uidl = "UIDL",
        Retr = "RETR",
        Top = "TOP",
        Dele = "DELE",
        Rset = "RSET",
        Noop = "NOOP",
        Quit = "QUIT",
    }
}

/// Parses a line. The error is the reply to it.
pub(crate) fn parse(line: &[u8]) -> Result<Command, &'static str> {
    let verb = parse_verb(line)?;
    let (_, arguments) = split_word(line);
    let arguments = arguments.trim_ascii();
    match verb {
        Verb::Capa => without_arguments(Command::Capa, arguments),
        Verb::Stls => without_arguments(Command::Stls, arguments),
        Verb::Utf8 => without_arguments(Command::Utf8, arguments),
        Verb::Stat => without_arguments(Command::Stat, arguments),
        Verb::Rset => without_arguments(Command::Rset, arguments),
        Verb::Noop => without_arguments(Command::Noop, arguments),
        Verb::Quit => without_arguments(Command::Quit, arguments),
        Verb::User => parse_user(arguments),
        Verb::Pass => Ok(parse_pass(line)),
        Verb::Apop => parse_apop(arguments),
        Verb::Auth => parse_auth(arguments).map(Command::Auth),
        Verb::List => parse_list_target(arguments, reply::SYNTAX_LIST).map(Command::List),
        Verb::Uidl => parse_list_target(arguments, reply::SYNTAX_UIDL).map(Command::Uidl),
        Verb::Retr => parse_number(arguments).map(Command::Retr).ok_or(reply::SYNTAX_RETR),
        Verb::Dele => parse_number(arguments).map(Command::Dele).ok_or(reply::SYNTAX_DELE),
        Verb::Top => parse_top(arguments).ok_or(reply::SYNTAX_TOP),
    }
}

/// Parses the verb of a line, in any letter case.
pub(crate) fn parse_verb(line: &[u8]) -> Result<Verb, &'static str> {
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(reply::CONTROL_CHARACTER);
    }
    lookup_verb(split_word(line).0).ok_or(reply::UNKNOWN_COMMAND)
}

/// Returns the length limit of a line that starts like this.
pub(crate) fn max_line_bytes(start: &[u8]) -> usize {
    match start.get(..4).and_then(lookup_verb) {
        Some(Verb::Auth) => sasl::MAX_LINE_BYTES,
        Some(Verb::User | Verb::Pass | Verb::Apop) => MAX_LOGIN_COMMAND_BYTES,
        _ => MAX_COMMAND_BYTES,
    }
}

fn lookup_verb(word: &[u8]) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.name().as_bytes().eq_ignore_ascii_case(word))
}

fn without_arguments(command: Command, arguments: &[u8]) -> Result<Command, &'static str> {
    if arguments.is_empty() { Ok(command) } else { Err(reply::NO_ARGUMENT) }
}

fn parse_user(arguments: &[u8]) -> Result<Command, &'static str> {
    match split_word(arguments) {
        (b"", _) => Err(reply::SYNTAX_USER),
        (user, b"") => parse_name(user).map(Command::User),
        _ => Err(reply::SYNTAX_USER),
    }
}

/// Parses PASS. The password is the rest of the line, including blanks, and may be empty (RFC 1939 section 7).
fn parse_pass(line: &[u8]) -> Command {
    let password = line.get(5..).unwrap_or_default();
    Command::Pass(Secret::new(String::from_utf8_lossy(password)))
}

fn parse_apop(arguments: &[u8]) -> Result<Command, &'static str> {
    let (user, digest) = split_word(arguments);
    let digest = decode_md5_hex(digest).ok_or(reply::SYNTAX_APOP)?;
    Ok(Command::Apop { user: parse_name(user)?, digest })
}

/// Parses the arguments of AUTH (RFC 5034 section 4). AUTH without arguments is in no RFC, but clients that are older
/// than CAPA use it to list the mechanisms.
fn parse_auth(arguments: &[u8]) -> Result<AuthCommand, &'static str> {
    let (mechanism, rest) = split_word(arguments);
    if mechanism.is_empty() {
        return Ok(AuthCommand::Mechanisms);
    }
    let (initial, rest) = split_word(rest);
    if !rest.is_empty() {
        return Err(reply::SYNTAX_AUTH);
    }
    // USER and PASS do the same as LOGIN.
    let mechanism = Mechanism::parse(mechanism).filter(|mechanism| *mechanism != Mechanism::Login);
    let mechanism = mechanism.ok_or(reply::AUTH_UNKNOWN)?;
    Ok(AuthCommand::Start(Exchange::start(mechanism, Some(initial).filter(|initial| !initial.is_empty()))))
}

fn parse_top(arguments: &[u8]) -> Option<Command> {
    let (message, lines) = split_word(arguments);
    Some(Command::Top { number: parse_number(message)?, lines: parse_number(lines)? })
}

/// Parses a name. It is UTF-8 even if the client did not send the command UTF8 (RFC 6856 section 2.2).
fn parse_name(octets: &[u8]) -> Result<String, &'static str> {
    std::str::from_utf8(octets).map(str::to_owned).map_err(|_| reply::NOT_UTF8)
}

/// Parses the argument of LIST or UIDL, which may be missing. `syntax` is the error.
fn parse_list_target(text: &[u8], syntax: &'static str) -> Result<Option<u64>, &'static str> {
    if text.is_empty() { Ok(None) } else { parse_number(text).map(Some).ok_or(syntax) }
}

/// Parses decimal digits. A number above `u64` becomes `u64::MAX`, which is above any number of messages or lines.
fn parse_number(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    let is_valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_valid.then(|| digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(password: &str) -> Command {
        Command::Pass(Secret::new(password))
    }

    #[test]
    fn parses_commands() {
        let table: &[(&[u8], Result<Command, &str>)] = &[
            (b"STAT", Ok(Command::Stat)),
            (b"stat  ", Ok(Command::Stat)),
            (b"Stat 1", Err(reply::NO_ARGUMENT)),
            (b"utf8", Ok(Command::Utf8)),
            (b"USER james", Ok(Command::User("james".to_owned()))),
            (b"user\t james@x.test ", Ok(Command::User("james@x.test".to_owned()))),
            ("USER jürgen".as_bytes(), Ok(Command::User("jürgen".to_owned()))),
            (b"USER j\xfcrgen", Err(reply::NOT_UTF8)),
            (b"USER", Err(reply::SYNTAX_USER)),
            (b"USER two words", Err(reply::SYNTAX_USER)),
            (b"PASS secret", Ok(secret("secret"))),
            (b"PASS  two words ", Ok(secret(" two words "))),
            (b"PASS ", Ok(secret(""))),
            (b"PASS \xff", Ok(secret("\u{fffd}"))),
            (b"PASS", Ok(Command::Pass(Secret::new("")))),
            (b"LIST", Ok(Command::List(None))),
            (b"LIST 007", Ok(Command::List(Some(7)))),
            (b"LIST 1 2", Err(reply::SYNTAX_LIST)),
            (b"UIDL -1", Err(reply::SYNTAX_UIDL)),
            (b"RETR +1", Err(reply::SYNTAX_RETR)),
            (b"RETR 0x1", Err(reply::SYNTAX_RETR)),
            ("RETR ١".as_bytes(), Err(reply::SYNTAX_RETR)),
            (b"RETR", Err(reply::SYNTAX_RETR)),
            (b"DELE 1.0", Err(reply::SYNTAX_DELE)),
            (b"DELE 18446744073709551616", Ok(Command::Dele(u64::MAX))),
            (b"TOP 1 0", Ok(Command::Top { number: 1, lines: 0 })),
            (b"TOP 1  10", Ok(Command::Top { number: 1, lines: 10 })),
            (b"TOP 1", Err(reply::SYNTAX_TOP)),
            (b"TOP 1 2 3", Err(reply::SYNTAX_TOP)),
            (b"", Err(reply::UNKNOWN_COMMAND)),
            (b" STAT", Err(reply::UNKNOWN_COMMAND)),
            (b"STATS", Err(reply::UNKNOWN_COMMAND)),
            (b"LANG", Err(reply::UNKNOWN_COMMAND)),
            (b"EHLO client.test", Err(reply::UNKNOWN_COMMAND)),
            (b"STAT\0", Err(reply::CONTROL_CHARACTER)),
            (b"PASS a\rb", Err(reply::CONTROL_CHARACTER)),
        ];
        for (line, expected) in table {
            assert_eq!(&parse(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn parses_apop() {
        let digest = *b"\xc4\xc9\x33\x4b\xac\x56\x0e\xcc\x97\x9e\x58\x00\x1b\x3e\x22\xfb";
        let apop = || Ok(Command::Apop { user: "mrose".to_owned(), digest });
        let syntax = || Err(reply::SYNTAX_APOP);
        let table: &[(&[u8], Result<Command, &str>)] = &[
            (b"APOP mrose c4c9334bac560ecc979e58001b3e22fb", apop()),
            (b"apop mrose C4C9334BAC560ECC979E58001B3E22FB", apop()),
            (b"APOP m\xff c4c9334bac560ecc979e58001b3e22fb", Err(reply::NOT_UTF8)),
            (b"APOP mrose c4c9334bac560ecc979e58001b3e22f", syntax()),
            (b"APOP mrose c4c9334bac560ecc979e58001b3e22fbb", syntax()),
            (b"APOP mrose c4c9334bac560ecc979e58001b3e22f+", syntax()),
            (b"APOP c4c9334bac560ecc979e58001b3e22fb", syntax()),
            (b"APOP", syntax()),
        ];
        for (line, expected) in table {
            assert_eq!(&parse(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn parses_auth_arguments() {
        let start = |step| Ok(Command::Auth(AuthCommand::Start(step)));
        let plain = |identity: &str| {
            let (authorization_id, user) = (identity.to_owned(), "james".to_owned());
            let proof = sasl::Proof::Password(Secret::new("secret"));
            start(Step::Credentials(sasl::Credentials { mechanism: Mechanism::Plain, authorization_id, user, proof }))
        };
        let table: &[(&[u8], Result<Command, &str>)] = &[
            (b"AUTH", Ok(Command::Auth(AuthCommand::Mechanisms))),
            (b"auth plain", start(Exchange::start(Mechanism::Plain, None))),
            (b"auth xoauth2", start(Exchange::start(Mechanism::XOAuth2, None))),
            (b"AUTH PLAIN AGphbWVzAHNlY3JldA==", plain("")),
            (b"AUTH Plain YWRtaW4AamFtZXMAc2VjcmV0", plain("admin")),
            (b"AUTH PLAIN *", start(Step::Cancelled)),
            (b"AUTH PLAIN =", start(Step::Malformed)),
            (b"AUTH PLAIN AGphbWVzAHNlY3JldA", start(Step::Malformed)),
            (b"AUTH LOGIN", Err(reply::AUTH_UNKNOWN)),
            (b"AUTH PLAIN AAA= AAA=", Err(reply::SYNTAX_AUTH)),
            (b"AUTH CRAM-MD5", Err(reply::AUTH_UNKNOWN)),
        ];
        for (line, expected) in table {
            assert_eq!(&parse(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn line_limits_depend_on_the_verb() {
        let table: &[(&[u8], usize)] = &[
            (b"auth plain", sasl::MAX_LINE_BYTES),
            (b"USER", MAX_LOGIN_COMMAND_BYTES),
            (b"pass x", MAX_LOGIN_COMMAND_BYTES),
            (b"APOP", MAX_LOGIN_COMMAND_BYTES),
            (b"RETR 1", MAX_COMMAND_BYTES),
            (b"USE", MAX_COMMAND_BYTES),
            (b"", MAX_COMMAND_BYTES),
            (b"\xff\xff\xff\xff", MAX_COMMAND_BYTES),
        ];
        for (start, limit) in table {
            assert_eq!(max_line_bytes(start), *limit, "{start:?}");
        }
    }
}
