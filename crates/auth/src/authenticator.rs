//! Checks all credentials. Verifying a password is slow on purpose, so it runs on blocking threads, few at a time, and
//! successful logins are cached for a while.
//!
//! `passwords` verifies passwords and tokens, `bearer` the bearer tokens of mail clients, `single_sign_on` logs in accounts of an identity provider and of an authenticating
//! proxy, and `web_sessions` checks cookies and notices when a login becomes invalid.

mod bearer;
mod passwords;
mod single_sign_on;
#[cfg(test)]
mod tests;
mod web_sessions;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub use self::passwords::ConfiguredLogin;
pub use self::single_sign_on::{AuthorizationResponse, CompletedLogin, SingleSignOnError, StartedLogin};
use crate::claim_grants::ClaimGrants;
use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::grant::Grant;
use crate::hash::PasswordHash;
use crate::hash_memory::HashMemoryPool;
use crate::login_throttle::LoginThrottle;
use crate::oidc::OidcSettings;
use crate::oidc::provider::Provider;
use crate::reloading_file::{ReloadingFile, Source};
use crate::rights::Rights;
use crate::runs::{Run, Runs};
use crate::session::{FINGERPRINT_BYTES, Identity, Session, Sessions};
use crate::tokens::{Token, Tokens};
use crate::users::Users;
use crate::verified_cache::{SECRET_BYTES, VerifiedCache};

/// The number of passwords that are verified at the same time. Each takes one core and some tens of megabytes.
const MAX_CONCURRENT_CHECKS: usize = 2;
/// The hash that a password is verified against if there are no users, so that it takes as long. It has the parameters
/// of newly generated hashes, and no password matches it.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$cmVzdGFudGUtbm9ib2R5$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The settings of an [`Authenticator`].
#[derive(Clone, Default)]
pub struct Settings {
    /// The user file; `None` if there are no users.
    pub users: Option<PathBuf>,
    /// The users of the settings, with their passwords or the hashes of them.
    pub credentials: Vec<(String, PasswordHash)>,
    /// The token file. It need not exist.
    pub tokens: Option<PathBuf>,
    /// How long a login to the web interface is valid.
    pub session_time: Duration,
    /// The key that signs session cookies and leased runs. If `None`, a random key is used, and they are valid for this
    /// process only.
    pub secret: Option<Vec<u8>>,
    /// The identity provider.
    pub oidc: OidcSettings,
    /// The header fields of an authenticating proxy.
    pub headers: UserHeaders,
    /// The rights of accounts of the identity provider and of the authenticating proxy.
    pub grants: ClaimGrants,
    /// The ids of keys that sign requests. They are not secret: a token with such a text is accepted with a signature only.
    pub signing_key_ids: Vec<String>,
}

/// The names of the header fields in which an authenticating proxy sends the user of a request, in lower case. Empty if there are
/// none.
#[derive(Clone, Debug, Default)]
pub struct UserHeaders {
    /// The name of the user.
    pub user: String,
    /// The groups of the user, separated by commas.
    pub groups: String,
}

impl Settings {
    /// Returns true if authentication is required. This includes an empty or missing token file: revoking the last
    /// token must not allow anonymous access.
    pub fn is_enabled(&self) -> bool {
        self.has_accounts() || self.oidc.is_enabled() || !self.headers.user.is_empty()
    }

    /// Returns true if users or tokens are configured, which mail clients can log in with.
    pub fn has_accounts(&self) -> bool {
        self.users.is_some() || !self.credentials.is_empty() || self.tokens.is_some()
    }
}

/// Passwords and the key are not shown.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("users", &self.users).field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// Checks passwords, tokens and session cookies.
pub struct Authenticator {
    users: Option<Arc<ReloadingFile<Users>>>,
    /// The users of the settings.
    configured_users: Arc<Users>,
    tokens: Option<Arc<ReloadingFile<Tokens>>>,
    sessions: Sessions,
    runs: Arc<Runs>,
    verified: VerifiedCache,
    throttle: Arc<LoginThrottle>,
    signing_key_ids: Vec<String>,
    hash_memory: Arc<HashMemoryPool>,
    provider: Option<Provider>,
    headers: UserHeaders,
    grants: ClaimGrants,
    /// A fingerprint for each rule of the grants. It depends on all rules and on the provider: a change of one ends all sessions.
    grant_fingerprints: Vec<[u8; FINGERPRINT_BYTES]>,
}

/// A successful login: its grant, and what is needed to check later whether it is still valid.
#[derive(Clone, Debug)]
pub struct VerifiedLogin {
    /// What the login may do.
    pub grant: Grant,
    identity: Identity,
    fingerprint: [u8; 16],
    /// The web session that the login came from. It can end before the password or token that it was created with.
    session: Option<Arc<Session>>,
}

/// The users of the file and of the settings.
struct AllUsers {
    file: Arc<Users>,
    configured: Arc<Users>,
}

impl AllUsers {
    /// Returns the name and the password hash of a user. The file takes precedence.
    fn find(&self, name: &str) -> Option<(&Arc<str>, &PasswordHash)> {
        self.file.find(name).or_else(|| self.configured.find(name))
    }

    /// Returns the rights of a user, which are in the file.
    fn rights(&self, name: &str) -> &Rights {
        self.file.rights(name)
    }

    /// Returns a hash to verify the password of an unknown user against, so that it takes as long as for a known one.
    /// The hashes of users may take different times, so the hash is chosen by a number derived from the name that
    /// others cannot compute. The duration then does not reveal whether the user exists.
    fn dummy_hash(&self, number: u64) -> Result<PasswordHash, &'static str> {
        let hashes = || self.file.hashes.iter().chain(&self.configured.hashes);
        let index = usize::try_from(number % hashes().count().max(1) as u64).unwrap_or_default();
        hashes().nth(index).cloned().map_or_else(|| PasswordHash::parse(DUMMY_HASH), Ok)
    }
}

impl Authenticator {
    /// Loads the files, if any. The error is a sentence for the operator.
    pub fn open(settings: Settings) -> Result<Self, String> {
        let Settings { users, credentials, tokens, session_time, secret, oidc, headers, grants, signing_key_ids } =
            settings;
        let configured_users = Arc::new(Users::from_credentials(credentials));
        let users = users.map(|path| {
            let (shown_path, configured) = (path.display().to_string(), configured_users.clone());
            let warn_about_unknown = move |users: &Users| {
                if let Some(user) = users.unknown_with_rights(&configured) {
                    tracing::warn!(path = shown_path, user, "the rights of a user who does not exist have no effect");
                }
            };
            ReloadingFile::open(Source {
                path,
                description: "users",
                parse: Users::parse,
                default_if_absent: None,
                on_load: Some(Box::new(warn_about_unknown)),
            })
        });
        let tokens = tokens.map(|path| {
            ReloadingFile::open(Source {
                path,
                description: "tokens",
                parse: Tokens::parse,
                default_if_absent: Some(Tokens::default),
                on_load: None,
            })
        });
        let random_secret = || {
            let mut secret = [0; SECRET_BYTES];
            getrandom::fill(&mut secret).map_err(|error| format!("cannot get random bytes: {error}"))?;
            Ok::<_, String>(secret)
        };
        let session_secret = secret.map_or_else(|| random_secret().map(Vec::from), Ok)?;
        let runs = Arc::new(Runs::new(session_secret.clone()));
        let sessions = Sessions::new(session_secret, session_time);
        let fingerprint = |(number, _)| {
            let rule = [&oidc.issuer, &oidc.client_id, grants.text(), &format!("{number}")].join("\n");
            sessions.fingerprint(rule.as_bytes())
        };
        Ok(Self {
            grant_fingerprints: grants.rights().enumerate().map(fingerprint).collect(),
            provider: oidc.is_enabled().then(|| Provider::new(oidc)),
            headers,
            grants,
            signing_key_ids,
            users: users.transpose()?,
            configured_users,
            tokens: tokens.transpose()?,
            runs,
            sessions,
            verified: VerifiedCache::new(random_secret()?),
            throttle: Arc::default(),
            hash_memory: HashMemoryPool::new(MAX_CONCURRENT_CHECKS),
        })
    }

    /// Returns true if any kind of login is configured, so that anonymous requests are refused.
    pub fn is_enabled(&self) -> bool {
        self.has_accounts() || self.provider.is_some() || !self.headers.user.is_empty()
    }

    /// Returns true if users or a token file are configured.
    fn has_accounts(&self) -> bool {
        self.has_users() || self.tokens.is_some()
    }

    /// Returns true if users with passwords are configured.
    pub fn has_users(&self) -> bool {
        self.users.is_some() || !self.configured_users.is_empty()
    }

    /// Returns the leased runs. Their tokens are also valid if there are no users and tokens.
    pub fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Checks a user name and a password. The password may be a token, and then the name is ignored.
    pub async fn check_password(&self, user: &str, secret: &str, client: Client) -> Result<VerifiedLogin, Denied> {
        let verified = self.verify(user, Some(secret), client, None).await?;
        verified.ok_or_else(|| DenialReason::WrongPassword.into())
    }

    /// Checks a token. A known token is accepted at once; attempts with unknown tokens are delayed, longer every time.
    pub async fn check_token(&self, text: &str, client: Client) -> Result<VerifiedLogin, Denied> {
        let verified = self.verify_token(text, client, None).await?;
        verified.ok_or_else(|| DenialReason::UnknownToken.into())
    }

    /// Checks the id of a key whose signature the caller verifies before the login has an effect.
    pub async fn check_signing_key(&self, id: &str, client: Client) -> Result<VerifiedLogin, Denied> {
        if self.is_signing_key(id)
            && let Some(token) = self.tokens().await.find(id)
        {
            return self.token_login(token);
        }
        self.check_token(id, client).await
    }

    fn is_signing_key(&self, id: &str) -> bool {
        self.signing_key_ids.iter().any(|known| known == id)
    }

    /// Checks a login over a mail protocol, whose settings can contain further credentials. Failures count together with
    /// those of all other protocols. `secret` is a password or a token; it is `None` if the client has sent a digest,
    /// which only `configured` can check.
    pub async fn check_configured(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: &ConfiguredLogin<'_>,
    ) -> Result<Grant, Denied> {
        let verified = self.verify(user, secret, client, Some(configured)).await?;
        Ok(verified.map_or(Grant::EVERYTHING, |login| login.grant))
    }

    /// Checks a login to a leased run with a digest of its token. The user is the name of the run, and `matches` returns true
    /// if the digest is one of this token. Returns `None` if the user has no name of a run.
    pub fn check_run_digest(&self, user: &str, matches: impl FnOnce(&str) -> bool) -> Option<Result<Grant, Denied>> {
        let project = user.parse().ok().filter(|project| Run::from_name(project).is_some())?;
        Some(match self.runs.find(&project) {
            Some(run) if matches(&self.runs.token(&project)) => self.run_login(&run).map(|login| login.grant),
            _ => Err(DenialReason::UnknownToken.into()),
        })
    }

    /// Reloads the files, even if they look unchanged.
    pub async fn reload(&self) {
        if let Some(users) = &self.users {
            users.reload().await;
        }
        if let Some(tokens) = &self.tokens {
            tokens.reload().await;
        }
    }

    async fn users(&self) -> AllUsers {
        let file = match &self.users {
            Some(users) => users.current().await,
            None => Arc::default(),
        };
        AllUsers { file, configured: self.configured_users.clone() }
    }

    async fn tokens(&self) -> Arc<Tokens> {
        match &self.tokens {
            Some(tokens) => tokens.current().await,
            None => Arc::default(),
        }
    }

    async fn current_login(&self, identity: &Identity, fingerprint: &[u8; FINGERPRINT_BYTES]) -> Option<VerifiedLogin> {
        match identity {
            Identity::User(name) => {
                let users = self.users().await;
                users.find(name).map(|(name, hash)| self.user_login(name, hash, users.rights(name)))
            }
            Identity::Token(digest) => {
                self.tokens().await.find_by_digest(digest).and_then(|token| self.token_login(token).ok())
            }
            Identity::Account(name) => self.account_login(name, fingerprint),
            Identity::Run(project) => self.runs.find(project).and_then(|run| self.run_login(&run).ok()),
        }
    }

    fn user_login(&self, name: &str, hash: &PasswordHash, rights: &Rights) -> VerifiedLogin {
        VerifiedLogin {
            grant: rights.grant(name),
            identity: Identity::User(name.to_owned()),
            fingerprint: self.sessions.fingerprint(format!("{} {rights}", hash.as_str()).as_bytes()),
            session: None,
        }
    }

    fn token_login(&self, token: &Token) -> Result<VerifiedLogin, Denied> {
        if token.has_expired(Timestamp::now()) {
            return Err(Denied::new(Some(&token.name), DenialReason::Expired));
        }
        let fingerprint = self.sessions.fingerprint(&token.digest);
        Ok(VerifiedLogin {
            grant: token.grant.clone(),
            identity: Identity::Token(token.digest),
            fingerprint,
            session: None,
        })
    }

    fn run_login(&self, run: &Run) -> Result<VerifiedLogin, Denied> {
        if run.has_expired(Timestamp::now()) {
            return Err(Denied::new(Some(run.project.as_str()), DenialReason::Expired));
        }
        Ok(VerifiedLogin {
            grant: run.grant(),
            identity: Identity::Run(run.project.clone()),
            fingerprint: self.sessions.fingerprint(run.project.as_str().as_bytes()),
            session: None,
        })
    }
}
