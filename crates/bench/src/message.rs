//! The bytes that are sent: envelopes and messages of an exact size, built before measuring starts. No line of a
//! message starts with a dot, so no dot-stuffing (RFC 5321 section 4.5.2) is needed.

use clap::ValueEnum;

/// The line that ends a message in DATA (RFC 5321 section 4.1.1.4).
pub(crate) const END_OF_DATA: &[u8] = b".\r\n";

/// The structure of a generated message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageKind {
    /// One text/plain body.
    Text,
    /// multipart/mixed with a text and HTML alternative and a base64 attachment that fills the size.
    Multipart,
}

/// The commands of one transaction from MAIL to DATA, which can be sent one by one or all at once.
pub(crate) struct Envelope {
    bytes: Vec<u8>,
    /// The number of commands, and so of replies.
    len: usize,
}

impl Envelope {
    /// Creates a transaction that sends one message to all `mailboxes`.
    pub(crate) fn to<'a>(mailboxes: impl IntoIterator<Item = &'a str>) -> Self {
        let mut lines = vec!["MAIL FROM:<sender@bench.example>\r\n".to_owned()];
        lines.extend(mailboxes.into_iter().map(|mailbox| format!("RCPT TO:<{mailbox}@bench.example>\r\n")));
        lines.push("DATA\r\n".to_owned());
        Self { bytes: lines.concat().into_bytes(), len: lines.len() }
    }

    /// Returns all lines.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the single lines. The last one is DATA.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split_inclusive(|byte| *byte == b'\n')
    }

    /// Returns the number of commands, and so of replies.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Returns the name of the `n`th mailbox of a measurement.
pub(crate) fn mailbox_name(prefix: &str, n: usize) -> String {
    format!("{prefix}-{n}")
}

/// Builds a message of exactly `size` bytes (or of its smallest possible size) followed by the end-of-data line.
pub(crate) fn build_message(kind: MessageKind, subject: &str, size: usize) -> Vec<u8> {
    let mut message = match kind {
        MessageKind::Text => text(subject, size),
        MessageKind::Multipart => multipart(subject, size),
    };
    message.extend_from_slice(END_OF_DATA);
    message
}

const SENTENCE: &[u8] = b"The quick brown fox jumps over the lazy dog while the rain falls mainly.\r\n";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The maximum length of encoded lines (RFC 2045 section 6.8).
const BASE64_LINE_CHARS: usize = 76;

fn header(subject: &str) -> String {
    format!(
        "From: Bench Sender <sender@bench.example>\r\n\
         To: Bench Receiver <receiver@bench.example>\r\n\
         Subject: {subject}\r\n\
         Date: Thu, 01 Jan 2026 12:00:00 +0000\r\n\
         Message-ID: <{subject}@bench.example>\r\n\
         MIME-Version: 1.0\r\n",
        subject = subject.replace(' ', "-"),
    )
}

fn text(subject: &str, size: usize) -> Vec<u8> {
    let mut message = header(subject).into_bytes();
    message.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\n\r\nHello,\r\n");
    while message.len() + SENTENCE.len() <= size {
        message.extend_from_slice(SENTENCE);
    }
    let rest = size.saturating_sub(message.len());
    pad_line(&mut message, rest);
    message
}

fn multipart(subject: &str, size: usize) -> Vec<u8> {
    let before = format!(
        "{}Content-Type: multipart/mixed; boundary=\"mixed-7f3a\"\r\n\r\n\
         --mixed-7f3a\r\n\
         Content-Type: multipart/alternative; boundary=\"alternative-91bc\"\r\n\r\n\
         --alternative-91bc\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n\
         Hello,\r\n\r\nyour invoice for this month is attached.\r\n\r\nKind regards\r\n",
        header(subject)
    );
    let between = "--alternative-91bc\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\n\
         <html><body><p style=3D\"color: #333\">Hello,</p>\r\n\
         <p>your <b>invoice</b> for this month is attached.</p>\r\n\
         <p>Kind regards</p></body></html>\r\n\
         --alternative-91bc--\r\n\
         --mixed-7f3a\r\n\
         Content-Type: application/pdf; name=\"invoice.pdf\"\r\n\
         Content-Disposition: attachment; filename=\"invoice.pdf\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n";
    let after = "--mixed-7f3a--\r\n";

    // Whole lines of base64 fill the size; the remainder lengthens the plain text.
    let space = size.saturating_sub(before.len() + between.len() + after.len());
    let lines = space / (BASE64_LINE_CHARS + 2);
    let mut message = Vec::with_capacity(size + END_OF_DATA.len());
    message.extend_from_slice(before.as_bytes());
    pad_line(&mut message, space % (BASE64_LINE_CHARS + 2));
    message.extend_from_slice(between.as_bytes());
    base64_lines(&mut message, lines);
    message.extend_from_slice(after.as_bytes());
    message
}

/// Appends a last line of `rest` bytes in total. If that is too short for a line, it lengthens the line before.
fn pad_line(message: &mut Vec<u8>, rest: usize) {
    let filler = if rest < 2 {
        message.truncate(message.len() - 2);
        rest
    } else {
        rest - 2
    };
    message.resize(message.len() + filler, b'x');
    message.extend_from_slice(b"\r\n");
}

/// Appends lines of base64 that do not compress. They are always the same.
fn base64_lines(message: &mut Vec<u8>, lines: usize) {
    let mut random: u32 = 0x9e37_79b9;
    for _ in 0..lines {
        for _ in 0..BASE64_LINE_CHARS {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            message.push(BASE64[(random >> 26) as usize]);
        }
        message.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no line needs dot-stuffing or is too long, and that the message ends with its end-of-data line.
    fn assert_sendable(message: &[u8]) {
        let lines: Vec<_> = message.split_inclusive(|&b| b == b'\n').collect();
        let (last, content) = lines.split_last().expect("a message has lines");
        assert_eq!(*last, END_OF_DATA);
        for line in content {
            assert!(line.ends_with(b"\r\n") && !line.starts_with(b"."), "{line:?}");
            assert!(line.len() <= 1000, "RFC 5321 section 4.5.3.1.6");
        }
    }

    #[test]
    fn messages_have_exactly_the_requested_size() {
        for kind in [MessageKind::Text, MessageKind::Multipart] {
            for size in (1024..1300).chain([20_480, 1_048_576]) {
                let message = build_message(kind, "size", size);
                assert_eq!(message.len() - END_OF_DATA.len(), size, "{kind:?}");
                assert_sendable(&message);
            }
        }
    }

    #[test]
    fn a_size_below_the_headers_gives_the_smallest_message() {
        for kind in [MessageKind::Text, MessageKind::Multipart] {
            let message = build_message(kind, "small", 0);
            assert_eq!(message, build_message(kind, "small", 1));
            assert_sendable(&message);
        }
    }

    #[test]
    fn envelope_lines_equal_its_bytes() {
        let envelope = Envelope::to(["a", "b"]);
        let lines: Vec<_> = envelope.lines().collect();
        assert_eq!(lines.len(), envelope.len());
        assert_eq!(lines.concat(), envelope.as_bytes());
        assert_eq!(lines[2], b"RCPT TO:<b@bench.example>\r\n");
        assert_eq!(lines[3], b"DATA\r\n");
    }
}
