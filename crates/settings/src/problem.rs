//! Problems of a configuration, and how they are reported: all at once, each with the source of the value.

use std::fmt;
use std::fmt::Write;
use std::path::PathBuf;

use strsim::osa_distance;

use super::setting::Setting;

/// The prefix of Inbucket's variables, which existing installations use.
pub(super) const COMPAT_PREFIX: &str = "INBUCKET_";

/// The maximum number of characters of an invalid value that are shown.
const MAX_VALUE_CHARS: usize = 100;
/// The maximum length of a name for which a similar name is suggested.
const MAX_NAME_BYTES: usize = 64;

/// The source of a value, in ascending order of precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default in the table.
    Default,
    /// The host name of the machine.
    HostName,
    /// The default of a program that the server replaces; the name of that program.
    EmulatedProgram(&'static str),
    /// A variable or a flag of a program that the server replaces, such as `variable MP_WEBROOT`.
    Foreign(String),
    /// A line of the configuration file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A command-line flag.
    Flag(String),
}

impl Origin {
    /// Returns true if a value from this source overrides one from the other.
    pub(super) fn overrides(&self, other: &Self) -> bool {
        self.precedence() > other.precedence()
    }

    fn precedence(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::HostName => 1,
            Self::EmulatedProgram(_) => 2,
            Self::Foreign(_) => 3,
            Self::File { .. } => 4,
            Self::Variable(name) if name.starts_with(COMPAT_PREFIX) => 5,
            Self::Variable(_) => 6,
            Self::Flag(_) => 7,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::HostName => f.write_str("host name"),
            Self::EmulatedProgram(program) => write!(f, "default as {program}"),
            Self::Foreign(source) => f.write_str(source),
            Self::File { path, line } => write!(f, "file {}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// A problem of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key of the setting.
    key: Option<&'static str>,
    text: String,
}

impl Problem {
    /// A problem that belongs to no setting, such as an unreadable file.
    pub fn new(text: impl Into<String>) -> Self {
        Self { key: None, text: text.into() }
    }

    /// A problem with a value that cannot be shown as text.
    pub(super) fn without_value(setting: &Setting, origin: &Origin, message: &str) -> Self {
        Self { key: Some(setting.key), text: format!("{} ({origin}): {message}", setting.key) }
    }

    /// A problem with a value; `message` says what is accepted.
    pub(super) fn with_value(setting: &Setting, value: &str, origin: &Origin, message: &str) -> Self {
        let value = display_value(setting, value, MAX_VALUE_CHARS);
        Self { key: Some(setting.key), text: format!("{} = {value} ({origin}): {message}", setting.key) }
    }

    /// Returns true if the problem is about this setting.
    pub(super) fn is_about(&self, setting: &Setting) -> bool {
        self.key == Some(setting.key)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the error report for the terminal, with one problem per line.
pub fn report(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "restante: the configuration has an error:\n".to_owned(),
        count => format!("restante: the configuration has {count} errors:\n"),
    };
    for problem in problems {
        let _ = writeln!(text, "  {problem}");
    }
    text
}

/// Returns a value for display: quoted, without control characters, truncated to `max_chars`, and masked if it is
/// secret.
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

/// Returns `; did you mean ...?` if one of the names is similar to the given one, otherwise an empty text.
pub(super) fn suggestion(given: &str, names: impl Iterator<Item = String>) -> String {
    if given.len() > MAX_NAME_BYTES {
        return String::new();
    }
    let max_distance = 1 + given.chars().count() / 5;
    names
        .map(|name| (osa_distance(given, &name), name))
        .filter(|(distance, _)| *distance <= max_distance)
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let names = || ["smtp.addr", "web.addr"].into_iter().map(str::to_owned);
        assert_eq!(suggestion("smpt.addr", names()), "; did you mean smtp.addr?");
        assert_eq!(suggestion("storage.quota", names()), "");
        assert_eq!(suggestion(&"x".repeat(100_000), names()), "");
    }
}
