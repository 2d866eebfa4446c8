//! The addresses in a request, with their display names.

use restante_mail::address::{Address, Alphabet};
use restante_mail::mime::{NamedAddress, decode_short_field};
use serde::Deserialize;

use crate::failure::Failure;
use crate::values::MAX_ITEMS;

/// The maximum number of addresses in a list of most providers.
const MAX_LISTED: usize = 50;

/// An address with a name as members of a request. They have different names in the APIs of different providers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Contact {
    #[serde(alias = "Email", alias = "address")]
    pub(crate) email: String,
    #[serde(alias = "Name", alias = "displayName")]
    name: Option<String>,
}

impl Contact {
    /// Returns the person. The name can have encoded words (RFC 2047).
    pub(crate) fn person(&self, field: &str) -> Result<Person, Failure> {
        let name = self.name.as_deref().unwrap_or_default();
        if name.starts_with("=?") {
            return Person::new(field, &decode_short_field(name.as_bytes()), &self.email);
        }
        Person::new(field, name, &self.email)
    }

    /// Returns the people in a list. `member` is the name of the address in the items.
    pub(crate) fn people<'c>(
        field: &str,
        member: &str,
        contacts: impl IntoIterator<Item = &'c Self>,
    ) -> Result<Vec<Person>, Failure> {
        let contacts = contacts.into_iter().enumerate();
        contacts.map(|(index, contact)| contact.person(&format!("{field}[{index}].{member}"))).collect()
    }
}

/// A display name, which may be empty, and an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) address: Address,
}

impl Person {
    /// Creates a person from the members of a request. Fails if the address is missing or invalid, or if the name has a line
    /// break or another control character.
    pub(crate) fn new(field: &str, name: &str, address: &str) -> Result<Self, Failure> {
        let address = address.trim();
        if address.is_empty() {
            return Err(Failure::missing(field));
        }
        if name.contains(char::is_control) {
            return Err(Failure::invalid(field, "has a name with a line break or another control character"));
        }
        let address = Address::parse(address, Alphabet::Utf8)
            .map_err(|error| Failure::invalid(field, &format!("is not a valid address: {error}")))?;
        Ok(Self { name: name.trim().to_owned(), address })
    }

    /// Returns the sender of a message without one whose template has it, but is not stored here.
    pub(crate) fn unknown_sender() -> Result<Self, Failure> {
        Self::new("from", "", "unknown-sender@example.invalid")
    }

    /// Parses `Ann Example <ann@example.org>` or `ann@example.org`.
    pub(crate) fn parse(field: &str, text: &str) -> Result<Self, Failure> {
        let mut people = Self::parse_list(field, text)?;
        match (people.pop(), people.is_empty()) {
            (Some(person), true) => Ok(person),
            (None, _) => Err(Failure::missing(field)),
            (Some(_), false) => Err(Failure::invalid(field, "has more than one address")),
        }
    }

    /// Parses addresses that are separated by commas. An empty text is an empty list.
    pub(crate) fn parse_list(field: &str, text: &str) -> Result<Vec<Self>, Failure> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        if text.contains(char::is_control) {
            return Err(Failure::invalid(field, "has a line break or another control character"));
        }
        let people = NamedAddress::parse_recipients(text.as_bytes(), MAX_ITEMS + 1);
        match people.len() {
            0 => return Err(Failure::invalid(field, "is not a valid address")),
            count if count > MAX_ITEMS => {
                return Err(Failure::invalid(field, &format!("has more than {MAX_ITEMS} addresses")));
            }
            _ => {}
        }
        people.into_iter().map(|NamedAddress { name, address }| Self::new(field, &name, &address)).collect()
    }

    /// Parses a list in which each item has the form that [`Person::parse_list`] accepts.
    pub(crate) fn parse_all<T: AsRef<str>>(field: &str, texts: &[T]) -> Result<Vec<Self>, Failure> {
        let parse = |(index, text): (usize, &T)| Self::parse_list(&format!("{field}[{index}]"), text.as_ref());
        let lists = texts.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(lists.concat())
    }

    /// Returns a list unless it has more addresses than most providers accept.
    pub(crate) fn limited(field: &str, people: Vec<Self>) -> Result<Vec<Self>, Failure> {
        if people.len() > MAX_LISTED {
            return Err(Failure::invalid(field, &format!("has more than {MAX_LISTED} addresses")));
        }
        Ok(people)
    }

    /// Removes the fields of this name from the header of a message. Returns the addresses in them.
    pub(crate) fn take_field(name: &str, headers: &mut Vec<(String, String)>) -> Result<Vec<Self>, Failure> {
        let fields = headers.extract_if(.., |(known, _)| known.eq_ignore_ascii_case(name));
        let texts: Vec<_> = fields.map(|(_, value)| value).collect();
        Self::parse_all(&format!("headers.{name}"), &texts)
    }

    /// Returns the text that a draft contains.
    pub(crate) fn display(&self) -> String {
        let Self { name, address } = self;
        if name.is_empty() { address.text() } else { format!("{name} <{}>", address.text()) }
    }

    /// Returns the text that is in a header.
    pub(crate) fn quoted(&self) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || " -_'".contains(c);
        if self.name.chars().all(is_plain) {
            return self.display();
        }
        format!("\"{}\" <{}>", self.name.replace('\\', "\\\\").replace('"', "\\\""), self.address.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lists_of_people() {
        let table = [
            ("", Some("")),
            ("ann@x.org", Some("ann@x.org")),
            ("Ann <ann@x.org>, bob@x.org", Some("Ann <ann@x.org>; bob@x.org")),
            ("\"Ex, Ann\" <ann@x.org>", Some("Ex, Ann <ann@x.org>")),
            ("=?utf-8?q?=C3=84nn?= <ann@x.org>", Some("Änn <ann@x.org>")),
            ("ann", None),
            ("ann@", None),
            ("ann@x.org\r\nBcc: eve@x.org", None),
            ("Ann <ann@x.org>, nobody", None),
        ];
        for (text, expected) in table {
            let people = Person::parse_list("to", text).ok();
            let texts = people.map(|people| people.iter().map(Person::display).collect::<Vec<_>>().join("; "));
            assert_eq!(texts.as_deref(), expected, "{text}");
        }
        assert!(Person::parse("from", "a@x.org, b@x.org").is_err());
        assert!(Person::parse_list("to", &"a@x.org,".repeat(MAX_ITEMS + 1)).is_err());
        assert!(Person::new("to", "a\r\nb", "ann@x.org").is_err());
    }
}
