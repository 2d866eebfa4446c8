//! The addresses of a draft. `Ann Example <ann@example.org>` is parsed strictly and written as RFC 5322 section 3.4
//! specifies.

use super::DraftError;
use super::field::{FieldWriter, check_line};
use crate::address::{Address, Alphabet};

/// The maximum length of a quoted name. A line cannot be folded inside of quotes.
const MAX_QUOTED_NAME_BYTES: usize = 60;
/// The maximum length of an address in bytes. It keeps lines below the limit of RFC 5322.
const MAX_ADDRESS_BYTES: usize = 900;

/// A display name, which may be empty, and an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DraftAddress {
    name: String,
    address: Address,
}

impl DraftAddress {
    /// Parses the address in this field of a draft.
    pub(super) fn parse(field: &str, text: &str) -> Result<Self, DraftError> {
        check_line(field, text)?;
        let text = text.trim();
        let (name, address) = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
            Some((name, address)) => (unquote(name.trim()), address),
            None => (String::new(), text),
        };
        let address = Address::parse(address.trim(), Alphabet::Utf8).map_err(|error| {
            DraftError::new(field, format!("is neither an address nor of the form Name <address>: {error}"))
        })?;
        if address.to_string().len() > MAX_ADDRESS_BYTES {
            return Err(DraftError::new(field, format!("has an address of more than {MAX_ADDRESS_BYTES} bytes")));
        }
        Ok(Self { name, address })
    }

    pub(super) fn write_list(addresses: &[Self], field: &mut FieldWriter<'_>) {
        for (at, address) in addresses.iter().enumerate() {
            address.write(field, at + 1 < addresses.len());
        }
    }

    /// Writes the address, followed by a comma if `has_next` is true.
    pub(super) fn write(&self, field: &mut FieldWriter<'_>, has_next: bool) {
        let comma = if has_next { "," } else { "" };
        if self.name.is_empty() {
            return field.push_token(&format!("{}{comma}", self.address));
        }
        if is_phrase(&self.name) {
            self.name.split(' ').for_each(|word| field.push_token(word));
        } else if is_quotable(&self.name) {
            field.push_token(&format!("\"{}\"", self.name.replace('\\', "\\\\").replace('"', "\\\"")));
        } else {
            field.push_encoded(&self.name);
        }
        field.push_token(&format!("<{}>{comma}", self.address));
    }
}

/// Removes the quotes around a name.
fn unquote(name: &str) -> String {
    let inside = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let Some(inside) = inside else { return name.to_owned() };
    let mut plain = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain.trim().to_owned()
}

/// Returns whether the name is a sequence of atoms, separated by single spaces.
fn is_phrase(name: &str) -> bool {
    let is_atom = |word: &str| {
        !word.is_empty()
            && word.len() <= MAX_QUOTED_NAME_BYTES
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    name.split(' ').all(is_atom) && !name.contains("=?")
}

/// Returns whether the name can be written in quotes. Text like an encoded word is excluded, because some readers
/// decode it even in quotes.
fn is_quotable(name: &str) -> bool {
    name.len() <= MAX_QUOTED_NAME_BYTES
        && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !name.contains("=?")
}
