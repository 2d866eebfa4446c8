//! Reads the configuration files of Mailpit's relay: YAML with one `key: value` per line. Other forms of YAML are refused
//! with an error, which does not contain the line, because it can have a password.

/// An entry of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlEntry {
    /// The number of the line, from 1.
    pub(super) line: usize,
    pub(super) key: String,
    /// The value without quotes; empty for null.
    pub(super) value: String,
}

/// The first characters of values that are not simple texts.
const INDICATORS: &[char] = &['[', ']', '{', '}', '&', '*', '!', '|', '>', '%', '@', '`', ',', '?'];

/// Parses the text of a file.
pub(super) fn parse(text: &str) -> Result<Vec<YamlEntry>, String> {
    let mut entries: Vec<YamlEntry> = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (content, line) in text.lines().zip(1..) {
        let trimmed = content.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || (entries.is_empty() && trimmed == "---") {
            continue;
        }
        let entry = parse_line(content).map_err(|error| format!("line {line} {error}"))?;
        let (key, value) = (entry.0.to_owned(), entry.1);
        if entries.iter().any(|earlier| earlier.key == key) {
            return Err(format!("line {line} repeats a key"));
        }
        entries.push(YamlEntry { line, key, value });
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Result<(&str, String), String> {
    let error = || "is not of the form key: value".to_owned();
    let (key, value) = line.split_once(':').ok_or_else(error)?;
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_key || !(value.is_empty() || value.starts_with([' ', '\t'])) {
        return Err(error());
    }
    Ok((key, parse_value(value.trim())?))
}

fn parse_value(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    match chars.next() {
        Some(quote @ ('"' | '\'')) => {
            let value = parse_quoted(&mut chars, quote)?;
            let rest = chars.as_str();
            let is_comment = rest.trim_start().starts_with('#') && rest.starts_with(char::is_whitespace);
            if !rest.trim().is_empty() && !is_comment {
                return Err("has a text after the closing quote".to_owned());
            }
            Ok(value)
        }
        Some(first) if INDICATORS.contains(&first) || text.starts_with("- ") => {
            Err("has a value that is not a simple text: write it in quotes".to_owned())
        }
        _ => {
            let end = text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len());
            let value = if text.starts_with('#') { "" } else { text[..end].trim_end() };
            if value.contains(": ") || value.ends_with(':') {
                return Err("has a value with a colon: write it in quotes".to_owned());
            }
            Ok(if matches!(value, "~" | "null" | "Null" | "NULL") { String::new() } else { value.to_owned() })
        }
    }
}

/// Reads a value up to its closing quote.
fn parse_quoted(chars: &mut std::str::Chars<'_>, quote: char) -> Result<String, String> {
    let mut value = String::new();
    loop {
        match chars.next() {
            None => return Err("has no closing quote".to_owned()),
            Some('\'') if quote == '\'' && chars.as_str().starts_with('\'') => {
                chars.next();
                value.push('\'');
            }
            Some(c) if c == quote => return Ok(value),
            Some('\\') if quote == '"' => match chars.next() {
                Some(c @ ('"' | '\\' | '/' | ' ')) => value.push(c),
                _ => {
                    return Err(
                        "has an escape sequence that is not supported: write the value in single quotes".to_owned()
                    );
                }
            },
            Some(c) => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_values() {
        let table = [
            ("host: mx.example.org", "mx.example.org"),
            ("host:   mx  # the server", "mx"),
            ("host: \"a b\" # x", "a b"),
            ("host: 'it''s: #1'", "it's: #1"),
            (r#"host: "a\"\\b""#, r#"a"\b"#),
            (r"host: ^(a|b)\.org$", r"^(a|b)\.org$"),
            ("host: http://x", "http://x"),
            ("host: p#w", "p#w"),
            ("host:", ""),
            ("host: # nothing", ""),
            ("host: ~", ""),
            ("host: null", ""),
            ("\u{feff}---\r\n# comment\r\n  # comment\r\n\r\nhost: x\r\n", "x"),
        ];
        for (text, expected) in table {
            let entries = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let [YamlEntry { key, value, .. }] = &entries[..] else { panic!("{text}: {entries:?}") };
            assert_eq!((key.as_str(), value.as_str()), ("host", expected), "{text}");
        }
        assert_eq!(parse("").unwrap(), []);
        let lines: Vec<usize> = parse("a: 1\n\nb-c: 2\n").unwrap().iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn refuses_other_forms_without_their_content() {
        let table = [
            ("secret", "line 1 is not of the form key: value"),
            ("host:secret", "line 1 is not of the form key: value"),
            ("a: 1\n  b: secret", "line 2 is not of the form key: value"),
            ("- secret: 1", "line 1 is not of the form key: value"),
            ("\"secret\": 1", "line 1 is not of the form key: value"),
            ("a: 1\n---\nb: secret", "line 2 is not of the form key: value"),
            ("a: secret\na: 1", "line 2 repeats a key"),
            ("a: [secret]", "line 1 has a value that is not a simple text"),
            ("a: |", "line 1 has a value that is not a simple text"),
            ("a: - secret", "line 1 has a value that is not a simple text"),
            ("a: secret: b", "line 1 has a value with a colon"),
            ("a: \"secret", "line 1 has no closing quote"),
            ("a: 'secret''", "line 1 has no closing quote"),
            ("a: \"b\" secret", "line 1 has a text after the closing quote"),
            ("a: \"b\"#secret", "line 1 has a text after the closing quote"),
            ("a: \"secret\\x41\"", "line 1 has an escape sequence that is not supported"),
        ];
        for (text, expected) in table {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(expected) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
