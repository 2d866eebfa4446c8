//! The details of copies that were stored by a version of the program that did not store any.

use std::net::IpAddr;

use restante_mail::details::{DetailFields, Details};
use restante_mail::mime;

/// The number of bytes at the start of a body that are parsed.
pub(crate) const PARSED_BYTES: usize = 64 << 10;

/// Returns what the trace lines and the start of the body contain. The recipients of the envelope are not known.
pub(crate) fn migrated_details(trace: &[u8], body: &[u8]) -> Details {
    let body = &body[..body.len().min(PARSED_BYTES)];
    let origin = str::from_utf8(trace).ok().and_then(Origin::parse).unwrap_or_default();
    let (header, preview) = mime::summarize(body);
    Details::new(&DetailFields {
        sender: origin.sender,
        helo: origin.helo,
        ip: origin.ip,
        login: None,
        host: origin.host,
        attachments: preview.attachments,
        snippet: &preview.snippet,
        cc: &header.cc,
        recipients: &[],
    })
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
        for ip in [None, Some([192, 0, 2, 1].into()), Some("2001:db8::1".parse().unwrap())] {
            let (sender, helo, host) = ("a@x.org", "[192.0.2.1] (by) x", "mx.test");
            let fields = DetailFields { sender, helo, ip, host, ..DetailFields::default() };
            let trace = Details::new(&fields).trace(&bob, Timestamp::UNIX_EPOCH);
            let body = b"Cc: Cid <c@x.org>, d@x.org\r\n\r\nYour code is 1234\r\n";
            let details = migrated_details(&trace, body);
            assert_eq!(details.trace(&bob, Timestamp::UNIX_EPOCH), trace);
            assert_eq!((details.sender(), details.helo()), (sender, helo));
            assert_eq!(details.ip(), ip.map(|ip: IpAddr| ip.to_string()).unwrap_or_default());
            assert_eq!(details.cc().collect::<Vec<_>>(), ["Cid <c@x.org>", "<d@x.org>"]);
            assert_eq!((details.snippet(), details.attachments()), ("Your code is 1234", 0));
            assert_eq!((details.login(), details.recipients().count()), (None, 0));
        }
    }

    #[test]
    fn other_traces_and_bodies_are_accepted() {
        let traces: [&[u8]; 6] = [
            b"",
            b"\xff",
            b"X-Trace: bob\r\n",
            b"Return-Path: <a@x>\r\n",
            b"Return-Path: <a@x>\r\nReceived: from c ([1.2.3]) by mx\r\n  for <bob>; today\r\n",
            b"Return-Path: <a@x>\r\nReceived: from c by mx\r\n  for <bob>; today\r\n",
        ];
        for trace in traces {
            let details = migrated_details(trace, b"\0\xff");
            assert_eq!((details.sender(), details.helo(), details.ip()), ("", "", ""), "{trace:?}");
            assert!(!details.is_empty(), "it is migrated");
        }
        let long = [b"Subject: x\r\n\r\n".to_vec(), vec![b'x'; PARSED_BYTES], b"\r\nCc: c@x\r\n".to_vec()].concat();
        assert_eq!(migrated_details(b"", &long).cc().count(), 0);
    }
}
