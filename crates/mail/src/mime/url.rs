//! Whitespace in the URLs of HTML documents.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a URL as a browser reads it (URL Standard, section 4.4): without whitespace around it, tabs and line breaks.
/// Other whitespace is percent-encoded, so that the URL is one word.
pub fn without_blanks(url: &str) -> Cow<'_, str> {
    let url = url.trim();
    if !url.contains(char::is_whitespace) {
        return Cow::Borrowed(url);
    }
    let mut encoded = String::with_capacity(url.len() + 16);
    for c in url.chars() {
        match c {
            '\t' | '\r' | '\n' => {}
            c if c.is_whitespace() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(encoded, "%{byte:02X}");
                }
            }
            c => encoded.push(c),
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::without_blanks;

    #[test]
    fn blanks_inside_of_urls_are_percent_encoded() {
        let table = [
            ("http://h/a", "http://h/a"),
            (" http://h/a b\t", "http://h/a%20b"),
            ("http://h/a\r\n\tb", "http://h/ab"),
            ("http://h/?q=a  b", "http://h/?q=a%20%20b"),
            ("http://h/a\u{2003}é", "http://h/a%E2%80%83é"),
            (" ", ""),
        ];
        for (url, expected) in table {
            assert_eq!(without_blanks(url), expected, "{url:?}");
        }
    }
}
