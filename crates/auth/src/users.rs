//! Users: a file of `name:hash` lines, as written by Apache's `htpasswd`, and those of the settings. The rights of a user
//! are in a comment of the file, which other programs ignore and keep: `#restante ann:read,write shop:*`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use crate::hash::PasswordHash;
use crate::replace::LockedFile;
use crate::rights::Rights;
use crate::tokens;

/// The maximum number of users in a file.
const MAX_USERS: usize = 10_000;
/// The maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 255;
/// The start of a line with the rights of a user.
const RIGHTS_PREFIX: &str = "#restante ";

/// What a line with rights must be.
const RIGHTS_FORM: &str = "#restante NAME:RIGHTS, such as #restante ann:read shop:*";

/// The users of a file or of the settings.
#[derive(Debug, Default)]
pub(crate) struct Users {
    by_name: HashMap<Arc<str>, PasswordHash>,
    /// The hashes of all users, in the order of the file.
    pub(crate) hashes: Vec<PasswordHash>,
    /// The rights of the users that may not do everything.
    rights: HashMap<String, Rights>,
}

impl Users {
    /// Parses a user file. Empty lines and comments without rights are ignored. The error gives the line number and no
    /// hash.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let mut users = Self::default();
        for (line, number) in text.lines().zip(1_usize..) {
            let line = line.trim_end();
            let added = match line.strip_prefix(RIGHTS_PREFIX) {
                Some(rights) => users.add_rights(rights),
                None if resembles_rights(line) => Err(format!("rights must be of the form {RIGHTS_FORM}")),
                None if line.is_empty() || line.starts_with('#') => Ok(()),
                None => users.add(line).map_err(str::to_owned),
            };
            added.map_err(|message| format!("line {number}: {message}"))?;
        }
        Ok(users)
    }

    /// Creates users from the names and passwords of the settings. A name that occurs twice has the last password.
    pub(crate) fn from_credentials(credentials: Vec<(String, PasswordHash)>) -> Self {
        let hashes = credentials.iter().map(|(_, hash)| hash.clone()).collect();
        let by_name = credentials.into_iter().map(|(name, hash)| (name.into(), hash)).collect();
        Self { by_name, hashes, rights: HashMap::new() }
    }

    /// Returns true if there are no users.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the name and the password hash of a user.
    pub(crate) fn find(&self, name: &str) -> Option<(&Arc<str>, &PasswordHash)> {
        self.by_name.get_key_value(name)
    }

    /// Returns the rights of the user of this name, who need not be in the file.
    pub(crate) fn rights(&self, name: &str) -> &Rights {
        const EVERYTHING: &Rights = &Rights::EVERYTHING;
        self.rights.get(name).unwrap_or(EVERYTHING)
    }

    /// Returns the first of the names with rights that are neither in this file nor among the other users.
    pub(crate) fn unknown_with_rights(&self, others: &Self) -> Option<&str> {
        let is_unknown = |name: &&str| self.find(name).or_else(|| others.find(name)).is_none();
        self.rights.keys().map(String::as_str).filter(is_unknown).min()
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

    fn add_rights(&mut self, text: &str) -> Result<(), String> {
        let (name, rights) = text.split_once(':').ok_or_else(|| format!("must be of the form {RIGHTS_FORM}"))?;
        check_name(name)?;
        if self.rights.len() >= MAX_USERS {
            return Err("too many users with rights: the limit is 10000".to_owned());
        }
        match self.rights.insert(name.to_owned(), rights.parse()?) {
            None => Ok(()),
            Some(_) => Err("the rights of the user are already defined".to_owned()),
        }
    }
}

/// Returns whether a comment was probably meant to be a line with rights. If it were ignored, the user could do everything.
fn resembles_rights(line: &str) -> bool {
    let text = line.strip_prefix('#').unwrap_or_default().trim_start().to_lowercase();
    let rest = text.strip_prefix(RIGHTS_PREFIX.trim_matches(['#', ' ']));
    rest.is_some_and(|rest| rest.starts_with([' ', '\t', ':']) && rest.contains(':'))
}

/// Returns the names and rights of all users of a file, sorted by name. The error is a sentence for the operator.
pub fn list(path: &Path) -> Result<Vec<(String, Rights)>, String> {
    let content = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let users = Users::parse(&content).map_err(|message| format!("{}: {message}", path.display()))?;
    let mut list: Vec<_> = users.by_name.keys().map(|name| (name.to_string(), users.rights(name).clone())).collect();
    list.sort_by(|(first, _), (second, _)| first.cmp(second));
    Ok(list)
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

/// Adds a user to a file, or changes the password of an existing one. The file is created if it does not exist. Without
/// rights, the user keeps those in the file. Returns true if the user is new. The error is a sentence for the operator.
pub fn add(path: &Path, name: &str, password: &str, rights: Option<&Rights>) -> Result<bool, String> {
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
    let (mut after, is_new) =
        replace_line(&String::from_utf8_lossy(&current.content), &format!("{name}:"), Some(&hash));
    if let Some(rights) = rights {
        let text = (*rights != Rights::EVERYTHING).then(|| rights.to_string());
        (after, _) = replace_line(&after, &format!("{RIGHTS_PREFIX}{name}:"), text.as_deref());
    }
    let users = Users::parse(after.as_bytes()).map_err(|message| format!("{}: {message}", path.display()))?;
    if rights.is_some_and(|rights| users.rights(name) != rights) {
        return Err("a mailbox pattern must not contain a space".to_owned());
    }
    locked.write(&current, after.as_bytes()).map_err(with_path)?;
    Ok(is_new)
}

/// Returns the text with the line that starts with this prefix replaced, appended or, if `rest` is `None`, removed. The
/// second value is true if there was no such line.
fn replace_line(text: &str, prefix: &str, rest: Option<&str>) -> (String, bool) {
    let mut new = rest.map(|rest| format!("{prefix}{rest}\n"));
    let (mut result, mut is_new) = (String::new(), true);
    for line in text.lines() {
        if line.starts_with(prefix) {
            is_new = false;
            result.extend(new.take());
        } else {
            result.extend([line, "\n"]);
        }
    }
    result.extend(new);
    (result, is_new)
}

#[cfg(test)]
mod tests {
    use restante_testdir::TestDir;

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
    fn parses_rights() {
        let text = format!(
            "#restante ann:read,write shop:* acme:*\nann:{HASH}\nbob:{HASH}\n#restante eve:read\n\
                 # restante\n# Restante users\n#restante-users: all\n"
        );
        let users = Users::parse(text.as_bytes()).unwrap();
        for (name, expected) in [("ann", "read,write shop:* acme:*"), ("bob", "all"), ("eve", "read")] {
            assert_eq!(users.rights(name).to_string(), expected);
        }
        assert_eq!(users.unknown_with_rights(&Users::default()), Some("eve"));
        let eve = Users::from_credentials(vec![("eve".to_owned(), PasswordHash::parse(HASH).unwrap())]);
        assert_eq!(users.unknown_with_rights(&eve), None);
        let table = [
            ("\n#restante ann", "line 2: must be of the form #restante NAME:RIGHTS"),
            ("#restante :read", "line 1: a name must have 1 to 255 bytes"),
            ("#restante ann:", "line 1: scopes are missing"),
            ("# restante ann:read shop:*", "line 1: rights must be of the form #restante NAME:RIGHTS, such as"),
            ("#Restante ann:read", "line 1: rights must be of the form"),
            ("#restante\tann:read", "line 1: rights must be of the form"),
            ("#  restante: ann:read", "line 1: rights must be of the form"),
            (" #restante ann:read", "line 1: a name must not begin or end with whitespace"),
            ("#restante ann:shop:*", "line 1: \"shop:*\" must be all or scopes"),
            ("#restante ann:read\n#restante ann:all", "line 2: the rights of the user are already defined"),
        ];
        for (text, expected) in table {
            let message = Users::parse(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }

    #[test]
    fn replaces_appends_or_removes_the_line() {
        let table = [
            ("", "ann:", Some("h"), "ann:h\n", true),
            ("# x\nann:g\nbob:g", "ann:", Some("h"), "# x\nann:h\nbob:g\n", false),
            ("anna:g\n", "ann:", Some("h"), "anna:g\nann:h\n", true),
            ("#restante ann:read\nann:g\n", "#restante ann:", None, "ann:g\n", false),
            ("ann:g\n", "#restante ann:", None, "ann:g\n", true),
        ];
        for (text, prefix, rest, after, is_new) in table {
            assert_eq!(replace_line(text, prefix, rest), (after.to_owned(), is_new), "{text}");
        }
    }

    #[test]
    fn rights_are_kept_unless_they_are_given() {
        let dir = TestDir::new();
        let path = dir.path().join("users");
        let rights = |text: &str| text.parse::<Rights>().unwrap();
        let table = [
            (Some(rights("read shop:*")), "read shop:*"),
            (None, "read shop:*"),
            (Some(rights("write")), "write"),
            (Some(Rights::EVERYTHING), "all"),
        ];
        for (given, expected) in table {
            add(&path, "ann", "secret", given.as_ref()).unwrap();
            assert_eq!(list(&path).unwrap(), [("ann".to_owned(), rights(expected))]);
        }
        assert!(!fs::read_to_string(&path).unwrap().contains(RIGHTS_PREFIX));
        let with_space = Rights { mailboxes: vec!["a b".to_owned()], ..rights("read") };
        assert!(add(&path, "ann", "secret", Some(&with_space)).unwrap_err().contains("must not contain a space"));
    }
}
