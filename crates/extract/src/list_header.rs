//! Parsing of URLs in the header fields of mailing lists (RFC 2369 section 2): each in angle brackets, separated by
//! commas, with comments around them.

/// The maximum number of URLs of one field.
const MAX_URLS: usize = 50;

/// Returns the URLs of a field, in order. Whitespace inside of a URL comes from folding and is removed.
pub(crate) fn parse_urls(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = value;
    let mut comments = 0_usize;
    while let Some(at) = rest.find(['<', '(', ')']).filter(|_| found.len() < MAX_URLS) {
        let delimiter = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match delimiter {
            b'(' => comments += 1,
            b')' => comments = comments.saturating_sub(1),
            _ if comments > 0 => {}
            _ => {
                let Some((url, tail)) = rest.split_once('>') else { break };
                found.push(url.split_whitespace().collect());
                rest = tail;
            }
        }
    }
    found.retain(|url: &String| !url.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_of_a_field() {
        let table: &[(&str, &[&str])] = &[
            ("<https://x/a>, <mailto:b@x?subject=off>", &["https://x/a", "mailto:b@x?subject=off"]),
            ("<https://x/\r\n a> (or <http://no> (really)) <http://y>", &["https://x/a", "http://y"]),
            ("https://x/a", &[]),
            ("<>, <  >, <http://x", &[]),
            ("NO", &[]),
        ];
        for (value, expected) in table {
            assert_eq!(parse_urls(value), *expected, "{value}");
        }
        assert_eq!(parse_urls(&"<x>".repeat(1000)).len(), MAX_URLS);
    }
}
