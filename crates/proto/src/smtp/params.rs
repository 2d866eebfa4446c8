//! The parameters after the address of MAIL and RCPT. Each is checked by the rules of its RFC. Parameters without an
//! effect are then dropped: this server never sends delivery status notifications and never relays.

use restante_mail::address::Alphabet;

use super::command_error::CommandError;
use super::reply;

const MALFORMED: CommandError = CommandError::Bad(reply::PARAMETER_MALFORMED);
const DUPLICATE: CommandError = CommandError::Bad(reply::PARAMETER_TWICE);
const UNKNOWN: CommandError = CommandError::Bad(reply::PARAMETER_UNKNOWN);

/// The parameters of MAIL that have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MailParameters {
    /// The announced size, or 0 (RFC 1870 section 6).
    pub(crate) size: u64,
    /// The characters allowed in addresses (RFC 6531 section 3.4).
    pub(crate) alphabet: Alphabet,
}

impl MailParameters {
    /// Parses the parameters of MAIL, separated by blanks. Unknown ones are ignored unless the session is `strict`.
    pub(crate) fn parse(text: &str, strict: bool) -> Result<Self, CommandError> {
        let mut parameters = Self { size: 0, alphabet: Alphabet::Ascii };
        let mut seen = 0;
        for parameter in text.split_ascii_whitespace() {
            let (keyword, value) = split_parameter(parameter)?;
            // A common client library sends SMTPUTF8 twice, which has no further effect.
            check_once(&keyword, &["SIZE", "BODY", "RET", "ENVID", "AUTH"], &mut seen)?;
            match keyword.as_str() {
                "SIZE" => parameters.size = parse_size(value)?,
                "SMTPUTF8" => parameters.alphabet = value.is_none().then_some(Alphabet::Utf8).ok_or(MALFORMED)?,
                "BODY" => check_body(value, strict)?,
                "RET" => ensure(value.is_some_and(|value| is_one_of(value, &["FULL", "HDRS"])))?,
                // RFC 3461 section 4.4.
                "ENVID" => ensure(value.is_some_and(|value| value.len() <= 100 && is_xtext(value)))?,
                // RFC 4954 section 5.
                "AUTH" => ensure(value.is_some_and(|value| value == "<>" || is_xtext(value)))?,
                _ if strict => return Err(UNKNOWN),
                _ => {}
            }
        }
        Ok(parameters)
    }
}

/// Checks the parameters of RCPT, separated by blanks. Unknown ones are ignored unless the session is `strict`.
pub(crate) fn check_rcpt_parameters(text: &str, alphabet: Alphabet, strict: bool) -> Result<(), CommandError> {
    let mut seen = 0;
    for parameter in text.split_ascii_whitespace() {
        let (keyword, value) = split_parameter(parameter)?;
        check_once(&keyword, &["NOTIFY", "ORCPT"], &mut seen)?;
        match keyword.as_str() {
            "NOTIFY" => ensure(value.is_some_and(is_notify))?,
            "ORCPT" => ensure(value.is_some_and(|value| is_original_recipient(value, alphabet)))?,
            _ if strict => return Err(UNKNOWN),
            _ => {}
        }
    }
    Ok(())
}

/// Checks that none of the keywords `once` is given twice. `seen` has a bit for each that was given.
fn check_once(keyword: &str, once: &[&str], seen: &mut u8) -> Result<(), CommandError> {
    let bit = once.iter().position(|known| *known == keyword).map_or(0, |index| 1 << index);
    if *seen & bit != 0 {
        return Err(DUPLICATE);
    }
    *seen |= bit;
    Ok(())
}

fn ensure(well_formed: bool) -> Result<(), CommandError> {
    if well_formed { Ok(()) } else { Err(MALFORMED) }
}

/// Splits `keyword[=value]` (RFC 5321 section 4.1.2, esmtp-param). Returns the keyword in upper case.
fn split_parameter(parameter: &str) -> Result<(String, Option<&str>), CommandError> {
    let (keyword, value) = match parameter.split_once('=') {
        Some((keyword, value)) => (keyword, Some(value)),
        None => (parameter, None),
    };
    let is_valid_keyword = keyword.starts_with(|c: char| c.is_ascii_alphanumeric())
        && keyword.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_valid_value = value.is_none_or(|value| !value.is_empty() && !value.contains('='));
    ensure(is_valid_keyword && is_valid_value)?;
    Ok((keyword.to_ascii_uppercase(), value))
}

fn is_one_of(value: &str, choices: &[&str]) -> bool {
    choices.iter().any(|choice| value.eq_ignore_ascii_case(choice))
}

/// Parses a size of up to 20 digits (RFC 1870 section 6). A number above `u64` becomes `u64::MAX`, which is above any
/// limit.
fn parse_size(value: Option<&str>) -> Result<u64, CommandError> {
    let digits = value.ok_or(MALFORMED)?;
    ensure(digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Ok(digits.parse().unwrap_or(u64::MAX))
}

/// Checks BODY (RFC 6152). BINARYMIME (RFC 3030) is not offered.
fn check_body(value: Option<&str>, strict: bool) -> Result<(), CommandError> {
    match value {
        Some(value) if is_one_of(value, &["7BIT", "8BITMIME"]) => Ok(()),
        Some(value) if is_one_of(value, &["BINARYMIME"]) && strict => Err(UNKNOWN),
        Some(value) if is_one_of(value, &["BINARYMIME"]) => Ok(()),
        _ => Err(MALFORMED),
    }
}

/// Checks NOTIFY: NEVER, or a list of the others (RFC 3461 section 4.1).
fn is_notify(value: &str) -> bool {
    is_one_of(value, &["NEVER"]) || value.split(',').all(|event| is_one_of(event, &["SUCCESS", "FAILURE", "DELAY"]))
}

/// Checks ORCPT: an address type, a semicolon, an address as xtext (RFC 3461 section 4.2). RFC 6533 section 3 adds
/// UTF-8.
fn is_original_recipient(value: &str, alphabet: Alphabet) -> bool {
    let Some((kind, address)) = value.split_once(';') else { return false };
    let is_valid_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_valid_address = match alphabet {
        Alphabet::Utf8 if kind.eq_ignore_ascii_case("utf-8") => is_utf8_xtext(address),
        _ => is_xtext(address),
    };
    value.len() <= 500 && is_valid_kind && !address.is_empty() && is_valid_address
}

/// Returns whether the value is xtext: printable ASCII in which `+` and `=` are written as `+` and two upper-case
/// hexadecimal digits (RFC 3461 section 4).
fn is_xtext(value: &str) -> bool {
    value.is_ascii() && is_utf8_xtext(value)
}

fn is_utf8_xtext(value: &str) -> bool {
    let is_hex = |byte: Option<u8>| matches!(byte, Some(b'0'..=b'9' | b'A'..=b'F'));
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' if is_hex(bytes.next()) && is_hex(bytes.next()) => {}
            b'+' | b'=' | 0..=b' ' | 0x7f => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_mail_parameters() {
        let plain = |size| Ok(MailParameters { size, alphabet: Alphabet::Ascii });
        let long_id = format!("ENVID={}", "x".repeat(101));
        let table: &[(&str, Result<MailParameters, CommandError>)] = &[
            ("", plain(0)),
            (" SIZE=1000", plain(1000)),
            (" size=0", plain(0)),
            ("\tSIZE=7   BODY=7bit ", plain(7)),
            (" SIZE=99999999999999999999", plain(u64::MAX)),
            (" BODY=8BITMIME RET=HDRS ENVID=QQ+2B314159 AUTH=<>", plain(0)),
            (" ret=full AUTH=e+3Dmc2@example.com", plain(0)),
            (" SMTPUTF8 SIZE=5", Ok(MailParameters { size: 5, alphabet: Alphabet::Utf8 })),
            (" SIZE", Err(MALFORMED)),
            (" SIZE=", Err(MALFORMED)),
            (" SIZE=x", Err(MALFORMED)),
            (" SIZE=-1", Err(MALFORMED)),
            (" SIZE=+1", Err(MALFORMED)),
            (" SIZE=1=1", Err(MALFORMED)),
            (" SIZE=000000000000000000001", Err(MALFORMED)),
            (" SIZE=1 size=2", Err(DUPLICATE)),
            (" SMTPUTF8=yes", Err(MALFORMED)),
            (" SMTPUTF8 SMTPUTF8", Ok(MailParameters { size: 0, alphabet: Alphabet::Utf8 })),
            (" BODY", Err(MALFORMED)),
            (" BODY=9BIT", Err(MALFORMED)),
            (" BODY=BINARYMIME", Err(UNKNOWN)),
            (" RET=ALL", Err(MALFORMED)),
            (" RET=FULL RET=HDRS", Err(DUPLICATE)),
            (" ENVID=a+b", Err(MALFORMED)),
            (" ENVID=a+2b", Err(MALFORMED)),
            (&long_id, Err(MALFORMED)),
            (" AUTH", Err(MALFORMED)),
            (" =1", Err(MALFORMED)),
            (" -X", Err(MALFORMED)),
            (" X.Y=1", Err(MALFORMED)),
            (" XFOO=bar", Err(UNKNOWN)),
            (" NOTIFY=NEVER", Err(UNKNOWN)),
        ];
        for (text, expected) in table {
            assert_eq!(&MailParameters::parse(text, true), expected, "{text:?}");
            // Only unknown parameters depend on strictness.
            let lenient = MailParameters::parse(text, false);
            assert_eq!(lenient, if *expected == Err(UNKNOWN) { plain(0) } else { expected.clone() }, "{text:?}");
        }
    }

    #[test]
    fn checks_rcpt_parameters() {
        let long = format!("ORCPT=rfc822;{}", "x".repeat(500));
        let table: &[(&str, Result<(), CommandError>)] = &[
            ("", Ok(())),
            (" NOTIFY=NEVER", Ok(())),
            (" notify=success,FAILURE,Delay", Ok(())),
            (" ORCPT=rfc822;Bob+2Bx@Example.ORG NOTIFY=DELAY", Ok(())),
            (" NOTIFY", Err(MALFORMED)),
            (" NOTIFY=", Err(MALFORMED)),
            (" NOTIFY=NEVER,SUCCESS", Err(MALFORMED)),
            (" NOTIFY=SUCCESS,", Err(MALFORMED)),
            (" NOTIFY=NEVER NOTIFY=NEVER", Err(DUPLICATE)),
            (" ORCPT=bob@example.org", Err(MALFORMED)),
            (" ORCPT=;bob@example.org", Err(MALFORMED)),
            (" ORCPT=rfc822;", Err(MALFORMED)),
            (" ORCPT=rfc822;a+b", Err(MALFORMED)),
            (" ORCPT=utf-8;jöran@x.org", Err(MALFORMED)),
            (&long, Err(MALFORMED)),
            (" SIZE=1", Err(UNKNOWN)),
        ];
        for (text, expected) in table {
            assert_eq!(&check_rcpt_parameters(text, Alphabet::Ascii, true), expected, "{text:?}");
            let lenient = check_rcpt_parameters(text, Alphabet::Ascii, false);
            assert_eq!(lenient, if *expected == Err(UNKNOWN) { Ok(()) } else { expected.clone() }, "{text:?}");
        }
        assert_eq!(check_rcpt_parameters(" ORCPT=utf-8;jöran@x.org", Alphabet::Utf8, true), Ok(()));
    }
}
