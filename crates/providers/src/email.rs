//! A message as a provider's request describes it, and its composition.

use std::fmt::Write as _;

use bytes::Bytes;
use restante_mail::address::Address;
use restante_mail::compose::{Attachment, ComposeContext, Draft, LineEnds, MAX_RECIPIENTS};
use restante_mail::envelope::ReversePath;
use restante_mail::message::MessageId;
use restante_mail::mime::{RawFields, media_type_of};
use restante_mail::tags::{MAX_TAG_CHARS, is_allowed};

use crate::failure::{Failure, FailureKind};
use crate::person::Person;
use crate::templates::{TemplateUse, Templates};
use crate::text_budget::TextBudget;

const TAGS_FIELD: &str = "X-Tags";
/// The time at which the provider would send the message.
const SCHEDULED_FIELD: &str = "X-Scheduled-At";
/// The beginning of the names of fields with metadata.
const METADATA_PREFIX: &str = "X-Metadata-";

/// A message to send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Email {
    /// The author, and the sender of the envelope. Required except for a complete message.
    pub(crate) from: Option<Person>,
    /// The recipients. A complete message is sent to them, whatever its header says.
    pub(crate) to: Vec<Person>,
    /// The recipients of copies.
    pub(crate) cc: Vec<Person>,
    /// The recipients that the header does not contain.
    pub(crate) bcc: Vec<Person>,
    /// The addresses for replies.
    pub(crate) reply_to: Vec<Person>,
    pub(crate) content: Content,
    /// Additional header fields.
    pub(crate) headers: Vec<(String, String)>,
    /// The labels that the provider calls tags or categories.
    pub(crate) tags: Vec<String>,
    /// Names and values that the provider stores with the message.
    pub(crate) metadata: Vec<(String, String)>,
    /// The time at which the message is to be sent, as the request has it. Restante does not wait for it.
    pub(crate) scheduled: Option<String>,
}

/// The content of a message.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Its parts.
    Parts(Parts),
    /// A stored template and its data. Values of the parts replace those of the template.
    Template(TemplateUse, Parts),
    /// A complete message.
    Raw(Bytes),
}

impl Default for Content {
    fn default() -> Self {
        Self::Parts(Parts::default())
    }
}

/// The parts of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) subject: String,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) attachments: Vec<Attachment>,
}

/// A composed message, its envelope, and what a response says about it.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) from: ReversePath,
    pub(crate) recipients: Vec<Address>,
    pub(crate) message: Bytes,
    pub(crate) sent: Sent,
}

/// A message that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The id of the message. That of no message if it was discarded.
    pub(crate) id: MessageId,
    /// The text of the Message-ID, without angle brackets.
    pub(crate) message_id: String,
    pub(crate) to: Vec<Person>,
    pub(crate) cc: Vec<Person>,
    pub(crate) bcc: Vec<Person>,
}

impl Sent {
    /// Returns all recipients.
    pub(crate) fn recipients(&self) -> impl Iterator<Item = &Person> {
        self.to.iter().chain(&self.cc).chain(&self.bcc)
    }

    /// Returns the id as 16 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:016x}", self.id.number())
    }

    /// Returns the id in the form of a UUID of version 8 (RFC 9562 section 5.8).
    pub(crate) fn uuid(&self) -> String {
        uuid(self.id)
    }
}

/// Returns an id in the form of a UUID.
pub(crate) fn uuid(id: MessageId) -> String {
    let number = id.number();
    format!("{:08x}-{:04x}-8000-8000-00000000{:04x}", number >> 32, number >> 16 & 0xffff, number & 0xffff)
}

/// Parses the output of [`uuid`] or [`Sent::hex`].
pub(crate) fn parse_id(text: &str) -> Option<MessageId> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = match digits.len() {
        16 => u64::from_str_radix(&digits, 16).ok()?,
        32 if digits.get(12..28)? == "8000800000000000" => {
            u64::from_str_radix(&[digits.get(..12)?, digits.get(28..)?].concat(), 16).ok()?
        }
        _ => return None,
    };
    Some(number.into())
}

impl Parts {
    /// Returns the size of the message without its header, approximately.
    fn size(&self) -> usize {
        let attachments: usize = self.attachments.iter().map(|file| file.content.len()).sum();
        self.text.as_ref().map_or(0, String::len) + self.html.as_ref().map_or(0, String::len) + attachments / 3 * 4
    }
}

impl Email {
    /// Returns the size of the message without its header, approximately.
    pub(crate) fn size(&self) -> usize {
        match &self.content {
            Content::Parts(parts) | Content::Template(_, parts) => parts.size(),
            Content::Raw(message) => message.len(),
        }
    }

    /// Composes the message.
    pub(crate) fn compose(
        self,
        templates: &Templates<'_>,
        budget: &TextBudget,
        context: &ComposeContext,
    ) -> Result<Composed, Failure> {
        let Self { from, to, cc, mut bcc, mut reply_to, content, mut headers, tags, metadata, scheduled } = self;
        bcc.extend(Person::take_field("Bcc", &mut headers)?);
        if !matches!(content, Content::Raw(_)) {
            reply_to.extend(Person::take_field("Reply-To", &mut headers)?);
        }
        let recipients = unique_addresses([&to, &cc, &bcc].into_iter().flatten());
        if recipients.is_empty() {
            return Err(Failure::missing("to"));
        }
        if recipients.len() > MAX_RECIPIENTS {
            return Err(Failure::invalid(
                "to",
                &format!("and the other lists have more than {MAX_RECIPIENTS} recipients"),
            ));
        }
        let message_id = given_message_id(&headers, &content).unwrap_or_else(|| context.message_id());
        let sent_id = message_id.trim_matches(['<', '>']).to_owned();
        let sent = Sent { id: MessageId::from(0), message_id: sent_id, to: to.clone(), cc: cc.clone(), bcc };
        let mut fields = own_fields(&tags, &metadata, scheduled.as_deref());
        let envelope_from = from.as_ref().map(|person| person.address.clone());
        let parts = match content {
            Content::Raw(message) => {
                let message = prepend_fields(&fields, &headers, message)?;
                return Ok(Composed { from: envelope_from, recipients, message, sent });
            }
            Content::Parts(parts) => parts,
            Content::Template(template, parts) if template.source.is_none() => parts,
            Content::Template(template, parts) => templates.render(&template, parts, budget)?,
        };
        let from = from.ok_or_else(|| Failure::missing("from"))?;
        let Parts { subject, text, html, mut attachments } = parts;
        for file in attachments.iter_mut().filter(|file| file.content_type.is_none()) {
            file.content_type = file.filename.as_deref().and_then(media_type_of).map(str::to_owned);
        }
        let display = |people: Vec<Person>| people.iter().map(Person::display).collect();
        fields.extend(headers);
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("message-id")) {
            fields.push(("Message-ID".to_owned(), message_id));
        }
        let draft = Draft {
            from: from.display(),
            to: display(to),
            cc: display(cc),
            reply_to: display(reply_to),
            subject,
            text: text.filter(|text| !text.is_empty() || html.is_none()),
            html,
            line_ends: LineEnds::Unchanged,
            headers: fields,
            attachments,
            date: None,
        };
        let message = draft.compose(context)?.into();
        Ok(Composed { from: Some(from.address), recipients, message, sent })
    }
}

/// Returns the Message-ID that a request contains.
fn given_message_id(headers: &[(String, String)], content: &Content) -> Option<String> {
    let is_id = |name: &[u8]| name.eq_ignore_ascii_case(b"message-id");
    if let Some((_, id)) = headers.iter().find(|(name, _)| is_id(name.as_bytes())) {
        return Some(id.trim().to_owned()).filter(|id| !id.is_empty());
    }
    let Content::Raw(message) = content else { return None };
    let (_, id) = RawFields::new(message).find(|(name, _)| is_id(name))?;
    Some(String::from_utf8_lossy(id).trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns the addresses of people, each once.
fn unique_addresses<'a>(people: impl Iterator<Item = &'a Person>) -> Vec<Address> {
    let mut seen = std::collections::HashSet::new();
    people.filter(|person| seen.insert(person.address.text())).map(|person| person.address.clone()).collect()
}

/// Returns the header fields for the values that a provider stores with a message.
fn own_fields(tags: &[String], metadata: &[(String, String)], scheduled: Option<&str>) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let tags: Vec<String> = tags.iter().map(|tag| valid_tag(tag)).filter(|tag| !tag.is_empty()).collect();
    if !tags.is_empty() {
        fields.push((TAGS_FIELD.to_owned(), tags.join(", ")));
    }
    fields.extend(metadata.iter().map(|(name, value)| (metadata_field(name), value.replace(char::is_control, " "))));
    fields.extend(scheduled.map(|time| (SCHEDULED_FIELD.to_owned(), time.to_owned())));
    fields
}

/// Returns a tag without the characters that tags cannot have.
fn valid_tag(text: &str) -> String {
    let tag: String = text.trim().chars().map(|c| if is_allowed(c) { c } else { '-' }).take(MAX_TAG_CHARS).collect();
    tag.trim().to_owned()
}

/// Returns the name of the field for metadata of this name.
fn metadata_field(name: &str) -> String {
    let token = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    METADATA_PREFIX.chars().chain(token.take(50)).collect()
}

/// Returns a complete message with additional fields before its header.
fn prepend_fields(own: &[(String, String)], headers: &[(String, String)], message: Bytes) -> Result<Bytes, Failure> {
    if message.is_empty() {
        return Err(Failure::new(FailureKind::Invalid, "The message is empty."));
    }
    let mut prefix = String::new();
    for (name, value) in own.iter().chain(headers) {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_name || value.contains(char::is_control) {
            return Err(Failure::invalid(format!("headers.{}", name.escape_debug()), "is not a valid header field"));
        }
        let _ = write!(prefix, "{name}: {value}\r\n");
    }
    Ok(if prefix.is_empty() { message } else { [prefix.as_bytes(), &message].concat().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_can_be_parsed() {
        let id = MessageId::from(1_794_699_770_123_456);
        assert_eq!(uuid(id), "00066045-1a46-8000-8000-00000000d4c0");
        assert_eq!(parse_id(&uuid(id)), Some(id));
        assert_eq!(parse_id(&format!("{:016x}", id.number())), Some(id));
        for text in ["", "x", "00000000-0000-4000-8000-000000000000", "ääää-ääää"] {
            assert_eq!(parse_id(text), None, "{text}");
        }
    }
}
