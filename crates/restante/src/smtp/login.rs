//! Who may log in over SMTP. Nobody configured means that everybody may, with anything: a catcher tests senders, it
//! does not keep them out.

use std::net::IpAddr;
use std::sync::Arc;

use restante_access::{Denied, Grant, Reason, Scope};

use crate::config::Credential;
use crate::constant_time::equal;
use crate::locks::Locks;

/// The configured users and their passwords, and those who are known to all protocols.
#[derive(Debug)]
pub struct Login {
    credentials: Vec<Credential>,
    locks: Option<Arc<Locks>>,
}

impl Login {
    /// Checks against these.
    pub fn new(credentials: Vec<Credential>, locks: Option<Arc<Locks>>) -> Self {
        Self { credentials, locks }
    }

    /// What keeps out those who are not known, where there is such a thing.
    pub(super) fn locks(&self) -> Option<&Locks> {
        self.locks.as_deref()
    }

    /// What a client may do that has logged in like this. A token, in the place of the password, must allow to write.
    pub async fn check(&self, user: &str, password: &str, ip: Option<IpAddr>) -> Result<Grant, Denied> {
        if self.is_configured(user, password) {
            return Ok(Grant::EVERYTHING);
        }
        let locks = self.locks.as_ref().ok_or(Reason::WrongPassword)?;
        let grant = locks.keeper.check(user, password, ip.into()).await?.grant;
        if grant.allows_somewhere(Scope::Write) { Ok(grant) } else { Err(Denied::to(grant.holder(), Reason::Scope)) }
    }

    /// Whether this user has this password by the settings, or anything will do. Takes the same time whichever character is
    /// wrong.
    fn is_configured(&self, user: &str, password: &str) -> bool {
        let same = |known: &Credential| {
            equal(known.user.as_bytes(), user.as_bytes())
                & equal(known.password.expose().as_bytes(), password.as_bytes())
        };
        let is_open = self.credentials.is_empty() && self.locks.is_none();
        is_open || self.credentials.iter().fold(false, |found, known| found | same(known))
    }
}
