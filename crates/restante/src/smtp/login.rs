//! Who may log in over SMTP. Nobody configured means that everybody may, with anything: a catcher tests senders, it
//! does not keep them out.

use crate::config::Credential;

/// The configured users and their passwords.
#[derive(Debug)]
pub struct Login {
    credentials: Vec<Credential>,
}

impl Login {
    /// Checks against these.
    pub fn new(credentials: Vec<Credential>) -> Self {
        Self { credentials }
    }

    /// Whether this user has this password. Takes the same time whichever character is wrong.
    pub fn check(&self, user: &str, password: &str) -> bool {
        let same = |known: &Credential| equal(&known.user, user) & equal(known.password.expose(), password);
        self.credentials.is_empty() || self.credentials.iter().fold(false, |found, known| found | same(known))
    }
}

fn equal(known: &str, given: &str) -> bool {
    let differing = known.bytes().zip(given.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    known.len() == given.len() && differing == 0
}
