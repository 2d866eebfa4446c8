//! Parses the configuration file. TOML values are converted to the texts that would be given on the command line. A
//! section is the first part of a key: `[smtp]` with `maxrecipients = 200` is `smtp.maxrecipients`.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::problem::{Origin, Problem, suggestion};
use super::setting::{Setting, Value};
use super::sources::GivenValue;
use super::table::{CREDENTIALS, SETTINGS, find_setting};
use super::values::collect_all;

/// The settings in a file, and its problems.
#[derive(Default)]
pub(super) struct FileContents {
    pub(super) given: Vec<(&'static Setting, GivenValue)>,
    pub(super) problems: Vec<Problem>,
}

/// Parses the text of a file.
pub(super) fn parse(path: &Path, text: &str) -> FileContents {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut contents = FileContents::default();
    // The parser's own format quotes the line, which may contain a password. Only the message and the line number are
    // reported.
    for error in &errors {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        contents.problems.push(Problem::new(format!("file {}:{line}: {}", path.display(), error.message())));
    }
    if !errors.is_empty() {
        return contents;
    }
    // Nested sections are kept in a list instead of using recursion.
    let mut sections = vec![(String::new(), document.into_inner())];
    while let Some((prefix, table)) = sections.pop() {
        for (name, value) in table {
            let line = line_at(text, name.span().start);
            let key = format!("{prefix}{}", name.get_ref());
            let origin = Origin::File { path: path.to_owned(), line };
            match (find_setting(&key), value.into_inner()) {
                (Some(setting), value) => contents.add(setting, value, origin),
                (None, DeValue::Table(inner)) => sections.push((format!("{key}."), inner)),
                (None, _) => contents.add_unknown(&key, &origin),
            }
        }
    }
    contents
}

impl FileContents {
    fn add(&mut self, setting: &'static Setting, value: DeValue<'_>, origin: Origin) {
        match value_text(setting, value) {
            Ok(value) => self.given.push((setting, GivenValue { value, origin })),
            Err(message) => self.problems.push(Problem::without_value(setting, &origin, &message)),
        }
    }

    fn add_unknown(&mut self, key: &str, origin: &Origin) {
        let hint = suggestion(key, SETTINGS.iter().map(|setting| setting.key.to_owned()));
        let key = key.escape_debug();
        self.problems.push(Problem::new(format!("{key} ({origin}): no such setting{hint}")));
    }
}

/// Converts a value to text. Arrays become lists, and tables become parameters.
fn value_text(setting: &Setting, value: DeValue<'_>) -> Result<String, String> {
    match (setting.value, value) {
        (CREDENTIALS, DeValue::Array(items)) => join_items(items, check_credential),
        (Value::List(_), DeValue::Array(items)) => join_items(items, |_, _| Ok(())),
        (Value::Params, DeValue::Table(pairs)) => {
            let pair = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
                Ok(format!("{}:{}", key.get_ref(), item_text(value.into_inner())?))
            };
            collect_all(pairs.into_iter().map(pair)).map(|pairs| pairs.join(","))
        }
        (_, DeValue::Array(_)) => Err("takes a single value, not an array".to_owned()),
        (_, DeValue::Table(_)) => Err("takes a value and is not a section".to_owned()),
        (_, value) => scalar_text(value),
    }
}

fn join_items(items: DeArray<'_>, check: fn(&str, usize) -> Result<(), String>) -> Result<String, String> {
    let item = |(value, number): (Spanned<DeValue<'_>>, usize)| {
        let text = item_text(value.into_inner())?;
        check(&text, number).map(|()| text)
    };
    collect_all(items.into_iter().zip(1..).map(item)).map(|items| items.join(","))
}

/// Checks that an entry is not empty. Joined, an array with one empty entry would be a list without entries, and the
/// server would accept every login.
fn check_credential(text: &str, number: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("entry {number} is not of the form USER:PASSWORD"));
    }
    Ok(())
}

/// Converts an entry of an array or table. A comma would separate two entries, so it is an error.
fn item_text(value: DeValue<'_>) -> Result<String, String> {
    let text = scalar_text(value)?;
    if text.contains(',') {
        return Err("takes no commas inside an entry".to_owned());
    }
    Ok(text)
}

fn scalar_text(value: DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.into_owned()),
        DeValue::Boolean(boolean) => Ok(boolean.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| "contains a number that is too large".to_owned()),
        _ => Err("must be a string, a whole number, or true or false".to_owned()),
    }
}

/// Returns the line of a byte, counted from 1.
fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    1 + before.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_no_empty_entries() {
        let table = [
            (r#""""#, Ok("")),
            ("[]", Ok("")),
            (r#"["ann:a", "bob:b"]"#, Ok("ann:a,bob:b")),
            (r#"[""]"#, Err("entry 1 is not of the form USER:PASSWORD")),
            (r#"[" "]"#, Err("entry 1 is not of the form USER:PASSWORD")),
            (r#"["", ""]"#, Err("entry 1 is not of the form USER:PASSWORD; entry 2 is not of the form USER:PASSWORD")),
            (r#"["ann:a", ""]"#, Err("entry 2 is not of the form USER:PASSWORD")),
        ];
        for section in ["auth", "smtp", "pop3", "imap"] {
            for (value, expected) in table {
                let text = format!("[{section}]\ncredentials = {value}\n");
                let FileContents { given, problems } = parse(Path::new("restante.toml"), &text);
                let values: Vec<_> = given.iter().map(|(_, given)| given.value.as_str()).collect();
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                match expected {
                    Ok(value) => assert_eq!((values, problems), (vec![value], Vec::new()), "{text}"),
                    Err(message) => {
                        let problem = format!("{section}.credentials (file restante.toml:2): {message}");
                        assert_eq!((values, problems), (Vec::new(), vec![problem]), "{text}");
                    }
                }
            }
        }
        let other = parse(Path::new("restante.toml"), "[smtp]\nacceptdomains = [\"\"]\n");
        assert!(other.problems.is_empty(), "other lists may have empty entries");
    }
}
