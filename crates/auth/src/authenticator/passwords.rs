//! Verifies passwords and tokens: those of users, and those in the settings of a mail protocol.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::{AllUsers, Authenticator, VerifiedLogin};
use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::hash::PasswordHash;
use crate::hash_memory::HashMemory;
use crate::login_throttle::{Attempt, TooManyAttempts};
use crate::runs::is_run_token;
use crate::tokens::{self, Token};

/// The maximum length of a password that is verified, in bytes.
pub(super) const MAX_PASSWORD_BYTES: usize = 1024;
/// The maximum length of a user name, in bytes. Longer names are truncated for counting failures.
const MAX_NAME_BYTES: usize = 255;

/// The cache key of all tokens with a chosen text. User names contain no control characters.
const CHOSEN_TOKEN: &str = "\ntoken";

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

/// One login with a password or a digest.
#[derive(Clone, Copy)]
struct Login<'a> {
    user: &'a str,
    client: Client,
    configured: Option<&'a ConfiguredLogin<'a>>,
    /// Whether the secret is a bearer token, which cannot be the password of a user.
    is_bearer: bool,
}

impl Login<'_> {
    /// Returns the user name for counting failures.
    fn name(&self) -> &str {
        &self.user[..self.user.floor_char_boundary(MAX_NAME_BYTES)]
    }

    /// Returns whether the login matches a password in the settings that is not hashed.
    fn matches_settings(&self) -> Option<bool> {
        self.configured.map(|configured| (configured.matches)())
    }

    /// Returns the cache key of a login with credentials from the settings. User names contain no control characters, so
    /// it differs from them. Each hash has its own key: the entry shows only that the password matches this hash.
    fn cache_key(&self, kind: &str) -> Option<Arc<str>> {
        self.configured.map(|configured| format!("{}\n{kind}\n{}", configured.setting, self.name()).into())
    }

    /// Returns the reason of the denial of a wrong secret.
    fn wrong_secret(&self) -> DenialReason {
        if self.is_bearer { DenialReason::UnknownToken } else { DenialReason::WrongPassword }
    }

    fn denied(&self, user: Option<&str>, reason: DenialReason) -> Denied {
        Denied::new(user.or_else(|| self.configured?.user), reason)
    }
}

/// The hashes that a password is verified against.
struct CandidateHashes {
    /// The hash of the user, or one that takes as long if the user does not exist.
    user: Option<PasswordHash>,
    is_known_user: bool,
    /// A hash that is verified only because it takes as long as one of the settings.
    dummy: Option<PasswordHash>,
    /// The hashes in the settings of a mail protocol.
    configured: Vec<PasswordHash>,
}

/// The hash that a password matches.
enum MatchedHash {
    /// The hash of the user.
    User,
    /// A hash in the settings of a mail protocol.
    Configured(PasswordHash),
}

impl CandidateHashes {
    fn is_empty(&self) -> bool {
        self.user.is_none() && self.dummy.is_none() && self.configured.is_empty()
    }

    /// Returns the hash that a password matches. This takes as long for a user that does not exist.
    fn find_match(self, password: &str, memory: &mut HashMemory) -> Option<MatchedHash> {
        if password.len() > MAX_PASSWORD_BYTES {
            return None;
        }
        if self.user.is_some_and(|hash| hash.verify(password, memory)) && self.is_known_user {
            return Some(MatchedHash::User);
        }
        if let Some(hash) = self.dummy {
            hash.verify(password, memory);
        }
        self.configured.into_iter().find(|hash| hash.verify(password, memory)).map(MatchedHash::Configured)
    }
}

impl Authenticator {
    /// Verifies a password, a token or, without a secret, a digest. Returns `None` if the login matches the credentials in
    /// the settings.
    pub(super) async fn verify(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        let login = Login { user, client, configured, is_bearer: false };
        match secret {
            Some(text) if is_run_token(text) || self.has_accounts() && tokens::looks_like_token(text) => {
                self.verify_token(text, client, configured).await
            }
            Some(password) => self.verify_password(login, password).await,
            None => self.verify_digest(login).await.map(|()| None),
        }
    }

    /// Verifies a bearer token that has no form of a token: one with a chosen text, or a password in the settings. Returns `None`
    /// if it is such a password.
    pub(super) async fn verify_chosen_bearer(
        &self,
        user: &str,
        token: &str,
        client: Client,
        configured: &ConfiguredLogin<'_>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        self.verify_password(Login { user, client, configured: Some(configured), is_bearer: true }, token).await
    }

    /// Verifies a password: that of the user, and those in the settings. A wrong one delays the next attempts.
    async fn verify_password(&self, login: Login<'_>, password: &str) -> Result<Option<VerifiedLogin>, Denied> {
        let client = login.client;
        let users = self.users().await;
        let known = users.find(login.user).filter(|_| !login.is_bearer);
        let denied = |reason| login.denied(known.map(|(name, _)| name.as_ref()), reason);
        if let Some((name, hash)) = known
            && self.verified.contains(client, name, hash.as_str(), password)
        {
            return Ok(Some(self.user_login(name, hash, users.rights(name))));
        }
        if self.has_cached_hash(login, password) {
            return Ok(None);
        }
        if let Some(token) = self.find_token(password, client).await {
            let attempt = self.throttle.begin_password_attempt(client, login.name(), || Some(true));
            return self.accept_chosen_token(&token, client, attempt).await.map(Some);
        }
        let attempt = self.verify_unhashed(login, "password", password).await.map_err(denied)?;
        let Some(attempt) = attempt else { return Ok(None) };
        let hashes = self.candidate_hashes(login, &users);
        if hashes.is_empty() {
            return Err(denied(login.wrong_secret()));
        }
        let mut pooled = self.hash_memory.clone().acquire().await.map_err(|_| denied(DenialReason::TooMany))?;
        // Another request of the same client may have verified the same password in the meantime.
        let is_cached = known.is_some_and(|(name, hash)| self.verified.contains(client, name, hash.as_str(), password));
        let matched = if is_cached {
            Some(MatchedHash::User)
        } else {
            let password = password.to_owned();
            // The permit and the memory are held until the work ends, even if the caller is gone.
            let checked = spawn_blocking(move || hashes.find_match(&password, &mut pooled.memory));
            checked.await.unwrap_or(None)
        };
        match (matched, known) {
            (Some(MatchedHash::User), Some((name, hash))) => {
                attempt.succeeded();
                self.verified.insert(client, name, hash.as_str(), password);
                Ok(Some(self.user_login(name, hash, users.rights(name))))
            }
            (Some(MatchedHash::Configured(hash)), _) => {
                attempt.succeeded();
                if let Some(key) = login.cache_key(hash.as_str()) {
                    self.verified.insert(client, &key, hash.as_str(), password);
                }
                Ok(None)
            }
            _ => Err(denied(login.wrong_secret())),
        }
    }

    /// Verifies a digest, which only passwords in the settings can match. Only the user is cached: every digest is different.
    async fn verify_digest(&self, login: Login<'_>) -> Result<(), Denied> {
        match self.verify_unhashed(login, "digest", "").await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(login.denied(None, DenialReason::WrongPassword)),
            Err(reason) => Err(login.denied(None, reason)),
        }
    }

    /// Verifies a login against the passwords in the settings that are not hashed. It is compared every time, because whether
    /// it matches depends on more than the user; the cache only avoids the delay. Returns the attempt if none matches.
    async fn verify_unhashed(
        &self,
        login: Login<'_>,
        kind: &str,
        password: &str,
    ) -> Result<Option<Attempt>, DenialReason> {
        let key = login.cache_key(kind);
        if let Some(key) = &key
            && self.verified.contains(login.client, key, "", password)
        {
            if login.matches_settings() == Some(true) {
                return Ok(None);
            }
            self.verified.record_miss(login.client, key);
        }
        let attempt =
            self.throttle.begin_password_attempt(login.client, login.name(), || login.matches_settings()).await;
        if let Some(attempt) = attempt.map_err(|_| DenialReason::TooMany)? {
            if login.matches_settings() != Some(true) {
                return Ok(Some(attempt));
            }
            attempt.succeeded();
        }
        if let Some(key) = &key {
            self.verified.insert(login.client, key, "", password);
        }
        Ok(None)
    }

    /// Returns whether this client recently logged in with this password and a hash in the settings.
    fn has_cached_hash(&self, login: Login<'_>, password: &str) -> bool {
        let hashes = login.configured.map(|configured| configured.hashes.as_slice()).unwrap_or_default();
        hashes.iter().any(|hash| {
            let key = login.cache_key(hash.as_str());
            key.is_some_and(|key| self.verified.contains(login.client, &key, hash.as_str(), password))
        })
    }

    /// Returns the hashes that a password is verified against. There are none without users, tokens and hashes in the settings.
    fn candidate_hashes(&self, login: Login<'_>, users: &AllUsers) -> CandidateHashes {
        let accepts_users = self.has_accounts() && !login.is_bearer;
        let known = users.find(login.user).filter(|_| accepts_users).map(|(_, hash)| hash.clone());
        let is_known_user = known.is_some();
        let dummy_user_hash = || users.dummy_hash(self.sessions.keyed_number(login.user)).ok();
        CandidateHashes {
            user: known.or_else(|| accepts_users.then(dummy_user_hash).flatten()),
            is_known_user,
            dummy: login.configured.and_then(|configured| self.dummy_hash(login.user, configured)).cloned(),
            configured: login.configured.iter().flat_map(|configured| &configured.hashes).copied().cloned().collect(),
        }
    }

    /// Returns the hash to verify if no hash of the setting applies to this user. It is the same for every attempt, because
    /// the hashes may take different times.
    pub(super) fn dummy_hash<'a>(&self, user: &str, configured: &ConfiguredLogin<'a>) -> Option<&'a PasswordHash> {
        let hashes = configured.hashes.is_empty().then_some(&configured.dummy_hashes)?;
        let index = self.sessions.keyed_number(user).checked_rem(hashes.len() as u64)?;
        hashes.get(usize::try_from(index).ok()?).copied()
    }

    /// Verifies a token. A known random token is not throttled: it has too many random bits to be guessed.
    pub(super) async fn verify_token(
        &self,
        text: &str,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        if let Some(run) = self.runs.find_by_token(text) {
            return self.run_login(&run).map(Some);
        }
        match self.find_token(text, client).await {
            Some(token) if tokens::looks_like_token(text) => return self.token_login(&token).map(Some),
            Some(token) => {
                let attempt = self.throttle.begin_token_attempt(client, || Some(true));
                return self.accept_chosen_token(&token, client, attempt).await.map(Some);
            }
            None => {}
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

    /// Returns the token with this text. Other texts count as wrong: see [`Self::accept_chosen_token`].
    async fn find_token(&self, text: &str, client: Client) -> Option<Arc<Token>> {
        let token = self.tokens().await.find(text).filter(|_| !self.is_signing_key(text)).cloned();
        if token.is_none() && !tokens::looks_like_token(text) {
            self.verified.record_miss(client, &CHOSEN_TOKEN.into());
        }
        token
    }

    /// Accepts a token with a chosen text. Such a text may be guessed, so a correct one waits for `attempt` as long as a wrong
    /// one. A client that has recently logged in with such a token does not wait, until it has tried several wrong texts.
    async fn accept_chosen_token(
        &self,
        token: &Token,
        client: Client,
        attempt: impl Future<Output = Result<Option<Attempt>, TooManyAttempts>>,
    ) -> Result<VerifiedLogin, Denied> {
        let key = CHOSEN_TOKEN.into();
        if !self.verified.contains(client, &key, "", "") {
            if let Some(attempt) = attempt.await.map_err(|_| DenialReason::TooMany)? {
                attempt.succeeded();
            }
            self.verified.insert(client, &key, "", "");
        }
        self.token_login(token)
    }
}
