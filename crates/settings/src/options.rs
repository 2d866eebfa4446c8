//! Entries of lists with options: a name, then words of the form `NAME=VALUE` or `NAME=VALUE|VALUE`. Entries can contain
//! passwords, so errors contain nothing of their content.

use percent_encoding::percent_decode_str;

use super::values::collect_all;

/// The separator of several values of an option.
const SEPARATOR: char = '|';

/// Parses a list of entries with semicolons between them. `names` are the words for one entry and for several in errors. The
/// errors of all entries are returned together.
pub(super) fn parse_entries<T>(
    text: &str,
    names: [&str; 2],
    max_entries: usize,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let [name, plural] = names;
    let entries: Vec<&str> = text.split(';').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.len() > max_entries {
        return Err(format!("has {} {plural}: must be at most {max_entries}", entries.len()));
    }
    let parse =
        |(entry, number): (&str, usize)| parse(entry).map_err(|error| format!("{name} {number} ({entry}) {error}"));
    collect_all(entries.into_iter().zip(1..).map(parse))
}

/// Splits an entry into words at blanks. The value of an option may be in double quotes, and then contain blanks.
pub(super) fn split_words(entry: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = entry.trim_start();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = match rest.find("=\"").filter(|start| *start < end) {
            Some(start) => {
                let (name, quoted) = (&rest[..=start], &rest[start + 2..]);
                let (value, after) = quoted.split_once('"').ok_or("has no closing quote")?;
                if after.starts_with(|c: char| !c.is_whitespace()) {
                    return Err("has no blank after a closing quote; write a quote inside of a value as %22".to_owned());
                }
                (format!("{name}{value}"), after)
            }
            None => (rest[..end].to_owned(), &rest[end..]),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

/// The options of an entry, by name. Each occurs at most once.
pub(super) struct Options(Vec<(&'static str, String)>);

impl Options {
    /// Parses words of the form `NAME=VALUE`.
    pub(super) fn parse(words: &[String], known: &[&'static str], example: &str) -> Result<Self, String> {
        let mut options: Vec<(&'static str, String)> = Vec::new();
        for word in words {
            let option = word.split_once('=').and_then(|(name, value)| {
                let name = known.iter().find(|known| **known == name)?;
                Some((*name, value))
            });
            let Some((name, value)) = option else {
                let names = known.join(", ");
                return Err(format!("has an unknown option: the options are {names}; an example is {example}"));
            };
            if options.iter().any(|(earlier, _)| *earlier == name) {
                return Err(format!("repeats the option {name}; an example is {example}"));
            }
            options.push((name, value.to_owned()));
        }
        Ok(Self(options))
    }

    /// Returns the value as written.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the decoded value, which is not empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.raw(name).map(|value| decode_value(name, value)).transpose()
    }

    /// Returns the decoded values, none of which is empty. There are none if the option is missing.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, String> {
        self.raw(name).map_or_else(|| Ok(Vec::new()), |values| decode_list(name, values))
    }

    /// Parses the decoded value. The error of `parse` says what is accepted.
    pub(super) fn parsed<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        parse(&text).map(Some).map_err(|accepted| format!("has an invalid value of {name}: {accepted}"))
    }
}

/// Decodes several values, none of which is empty.
pub(super) fn decode_list(name: &str, values: &str) -> Result<Vec<String>, String> {
    values.split(SEPARATOR).map(|value| decode_value(name, value)).collect()
}

fn decode_value(name: &str, text: &str) -> Result<String, String> {
    match decode(text).map_err(|error| format!("{error} in {name}"))? {
        value if value.is_empty() => Err(format!("has an empty value of {name}")),
        value => Ok(value),
    }
}

/// Decodes `%XX`. The error does not contain the text.
pub(super) fn decode(text: &str) -> Result<String, String> {
    let is_escape = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_escape) {
        return Err("has a % without two hexadecimal digits (a % is written %25)".to_owned());
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| "has a value that is not UTF-8")?;
    if decoded.chars().any(char::is_control) {
        return Err("has a control character".to_owned());
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_entries_into_words() {
        let table: [(&str, Result<&[&str], &str>); 7] = [
            ("a", Ok(&["a"])),
            (" a \t b=c ", Ok(&["a", "b=c"])),
            ("a b=\"c d\" e=\"\"", Ok(&["a", "b=c d", "e="])),
            ("a b=c\"d e", Ok(&["a", "b=c\"d", "e"])),
            ("a\"b =\"c d\"", Ok(&["a\"b", "=c d"])),
            ("a b=\"c d", Err("has no closing quote")),
            ("a b=\"c\"d", Err("has no blank after a closing quote; write a quote inside of a value as %22")),
        ];
        for (text, expected) in table {
            let expected = expected.map(|words| words.iter().map(ToString::to_string).collect());
            assert_eq!(split_words(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn decodes_percent_encoding() {
        for (text, expected) in [("a%2C%7c%20%25b", "a,| %b"), ("%C3%BC", "\u{fc}"), ("", "")] {
            assert_eq!(decode(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["%", "%2", "%2x", "%+1", "50% off", "%ff", "a%0d%0aRCPT", "%00", "%C2%85"] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
