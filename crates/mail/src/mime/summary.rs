//! The few header fields of a mail's summary record, read on arrival without looking at anything else of the mail.

use super::addresses::{Mailbox, mailboxes};
use super::header::{Fields, RawField, unfold};
use super::words;

/// How much of a mail is searched for its header.
const MAX_HEADER: usize = 64 * 1024;
/// How many mailboxes of the To fields are kept.
const MAX_TO: usize = 1000;

/// What the header says about sender, recipients and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderSummary {
    /// The first mailbox of From, as `Display Name <addr>` or `<addr>`; `None` when there is none.
    pub from: Option<String>,
    /// The mailboxes of To in the same form; `None` when there are none.
    pub to: Option<Vec<String>>,
    /// The subject, decoded; empty when there is none.
    pub subject: String,
}

/// Reads the summary from the header of a mail. Fields other than From, To and Subject cost a search for their end.
pub fn header_summary(source: &[u8]) -> HeaderSummary {
    let source = &source[..source.len().min(MAX_HEADER)];
    let mut summary = HeaderSummary::default();
    let mut to = Vec::new();
    let mut subject = None;
    for RawField { name, value } in Fields::new(source, 0, |_| false) {
        let (name, value) = (&source[name], &source[value]);
        if name.eq_ignore_ascii_case(b"from") {
            if summary.from.is_none() {
                summary.from = mailboxes(&unfold(value), 1).first().map(Mailbox::display);
            }
        } else if name.eq_ignore_ascii_case(b"to") {
            let found = mailboxes(&unfold(value), MAX_TO - to.len());
            to.extend(found.iter().map(Mailbox::display));
        } else if name.eq_ignore_ascii_case(b"subject") && subject.is_none() {
            subject = Some(words::decode_line(&unfold(value)));
        }
    }
    summary.to = (!to.is_empty()).then_some(to);
    summary.subject = subject.unwrap_or_default();
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
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
    fn a_header_without_end_is_read_up_to_the_limit() {
        let mut source = b"Subject: first\r\n".to_vec();
        source.extend(b"X-Filler: x\r\n".repeat(100_000));
        source.extend(b"From: late@example.org\r\n\r\n");
        let summary = header_summary(&source);
        assert_eq!((summary.subject.as_str(), summary.from), ("first", None));
    }
}
