//! A mail that is ready, as programs give it to `sendmail`: its header is read for recipients, completed and freed of Bcc;
//! everything else stays as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use restante_mail::date::MailDate;
use restante_mail::mime::NamedAddress;

/// How many recipients are taken from a field.
const MAX_RECIPIENTS: usize = 1000;
/// How many bytes of a name go into one encoded word; it must not be longer than 75 characters (RFC 2047 section 2).
const MAX_ENCODED_WORD_BYTES: usize = 45;

/// A mail in header fields and body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawMessage<'a> {
    /// Each with all its lines, and their ends.
    fields: Vec<&'a [u8]>,
    body: &'a [u8],
}

/// What the header gets where it lacks it.
#[derive(Debug)]
pub(super) struct DefaultHeaders<'a> {
    pub(super) now: Timestamp,
    /// What is in front of the @ of a Message-ID.
    pub(super) unique_id: &'a str,
    pub(super) host: &'a str,
    /// The sender's address and name; the name may be empty.
    pub(super) from: (&'a str, &'a str),
}

/// Ends a mail at a line with nothing but a dot, as `sendmail` does where it is not told otherwise.
pub(super) fn truncate_at_dot(input: &[u8]) -> &[u8] {
    let mut end = 0;
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii_end() == b"." {
            break;
        }
        end += line.len();
    }
    &input[..end]
}

impl<'a> RawMessage<'a> {
    /// Tells header and body apart. What does not look like a header is a body without one.
    pub(super) fn parse(input: &'a [u8]) -> Self {
        let mut fields: Vec<&[u8]> = Vec::new();
        let (mut field_start, mut at) = (0, 0);
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            let end = at + line.len();
            let is_envelope = at == 0 && (line.starts_with(b"From ") || line.starts_with(b">From "));
            if matches!(line, b"\n" | b"\r\n") {
                return Self { fields, body: &input[end..] };
            }
            match fields.last_mut() {
                Some(field) if line.starts_with(b" ") || line.starts_with(b"\t") => *field = &input[field_start..end],
                _ if is_field(line) => {
                    field_start = at;
                    fields.push(line);
                }
                _ if is_envelope => {}
                _ => return Self { fields, body: &input[at..] },
            }
            at = end;
        }
        Self { fields, body: &[] }
    }

    /// The addresses in To, Cc and Bcc.
    pub(super) fn recipients(&self) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| ["to", "cc", "bcc"].iter().any(|name| has_name(field, name)));
        fields.flat_map(|field| parse_addresses(field_value(field))).collect()
    }

    /// The address of the first one in From.
    pub(super) fn from(&self) -> Option<String> {
        let field = self.fields.iter().find(|field| has_name(field, "from"))?;
        parse_addresses(field_value(field)).into_iter().next()
    }

    /// The mail with what it lacks, and without Bcc where recipients were taken from there.
    pub(super) fn with_defaults(&self, missing: &DefaultHeaders<'_>, drop_bcc: bool) -> Vec<u8> {
        let mut mail = Vec::new();
        let has = |name: &str| self.fields.iter().any(|field| has_name(field, name));
        if !has("date") {
            mail.extend(format!("Date: {}\r\n", MailDate(missing.now)).into_bytes());
        }
        if !has("from") {
            let (address, name) = missing.from;
            mail.extend(format!("From: {}<{address}>\r\n", encode_phrase(name)).into_bytes());
        }
        if !has("message-id") {
            mail.extend(format!("Message-ID: <{}@{}>\r\n", missing.unique_id, missing.host).into_bytes());
        }
        for field in self.fields.iter().filter(|field| !(drop_bcc && has_name(field, "bcc"))) {
            mail.extend_from_slice(field);
            // The last line of the input may have no end.
            if !field.ends_with(b"\n") {
                mail.extend_from_slice(b"\r\n");
            }
        }
        mail.extend_from_slice(b"\r\n");
        mail.extend_from_slice(self.body);
        mail
    }
}

/// The addresses of a list with commas. A word alone, which no mail that travels has, is somebody on this machine: programs
/// write to `root`.
pub(super) fn parse_addresses(list: &[u8]) -> Vec<String> {
    let is_atom = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte));
    let words = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let alone =
        words.filter(|word| !word.is_empty() && is_atom(word)).map(|word| String::from_utf8_lossy(word).into_owned());
    let whole = NamedAddress::parse_list(list, MAX_RECIPIENTS).into_iter().map(|mailbox| mailbox.address);
    whole.chain(alone.take(MAX_RECIPIENTS)).collect()
}

/// The addresses of a list with commas, all of which must be usable; none when there is something else, or nothing at all.
pub(super) fn parse_all_addresses(list: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for item in split_list(list) {
        match parse_addresses(item) {
            none if none.is_empty() => return None,
            some => found.extend(some),
        }
    }
    (!found.is_empty()).then_some(found)
}

/// What is between the commas of a list, where they are not quoted.
fn split_list(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let items = list.split(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ => return *byte == b',' && !quoted,
        }
        false
    });
    // A comma too many is no recipient too few.
    let several = list.contains(&b',');
    items.filter(move |item| !(several && item.trim_ascii().is_empty()))
}

/// Whether a line begins a header field: printable ASCII up to a colon (RFC 5322 section 2.2), before which blanks were
/// once allowed (section 4.5).
fn is_field(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let name = line[..colon].trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

fn has_name(field: &[u8], name: &str) -> bool {
    let end = field.iter().position(|byte| *byte == b':').unwrap_or(field.len());
    field[..end].trim_ascii_end().eq_ignore_ascii_case(name.as_bytes())
}

fn field_value(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == b':').map_or(field.len(), |colon| colon + 1);
    &field[end..]
}

/// A name before an address: quoted, or encoded when it is not ASCII (RFC 2047); nothing when it is empty.
fn encode_phrase(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    if name.is_empty() {
        return name;
    }
    if name.is_ascii() {
        return format!("\"{}\" ", name.replace('\\', "\\\\").replace('"', "\\\""));
    }
    let mut words = Vec::new();
    let mut rest = name.as_str();
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.floor_char_boundary(MAX_ENCODED_WORD_BYTES));
        words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(word)));
        rest = behind;
    }
    format!("{} ", words.join("\r\n "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(input: &str, drop_bcc: bool) -> String {
        let now = "2026-11-15T02:52:50Z".parse().unwrap();
        let missing = DefaultHeaders { now, unique_id: "1.2", host: "here.test", from: ("ann@x.org", "Ann \"A\" B") };
        String::from_utf8(RawMessage::parse(input.as_bytes()).with_defaults(&missing, drop_bcc)).unwrap()
    }

    #[test]
    fn what_is_missing_is_added_and_the_rest_stays() {
        let made = "Date: Sun, 15 Nov 2026 02:52:50 +0000\r\nFrom: \"Ann \\\"A\\\" B\" <ann@x.org>\r\nMessage-ID: <1.2@here.test>\r\n";
        let whole = "From: b@x\r\ndate: now\r\nMESSAGE-ID : <x>\r\n\r\nhi\r\n";
        let table = [
            (whole, whole.to_owned()),
            ("From: b@x\nDate: x\nMessage-Id: x\n\nhi\n", "From: b@x\nDate: x\nMessage-Id: x\n\r\nhi\n".to_owned()),
            ("Subject: x\n y\n\nhi", format!("{made}Subject: x\n y\n\r\nhi")),
            ("", format!("{made}\r\n")),
            ("Subject: x", format!("{made}Subject: x\r\n\r\n")),
            // No header at all: all of it is body.
            ("Hello Bob,\nhow are you: well?\n", format!("{made}\r\nHello Bob,\nhow are you: well?\n")),
            ("\nhi\n", format!("{made}\r\nhi\n")),
            // The line that an mbox has in front is no part of the mail.
            ("From ann Thu\nSubject: x\n\nhi\n", format!("{made}Subject: x\n\r\nhi\n")),
        ];
        for (input, expected) in table {
            assert_eq!(completed(input, false), expected, "{input:?}");
        }
    }

    #[test]
    fn recipients_are_in_three_fields_and_one_of_them_is_secret() {
        let input = "To: Ann <ann@x.org>, b@x.org\nBcc: secret@x.org,\n  other@x.org\nCC: c@x.org\nFrom: f@x\nDate: x\nMessage-ID: x\n\nTo: no@x\n";
        let ready = RawMessage::parse(input.as_bytes());
        assert_eq!(ready.recipients(), ["ann@x.org", "b@x.org", "secret@x.org", "other@x.org", "c@x.org"]);
        assert_eq!(ready.from().as_deref(), Some("f@x"));
        assert!(completed(input, false).contains("secret@x.org"));
        let without = completed(input, true);
        assert!(!without.contains("secret@x.org") && !without.contains("other@x.org"), "{without}");
    }

    #[test]
    fn lists_of_addresses() {
        let table: &[(&str, &[&str])] = &[
            ("root", &["root"]),
            (" Ann <ann@x.org>, root,bob@x.org\n", &["ann@x.org", "bob@x.org", "root"]),
            ("\"Doe, Ann\" <ann@x.org>", &["ann@x.org"]),
            ("", &[]),
            ("Two words", &[]),
        ];
        for (list, expected) in table {
            assert_eq!(parse_addresses(list.as_bytes()), *expected, "{list}");
        }
    }

    #[test]
    fn lists_with_something_unusable() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("ann@x.org", Some(&["ann@x.org"])),
            ("root, \"Doe, \\\"A\\\" Ann\" <ann@x.org>,", Some(&["root", "ann@x.org"])),
            ("", None),
            (",", None),
            ("bad <>", None),
            ("ann@x.org, bad <>", None),
            ("two words,ann@x.org", None),
        ];
        for (list, expected) in table {
            let found = parse_all_addresses(list.as_bytes());
            assert_eq!(found, expected.map(|list| list.iter().map(ToString::to_string).collect()), "{list}");
        }
    }

    #[test]
    fn a_dot_alone_ends_it() {
        let table = [("a\n.\nb\n", "a\n"), ("a\r\n.\r\nb", "a\r\n"), (".", ""), ("a\n..\n", "a\n..\n"), ("a", "a")];
        for (input, expected) in table {
            assert_eq!(truncate_at_dot(input.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn names() {
        assert_eq!(encode_phrase(""), "");
        assert_eq!(encode_phrase("a\r\nBcc: x"), "\"aBcc: x\" ");
        assert_eq!(encode_phrase("Änn"), "=?UTF-8?B?w4Rubg==?= ");
        assert!(encode_phrase(&"ü".repeat(100)).lines().all(|line| line.trim().len() <= 75));
    }
}
