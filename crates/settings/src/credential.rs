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
        let items = split_list(text);
        if items.is_empty() && !text.is_empty() {
            return Err("must contain at least one USER:PASSWORD, or be empty".to_owned());
        }
        let mut names = HashSet::new();
        collect_all(items.iter().zip(1..).map(|(item, number)| {
            let (user, password) = item
                .split_once(':')
                .filter(|(user, password)| !user.is_empty() && !password.is_empty())
                .ok_or_else(|| format!("entry {number} is not of the form USER:PASSWORD"))?;
            // A comma separates the entries.
            let password = password.replace("%2C", ",");
            PasswordHash::parse_or_plain(&password).map_err(|error| format!("entry {number}: {error}"))?;
            if !names.insert(user) {
                return Err(format!("entry {number} repeats a user name"));
            }
            Ok(Self { user: user.to_owned(), password: Secret::new(password) })
        }))
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

/// The password of a mailbox over POP3.
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

    /// Converts the users to mailboxes, as at a POP3 login. Errors give the number of the entry and nothing of its
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
