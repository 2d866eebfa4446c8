//! Links to attachments.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use restante_mail::message::Summary;

/// All characters that are not unreserved (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The two ways to serve an attachment.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// As a file to save.
    Download,
    /// As a document that the browser shows.
    View,
}

/// Returns the link to an attachment of a message.
pub fn attachment(base: &str, purpose: Purpose, summary: &Summary, index: usize, filename: &str) -> String {
    let purpose = match purpose {
        Purpose::Download => "dattach",
        Purpose::View => "vattach",
    };
    // Browsers treat these as path segments to remove, even if they are encoded (URL Standard, section 4.4).
    let filename = if matches!(filename, "" | "." | "..") { "attachment" } else { filename };
    let (mailbox, filename) = (encode_segment(summary.mailbox.shown()), encode_segment(filename));
    format!("{base}/mailbox/{purpose}/{mailbox}/{}/{index}/{filename}", summary.id)
}

/// Returns a text with all characters percent-encoded that are not unreserved.
pub fn encode_segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        let table = [
            ("james", "james"),
            ("a b+c@d/e?f#g%h", "a%20b%2Bc%40d%2Fe%3Ff%23g%25h"),
            ("Grüße.pdf", "Gr%C3%BC%C3%9Fe.pdf"),
            ("\"\r\n<>", "%22%0D%0A%3C%3E"),
        ];
        for (text, expected) in table {
            assert_eq!(encode_segment(text).to_string(), expected);
        }
    }
}
