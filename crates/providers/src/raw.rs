//! Complete messages whose header names the recipients.

use std::ops::Range;

use bytes::Bytes;
use restante_mail::mime::{NamedAddress, RawFields, decode_short_field};

use crate::email::{Content, Email};
use crate::failure::{Failure, FailureKind};
use crate::person::Person;
use crate::values::{MAX_ITEMS, Texts};

/// The maximum length of a field with addresses.
const MAX_FIELD_BYTES: usize = 128 * 1024;

/// Creates an email from a complete message. Its sender is the first address of From, and its recipients are those of To, Cc
/// and Bcc. The Bcc fields are removed from the message. There may be no sender and no recipients.
pub(crate) fn from_message(message: Bytes) -> Result<Email, Failure> {
    if message.is_empty() {
        return Err(Failure::new(FailureKind::Invalid, "The message is empty."));
    }
    let mut email = Email::default();
    let mut removed = Vec::new();
    for (name, value) in RawFields::new(&message) {
        let (field, list) = match name.to_ascii_lowercase().as_slice() {
            b"from" => {
                let people = if email.from.is_none() { people("from", value, 1)? } else { Vec::new() };
                email.from = people.into_iter().next().or(email.from);
                continue;
            }
            b"to" => ("to", &mut email.to),
            b"cc" => ("cc", &mut email.cc),
            b"bcc" => ("bcc", &mut email.bcc),
            _ => continue,
        };
        list.extend(people(field, value, MAX_ITEMS + 1)?);
        if list.len() > MAX_ITEMS {
            return Err(Failure::invalid(field, &format!("has more than {MAX_ITEMS} addresses")));
        }
        if field == "bcc" {
            removed.push(field_range(&message, name, value));
        }
    }
    let content = if removed.is_empty() { message } else { without(&message, &removed).into() };
    Ok(Email { content: Content::Raw(content), ..email })
}

/// Adds the values of these fields of a complete message: tags that are separated by commas, and metadata as a JSON object.
pub(crate) fn with_fields(mut email: Email, tags_field: &str, metadata_field: &str) -> Email {
    let Content::Raw(message) = &email.content else { return email };
    for (name, value) in RawFields::new(message) {
        if name.eq_ignore_ascii_case(tags_field.as_bytes()) {
            // Tags with names and values have the form of other requests.
            email.tags.extend(decode_short_field(value).split(',').map(|tag| tag.trim().replacen('=', ".", 1)));
        } else if name.eq_ignore_ascii_case(metadata_field.as_bytes()) {
            let Texts(members) = serde_json::from_str(&decode_short_field(value)).unwrap_or_default();
            email.metadata.extend(members);
        }
    }
    email
}

/// Returns the sender of a path that names a user. `me` and other names without a domain are those of example.com.
pub(crate) fn user(name: &str) -> Result<Person, Failure> {
    let name = if name.is_empty() { "me" } else { name };
    let address = if name.contains('@') { name.to_owned() } else { format!("{name}@example.com") };
    Person::new("user", "", &address)
}

/// Adds the user of a path to a complete message without a sender.
pub(crate) fn sent_by(name: &str, mut email: Email) -> Result<Email, Failure> {
    if email.from.is_none() {
        let sender = user(name)?;
        email.headers.push(("From".to_owned(), sender.display()));
        email.from = Some(sender);
    }
    Ok(email)
}

/// Parses the addresses of a field.
fn people(field: &str, value: &[u8], limit: usize) -> Result<Vec<Person>, Failure> {
    if value.len() > MAX_FIELD_BYTES {
        return Err(Failure::invalid(field, &format!("has more than {MAX_FIELD_BYTES} bytes")));
    }
    let people = NamedAddress::parse_recipients(value, limit).into_iter();
    let person = |NamedAddress { name, address }| Person::new(field, &name.replace(char::is_control, " "), &address);
    people.map(person).collect()
}

/// Returns where a field is in a message, with its line end.
fn field_range(message: &[u8], name: &[u8], value: &[u8]) -> Range<usize> {
    let offset = |part: &[u8]| part.as_ptr().addr() - message.as_ptr().addr();
    let end = offset(value) + value.len();
    let line_end = message[end..].iter().position(|byte| *byte == b'\n').map_or(message.len(), |at| end + at + 1);
    offset(name)..line_end
}

/// Returns a message without these ranges.
fn without(message: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut output = Vec::with_capacity(message.len());
    let mut start = 0;
    for range in ranges {
        output.extend_from_slice(&message[start..range.start]);
        start = range.end;
    }
    output.extend_from_slice(&message[start..]);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_read_and_bcc_is_removed() {
        let table = [
            (
                "From: Ann <ann@x.org>\r\nTo: bob@x.org,\r\n \"C, D\" <cd@x.org>\r\nBCC: eve@x.org,\r\n fay@x.org\r\nCc: dan@x.org\r\n\r\nBcc: body\r\n",
                "Ann <ann@x.org>|bob@x.org;C, D <cd@x.org>|dan@x.org|eve@x.org;fay@x.org",
                "From: Ann <ann@x.org>\r\nTo: bob@x.org,\r\n \"C, D\" <cd@x.org>\r\nCc: dan@x.org\r\n\r\nBcc: body\r\n",
            ),
            ("Bcc: a@x.org\nbcc : b@x.org\nSubject: x\n\nbody", "|||a@x.org;b@x.org", "Subject: x\n\nbody"),
            ("Subject: x\r\nBcc: a@x.org", "|||a@x.org", "Subject: x\r\n"),
            ("Bcc: a@x.org\r\n\r\nhi", "|||a@x.org", "\r\nhi"),
            ("To: undisclosed-recipients:;\r\n\r\nhi", "|||", "To: undisclosed-recipients:;\r\n\r\nhi"),
            (
                "From: =?utf-8?q?=C3=84nn=0A?= <ann@x.org>\n\n",
                "Änn <ann@x.org>|||",
                "From: =?utf-8?q?=C3=84nn=0A?= <ann@x.org>\n\n",
            ),
            ("no header", "|||", "no header"),
        ];
        for (message, people, stored) in table {
            let email = from_message(message.into()).unwrap();
            let display = |people: &[Person]| people.iter().map(Person::display).collect::<Vec<_>>().join(";");
            let from = display(email.from.as_slice());
            assert_eq!(
                [from, display(&email.to), display(&email.cc), display(&email.bcc)].join("|"),
                people,
                "{message}"
            );
            let Content::Raw(content) = email.content else { panic!("not raw") };
            assert_eq!(content, stored, "{message}");
        }
    }

    #[test]
    fn recipients_are_limited_and_valid() {
        let many = "To: a@x.org\r\n".repeat(MAX_ITEMS + 1);
        let long = format!("To: {}\r\n\r\n", "a@x.org, ".repeat(MAX_FIELD_BYTES / 9 + 1));
        for message in ["", &many, &long, "To: a@, bob@x.org\r\n\r\n"] {
            assert!(from_message(Bytes::copy_from_slice(message.as_bytes())).is_err(), "{message:.80}");
        }
    }
}
