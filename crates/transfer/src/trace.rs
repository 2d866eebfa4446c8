//! Recognition of the trace lines that a delivery adds before a message. Restante and Inbucket write the same format.
//! Received lines of other servers are part of the message and are kept there.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// The maximum length of a trace line, which contains two names and two addresses.
const MAX_LINE_BYTES: usize = 4096;

/// The trace lines before a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trace<'a> {
    /// Their length in bytes.
    pub(super) len: usize,
    /// The sender of the envelope, without brackets. Older versions of Inbucket do not write it.
    pub(super) return_path: Option<&'a str>,
    /// The mailbox or the address that the message was delivered to.
    pub(super) mailbox: &'a str,
    /// The time of delivery.
    pub(super) received: Timestamp,
}

impl<'a> Trace<'a> {
    /// Parses the trace lines at the start of a message. LF line ends are accepted, because some tools rewrite them.
    pub(super) fn parse(source: &'a [u8]) -> Option<Self> {
        let mut rest = source;
        let mut line = next_line(&mut rest)?;
        let return_path = line.strip_prefix("Return-Path: <").and_then(|path| path.strip_suffix('>'));
        if return_path.is_some() {
            line = next_line(&mut rest)?;
        }
        if !is_received(line) {
            return None;
        }
        let folded = next_line(&mut rest)?;
        let recipient = folded.trim_start_matches([' ', '\t']);
        if recipient.len() == folded.len() {
            return None;
        }
        let (mailbox, date) = recipient.strip_prefix("for <")?.rsplit_once(">; ")?;
        Some(Self { len: source.len() - rest.len(), return_path, mailbox, received: timestamp(date)? })
    }
}

/// Removes a line from the start and returns it without its end.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n')?;
    let (line, tail) = (&rest[..end], &rest[end + 1..]);
    *rest = tail;
    std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()
}

/// Returns whether a line is `Received: from {helo} ([{ip}]) by {domain}`, or has `(local)` for a peer without an
/// address.
fn is_received(line: &str) -> bool {
    let parts = line.strip_prefix("Received: from ").and_then(|line| line.rsplit_once(" by "));
    parts.is_some_and(|(peer, domain)| {
        let is_known_peer = peer.ends_with(" (local)") || (peer.ends_with("])") && peer.contains(" (["));
        is_known_peer && !domain.is_empty() && !domain.contains([' ', '\t'])
    })
}

/// Parses a date of RFC 5322. Inbucket appends the name of the zone in parentheses.
fn timestamp(date: &str) -> Option<Timestamp> {
    let date = date.split_once(" (").map_or(date, |(date, _)| date);
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "Sun, 15 Nov 2026 12:00:00 +0000";

    #[test]
    fn parses_lines_of_restante_and_inbucket() {
        let ours = format!(
            "Return-Path: <ann@x.org>\r\nReceived: from client.test ([192.0.2.1]) by mx.test\r\n  for <bob>; {NOON}\r\n"
        );
        let local = format!("Return-Path: <>\r\nReceived: from a (local) by mx\r\n  for <bob@x.org>; {NOON}\r\n");
        let old = format!("Received: from a b ([::1]) by inbucket\r\n  for <Bob@X.org>; {NOON} (UTC)\r\n");
        let elsewhere =
            "Received: from a ([::1]) by b\r\n  for <bob>; Sun, 15 Nov 2026 13:00:00 +0100 (CET)\r\n".to_owned();
        let table = [
            (ours.clone(), Some("ann@x.org"), "bob"),
            (ours.replace('\r', ""), Some("ann@x.org"), "bob"),
            (local, Some(""), "bob@x.org"),
            (old, None, "Bob@X.org"),
            (elsewhere, None, "bob"),
        ];
        let noon = "2026-11-15T12:00:00Z".parse().unwrap();
        for (lines, return_path, mailbox) in table {
            let source = format!("{lines}Subject: x\r\n\r\nhello");
            let expected = Trace { len: lines.len(), return_path, mailbox, received: noon };
            assert_eq!(Trace::parse(source.as_bytes()), Some(expected), "{lines}");
        }
    }

    #[test]
    fn ignores_lines_of_other_servers() {
        let table = [
            String::new(),
            "Subject: x\r\n\r\n".to_owned(),
            "Return-Path: <a@x>\r\nSubject: x\r\n\r\n".to_owned(),
            "Return-Path: <a@x>\r\n".to_owned(),
            format!("Received: from a ([::1]) by b with ESMTP id 7\r\n\tfor <bob@x.org>; {NOON}\r\n"),
            format!("Received: from a (a.x.org [192.0.2.1])\r\n\tby b for <bob@x.org>; {NOON}\r\n"),
            format!("Received: from a ([::1]) by b\r\nfor <bob>; {NOON}\r\n"),
            "Received: from a ([::1]) by b\r\n  for <bob>; yesterday\r\n".to_owned(),
            format!("Received: from a ([::1]) by b\r\n  for <bob>; {NOON}"),
            format!("Received: from {} ([::1]) by b\r\n  for <bob>; {NOON}\r\n", "a".repeat(MAX_LINE_BYTES)),
        ];
        for source in table {
            assert_eq!(Trace::parse(source.as_bytes()), None, "{source}");
        }
        assert_eq!(Trace::parse(b"Received: from \xff ([::1]) by b\r\n  for <b>; x\r\n"), None);
    }
}
