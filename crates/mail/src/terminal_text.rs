//! Escaping of message texts for a terminal. A message can contain sequences that move the cursor, set the title or
//! simulate input, and characters that change the direction of writing. They are replaced by numeric escapes.

use std::fmt::Write as _;

/// Escapes a text for one line of a table. Line ends and tabs are escaped as well.
pub fn escape_line(text: &str) -> String {
    escape_unless(text, |_| false)
}

/// Escapes a text of several lines. Line feeds and tabs are kept.
pub fn escape_text(text: &str) -> String {
    escape_unless(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes a JSON document without changing its meaning. JSON allows most of these characters in strings; outside of
/// strings they do not occur.
pub fn escape_json(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    for c in document.chars() {
        if needs_escape(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn escape_unless(text: &str, is_allowed: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_allowed(c) || !needs_escape(c) => escaped.push(c),
            '\n' | '\r' | '\t' => escaped.extend(c.escape_default()),
            c => escaped.extend(c.escape_unicode()),
        }
    }
    escaped
}

/// Returns whether the character is a control character (C0 or C1), or changes the direction or the lines of a text.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{206a}'..='\u{206f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_and_direction_characters() {
        let table = [
            ("plain, grün, 日本 👍", "plain, grün, 日本 👍", "plain, grün, 日本 👍"),
            ("a\tb\nc\r\n", "a\\tb\\nc\\r\\n", "a\tb\nc\\r\n"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\x7f\x08", "\\u{7f}\\u{8}", "\\u{7f}\\u{8}"),
        ];
        for (text, one_line, many_lines) in table {
            assert_eq!(escape_line(text), one_line);
            assert_eq!(escape_text(text), many_lines);
        }
    }

    proptest::proptest! {
        #[test]
        fn output_contains_no_character_that_needs_escape(text in ".*") {
            proptest::prop_assert!(!escape_line(&text).contains(needs_escape));
            proptest::prop_assert!(!escape_text(&text).replace(['\n', '\t'], "").contains(needs_escape));
        }

        #[test]
        fn escaped_json_parses_to_the_same_value(text in "\\PC*[\u{80}-\u{9f}\u{202a}-\u{202e}\x7f]*\\PC*") {
            let document = serde_json::to_string(&text).unwrap();
            let escaped = escape_json(&document);
            proptest::prop_assert!(!escaped.contains(needs_escape));
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
