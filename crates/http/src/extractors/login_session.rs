//! The credentials that a request was accepted with, for responses that outlast them.

use std::sync::Arc;

use restante_auth::{AuthService, DenialReason, VerifiedLogin};

use crate::response::problem::{Challenge, Problem};

/// Somebody who was let in, for as long as the answer takes.
#[derive(Clone)]
pub(crate) struct AcceptedCredentials {
    locks: Arc<AuthService>,
    pass: VerifiedLogin,
    challenge: Challenge,
}

impl AcceptedCredentials {
    pub(crate) fn new(locks: Arc<AuthService>, pass: VerifiedLogin, challenge: Challenge) -> Self {
        Self { locks, pass, challenge }
    }

    /// Waits until the credentials would not be accepted any more: after a logout, at the end of the login's time, or when the
    /// password was changed or the token revoked.
    pub(crate) async fn revoked(&self) -> Problem {
        self.locks.authenticator.wait_until_invalid(&self.pass).await;
        self.denied()
    }

    /// Whether they would still be let in.
    pub(crate) async fn check(&self) -> Result<(), Problem> {
        if self.locks.authenticator.is_still_valid(&self.pass).await {
            return Ok(());
        }
        Err(self.denied())
    }

    fn denied(&self) -> Problem {
        Problem::Denied(DenialReason::Expired.into(), self.challenge)
    }
}
