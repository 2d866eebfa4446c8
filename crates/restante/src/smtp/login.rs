//! Who may log in over SMTP. Nobody configured means that everybody may, with anything: a catcher tests senders, it
//! does not keep them out.

use crate::config::Credential;
use crate::constant_time::equal;

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
        let same = |known: &Credential| {
            equal(known.user.as_bytes(), user.as_bytes())
                & equal(known.password.expose().as_bytes(), password.as_bytes())
        };
        self.credentials.is_empty() || self.credentials.iter().fold(false, |found, known| found | same(known))
    }
}
