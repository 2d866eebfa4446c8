//! Verifies passwords and tokens: those of users, and those in the settings of a mail protocol.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::{Authenticator, VerifiedLogin};
use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::hash::PasswordHash;
use crate::tokens;

/// The maximum length of a password that is verified, in bytes.
pub(super) const MAX_PASSWORD_BYTES: usize = 1024;
/// The maximum length of a user name, in bytes. Longer names are truncated for counting failures.
const MAX_NAME_BYTES: usize = 255;

/// The credentials in the settings of a mail protocol, applied to one login.
pub struct ConfiguredLogin<'a> {
    /// The name of the setting.
    pub setting: &'static str,
    /// The user, if the setting contains a user of that name. It is logged with a denial.
    pub user: Option<&'a str>,
    /// The hashes in the setting that apply to this login. A password that matches one of them is accepted. They are
    /// verified on a blocking thread.
    pub hashes: Vec<&'a PasswordHash>,
    /// All hashes in the setting. If none applies to this login, the password is verified against one of them and refused,
    /// so that the duration does not reveal whether the setting contains the user.
    pub dummy_hashes: Vec<&'a PasswordHash>,
    /// Returns true if the login matches a password in the setting. It is called on network threads, so it must be quick.
    pub matches: &'a (dyn Fn() -> bool + Send + Sync),
}

/// The hash that a password matches.
enum MatchedHash {
    /// The hash of the user.
    User,
    /// A hash in the settings of a mail protocol.
    Configured(PasswordHash),
}

impl Authenticator {
    /// Verifies a password or a token. Returns `None` if the login matches the credentials in the settings.
    pub(super) async fn verify(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        match secret {
            Some(text) if self.has_accounts() && tokens::looks_like_token(text) => {
                self.verify_token(text, client, configured).await
            }
            _ => self.verify_password(user, secret, client, configured).await,
        }
    }

    /// Verifies a password. A wrong one delays the next attempts. The check takes as long for a user that does not
    /// exist.
    async fn verify_password(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        let users = self.users().await;
        let found = secret.and_then(|password| users.find(user).map(|(name, hash)| (name, hash, password)));
        let is_cached = || {
            found.is_some_and(|(name, hash, password)| self.verified.contains(client, name, hash.as_str(), password))
        };
        let denied = |reason| {
            let configured_user = || configured.and_then(|configured| configured.user);
            Denied::new(found.map(|(name, ..)| name.as_ref()).or_else(configured_user), reason)
        };
        if let Some((name, hash, _)) = found
            && is_cached()
        {
            return Ok(Some(self.user_login(name, hash)));
        }
        let matches_settings = || configured.map(|configured| (configured.matches)());
        let configured_hashes = match (configured, secret) {
            (Some(configured), Some(_)) => configured.hashes.as_slice(),
            _ => &[],
        };
        let dummy_hash =
            configured.filter(|_| secret.is_some()).and_then(|configured| self.dummy_hash(user, configured));
        let name = &user[..user.floor_char_boundary(MAX_NAME_BYTES)];
        // The cache key of a login with credentials from the settings. User names contain no control characters, so it
        // differs from them. Each hash has its own key: the entry shows only that the password matches this hash.
        let key_of = |kind: &str| {
            configured.map(|configured| Arc::<str>::from(format!("{}\n{kind}\n{name}", configured.setting)))
        };
        let is_hash_cached = |hash: &&PasswordHash| {
            key_of(hash.as_str())
                .zip(secret)
                .is_some_and(|(key, password)| self.verified.contains(client, &key, hash.as_str(), password))
        };
        if configured_hashes.iter().any(is_hash_cached) {
            return Ok(None);
        }
        // A password or digest that is not hashed is compared every time: whether it matches depends on more than the
        // user. The cache only avoids the delay. For a digest only the user is cached: every digest is different.
        let key = key_of(if secret.is_some() { "password" } else { "digest" });
        let cached_password = secret.unwrap_or_default();
        if let Some(key) = &key
            && self.verified.contains(client, key, "", cached_password)
        {
            if matches_settings() == Some(true) {
                return Ok(None);
            }
            self.verified.record_miss(client, key);
        }
        let accept_configured = || {
            if let Some(key) = &key {
                self.verified.insert(client, key, "", cached_password);
            }
            Ok(None)
        };
        let attempt = self.throttle.begin_password_attempt(client, name, matches_settings).await;
        let Some(attempt) = attempt.map_err(|_| denied(DenialReason::TooMany))? else { return accept_configured() };
        if matches_settings() == Some(true) {
            attempt.succeeded();
            return accept_configured();
        }
        let has_hashes = self.has_accounts() || !configured_hashes.is_empty() || dummy_hash.is_some();
        let Some(password) = secret.filter(|_| has_hashes) else {
            return Err(denied(DenialReason::WrongPassword));
        };
        let mut pooled = self.hash_memory.clone().acquire().await.map_err(|_| denied(DenialReason::TooMany))?;
        // Another request of the same client may have verified the same password in the meantime.
        let matched = if is_cached() {
            Some(MatchedHash::User)
        } else {
            let is_known = found.is_some();
            let user_hash = match found {
                Some((_, hash, _)) => Some(hash.clone()),
                None if self.has_accounts() => users.dummy_hash(self.sessions.keyed_number(user)).ok(),
                None => None,
            };
            let mut configured_hashes = configured_hashes.iter().copied().cloned().collect::<Vec<_>>().into_iter();
            let dummy_hash = dummy_hash.cloned();
            let password = password.to_owned();
            let checked = spawn_blocking(move || {
                // The permit and the memory are held until the work ends, even if the caller is gone.
                let memory = &mut pooled.memory;
                if password.len() > MAX_PASSWORD_BYTES {
                    return None;
                }
                if user_hash.is_some_and(|hash| hash.verify(&password, memory)) && is_known {
                    return Some(MatchedHash::User);
                }
                if let Some(hash) = dummy_hash {
                    hash.verify(&password, memory);
                }
                configured_hashes.find(|hash| hash.verify(&password, memory)).map(MatchedHash::Configured)
            });
            checked.await.unwrap_or(None)
        };
        match (matched, found) {
            (Some(MatchedHash::User), Some((name, hash, password))) => {
                attempt.succeeded();
                self.verified.insert(client, name, hash.as_str(), password);
                Ok(Some(self.user_login(name, hash)))
            }
            (Some(MatchedHash::Configured(hash)), _) => {
                attempt.succeeded();
                if let Some(key) = key_of(hash.as_str()) {
                    self.verified.insert(client, &key, hash.as_str(), password);
                }
                Ok(None)
            }
            _ => Err(denied(DenialReason::WrongPassword)),
        }
    }

    /// Returns the hash to verify if no hash of the setting applies to this user. It is the same for every attempt, because
    /// the hashes may take different times.
    pub(super) fn dummy_hash<'a>(&self, user: &str, configured: &ConfiguredLogin<'a>) -> Option<&'a PasswordHash> {
        let hashes = configured.hashes.is_empty().then_some(&configured.dummy_hashes)?;
        let index = self.sessions.keyed_number(user).checked_rem(hashes.len() as u64)?;
        hashes.get(usize::try_from(index).ok()?).copied()
    }

    /// Verifies a token. A known token is not throttled: it has too many random bits to be guessed.
    pub(super) async fn verify_token(
        &self,
        text: &str,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        let tokens = self.tokens().await;
        if let Some(token) = tokens.find(text) {
            return self.token_login(token).map(Some);
        }
        let matches_settings = || configured.map(|configured| (configured.matches)());
        let attempt =
            self.throttle.begin_token_attempt(client, matches_settings).await.map_err(|_| DenialReason::TooMany)?;
        match attempt {
            None => Ok(None),
            Some(attempt) if matches_settings() == Some(true) => {
                attempt.succeeded();
                Ok(None)
            }
            Some(_) => Err(DenialReason::UnknownToken.into()),
        }
    }
}
