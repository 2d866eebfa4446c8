//! The details of copies that were stored by a version of the program that did not store any.

use std::net::IpAddr;
use std::panic::catch_unwind;

use restante_mail::details::{DetailFields, Details};
use restante_mail::mime::{self, HeaderSummary, Preview, SummaryFields};

/// What the details of all copies of a message have in common.
pub(crate) struct BodyDetails {
    header: HeaderSummary,
    preview: Preview,
}

impl BodyDetails {
    /// Parses a body, or the start of one if `is_complete` is false. Returns `None` if the parser panics: a bug in it must not
    /// prevent the migration.
    pub(crate) fn parse(body: &[u8], is_complete: bool) -> Option<Self> {
        let (mut header, preview) = catch_unwind(|| mime::summarize(body)).ok()?;
        if !is_complete {
            header.truncated = SummaryFields::ALL;
        }
        Some(Self { header, preview })
    }

    /// Returns the details of the copy with these trace lines. The recipients of the envelope are not known.
    pub(crate) fn details(&self, trace: &[u8]) -> Details {
        let origin = str::from_utf8(trace).ok().and_then(Origin::parse).unwrap_or_default();
        Details::new(&DetailFields {
            sender: origin.sender,
            helo: origin.helo,
            ip: origin.ip,
            host: origin.host,
            ..DetailFields::of_source(&self.header, &self.preview)
        })
    }
}

impl Default for BodyDetails {
    /// Returns the details of a body of which nothing is known.
    fn default() -> Self {
        let header = HeaderSummary { truncated: SummaryFields::ALL, ..HeaderSummary::default() };
        Self { header, preview: Preview::default() }
    }
}

/// The values in the lines that [`Details::trace`] writes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Origin<'a> {
    sender: &'a str,
    helo: &'a str,
    ip: Option<IpAddr>,
    host: &'a str,
}

impl<'a> Origin<'a> {
    /// Parses trace lines. Returns `None` if they have another form.
    fn parse(trace: &'a str) -> Option<Self> {
        let (sender, rest) = trace.strip_prefix("Return-Path: <")?.split_once(">\r\nReceived: from ")?;
        let (client, host) = rest.split_once("\r\n  for <")?.0.rsplit_once(") by ")?;
        let (helo, address) = client.rsplit_once(" (")?;
        let ip = match address {
            "local" => None,
            address => Some(address.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?),
        };
        Some(Self { sender, helo, ip, host })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::naming::MailboxName;

    use super::*;

    #[test]
    fn details_are_read_from_trace_and_body() {
        let bob = MailboxName::from("bob".to_owned());
        let body =
            BodyDetails::parse(b"Message-ID: <1@x>\r\nCc: Cid <c@x.org>, d@x.org\r\n\r\nYour code is 1234\r\n", true)
                .unwrap();
        let table = [
            ("ann@x.org", "laptop", Some("192.0.2.1"), "mx.test"),
            ("", "a (b) by c", Some("2001:db8::1"), "mx"),
            ("\"a>\"@x", "[127.0.0.1]", None, ""),
            ("", "", None, "mx.test"),
        ];
        for (sender, helo, ip, host) in table {
            let address: Option<IpAddr> = ip.map(|ip| ip.parse().unwrap());
            let fields = DetailFields { sender, helo, ip: address, host, ..DetailFields::default() };
            let original = Details::new(&fields);
            let trace = original.trace(&bob, Timestamp::UNIX_EPOCH);
            let details = body.details(&trace);
            assert_eq!(details.trace(&bob, Timestamp::UNIX_EPOCH), trace);
            // A client without a name has one in the trace lines.
            let expected = (sender, original.helo(), ip.unwrap_or_default());
            assert_eq!((details.sender(), details.helo(), details.ip()), expected);
            assert_eq!(details.cc().collect::<Vec<_>>(), ["Cid <c@x.org>", "<d@x.org>"]);
            assert_eq!((details.snippet(), details.attachments()), ("Your code is 1234", 0));
            assert_eq!((details.login(), details.recipients().count()), (None, 0));
            assert_eq!((details.message_id(), details.lacks_from(), details.lacks_to()), ("1@x", true, true));
        }
    }

    #[test]
    fn other_traces_and_bodies_are_accepted() {
        let traces: [&[u8]; 8] = [
            b"",
            b"\xff",
            b"X-Trace: bob\r\n",
            b"Return-Path: <a@x>\r\n",
            b"Received: from a (local) by b\r\n  for <bob>; today\r\n",
            b"Return-Path: <a@x>\r\nReceived: from a (local) by b; today\r\n",
            b"Return-Path: <a@x>\r\nReceived: from c ([1.2.3]) by mx\r\n  for <bob>; today\r\n",
            b"Return-Path: <a@x>\r\nReceived: from c by mx\r\n  for <bob>; today\r\n",
        ];
        for trace in traces {
            let details = BodyDetails::parse(b"\0\xff", true).unwrap().details(trace);
            assert_eq!((details.sender(), &*details.helo(), details.ip()), ("", "", ""), "{trace:?}");
            assert!(!details.is_empty(), "it is migrated");
        }
        assert!(!BodyDetails::default().details(b"").is_empty(), "a body that cannot be parsed is migrated");
    }

    #[test]
    fn details_of_a_part_of_a_body_are_not_complete() {
        for is_complete in [true, false] {
            let body = BodyDetails::parse(b"Subject: x\r\n\r\nHi", is_complete).unwrap();
            assert_eq!(body.details(b"").is_complete(), is_complete);
        }
        assert!(!BodyDetails::default().details(b"").is_complete());
    }
}
