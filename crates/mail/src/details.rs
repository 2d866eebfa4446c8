//! What is known about a copy of a message beyond its summary: the envelope, the origin and a preview of the text.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use memchr::memchr;

use crate::date::mail_date;
use crate::message::MessageId;
use crate::mime::{HeaderSummary, Preview, SummaryField, SummaryFields};
use crate::naming::MailboxName;

/// The maximum length of the login that is kept, in bytes.
const MAX_LOGIN_BYTES: usize = 256;

/// The maximum length of the addresses of a header field that are kept, in bytes. Every copy has its own details.
const MAX_LIST_BYTES: usize = 1024;

/// The maximum length of a From field without an address that is kept, in bytes.
const MAX_FROM_TEXT_BYTES: usize = 256;

/// The maximum length of the Message-ID that is kept, in bytes.
const MAX_MESSAGE_ID_BYTES: usize = 998;

/// The envelope, the origin and a preview of a copy. Cheap to clone.
///
/// A store can contain very many of them, so all texts are in one allocation, which is also the form in which they are
/// stored. All of them are empty for a message that was stored by an earlier version of the program and not yet migrated.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The lines that [`Line`] describes. `None` if all of them are empty.
    text: Option<Arc<str>>,
}

/// The values of [`Details`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DetailFields<'a> {
    /// The sender of the envelope. Empty for the null reverse-path.
    pub sender: &'a str,
    /// The name that the client sent in HELO, EHLO or LHLO. Empty over HTTP.
    pub helo: &'a str,
    /// The IP address of the client. `None` on a Unix socket.
    pub ip: Option<IpAddr>,
    /// The name with which the client logged in.
    pub login: Option<&'a str>,
    /// The host name of the server that received the message.
    pub host: &'a str,
    /// The number of attachments that are not inline.
    pub attachments: u32,
    /// The number of parts that are marked as attachments. See [`Preview::attached_parts`].
    pub attached_parts: u32,
    /// The number of parts that are marked as inline.
    pub inline_parts: u32,
    /// Whether the message has parts that are not counted.
    pub omits_parts: bool,
    /// The first words of the text.
    pub snippet: &'a str,
    /// The addresses of the header field Cc.
    pub cc: &'a [String],
    /// The addresses of the header field Bcc.
    pub bcc: &'a [String],
    /// The addresses of the header field Reply-To.
    pub reply_to: &'a [String],
    /// The Message-ID, without angle brackets.
    pub message_id: &'a str,
    /// The text of From, if it has no address.
    pub from_text: &'a str,
    /// Whether the header has no sender. Then the sender of the headline is that of the envelope.
    pub lacks_from: bool,
    /// Whether the header has no list of recipients. Then the recipients of the headline are those of the envelope.
    pub lacks_to: bool,
    /// The header fields whose values are not complete, here or in the headline.
    pub truncated: SummaryFields,
    /// The recipients of the envelope whose mailbox holds this copy.
    pub recipients: &'a [String],
}

impl<'a> DetailFields<'a> {
    /// Returns the values that come from the source of a message. The others are empty.
    pub fn of_source(header: &'a HeaderSummary, preview: &'a Preview) -> Self {
        Self {
            attachments: preview.attachments,
            attached_parts: preview.attached_parts,
            inline_parts: preview.inline_parts,
            omits_parts: preview.omits_parts,
            snippet: &preview.snippet,
            cc: &header.cc,
            bcc: &header.bcc,
            reply_to: &header.reply_to,
            message_id: &header.message_id,
            from_text: &header.from_text,
            lacks_from: header.from.is_none(),
            lacks_to: header.to.is_none(),
            truncated: header.truncated,
            ..Self::default()
        }
    }
}

/// The lines of the encoded form. The lines after [`Line::Counts`] are the addresses of Cc, Bcc and Reply-To, the
/// Message-ID if there is one, the text of From if it has no address, and then the recipients.
#[derive(Clone, Copy)]
enum Line {
    Sender,
    Helo,
    Ip,
    Login,
    Host,
    Attachments,
    Snippet,
    /// The numbers that [`Count`] describes, separated by spaces.
    Counts,
}

/// The numbers of the line [`Line::Counts`]. Earlier versions wrote only the first; the others are zero then.
#[derive(Clone, Copy)]
enum Count {
    Cc,
    Bcc,
    ReplyTo,
    MessageId,
    FromText,
    InlineParts,
    AttachedParts,
    /// The sum of the flags below.
    Flags,
    /// The id of the message that this one was copied from. Only copies have it.
    Original,
}

/// The counts of the lists of lines, in their order.
const LISTS: [Count; 5] = [Count::Cc, Count::Bcc, Count::ReplyTo, Count::MessageId, Count::FromText];

/// The header has no sender.
const LACKS_FROM: u32 = 1;
/// The header has no list of recipients.
const LACKS_TO: u32 = 2;
/// Not all addresses of To, Cc and Bcc are kept.
const LACKS_ADDRESSES: u32 = 4;
/// All values of the header are kept completely, and all parts are counted. Earlier versions did not write this flag.
const IS_COMPLETE: u32 = 8;

impl Details {
    /// Creates details. Line feeds in the values are replaced by spaces. Very long logins, Message-IDs and lists of
    /// addresses are truncated.
    pub fn new(fields: &DetailFields<'_>) -> Self {
        let DetailFields { sender, helo, ip, login, host, attachments, snippet, recipients, .. } = *fields;
        let [cc, bcc, reply_to] =
            [fields.cc, fields.bcc, fields.reply_to].map(|list| truncate_list(list, MAX_LIST_BYTES));
        let message_id = &fields.message_id[..fields.message_id.floor_char_boundary(MAX_MESSAGE_ID_BYTES)];
        let from_text = &fields.from_text[..fields.from_text.floor_char_boundary(MAX_FROM_TEXT_BYTES)];
        let mut truncated = fields.truncated;
        truncated.insert_if(cc.len() < fields.cc.len(), SummaryField::Cc);
        truncated.insert_if(bcc.len() < fields.bcc.len(), SummaryField::Bcc);
        truncated.insert_if(reply_to.len() < fields.reply_to.len(), SummaryField::ReplyTo);
        truncated.insert_if(message_id.len() < fields.message_id.len(), SummaryField::MessageId);
        truncated.insert_if(from_text.len() < fields.from_text.len(), SummaryField::From);
        let recipient_fields = [SummaryField::To, SummaryField::Cc, SummaryField::Bcc];
        let lacks_addresses = recipient_fields.into_iter().any(|field| truncated.contains(field));
        let header_lists = || cc.iter().chain(bcc).chain(reply_to);
        let lists = header_lists().chain(recipients).map(|address| address.len() + 1).sum::<usize>();
        let capacity =
            sender.len() + helo.len() + host.len() + snippet.len() + message_id.len() + from_text.len() + lists + 80;
        let mut text = String::with_capacity(capacity);
        push_line(&mut text, sender);
        push_line(&mut text, helo);
        push_ip(&mut text, ip);
        text.push('\n');
        push_line(&mut text, login.map_or("", |login| &login[..login.floor_char_boundary(MAX_LOGIN_BYTES)]));
        push_line(&mut text, host);
        push_number(&mut text, attachments);
        text.push('\n');
        push_line(&mut text, snippet);
        let count = |list: &[String]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let flags = u32::from(fields.lacks_from) * LACKS_FROM
            + u32::from(fields.lacks_to) * LACKS_TO
            + u32::from(lacks_addresses) * LACKS_ADDRESSES
            + u32::from(truncated.is_empty() && !fields.omits_parts) * IS_COMPLETE;
        // In the order of `Count`.
        let counts = [
            count(cc),
            count(bcc),
            count(reply_to),
            u32::from(!message_id.is_empty()),
            u32::from(!from_text.is_empty()),
            fields.inline_parts,
            fields.attached_parts,
            flags,
        ];
        for (index, number) in counts.into_iter().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            push_number(&mut text, number);
        }
        text.push('\n');
        header_lists().for_each(|address| push_line(&mut text, address));
        for value in [message_id, from_text].into_iter().filter(|value| !value.is_empty()) {
            push_line(&mut text, value);
        }
        for address in recipients {
            push_line(&mut text, address);
        }
        Self { text: Some(text.into()) }
    }

    /// Creates details from the form that [`Details::encoded`] returns.
    pub fn from_encoded(text: &str) -> Self {
        Self { text: (!text.is_empty()).then(|| text.into()) }
    }

    /// Returns the form in which details are stored.
    pub fn encoded(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.text.is_none()
    }

    /// Returns the sender of the envelope. Empty for the null reverse-path.
    pub fn sender(&self) -> &str {
        self.line(Line::Sender)
    }

    /// Returns the name that the client sent in HELO, EHLO or LHLO. A client of HTTP sends none: for it, this is its
    /// address as an address literal (RFC 5321 section 4.1.3).
    pub fn helo(&self) -> Cow<'_, str> {
        self.origin().helo()
    }

    /// Returns whether the message was received over HTTP.
    pub fn is_from_http(&self) -> bool {
        self.origin().is_from_http()
    }

    /// Returns whether a server received the message. Otherwise it was imported.
    pub fn is_received(&self) -> bool {
        !self.line(Line::Host).is_empty()
    }

    /// Returns the IP address of the client as text. Empty on a Unix socket.
    pub fn ip(&self) -> &str {
        self.line(Line::Ip)
    }

    /// Returns the name with which the client logged in.
    pub fn login(&self) -> Option<&str> {
        Some(self.line(Line::Login)).filter(|login| !login.is_empty())
    }

    /// Returns the number of attachments that are not inline.
    pub fn attachments(&self) -> u32 {
        self.line(Line::Attachments).parse().unwrap_or(0)
    }

    /// Returns the number of parts that are marked as attachments. If it is not known, that of the attachments.
    pub fn attached_parts(&self) -> u32 {
        self.count(Count::AttachedParts).unwrap_or_else(|| self.attachments())
    }

    /// Returns the number of parts that are marked as inline. Zero if it is not known.
    pub fn inline_parts(&self) -> u32 {
        self.count(Count::InlineParts).unwrap_or(0)
    }

    /// Returns the first words of the text.
    pub fn snippet(&self) -> &str {
        self.line(Line::Snippet)
    }

    /// Returns the addresses of the header field Cc.
    pub fn cc(&self) -> impl Iterator<Item = &str> {
        self.list(Count::Cc)
    }

    /// Returns the addresses of the header field Bcc.
    pub fn bcc(&self) -> impl Iterator<Item = &str> {
        self.list(Count::Bcc)
    }

    /// Returns the addresses of the header field Reply-To.
    pub fn reply_to(&self) -> impl Iterator<Item = &str> {
        self.list(Count::ReplyTo)
    }

    /// Returns the Message-ID, without angle brackets. Empty if there is none.
    pub fn message_id(&self) -> &str {
        self.list(Count::MessageId).next().unwrap_or_default()
    }

    /// Returns the text of From, if it has no address. Otherwise empty.
    pub fn from_text(&self) -> &str {
        self.list(Count::FromText).next().unwrap_or_default()
    }

    /// Returns whether the header has no sender, so that the sender of the headline is that of the envelope.
    pub fn lacks_from(&self) -> bool {
        self.has_flag(LACKS_FROM)
    }

    /// Returns whether the header has no list of recipients, so that those of the headline are those of the envelope.
    pub fn lacks_to(&self) -> bool {
        self.has_flag(LACKS_TO)
    }

    /// Returns whether [`Details::cc`], [`Details::bcc`] or the recipients of the headline lack addresses of very long lists.
    pub fn lacks_addresses(&self) -> bool {
        self.has_flag(LACKS_ADDRESSES)
    }

    /// Returns whether all values of the header are complete, here and in the headline, and all parts are counted. Very long
    /// values are truncated.
    pub fn is_complete(&self) -> bool {
        self.has_flag(IS_COMPLETE)
    }

    /// Returns the recipients of the envelope whose mailbox holds this copy.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.lines_from(LISTS.len())
    }

    /// Returns the id of the message that this one was first copied from, if a client has copied or moved it to another
    /// mailbox. That message may no longer exist.
    pub fn original(&self) -> Option<MessageId> {
        self.line(Line::Counts).split(' ').nth(Count::Original as usize)?.parse().ok()
    }

    /// Returns the details of a copy of the message with this id. An earlier original is kept.
    #[must_use]
    pub fn with_original(&self, message: MessageId) -> Self {
        let counts = self.line(Line::Counts);
        if self.original().is_some() || counts.is_empty() {
            return self.clone();
        }
        // Earlier versions wrote fewer counts. They stay unknown.
        let missing = (Count::Original as usize).saturating_sub(counts.split(' ').count());
        let end = lines(self.encoded()).take(Line::Counts as usize + 1).map(|line| line.len() + 1).sum::<usize>() - 1;
        let (before, after) = self.encoded().split_at(end);
        let text = format!("{before}{} {message}{after}", " ".repeat(missing));
        Self { text: Some(text.into()) }
    }

    /// Returns the header lines that the server adds before a message that it receives: Return-Path and Received. In a folder,
    /// they name its owner, so that a message keeps its bytes when it is moved.
    pub fn trace(&self, mailbox: &MailboxName, received: Timestamp) -> Bytes {
        let (origin, owner) = (self.origin(), mailbox.owner());
        let OriginLines { sender, ip, host, .. } = origin;
        let (before_ip, ip, after_ip) = if ip.is_empty() { (" (", "local", ") by ") } else { (" ([", ip, "]) by ") };
        // This is several times faster than a formatter, and every copy needs it.
        let parts = [
            "Return-Path: <",
            sender,
            ">\r\nReceived: from ",
            &origin.helo(),
            before_ip,
            ip,
            after_ip,
            host,
            "\r\n  for <",
            owner.without_project(),
            ">; ",
            &mail_date(received),
            "\r\n",
        ];
        parts.concat().into()
    }

    fn origin(&self) -> OriginLines<'_> {
        let mut lines = self.encoded().split('\n');
        let lines: [&str; Line::Host as usize + 1] = std::array::from_fn(|_| lines.next().unwrap_or_default());
        let line = |line: Line| lines[line as usize];
        OriginLines { sender: line(Line::Sender), helo: line(Line::Helo), ip: line(Line::Ip), host: line(Line::Host) }
    }

    fn line(&self, line: Line) -> &str {
        lines(self.encoded()).nth(line as usize).unwrap_or_default()
    }

    /// Returns the lines after the counts, without the first `lists` lists.
    fn lines_from(&self, lists: usize) -> impl Iterator<Item = &str> {
        let counts = self.counts().take(lists);
        let preceding = counts.map(|count| count.unwrap_or(0) as usize).sum::<usize>();
        lines(self.encoded()).skip(Line::Counts as usize + 1 + preceding)
    }

    /// Returns the lines of the list with this count.
    fn list(&self, count: Count) -> impl Iterator<Item = &str> {
        self.lines_from(count as usize).take(self.length(count))
    }

    fn length(&self, count: Count) -> usize {
        self.count(count).unwrap_or(0) as usize
    }

    fn has_flag(&self, flag: u32) -> bool {
        self.count(Count::Flags).unwrap_or(0) & flag != 0
    }

    fn count(&self, count: Count) -> Option<u32> {
        self.counts().nth(count as usize)?
    }

    /// Returns the numbers of the line [`Line::Counts`], in the order of [`Count`]. Those that cannot be read are `None`.
    fn counts(&self) -> impl Iterator<Item = Option<u32>> {
        self.line(Line::Counts).split(' ').map(|count| count.parse().ok())
    }
}

/// The first lines of the encoded form. Reading them together is faster than one after the other.
struct OriginLines<'a> {
    sender: &'a str,
    helo: &'a str,
    ip: &'a str,
    host: &'a str,
}

impl<'a> OriginLines<'a> {
    fn is_from_http(&self) -> bool {
        self.helo.is_empty() && !self.host.is_empty()
    }

    /// See [`Details::helo`].
    fn helo(&self) -> Cow<'a, str> {
        match self.ip {
            _ if !self.is_from_http() => self.helo.into(),
            "" => "localhost".into(),
            ip if ip.contains(':') => format!("[IPv6:{ip}]").into(),
            ip => format!("[{ip}]").into(),
        }
    }
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Details").field(&self.encoded()).finish()
    }
}

/// Returns the lines of a text, without the line feeds. Every search reads the lines of many details, and `memchr` is
/// faster than `str::split`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = rest.get(..end).filter(|_| !rest.is_empty());
        rest = rest.get(end + 1..).unwrap_or_default();
        line
    })
}

/// Returns the first addresses that have at most `max_bytes` together.
fn truncate_list(addresses: &[String], max_bytes: usize) -> &[String] {
    let mut bytes = 0;
    let fits = |address: &&String| {
        bytes += address.len();
        bytes <= max_bytes
    };
    &addresses[..addresses.iter().take_while(fits).count()]
}

/// Appends a number. Every message needs several, and `itoa` is faster than a formatter.
fn push_number(text: &mut String, number: u32) {
    text.push_str(itoa::Buffer::new().format(number));
}

fn push_ip(text: &mut String, ip: Option<IpAddr>) {
    match ip {
        Some(IpAddr::V4(ip)) => {
            for (index, octet) in ip.octets().into_iter().enumerate() {
                if index > 0 {
                    text.push('.');
                }
                push_number(text, octet.into());
            }
        }
        // Writing to a string cannot fail.
        Some(IpAddr::V6(ip)) => drop(write!(text, "{ip}")),
        None => {}
    }
}

fn push_line(text: &mut String, value: &str) {
    if value.contains('\n') {
        text.extend(value.chars().map(|c| if c == '\n' { ' ' } else { c }));
    } else {
        text.push_str(value);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::header_summary;

    fn strings<const N: usize>(values: [&str; N]) -> [String; N] {
        values.map(str::to_owned)
    }

    fn fields<'a>(cc: &'a [String], recipients: &'a [String]) -> DetailFields<'a> {
        DetailFields {
            sender: "ann@x.org",
            helo: "laptop",
            ip: Some([127, 0, 0, 1].into()),
            login: Some("ci"),
            host: "restante",
            attachments: 3,
            attached_parts: 2,
            inline_parts: 12,
            snippet: "Your code\nis 1",
            cc,
            message_id: "1@x.org",
            from_text: "Help Desk",
            recipients,
            ..DetailFields::default()
        }
    }

    #[test]
    fn details_return_their_values() {
        let [cc, to] = [["<c@x>", "D <d@x>"], ["bob@x", "bob+1@x"]].map(strings);
        let (bcc, reply_to) = (strings(["<e@x>"]), strings(["F <f@x>", "<g@x>", "<h@x>"]));
        let details = Details::new(&DetailFields { bcc: &bcc, reply_to: &reply_to, ..fields(&cc, &to) });
        assert_eq!((details.sender(), &*details.helo(), details.ip()), ("ann@x.org", "laptop", "127.0.0.1"));
        assert_eq!((details.login(), details.attachments(), details.snippet()), (Some("ci"), 3, "Your code is 1"));
        assert_eq!((details.attached_parts(), details.inline_parts(), details.message_id()), (2, 12, "1@x.org"));
        assert_eq!(details.from_text(), "Help Desk");
        assert_eq!(details.cc().collect::<Vec<_>>(), cc);
        assert_eq!(details.bcc().collect::<Vec<_>>(), bcc);
        assert_eq!(details.reply_to().collect::<Vec<_>>(), reply_to);
        assert_eq!(details.recipients().collect::<Vec<_>>(), to);
        assert_eq!(Details::from_encoded(details.encoded()), details);
    }

    #[test]
    fn flags_are_independent() {
        for flags in 0..8 {
            let [lacks_from, lacks_to, omits_parts] = [1, 2, 4].map(|flag| flags & flag != 0);
            let details = Details::new(&DetailFields { omits_parts, lacks_from, lacks_to, ..DetailFields::default() });
            assert_eq!((details.lacks_from(), details.lacks_to()), (lacks_from, lacks_to));
            assert_eq!((details.lacks_addresses(), details.is_complete()), (false, !omits_parts));
        }
    }

    #[test]
    fn details_of_earlier_versions_are_read() {
        let encoded = "ann@x.org\nlaptop\n127.0.0.1\nci\nmx\n3\nHello\n1\n<c@x>\nbob@x\nbob+1@x\n";
        let details = Details::from_encoded(encoded);
        assert_eq!(details.cc().collect::<Vec<_>>(), ["<c@x>"]);
        assert_eq!(details.recipients().collect::<Vec<_>>(), ["bob@x", "bob+1@x"]);
        assert_eq!((details.attachments(), details.attached_parts(), details.inline_parts()), (3, 3, 0));
        assert_eq!((details.message_id(), details.from_text()), ("", ""));
        assert_eq!((details.bcc().count(), details.reply_to().count()), (0, 0));
        assert!(!details.lacks_from() && !details.lacks_to() && !details.lacks_addresses());
        assert!(!details.is_complete(), "not all values are known");
    }

    #[test]
    fn copies_keep_the_id_of_the_original() {
        let [cc, to] = [["<c@x>", "D <d@x>"], ["bob@x", "bob+1@x"]].map(strings);
        let current = Details::new(&fields(&cc, &to));
        let earlier = Details::from_encoded(
            "ann@x.org\nlaptop\n127.0.0.1\nci\nmx\n3\nHello\n2\n<c@x>\nD <d@x>\nbob@x\nbob+1@x\n",
        );
        for details in [current, earlier] {
            assert_eq!(details.original(), None);
            let copy = details.with_original(u64::MAX.into());
            assert_eq!(copy.original(), Some(MessageId::MAX));
            assert_eq!(copy.with_original(1.into()), copy, "the first original stays");
            assert_eq!(copy.cc().collect::<Vec<_>>(), cc);
            assert_eq!(copy.recipients().collect::<Vec<_>>(), to);
            let numbers = |details: &Details| (details.attachments(), details.attached_parts(), details.inline_parts());
            assert_eq!(numbers(&copy), numbers(&details));
            assert_eq!((copy.snippet(), copy.is_complete()), (details.snippet(), details.is_complete()));
        }
        assert_eq!(Details::default().with_original(1.into()).original(), None, "nothing is known of it");
    }

    #[test]
    fn numbers_and_addresses_are_written_like_display() {
        for number in [0, 7, 10, 42, 99, 100, 105, 255, 256, 70_000, u32::MAX] {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!(text, number.to_string());
        }
        for ip in ["0.0.0.0", "192.0.2.17", "255.255.255.255", "2001:db8::7"] {
            let mut text = String::new();
            push_ip(&mut text, Some(ip.parse().unwrap()));
            assert_eq!(text, ip);
        }
    }

    #[test]
    fn long_values_are_truncated() {
        let cc: Vec<String> = (0..1000).map(|number| format!("<address{number}@example.org>")).collect();
        let login = "é".repeat(MAX_LOGIN_BYTES);
        let details = Details::new(&DetailFields {
            login: Some(&login),
            message_id: &"é".repeat(MAX_MESSAGE_ID_BYTES),
            bcc: &cc,
            reply_to: &cc,
            ..fields(&cc, &[])
        });
        assert_eq!(details.login().map(str::len), Some(MAX_LOGIN_BYTES));
        assert_eq!(details.message_id().len(), MAX_MESSAGE_ID_BYTES);
        for kept in [details.cc().collect(), details.bcc().collect(), details.reply_to().collect::<Vec<_>>()] {
            assert_eq!(kept, cc[..kept.len()]);
            assert!(kept.iter().map(|address| address.len()).sum::<usize>() <= MAX_LIST_BYTES && kept.len() > 30);
        }
        assert!(details.lacks_addresses());
    }

    #[test]
    fn truncated_values_are_reported() {
        let many: Vec<String> = (0..100).map(|number| format!("<address{number}@example.org>")).collect();
        let long = "x".repeat(MAX_MESSAGE_ID_BYTES + 1);
        let to = header_summary(format!("To: {}\r\n\r\n", "a@x,".repeat(1001)).as_bytes()).truncated;
        let fields = DetailFields::default();
        let table = [
            (fields, false, true),
            (DetailFields { cc: &many, ..fields }, true, false),
            (DetailFields { bcc: &many, ..fields }, true, false),
            (DetailFields { truncated: to, ..fields }, true, false),
            (DetailFields { reply_to: &many, ..fields }, false, false),
            (DetailFields { message_id: &long, ..fields }, false, false),
            (DetailFields { from_text: &long, ..fields }, false, false),
        ];
        for (fields, lacks_addresses, is_complete) in table {
            let details = Details::new(&fields);
            assert_eq!(
                (details.lacks_addresses(), details.is_complete()),
                (lacks_addresses, is_complete),
                "{fields:?}"
            );
        }
    }

    #[test]
    fn missing_values_are_empty() {
        for details in [Details::default(), Details::new(&DetailFields::default()), Details::from_encoded("x\ny")] {
            assert_eq!((details.login(), details.attachments(), details.snippet()), (None, 0, ""));
            assert_eq!((details.cc().count(), details.recipients().count()), (0, 0));
        }
        assert!(Details::default().is_empty());
    }

    #[test]
    fn trace_names_sender_client_host_and_mailbox() {
        let details = Details::new(&fields(&[], &[]));
        let trace = details.trace(&MailboxName::from("bob".to_owned()), Timestamp::UNIX_EPOCH);
        let expected = "Return-Path: <ann@x.org>\r\nReceived: from laptop ([127.0.0.1]) by restante\r\n  \
            for <bob>; Thu, 01 Jan 1970 00:00:00 +0000\r\n";
        assert_eq!(trace, expected);
        let in_folder = details.trace(&MailboxName::from("shop:bob,A> b".to_owned()), Timestamp::UNIX_EPOCH);
        assert_eq!(in_folder, expected);
        let local = Details::new(&DetailFields { ip: None, ..fields(&[], &[]) });
        let trace = local.trace(&MailboxName::from("bob".to_owned()), Timestamp::UNIX_EPOCH);
        assert!(trace.starts_with(b"Return-Path: <ann@x.org>\r\nReceived: from laptop (local) by restante\r\n"));
    }

    #[test]
    fn client_of_http_has_an_address_instead_of_a_name() {
        let table = [
            (Some("192.0.2.7"), "[192.0.2.7]", "[192.0.2.7]"),
            (Some("2001:db8::7"), "[IPv6:2001:db8::7]", "[2001:db8::7]"),
            (None, "localhost", "local"),
        ];
        for (ip, helo, address) in table {
            let ip = ip.map(|ip| ip.parse().unwrap());
            let details = Details::new(&DetailFields { helo: "", ip, ..fields(&[], &[]) });
            assert_eq!((details.is_from_http(), &*details.helo()), (true, helo));
            let trace = details.trace(&MailboxName::from("bob".to_owned()), Timestamp::UNIX_EPOCH);
            let received = format!("Return-Path: <ann@x.org>\r\nReceived: from {helo} ({address}) by restante\r\n");
            assert!(trace.starts_with(received.as_bytes()), "{trace:?}");
        }
        let others = [Details::default(), Details::new(&fields(&[], &[]))];
        assert_eq!(others.map(|details| details.is_from_http()), [false; 2]);
    }
}
