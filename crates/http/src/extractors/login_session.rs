//! The credentials that a request was accepted with, for responses that outlast them.

use std::sync::Arc;

use restante_auth::{Locks, Pass, Reason};

use crate::response::problem::{Challenge, Problem};

/// Somebody who was let in, for as long as the answer takes.
#[derive(Clone)]
pub(crate) struct Admitted {
    locks: Arc<Locks>,
    pass: Pass,
    challenge: Challenge,
}

impl Admitted {
    pub(crate) fn new(locks: Arc<Locks>, pass: Pass, challenge: Challenge) -> Self {
        Self { locks, pass, challenge }
    }

    /// Waits until the credentials would not be accepted any more: after a logout, at the end of the login's time, or when the
    /// password was changed or the token revoked.
    pub(crate) async fn lost(&self) -> Problem {
        self.locks.keeper.no_longer_admits(&self.pass).await;
        self.denied()
    }

    /// Whether they would still be let in.
    pub(crate) async fn check(&self) -> Result<(), Problem> {
        if self.locks.keeper.still_admits(&self.pass).await {
            return Ok(());
        }
        Err(self.denied())
    }

    fn denied(&self) -> Problem {
        Problem::Denied(Reason::Expired.into(), self.challenge)
    }
}
