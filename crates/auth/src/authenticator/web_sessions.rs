//! The sessions of the web interface: their cookies, and how long a login stays valid.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use subtle::ConstantTimeEq as _;
use tokio::time::sleep;

use super::{Authenticator, VerifiedLogin};
use crate::denied::{DenialReason, Denied};
use crate::session::{Identity, Session};

/// How often an open stream checks whether its password was changed or its token revoked.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Authenticator {
    /// Checks a session cookie. A cookie that was not signed by this server counts as no credentials.
    pub async fn check_cookie(&self, cookie: &str) -> Result<VerifiedLogin, Denied> {
        let (session, is_valid) =
            self.sessions.parse_cookie(cookie, Timestamp::now()).ok_or(DenialReason::NoCredentials)?;
        let login = self.current_login(&session.identity, &session.fingerprint).await.ok_or(DenialReason::Expired)?;
        let has_same_fingerprint = bool::from(login.fingerprint.ct_eq(&session.fingerprint));
        if !is_valid || !has_same_fingerprint {
            return Err(Denied::new(login.grant.name(), DenialReason::Expired));
        }
        Ok(VerifiedLogin { session: Some(Arc::new(session)), ..login })
    }

    /// Returns a session cookie for a login, and its lifetime. Returns `None` if the random source fails.
    pub fn create_session_cookie(&self, login: &VerifiedLogin) -> Option<(String, Duration)> {
        let cookie = self.sessions.create_cookie(&login.identity, &login.fingerprint, Timestamp::now()).ok()?;
        Some((cookie, self.sessions.lifetime))
    }

    /// Ends the session of a cookie. Returns true if it was one of an account of the identity provider.
    pub fn log_out(&self, cookie: &str) -> bool {
        let now = Timestamp::now();
        let Some((session, _)) = self.sessions.parse_cookie(cookie, now) else { return false };
        let is_account = matches!(session.identity, Identity::Account(_));
        self.sessions.end(session, now);
        is_account
    }

    /// Returns true if the credentials of a login would still be accepted.
    pub async fn is_still_valid(&self, login: &VerifiedLogin) -> bool {
        let is_valid = |session: &Arc<Session>| self.sessions.is_valid(session, Timestamp::now());
        let current = self.current_login(&login.identity, &login.fingerprint).await;
        login.session.as_ref().is_none_or(is_valid)
            && current.is_some_and(|current| current.fingerprint == login.fingerprint)
    }

    /// Waits until the credentials of a login would be refused. A logout in this process and the end of a session are
    /// noticed at once, a changed password and a revoked token within ten seconds.
    pub async fn wait_until_invalid(&self, login: &VerifiedLogin) {
        let logged_out = async {
            match &login.session {
                Some(session) => self.sessions.wait_for_logout(session).await,
                None => pending().await,
            }
        };
        let refused = async {
            loop {
                let time_left = login.session.as_ref().map(|session| session.time_left(Timestamp::now()));
                sleep(time_left.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)).await;
                if !self.is_still_valid(login).await {
                    break;
                }
            }
        };
        tokio::select! {
            () = logged_out => {}
            () = refused => {}
        }
    }
}
