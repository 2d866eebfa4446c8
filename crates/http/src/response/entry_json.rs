//! The JSON of messages as a whole, written field by field: lists, single messages and events. Tests compare it with the
//! serialized types, [`MessageEntry`](restante_api_types::MessageEntry) and
//! [`WholeMessage`](restante_api_types::WholeMessage).

use bytes::Bytes;
use restante_api_types::Time;
use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_search::ExcerptPart;

use crate::response::json;
use crate::response::message_json::field;

/// The approximate size of an entry, without its texts and lists.
const ENTRY_BYTES: usize = 256;
/// The approximate size of the fields that only a single message has, without its copies.
const ENVELOPE_BYTES: usize = 64;
/// The approximate size of a mailbox in an entry, or of a copy, without its texts.
const COPY_BYTES: usize = 64;

/// Returns the approximate size of the list of these messages.
pub(crate) fn entries_size(messages: &[Message]) -> usize {
    messages.iter().map(entry_size).sum::<usize>() + ENVELOPE_BYTES
}

/// The words around the matches of a query, split into matching and other text.
pub(crate) type Excerpt = Vec<ExcerptPart>;

/// A page of a list of messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntryPage<'a> {
    /// The messages, the newest first.
    pub(crate) messages: &'a [Message],
    /// The cursor of the next page.
    pub(crate) next: Option<MessageId>,
    /// The mailbox, if the list is that of one.
    pub(crate) mailbox: Option<&'a MailboxName>,
    /// If the list is that of a query: an excerpt of each message, and whether the search was complete.
    pub(crate) search: Option<(&'a [Excerpt], bool)>,
}

/// Returns a page of a list of messages as a body.
pub(crate) fn entries(page: EntryPage<'_>) -> Bytes {
    let EntryPage { messages, next, mailbox, search } = page;
    let mut out = Vec::with_capacity(entries_size(messages));
    out.extend_from_slice(b"{\"messages\":");
    json::array(&mut out, messages, entry);
    match next {
        Some(id) => json::display(&mut out, format_args!(",\"next\":\"{id}\"")),
        None => out.extend_from_slice(b",\"next\":null"),
    }
    if let Some(mailbox) = mailbox {
        out.push(b',');
        field(&mut out, "mailbox", mailbox.as_str());
    }
    if let Some((excerpts, is_complete)) = search {
        out.extend_from_slice(b",\"excerpts\":");
        json::array(&mut out, excerpts, excerpt);
        json::display(&mut out, format_args!(",\"complete\":{is_complete}"));
    }
    out.extend_from_slice(b"}\n");
    // The body may be cached, and the size is an estimate.
    out.shrink_to_fit();
    out.into()
}

fn excerpt(out: &mut Vec<u8>, excerpt: &Excerpt) {
    json::array(out, excerpt, |out, part| {
        out.push(b'{');
        field(out, "text", &part.text);
        json::display(out, format_args!(",\"hit\":{}}}", part.is_hit));
    });
}

/// Returns the approximate size of an entry.
pub(crate) fn entry_size(message: &Message) -> usize {
    let first = message.first();
    let copies: usize = message.copies().iter().map(copy_size).sum();
    ENTRY_BYTES + first.headline.text_len() + copies
}

/// Appends the entry of a message.
pub(crate) fn entry(out: &mut Vec<u8>, message: &Message) {
    out.push(b'{');
    entry_fields(out, message);
    out.push(b'}');
}

/// Returns the entry of a message as a body.
pub(crate) fn entry_body(message: &Message) -> Bytes {
    let mut out = Vec::with_capacity(entry_size(message));
    entry(&mut out, message);
    out.push(b'\n');
    out.into()
}

/// Returns a message with its envelope and its copies.
pub(crate) fn whole_message(message: &Message) -> Bytes {
    let mut out = Vec::with_capacity(2 * entry_size(message) + ENVELOPE_BYTES);
    let details = &message.first().details;
    out.push(b'{');
    entry_fields(&mut out, message);
    out.push(b',');
    field(&mut out, "sender", details.sender());
    out.extend_from_slice(b",\"client\":{\"ip\":");
    string_or_null(&mut out, Some(details.ip()).filter(|ip| !ip.is_empty()));
    out.push(b',');
    field(&mut out, "helo", &details.helo());
    out.extend_from_slice(b",\"login\":");
    string_or_null(&mut out, details.login());
    out.extend_from_slice(b"},\"copies\":");
    json::array(&mut out, message.copies(), copy);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// Appends the fields of an entry.
fn entry_fields(out: &mut Vec<u8>, message: &Message) {
    let Summary { headline, details, received, size, .. } = message.first();
    json::display(out, format_args!("\"id\":\"{}\",", message.id()));
    field(out, "from", headline.from());
    out.extend_from_slice(b",\"to\":");
    json::array(out, headline.to(), json::string);
    out.extend_from_slice(b",\"cc\":");
    json::array(out, details.cc(), json::string);
    out.extend_from_slice(b",\"recipients\":");
    json::array(out, message.recipients(), json::string);
    out.extend_from_slice(b",\"mailboxes\":");
    json::array(out, message.mailboxes(), |out, mailbox| json::string(out, mailbox.as_str()));
    out.push(b',');
    field(out, "subject", headline.subject());
    out.push(b',');
    field(out, "snippet", details.snippet());
    let (received, attachments, seen) = (Time(*received), details.attachments(), message.is_seen());
    json::display(out, format_args!(",\"received\":\"{received}\",\"size\":{size}"));
    json::display(out, format_args!(",\"attachments\":{attachments},\"seen\":{seen},"));
    tags(out, &message.tags());
}

fn copy(out: &mut Vec<u8>, copy: &Summary) {
    out.push(b'{');
    field(out, "mailbox", copy.mailbox.as_str());
    json::display(out, format_args!(",\"id\":\"{}\",\"number\":{},\"recipients\":", copy.id, copy.number));
    json::array(out, copy.details.recipients(), json::string);
    json::display(out, format_args!(",\"seen\":{},", copy.seen));
    tags(out, &copy.tags);
    out.push(b'}');
}

fn copy_size(copy: &Summary) -> usize {
    COPY_BYTES + copy.mailbox.as_str().len() + copy.details.encoded().len() + copy.tags.encoded().len()
}

fn tags(out: &mut Vec<u8>, tags: &Tags) {
    out.extend_from_slice(b"\"tags\":");
    json::array(out, tags.iter(), json::string);
}

fn string_or_null(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => json::string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}
