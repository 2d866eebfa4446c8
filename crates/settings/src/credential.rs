//! Users and passwords in the settings. Errors never contain any of them.

use std::collections::HashSet;

use restante_auth::{PasswordHash, users};
use restante_mail::naming::{MailboxName, Naming};
use restante_proto::Secret;

use super::values::{collect_all, split_list};

/// A user name and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user name.
    pub user: String,
    /// The password, or a hash of it.
    pub password: Secret,
}

impl Credential {
    /// Parses a list of `user:password`. Errors give the number of the entry and nothing of its content. A list of commas
    /// and blanks is an error: the server would accept every login.
    pub(super) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let pairs = parse_pairs(text, "USER:PASSWORD", "a user name", |password| {
            PasswordHash::parse_or_plain(password).map(drop).map_err(str::to_owned)
        })?;
        Ok(pairs.into_iter().map(|(user, password)| Self { user, password }).collect())
    }
}

/// Parses a list of names and secrets with a colon between them. `form` is how an entry is written, and `name` what its first
/// part is. Errors contain nothing of the entries.
fn parse_pairs(
    text: &str,
    form: &str,
    name: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<Vec<(String, Secret)>, String> {
    let items = split_list(text);
    if items.is_empty() && !text.is_empty() {
        return Err(format!("must contain at least one {form}, or be empty"));
    }
    let mut names = HashSet::new();
    collect_all(items.iter().zip(1..).map(|(item, number)| {
        let (first, secret) = item
            .split_once(':')
            .filter(|(first, secret)| !first.is_empty() && !secret.is_empty())
            .ok_or_else(|| format!("entry {number} is not of the form {form}"))?;
        // A comma separates the entries.
        let secret = secret.replace("%2C", ",");
        check(&secret).map_err(|error| format!("entry {number}: {error}"))?;
        if !names.insert(first) {
            return Err(format!("entry {number} repeats {name}"));
        }
        Ok((first.to_owned(), Secret::new(secret)))
    }))
}

/// A key with which clients sign requests. They send its id, or nothing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The id.
    pub id: String,
    /// The secret.
    pub secret: Secret,
}

impl SigningKey {
    /// Parses a list of `id:secret`. Errors give the number of the entry and nothing of its content.
    pub(super) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let pairs = parse_pairs(text, "ID:SECRET", "an id", |_| Ok(()))?;
        Ok(pairs.into_iter().map(|(id, secret)| Self { id, secret }).collect())
    }
}

/// Converts credentials to the users of the authenticator. Errors give the number of the entry and nothing of its
/// content.
pub(super) fn parse_users(text: &str) -> Result<Vec<(String, PasswordHash)>, String> {
    let convert = |(credential, number): (Credential, usize)| {
        let Credential { user, password } = credential;
        users::check_name(&user).map_err(|error| format!("entry {number}: {error}"))?;
        let hash = PasswordHash::parse_or_plain(password.expose());
        Ok((user, hash.map_err(|error| format!("entry {number}: {error}"))?))
    };
    collect_all(Credential::parse_list(text)?.into_iter().zip(1..).map(convert))
}

/// The password of a mailbox over POP3 or IMAP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxPassword {
    /// The mailbox; `None` means all mailboxes.
    pub mailbox: Option<MailboxName>,
    /// The password.
    pub password: Secret,
}

impl MailboxPassword {
    /// The user name whose password opens all mailboxes.
    const EVERY_MAILBOX: &str = "*";

    /// Converts the users to mailboxes, as at a POP3 or IMAP login. Errors give the number of the entry and nothing of its
    /// content. Two users may name the same mailbox, which is an error, because a mailbox has only one password.
    pub(super) fn from_credentials(credentials: &[Credential], naming: Naming) -> Result<Vec<Self>, String> {
        let mut mailboxes = HashSet::new();
        let password = |(credential, number): (&Credential, usize)| {
            let mailbox = match credential.user.as_str() {
                Self::EVERY_MAILBOX => None,
                user => {
                    let mailbox = naming.parse_mailbox(user);
                    Some(
                        mailbox
                            .map_err(|error| format!("the user of entry {number} is not a mailbox name: {error}"))?,
                    )
                }
            };
            if !mailboxes.insert(mailbox.clone()) {
                return Err(format!("the user of entry {number} names the same mailbox as an earlier entry"));
            }
            Ok(Self { mailbox, password: credential.password.clone() })
        };
        credentials.iter().zip(1..).map(password).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailboxes_of(naming: Naming, users: &[&str]) -> Result<Vec<Option<String>>, String> {
        let credential = |user: &&str| Credential { user: (*user).to_owned(), password: Secret::new("secret") };
        let passwords = MailboxPassword::from_credentials(&users.iter().map(credential).collect::<Vec<_>>(), naming)?;
        Ok(passwords.iter().map(|password| password.mailbox.as_ref().map(ToString::to_string)).collect())
    }

    #[test]
    fn list_without_entries_is_an_error() {
        assert_eq!(Credential::parse_list(""), Ok(Vec::new()));
        for text in [" ", ",", " , "] {
            assert!(Credential::parse_list(text).unwrap_err().contains("at least one USER:PASSWORD"), "{text:?}");
            assert!(parse_users(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn signing_keys_hide_their_secrets() {
        let keys = SigningKey::parse_list("AKIDEXAMPLE:a/b+c=:d%2Ce, azure:Zm9v").unwrap();
        let pairs: Vec<_> = keys.iter().map(|key| (key.id.as_str(), key.secret.expose())).collect();
        assert_eq!(pairs, [("AKIDEXAMPLE", "a/b+c=:d,e"), ("azure", "Zm9v")]);
        let shown = format!("{keys:?}");
        assert!(shown.contains("AKIDEXAMPLE") && !shown.contains("a/b") && !shown.contains("Zm9v"), "{shown}");
        let table = [
            (",", "must contain at least one ID:SECRET, or be empty"),
            ("a:b,c", "entry 2 is not of the form ID:SECRET"),
            (":b", "entry 1 is not of the form ID:SECRET"),
            ("a:b,a:c", "entry 2 repeats an id"),
        ];
        for (text, expected) in table {
            assert_eq!(SigningKey::parse_list(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn users_are_converted_to_mailboxes() {
        let mailbox = |name: &str| Some(name.to_owned());
        assert_eq!(mailboxes_of(Naming::Local, &["James+a@X.org", "*"]), Ok(vec![mailbox("james"), None]));
        assert_eq!(mailboxes_of(Naming::Full, &["James@X.org"]), Ok(vec![mailbox("james@x.org")]));
        let message = mailboxes_of(Naming::Domain, &["x.org", "a!"]).unwrap_err();
        assert!(message.starts_with("the user of entry 2 is not a mailbox name: "), "{message}");
        let duplicate = Err("the user of entry 3 names the same mailbox as an earlier entry".to_owned());
        assert_eq!(mailboxes_of(Naming::Local, &["bob", "*", "Bob@x.org"]), duplicate);
        assert_eq!(mailboxes_of(Naming::Full, &["bob@y.org", "bob@x.org"]).map(|mailboxes| mailboxes.len()), Ok(2));
    }
}
