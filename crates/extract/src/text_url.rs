//! URLs in plain text, without the brackets and the punctuation around them. Only URLs with a scheme are recognized: a
//! name with dots can be anything.

/// The maximum length of a URL that becomes a link. Longer URLs are useless to readers and browsers.
pub(crate) const MAX_URL_BYTES: usize = 8 * 1024;

/// A URL in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextUrl {
    /// The position of its first byte.
    pub start: usize,
    /// Its length in bytes.
    pub len: usize,
    /// Whether it can become a link. A URL that is too long cannot.
    pub is_link: bool,
}

impl TextUrl {
    /// Finds the first URL of a text. A caller that continues after it scans nothing twice.
    pub fn find_first(text: &str) -> Option<Self> {
        text.match_indices(':').find_map(|(colon, _)| {
            let start = scheme_before(text, colon)?;
            let is_mail = colon - start == "mailto".len();
            let body = if is_mail { &text[colon + 1..] } else { text[colon + 1..].strip_prefix("//")? };
            let prefix = text.len() - body.len() - start;
            if !body.starts_with(|c: char| c.is_alphanumeric() || (!is_mail && c == '[')) {
                return None;
            }
            let untrimmed = &body[..body.find(ends_url).unwrap_or(body.len())];
            let trimmed = without_trailing_punctuation(untrimmed);
            if untrimmed.len() > MAX_URL_BYTES {
                return Some(Self { start, len: prefix + untrimmed.len(), is_link: false });
            }
            Some(Self { start, len: prefix + trimmed.len(), is_link: true })
        })
    }
}

/// Returns the start of the scheme that ends at the colon. It must be a supported scheme and a separate word.
fn scheme_before(text: &str, colon: usize) -> Option<usize> {
    let start = ["https", "http", "mailto"].iter().find_map(|scheme| {
        let start = colon.checked_sub(scheme.len())?;
        text.get(start..colon)?.eq_ignore_ascii_case(scheme).then_some(start)
    })?;
    let is_inside_word = text[..start].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (!is_inside_word).then_some(start)
}

/// Returns whether a URL ends before this character (RFC 3986 appendix C, and typographic quotes).
fn ends_url(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '<' | '>' | '"' | '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' | '、' | '。' | '「' | '」')
}

/// Removes punctuation of the surrounding sentence, and closing brackets that are not opened in the URL.
fn without_trailing_punctuation(url: &str) -> &str {
    const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];
    const TRAILING: &str = ".,;:!?'*_~|([{";
    let mut unopened = BRACKETS.map(|(open, close)| {
        let count = |bracket| url.matches(bracket).count();
        count(close).saturating_sub(count(open))
    });
    let mut trimmed = url;
    while let Some(last) = trimmed.chars().next_back() {
        match BRACKETS.iter().position(|&(_, close)| close == last) {
            Some(kind) if unopened[kind] > 0 => unopened[kind] -= 1,
            None if TRAILING.contains(last) => {}
            _ => break,
        }
        trimmed = &trimmed[..trimmed.len() - last.len_utf8()];
    }
    trimmed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_all(text: &str) -> Vec<&str> {
        let (mut rest, mut found) = (text, Vec::new());
        while let Some(url_match) = TextUrl::find_first(rest) {
            let (url, tail) = rest[url_match.start..].split_at(url_match.len);
            found.push(url);
            rest = tail;
        }
        found
    }

    #[test]
    fn finds_urls_without_surrounding_punctuation() {
        let table: &[(&str, &[&str])] = &[
            ("nothing: here", &[]),
            ("Go to https://example.org/a.", &["https://example.org/a"]),
            ("(see http://x/a_(b)), <http://y/>", &["http://x/a_(b)", "http://y/"]),
            ("https://bücher.example/ä、次", &["https://bücher.example/ä"]),
            ("mailto:a@example.org!", &["mailto:a@example.org"]),
            ("www.example.org javascript:alert(1)", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(find_all(text), *expected, "{text}");
        }
    }

    #[test]
    fn url_over_limit_is_not_a_link() {
        let text = format!("http://x/{}", "y".repeat(MAX_URL_BYTES));
        let found = TextUrl::find_first(&text).unwrap();
        assert_eq!((found.len, found.is_link), (text.len(), false));
    }
}
