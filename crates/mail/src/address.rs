//! Mail addresses in the syntax of SMTP (RFC 5321 section 4.1.2, RFC 6531): parsing, validation of both halves, and
//! formatting. [`crate::naming`] maps an address to its mailbox.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization as _;

/// The maximum length of an address, in characters.
pub const MAX_ADDRESS_CHARS: usize = 320;
/// The maximum length of a local part, in characters.
pub const MAX_LOCAL_PART_CHARS: usize = 128;
/// The maximum length of a mailbox name without a domain in a query, in characters.
pub const MAX_MAILBOX_NAME_CHARS: usize = 255;
/// The maximum length of a domain, in characters.
pub const MAX_DOMAIN_CHARS: usize = 255;
/// The maximum length of a label of a domain, in characters.
pub const MAX_LABEL_CHARS: usize = 63;

/// A valid mail address: an unquoted local part, and a domain or address literal as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    local: String,
    domain: String,
}

/// The characters that a peer may use: ASCII only, or UTF-8 if it requested SMTPUTF8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// RFC 5321: US-ASCII only.
    Ascii,
    /// RFC 6531: UTF-8, converted to Unicode normalization form C (NFC).
    Utf8,
}

/// The reason why a text is not a valid address. `Display` writes a clause that can be sent to a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is empty, or nothing follows the source route.
    #[error("the address is empty")]
    Empty,
    /// The text has more than [`MAX_ADDRESS_CHARS`] characters.
    #[error("the address has more than {max} characters", max = MAX_ADDRESS_CHARS)]
    TooLong,
    /// A source route that does not end in `:`.
    #[error("the source route does not end in ':'")]
    Route,
    /// The text contains characters outside of ASCII, and only ASCII is allowed.
    #[error("the address is not ASCII")]
    NonAscii,
    /// The local part is invalid; the text says why.
    #[error("the local part {0}")]
    Local(&'static str),
    /// The domain is invalid; the text says why.
    #[error("the domain {0}")]
    Domain(&'static str),
}

impl Address {
    /// Parses `local@domain`, without angle brackets. Drops a leading source route (RFC 5321 appendix C) and a final
    /// dot of the domain.
    pub fn parse(text: &str, alphabet: Alphabet) -> Result<Self, AddressError> {
        let (local, domain) = split(text, alphabet)?;
        let mut domain = domain.ok_or(AddressError::Domain("is missing"))?;
        check_domain(&domain)?;
        domain.truncate(strip_final_dot(&domain).len());
        Ok(Self { local, domain })
    }

    /// Creates an address without validation. The caller must pass a valid local part and a valid domain, as for
    /// `<Postmaster>`.
    pub fn from_parts(local: &str, domain: &str) -> Self {
        Self { local: local.to_owned(), domain: domain.to_owned() }
    }

    /// Returns the unquoted local part, in its original case.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// Returns the domain or address literal, in its original case.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the same text as `Display`. This is several times faster than a formatter, and every message needs it.
    pub fn text(&self) -> String {
        if is_dot_string(&self.local) { [&self.local, "@", &self.domain].concat() } else { self.to_string() }
    }
}

/// Formats the address so that parsing the result returns an equal address. The local part is quoted only if necessary.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_dot_string(&self.local) {
            return write!(f, "{}@{}", self.local, self.domain);
        }
        f.write_str("\"")?;
        for c in self.local.chars() {
            if matches!(c, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        write!(f, "\"@{}", self.domain)
    }
}

/// Splits an address whose domain may be missing. Returns the unquoted, valid local part and the domain, which is not
/// validated. A name without a domain may be longer than a local part, and its final dot is dropped.
pub(crate) fn split(text: &str, alphabet: Alphabet) -> Result<(String, Option<String>), AddressError> {
    // Check the number of bytes before copying anything: a character has at most four bytes in UTF-8.
    if text.len() > 4 * MAX_ADDRESS_CHARS {
        return Err(AddressError::TooLong);
    }
    let text = match (text.is_ascii(), alphabet) {
        (true, _) => Cow::Borrowed(text),
        (false, Alphabet::Ascii) => return Err(AddressError::NonAscii),
        // Normalize first: normalization can turn a character into one that is not allowed.
        (false, Alphabet::Utf8) => Cow::Owned(text.nfc().collect()),
    };
    if char_count(&text) > MAX_ADDRESS_CHARS {
        return Err(AddressError::TooLong);
    }
    let text = strip_route(&text)?;
    let (mut local, rest) = parse_local_part(text)?;
    let Some(domain) = rest.strip_prefix('@') else {
        local.truncate(strip_final_dot(&local).len());
        return if char_count(&local) > MAX_MAILBOX_NAME_CHARS {
            Err(AddressError::Local("has more than 255 characters"))
        } else {
            Ok((local, None))
        };
    };
    if char_count(&local) > MAX_LOCAL_PART_CHARS {
        return Err(AddressError::Local("has more than 128 characters"));
    }
    Ok((local, Some(domain.to_owned())))
}

/// Removes one dot from the end. The final dot of a domain only marks it as fully qualified (RFC 1034 section 3.1).
pub(crate) fn strip_final_dot(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

/// Validates a domain name, which may end in a dot, or an address literal.
pub(crate) fn check_domain(domain: &str) -> Result<(), AddressError> {
    if domain.is_empty() {
        return Err(AddressError::Domain("is missing"));
    }
    if char_count(domain) > MAX_DOMAIN_CHARS {
        return Err(AddressError::Domain("has more than 255 characters"));
    }
    if let Some(literal) = domain.strip_prefix('[') {
        return check_literal(literal);
    }
    strip_final_dot(domain).split('.').try_for_each(check_label)
}

/// Returns whether the text is a valid domain name or address literal. HELO and some settings use this.
pub fn is_valid_domain(domain: &str) -> bool {
    check_domain(domain).is_ok()
}

/// Returns whether a local part needs no quotes: it is a Dot-string of RFC 5321 with the characters of RFC 6531.
pub(crate) fn is_dot_string(local: &str) -> bool {
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
}

/// Returns the number of characters.
fn char_count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Removes a source route. Servers must accept source routes and ignore them (RFC 5321 appendix C).
fn strip_route(text: &str) -> Result<&str, AddressError> {
    if !text.starts_with('@') {
        return if text.is_empty() { Err(AddressError::Empty) } else { Ok(text) };
    }
    match text.split_once(':') {
        None => Err(AddressError::Route),
        Some((_, "")) => Err(AddressError::Empty),
        Some((_, rest)) => Ok(rest),
    }
}

/// Parses the local part up to the first unquoted `@`. Returns it unquoted, and the rest of the text from the `@` on.
fn parse_local_part(text: &str) -> Result<(String, &str), AddressError> {
    if let Some(quoted) = text.strip_prefix('"') {
        return parse_quoted_local_part(quoted);
    }
    let mut local = String::with_capacity(text.len());
    let mut dot_allowed = false;
    let mut chars = text.char_indices();
    let mut rest = "";
    while let Some((at, c)) = chars.next() {
        match c {
            '@' => {
                rest = &text[at..];
                break;
            }
            '.' if dot_allowed => {
                dot_allowed = false;
                local.push(c);
                continue;
            }
            '.' => return Err(AddressError::Local("has a leading or doubled dot")),
            // Quoted pairs outside of quotes are syntax of RFC 822. They are accepted because old senders still use
            // them.
            '\\' => match chars.next() {
                Some((_, quoted)) if is_quotable(quoted) => local.push(quoted),
                _ => return Err(AddressError::Local("ends in a backslash or quotes what cannot be quoted")),
            },
            '"' => return Err(AddressError::Local("has a quotation mark that does not stand at its start")),
            c if is_atom_char(c) => local.push(c),
            _ => return Err(AddressError::Local("has a character that needs quotes")),
        }
        dot_allowed = true;
    }
    if local.is_empty() {
        return Err(AddressError::Local("is empty"));
    }
    if !dot_allowed && !rest.is_empty() {
        return Err(AddressError::Local("ends in a dot"));
    }
    Ok((local, rest))
}

/// Parses a Quoted-string of RFC 5321. `text` starts after the opening quotation mark.
fn parse_quoted_local_part(text: &str) -> Result<(String, &str), AddressError> {
    let mut local = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let rest = &text[at + 1..];
                if local.is_empty() {
                    return Err(AddressError::Local("is empty"));
                }
                if !(rest.is_empty() || rest.starts_with('@')) {
                    return Err(AddressError::Local("goes on behind its closing quotation mark"));
                }
                return Ok((local, rest));
            }
            '\\' => match chars.next() {
                Some((_, quoted)) if is_quotable(quoted) => local.push(quoted),
                _ => return Err(AddressError::Local("quotes what cannot be quoted")),
            },
            c if is_quotable(c) => local.push(c),
            _ => return Err(AddressError::Local("has a control character")),
        }
    }
    Err(AddressError::Local("has no closing quotation mark"))
}

/// Returns whether the character is atext of RFC 5322, or a printable character outside of ASCII (RFC 6531).
fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || is_printable_non_ascii(c)
}

/// Returns whether the character is allowed in quotes: a space, printable ASCII (RFC 5321 section 4.1.2), or a
/// printable character outside of ASCII (RFC 6531).
fn is_quotable(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || is_printable_non_ascii(c)
}

fn is_printable_non_ascii(c: char) -> bool {
    !c.is_ascii() && !c.is_control() && !c.is_whitespace()
}

fn check_label(label: &str) -> Result<(), AddressError> {
    if label.is_empty() {
        return Err(AddressError::Domain("has a leading, trailing or doubled dot"));
    }
    if char_count(label) > MAX_LABEL_CHARS {
        return Err(AddressError::Domain("has a label of more than 63 characters"));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(AddressError::Domain("has a label that starts or ends in '-'"));
    }
    // RFC 5890 section 2.3.1 reserves "--" for prefixes, such as the prefix of internationalized names.
    let has_idna_prefix = label.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--"));
    if label[if has_idna_prefix { 4 } else { 0 }..].contains("--") {
        return Err(AddressError::Domain("has a doubled '-'"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || is_printable_non_ascii(c);
    if !label.chars().all(is_allowed) {
        return Err(AddressError::Domain("has a character that is not allowed"));
    }
    Ok(())
}

/// Validates the rest of an address literal after `[`: `192.0.2.1]` or `IPv6:2001:db8::1]` (RFC 5321 section 4.1.3).
/// The `IPv6:` tag is optional, because some clients omit it.
fn check_literal(literal: &str) -> Result<(), AddressError> {
    let valid = literal.strip_suffix(']').is_some_and(|inside| match inside.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case("IPv6:") => inside[5..].parse::<Ipv6Addr>().is_ok(),
        _ => inside.parse::<IpAddr>().is_ok(),
    });
    if valid { Ok(()) } else { Err(AddressError::Domain("is no valid address literal")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_addresses() {
        let long_local = "a".repeat(128);
        let long_label = "b".repeat(63);
        let table: &[(&str, &str, &str)] = &[
            ("james@example.org", "james", "example.org"),
            ("James+Spam@Example.ORG", "James+Spam", "Example.ORG"),
            ("first.last@example.org", "first.last", "example.org"),
            ("!#$%&'*+-/=?^_`{|}~@example.org", "!#$%&'*+-/=?^_`{|}~", "example.org"),
            ("\"first last\"@example.org", "first last", "example.org"),
            ("\"quoted@sign\"@example.org", "quoted@sign", "example.org"),
            ("\"qp\\\"mark\\\\\"@example.org", "qp\"mark\\", "example.org"),
            ("quoted\\ space@example.org", "quoted space", "example.org"),
            ("james@localhost", "james", "localhost"),
            ("james@_dmarc.my-host.example", "james", "_dmarc.my-host.example"),
            ("james@123.example", "james", "123.example"),
            ("james@xn--bcher-kva.example", "james", "xn--bcher-kva.example"),
            ("james@[192.0.2.1]", "james", "[192.0.2.1]"),
            ("james@[IPv6:2001:db8::1]", "james", "[IPv6:2001:db8::1]"),
            ("james@[ipv6:::1]", "james", "[ipv6:::1]"),
            ("james@[::1]", "james", "[::1]"),
            ("james@x.org.", "james", "x.org"),
            ("+tag@x.org", "+tag", "x.org"),
            ("@a.example,@b.example:user@c.example", "user", "c.example"),
            (&format!("{long_local}@x.org"), &long_local, "x.org"),
            (&format!("a@{long_label}.org"), "a", &format!("{long_label}.org")),
        ];
        for (text, local, domain) in table {
            let address = Address::parse(text, Alphabet::Ascii).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((address.local(), address.domain()), (*local, *domain), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_addresses() {
        use AddressError as E;
        let long = format!("{}@{}.org", "a".repeat(100), "b.".repeat(120));
        let table: &[(&str, E)] = &[
            ("", E::Empty),
            ("@a.example:", E::Empty),
            ("@a.example", E::Route),
            (&long, E::TooLong),
            (&"x".repeat(5000), E::TooLong),
            ("james", E::Domain("is missing")),
            ("james@", E::Domain("is missing")),
            ("\"\"@x.org", E::Local("is empty")),
            (".james@x.org", E::Local("has a leading or doubled dot")),
            ("ja..mes@x.org", E::Local("has a leading or doubled dot")),
            ("james.@x.org", E::Local("ends in a dot")),
            ("first last@x.org", E::Local("has a character that needs quotes")),
            ("no,comma@x.org", E::Local("has a character that needs quotes")),
            ("t[es]t@x.org", E::Local("has a character that needs quotes")),
            ("a\r\nb@x.org", E::Local("has a character that needs quotes")),
            ("a\0b@x.org", E::Local("has a character that needs quotes")),
            ("embed\"quote\"@x.org", E::Local("has a quotation mark that does not stand at its start")),
            ("\"unterminated@x.org", E::Local("has no closing quotation mark")),
            ("\"unterminated\\\"@x.org", E::Local("has no closing quotation mark")),
            ("\"a\"b@x.org", E::Local("goes on behind its closing quotation mark")),
            ("\"a\nb\"@x.org", E::Local("has a control character")),
            ("back\\", E::Local("ends in a backslash or quotes what cannot be quoted")),
            (&format!("{}@x.org", "a".repeat(129)), E::Local("has more than 128 characters")),
            ("jöran@x.org", E::NonAscii),
            ("james@.x.org", E::Domain("has a leading, trailing or doubled dot")),
            ("james@x..org", E::Domain("has a leading, trailing or doubled dot")),
            ("james@x.org..", E::Domain("has a leading, trailing or doubled dot")),
            ("james@.", E::Domain("has a leading, trailing or doubled dot")),
            ("james@-x.org", E::Domain("has a label that starts or ends in '-'")),
            ("james@x-.org", E::Domain("has a label that starts or ends in '-'")),
            ("james@x--y.org", E::Domain("has a doubled '-'")),
            ("james@host@x.org", E::Domain("has a character that is not allowed")),
            ("james@x y.org", E::Domain("has a character that is not allowed")),
            (&format!("a@{}.org", "b".repeat(64)), E::Domain("has a label of more than 63 characters")),
            (&format!("a@{}", "b.".repeat(127) + "bb"), E::Domain("has more than 255 characters")),
            ("james@[192.0.2.256]", E::Domain("is no valid address literal")),
            ("james@[192.0.2.1", E::Domain("is no valid address literal")),
            ("james@[IPv6:zz]", E::Domain("is no valid address literal")),
            ("james@[]", E::Domain("is no valid address literal")),
        ];
        for (text, error) in table {
            assert_eq!(Address::parse(text, Alphabet::Ascii).as_ref(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn normalizes_utf8_before_validation() {
        let composed = Address::parse("jo\u{308}ran@bu\u{308}cher.example", Alphabet::Utf8).unwrap();
        assert_eq!((composed.local(), composed.domain()), ("jöran", "bücher.example"));
        // NFC maps U+037E to a semicolon.
        let error = Address::parse("a\u{37e}b@x.org", Alphabet::Utf8).unwrap_err();
        assert_eq!(error, AddressError::Local("has a character that needs quotes"));
    }

    #[test]
    fn display_quotes_only_if_necessary() {
        for text in ["james@x.org", "\"first last\"@x.org", "\"a\\\"b\\\\c\"@x.org", "\"a..b\"@x.org"] {
            assert_eq!(Address::parse(text, Alphabet::Ascii).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse("\"james\"@x.org", Alphabet::Ascii).unwrap().to_string(), "james@x.org");
    }

    proptest::proptest! {
        #[test]
        fn parsing_display_output_returns_the_same_address(text in ".{0,40}@?.{0,20}") {
            for alphabet in [Alphabet::Ascii, Alphabet::Utf8] {
                if let Ok(address) = Address::parse(&text, alphabet) {
                    let again = Address::parse(&address.to_string(), alphabet);
                    proptest::prop_assert_eq!(Ok(address), again);
                }
            }
        }
    }
}
