//! The header fields of the summary, parsed on arrival without reading anything else of the message.

use std::borrow::Cow;

use super::address_list::{AddressList, MAX_FIELD_BYTES, NamedAddress};
use super::charset::one_line;
use super::encoded_words;
use super::header::{Fields, HeaderField, RawField, unfold};

/// The maximum number of addresses of the To fields that are kept, and of the Cc, Bcc and Reply-To fields each.
const MAX_RECIPIENTS: usize = 1000;
/// The maximum length of these addresses together, in bytes. Every listing of a mailbox contains them.
const MAX_RECIPIENTS_BYTES: usize = 32 * 1024;
/// The number of bytes of To fields that are parsed, and of Cc, Bcc and Reply-To fields each. The rest is ignored.
const MAX_RECIPIENT_FIELD_BYTES: usize = 2 * MAX_FIELD_BYTES;
/// The maximum length of the tags, in bytes.
const MAX_TAGS_BYTES: usize = 1000;
/// The number of bytes of an X-Tags field that are decoded: enough for the maximum length, even with each character in
/// an encoded word.
const MAX_TAGS_FIELD_BYTES: usize = 32 * 1024;
/// The number of bytes of a Message-ID field that are read, and of a From field without an address.
const MAX_SHORT_FIELD_BYTES: usize = 4 * 1024;
/// The maximum length of the subject, in bytes.
const MAX_SUBJECT_BYTES: usize = 4 * 1024;
/// The number of bytes of a Subject field that are decoded: enough for the maximum length, even with each character in
/// an encoded word.
const MAX_SUBJECT_FIELD_BYTES: usize = 128 * 1024;

/// A header field of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryField {
    /// From.
    From,
    /// To.
    To,
    /// Cc.
    Cc,
    /// Bcc.
    Bcc,
    /// Reply-To.
    ReplyTo,
    /// Message-ID.
    MessageId,
    /// Subject.
    Subject,
}

impl SummaryField {
    /// The number of fields.
    pub const COUNT: usize = Self::Subject as usize + 1;
}

/// A set of header fields of the summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SummaryFields(u8);

impl SummaryFields {
    /// All fields.
    pub const ALL: Self = Self(u8::MAX);

    /// Adds a field if the condition is true.
    pub fn insert_if(&mut self, condition: bool, field: SummaryField) {
        self.0 |= u8::from(condition) << field as u8;
    }

    /// Returns whether a field is in the set.
    pub fn contains(self, field: SummaryField) -> bool {
        self.0 & 1 << field as u8 != 0
    }

    /// Returns whether no field is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Sender, recipients, subject and tags from the header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderSummary {
    /// The first address of From, as `Display Name <addr>` or `<addr>`. `None` if there is none.
    pub from: Option<String>,
    /// The decoded value of the first From field, if no From field has an address. Otherwise empty.
    pub from_text: String,
    /// The addresses of To in the same form. `None` if there are none. Empty for an explicitly empty list, such as
    /// `undisclosed-recipients:;`.
    pub to: Option<Vec<String>>,
    /// The addresses of Cc in the same form. Empty if there are none.
    pub cc: Vec<String>,
    /// The addresses of Bcc in the same form. Empty if there are none.
    pub bcc: Vec<String>,
    /// The addresses of Reply-To in the same form. Empty if there are none.
    pub reply_to: Vec<String>,
    /// The value of the first Message-ID field, without angle brackets. Empty if there is none.
    pub message_id: String,
    /// The decoded subject. Empty if there is none.
    pub subject: String,
    /// The decoded value of the first X-Tags field. `None` if there is none, or if it is blank.
    pub tags: Option<String>,
    /// The fields whose values are not complete, because they are above a limit.
    pub truncated: SummaryFields,
}

impl HeaderSummary {
    /// Returns the addresses of To, Cc and Bcc.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.to.iter().flatten().chain(&self.cc).chain(&self.bcc).map(String::as_str)
    }
}

/// Parses the summary fields of a message, at any length of its header. Other fields are only skipped.
pub fn header_summary(source: &[u8]) -> HeaderSummary {
    summarize_fields(source, |_| ()).0
}

/// Parses the summary fields of a message, and calls `record` with all other fields. Also returns the start of the body.
pub(super) fn summarize_fields(source: &[u8], mut record: impl FnMut(&RawField)) -> (HeaderSummary, usize) {
    let (mut from, mut from_text) = (None, None);
    let mut truncated = SummaryFields::default();
    let mut to = Recipients::default();
    let mut cc = Recipients::default();
    let mut bcc = Recipients::default();
    let mut reply_to = Recipients::default();
    let mut message_id = None;
    let mut subject = None;
    let mut tags = None;
    let mut fields = Fields::new(source, 0, |_| false);
    for field in &mut fields {
        let (name, value) = (&source[field.name.clone()], &source[field.value.clone()]);
        if name.eq_ignore_ascii_case(b"from") {
            if from.is_none() {
                from = NamedAddress::parse_list(value, 1).pop();
            }
            if from.is_none() && from_text.is_none() {
                from_text = Some((decode_short_field(value), value.len() > MAX_SHORT_FIELD_BYTES));
            }
        } else if name.eq_ignore_ascii_case(b"to") {
            to.add(value);
        } else if name.eq_ignore_ascii_case(b"cc") {
            cc.add(value);
        } else if name.eq_ignore_ascii_case(b"bcc") {
            bcc.add(value);
        } else if name.eq_ignore_ascii_case(b"reply-to") {
            reply_to.add(value);
        } else if name.eq_ignore_ascii_case(b"message-id") {
            message_id.get_or_insert_with(|| {
                truncated.insert_if(value.len() > MAX_SHORT_FIELD_BYTES, SummaryField::MessageId);
                decode_message_id(value)
            });
        } else if name.eq_ignore_ascii_case(b"subject") {
            subject.get_or_insert_with(|| {
                let (subject, is_truncated) = decode_subject(value);
                truncated.insert_if(is_truncated, SummaryField::Subject);
                subject
            });
        } else if name.eq_ignore_ascii_case(b"x-tags") {
            tags.get_or_insert_with(|| decode_tags(value));
        } else {
            record(&field);
        }
    }
    let (from_text, is_from_truncated) = match &from {
        Some(from) => (String::new(), from.is_display_truncated()),
        None => from_text.unwrap_or_default(),
    };
    truncated.insert_if(is_from_truncated, SummaryField::From);
    for (list, field) in [
        (&to, SummaryField::To),
        (&cc, SummaryField::Cc),
        (&bcc, SummaryField::Bcc),
        (&reply_to, SummaryField::ReplyTo),
    ] {
        truncated.insert_if(list.is_truncated, field);
    }
    let summary = HeaderSummary {
        from_text,
        from: from.as_ref().map(NamedAddress::display),
        to: to.into_list(),
        cc: cc.list,
        bcc: bcc.list,
        reply_to: reply_to.list,
        message_id: message_id.unwrap_or_default(),
        subject: subject.unwrap_or_default(),
        tags: tags.filter(|tags| !tags.is_empty()),
        truncated,
    };
    (summary, fields.body_start())
}

/// Formats recipients for the summary, and drops those beyond its limits.
pub fn summarize_recipients(addresses: impl IntoIterator<Item = NamedAddress>) -> Vec<String> {
    let mut to = Recipients::default();
    to.extend(addresses);
    to.list
}

/// Formats a subject for the summary: on one line, truncated to the maximum length.
pub fn summarize_subject(text: &str) -> String {
    truncate_subject(one_line(text)).0
}

/// Returns the complete subject if `subject` is the truncated start of it. `field` is the Subject field of the message.
/// Another subject, such as that of a script, is returned unchanged.
pub(super) fn complete_subject<'a>(subject: &'a str, field: &HeaderField) -> Cow<'a, str> {
    // Truncation removes at most an incomplete character more than necessary.
    if subject.len() + char::MAX.len_utf8() <= MAX_SUBJECT_BYTES {
        return Cow::Borrowed(subject);
    }
    let decoded = field.decoded_value();
    if decoded.starts_with(subject) { Cow::Owned(decoded) } else { Cow::Borrowed(subject) }
}

/// The addresses of the fields with one name, such as To, within the limits.
#[derive(Default)]
struct Recipients {
    list: Vec<String>,
    bytes: usize,
    /// The number of bytes of fields that were parsed.
    bytes_read: usize,
    /// Whether a field is an explicitly empty list.
    is_empty_group: bool,
    /// Whether addresses are missing or truncated.
    is_truncated: bool,
}

impl Recipients {
    fn add(&mut self, field: &[u8]) {
        if self.bytes > MAX_RECIPIENTS_BYTES || self.bytes_read >= MAX_RECIPIENT_FIELD_BYTES {
            self.is_truncated = true;
            return;
        }
        self.bytes_read += field.len().min(MAX_FIELD_BYTES);
        // One more address than is kept, to know whether there are more.
        let limit = MAX_RECIPIENTS + 1 - self.list.len();
        let AddressList { addresses, is_empty_group } = AddressList::parse_recipients(field, limit);
        self.is_truncated |= field.len() > MAX_FIELD_BYTES;
        self.is_empty_group |= is_empty_group;
        self.extend(addresses);
    }

    fn extend(&mut self, addresses: impl IntoIterator<Item = NamedAddress>) {
        for address in addresses {
            let displayed = address.display();
            self.bytes += displayed.len();
            self.is_truncated |= address.is_display_truncated();
            if self.bytes > MAX_RECIPIENTS_BYTES || self.list.len() == MAX_RECIPIENTS {
                self.is_truncated = true;
                return;
            }
            self.list.push(displayed);
        }
    }

    fn into_list(self) -> Option<Vec<String>> {
        (self.is_empty_group || !self.list.is_empty()).then_some(self.list)
    }
}

fn decode_message_id(field: &[u8]) -> String {
    decode_short_field(field).trim_matches(['<', '>', ' ']).to_owned()
}

/// Returns the decoded value of a header field. A long one is cut off.
pub fn decode_short_field(field: &[u8]) -> String {
    encoded_words::decode_line(&unfold(&field[..field.len().min(MAX_SHORT_FIELD_BYTES)]))
}

/// Returns the decoded subject, and whether it is truncated.
fn decode_subject(field: &[u8]) -> (String, bool) {
    let decoded = encoded_words::decode_line(&unfold(&field[..field.len().min(MAX_SUBJECT_FIELD_BYTES)]));
    let (subject, is_truncated) = truncate_subject(decoded);
    (subject, is_truncated || field.len() > MAX_SUBJECT_FIELD_BYTES)
}

fn decode_tags(field: &[u8]) -> String {
    let mut tags = encoded_words::decode_line(&unfold(&field[..field.len().min(MAX_TAGS_FIELD_BYTES)]));
    tags.truncate(tags.floor_char_boundary(MAX_TAGS_BYTES));
    tags
}

/// Returns the subject within the maximum length, and whether it was longer.
fn truncate_subject(mut subject: String) -> (String, bool) {
    let is_truncated = subject.len() > MAX_SUBJECT_BYTES;
    subject.truncate(subject.floor_char_boundary(MAX_SUBJECT_BYTES));
    (subject, is_truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_summary_fields() {
        type Row = (&'static [u8], Option<&'static str>, &'static [&'static str], &'static str);
        let table: &[Row] = &[
            (
                b"From: Jane <jane@x>\r\nTo: a@x,\r\n b@y\r\nSubject: Hello\r\n\r\nbody",
                Some("Jane <jane@x>"),
                &["<a@x>", "<b@y>"],
                "Hello",
            ),
            (b"FROM: a@x\nto: b@y\nTO: c@z\nSUBJECT: one\nSubject: two\n\n", Some("<a@x>"), &["<b@y>", "<c@z>"], "one"),
            (b"Subject: =?utf-8?Q?caf=C3?=\r\n =?utf-8?Q?=A9?= folded\r\n\r\n", None, &[], "café folded"),
            (b"Subject: caf\xe9\r\n\r\n", None, &[], "café"),
            (b"From: nobody\r\nFrom: a@x\r\n\r\n", Some("<a@x>"), &[], ""),
            (b"X: y\r\n\r\nFrom: a@x\r\nSubject: in the body", None, &[], ""),
            (b"", None, &[], ""),
        ];
        for (source, from, to, subject) in table {
            let summary = header_summary(source);
            assert_eq!(summary.from.as_deref(), *from, "{}", String::from_utf8_lossy(source));
            assert_eq!(summary.to.unwrap_or_default(), *to);
            assert_eq!(summary.subject, *subject);
        }
    }

    #[test]
    fn text_of_from_without_address_is_kept() {
        let table = [
            ("From: Help Desk\r\n\r\n", "Help Desk"),
            ("From: =?utf-8?Q?J=C3=B6rg?=\r\nFrom: other\r\n\r\n", "J\u{f6}rg"),
            ("From: nobody\r\nFrom: a@x\r\n\r\n", ""),
            ("To: a@x\r\n\r\n", ""),
        ];
        for (source, text) in table {
            assert_eq!(header_summary(source.as_bytes()).from_text, text, "{source}");
        }
    }

    #[test]
    fn recognizes_explicitly_empty_lists() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("To: undisclosed-recipients:;\r\n\r\n", Some(&[])),
            ("To: undisclosed-recipients:;\r\nTo: a@x\r\n\r\n", Some(&["<a@x>"])),
            ("To: somebody\r\n\r\n", None),
            ("To:\r\n\r\n", None),
            ("\r\n", None),
        ];
        for (source, to) in table {
            let found = header_summary(source.as_bytes()).to;
            assert_eq!(
                found.as_deref(),
                to.map(|to| to.iter().map(|&address| address.to_owned()).collect::<Vec<_>>()).as_deref(),
                "{source}"
            );
        }
    }

    #[test]
    fn parses_copies_and_tags() {
        type Row = (&'static str, &'static [&'static str], Option<&'static str>);
        let table: &[Row] = &[
            ("To: a@x\r\nCc: Sam <b@y>, c@z\r\nCC: d@x\r\n\r\n", &["Sam <b@y>", "<c@z>", "<d@x>"], None),
            ("X-Tags: one, two\r\nX-TAGS: three\r\n\r\n", &[], Some("one, two")),
            ("x-tags: =?utf-8?Q?caf=C3=A9?=,\r\n b\r\n\r\n", &[], Some("café, b")),
            ("X-Tags: \r\nX-Tags: late\r\nCc: undisclosed-recipients:;\r\n\r\n", &[], None),
            ("\r\nCc: a@x\r\nX-Tags: body\r\n", &[], None),
        ];
        for (source, cc, tags) in table {
            let summary = header_summary(source.as_bytes());
            assert_eq!(
                (summary.cc, summary.tags.as_deref()),
                (cc.iter().map(|&to| to.to_owned()).collect(), *tags),
                "{source}"
            );
        }
        let address = format!("{} <a@x>,", "é".repeat(400));
        let source =
            format!("Cc: {}\r\nX-Tags: {}\r\n\r\n", address.repeat(1000), "=?utf-8?Q?=E2=82=AC?= ".repeat(10_000));
        let summary = header_summary(source.as_bytes());
        assert!((30_000..=MAX_RECIPIENTS_BYTES).contains(&summary.cc.concat().len()));
        assert_eq!(summary.tags, Some("€".repeat(MAX_TAGS_BYTES / 3)));
    }

    #[test]
    fn parses_blind_copies_replies_and_ids() {
        type Row = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);
        let table: &[Row] = &[
            (
                "Bcc: a@x\r\nBCC: B <b@y>\r\nReply-To: c@z, D <d@x>\r\n\r\n",
                &["<a@x>", "B <b@y>"],
                &["<c@z>", "D <d@x>"],
                "",
            ),
            ("Message-ID: <1@x>\r\nMessage-ID: <2@x>\r\n\r\n", &[], &[], "1@x"),
            ("message-id:\r\n <1@x> \r\n\r\n", &[], &[], "1@x"),
            ("Message-Id: 1@x\r\n\r\n", &[], &[], "1@x"),
            ("Message-ID: <>\r\n\r\nBcc: a@x\r\nReply-To: a@x\r\nMessage-ID: <1@x>\r\n", &[], &[], ""),
        ];
        for (source, bcc, reply_to, message_id) in table {
            let summary = header_summary(source.as_bytes());
            assert_eq!(
                (summary.bcc, summary.reply_to),
                (bcc.iter().map(ToString::to_string).collect(), reply_to.iter().map(ToString::to_string).collect()),
                "{source}"
            );
            assert_eq!(summary.message_id, *message_id, "{source}");
        }
        let long = format!("Message-ID: <{}>\r\n\r\n", "x".repeat(100_000));
        assert_eq!(header_summary(long.as_bytes()).message_id.len(), MAX_SHORT_FIELD_BYTES - 2);
    }

    #[test]
    fn truncated_fields_are_reported() {
        use SummaryField::{Bcc, Cc, From, MessageId, ReplyTo, Subject, To};
        let many = |count: usize| "a@x,".repeat(count);
        let long_name = format!("{} <a@x>", "x".repeat(600));
        let names = format!("{} <a@x>,", "x".repeat(400)).repeat(100);
        let table = [
            (format!("From: a@x\r\nTo: {}\r\nSubject: {}\r\n", many(MAX_RECIPIENTS), "x".repeat(4096)), None),
            (format!("From: {long_name}\r\n"), Some(From)),
            (format!("From: {}\r\n", "x".repeat(5000)), Some(From)),
            (format!("From: {}\r\nFrom: a@x\r\n", "x".repeat(5000)), None),
            (format!("To: {}\r\n", many(MAX_RECIPIENTS + 1)), Some(To)),
            (format!("To: {}\r\nTo: b@x\r\n", many(MAX_RECIPIENTS)), Some(To)),
            (format!("To: {long_name}\r\n"), Some(To)),
            (format!("Cc: {names}\r\nCc: b@x\r\n"), Some(Cc)),
            (format!("Bcc: a@x, {}\r\n", " ".repeat(300_000)), Some(Bcc)),
            (format!("Reply-To: {}\r\n", many(MAX_RECIPIENTS + 1)), Some(ReplyTo)),
            (format!("Message-ID: <{}>\r\n", "x".repeat(5000)), Some(MessageId)),
            (format!("Subject: {}\r\n", "x".repeat(4097)), Some(Subject)),
            (format!("Subject: x{}\r\n", "\r\n ".repeat(50_000)), Some(Subject)),
        ];
        for (header, field) in table {
            let mut expected = SummaryFields::default();
            if let Some(field) = field {
                expected.insert_if(true, field);
            }
            let found = header_summary(format!("{header}\r\n").as_bytes()).truncated;
            assert_eq!(found, expected, "{field:?}: {}", &header[..header.len().min(40)]);
            assert_eq!((found.is_empty(), SummaryFields::ALL.contains(To)), (field.is_none(), true));
        }
    }

    #[test]
    fn accepts_byte_order_mark_before_a_field() {
        let source = "Received: x\r\n\u{feff}Subject: marked\r\nFrom: a@x\r\n\r\n";
        let summary = header_summary(source.as_bytes());
        assert_eq!((summary.subject.as_str(), summary.from.as_deref()), ("marked", Some("<a@x>")));
    }

    #[test]
    fn finds_fields_in_long_headers() {
        let many = "sam@example.org, ".repeat(4000);
        let filler = "X-Filler: x\r\n".repeat(10_000);
        let summary =
            header_summary(format!("To: {many}\r\n{filler}From: late@example.org\r\nSubject: late\r\n\r\n").as_bytes());
        assert_eq!((summary.subject.as_str(), summary.from.as_deref()), ("late", Some("<late@example.org>")));
        assert_eq!(summary.to.unwrap_or_default().len(), MAX_RECIPIENTS);
    }

    #[test]
    fn formats_values_of_other_sources() {
        let to = ["a@x", "b@y"].map(|address| NamedAddress::new("Jö\nrg", address));
        assert_eq!(summarize_recipients(to), ["Jö rg <a@x>", "Jö rg <b@y>"]);
        assert_eq!(summarize_subject(" a\r\nb "), "a  b");
        let many = vec![NamedAddress::new("", "a@x"); MAX_RECIPIENTS + 1];
        assert_eq!(summarize_recipients(many).len(), MAX_RECIPIENTS);
        let long = vec![NamedAddress::new(&"é".repeat(400), "a@x"); 100];
        assert!((30_000..=MAX_RECIPIENTS_BYTES).contains(&summarize_recipients(long).concat().len()));
        assert_eq!(summarize_subject(&"€".repeat(MAX_SUBJECT_BYTES)).len(), MAX_SUBJECT_BYTES / 3 * 3);
    }

    #[test]
    fn truncates_long_values() {
        let word = "=?utf-8?Q?=C3=A9=E2=82=AC?= ";
        let address = format!("{} <a@x>,", word.repeat(20));
        let source = format!(
            "From: {}\r\nTo: {}\r\nTo: b@y\r\nSubject: {}\r\n\r\n",
            "é".repeat(10_000) + " <a@x>",
            address.repeat(1000),
            word.repeat(10_000)
        );
        let summary = header_summary(source.as_bytes());
        assert!(summary.from.is_some_and(|from| from.len() < 1024 && from.ends_with("é <a@x>")));
        assert!(summary.to.as_ref().is_some_and(|to| to.iter().all(|address| address.ends_with("é€ <a@x>"))));
        assert!((30_000..=MAX_RECIPIENTS_BYTES).contains(&summary.to.unwrap_or_default().concat().len()));
        assert!((MAX_SUBJECT_BYTES - 3..=MAX_SUBJECT_BYTES).contains(&summary.subject.len()));
        assert!(summary.subject.chars().all(|c| "é€".contains(c)), "characters and words are not split");
    }
}
