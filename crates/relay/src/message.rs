//! The content of messages that are sent: the header fields that change, line ends, and the detection of loops. The
//! functions are pure. The content comes from other people, so nothing in it may add a header field or end the message.

use restante_mail::line_ends::with_crlf;
use restante_mail::message::{Source, Summary};
use restante_mail::mime::RawFields;

use crate::settings::Target;

/// The header field that every sent message gets. Its value is the identity of the queue, and the domain of the server
/// for readers. Servers can have the same domain, and the nodes of a cluster different ones.
const RELAY_FIELD: &str = "X-Restante-Relay";
/// The header field with the former value of From.
const ORIGINAL_FROM_FIELD: &str = "X-Original-From";
/// The number of servers of this kind that may send a message, one after the other.
const MAX_RELAY_FIELDS: usize = 5;
/// The number of servers of any kind that may pass a message on. RFC 5321 section 6.3 recommends at least 100, but
/// mail for tests has short ways.
const MAX_RECEIVED_FIELDS: usize = 30;
/// The number of bytes in which loops are detected. Servers add their fields at the top.
const MAX_SCANNED_BYTES: usize = 1024 * 1024;
/// The maximum length of a display name that is kept, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// The maximum length of the first line of a subject with a prefix, in bytes.
const MAX_SUBJECT_LINE_BYTES: usize = 76;
/// The maximum length of the former value of From, in characters.
const MAX_ORIGINAL_FROM_CHARS: usize = 200;

/// Returns a message as it is sent to a target. All lines end in CRLF. `prefix` is added before the subject.
pub(crate) fn compose(source: &Source, target: &Target, prefix: &str, identity: &str, domain: &str) -> Vec<u8> {
    // Servers differ in whether a bare CR or LF ends a line, so that a message with one could end early for some of them
    // (SMTP smuggling).
    let (trace, message) = (with_crlf(&source.trace), with_crlf(&source.body));
    let mut output = Vec::with_capacity(trace.len() + message.len() + 512);
    write_field(&mut output, RELAY_FIELD, &one_line(format!("{identity} {domain}").as_bytes(), usize::MAX));
    // The server that delivers the message adds Return-Path itself (RFC 5321 section 4.4).
    for (name, value) in RawFields::new(&trace).filter(|(name, _)| !is_named(name, "Return-Path")) {
        write_raw_field(&mut output, name, value);
    }

    let (mut has_from, mut has_subject) = (false, prefix.is_empty());
    let mut fields = RawFields::new(&message);
    for (name, value) in fields.by_ref() {
        match &target.from {
            _ if is_named(name, "Bcc") || is_named(name, "Resent-Bcc") => {}
            Some(address) if is_named(name, "From") => {
                // Only the first one is replaced. Further ones are not valid, and left out.
                if !has_from {
                    let original = one_line(value, MAX_ORIGINAL_FROM_CHARS);
                    write_field(&mut output, "From", &replaced_from(value, &address.text()));
                    write_field(&mut output, ORIGINAL_FROM_FIELD, &original);
                }
                has_from = true;
            }
            _ if !has_subject && is_named(name, "Subject") => {
                write_raw_field(&mut output, name, &prefixed_subject(prefix, value));
                has_subject = true;
            }
            _ => write_raw_field(&mut output, name, value),
        }
    }
    if let Some(address) = target.from.as_ref().filter(|_| !has_from) {
        write_field(&mut output, "From", &format!("<{}>", address.text()));
    }
    if !has_subject {
        write_field(&mut output, "Subject", prefix);
    }
    output.extend_from_slice(b"\r\n");
    let body = fields.into_body();
    output.extend_from_slice(body);
    if !body.is_empty() && !body.ends_with(b"\r\n") {
        output.extend_from_slice(b"\r\n");
    }
    output
}

/// Returns the value of a Subject field with a text before it. The former value starts on a line of its own if both do not fit on
/// one: a line with an encoded word has at most 76 characters (RFC 2047 section 2).
fn prefixed_subject(prefix: &str, value: &[u8]) -> Vec<u8> {
    let value = value.trim_ascii_start();
    let first_line = value.iter().position(|byte| *byte == b'\r').unwrap_or(value.len());
    let separator: &[u8] = match first_line {
        0 => b"",
        length if "Subject:  ".len() + prefix.len() + length > MAX_SUBJECT_LINE_BYTES => b"\r\n ",
        _ => b" ",
    };
    [b" ", prefix.as_bytes(), separator, value].concat()
}

/// Returns why a message is in a loop, if it is. `by_rule`: also if it was sent from the queue with this identity before.
pub(crate) fn find_loop(body: &[u8], identity: &str, by_rule: bool) -> Option<&'static str> {
    let (mut relay_fields, mut received_fields) = (0, 0);
    for (name, value) in RawFields::new(&body[..body.len().min(MAX_SCANNED_BYTES)]) {
        if is_named(name, RELAY_FIELD) {
            relay_fields += 1;
            let sent_by = value.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
            if by_rule && sent_by.is_some_and(|word| word.eq_ignore_ascii_case(identity.as_bytes())) {
                return Some("this server has sent it before");
            }
        } else if is_named(name, "Received") {
            received_fields += 1;
        }
        if relay_fields >= MAX_RELAY_FIELDS {
            return Some("it has 5 or more header fields X-Restante-Relay");
        }
        if received_fields >= MAX_RECEIVED_FIELDS {
            return Some("it has 30 or more header fields Received");
        }
    }
    None
}

/// Returns the sender of the envelope for a target. Empty for the null reverse-path.
pub(crate) fn envelope_sender(target: &Target, summary: &Summary) -> String {
    match target.return_path.as_ref().or(target.from.as_ref()) {
        Some(address) => address.text(),
        None => summary.details.sender().to_owned(),
    }
}

/// Returns the new value of From. The display name is kept if it needs no parsing.
fn replaced_from(value: &[u8], address: &str) -> String {
    let name = value.iter().position(|&byte| byte == b'<').map(|end| one_line(&value[..end], usize::MAX));
    match name.filter(|name| is_simple_name(name)) {
        Some(name) => format!("{name} <{address}>"),
        None => format!("<{address}>"),
    }
}

/// Returns whether a display name is a list of words, which may be encoded (RFC 2047), or a quoted string without
/// escapes.
fn is_simple_name(name: &str) -> bool {
    let quoted = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_valid = match quoted {
        Some(text) => text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')),
        None => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" !#$%&'*+-./=?^_`{|}~".contains(&byte)),
    };
    is_valid && !name.is_empty() && name.len() <= MAX_NAME_BYTES
}

/// Returns a value as one line without control characters, at most this number of characters long.
fn one_line(value: &[u8], max_chars: usize) -> String {
    let text = String::from_utf8_lossy(value).replace(char::is_control, " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

fn is_named(name: &[u8], expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected.as_bytes())
}

fn write_field(output: &mut Vec<u8>, name: &str, value: &str) {
    output.extend([name.as_bytes(), b": ", value.as_bytes(), b"\r\n"].into_iter().flatten());
}

/// Writes a field whose value may be folded.
fn write_raw_field(output: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b":", value, b"\r\n"] {
        output.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use restante_mail::address::{Address, Alphabet};

    use super::*;
    use crate::session::tests::test_target;

    const IDENTITY: &str = "0123456789abcdef0123456789abcdef";

    fn composed(body: &[u8], from: Option<&str>) -> String {
        composed_with_prefix(body, from, "")
    }

    fn composed_with_prefix(body: &[u8], from: Option<&str>, prefix: &str) -> String {
        let trace = "Return-Path: <ann@x.org>\r\nReceived: from a (local) by mx\r\n  for <bob>; today\r\n";
        let source = Source { trace: trace.into(), body: Bytes::copy_from_slice(body) };
        let from = from.map(|address| Address::parse(address, Alphabet::Utf8).unwrap());
        let text = compose(
            &source,
            &crate::settings::Target { from, ..test_target() },
            prefix,
            IDENTITY,
            "mx.test\r\nInjected: 1",
        );
        let text = String::from_utf8_lossy(&text).into_owned();
        let relay = format!("X-Restante-Relay: {IDENTITY} mx.test Injected: 1\r\n");
        let trace = format!("{relay}Received: from a (local) by mx\r\n  for <bob>; today\r\n");
        text.strip_prefix(&trace).expect("the trace").to_owned()
    }

    #[test]
    fn composes_messages() {
        let table = [
            ("Subject: x\r\n\r\nhi\r\n", "Subject: x\r\n\r\nhi\r\n"),
            ("Subject: x\r\n folded\r\n\r\n.\r\n", "Subject: x\r\n folded\r\n\r\n.\r\n"),
            // Bcc is removed, with its folded lines, in the header only.
            ("A: 1\r\nBcc: a@x.org,\r\n b@x.org\r\nB: 2\r\n\r\nBcc: c\r\n", "A: 1\r\nB: 2\r\n\r\nBcc: c\r\n"),
            ("bCC : a@x.org\r\nBCC:\r\n\ta\r\nResent-Bcc: b\r\n\r\n", "\r\n"),
            ("A: 1\rBcc: a\r\r\nx", "A: 1\r\n\r\nx\r\n"),
            // Line ends.
            ("A: 1\nB: 2\n\nx\ny", "A: 1\r\nB: 2\r\n\r\nx\r\ny\r\n"),
            ("A: 1\r\n\r\na\r.\r\nb\n.\r\nc\r\r\nd", "A: 1\r\n\r\na\r\n.\r\nb\r\n.\r\nc\r\n\r\nd\r\n"),
            // Without a header or a body.
            ("", "\r\n"),
            ("hello\r\nworld", "\r\nhello\r\nworld\r\n"),
            (" folded\r\ntext", "\r\n folded\r\ntext\r\n"),
            ("\r\nhello", "\r\nhello\r\n"),
            ("A: 1", "A: 1\r\n\r\n"),
            ("A: 1\nhello\nBcc: a\n\nx", "A: 1\r\n\r\nx\r\n"),
        ];
        for (body, expected) in table {
            assert_eq!(composed(body.as_bytes(), None), expected, "{body:?}");
        }
    }

    #[test]
    fn adds_a_prefix_to_the_subject() {
        let table = [
            (
                "A: 1\r\nsubject:  Hi\r\n there\r\nSubject: x\r\n\r\n",
                "A: 1\r\nsubject: [QA] Hi\r\n there\r\nSubject: x\r\n\r\n",
            ),
            (
                "Subject: =?UTF-8?Q?J=C3=BC?=\r\n\r\nSubject: x",
                "Subject: [QA] =?UTF-8?Q?J=C3=BC?=\r\n\r\nSubject: x\r\n",
            ),
            ("A: 1\r\n\r\n", "A: 1\r\nSubject: [QA]\r\n\r\n"),
            ("Subject:\r\n\r\n", "Subject: [QA]\r\n\r\n"),
            ("Subject:\r\n Hi\r\n\r\n", "Subject: [QA] Hi\r\n\r\n"),
        ];
        for (body, expected) in table {
            assert_eq!(composed_with_prefix(body.as_bytes(), None, "[QA]"), expected);
        }
        let long = "x".repeat(990);
        let composed = composed_with_prefix(format!("Subject: {long}\r\n\r\n").as_bytes(), None, "[QA]");
        assert_eq!(composed, format!("Subject: [QA]\r\n {long}\r\n\r\n"), "lines of at most 998 bytes");
    }

    #[test]
    fn replaces_from() {
        let table = [
            ("Ann <ann@x.org>", "Ann <qa@y.org>", "Ann <ann@x.org>"),
            ("ann@x.org", "<qa@y.org>", "ann@x.org"),
            ("\"Ann, QA\"\r\n <ann@x.org>", "\"Ann, QA\" <qa@y.org>", "\"Ann, QA\" <ann@x.org>"),
            ("=?UTF-8?Q?J=C3=BCrg?= <j@x.org>", "=?UTF-8?Q?J=C3=BCrg?= <qa@y.org>", "=?UTF-8?Q?J=C3=BCrg?= <j@x.org>"),
            ("a@x.org, B <b@x.org>", "<qa@y.org>", "a@x.org, B <b@x.org>"),
            ("\"a\\\" <b@x.org>", "<qa@y.org>", "\"a\\\" <b@x.org>"),
            ("Jürg <j@x.org>", "<qa@y.org>", "Jürg <j@x.org>"),
            ("A\0B\u{1b} <a@x.org>", "A B <qa@y.org>", "A B <a@x.org>"),
        ];
        for (value, from, original) in table {
            let body = format!("A: 1\r\nFrom: {value}\r\nfrom: x@x.org\r\n\r\nhi\r\n");
            let expected = format!("A: 1\r\nFrom: {from}\r\nX-Original-From: {original}\r\n\r\nhi\r\n");
            assert_eq!(composed(body.as_bytes(), Some("qa@y.org")), expected);
        }
        assert_eq!(composed(b"A: 1\r\n\r\n", Some("qa@y.org")), "A: 1\r\nFrom: <qa@y.org>\r\n\r\n");
        let long = composed(format!("From: {}\r\n\r\n", "x".repeat(100_000)).as_bytes(), Some("qa@y.org"));
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn finds_loops() {
        let relayed = |value: &str, count| format!("X-Restante-Relay: {value}\r\n").repeat(count);
        let received = |count| "received: from a\r\n by b\r\n".repeat(count);
        let table = [
            (String::new(), false, false),
            (relayed(IDENTITY, 1), false, true),
            (relayed(&format!("\r\n\t{} mx.test", IDENTITY.to_uppercase()), 1), false, true),
            (relayed(&format!("{IDENTITY}0 mx.test"), 1), false, false),
            (relayed(&format!("other {IDENTITY}"), 1), false, false),
            (relayed("", 1), false, false),
            (relayed("other.test", 4), false, false),
            (relayed("other.test", 5), true, true),
            (received(29), false, false),
            (received(30), true, true),
            (format!("\r\n{}{}", relayed(IDENTITY, 9), received(99)), false, false),
        ];
        for (body, is_loop, is_loop_by_rule) in table {
            assert_eq!(find_loop(body.as_bytes(), IDENTITY, false).is_some(), is_loop, "{body}");
            assert_eq!(find_loop(body.as_bytes(), IDENTITY, true).is_some(), is_loop_by_rule, "{body}");
        }
    }

    #[test]
    fn a_sent_message_is_recognized() {
        let source = Source { trace: Bytes::new(), body: "A: 1\r\n\r\nx".into() };
        let sent = compose(&source, &test_target(), "", IDENTITY, "mx.test");
        assert!(find_loop(&sent, IDENTITY, true).is_some());
        assert!(find_loop(&sent, "fedcba9876543210fedcba9876543210", true).is_none(), "another server");
    }

    proptest! {
        #[test]
        fn all_lines_end_in_crlf_and_no_bcc_survives(
            body in "((Bcc|bcC|From|A)( |)(:|)|[a .\r\n\t]|\r\n){0,24}",
            has_from in any::<bool>(),
        ) {
            let text = composed(body.as_bytes(), has_from.then_some("qa@y.org"));
            prop_assert!(text.ends_with("\r\n"));
            prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
            let text = ["\r\n", &text].concat();
            let (header, _) = text.split_once("\r\n\r\n").expect("an empty line");
            for line in header.split("\r\n") {
                let name = line.split(':').next().unwrap_or_default().trim_end();
                prop_assert!(!name.eq_ignore_ascii_case("bcc"), "{:?}", text);
            }
        }
    }
}
