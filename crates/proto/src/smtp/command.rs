//! Parses one command line: the verb, and the address of MAIL and RCPT. Whether a command is allowed right now is
//! decided in [`super::obey`]; what stands behind the address is read in [`super::params`].

use restante_mail::address::{Address, AddressError, Alphabet};
use restante_mail::envelope::ReversePath;

use crate::line::word;
use crate::sasl;

use super::fault::Fault;
use super::params::{MailParameters, check_rcpt_parameters};
use super::{Settings, reply};

/// The longest command line, CRLF included (RFC 5321 section 4.5.3.1.4).
const COMMAND_LIMIT: usize = 512;
/// The longest line of a command that takes parameters or long names; RFC 1870, 3461 and 6531 each add to the 512.
const EXTENDED_LIMIT: usize = 2_048;
/// The longest name that a peer may give itself (RFC 5321 section 4.5.3.1.2).
const MAX_HELLO: usize = 255;

/// The first word of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Helo,
    Ehlo,
    Lhlo,
    Mail,
    Rcpt,
    Data,
    Bdat,
    Rset,
    Noop,
    Vrfy,
    Help,
    Quit,
    StartTls,
    Auth,
    /// A command of some RFC that this server does not offer.
    Unimplemented,
}

/// What MAIL says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mail<'a> {
    pub(crate) from: ReversePath,
    pub(crate) parameters: MailParameters,
    /// The parameters as they were sent.
    pub(crate) parameter_text: &'a str,
}

/// Splits a line into its verb and the rest without blanks around it.
pub(crate) fn split(line: &[u8]) -> Result<(Verb, &[u8]), Fault> {
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Fault::Bad(reply::CONTROL_CHARACTER));
    }
    let (verb, arguments) = word(line);
    let verb = verb_named(verb).ok_or(Fault::Bad(reply::UNKNOWN))?;
    Ok((verb, arguments.trim_ascii()))
}

/// The limit of the line that starts like this.
pub(crate) fn line_limit(start: &[u8]) -> usize {
    match start.get(..4).and_then(verb_named) {
        Some(Verb::Auth) => sasl::LINE_LIMIT,
        Some(Verb::Mail | Verb::Rcpt | Verb::Ehlo | Verb::Helo | Verb::Lhlo) => EXTENDED_LIMIT,
        _ => COMMAND_LIMIT,
    }
}

/// The verb in any case.
pub(crate) fn verb_named(word: &[u8]) -> Option<Verb> {
    let mut upper = [0_u8; 8];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    Some(match &*upper {
        b"HELO" => Verb::Helo,
        b"EHLO" => Verb::Ehlo,
        b"LHLO" => Verb::Lhlo,
        b"MAIL" => Verb::Mail,
        b"RCPT" => Verb::Rcpt,
        b"DATA" => Verb::Data,
        b"BDAT" => Verb::Bdat,
        b"RSET" => Verb::Rset,
        b"NOOP" => Verb::Noop,
        b"VRFY" => Verb::Vrfy,
        b"HELP" => Verb::Help,
        b"QUIT" => Verb::Quit,
        b"STARTTLS" => Verb::StartTls,
        b"AUTH" => Verb::Auth,
        b"EXPN" | b"TURN" | b"SEND" | b"SOML" | b"SAML" => Verb::Unimplemented,
        _ => return None,
    })
}

/// The name that a peer gives itself. Clients send all sorts of names here, and none is refused for its characters;
/// but it goes into the Received line (RFC 5321 section 4.4), so what means something there is replaced. Further words are
/// ignored, unless the session is `strict`.
pub(crate) fn peer_name(arguments: &[u8], strict: bool) -> Result<String, Fault> {
    let (name, rest) = word(arguments);
    if name.is_empty() || strict && !rest.is_empty() || name.len() > MAX_HELLO {
        return Err(Fault::Bad(reply::SYNTAX_HELLO));
    }
    let harmless = |byte: u8| match byte {
        b'(' | b')' | b';' | b'<' | b'>' | b'"' | b'\\' | b',' => '?',
        byte if byte.is_ascii_graphic() => char::from(byte),
        _ => '?',
    };
    Ok(name.iter().copied().map(harmless).collect())
}

impl<'a> Mail<'a> {
    /// Parses what follows the verb: `FROM:<address>` and parameters.
    pub(crate) fn parse(arguments: &'a [u8], strict: bool) -> Result<Self, Fault> {
        let malformed = Fault::Bad(reply::SYNTAX_MAIL);
        let arguments = text(arguments)?;
        let (path, text) = split_path(arguments, "FROM:").ok_or(malformed.clone())?;
        let parameters = MailParameters::parse(text, strict)?;
        let from = match path {
            Path::Bracketed("") => None,
            Path::Bracketed(address) => Some(Address::parse(address, parameters.alphabet).map_err(bad_sender)?),
            Path::Bare(address) => Some(Address::parse(address, parameters.alphabet).map_err(|_| malformed)?),
        };
        Ok(Self { from, parameters, parameter_text: text.trim() })
    }
}

/// Parses what follows RCPT: `TO:<address>` and parameters, which are returned as they were sent. A
/// postmaster without a domain is the one of this server (RFC 5321 section 4.5.1).
pub(crate) fn parse_rcpt<'a>(
    arguments: &'a [u8],
    alphabet: Alphabet,
    settings: &Settings,
) -> Result<(Address, &'a str), Fault> {
    let malformed = Fault::Bad(reply::SYNTAX_RCPT);
    let arguments = text(arguments)?;
    let (path, parameters) = split_path(arguments, "TO:").ok_or(malformed.clone())?;
    check_rcpt_parameters(parameters, alphabet, settings.strict)?;
    let recipient = match path {
        Path::Bracketed(name) | Path::Bare(name) if name.eq_ignore_ascii_case("postmaster") => {
            Address::from_parts(name, &settings.domain)
        }
        Path::Bracketed(address) => Address::parse(address, alphabet).map_err(bad_recipient)?,
        Path::Bare(address) => Address::parse(address, alphabet).map_err(|_| malformed)?,
    };
    Ok((recipient, parameters.trim()))
}

/// An address as it stands in the command. Brackets are a must, but clients that forget them harm nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path<'a> {
    Bracketed(&'a str),
    Bare(&'a str),
}

fn bad_sender(error: AddressError) -> Fault {
    match error {
        AddressError::NonAscii => Fault::Refused(reply::ADDRESS_NOT_ASCII),
        error => Fault::Sender(error),
    }
}

fn bad_recipient(error: AddressError) -> Fault {
    match error {
        AddressError::NonAscii => Fault::Refused(reply::ADDRESS_NOT_ASCII),
        error => Fault::Recipient(error),
    }
}

/// Everything outside ASCII is UTF-8 or nothing (RFC 6531 section 3.1).
fn text(arguments: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(arguments).map_err(|_| Fault::Refused(reply::ADDRESS_NOT_ASCII))
}

/// Splits `FROM:<address> parameters` into the address and the parameters.
fn split_path<'a>(arguments: &'a str, keyword: &str) -> Option<(Path<'a>, &'a str)> {
    let start = arguments.get(..keyword.len())?;
    if !start.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = arguments[keyword.len()..].trim_start();
    let (path, rest) = if let Some(inside) = rest.strip_prefix('<') {
        let end = end_of_path(inside, |byte| byte == b'>')?;
        (Path::Bracketed(&inside[..end]), &inside[end + 1..])
    } else {
        let end = end_of_path(rest, |byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        (Path::Bare(&rest[..end]), &rest[end..])
    };
    let blank = rest.is_empty() || rest.starts_with([' ', '\t']);
    (blank && path != Path::Bare("")).then_some((path, rest))
}

/// Where a path ends: at the first such byte that is not quoted (RFC 5321 section 4.1.2).
fn end_of_path(text: &str, ends: impl Fn(u8) -> bool) -> Option<usize> {
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
    use crate::smtp::Dialect;

    #[test]
    fn verbs_in_any_case() {
        type Split<'a> = Result<(Verb, &'a [u8]), Fault>;
        let table: &[(&[u8], Split<'_>)] = &[
            (b"NOOP", Ok((Verb::Noop, b""))),
            (b"noop  ", Ok((Verb::Noop, b""))),
            (b"Ehlo\t host ", Ok((Verb::Ehlo, b"host"))),
            (b"StartTLS", Ok((Verb::StartTls, b""))),
            (b"MAIL FROM:<>", Ok((Verb::Mail, b"FROM:<>"))),
            (b"expn all", Ok((Verb::Unimplemented, b"all"))),
            (b"", Err(Fault::Bad(reply::UNKNOWN))),
            (b" NOOP", Err(Fault::Bad(reply::UNKNOWN))),
            (b"NOOPS", Err(Fault::Bad(reply::UNKNOWN))),
            (b"STARTTLSSTARTTLS", Err(Fault::Bad(reply::UNKNOWN))),
            (b"GET / HTTP/1.1", Err(Fault::Bad(reply::UNKNOWN))),
            (b"NOOP\0", Err(Fault::Bad(reply::CONTROL_CHARACTER))),
            (b"NO\rOP", Err(Fault::Bad(reply::CONTROL_CHARACTER))),
            (b"NOOP \x7f", Err(Fault::Bad(reply::CONTROL_CHARACTER))),
        ];
        for (line, expected) in table {
            assert_eq!(&split(line), expected, "{line:?}");
        }
    }

    #[test]
    fn limits_of_lines() {
        let table: &[(&[u8], usize)] = &[
            (b"auth plain", sasl::LINE_LIMIT),
            (b"MAIL", EXTENDED_LIMIT),
            (b"rcpt to:", EXTENDED_LIMIT),
            (b"EHLO x", EXTENDED_LIMIT),
            (b"NOOP", COMMAND_LIMIT),
            (b"MAI", COMMAND_LIMIT),
            (b"", COMMAND_LIMIT),
            (b"\xff\xff\xff\xff", COMMAND_LIMIT),
        ];
        for (start, limit) in table {
            assert_eq!(line_limit(start), *limit, "{start:?}");
        }
    }

    #[test]
    fn names_of_peers() {
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
            assert_eq!(peer_name(argument, true).ok().as_deref(), *name, "{argument:?}");
        }
        assert_eq!(peer_name(b"two words", false).ok().as_deref(), Some("two"));
        for malformed in [too_long.as_bytes(), b""] {
            assert!(peer_name(malformed, false).is_err());
        }
    }

    #[test]
    fn senders() {
        let bad = || Err(Fault::Bad(reply::SYNTAX_MAIL));
        let table: &[(&str, Result<&str, Fault>)] = &[
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
            ("FROM:<ü@x.org>", Err(Fault::Refused(reply::ADDRESS_NOT_ASCII))),
            ("FROM:<a>", Err(Fault::Sender(AddressError::Domain("is missing")))),
            ("FROM:< >", Err(Fault::Sender(AddressError::Local("has a character that needs quotes")))),
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
            let sender = Mail::parse(arguments.as_bytes(), true)
                .map(|mail| mail.from.as_ref().map(Address::to_string).unwrap_or_default());
            assert_eq!(sender.as_deref(), expected.as_ref().map(|text| *text), "{arguments:?}");
        }
        assert_eq!(Mail::parse(b"FROM:<\xfc@x.org>", true), Err(Fault::Refused(reply::ADDRESS_NOT_ASCII)));
    }

    #[test]
    fn recipients() {
        let settings = Settings {
            domain: "mx.test".to_owned(),
            dialect: Dialect::Smtp,
            max_message_bytes: 1000,
            max_recipients: 10,
            max_bad_commands: 20,
            starttls: false,
            require_auth: false,
            cram_md5: true,
            strict: true,
        };
        let bad = || Err(Fault::Bad(reply::SYNTAX_RCPT));
        let table: &[(&str, Result<&str, Fault>)] = &[
            ("TO:<b@x.org>", Ok("b@x.org")),
            ("to: b@x.org", Ok("b@x.org")),
            ("TO:<Postmaster>", Ok("Postmaster@mx.test")),
            ("TO:postmaster", Ok("postmaster@mx.test")),
            ("TO:<b@x.org> NOTIFY=NEVER", Ok("b@x.org")),
            ("TO:<>", Err(Fault::Recipient(AddressError::Empty))),
            ("TO:<b>", Err(Fault::Recipient(AddressError::Domain("is missing")))),
            ("TO:<ü@x.org>", Err(Fault::Refused(reply::ADDRESS_NOT_ASCII))),
            ("TO:<b@x.org> SIZE=3", Err(Fault::Bad(reply::PARAMETER_UNKNOWN))),
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
