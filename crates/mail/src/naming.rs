//! Mapping of addresses to mailbox names: a pure function of the address and the setting *mailbox naming*. The same
//! function maps the names in queries, so a query finds the mailbox that a recipient was delivered to.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use crate::address::{self, Address, AddressError, Alphabet, MAX_DOMAIN_CHARS, MAX_MAILBOX_NAME_CHARS};
use crate::named_enum;

/// The name of a mailbox in canonical form, as [`Naming`] creates it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailboxName(Arc<str>);

named_enum! {
    /// The rule that maps an address to a mailbox name.
    #[derive(Default)]
    pub enum Naming {
        /// `James+Spam@X.org` is mailbox `james`.
        #[default]
        Local = "local",
        /// `James+Spam@X.org` is mailbox `james@x.org`.
        Full = "full",
        /// `James+Spam@X.org` is mailbox `x.org`.
        Domain = "domain",
    }
}

/// The reason why an address or a text cannot be mapped to a mailbox name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is not a valid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The local part contains characters that need quotes. Such a name could not be used in a query.
    #[error("the mailbox name has a character that needs quotes")]
    NeedsQuotes,
    /// The name is too long after conversion to lower case.
    #[error("the mailbox name is too long")]
    TooLong,
}

impl MailboxName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MailboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for MailboxName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for Naming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(&text.to_ascii_lowercase()).ok_or_else(|| "one of local, full, domain".to_owned())
    }
}

impl Naming {
    /// Returns the mailbox of a recipient.
    pub fn mailbox_for(self, address: &Address) -> Result<MailboxName, NameError> {
        self.mailbox_name(address.local(), Some(address.domain()))
    }

    /// Returns the mailbox for a text in a query, which is an address or only a name. With [`Naming::Domain`] a text
    /// without `@` is a domain.
    pub fn parse_mailbox(self, text: &str) -> Result<MailboxName, NameError> {
        if self == Self::Domain && text.starts_with('[') {
            address::check_domain(text)?;
            return domain_name(text).map(Into::into);
        }
        let (local, domain) = address::split(text, Alphabet::Utf8)?;
        // With local naming the domain is not used, so it may be invalid.
        let domain = domain.filter(|_| self != Self::Local);
        if let Some(domain) = &domain {
            address::check_domain(domain)?;
        }
        self.mailbox_name(&local, domain.as_deref())
    }

    /// Returns an address that is delivered to this mailbox. `domain` is used if the name contains no domain. Returns
    /// `None` if no address maps to the name, for example for a name without a domain with [`Naming::Full`].
    pub fn address_for(self, mailbox: &MailboxName, domain: &str) -> Option<Address> {
        let name = mailbox.as_str();
        let text = match self {
            Self::Local => format!("{name}@{domain}"),
            Self::Full => name.to_owned(),
            Self::Domain => format!("postmaster@{name}"),
        };
        let address = Address::parse(&text, Alphabet::Utf8).ok()?;
        (self.mailbox_for(&address).as_ref() == Ok(mailbox)).then_some(address)
    }

    fn mailbox_name(self, local: &str, domain: Option<&str>) -> Result<MailboxName, NameError> {
        let local = local_name(local)?;
        match (self, domain) {
            (Self::Local, _) | (Self::Full, None) => Ok(local.into()),
            (Self::Full, Some(domain)) => Ok(format!("{local}@{}", domain_name(domain)?).into()),
            (Self::Domain, Some(domain)) => domain_name(domain).map(Into::into),
            (Self::Domain, None) => {
                address::check_domain(&local)?;
                Ok(local.into())
            }
        }
    }
}

impl From<String> for MailboxName {
    fn from(canonical: String) -> Self {
        Self(canonical.into())
    }
}

/// Returns the local half of a name: in lower case, without the first `+` and what follows it. If the `+` is the first
/// character, it is part of the name. Fails if the local part needs quotes.
fn local_name(local: &str) -> Result<String, NameError> {
    if !address::is_dot_string(local) {
        return Err(NameError::NeedsQuotes);
    }
    let lower = canonicalize(local, MAX_MAILBOX_NAME_CHARS)?;
    let name = match lower.split_once('+') {
        Some((name, _)) if !name.is_empty() => name,
        _ => &lower,
    };
    // "a.+b" is a valid local part, but "a." is not.
    Ok(name.trim_end_matches('.').to_owned())
}

fn domain_name(domain: &str) -> Result<String, NameError> {
    canonicalize(address::strip_final_dot(domain), MAX_DOMAIN_CHARS)
}

/// Converts a text to lower case and NFC. Conversion to lower case can add characters, so the limit is checked again.
fn canonicalize(text: &str, max_chars: usize) -> Result<String, NameError> {
    let lower = lowercase_nfc(text);
    if !lower.is_ascii() && lower.chars().count() > max_chars {
        return Err(NameError::TooLong);
    }
    Ok(lower)
}

/// Converts a text to the form in which domains and mailbox names are compared: lower case, in NFC.
pub fn lowercase_nfc(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_and_addresses_of_queries() {
        // The input, then the name under local, full and domain naming; "" if the input is rejected.
        let table = [
            ("james", "james", "james", "james"),
            ("First.Last", "first.last", "first.last", "first.last"),
            ("user+label", "user", "user", "user"),
            ("chars!#$%", "chars!#$%", "chars!#$%", ""),
            ("chars_`.{|}~", "chars_`.{|}~", "chars_`.{|}~", ""),
            ("James+Spam@X.org", "james", "james@x.org", "x.org"),
            ("chars&'*-@example.co.uk", "chars&'*-", "chars&'*-@example.co.uk", "example.co.uk"),
            ("a@[192.0.2.1]", "a", "a@[192.0.2.1]", "[192.0.2.1]"),
            ("a@[IPv6:2001:DB8::1]", "a", "a@[ipv6:2001:db8::1]", "[ipv6:2001:db8::1]"),
            ("[192.0.2.1]", "", "", "[192.0.2.1]"),
            ("Jöran@Bücher.example", "jöran", "jöran@bücher.example", "bücher.example"),
            ("\"james\"@x.org", "james", "james@x.org", "x.org"),
            ("a.+b@x.org", "a", "a@x.org", "x.org"),
            ("", "", "", ""),
            ("+label@x.org", "+label", "+label@x.org", "x.org"),
            ("james.", "james", "james", "james"),
            ("james@x.org.", "james", "james@x.org", "x.org"),
            ("x.org.", "x.org", "x.org", "x.org"),
            ("a@", "a", "", ""),
            ("a@x_ y", "a", "", ""),
            ("a@[::1]", "a", "a@[::1]", "[::1]"),
            ("first last", "", "", ""),
            ("\"first last\"@x.org", "", "", ""),
            ("first\"last", "", "", ""),
            ("first\nlast", "", "", ""),
            ("..", "", "", ""),
            ("a@b@x.org", "a", "", ""),
            ("a@x--y.org", "a", "", ""),
            (".", "", "", ""),
            ("a..", "", "", ""),
        ];
        for (text, local, full, domain) in table {
            for (naming, expected) in Naming::ALL.into_iter().zip([local, full, domain]) {
                let name = naming.parse_mailbox(text);
                let name = name.as_ref().map_or("", MailboxName::as_str);
                assert_eq!(name, expected, "{text:?} under {naming}");
            }
        }
    }

    #[test]
    fn recipient_and_query_map_to_the_same_mailbox() {
        let address = Address::parse("James+Spam@X.org", Alphabet::Ascii).unwrap();
        for naming in Naming::ALL {
            let delivered = naming.mailbox_for(&address).unwrap();
            assert_eq!(delivered, naming.parse_mailbox("james@x.org").unwrap());
        }
    }

    #[test]
    fn returns_an_address_of_a_mailbox() {
        // The name, then the address under local, full and domain naming; "" if there is none.
        let table = [
            ("james", "james@mx.test", "", "postmaster@james"),
            ("jöran", "jöran@mx.test", "", "postmaster@jöran"),
            ("james@x.org", "", "james@x.org", ""),
            ("x.org", "x.org@mx.test", "", "postmaster@x.org"),
            ("[192.0.2.1]", "", "", "postmaster@[192.0.2.1]"),
        ];
        for (name, local, full, domain) in table {
            for (naming, expected) in Naming::ALL.into_iter().zip([local, full, domain]) {
                let address = naming.address_for(&name.to_owned().into(), "mx.test");
                assert_eq!(address.map(|address| address.to_string()).unwrap_or_default(), expected, "{name} {naming}");
            }
        }
    }

    #[test]
    fn rejects_name_that_is_too_long_in_lower_case() {
        // The lower case of U+0130 is two characters.
        let name = "\u{130}".repeat(MAX_MAILBOX_NAME_CHARS);
        assert_eq!(Naming::Local.parse_mailbox(&name), Err(NameError::TooLong));
    }

    #[test]
    fn rejects_name_over_limit() {
        let name = |length| Naming::Local.parse_mailbox(&"x".repeat(length)).map(|name| name.as_str().len());
        assert_eq!(name(MAX_MAILBOX_NAME_CHARS), Ok(MAX_MAILBOX_NAME_CHARS));
        assert_eq!(name(MAX_MAILBOX_NAME_CHARS + 1), Err(AddressError::Local("has more than 255 characters").into()));
    }

    proptest::proptest! {
        #[test]
        fn parsing_a_mailbox_name_is_idempotent(text in "[a-zA-Z+.\\-\\[\\]\"@İßΣ\u{300}-\u{310}]{1,30}|.{1,30}|[a-zA-ZΣİ+]{1,8}@[a-zA-Z.]{1,8}") {
            for naming in Naming::ALL {
                if let Ok(name) = naming.parse_mailbox(&text) {
                    proptest::prop_assert_eq!(naming.parse_mailbox(name.as_str()), Ok(name));
                }
            }
        }
    }
}
