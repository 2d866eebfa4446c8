//! Checks logins over SMTP. If neither credentials nor accounts are configured, every login is accepted: a mail catcher tests
//! senders, it does not keep them out.

use std::net::IpAddr;
use std::sync::Arc;

use restante_access::{Configured, Denied, Grant, Reason, Scope};

use crate::config::Credential;
use crate::constant_time::equal;
use crate::locks::Locks;

/// The users and passwords of `smtp.credentials`, and the accounts of all protocols.
#[derive(Debug)]
pub struct Login {
    credentials: Vec<Credential>,
    locks: Arc<Locks>,
}

impl Login {
    /// Checks against these.
    pub fn new(credentials: Vec<Credential>, locks: Arc<Locks>) -> Self {
        Self { credentials, locks }
    }

    /// Where denials are logged.
    pub(super) fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Returns what a client may do after this login. A token, in the place of the password, must have the scope `write`.
    /// Waits before it looks at the password if the client or the user has failed logins.
    pub async fn check(&self, user: &str, password: &str, ip: Option<IpAddr>) -> Result<Grant, Denied> {
        if self.credentials.is_empty() && !self.locks.is_on() {
            return Ok(Grant::EVERYTHING);
        }
        let is_right = || self.is_configured(user, password);
        let has_user = self.credentials.iter().any(|known| known.user == user);
        let configured = Configured { setting: "smtp.credentials", has_user, is_right: &is_right };
        let grant = self.locks.keeper.check_configured(user, Some(password), ip.into(), &configured).await?;
        if grant.allows_somewhere(Scope::Write) { Ok(grant) } else { Err(Denied::to(grant.holder(), Reason::Scope)) }
    }

    /// Whether this user has this password by the settings. Takes the same time whichever character is wrong.
    fn is_configured(&self, user: &str, password: &str) -> bool {
        let same = |known: &Credential| {
            equal(known.user.as_bytes(), user.as_bytes())
                & equal(known.password.expose().as_bytes(), password.as_bytes())
        };
        self.credentials.iter().fold(false, |found, known| found | same(known))
    }
}
