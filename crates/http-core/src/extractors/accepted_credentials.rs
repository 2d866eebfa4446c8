//! The credentials that a request was accepted with, for responses that may outlast them.

use std::sync::Arc;

use restante_auth::{AuthService, DenialReason, VerifiedLogin};

use crate::response::problem::{Challenge, Problem};

/// The credentials of a request. They can become invalid while the response is produced.
#[derive(Clone)]
pub struct AcceptedCredentials {
    auth: Arc<AuthService>,
    login: VerifiedLogin,
    challenge: Challenge,
}

impl AcceptedCredentials {
    /// Creates the credentials of a request that is refused with this challenge when they become invalid.
    pub fn new(auth: Arc<AuthService>, login: VerifiedLogin, challenge: Challenge) -> Self {
        Self { auth, login, challenge }
    }

    /// Waits until the credentials become invalid: after a logout, when the login expires, or when the password was
    /// changed or the token revoked.
    pub async fn revoked(&self) -> Problem {
        self.auth.authenticator.wait_until_invalid(&self.login).await;
        self.denied()
    }

    /// Fails if the credentials are not valid any more.
    pub async fn check(&self) -> Result<(), Problem> {
        if self.auth.authenticator.is_still_valid(&self.login).await {
            return Ok(());
        }
        Err(self.denied())
    }

    fn denied(&self) -> Problem {
        Problem::Denied(DenialReason::Expired.into(), self.challenge)
    }
}
