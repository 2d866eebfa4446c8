//! What can be wrong with a configuration, and how it is told: all of it at once, each with the place to mend it.

use std::fmt;
use std::fmt::Write;
use std::path::PathBuf;

use super::setting::Setting;

/// The prefix of the variables of existing installations.
pub(super) const COMPAT_PREFIX: &str = "INBUCKET_";

/// The most characters of a bad value that are shown.
const MAX_VALUE_CHARS: usize = 100;
/// The longest name that is compared with the known ones; typing errors are not that long.
const MAX_NAME_BYTES: usize = 64;

/// Where a value comes from, in order of precedence, the weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table.
    Default,
    /// The name of the machine.
    HostName,
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl Origin {
    /// Whether a value from here wins over one from there.
    pub(super) fn overrides(&self, other: &Self) -> bool {
        self.precedence() > other.precedence()
    }

    fn precedence(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::HostName => 1,
            Self::File { .. } => 2,
            Self::Variable(name) if name.starts_with(COMPAT_PREFIX) => 3,
            Self::Variable(_) => 4,
            Self::Flag(_) => 5,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::HostName => f.write_str("name of the machine"),
            Self::File { path, line } => write!(f, "file {}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting it is about.
    key: Option<&'static str>,
    text: String,
}

impl Problem {
    /// Something wrong that belongs to no setting, such as a file that cannot be read.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { key: None, text: text.into() }
    }

    /// A value that cannot even be shown as a text.
    pub(super) fn without_value(setting: &Setting, origin: &Origin, message: &str) -> Self {
        Self { key: Some(setting.key), text: format!("{} ({origin}): {message}", setting.key) }
    }

    /// A value that a setting does not take; `message` says what it takes.
    pub(super) fn with_value(setting: &Setting, value: &str, origin: &Origin, message: &str) -> Self {
        let value = display_value(setting, value, MAX_VALUE_CHARS);
        Self { key: Some(setting.key), text: format!("{} = {value} ({origin}): {message}", setting.key) }
    }

    /// Whether it is about this setting.
    pub(super) fn is_about(&self, setting: &Setting) -> bool {
        self.key == Some(setting.key)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text that ends the start: every problem on its line.
pub fn report(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "restante: the configuration has an error:\n".to_owned(),
        many => format!("restante: the configuration has {many} errors:\n"),
    };
    for problem in problems {
        let _ = writeln!(text, "  {problem}");
    }
    text
}

/// A value as it may be shown: quoted, without control characters, cut after `max_chars`, and not at all
/// when secret.
pub(super) fn display_value(setting: &Setting, value: &str, max_chars: usize) -> String {
    if setting.is_secret && !value.is_empty() {
        return "\"***\"".to_owned();
    }
    let mut quoted = String::from('"');
    for (count, c) in value.chars().enumerate() {
        if count == max_chars {
            quoted.push_str("...");
            break;
        }
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `; did you mean "..."?` when one of the names looks much like the given one, else nothing.
pub(super) fn suggestion(given: &str, names: impl Iterator<Item = String>) -> String {
    if given.len() > MAX_NAME_BYTES {
        return String::new();
    }
    let tolerated = 1 + given.len() / 5;
    names
        .map(|name| (distance(given.as_bytes(), name.as_bytes()), name))
        .filter(|(distance, _)| *distance <= tolerated)
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"))
}

/// How many bytes have to be inserted, removed, replaced or swapped with their neighbour to turn one into the other.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = vec![i + 1];
        for j in 0..to.len() {
            let replaced = last[j] + usize::from(from[i] != to[j]);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let cases = [
            ("", "", 0),
            ("abc", "", 3),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("adress", "address", 1),
            ("smpt", "smtp", 1),
        ];
        for (from, to, expected) in cases {
            assert_eq!(distance(from.as_bytes(), to.as_bytes()), expected, "{from} {to}");
        }
    }

    #[test]
    fn hints_only_for_likely_names() {
        let names = || ["smtp.addr", "web.addr"].into_iter().map(str::to_owned);
        assert_eq!(suggestion("smpt.addr", names()), "; did you mean smtp.addr?");
        assert_eq!(suggestion("storage.quota", names()), "");
        assert_eq!(suggestion(&"x".repeat(100_000), names()), "");
    }
}
