//! Writing of texts and attributes in a form that is cheap to parse and to serialize.

use restante_mail::mime::html_tokens::Attributes;

use super::super::policy::is_known_attribute;
use super::{MAX_HTML_BYTES, Normalizer};

/// The maximum length of a value. An attribute with a longer value is dropped, unless it is an image.
const MAX_VALUE_BYTES: usize = 16 * 1024;
/// The maximum number of costly characters of a text: the serializer scans the rest of the text for each of them. Then
/// a comment splits the text; the sanitizer removes comments.
const MAX_COSTLY_CHARS: usize = 500;

impl Normalizer {
    /// Writes text. An ampersand that starts no reference is escaped. So the limit on the size of the result also
    /// limits the work of a parser.
    pub(super) fn push_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| matches!(c, '<' | '\0') || is_costly(c)) {
            self.output.markup.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(c) = rest.chars().next() else { return };
            rest = &rest[c.len_utf8()..];
            if is_costly(c) {
                self.limit_costly_text();
            }
            match c {
                '<' => self.output.markup.push_str("&lt;"),
                '\0' => {}
                '&' if !rest.starts_with(|c: char| c == '#' || c.is_ascii_alphanumeric()) => {
                    self.output.markup.push_str("&amp;");
                }
                c => self.output.markup.push(c),
            }
            if self.output.markup.len() > MAX_HTML_BYTES {
                return;
            }
        }
        self.output.markup.push_str(rest);
    }

    /// Ends the text that the parser collects if it contains too many costly characters.
    fn limit_costly_text(&mut self) {
        if self.costly_chars == MAX_COSTLY_CHARS {
            self.costly_chars = 0;
            self.output.markup.push_str("<!---->");
        }
        self.costly_chars += 1;
    }
}

/// Writes the attributes that are allowed on any element. Of duplicates, the first is used.
pub(super) fn push_attributes(tag: &mut String, attributes: &str) {
    let mut seen: Vec<String> = Vec::new();
    for (name, value) in Attributes::new(attributes) {
        let name = name.to_ascii_lowercase();
        if !is_known_attribute(&name) || seen.contains(&name) {
            continue;
        }
        if value.len() <= MAX_VALUE_BYTES || (name == "src" && is_plain_data(value)) {
            tag.push(' ');
            tag.push_str(&name);
            tag.push_str("=\"");
            push_quoted_value(tag, value);
            tag.push('"');
        }
        seen.push(name);
    }
}

/// Returns whether the value is a `data:` URL without costly characters.
fn is_plain_data(value: &str) -> bool {
    let scheme = value.trim_start().get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) && !value.contains(is_costly)
}

/// Returns whether the serializer scans the rest of a text at this character: `&`, and characters that start with the
/// same byte as a non-breaking space.
fn is_costly(c: char) -> bool {
    matches!(c, '&' | '\u{80}'..='\u{bf}')
}

/// Appends the value so that it can be put in quotes. Character references are kept.
fn push_quoted_value(tag: &mut String, value: &str) {
    for (n, part) in value.split('"').enumerate() {
        if n > 0 {
            tag.push_str("&quot;");
        }
        tag.extend(part.split('\0'));
    }
}

#[cfg(test)]
mod tests {
    use super::super::normalize;
    use super::*;

    #[test]
    fn drops_long_values_except_images() {
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        assert_eq!(normalize(&format!("<img src=http:{long}>")).markup, "<img>");
        assert_eq!(normalize(&format!("<img src=\" Data:{long}\">")).markup, format!("<img src=\" Data:{long}\">"));
    }

    #[test]
    fn splits_long_runs_of_costly_characters() {
        for (text, written) in [("&", "&amp;"), ("\u{a0}", "\u{a0}"), ("&nbsp", "&nbsp")] {
            let divided = format!("{}<!---->{written}", written.repeat(MAX_COSTLY_CHARS));
            assert_eq!(normalize(&text.repeat(MAX_COSTLY_CHARS + 1)).markup, divided);
        }
        assert_eq!(normalize(&format!("<img src='data:{}'>", "&".repeat(MAX_VALUE_BYTES))).markup, "<img>");
    }
}
