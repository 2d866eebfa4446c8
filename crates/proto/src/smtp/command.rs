//! Parses a command line: the verb, and the address of MAIL and RCPT. [`super::commands`] decides whether a command is
//! allowed in a state; [`super::params`] parses the parameters after the address.

use restante_mail::address::{Address, AddressError, Alphabet};
use restante_mail::envelope::ReversePath;
use restante_mail::named_enum;

use crate::line::split_word;
use crate::sasl;

use super::command_error::CommandError;
use super::params::{MailParameters, check_rcpt_parameters};
use super::{Settings, reply};

/// The longest command line, CRLF included (RFC 5321 section 4.5.3.1.4).
const MAX_COMMAND_BYTES: usize = 512;
/// The longest line of a command with parameters or long names. RFC 1870, 3461 and 6531 each add to the 512.
const MAX_EXTENDED_COMMAND_BYTES: usize = 2_048;
/// The longest name in a greeting (RFC 5321 section 4.5.3.1.2).
const MAX_HELO_BYTES: usize = 255;

named_enum! {
    /// The first word of a command. They are compared in this order, so the most frequent ones come first.
    pub(crate) enum Verb {
        Mail = "MAIL",
        Rcpt = "RCPT",
        Data = "DATA",
        Ehlo = "EHLO",
        Helo = "HELO",
        Lhlo = "LHLO",
        Bdat = "BDAT",
        Rset = "RSET",
        Noop = "NOOP",
        Quit = "QUIT",
        Auth = "AUTH",
        StartTls = "STARTTLS",
        Vrfy = "VRFY",
        Help = "HELP",
        Expn = "EXPN",
        Turn = "TURN",
        Send = "SEND",
        Soml = "SOML",
        Saml = "SAML",
    }
}

/// The arguments of MAIL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MailCommand<'a> {
    pub(crate) from: ReversePath,
    pub(crate) parameters: MailParameters,
    /// The parameters as sent.
    pub(crate) parameter_text: &'a str,
}

/// Splits a line into its verb and its arguments, without surrounding blanks.
pub(crate) fn split_verb(line: &[u8]) -> Result<(Verb, &[u8]), CommandError> {
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(CommandError::Bad(reply::CONTROL_CHARACTER));
    }
    let (verb, arguments) = split_word(line);
    let verb = lookup_verb(verb).ok_or(CommandError::Bad(reply::UNKNOWN_COMMAND))?;
    Ok((verb, arguments.trim_ascii()))
}

/// Returns the length limit of a line that starts like this.
pub(crate) fn max_line_bytes(start: &[u8]) -> usize {
    match start.get(..4).and_then(lookup_verb) {
        Some(Verb::Auth) => sasl::MAX_LINE_BYTES,
        Some(Verb::Mail | Verb::Rcpt | Verb::Ehlo | Verb::Helo | Verb::Lhlo) => MAX_EXTENDED_COMMAND_BYTES,
        _ => MAX_COMMAND_BYTES,
    }
}

/// Returns the verb for a word, in any letter case.
pub(crate) fn lookup_verb(word: &[u8]) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.name().as_bytes().eq_ignore_ascii_case(word))
}

/// Parses the name in a greeting. Clients send all kinds of names, and none is refused because of its characters. The
/// name goes into the Received header (RFC 5321 section 4.4), so characters with a meaning there are replaced. Further
/// words are ignored unless the session is `strict`.
pub(crate) fn parse_helo_name(arguments: &[u8], strict: bool) -> Result<String, CommandError> {
    let (name, rest) = split_word(arguments);
    if name.is_empty() || strict && !rest.is_empty() || name.len() > MAX_HELO_BYTES {
        return Err(CommandError::Bad(reply::SYNTAX_HELLO));
    }
    let replace_special = |byte: u8| match byte {
        b'(' | b')' | b';' | b'<' | b'>' | b'"' | b'\\' | b',' => '?',
        byte if byte.is_ascii_graphic() => char::from(byte),
        _ => '?',
    };
    Ok(name.iter().copied().map(replace_special).collect())
}

impl<'a> MailCommand<'a> {
    /// Parses the arguments: `FROM:<address>` and parameters.
    pub(crate) fn parse(arguments: &'a [u8], strict: bool) -> Result<Self, CommandError> {
        let malformed = CommandError::Bad(reply::SYNTAX_MAIL);
        let arguments = parse_utf8(arguments)?;
        let (path, text) = split_path(arguments, "FROM:").ok_or(malformed.clone())?;
        let parameters = MailParameters::parse(text, strict)?;
        let from = match path {
            Path::Bracketed("") => None,
            Path::Bracketed(address) => Some(parse_address(address, parameters.alphabet, reply::BAD_SENDER)?),
            Path::Bare(address) => Some(Address::parse(address, parameters.alphabet).map_err(|_| malformed)?),
        };
        Ok(Self { from, parameters, parameter_text: text.trim() })
    }
}

/// Parses the arguments of RCPT: `TO:<address>` and parameters, which are returned as sent. A postmaster without a
/// domain is that of this server (RFC 5321 section 4.5.1).
pub(crate) fn parse_rcpt<'a>(
    arguments: &'a [u8],
    alphabet: Alphabet,
    settings: &Settings,
) -> Result<(Address, &'a str), CommandError> {
    let malformed = CommandError::Bad(reply::SYNTAX_RCPT);
    let arguments = parse_utf8(arguments)?;
    let (path, parameters) = split_path(arguments, "TO:").ok_or(malformed.clone())?;
    check_rcpt_parameters(parameters, alphabet, settings.strict)?;
    let recipient = match path {
        Path::Bracketed(name) | Path::Bare(name) if name.eq_ignore_ascii_case("postmaster") => {
            Address::from_parts(name, &settings.domain)
        }
        Path::Bracketed(address) => parse_address(address, alphabet, reply::BAD_RECIPIENT)?,
        Path::Bare(address) => Address::parse(address, alphabet).map_err(|_| malformed)?,
    };
    Ok((recipient, parameters.trim()))
}

/// An address as written in the command. Brackets are required, but it is harmless to accept clients that omit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path<'a> {
    Bracketed(&'a str),
    Bare(&'a str),
}

/// Parses an address in brackets. The reply to an invalid one starts with `error_start`.
fn parse_address(address: &str, alphabet: Alphabet, error_start: &'static str) -> Result<Address, CommandError> {
    Address::parse(address, alphabet).map_err(|error| match error {
        AddressError::NonAscii => CommandError::Refused(reply::ADDRESS_NOT_ASCII),
        error => CommandError::InvalidAddress(error_start, error),
    })
}

/// Converts arguments to text. Non-ASCII bytes must be UTF-8 (RFC 6531 section 3.1).
fn parse_utf8(arguments: &[u8]) -> Result<&str, CommandError> {
    std::str::from_utf8(arguments).map_err(|_| CommandError::Refused(reply::ADDRESS_NOT_ASCII))
}

/// Splits `FROM:<address> parameters` into the address and the parameters.
fn split_path<'a>(arguments: &'a str, keyword: &str) -> Option<(Path<'a>, &'a str)> {
    let start = arguments.get(..keyword.len())?;
    if !start.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = arguments[keyword.len()..].trim_start();
    let (path, rest) = if let Some(inside) = rest.strip_prefix('<') {
        let end = find_path_end(inside, |byte| byte == b'>')?;
        (Path::Bracketed(&inside[..end]), &inside[end + 1..])
    } else {
        let end = find_path_end(rest, |byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        (Path::Bare(&rest[..end]), &rest[end..])
    };
    let has_separator = rest.is_empty() || rest.starts_with([' ', '\t']);
    (has_separator && path != Path::Bare("")).then_some((path, rest))
}

/// Returns the end of a path: the first byte accepted by `ends` that is not quoted (RFC 5321 section 4.1.2).
fn find_path_end(text: &str, ends: impl Fn(u8) -> bool) -> Option<usize> {
    let mut in_quotes = false;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => in_quotes = !in_quotes,
            byte if ends(byte) && !in_quotes => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::Protocol;

    #[test]
    fn splits_verbs_in_any_case() {
        type Split<'a> = Result<(Verb, &'a [u8]), CommandError>;
        let table: &[(&[u8], Split<'_>)] = &[
            (b"NOOP", Ok((Verb::Noop, b""))),
            (b"noop  ", Ok((Verb::Noop, b""))),
            (b"Ehlo\t host ", Ok((Verb::Ehlo, b"host"))),
            (b"StartTLS", Ok((Verb::StartTls, b""))),
            (b"MAIL FROM:<>", Ok((Verb::Mail, b"FROM:<>"))),
            (b"expn all", Ok((Verb::Expn, b"all"))),
            (b"", Err(CommandError::Bad(reply::UNKNOWN_COMMAND))),
            (b" NOOP", Err(CommandError::Bad(reply::UNKNOWN_COMMAND))),
            (b"NOOPS", Err(CommandError::Bad(reply::UNKNOWN_COMMAND))),
            (b"STARTTLSSTARTTLS", Err(CommandError::Bad(reply::UNKNOWN_COMMAND))),
            (b"GET / HTTP/1.1", Err(CommandError::Bad(reply::UNKNOWN_COMMAND))),
            (b"NOOP\0", Err(CommandError::Bad(reply::CONTROL_CHARACTER))),
            (b"NO\rOP", Err(CommandError::Bad(reply::CONTROL_CHARACTER))),
            (b"NOOP \x7f", Err(CommandError::Bad(reply::CONTROL_CHARACTER))),
        ];
        for (line, expected) in table {
            assert_eq!(&split_verb(line), expected, "{line:?}");
        }
    }

    #[test]
    fn line_limits_depend_on_the_verb() {
        let table: &[(&[u8], usize)] = &[
            (b"auth plain", sasl::MAX_LINE_BYTES),
            (b"MAIL", MAX_EXTENDED_COMMAND_BYTES),
            (b"rcpt to:", MAX_EXTENDED_COMMAND_BYTES),
            (b"EHLO x", MAX_EXTENDED_COMMAND_BYTES),
            (b"NOOP", MAX_COMMAND_BYTES),
            (b"MAI", MAX_COMMAND_BYTES),
            (b"", MAX_COMMAND_BYTES),
            (b"\xff\xff\xff\xff", MAX_COMMAND_BYTES),
        ];
        for (start, limit) in table {
            assert_eq!(max_line_bytes(start), *limit, "{start:?}");
        }
    }

    #[test]
    fn parses_helo_names() {
        let longest = "x".repeat(255);
        let too_long = "x".repeat(256);
        let table: &[(&[u8], Option<&str>)] = &[
            (b"client.example", Some("client.example")),
            (b"[192.0.2.1]", Some("[192.0.2.1]")),
            (b"My_PC", Some("My_PC")),
            (b"a(b);c", Some("a?b??c")),
            (b"b\xfccher", Some("b?cher")),
            (longest.as_bytes(), Some(&longest)),
            (too_long.as_bytes(), None),
            (b"two words", None),
            (b"", None),
        ];
        for (argument, name) in table {
            assert_eq!(parse_helo_name(argument, true).ok().as_deref(), *name, "{argument:?}");
        }
        assert_eq!(parse_helo_name(b"two words", false).ok().as_deref(), Some("two"));
        for malformed in [too_long.as_bytes(), b""] {
            assert!(parse_helo_name(malformed, false).is_err());
        }
    }

    #[test]
    fn parses_senders() {
        let bad = || Err(CommandError::Bad(reply::SYNTAX_MAIL));
        let table: &[(&str, Result<&str, CommandError>)] = &[
            ("FROM:<a@x.org>", Ok("a@x.org")),
            ("from:<a@x.org>", Ok("a@x.org")),
            ("FROM: <a@x.org>", Ok("a@x.org")),
            ("FROM:<>", Ok("")),
            ("FROM:a@x.org", Ok("a@x.org")),
            ("FROM: a@x.org SIZE=3", Ok("a@x.org")),
            ("FROM:<@one,@two:a@x.org>", Ok("a@x.org")),
            ("FROM:<\"a>b\"@x.org> SIZE=3", Ok("\"a>b\"@x.org")),
            ("FROM:<\"a\\\">b\"@x.org>", Ok("\"a\\\">b\"@x.org")),
            ("FROM:\"a b\"@x.org SIZE=3", Ok("\"a b\"@x.org")),
            ("FROM:<ü@x.org> SMTPUTF8", Ok("ü@x.org")),
            ("FROM:<ü@x.org>", Err(CommandError::Refused(reply::ADDRESS_NOT_ASCII))),
            ("FROM:<a>", Err(CommandError::InvalidAddress(reply::BAD_SENDER, AddressError::Domain("is missing")))),
            (
                "FROM:< >",
                Err(CommandError::InvalidAddress(
                    reply::BAD_SENDER,
                    AddressError::Local("has a character that needs quotes"),
                )),
            ),
            ("FROM:<a@x.org", bad()),
            ("FROM:<a@x.org>SIZE=3", bad()),
            ("FROM:<a@x.org>>", bad()),
            ("FROM:<\"a@x.org>", bad()),
            ("FROM:<a\\>", bad()),
            ("FROM:", bad()),
            ("FROM", bad()),
            ("FROM <a@x.org>", bad()),
            ("TO:<a@x.org>", bad()),
            ("FROM:nonsense", bad()),
            ("FROM:SIZE=3", bad()),
            ("FRÖM:<a@x.org>", bad()),
            ("", bad()),
        ];
        for (arguments, expected) in table {
            let sender = MailCommand::parse(arguments.as_bytes(), true)
                .map(|parsed| parsed.from.as_ref().map(Address::to_string).unwrap_or_default());
            assert_eq!(sender.as_deref(), expected.as_ref().map(|text| *text), "{arguments:?}");
        }
        assert_eq!(
            MailCommand::parse(b"FROM:<\xfc@x.org>", true),
            Err(CommandError::Refused(reply::ADDRESS_NOT_ASCII))
        );
    }

    #[test]
    fn parses_recipients() {
        let settings = Settings {
            domain: "mx.test".to_owned(),
            protocol: Protocol::Smtp,
            listener: None,
            max_message_bytes: 1000,
            max_recipients: 10,
            max_bad_commands: 20,
            starttls: false,
            require_starttls: false,
            require_auth: false,
            cram_md5: true,
            strict: true,
            disabled_commands: Vec::new(),
        };
        let bad = || Err(CommandError::Bad(reply::SYNTAX_RCPT));
        let table: &[(&str, Result<&str, CommandError>)] = &[
            ("TO:<b@x.org>", Ok("b@x.org")),
            ("to: b@x.org", Ok("b@x.org")),
            ("TO:<Postmaster>", Ok("Postmaster@mx.test")),
            ("TO:postmaster", Ok("postmaster@mx.test")),
            ("TO:<b@x.org> NOTIFY=NEVER", Ok("b@x.org")),
            ("TO:<>", Err(CommandError::InvalidAddress(reply::BAD_RECIPIENT, AddressError::Empty))),
            ("TO:<b>", Err(CommandError::InvalidAddress(reply::BAD_RECIPIENT, AddressError::Domain("is missing")))),
            ("TO:<ü@x.org>", Err(CommandError::Refused(reply::ADDRESS_NOT_ASCII))),
            ("TO:<b@x.org> SIZE=3", Err(CommandError::Bad(reply::PARAMETER_UNKNOWN))),
            ("TO:<b@x.org", bad()),
            ("FROM:<b@x.org>", bad()),
            ("TO:", bad()),
        ];
        for (arguments, expected) in table {
            let recipient = parse_rcpt(arguments.as_bytes(), Alphabet::Ascii, &settings);
            let recipient = recipient.map(|(to, _)| to.to_string());
            assert_eq!(recipient.as_deref(), expected.as_ref().map(|text| *text), "{arguments:?}");
        }
    }
}
