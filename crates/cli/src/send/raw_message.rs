//! A complete message, as programs pass it to `sendmail`. Recipients are read from its header, missing header fields
//! are added, and Bcc is removed. Everything else is sent unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use restante_mail::date::mail_date;
use restante_mail::mime::NamedAddress;

/// The maximum number of recipients in a field.
const MAX_RECIPIENTS: usize = 1000;
/// The number of bytes of a name in one encoded word, whose length is limited to 75 characters (RFC 2047 section 2).
const MAX_ENCODED_WORD_BYTES: usize = 45;

/// A message split into header fields and body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawMessage<'a> {
    /// The fields, each with all its lines and line ends.
    fields: Vec<&'a [u8]>,
    body: &'a [u8],
}

/// Header fields that are added if they are missing.
#[derive(Debug)]
pub(super) struct DefaultHeaders<'a> {
    pub(super) now: Timestamp,
    /// The left part of the Message-ID.
    pub(super) unique_id: &'a str,
    pub(super) host: &'a str,
    /// The address and name of the sender; the name may be empty.
    pub(super) from: (&'a str, &'a str),
}

/// Ends the input at a line with a single dot, as `sendmail` does by default.
pub(super) fn truncate_at_dot(input: &[u8]) -> &[u8] {
    lines_before(input, |line| line.trim_ascii_end() == b".")
}

/// Returns the lines before the first one that matches.
pub(super) fn lines_before(input: &[u8], matches: impl Fn(&[u8]) -> bool) -> &[u8] {
    let lines = input.split_inclusive(|byte| *byte == b'\n').take_while(|line| !matches(line));
    &input[..lines.map(<[u8]>::len).sum()]
}

impl<'a> RawMessage<'a> {
    /// Splits header and body. Input that does not look like a header is a body without one.
    pub(super) fn parse(input: &'a [u8]) -> Self {
        let mut fields: Vec<&[u8]> = Vec::new();
        let (mut field_start, mut at) = (0, 0);
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            let end = at + line.len();
            let is_mbox_separator = at == 0 && (line.starts_with(b"From ") || line.starts_with(b">From "));
            if matches!(line, b"\n" | b"\r\n") {
                return Self { fields, body: &input[end..] };
            }
            match fields.last_mut() {
                Some(field) if line.starts_with(b" ") || line.starts_with(b"\t") => *field = &input[field_start..end],
                _ if is_field(line) => {
                    field_start = at;
                    fields.push(line);
                }
                _ if is_mbox_separator => {}
                _ => return Self { fields, body: &input[at..] },
            }
            at = end;
        }
        Self { fields, body: &[] }
    }

    /// Returns the addresses in To, Cc and Bcc.
    pub(super) fn recipients(&self) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| ["to", "cc", "bcc"].iter().any(|name| has_name(field, name)));
        fields.flat_map(|field| parse_addresses(field_value(field))).collect()
    }

    /// Returns the first address in From.
    pub(super) fn from(&self) -> Option<String> {
        let field = self.fields.iter().find(|field| has_name(field, "from"))?;
        parse_addresses(field_value(field)).into_iter().next()
    }

    /// Returns the message with missing header fields added, and without Bcc if `drop_bcc`.
    pub(super) fn with_defaults(&self, defaults: &DefaultHeaders<'_>, drop_bcc: bool) -> Vec<u8> {
        let mut message = Vec::new();
        let has = |name: &str| self.fields.iter().any(|field| has_name(field, name));
        if !has("date") {
            message.extend(format!("Date: {}\r\n", mail_date(defaults.now)).into_bytes());
        }
        if !has("from") {
            let (address, name) = defaults.from;
            message.extend(format!("From: {}<{address}>\r\n", encode_phrase(name)).into_bytes());
        }
        if !has("message-id") {
            message.extend(format!("Message-ID: <{}@{}>\r\n", defaults.unique_id, defaults.host).into_bytes());
        }
        for field in self.fields.iter().filter(|field| !(drop_bcc && has_name(field, "bcc"))) {
            message.extend_from_slice(field);
            // The last line of the input may have no line end.
            if !field.ends_with(b"\n") {
                message.extend_from_slice(b"\r\n");
            }
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(self.body);
        message
    }
}

/// Returns the addresses of a list separated by commas. A word without a domain is accepted, although it is not valid
/// in mail that is relayed: programs send to `root`.
pub(super) fn parse_addresses(list: &[u8]) -> Vec<String> {
    let is_atom = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte));
    let words = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let local_names =
        words.filter(|word| !word.is_empty() && is_atom(word)).map(|word| String::from_utf8_lossy(word).into_owned());
    let with_domain = NamedAddress::parse_list(list, MAX_RECIPIENTS).into_iter().map(|mailbox| mailbox.address);
    with_domain.chain(local_names.take(MAX_RECIPIENTS)).collect()
}

/// Returns the addresses of a list separated by commas. Returns `None` if an entry is invalid or there are none.
pub(super) fn parse_all_addresses(list: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for item in split_list(list) {
        match parse_addresses(item) {
            addresses if addresses.is_empty() => return None,
            addresses => found.extend(addresses),
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Splits a list at commas outside of quotes.
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
    // Superfluous commas are ignored.
    let several = list.contains(&b',');
    items.filter(move |item| !(several && item.trim_ascii().is_empty()))
}

/// Returns true if a line begins a header field: printable ASCII up to a colon (RFC 5322 section 2.2). Blanks before
/// the colon were allowed once (section 4.5).
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

/// Returns a display name before an address: quoted, or encoded if it is not ASCII (RFC 2047). Returns an empty text
/// for an empty name.
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
        let (word, tail) = rest.split_at(rest.floor_char_boundary(MAX_ENCODED_WORD_BYTES));
        words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(word)));
        rest = tail;
    }
    format!("{} ", words.join("\r\n "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(input: &str, drop_bcc: bool) -> String {
        let now = "2026-11-15T02:52:50Z".parse().unwrap();
        let defaults = DefaultHeaders { now, unique_id: "1.2", host: "here.test", from: ("ann@x.org", "Ann \"A\" B") };
        String::from_utf8(RawMessage::parse(input.as_bytes()).with_defaults(&defaults, drop_bcc)).unwrap()
    }

    #[test]
    fn adds_missing_headers_and_keeps_the_rest() {
        let added = "Date: Sun, 15 Nov 2026 02:52:50 +0000\r\nFrom: \"Ann \\\"A\\\" B\" <ann@x.org>\r\nMessage-ID: <1.2@here.test>\r\n";
        let complete = "From: b@x\r\ndate: now\r\nMESSAGE-ID : <x>\r\n\r\nhi\r\n";
        let table = [
            (complete, complete.to_owned()),
            ("From: b@x\nDate: x\nMessage-Id: x\n\nhi\n", "From: b@x\nDate: x\nMessage-Id: x\n\r\nhi\n".to_owned()),
            ("Subject: x\n y\n\nhi", format!("{added}Subject: x\n y\n\r\nhi")),
            ("", format!("{added}\r\n")),
            ("Subject: x", format!("{added}Subject: x\r\n\r\n")),
            // Without a header the whole input is the body.
            ("Hello Bob,\nhow are you: well?\n", format!("{added}\r\nHello Bob,\nhow are you: well?\n")),
            ("\nhi\n", format!("{added}\r\nhi\n")),
            // The separator line of an mbox is not part of the message.
            ("From ann Thu\nSubject: x\n\nhi\n", format!("{added}Subject: x\n\r\nhi\n")),
        ];
        for (input, expected) in table {
            assert_eq!(completed(input, false), expected, "{input:?}");
        }
    }

    #[test]
    fn reads_recipients_and_removes_bcc() {
        let input = "To: Ann <ann@x.org>, b@x.org\nBcc: secret@x.org,\n  other@x.org\nCC: c@x.org\nFrom: f@x\nDate: x\nMessage-ID: x\n\nTo: no@x\n";
        let raw = RawMessage::parse(input.as_bytes());
        assert_eq!(raw.recipients(), ["ann@x.org", "b@x.org", "secret@x.org", "other@x.org", "c@x.org"]);
        assert_eq!(raw.from().as_deref(), Some("f@x"));
        assert!(completed(input, false).contains("secret@x.org"));
        let without = completed(input, true);
        assert!(!without.contains("secret@x.org") && !without.contains("other@x.org"), "{without}");
    }

    #[test]
    fn parses_lists_of_addresses() {
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
    fn rejects_lists_with_invalid_entries() {
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
    fn ends_at_a_single_dot() {
        let table = [("a\n.\nb\n", "a\n"), ("a\r\n.\r\nb", "a\r\n"), (".", ""), ("a\n..\n", "a\n..\n"), ("a", "a")];
        for (input, expected) in table {
            assert_eq!(truncate_at_dot(input.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn encodes_names() {
        assert_eq!(encode_phrase(""), "");
        assert_eq!(encode_phrase("a\r\nBcc: x"), "\"aBcc: x\" ");
        assert_eq!(encode_phrase("Änn"), "=?UTF-8?B?w4Rubg==?= ");
        assert!(encode_phrase(&"ü".repeat(100)).lines().all(|line| line.trim().len() <= 75));
    }
}
