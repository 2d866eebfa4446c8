//! Escaping of text for HTML, and the reverse.

/// Appends the text, escaped for HTML text and for quoted attribute values.
pub fn push_escaped(html: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
        let (plain, special) = rest.split_at(at);
        html.push_str(plain);
        html.push_str(match special.as_bytes()[0] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => "\u{fffd}",
        });
        rest = &special[1..];
    }
    html.push_str(rest);
}

/// Resolves the character references in an attribute value that a serializer wrote. A serializer only writes these five
/// (HTML Standard, section 13.3).
pub(super) fn unescape(value: &str) -> String {
    const REFERENCES: [(&str, char); 5] =
        [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&nbsp;", '\u{a0}')];
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        let found = REFERENCES.iter().find(|(reference, _)| rest[at..].starts_with(reference));
        let (len, c) = found.map_or((1, '&'), |&(reference, c)| (reference.len(), c));
        text.push(c);
        rest = &rest[at + len..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text() {
        let table = [
            ("", ""),
            ("a b", "a b"),
            ("<b a=\"1\" c='2'>&amp;", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"),
            ("é\0\n", "é\u{fffd}\n"),
        ];
        for (text, html) in table {
            let mut escaped = String::new();
            push_escaped(&mut escaped, text);
            assert_eq!(escaped, html);
        }
    }

    #[test]
    fn unescapes_values() {
        let table = [("", ""), ("a&amp;lt;b", "a&lt;b"), ("&lt;&quot;&gt;&nbsp;", "<\">\u{a0}"), ("a&b&", "a&b&")];
        for (value, text) in table {
            assert_eq!(unescape(value), text);
        }
    }
}
