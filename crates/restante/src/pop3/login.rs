//! Who may open which mailbox. Nobody configured means that everybody may open all of them, with anything: a catcher
//! shows mail, it does not keep it from people.

use md5::{Digest as _, Md5};
use restante_mail::naming::{MailboxName, NameError, Naming};
use restante_proto::Secret;
use restante_proto::pop3::Proof;

use crate::config::Credential;
use crate::constant_time::equal;

/// The user whose password opens all mailboxes.
const EVERY_MAILBOX: &str = "*";

/// The configured mailboxes and their passwords.
#[derive(Debug)]
pub struct Login {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    /// What it opens; none means every mailbox.
    mailbox: Option<MailboxName>,
    password: Secret,
}

impl Login {
    /// Checks against these. Their users name mailboxes as a client's user does; the error counts them and shows none.
    pub fn new(credentials: &[Credential], naming: Naming) -> Result<Self, String> {
        let key = |(credential, number): (&Credential, usize)| {
            let mailbox = match credential.user.as_str() {
                EVERY_MAILBOX => None,
                user => Some(naming.mailbox_named(user).map_err(|error| names_nothing(number, &error))?),
            };
            Ok(Key { mailbox, password: credential.password.clone() })
        };
        Ok(Self { keys: credentials.iter().zip(1..).map(key).collect::<Result<_, String>>()? })
    }

    /// Whether anything opens every mailbox.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the proof of a user, who may be somebody without a mailbox, opens a mailbox. Takes the same time whichever
    /// character is wrong.
    pub fn check(&self, mailbox: &MailboxName, user: Option<&MailboxName>, proof: &Proof) -> bool {
        // Nobody opens another's mailbox by a password of one's own (RFC 4616 section 2: the authorization identity).
        let fits = |key: &Key| match &key.mailbox {
            Some(own) => own == mailbox && Some(own) == user,
            None => true,
        };
        self.is_open() || self.keys.iter().fold(false, |open, key| open | (fits(key) & key.is_proved_by(proof)))
    }
}

impl Key {
    fn is_proved_by(&self, proof: &Proof) -> bool {
        let password = self.password.expose().as_bytes();
        match proof {
            Proof::Password(given) => equal(password, given.expose().as_bytes()),
            // RFC 1939 section 7: MD5 of the greeting's timestamp, with its brackets, and the shared secret behind it.
            Proof::Digest { timestamp, digest } => {
                let expected = Md5::new().chain_update(timestamp).chain_update(password).finalize();
                equal(&expected, digest)
            }
        }
    }
}

fn names_nothing(number: usize, error: &NameError) -> String {
    format!("the user of entry {number} names no mailbox: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMESTAMP: &str = "<1896.697170952@dbc.mtview.ca.us>";

    fn login(naming: Naming, credentials: &[(&str, &str)]) -> Result<Login, String> {
        let credential =
            |(user, password): &(&str, &str)| Credential { user: (*user).to_owned(), password: Secret::new(*password) };
        Login::new(&credentials.iter().map(credential).collect::<Vec<_>>(), naming)
    }

    fn password(text: &str) -> Proof {
        Proof::Password(Secret::new(text))
    }

    fn digest(text: &str) -> Proof {
        let digest = Md5::new().chain_update(TIMESTAMP).chain_update(text).finalize().into();
        Proof::Digest { timestamp: TIMESTAMP.to_owned(), digest }
    }

    #[test]
    fn who_opens_what() {
        let login = login(Naming::Local, &[("James+a@x.org", "one"), ("ann", "two"), ("*", "all")]).unwrap();
        // The mailbox, the user, the password, and whether it opens.
        let table = [
            ("james", "james", "one", true),
            ("james", "james", "two", false),
            ("james", "james", "all", true),
            ("james", "james", "", false),
            ("james", "james", "One", false),
            ("ann", "ann", "two", true),
            ("ann", "ann", "one", false),
            ("jim", "jim", "one", false),
            ("jim", "jim", "all", true),
            ("james", "ann", "two", false),
            ("james", "ann", "one", false),
            ("james", "ann", "all", true),
            ("james", "first last", "one", false),
            ("james", "first last", "all", true),
        ];
        for (mailbox, user, text, opens) in table {
            let mailbox = Naming::Local.mailbox_named(mailbox).unwrap();
            let name = Naming::Local.mailbox_named(user).ok();
            for proof in [password(text), digest(text)] {
                assert_eq!(login.check(&mailbox, name.as_ref(), &proof), opens, "{mailbox} {user} {proof:?} {text}");
            }
        }
    }

    #[test]
    fn without_credentials_anything_opens_everything() {
        let login = login(Naming::Local, &[]).unwrap();
        let mailbox = Naming::Local.mailbox_named("james").unwrap();
        for proof in [password(""), password("x"), digest("x")] {
            assert!(login.check(&mailbox, None, &proof));
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1939 section 7.
        let login = login(Naming::Local, &[("mrose", "tanstaaf")]).unwrap();
        let mailbox = Naming::Local.mailbox_named("mrose").unwrap();
        let digest = 0xc4c9_334b_ac56_0ecc_979e_5800_1b3e_22fb_u128.to_be_bytes();
        let proof = Proof::Digest { timestamp: TIMESTAMP.to_owned(), digest };
        assert!(login.check(&mailbox, Some(&mailbox), &proof));
    }

    #[test]
    fn users_are_named_as_mailboxes_are() {
        let full = login(Naming::Full, &[("James@X.org", "one")]).unwrap();
        let named = |text| Naming::Full.mailbox_named(text).unwrap();
        for (mailbox, opens) in [("james@x.org", true), ("james", false), ("james@y.org", false)] {
            assert_eq!(full.check(&named(mailbox), Some(&named(mailbox)), &password("one")), opens, "{mailbox}");
        }
        let problem = login(Naming::Domain, &[("x.org", "one"), ("a!", "two")]).unwrap_err();
        assert!(problem.starts_with("the user of entry 2 names no mailbox: "), "{problem}");
    }
}
