//! The persons of a draft: `Ann Example <ann@example.org>` read strictly, and written as RFC 5322 section 3.4 wants it.

use super::DraftError;
use super::field::{FieldWriter, check_line};
use crate::address::{Address, Alphabet};

/// The longest name that stands in quotes, where no line can be broken.
const MAX_QUOTED_NAME_BYTES: usize = 60;
/// The longest address in bytes, so that no line is longer than a line may be.
const MAX_ADDRESS_BYTES: usize = 900;

/// A name, which may be empty, and an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DraftAddress {
    name: String,
    address: Address,
}

impl DraftAddress {
    /// Reads what stands in this field of a draft.
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

    /// Appends the person, and a comma when another one follows.
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

/// A name without the quotes around it.
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

/// Whether the name is a row of atoms, one blank between them.
fn is_phrase(name: &str) -> bool {
    let is_atom = |word: &str| {
        !word.is_empty()
            && word.len() <= MAX_QUOTED_NAME_BYTES
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    name.split(' ').all(is_atom) && !name.contains("=?")
}

/// Some readers decode what looks like an encoded word also in quotes.
fn is_quotable(name: &str) -> bool {
    name.len() <= MAX_QUOTED_NAME_BYTES
        && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !name.contains("=?")
}
