//! What is known about a copy of a message beyond its summary: the envelope, the origin and a preview of the text.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use crate::date::MailDate;
use crate::naming::MailboxName;

/// The maximum length of the login that is kept, in bytes.
const MAX_LOGIN_BYTES: usize = 256;

/// The maximum length of the addresses of Cc that are kept, in bytes. Every copy has its own details.
const MAX_CC_BYTES: usize = 1024;

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
    /// The name that the client sent in HELO, EHLO or LHLO.
    pub helo: &'a str,
    /// The IP address of the client. `None` on a Unix socket.
    pub ip: Option<IpAddr>,
    /// The name with which the client logged in.
    pub login: Option<&'a str>,
    /// The host name of the server that received the message.
    pub host: &'a str,
    /// The number of attachments.
    pub attachments: u32,
    /// The first words of the text.
    pub snippet: &'a str,
    /// The addresses of the header field Cc.
    pub cc: &'a [String],
    /// The recipients of the envelope whose mailbox holds this copy.
    pub recipients: &'a [String],
}

/// The lines of the encoded form. The lines after [`Line::CcCount`] are the addresses of Cc and then the recipients.
#[derive(Clone, Copy)]
enum Line {
    Sender,
    Helo,
    Ip,
    Login,
    Host,
    Attachments,
    Snippet,
    CcCount,
}

impl Details {
    /// Creates details. Line feeds in the values are replaced by spaces. Very long logins and lists of Cc are truncated.
    pub fn new(fields: &DetailFields<'_>) -> Self {
        let DetailFields { sender, helo, ip, login, host, attachments, snippet, cc, recipients } = *fields;
        let cc = truncate_list(cc, MAX_CC_BYTES);
        let lists = cc.iter().chain(recipients).map(|address| address.len() + 1).sum::<usize>();
        let capacity = sender.len() + helo.len() + host.len() + snippet.len() + lists + 64;
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
        push_number(&mut text, u32::try_from(cc.len()).unwrap_or(u32::MAX));
        text.push('\n');
        cc.iter().chain(recipients).for_each(|address| push_line(&mut text, address));
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

    /// Returns the name that the client sent in HELO, EHLO or LHLO.
    pub fn helo(&self) -> &str {
        self.line(Line::Helo)
    }

    /// Returns the IP address of the client as text. Empty on a Unix socket.
    pub fn ip(&self) -> &str {
        self.line(Line::Ip)
    }

    /// Returns the name with which the client logged in.
    pub fn login(&self) -> Option<&str> {
        Some(self.line(Line::Login)).filter(|login| !login.is_empty())
    }

    /// Returns the number of attachments.
    pub fn attachments(&self) -> u32 {
        self.line(Line::Attachments).parse().unwrap_or(0)
    }

    /// Returns the first words of the text.
    pub fn snippet(&self) -> &str {
        self.line(Line::Snippet)
    }

    /// Returns the addresses of the header field Cc.
    pub fn cc(&self) -> impl Iterator<Item = &str> {
        self.lines_after(Line::CcCount).take(self.cc_count())
    }

    /// Returns the recipients of the envelope whose mailbox holds this copy.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.lines_after(Line::CcCount).skip(self.cc_count())
    }

    /// Returns the header lines that the server adds before a message that it receives: Return-Path and Received.
    pub fn trace(&self, mailbox: &MailboxName, received: Timestamp) -> Bytes {
        let [sender, helo, ip, host] = [Line::Sender, Line::Helo, Line::Ip, Line::Host].map(|line| self.line(line));
        let mut trace = String::with_capacity(128 + sender.len() + helo.len() + host.len() + mailbox.as_str().len());
        // Writing to a string cannot fail.
        let _ = write!(trace, "Return-Path: <{sender}>\r\nReceived: from {helo} (");
        let _ = if ip.is_empty() { trace.write_str("local") } else { write!(trace, "[{ip}]") };
        let _ = write!(trace, ") by {host}\r\n  for <{mailbox}>; {}\r\n", MailDate(received));
        trace.into()
    }

    fn line(&self, line: Line) -> &str {
        self.encoded().split('\n').nth(line as usize).unwrap_or_default()
    }

    fn lines_after(&self, line: Line) -> impl Iterator<Item = &str> {
        self.encoded().split_terminator('\n').skip(line as usize + 1)
    }

    fn cc_count(&self) -> usize {
        self.line(Line::CcCount).parse().unwrap_or(0)
    }
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Details").field(&self.encoded()).finish()
    }
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

/// Appends a number. Every message needs several, and most of them are small, so it is faster than a formatter.
fn push_number(text: &mut String, number: u32) {
    match u8::try_from(number) {
        Ok(digit @ 0..=9) => text.push(char::from(b'0' + digit)),
        Ok(small) => {
            if small >= 100 {
                text.push(char::from(b'0' + small / 100));
            }
            text.push(char::from(b'0' + small / 10 % 10));
            text.push(char::from(b'0' + small % 10));
        }
        // Writing to a string cannot fail.
        Err(_) => drop(write!(text, "{number}")),
    }
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

    fn fields<'a>(cc: &'a [String], recipients: &'a [String]) -> DetailFields<'a> {
        DetailFields {
            sender: "ann@x.org",
            helo: "laptop",
            ip: Some([127, 0, 0, 1].into()),
            login: Some("ci"),
            host: "restante",
            attachments: 3,
            snippet: "Your code\nis 1",
            cc,
            recipients,
        }
    }

    #[test]
    fn details_return_their_values() {
        let [cc, to] = [["<c@x>", "D <d@x>"], ["bob@x", "bob+1@x"]].map(|list| list.map(str::to_owned));
        let details = Details::new(&fields(&cc, &to));
        assert_eq!((details.sender(), details.helo(), details.ip()), ("ann@x.org", "laptop", "127.0.0.1"));
        assert_eq!((details.login(), details.attachments(), details.snippet()), (Some("ci"), 3, "Your code is 1"));
        assert_eq!(details.cc().collect::<Vec<_>>(), cc);
        assert_eq!(details.recipients().collect::<Vec<_>>(), to);
        assert_eq!(Details::from_encoded(details.encoded()), details);
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
        let details = Details::new(&DetailFields { login: Some(&login), ..fields(&cc, &[]) });
        assert_eq!(details.login().map(str::len), Some(MAX_LOGIN_BYTES));
        let kept: Vec<_> = details.cc().collect();
        assert_eq!(kept, cc[..kept.len()]);
        assert!(kept.iter().map(|address| address.len()).sum::<usize>() <= MAX_CC_BYTES && kept.len() > 30);
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
        let local = Details::new(&DetailFields { ip: None, ..fields(&[], &[]) });
        let trace = local.trace(&MailboxName::from("bob".to_owned()), Timestamp::UNIX_EPOCH);
        assert!(trace.starts_with(b"Return-Path: <ann@x.org>\r\nReceived: from laptop (local) by restante\r\n"));
    }
}
