//! The users: a file of `name:hash` lines, as Apache's `htpasswd` writes it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::hash::PasswordHash;
use crate::replace::LockedFile;
use crate::tokens;

/// The most users of one file.
const MAX_USERS: usize = 10_000;
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// What a password is checked against that is nobody's, where there are no users at all to take the time from: a hash
/// with the same parameters as those made here.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$cmVzdGFudGUtbm9ib2R5$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The users of a file.
#[derive(Debug, Default)]
pub(crate) struct Users {
    by_name: HashMap<Arc<str>, PasswordHash>,
    /// Those of all users, in the order of the file.
    hashes: Vec<PasswordHash>,
}

impl Users {
    /// Reads a file. Empty lines and those that begin with `#` mean nothing. The error names the line and shows none of it.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let mut users = Self::default();
        for (line, number) in text.lines().zip(1_usize..) {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            users.add(line).map_err(|problem| format!("line {number}: {problem}"))?;
        }
        Ok(users)
    }

    /// The hash of this user's password, and the name.
    pub(crate) fn find(&self, name: &str) -> Option<(&Arc<str>, &PasswordHash)> {
        self.by_name.get_key_value(name)
    }

    /// A hash to check the password of a user against that there is not, so that this takes as long as with one that
    /// there is. Users may have hashes that take different times, so the one is chosen by a number that belongs to the name
    /// and that nobody else can work out: the time tells what a hash may be like, and not whether there is a user to it.
    pub(crate) fn dummy_hash(&self, number: u64) -> Result<PasswordHash, &'static str> {
        let place = usize::try_from(number % self.hashes.len().max(1) as u64).unwrap_or_default();
        self.hashes.get(place).cloned().map_or_else(|| PasswordHash::parse(DUMMY_HASH), Ok)
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, hash) = line.split_once(':').ok_or("must be a name, a colon and a hash")?;
        check_name(name)?;
        // Other programs may add further fields.
        let hash = PasswordHash::parse(hash.split(':').next().unwrap_or_default())?;
        if self.by_name.len() >= MAX_USERS {
            return Err("there are too many users");
        }
        self.hashes.push(hash.clone());
        match self.by_name.insert(name.into(), hash) {
            None => Ok(()),
            Some(_) => Err("the user is there already"),
        }
    }
}

/// Whether the content of a file can be used; the error says what is wrong, and shows none of it.
pub fn check(content: &[u8]) -> Result<(), String> {
    Users::parse(content).map(drop)
}

/// Whether a name can be a user's; the error says what is wrong.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err("a name must have 1 to 255 bytes");
    }
    if name.trim() != name {
        return Err("a name must not begin or end with a blank");
    }
    if name.starts_with('#') || name.chars().any(|c| c == ':' || c == '*' || c.is_control()) {
        return Err("a name must not begin with #, nor hold a colon, an asterisk or a control character");
    }
    Ok(())
}

/// Writes a user with this password into a file, which is made if it is not there; the password of a user that there is
/// already is replaced. Whether the user is a new one. The error is a sentence for the operator.
pub fn add(path: &Path, name: &str, password: &str) -> Result<bool, String> {
    check_name(name)?;
    if password.is_empty() {
        return Err("the password must not be empty".to_owned());
    }
    if tokens::looks_like_token(password) {
        return Err("the password must not look like a token".to_owned());
    }
    let hash = PasswordHash::generate(password).map_err(|_| "the password cannot be hashed".to_owned())?;
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let locked = LockedFile::lock(path).map_err(told)?;
    let current = locked.read().map_err(told)?;
    Users::parse(&current.content).map_err(|problem| format!("{}: {problem}", path.display()))?;
    let (after, is_new) = replace_line(&String::from_utf8_lossy(&current.content), name, &hash);
    Users::parse(after.as_bytes()).map_err(|problem| format!("{}: {problem}", path.display()))?;
    locked.write(&current, after.as_bytes()).map_err(told)?;
    Ok(is_new)
}

/// The text with the user's line put in the place of the one before, or at the end.
fn replace_line(text: &str, name: &str, hash: &str) -> (String, bool) {
    let is_theirs = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    let new = format!("{name}:{hash}");
    let mut is_new = true;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if is_theirs(line) {
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
    fn lines_of_a_file() {
        let text = format!("# people\n\nann:{HASH}\njürgen:{HASH}:further field\r\n");
        let users = Users::parse(text.as_bytes()).unwrap();
        assert!(users.find("ann").is_some() && users.find("jürgen").is_some() && users.find("Ann").is_none());
        assert!(users.find("# people").is_none());
        let table = [
            (format!("ann:{HASH}\nann:{HASH}"), "line 2: the user is there already"),
            (format!("\n:{HASH}"), "line 2: a name must have 1 to 255 bytes"),
            (format!(" ann:{HASH}"), "line 1: a name must not begin or end with a blank"),
            (format!("ann\u{a0}:{HASH}"), "line 1: a name must not begin or end with a blank"),
            (format!("a*b:{HASH}"), "line 1: a name must not"),
            ("ann".to_owned(), "line 1: must be a name, a colon and a hash"),
            ("ann:secret".to_owned(), "line 1: the hash must be of the kind"),
        ];
        for (text, expected) in table {
            let problem = Users::parse(text.as_bytes()).unwrap_err();
            assert!(problem.starts_with(expected), "{text}: {problem}");
            assert!(!problem.contains("secret"));
        }
        assert!(Users::parse(b"ann:\xff").is_err());
    }

    #[test]
    fn there_is_always_a_hash_to_take_the_time_from() {
        assert!(!Users::default().dummy_hash(7).unwrap().verify(""));
        let users = Users::parse(format!("ann:{HASH}\nbob:{DUMMY_HASH}\ncid:{HASH}").as_bytes()).unwrap();
        for (number, expected) in [(0, HASH), (1, DUMMY_HASH), (2, HASH), (4, DUMMY_HASH), (u64::MAX, HASH)] {
            assert_eq!(users.dummy_hash(number).unwrap().as_str(), expected, "{number}");
        }
    }

    #[test]
    fn a_line_is_put_in_the_place_of_the_one_before() {
        assert_eq!(replace_line("", "ann", "h"), ("ann:h\n".to_owned(), true));
        assert_eq!(replace_line("# x\nann:g\nbob:g", "ann", "h"), ("# x\nann:h\nbob:g\n".to_owned(), false));
        assert_eq!(replace_line("anna:g\n", "ann", "h"), ("anna:g\nann:h\n".to_owned(), true));
    }
}
