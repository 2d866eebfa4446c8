//! Users: a file of `name:hash` lines, as written by Apache's `htpasswd`, and those of the settings.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::hash::PasswordHash;
use crate::replace::LockedFile;
use crate::tokens;

/// The maximum number of users in a file.
const MAX_USERS: usize = 10_000;
/// The maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The users of a file or of the settings.
#[derive(Debug, Default)]
pub(crate) struct Users {
    by_name: HashMap<Arc<str>, PasswordHash>,
    /// The hashes of all users, in the order of the file.
    pub(crate) hashes: Vec<PasswordHash>,
}

impl Users {
    /// Parses a user file. Empty lines and lines that begin with `#` are ignored. The error gives the line number and
    /// nothing of the content.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let mut users = Self::default();
        for (line, number) in text.lines().zip(1_usize..) {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            users.add(line).map_err(|message| format!("line {number}: {message}"))?;
        }
        Ok(users)
    }

    /// Creates users from the names and passwords of the settings. A name that occurs twice has the last password.
    pub(crate) fn from_credentials(credentials: Vec<(String, PasswordHash)>) -> Self {
        let hashes = credentials.iter().map(|(_, hash)| hash.clone()).collect();
        Self { by_name: credentials.into_iter().map(|(name, hash)| (name.into(), hash)).collect(), hashes }
    }

    /// Returns true if there are no users.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the name and the password hash of a user.
    pub(crate) fn find(&self, name: &str) -> Option<(&Arc<str>, &PasswordHash)> {
        self.by_name.get_key_value(name)
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, hash) = line.split_once(':').ok_or("must be of the form NAME:HASH")?;
        check_name(name)?;
        // Other programs may add further fields.
        let hash = PasswordHash::parse(hash.split(':').next().unwrap_or_default())?;
        if self.by_name.len() >= MAX_USERS {
            return Err("too many users: the limit is 10000");
        }
        self.hashes.push(hash.clone());
        match self.by_name.insert(name.into(), hash) {
            None => Ok(()),
            Some(_) => Err("the user is already defined"),
        }
    }
}

/// Checks the content of a user file. The error says what is wrong and contains nothing of the content.
pub fn check(content: &[u8]) -> Result<(), String> {
    Users::parse(content).map(drop)
}

/// Checks whether a user can have this name. The error says what is wrong.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err("a name must have 1 to 255 bytes");
    }
    if name.trim() != name {
        return Err("a name must not begin or end with whitespace");
    }
    if name.starts_with('#') || name.chars().any(|c| c == ':' || c == '*' || c.is_control()) {
        return Err("a name must not begin with # or contain a colon, an asterisk or a control character");
    }
    Ok(())
}

/// Adds a user to a file, or changes the password of an existing one. The file is created if it does not exist. Returns
/// true if the user is new. The error is a sentence for the operator.
pub fn add(path: &Path, name: &str, password: &str) -> Result<bool, String> {
    check_name(name)?;
    if password.is_empty() {
        return Err("the password must not be empty".to_owned());
    }
    if tokens::looks_like_token(password) {
        return Err("the password must not look like a token".to_owned());
    }
    let hash = PasswordHash::generate(password).map_err(|_| "the password cannot be hashed".to_owned())?;
    let with_path = |error: io::Error| format!("{}: {error}", path.display());
    let locked = LockedFile::lock(path).map_err(with_path)?;
    let current = locked.read().map_err(with_path)?;
    Users::parse(&current.content).map_err(|message| format!("{}: {message}", path.display()))?;
    let (after, is_new) = replace_line(&String::from_utf8_lossy(&current.content), name, &hash);
    Users::parse(after.as_bytes()).map_err(|message| format!("{}: {message}", path.display()))?;
    locked.write(&current, after.as_bytes()).map_err(with_path)?;
    Ok(is_new)
}

/// Returns the text with the line of the user replaced, or appended. The second value is true if it was appended.
fn replace_line(text: &str, name: &str, hash: &str) -> (String, bool) {
    let is_line_of_user = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    let new = format!("{name}:{hash}");
    let mut is_new = true;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if is_line_of_user(line) {
            is_new = false;
            lines.push(&new);
        } else {
            lines.push(line);
        }
    }
    if is_new {
        lines.push(&new);
    }
    (lines.join("\n") + "\n", is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$04$MDEyMzQ1Njc4OWFiY2RlZeJ0eNTxrjw3Y5r5v6yS0vcgYzDkZEYyq";

    #[test]
    fn parses_users_and_reports_errors() {
        let text = format!("# people\n\nann:{HASH}\njürgen:{HASH}:further field\r\n");
        let users = Users::parse(text.as_bytes()).unwrap();
        assert!(users.find("ann").is_some() && users.find("jürgen").is_some() && users.find("Ann").is_none());
        assert!(users.find("# people").is_none());
        let table = [
            (format!("ann:{HASH}\nann:{HASH}"), "line 2: the user is already defined"),
            (format!("\n:{HASH}"), "line 2: a name must have 1 to 255 bytes"),
            (format!(" ann:{HASH}"), "line 1: a name must not begin or end with whitespace"),
            (format!("ann\u{a0}:{HASH}"), "line 1: a name must not begin or end with whitespace"),
            (format!("a*b:{HASH}"), "line 1: a name must not"),
            ("ann".to_owned(), "line 1: must be of the form NAME:HASH"),
            ("ann:secret".to_owned(), "line 1: the hash must begin with"),
        ];
        for (text, expected) in table {
            let message = Users::parse(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(expected), "{text}: {message}");
            assert!(!message.contains("secret"));
        }
        assert!(Users::parse(b"ann:\xff").is_err());
    }

    #[test]
    fn replaces_or_appends_the_line() {
        assert_eq!(replace_line("", "ann", "h"), ("ann:h\n".to_owned(), true));
        assert_eq!(replace_line("# x\nann:g\nbob:g", "ann", "h"), ("# x\nann:h\nbob:g\n".to_owned(), false));
        assert_eq!(replace_line("anna:g\n", "ann", "h"), ("anna:g\nann:h\n".to_owned(), true));
    }
}
