//! Users and passwords as the settings list them. Errors never show any of them.

use std::collections::HashSet;

use restante_mail::naming::{MailboxName, Naming};
use restante_proto::Secret;

use super::values::collect_all;

/// A user and the password that goes with the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Credential {
    /// Parses a list of `user:password`; errors count the entries and show none of them.
    pub(super) fn parse_list(items: &[String]) -> Result<Vec<Self>, String> {
        let mut users = HashSet::new();
        collect_all(items.iter().zip(1..).map(|(item, number)| {
            let (user, password) = item
                .split_once(':')
                .filter(|(user, password)| !user.is_empty() && !password.is_empty())
                .ok_or_else(|| format!("entry {number} is no USER:PASSWORD"))?;
            if !users.insert(user) {
                return Err(format!("entry {number} repeats a user"));
            }
            Ok(Self { user: user.to_owned(), password: Secret::new(password) })
        }))
    }
}

/// What opens mailboxes over POP3: a credential whose user is known to name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxPassword {
    /// What it opens; none means every mailbox.
    pub mailbox: Option<MailboxName>,
    /// The password.
    pub password: Secret,
}

impl MailboxPassword {
    /// The user whose password opens all mailboxes.
    const EVERY_MAILBOX: &str = "*";

    /// Takes the users for mailboxes, which they name as a client's user does; the error counts them and shows none. Two
    /// users may be two names of one mailbox, which has one password only.
    pub(super) fn from_credentials(credentials: &[Credential], naming: Naming) -> Result<Vec<Self>, String> {
        let mut mailboxes = HashSet::new();
        let key = |(credential, number): (&Credential, usize)| {
            let mailbox = match credential.user.as_str() {
                Self::EVERY_MAILBOX => None,
                user => {
                    let named = naming.parse_mailbox(user);
                    Some(named.map_err(|error| format!("the user of entry {number} names no mailbox: {error}"))?)
                }
            };
            if !mailboxes.insert(mailbox.clone()) {
                return Err(format!("the user of entry {number} names the mailbox of an entry before it"));
            }
            Ok(Self { mailbox, password: credential.password.clone() })
        };
        credentials.iter().zip(1..).map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(naming: Naming, users: &[&str]) -> Result<Vec<Option<String>>, String> {
        let credential = |user: &&str| Credential { user: (*user).to_owned(), password: Secret::new("secret") };
        let keys = MailboxPassword::from_credentials(&users.iter().map(credential).collect::<Vec<_>>(), naming)?;
        Ok(keys.iter().map(|key| key.mailbox.as_ref().map(ToString::to_string)).collect())
    }

    #[test]
    fn users_are_named_as_mailboxes_are() {
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(keys(Naming::Local, &["James+a@X.org", "*"]), Ok(vec![named("james"), None]));
        assert_eq!(keys(Naming::Full, &["James@X.org"]), Ok(vec![named("james@x.org")]));
        let problem = keys(Naming::Domain, &["x.org", "a!"]).unwrap_err();
        assert!(problem.starts_with("the user of entry 2 names no mailbox: "), "{problem}");
        let twice = Err("the user of entry 3 names the mailbox of an entry before it".to_owned());
        assert_eq!(keys(Naming::Local, &["bob", "*", "Bob@x.org"]), twice);
        assert_eq!(keys(Naming::Full, &["bob@y.org", "bob@x.org"]).map(|keys| keys.len()), Ok(2));
    }
}
