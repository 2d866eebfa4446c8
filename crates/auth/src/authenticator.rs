//! Checks all credentials. Verifying a password is slow on purpose, so it runs on blocking threads, few at a time, and
//! successful logins are cached for a while.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use jiff::Timestamp;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::grant::{Grant, Scopes};
use crate::hash::PasswordHash;
use crate::login_throttle::LoginThrottle;
use crate::reloading_file::{ReloadingFile, Source};
use crate::session::{Identity, Session, Sessions};
use crate::tokens::{self, Token, Tokens};
use crate::users::Users;
use crate::verified_cache::VerifiedCache;

/// The number of passwords that are verified at the same time. Each takes one core and some tens of megabytes.
const MAX_CONCURRENT_CHECKS: usize = 2;
/// The maximum length of a password that is verified, in bytes.
const MAX_PASSWORD_BYTES: usize = 1024;
/// The maximum length of a user name, in bytes. Longer names are truncated for counting failures.
const MAX_NAME_BYTES: usize = 255;

/// How often an open stream checks whether its password was changed or its token revoked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

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
    /// The key that signs session cookies. If `None`, a random key is used, and cookies are valid for this process
    /// only.
    pub secret: Option<Vec<u8>>,
}

/// Checks passwords, tokens and session cookies.
pub struct Authenticator {
    users: Option<Arc<ReloadingFile<Users>>>,
    /// The users of the settings.
    configured_users: Arc<Users>,
    tokens: Option<Arc<ReloadingFile<Tokens>>>,
    sessions: Sessions,
    verified: VerifiedCache,
    throttle: Arc<LoginThrottle>,
    check_permits: Arc<Semaphore>,
}

/// The credentials in the settings of a mail protocol, applied to one login.
pub struct ConfiguredLogin<'a> {
    /// The name of the setting.
    pub setting: &'static str,
    /// The user, if the setting contains a user of that name. It is logged with a denial.
    pub user: Option<&'a str>,
    /// The hashes in the setting that apply to this login. A password that matches one of them is accepted. They are
    /// verified on a blocking thread.
    pub hashes: Vec<&'a PasswordHash>,
    /// Returns true if the login matches a password in the setting. It is called on network threads, so it must be quick.
    pub matches: &'a (dyn Fn() -> bool + Send + Sync),
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

/// The hash that a password matches.
enum MatchedHash {
    /// The hash of the user.
    User,
    /// A hash in the settings of a mail protocol.
    Configured(PasswordHash),
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

    /// Returns a hash to verify the password of an unknown user against.
    fn dummy_hash(&self, number: u64) -> Result<PasswordHash, &'static str> {
        if self.file.is_empty() && !self.configured.is_empty() {
            self.configured.dummy_hash(number)
        } else {
            self.file.dummy_hash(number)
        }
    }
}

impl Authenticator {
    /// Loads the files, if any. The error is a sentence for the operator.
    pub fn open(settings: Settings) -> Result<Self, String> {
        let Settings { users, credentials, tokens, session_time, secret } = settings;
        let users = users.map(|path| {
            ReloadingFile::open(Source { path, description: "users", parse: Users::parse, default_if_absent: None })
        });
        let tokens = tokens.map(|path| {
            ReloadingFile::open(Source {
                path,
                description: "tokens",
                parse: Tokens::parse,
                default_if_absent: Some(Tokens::default),
            })
        });
        // From the operating system, because this runs at every start: the generator of aws-lc collects entropy for 100
        // ms at its first use.
        let random_key = || {
            let mut key = [0; 32];
            getrandom(&mut key, GetRandomFlags::empty())
                .map_err(|error| format!("cannot get random bytes: {error}"))?;
            Ok::<_, String>(hmac::Key::new(hmac::HMAC_SHA256, &key))
        };
        let signing_key = secret.map_or_else(random_key, |secret| Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret)))?;
        Ok(Self {
            users: users.transpose()?,
            configured_users: Arc::new(Users::from_credentials(credentials)),
            tokens: tokens.transpose()?,
            sessions: Sessions::new(signing_key, session_time),
            verified: VerifiedCache::new(random_key()?),
            throttle: Arc::default(),
            check_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS)),
        })
    }

    /// Returns true if users or a token file are configured, so that anonymous requests are refused.
    pub fn has_accounts(&self) -> bool {
        self.users.is_some() || !self.configured_users.is_empty() || self.tokens.is_some()
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

    /// Verifies a password or a token. Returns `None` if the login matches the credentials in the settings.
    async fn verify(
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
        let Some(password) = secret.filter(|_| self.has_accounts() || !configured_hashes.is_empty()) else {
            return Err(denied(DenialReason::WrongPassword));
        };
        let permit = self.check_permits.clone().acquire_owned().await.map_err(|_| denied(DenialReason::TooMany))?;
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
            let password = password.to_owned();
            let checked = spawn_blocking(move || {
                // The permit is held until the work ends, even if the caller is gone.
                let _permit = permit;
                if password.len() > MAX_PASSWORD_BYTES {
                    return None;
                }
                if user_hash.is_some_and(|hash| hash.verify(&password)) && is_known {
                    return Some(MatchedHash::User);
                }
                configured_hashes.find(|hash| hash.verify(&password)).map(MatchedHash::Configured)
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

    /// Verifies a token. A known token is not throttled: it has too many random bits to be guessed.
    async fn verify_token(
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

    /// Checks a session cookie. A cookie that was not signed by this server counts as no credentials.
    pub async fn check_cookie(&self, cookie: &str) -> Result<VerifiedLogin, Denied> {
        let (session, is_valid) =
            self.sessions.parse_cookie(cookie, Timestamp::now()).ok_or(DenialReason::NoCredentials)?;
        let login = self.current_login(&session.identity).await.ok_or(DenialReason::Expired)?;
        let has_same_fingerprint = verify_slices_are_equal(&login.fingerprint, &session.fingerprint).is_ok();
        if !is_valid || !has_same_fingerprint {
            return Err(Denied::new(login.grant.name(), DenialReason::Expired));
        }
        Ok(VerifiedLogin { session: Some(Arc::new(session)), ..login })
    }

    /// Returns a session cookie for a login, and its lifetime. Returns `None` if the random source fails.
    pub fn create_session_cookie(&self, login: &VerifiedLogin) -> Option<(String, Duration)> {
        let cookie = self.sessions.create_cookie(&login.identity, &login.fingerprint, Timestamp::now()).ok()?;
        Some((cookie, self.sessions.lifetime()))
    }

    /// Ends the session of a cookie.
    pub fn log_out(&self, cookie: &str) {
        let now = Timestamp::now();
        if let Some((session, _)) = self.sessions.parse_cookie(cookie, now) {
            self.sessions.end(session, now);
        }
    }

    /// Returns true if the credentials of a login would still be accepted.
    pub async fn is_still_valid(&self, login: &VerifiedLogin) -> bool {
        let is_valid = |session: &Arc<Session>| self.sessions.is_valid(session, Timestamp::now());
        login.session.as_ref().is_none_or(is_valid)
            && self.current_login(&login.identity).await.is_some_and(|current| current.fingerprint == login.fingerprint)
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

    async fn current_login(&self, identity: &Identity) -> Option<VerifiedLogin> {
        match identity {
            Identity::User(name) => {
                let users = self.users().await;
                users.find(name).map(|(name, hash)| self.user_login(name, hash))
            }
            Identity::Token(digest) => {
                self.tokens().await.find_by_digest(digest).and_then(|token| self.token_login(token).ok())
            }
        }
    }

    fn user_login(&self, name: &str, hash: &PasswordHash) -> VerifiedLogin {
        VerifiedLogin {
            grant: Grant::new(name, Scopes::ALL, None),
            identity: Identity::User(name.to_owned()),
            fingerprint: self.sessions.fingerprint(hash.as_str().as_bytes()),
            session: None,
        }
    }

    fn token_login(&self, token: &Token) -> Result<VerifiedLogin, Denied> {
        if token.has_expired(Timestamp::now()) {
            return Err(Denied::new(Some(&token.name), DenialReason::Expired));
        }
        let fingerprint = self.sessions.fingerprint(token.digest());
        Ok(VerifiedLogin {
            grant: token.grant().clone(),
            identity: Identity::Token(*token.digest()),
            fingerprint,
            session: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use restante_mail::naming::MailboxName;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::grant::Scope;
    use crate::tokens::RequestedAccess;
    use restante_testdir::TestDir;

    /// A line of a user file, with the cheapest hash.
    fn line(name: &str, password: &str) -> String {
        let hash = bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef").unwrap();
        format!("{name}:{}\n", hash.format_for_version(bcrypt::Version::TwoY))
    }

    /// The cheapest hash of a password.
    fn hash_of(password: &str) -> PasswordHash {
        PasswordHash::parse(line("x", password).trim_end().trim_start_matches("x:")).unwrap()
    }

    struct Fixture {
        dir: TestDir,
        authenticator: Authenticator,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = TestDir::new();
            fs::write(dir.path().join("users"), line("ann", "one") + &line("bob", "two")).unwrap();
            let authenticator = Authenticator::open(Self::settings(dir.path())).unwrap();
            Self { dir, authenticator }
        }

        fn settings(dir: &Path) -> Settings {
            let (users, tokens) = (Some(dir.join("users")), Some(dir.join("tokens.toml")));
            Settings {
                users,
                tokens,
                session_time: Duration::from_hours(1),
                secret: Some(vec![7; 32]),
                ..Settings::default()
            }
        }

        async fn try_password(&self, user: &str, password: &str, last: u8) -> Result<(), DenialReason> {
            let checked = self.authenticator.check_password(user, password, client(last)).await;
            checked.map(|_| ()).map_err(|denied| denied.reason)
        }

        async fn token(&self, expires: Option<Timestamp>) -> String {
            let name = format!("ci {expires:?}");
            let access = RequestedAccess {
                name,
                scopes: [Scope::Read].into_iter().collect(),
                mailboxes: vec!["ci-*".to_owned()],
                expires,
            };
            let text = tokens::create(&self.dir.path().join("tokens.toml"), access).unwrap().1;
            self.authenticator.reload().await;
            text
        }
    }

    fn client(last: u8) -> Client {
        Some([192, 0, 2, last].into()).into()
    }

    #[tokio::test(start_paused = true)]
    async fn checks_passwords() {
        let fixture = Fixture::new();
        let login = fixture.authenticator.check_password("ann", "one", client(1)).await.unwrap();
        assert!(login.grant.allows_everywhere(Scope::Admin) && login.grant.name() == Some("ann"));
        let wrong = Err(DenialReason::WrongPassword);
        let long = "x".repeat(MAX_PASSWORD_BYTES + 1);
        let table = [
            ("ann", "two", wrong),
            ("Ann", "one", wrong),
            ("", "", wrong),
            ("ann", &long, wrong),
            ("bob", "two", Ok(())),
        ];
        for (user, password, expected) in table {
            assert_eq!(fixture.try_password(user, password, 1).await, expected, "{user} {password}");
        }
        let denied = fixture.authenticator.check_password("ann", "x", client(2)).await.unwrap_err();
        assert_eq!(denied.name.as_deref(), Some("ann"));
        assert_eq!(fixture.authenticator.check_password("eve", "x", client(2)).await.unwrap_err().name, None);
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_passwords_are_delayed_and_others_are_not() {
        let fixture = Fixture::new();
        assert_eq!(fixture.try_password("bob", "two", 1).await, Ok(()));
        let started = Instant::now();
        for _ in 0..100 {
            assert_eq!(fixture.try_password("ann", "wrong", 1).await, Err(DenialReason::WrongPassword));
        }
        assert!(started.elapsed() > Duration::from_mins(15), "{:?}", started.elapsed());
        let started = Instant::now();
        // Other clients, cached logins and tokens are not delayed.
        assert_eq!(fixture.try_password("bob", "two", 2).await, Ok(()));
        let token = fixture.token(None).await;
        assert!(fixture.authenticator.check_token(&token, client(1)).await.is_ok());
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    /// Checks a login against a setting with the password `right` for `app`.
    async fn try_configured(
        authenticator: &Authenticator,
        setting: &'static str,
        user: &str,
        secret: &str,
        last: u8,
    ) -> Result<(), Denied> {
        let is_correct = || user == "app" && secret == "right";
        let configured = ConfiguredLogin {
            setting,
            user: (user == "app").then_some(user),
            hashes: Vec::new(),
            matches: &is_correct,
        };
        authenticator.check_configured(user, Some(secret), client(last), &configured).await.map(drop)
    }

    #[tokio::test(start_paused = true)]
    async fn configured_passwords_are_throttled_with_and_without_accounts() {
        let fixture = Fixture::new();
        let without_accounts = Authenticator::open(Settings::default()).unwrap();
        assert!(fixture.authenticator.has_accounts() && !without_accounts.has_accounts());
        for authenticator in [&fixture.authenticator, &without_accounts] {
            let started = Instant::now();
            for _ in 0..100 {
                assert!(try_configured(authenticator, "smtp", "app", "right", 1).await.is_ok());
            }
            assert_eq!(started.elapsed(), Duration::ZERO);
            for _ in 0..6 {
                let denied = try_configured(authenticator, "smtp", "app", "wrong", 2).await.unwrap_err();
                assert_eq!(denied, Denied::new(Some("app"), DenialReason::WrongPassword));
            }
            assert_eq!(started.elapsed(), Duration::from_millis(6200));
            // Failures over one protocol delay another one, even with a correct password.
            let denied = try_configured(authenticator, "pop3", "eve", "wrong", 2).await.unwrap_err();
            assert_eq!((denied.name, started.elapsed()), (None, Duration::from_millis(12_600)));
            assert!(try_configured(authenticator, "pop3", "app", "right", 2).await.is_ok());
            assert_eq!(started.elapsed(), Duration::from_millis(22_600));
            // It is cached then, for the same setting and client. Other clients without failures are not delayed.
            assert!(try_configured(authenticator, "pop3", "app", "right", 2).await.is_ok());
            assert!(try_configured(authenticator, "smtp", "app", "right", 1).await.is_ok());
            assert_eq!(started.elapsed(), Duration::from_millis(22_600));
        }
        // They share the table of failures with the passwords of users.
        let started = Instant::now();
        assert_eq!(fixture.try_password("bob", "two", 2).await, Ok(()));
        assert!(started.elapsed() > Duration::from_secs(5), "{:?}", started.elapsed());
        // With accounts, users and tokens are accepted as well.
        let token = fixture.token(None).await;
        assert!(try_configured(&fixture.authenticator, "smtp", "ann", "one", 3).await.is_ok());
        assert!(try_configured(&fixture.authenticator, "smtp", "ann", &token, 3).await.is_ok());
        let denied = try_configured(&fixture.authenticator, "smtp", "ann", "rst_x", 3).await.unwrap_err();
        assert_eq!(denied.reason, DenialReason::UnknownToken);
        let denied = try_configured(&without_accounts, "smtp", "ann", &token, 3).await.unwrap_err();
        assert_eq!(denied.reason, DenialReason::WrongPassword);
    }

    #[tokio::test(start_paused = true)]
    async fn parallel_guesses_and_digests_are_throttled() {
        let authenticator = Arc::new(Authenticator::open(Settings::default()).unwrap());
        let started = Instant::now();
        let guesses = (0..400).map(|_| {
            let authenticator = authenticator.clone();
            tokio::spawn(async move {
                let configured =
                    ConfiguredLogin { setting: "pop3", user: None, hashes: Vec::new(), matches: &|| false };
                authenticator.check_configured("app", None, client(1), &configured).await.unwrap_err().reason
            })
        });
        let mut wrong = 0;
        for guess in guesses.collect::<Vec<_>>() {
            wrong += usize::from(guess.await.unwrap() == DenialReason::WrongPassword);
        }
        // The others are refused at once.
        assert_eq!((wrong, started.elapsed()), (8, Duration::from_millis(22_600)));
    }

    #[tokio::test(start_paused = true)]
    async fn successful_login_is_cached_until_the_hash_changes() {
        let fixture = Fixture::new();
        assert_eq!(fixture.try_password("ann", "one", 1).await, Ok(()));
        let users = fixture.dir.path().join("users");
        fs::write(&users, line("ann", "new")).unwrap();
        fixture.authenticator.reload().await;
        assert_eq!(fixture.try_password("ann", "one", 1).await, Err(DenialReason::WrongPassword));
        assert_eq!(fixture.try_password("ann", "new", 1).await, Ok(()));
        fs::write(&users, "ann:broken").unwrap();
        fixture.authenticator.reload().await;
        assert_eq!(fixture.try_password("ann", "new", 2).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_valid_until_they_expire_or_are_revoked() {
        let fixture = Fixture::new();
        let token = fixture.token(None).await;
        let login = fixture.authenticator.check_password("anyone", &token, client(1)).await.unwrap();
        let mailbox = |name: &str| MailboxName::from(name.to_owned());
        assert!(login.grant.allows(Scope::Read, &mailbox("ci-1")) && !login.grant.allows(Scope::Read, &mailbox("ann")));
        assert!(fixture.authenticator.is_still_valid(&login).await);
        tokens::revoke(&fixture.dir.path().join("tokens.toml"), "ci None").unwrap();
        fixture.authenticator.reload().await;
        assert!(!fixture.authenticator.is_still_valid(&login).await);
        assert_eq!(fixture.try_password("anyone", &token, 1).await, Err(DenialReason::UnknownToken));
        let old = fixture.token(Some(Timestamp::now())).await;
        let denied = fixture.authenticator.check_token(&old, client(1)).await.unwrap_err();
        assert!(denied.reason == DenialReason::Expired && denied.name.is_some_and(|name| name.starts_with("ci ")));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_with_their_credentials() {
        let fixture = Fixture::new();
        let token = fixture.token(None).await;
        let reason = async |cookie: &str| {
            fixture.authenticator.check_cookie(cookie).await.map(|_| ()).map_err(|denied| denied.reason)
        };
        let mut cookies = Vec::new();
        for (user, secret) in [("ann", "one"), ("bob", "two"), ("", &token)] {
            let login = fixture.authenticator.check_password(user, secret, client(1)).await.unwrap();
            let (cookie, lifetime) = fixture.authenticator.create_session_cookie(&login).unwrap();
            assert_eq!((reason(&cookie).await, lifetime), (Ok(()), Duration::from_hours(1)));
            cookies.push(cookie);
        }
        // Other processes with the same secret accept them too.
        let other = Authenticator::open(Fixture::settings(fixture.dir.path())).unwrap();
        assert!(other.check_cookie(&cookies[0]).await.is_ok());
        fixture.authenticator.log_out(&cookies[1]);
        assert_eq!(reason(&cookies[1]).await, Err(DenialReason::Expired));
        fs::write(fixture.dir.path().join("users"), line("ann", "one") + &line("ann2", "x")).unwrap();
        fixture.authenticator.reload().await;
        assert_eq!(reason(&cookies[0]).await, Ok(()));
        fs::write(fixture.dir.path().join("users"), line("ann", "new")).unwrap();
        tokens::revoke(&fixture.dir.path().join("tokens.toml"), "ci None").unwrap();
        fixture.authenticator.reload().await;
        assert_eq!(
            (reason(&cookies[0]).await, reason(&cookies[2]).await),
            (Err(DenialReason::Expired), Err(DenialReason::Expired))
        );
        assert_eq!(reason("made up").await, Err(DenialReason::NoCredentials));
    }

    #[tokio::test]
    async fn session_ends_at_expiry_and_at_logout() {
        let fixture = Fixture::new();
        let settings = Settings { session_time: Duration::from_secs(1), ..Fixture::settings(fixture.dir.path()) };
        let short = Authenticator::open(settings).unwrap();
        let start_session = async |auth: &Authenticator| {
            let login = auth.check_password("ann", "one", client(1)).await.unwrap();
            let cookie = auth.create_session_cookie(&login).unwrap().0;
            let login = auth.check_cookie(&cookie).await.unwrap();
            assert!(auth.is_still_valid(&login).await);
            (cookie, login)
        };
        let (_, login) = start_session(&short).await;
        let soon = CHECK_INTERVAL * 9 / 10;
        timeout(soon, short.wait_until_invalid(&login)).await.expect("the session expires");
        assert!(!short.is_still_valid(&login).await);

        let ((cookie, ended_login), (_, other_login)) =
            (start_session(&fixture.authenticator).await, start_session(&fixture.authenticator).await);
        let log_out = async { fixture.authenticator.log_out(&cookie) };
        let (ended, ()) = tokio::join!(timeout(soon, fixture.authenticator.wait_until_invalid(&ended_login)), log_out);
        ended.expect("the logout ends the session");
        assert!(
            !fixture.authenticator.is_still_valid(&ended_login).await
                && fixture.authenticator.is_still_valid(&other_login).await
        );
        // The password itself is still valid.
        assert_eq!(fixture.try_password("ann", "one", 1).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn settings_contain_users_and_hashes() {
        let hash = |text: &str| PasswordHash::parse_or_plain(text).unwrap();
        let bcrypt = hash_of("two");
        let credentials = vec![("ann".to_owned(), hash("one")), ("bob".to_owned(), bcrypt.clone())];
        let users = Authenticator::open(Settings { credentials, ..Settings::default() }).unwrap();
        assert!(users.has_accounts());
        for (number, (user, password, is_accepted)) in
            (1..).zip([("ann", "one", true), ("bob", "two", true), ("ann", "two", false), ("cid", "one", false)])
        {
            let checked = users.check_password(user, password, client(number)).await;
            assert_eq!(checked.is_ok(), is_accepted, "{user} {password}");
        }
        // The hash of a mail protocol. The second login is cached.
        let none = Authenticator::open(Settings::default()).unwrap();
        let configured = ConfiguredLogin {
            setting: "smtp.credentials",
            user: Some("bob"),
            hashes: vec![&bcrypt],
            matches: &|| false,
        };
        for (secret, is_accepted) in
            [(Some("two"), true), (Some("two"), true), (Some("one"), false), (None, false), (Some("two"), true)]
        {
            let checked = none.check_configured("bob", secret, client(1), &configured).await;
            assert_eq!(checked.is_ok(), is_accepted, "{secret:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cached_plain_password_does_not_match_a_hash() {
        let authenticator = Authenticator::open(Settings::default()).unwrap();
        let hash = hash_of("hashed");
        // Whether the password matches in plain text, the password, and whether it is accepted.
        for (matches, secret, is_accepted) in [
            (true, "plain", true),
            (true, "plain", true),
            (false, "plain", false),
            (false, "hashed", true),
            (false, "hashed", true),
            (false, "plain", false),
        ] {
            let is_match = || matches;
            let configured = ConfiguredLogin { setting: "pop3", user: None, hashes: vec![&hash], matches: &is_match };
            let checked = authenticator.check_configured("app", Some(secret), client(1), &configured).await;
            assert_eq!(checked.is_ok(), is_accepted, "{matches} {secret}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_hashes_of_a_name_are_accepted() {
        let fixture = Fixture::new();
        let (first, second) = (hash_of("first"), hash_of("second"));
        // "one" is the password of the user "ann" for all protocols. There is no user "app".
        for (user, secret, hashes, expected) in [
            ("ann", "one", vec![&first, &second], Ok(Some("ann"))),
            ("ann", "first", vec![&first, &second], Ok(None)),
            ("ann", "second", vec![&first, &second], Ok(None)),
            ("ann", "second", vec![&first, &second], Ok(None)),
            ("ann", "second", vec![&first], Err(DenialReason::WrongPassword)),
            ("ann", "third", vec![&first, &second], Err(DenialReason::WrongPassword)),
            ("app", "second", vec![&first, &second], Ok(None)),
            ("app", "one", vec![&first, &second], Err(DenialReason::WrongPassword)),
            ("app", "first", vec![], Err(DenialReason::WrongPassword)),
        ] {
            let configured = ConfiguredLogin { setting: "smtp", user: None, hashes, matches: &|| false };
            let checked = fixture.authenticator.check_configured(user, Some(secret), client(1), &configured).await;
            let name = checked.as_ref().map(Grant::name).map_err(|denied| denied.reason);
            assert_eq!(name, expected, "{user} {secret}");
        }
    }

    #[test]
    fn invalid_user_file_is_an_error() {
        let dir = TestDir::new();
        fs::write(dir.path().join("users"), "ann:one\n").unwrap();
        let message = Authenticator::open(Fixture::settings(dir.path())).err().unwrap();
        assert!(message.contains("users: line 1: the hash must begin with"), "{message}");
    }
}
