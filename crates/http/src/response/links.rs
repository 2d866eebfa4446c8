//! Links to attachments.

use std::fmt::Write as _;

use restante_mail::message::Summary;

/// The two ways to serve an attachment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// As a file to save.
    Download,
    /// As a document that the browser shows.
    View,
}

/// Returns the link to an attachment of a message.
pub(crate) fn attachment(base: &str, purpose: Purpose, summary: &Summary, index: usize, filename: &str) -> String {
    let purpose = match purpose {
        Purpose::Download => "dattach",
        Purpose::View => "vattach",
    };
    let mut link = format!("{base}/mailbox/{purpose}/");
    push_segment(&mut link, summary.mailbox.as_str());
    // Writing to a string cannot fail.
    let _ = write!(link, "/{}/{index}/", summary.id);
    // Browsers treat these as path segments to remove, even if they are encoded (URL Standard, section 4.4).
    let filename = if matches!(filename, "" | "." | "..") { "attachment" } else { filename };
    push_segment(&mut link, filename);
    link
}

/// Appends a text with all characters percent-encoded that are not unreserved (RFC 3986 section 2.3).
pub(crate) fn push_segment(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
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
            let mut out = String::new();
            push_segment(&mut out, text);
            assert_eq!(out, expected);
        }
    }
}
