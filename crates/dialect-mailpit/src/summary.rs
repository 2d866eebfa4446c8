//! A message in a list, as Mailpit shows it.
//!
//! Differences from Mailpit:
//!
//! - `MessageID` is empty if the message has none. Mailpit adds one to the message.
//! - `Snippet` is the one of our own lists: at most 200 characters, and of the text if there is text and HTML. Mailpit has up to
//!   200 bytes, and prefers the HTML.
//! - `Bcc` has the hidden recipients also if the header has a field Bcc. Mailpit drops them then.
//! - `Size` counts the header fields that this server adds, as the raw message has them. Those of Mailpit have another length.

use std::borrow::Cow;

use jiff::Timestamp;
use restante_mail::message::{Message, Summary};
use serde::Serialize;

/// A message in a list.
///
/// Lists of addresses other than `ReplyTo` are null if they are empty.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MessageSummary<'a> {
    #[serde(rename = "ID")]
    pub(crate) id: String,
    #[serde(rename = "MessageID")]
    pub(crate) message_id: &'a str,
    pub(crate) read: bool,
    pub(crate) from: Address<'a>,
    pub(crate) to: Option<Vec<Address<'a>>>,
    pub(crate) cc: Option<Vec<Address<'a>>>,
    pub(crate) bcc: Option<Vec<Address<'a>>>,
    pub(crate) reply_to: Vec<Address<'a>>,
    pub(crate) subject: &'a str,
    pub(crate) created: String,
    pub(crate) username: &'a str,
    pub(crate) tags: Vec<Cow<'a, str>>,
    pub(crate) size: u64,
    pub(crate) attachments: u32,
    pub(crate) snippet: &'a str,
}

/// An address with its display name. Both can be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Address<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: &'a str,
}

impl<'a> MessageSummary<'a> {
    /// Creates the summary of a message with the copies that the client may access.
    pub(crate) fn new(message: &'a Message) -> Self {
        let Summary { headline, details, received, size, .. } = message.first();
        Self {
            id: message.id().to_string(),
            message_id: details.message_id(),
            read: message.is_seen(),
            from: sender(message),
            to: non_empty(to(message)),
            cc: non_empty(details.cc().map(Address::parse)),
            bcc: non_empty(bcc(message)),
            reply_to: details.reply_to().map(Address::parse).collect(),
            subject: headline.subject(),
            created: created(*received),
            username: details.login().unwrap_or_default(),
            tags: sorted_tags(message),
            size: *size,
            attachments: details.attached_parts(),
            snippet: details.snippet(),
        }
    }

    /// Returns the summary with empty lists instead of null, as live events have it.
    pub(crate) fn without_nulls(mut self) -> Self {
        for list in [&mut self.to, &mut self.cc, &mut self.bcc] {
            list.get_or_insert_default();
        }
        self
    }
}

impl<'a> Address<'a> {
    /// Parses the form `Display Name <address>`. A text of another form is an address.
    pub(crate) fn parse(text: &'a str) -> Self {
        let parts = text.strip_suffix('>').and_then(|text| match text.rfind(" <") {
            Some(at) => Some((&text[..at], &text[at + 2..])),
            None => text.strip_prefix('<').map(|address| ("", address)),
        });
        let (name, address) = parts.unwrap_or(("", text));
        Self { name, address }
    }
}

/// Returns the sender of a message. Without an address, it has the text of the field as its name.
pub(crate) fn sender(message: &Message) -> Address<'_> {
    let Summary { headline, details, .. } = message.first();
    if details.lacks_from() {
        Address { name: details.from_text(), address: "" }
    } else {
        Address::parse(headline.from())
    }
}

/// Returns the addresses of the header field To.
pub(crate) fn to(message: &Message) -> impl Iterator<Item = Address<'_>> {
    let Summary { headline, details, .. } = message.first();
    headline.to().filter(|_| !details.lacks_to()).map(Address::parse)
}

/// Returns the addresses of the header field Bcc and the hidden recipients.
pub(crate) fn bcc(message: &Message) -> impl Iterator<Item = Address<'_>> {
    let hidden = message.unnamed_recipients().into_iter().map(|address| Address { name: "", address });
    message.first().details.bcc().map(Address::parse).chain(hidden)
}

/// Returns a time of receipt as text, with a precision of milliseconds.
pub(crate) fn created(received: Timestamp) -> String {
    Timestamp::from_millisecond(received.as_millisecond()).unwrap_or(received).to_string()
}

/// Returns the tags of a message in the order of Mailpit: by name, in any case of letters.
pub(crate) fn sorted_tags(message: &Message) -> Vec<Cow<'_, str>> {
    let mut tags: Vec<Cow<'_, str>> = match message.copies() {
        [only] => only.tags.iter().map(Cow::Borrowed).collect(),
        _ => message.tags().iter().map(|tag| Cow::Owned(tag.to_owned())).collect(),
    };
    tags.sort_by_cached_key(|tag| tag.to_ascii_lowercase());
    tags
}

/// Returns a list, or `None` if it is empty.
fn non_empty<'a>(addresses: impl Iterator<Item = Address<'a>>) -> Option<Vec<Address<'a>>> {
    let addresses: Vec<_> = addresses.collect();
    (!addresses.is_empty()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use restante_mail::details::{DetailFields, Details};
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;
    use serde_json::{Value, json};

    use super::*;

    fn summary(fields: &DetailFields<'_>, headline: Headline) -> Value {
        let copy = Summary {
            mailbox: "bob".to_owned().into(),
            id: 17.into(),
            message: 17.into(),
            number: 1,
            headline,
            received: Timestamp::from_microsecond(1_700_000_000_120_999).unwrap(),
            size: 321,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            tags: Tags::new(["b", "A", "c"]).unwrap(),
            details: Details::new(fields),
        };
        serde_json::to_value(MessageSummary::new(&Message::group([copy])[0])).unwrap()
    }

    #[test]
    fn summary_has_the_values_of_header_and_envelope() {
        let strings = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let fields = DetailFields {
            login: Some("ci"),
            attachments: 3,
            attached_parts: 2,
            snippet: "Hello",
            cc: &strings(&["Cid <c@x.org>"]),
            bcc: &strings(&["Dan <d@x.org>"]),
            reply_to: &strings(&["<r@x.org>"]),
            message_id: "1@x.org",
            recipients: &strings(&["bob@x.org", "d@x.org", "hidden@x.org"]),
            ..DetailFields::default()
        };
        let found = summary(&fields, Headline::new("Ann <ann@x.org>", ["Bob <bob@x.org>"], "Hi"));
        let expected = json!({
            "ID": "17",
            "MessageID": "1@x.org",
            "Read": false,
            "From": {"Name": "Ann", "Address": "ann@x.org"},
            "To": [{"Name": "Bob", "Address": "bob@x.org"}],
            "Cc": [{"Name": "Cid", "Address": "c@x.org"}],
            "Bcc": [{"Name": "Dan", "Address": "d@x.org"}, {"Name": "", "Address": "hidden@x.org"}],
            "ReplyTo": [{"Name": "", "Address": "r@x.org"}],
            "Subject": "Hi",
            "Created": "2023-11-14T22:13:20.12Z",
            "Username": "ci",
            "Tags": ["A", "b", "c"],
            "Size": 321,
            "Attachments": 2,
            "Snippet": "Hello",
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn envelope_does_not_replace_missing_fields() {
        let recipients = ["bob@x.org".to_owned()];
        let fields =
            DetailFields { lacks_from: true, lacks_to: true, recipients: &recipients, ..DetailFields::default() };
        let found = summary(&fields, Headline::new("<ann@x.org>", ["<bob@x.org>"], ""));
        assert_eq!(found["From"], json!({"Name": "", "Address": ""}));
        assert_eq!((&found["To"], &found["Cc"], &found["ReplyTo"]), (&Value::Null, &Value::Null, &json!([])));
        assert_eq!(found["Bcc"], json!([{"Name": "", "Address": "bob@x.org"}]));
        let named = DetailFields { lacks_from: true, from_text: "Help Desk", ..DetailFields::default() };
        let found = summary(&named, Headline::new("<ann@x.org>", [], ""));
        assert_eq!(found["From"], json!({"Name": "Help Desk", "Address": ""}));
        let found = summary(&DetailFields::default(), Headline::new("<ann@x.org>", [], ""));
        assert_eq!((&found["To"], &found["Bcc"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn addresses_are_parsed() {
        let table = [
            ("Ann <a@x>", ("Ann", "a@x")),
            ("<a@x>", ("", "a@x")),
            ("a@x", ("", "a@x")),
            ("Ann <b> <a@x>", ("Ann <b>", "a@x")),
            ("<>", ("", "")),
            ("", ("", "")),
        ];
        for (text, (name, address)) in table {
            assert_eq!(Address::parse(text), Address { name, address }, "{text}");
        }
    }
}
