//! Who may open which mailbox. Nobody configured means that everybody may open all of them, with anything: a catcher
//! shows mail, it does not keep it from people.

use md5::{Digest as _, Md5};
use restante_mail::naming::MailboxName;
use restante_proto::pop3::Proof;

use crate::config::Key;
use crate::constant_time::equal;

/// The configured mailboxes and their passwords.
#[derive(Debug)]
pub struct Login {
    keys: Vec<Key>,
}

impl Login {
    /// Checks against these.
    pub fn new(keys: Vec<Key>) -> Self {
        Self { keys }
    }

    /// Whether anything opens every mailbox.
    pub(super) fn is_open(&self) -> bool {
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
        self.is_open() || self.keys.iter().fold(false, |open, key| open | (fits(key) & proves(key, proof)))
    }
}

fn proves(key: &Key, proof: &Proof) -> bool {
    let password = key.password.expose().as_bytes();
    match proof {
        Proof::Password(given) => equal(password, given.expose().as_bytes()),
        // RFC 1939 section 7: MD5 of the greeting's timestamp, with its brackets, and the shared secret behind it.
        Proof::Digest { timestamp, digest } => {
            let expected = Md5::new().chain_update(timestamp).chain_update(password).finalize();
            equal(&expected, digest)
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::naming::Naming;
    use restante_proto::Secret;

    use super::*;

    const TIMESTAMP: &str = "<1896.697170952@dbc.mtview.ca.us>";

    fn named(text: &str) -> MailboxName {
        Naming::Local.mailbox_named(text).unwrap()
    }

    /// Each with the mailbox it opens; `*` opens all of them.
    fn login(keys: &[(&str, &str)]) -> Login {
        let key = |(mailbox, password): &(&str, &str)| Key {
            mailbox: (*mailbox != "*").then(|| named(mailbox)),
            password: Secret::new(*password),
        };
        Login::new(keys.iter().map(key).collect())
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
        let login = login(&[("james", "one"), ("ann", "two"), ("*", "all")]);
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
            let mailbox = named(mailbox);
            let name = Naming::Local.mailbox_named(user).ok();
            for proof in [password(text), digest(text)] {
                assert_eq!(login.check(&mailbox, name.as_ref(), &proof), opens, "{mailbox} {user} {proof:?} {text}");
            }
        }
    }

    #[test]
    fn without_credentials_anything_opens_everything() {
        let login = login(&[]);
        let mailbox = named("james");
        for proof in [password(""), password("x"), digest("x")] {
            assert!(login.check(&mailbox, None, &proof));
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1939 section 7.
        let login = login(&[("mrose", "tanstaaf")]);
        let mailbox = named("mrose");
        let digest = 0xc4c9_334b_ac56_0ecc_979e_5800_1b3e_22fb_u128.to_be_bytes();
        let proof = Proof::Digest { timestamp: TIMESTAMP.to_owned(), digest };
        assert!(login.check(&mailbox, Some(&mailbox), &proof));
    }
}
