//! Fixtures: converts the sessions and messages that a test describes into values of the server. Missing fields get
//! defaults. Errors are sentences for the author of the test.

use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;
use mlua::Value;
use restante_mail::address::{Address, Alphabet};
use restante_mail::details::Details;
use restante_mail::envelope::ReversePath;
use restante_mail::message::{Flags, Headline, MessageId, Summary};
use restante_mail::mime::{NamedAddress, header_summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_mailroom::hooks::IncomingMessage;

use super::arguments::{Arguments, items, text};
use super::message_builder::{Attachment, MessageBuilder};

const SENDER: &str = "sender@example.com";
const RECIPIENT: &str = "recipient@example.org";
const REMOTE_ADDR: &str = "192.0.2.1";
const SUBJECT: &str = "Hello";
const TEXT: &str = "Hello";

/// A session that a test describes. Its recipients need not have mailboxes.
pub(super) struct Session {
    pub(super) from: ReversePath,
    pub(super) ip: Option<IpAddr>,
    pub(super) to: Vec<Address>,
}

/// Parses a session.
pub(super) fn parse_session(value: &Value) -> Result<Session, String> {
    let arguments = Arguments::new(value, "a session", &["remote_addr", "from", "to"])?;
    let from = arguments.address("from")?.unwrap_or_else(|| NamedAddress::new("", SENDER));
    let from = if from.address.is_empty() { None } else { Some(parse_address("from", &from)?) };
    let to = arguments.addresses("to")?.unwrap_or_else(|| vec![NamedAddress::new("", RECIPIENT)]);
    let to = to.iter().map(|to| parse_address("to", to)).collect::<Result<_, _>>()?;
    let ip = match arguments.text("remote_addr")?.as_deref().unwrap_or(REMOTE_ADDR) {
        "" => None,
        text => Some(text.parse().map_err(|_| format!("remote_addr is no IP address: {text:?}"))?),
    };
    Ok(Session { from, ip, to })
}

/// Parses a message in delivery.
pub(super) fn parse_inbound(value: &Value, naming: Naming) -> Result<IncomingMessage, String> {
    let fields = ["mailboxes", "from", "to", "subject", "source", "text", "html", "headers", "attachments"];
    let arguments = Arguments::new(value, "a message", &fields)?;
    let message = parse_message(&arguments)?;
    let names = match arguments.list("mailboxes")? {
        Some(names) => names.iter().map(|name| text("mailboxes", name)).collect::<Result<_, _>>()?,
        None => message.to.iter().map(|to| to.address.clone()).collect::<Vec<_>>(),
    };
    let mut mailboxes = Vec::new();
    for name in names {
        let name = parse_mailbox(naming, &name)?;
        if !mailboxes.contains(&name) {
            mailboxes.push(name);
        }
    }
    Ok(IncomingMessage { mailboxes, headline: message.headline(), body: message.source })
}

/// Parses a stored message. Returns its summary and source. `id` and `now` are the defaults of its id and date.
pub(super) fn parse_stored(
    value: &Value,
    naming: Naming,
    id: MessageId,
    now: Timestamp,
) -> Result<(Summary, Bytes), String> {
    let fields = ["mailbox", "id", "date", "from", "to", "subject", "source", "text", "html", "headers", "attachments"];
    let arguments = Arguments::new(value, "metadata", &fields)?;
    let message = parse_message(&arguments)?;
    let name = arguments.text("mailbox")?.filter(|name| !name.is_empty());
    let name = name.as_deref().or(message.to.first().map(|to| to.address.as_str())).unwrap_or(RECIPIENT);
    let id = match arguments.text("id")?.filter(|id| !id.is_empty()) {
        Some(text) => text.parse().map_err(|_| format!("id is not a message id: {text:?}"))?,
        None => id,
    };
    let received = match arguments.seconds("date")? {
        Some(date) => Timestamp::from_second(date).map_err(|_| format!("date is out of range: {date}"))?,
        None => now,
    };
    let (mailbox, size) = (parse_mailbox(naming, name)?, message.source.len() as u64);
    Ok((
        Summary {
            mailbox,
            id,
            headline: message.headline(),
            received,
            size,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            message: id,
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        },
        message.source,
    ))
}

/// Parses a mailbox name.
pub(super) fn parse_mailbox(naming: Naming, name: &str) -> Result<MailboxName, String> {
    naming.parse_mailbox(name).map_err(|error| format!("invalid mailbox name {name:?}: {error}"))
}

/// The parts of a message.
struct FixtureMessage {
    from: NamedAddress,
    to: Vec<NamedAddress>,
    subject: String,
    source: Bytes,
}

impl FixtureMessage {
    fn headline(&self) -> Headline {
        let to: Vec<String> = self.to.iter().map(NamedAddress::display).collect();
        Headline::new(&self.from.display(), to.iter().map(String::as_str), &self.subject)
    }
}

/// Parses a message. Fields that the test gives override the header of its source.
fn parse_message(arguments: &Arguments<'_>) -> Result<FixtureMessage, String> {
    let (from, to, subject) = (arguments.address("from")?, arguments.addresses("to")?, arguments.text("subject")?);
    if let Some(source) = arguments.bytes("source")?.filter(|source| !source.is_empty()) {
        let header = header_summary(&source);
        let recipients = || header.to.iter().flatten().map(|to| NamedAddress::from_display(to)).collect();
        return Ok(FixtureMessage {
            from: from.unwrap_or_else(|| NamedAddress::from_display(header.from.as_deref().unwrap_or_default())),
            to: to.unwrap_or_else(recipients),
            subject: subject.unwrap_or(header.subject),
            source: source.into(),
        });
    }
    let from = from.unwrap_or_else(|| NamedAddress::new("", SENDER));
    let to = to.unwrap_or_else(|| vec![NamedAddress::new("", RECIPIENT)]);
    let subject = subject.unwrap_or_else(|| SUBJECT.to_owned());
    // An object without a source has no content; its fields `text` and so on are derived from the source.
    let content = if matches!(arguments, Arguments::Object(_)) { &Arguments::Nothing } else { arguments };
    let source = message_builder(content, &from, &to, &subject)?.build();
    Ok(FixtureMessage { from, to, subject, source })
}

fn message_builder(
    arguments: &Arguments<'_>,
    from: &NamedAddress,
    to: &[NamedAddress],
    subject: &str,
) -> Result<MessageBuilder, String> {
    let extra = header_fields(arguments)?;
    let to: Vec<String> = to.iter().map(header_address).collect();
    let mut fields = vec![("From", header_address(from)), ("To", to.join(", ")), ("Subject", subject.to_owned())];
    fields.retain(|(name, _)| !extra.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(extra).collect();
    for (name, value) in &fields {
        let is_valid_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_valid_name || value.contains(['\r', '\n', '\0']) {
            return Err(format!("invalid header field: {name:?}, {value:?}"));
        }
    }
    let (mut text, html) = (arguments.bytes("text")?, arguments.bytes("html")?);
    if text.is_none() && html.is_none() {
        text = Some(TEXT.into());
    }
    Ok(MessageBuilder { fields, text, html, attachments: attachments(arguments)? })
}

/// Parses the table `headers`: names with a value or a list of values. Lua tables have no order, so the fields are
/// sorted by name.
fn header_fields(arguments: &Arguments<'_>) -> Result<Vec<(String, String)>, String> {
    let Some(table) = arguments.table("headers")? else { return Ok(Vec::new()) };
    let mut fields = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair.map_err(|error| error.to_string())?;
        let name = text("the name of a header field", &name)?;
        let values = match &value {
            Value::Table(values) => items(&name, values)?,
            _ => vec![value],
        };
        for value in &values {
            fields.push((name.clone(), text(&name, value)?));
        }
    }
    // A stable sort keeps the order of the values of one name.
    fields.sort_by(|(first, _), (second, _)| first.cmp(second));
    Ok(fields)
}

fn attachments(arguments: &Arguments<'_>) -> Result<Vec<Attachment>, String> {
    let attachment = |value: &Value| {
        let arguments = Arguments::new(value, "an attachment", &["filename", "content_type", "content"])?;
        let attachment = Attachment {
            filename: arguments.text("filename")?.unwrap_or_else(|| "attachment.bin".to_owned()),
            content_type: arguments.text("content_type")?.unwrap_or_else(|| "application/octet-stream".to_owned()),
            content: arguments.bytes("content")?.unwrap_or_default(),
        };
        if [&attachment.filename, &attachment.content_type].iter().any(|text| text.contains(['\r', '\n', '\0'])) {
            return Err(format!("invalid attachment: {:?}", attachment.filename));
        }
        Ok(attachment)
    };
    arguments.list("attachments")?.unwrap_or_default().iter().map(attachment).collect()
}

fn parse_address(field: &str, named: &NamedAddress) -> Result<Address, String> {
    Address::parse(&named.address, Alphabet::Utf8).map_err(|error| format!("{field}: {error}: {:?}", named.address))
}

/// Formats an address for a header field.
fn header_address(address: &NamedAddress) -> String {
    if address.name.is_empty() {
        return address.address.clone();
    }
    let name = address.name.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{name}\" <{}>", address.address)
}
