//! The one that everything asks who somebody is. Checking a password is slow on purpose, so it is done away from the network
//! threads, for few at the same time, and the answer is remembered for a while.

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

/// How many passwords are checked at the same time: each takes a processor, and some tens of megabytes.
const MAX_CONCURRENT_CHECKS: usize = 2;
/// The longest password that is looked at, in bytes.
const MAX_PASSWORD_BYTES: usize = 1024;
/// The longest name that failures are kept by, in bytes; no user has a longer one.
const MAX_NAME_BYTES: usize = 255;

/// How often an open stream checks whether its password was changed or its token revoked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// What a keeper is told at its start.
#[derive(Clone, Default)]
pub struct Settings {
    /// The file of users; none means that there are no users.
    pub users: Option<PathBuf>,
    /// The file of tokens, which need not be there.
    pub tokens: Option<PathBuf>,
    /// How long a login by a page lasts.
    pub session_time: Duration,
    /// What the cookies of such logins are signed with; none means that they are good for this process only.
    pub secret: Option<Vec<u8>>,
}

/// Knows who may do what.
pub struct Authenticator {
    users: Option<Arc<ReloadingFile<Users>>>,
    tokens: Option<Arc<ReloadingFile<Tokens>>>,
    sessions: Sessions,
    verified: VerifiedCache,
    throttle: Arc<LoginThrottle>,
    check_permits: Arc<Semaphore>,
}

/// The credentials that the settings of a mail protocol have, as one login sees them.
pub struct ConfiguredLogin<'a> {
    /// The name of the setting.
    pub setting: &'static str,
    /// The user, if the setting has one of that name. It is logged with a denial.
    pub user: Option<&'a str>,
    /// Whether the login is right by the setting. It is called on network threads, so it must be quick.
    pub matches: &'a (dyn Fn() -> bool + Send + Sync),
}

/// Somebody who was let in: what they are allowed, and by what it can be found out whether they still are.
#[derive(Clone, Debug)]
pub struct VerifiedLogin {
    /// What they are allowed.
    pub grant: Grant,
    identity: Identity,
    fingerprint: [u8; 16],
    /// The login by a page that this was made from, which can end before what the login was made with.
    session: Option<Arc<Session>>,
}

impl Authenticator {
    /// Reads the files, if there are any. The error is a sentence for the operator.
    pub fn open(settings: Settings) -> Result<Self, String> {
        let Settings { users, tokens, session_time, secret } = settings;
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
        // From the system, because every server starts here: the generator of aws-lc collects entropy for 100 ms at its first use.
        let random_key = || {
            let mut key = [0; 32];
            getrandom(&mut key, GetRandomFlags::empty()).map_err(|error| format!("no random numbers: {error}"))?;
            Ok::<_, String>(hmac::Key::new(hmac::HMAC_SHA256, &key))
        };
        let signing = secret.map_or_else(random_key, |secret| Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret)))?;
        Ok(Self {
            users: users.transpose()?,
            tokens: tokens.transpose()?,
            sessions: Sessions::new(signing, session_time),
            verified: VerifiedCache::new(random_key()?),
            throttle: Arc::default(),
            check_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS)),
        })
    }

    /// Whether there are files of users or tokens, so that anonymous requests are refused.
    pub fn has_accounts(&self) -> bool {
        self.users.is_some() || self.tokens.is_some()
    }

    /// Checks a user name and a password. The password may be a token, and then the name does not matter.
    pub async fn check_password(&self, user: &str, secret: &str, client: Client) -> Result<VerifiedLogin, Denied> {
        let verified = self.verify(user, Some(secret), client, None).await?;
        verified.ok_or_else(|| DenialReason::WrongPassword.into())
    }

    /// Checks a token. A known one is accepted at once; unknown ones are delayed, longer every time.
    pub async fn check_token(&self, text: &str, client: Client) -> Result<VerifiedLogin, Denied> {
        let verified = self.verify_token(text, client, None).await?;
        verified.ok_or_else(|| DenialReason::UnknownToken.into())
    }

    /// Checks a login over a mail protocol, whose settings have credentials of their own. Failures count together with those of
    /// all other protocols. `secret` is a password or a token; it is `None` if the client has sent a digest, which only
    /// `configured` can check.
    pub async fn check_configured(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: &ConfiguredLogin<'_>,
    ) -> Result<Grant, Denied> {
        let verified = self.verify(user, secret, client, Some(configured)).await?;
        Ok(verified.map_or(Grant::EVERYTHING, |pass| pass.grant))
    }

    /// Returns `None` if the login is right by the settings.
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

    /// Users may do everything everywhere. A wrong password delays the next attempts, and it takes as long to check for a user
    /// that does not exist.
    async fn verify_password(
        &self,
        user: &str,
        secret: Option<&str>,
        client: Client,
        configured: Option<&ConfiguredLogin<'_>>,
    ) -> Result<Option<VerifiedLogin>, Denied> {
        let users = self.users().await;
        let found = secret.and_then(|password| users.find(user).map(|(name, hash)| (name, hash, password)));
        let is_remembered = || {
            found.is_some_and(|(name, hash, password)| self.verified.contains(client, name, hash.as_str(), password))
        };
        let denied = |reason| {
            let by_setting = || configured.and_then(|configured| configured.user);
            Denied::new(found.map(|(name, ..)| name.as_ref()).or_else(by_setting), reason)
        };
        if let Some((name, hash, _)) = found
            && is_remembered()
        {
            return Ok(Some(self.user_login(name, hash)));
        }
        let is_configured = || configured.map(|configured| (configured.matches)());
        // The key under which a login by the settings is remembered. No user has a name with a control character. Of a digest only
        // the user is remembered: every digest is another one, and it is compared in any case.
        let key = configured.map(|configured| {
            let (setting, user) = (configured.setting, &user[..user.floor_char_boundary(MAX_NAME_BYTES)]);
            let kind = if secret.is_some() { "password" } else { "digest" };
            (Arc::<str>::from(format!("{setting}\n{kind}\n{user}")), secret.unwrap_or_default())
        });
        if let Some((key, password)) = &key
            && self.verified.contains(client, key, "", password)
        {
            if is_configured() == Some(true) {
                return Ok(None);
            }
            self.verified.record_miss(client, key);
        }
        let accept_configured = || {
            if let Some((key, password)) = &key {
                self.verified.insert(client, key, "", password);
            }
            Ok(None)
        };
        let name = &user[..user.floor_char_boundary(MAX_NAME_BYTES)];
        let attempt = self.throttle.begin_password_attempt(client, name, is_configured).await;
        let Some(attempt) = attempt.map_err(|_| denied(DenialReason::TooMany))? else { return accept_configured() };
        if is_configured() == Some(true) {
            attempt.succeeded();
            return accept_configured();
        }
        let Some(password) = secret.filter(|_| self.has_accounts()) else {
            return Err(denied(DenialReason::WrongPassword));
        };
        let turn = self.check_permits.clone().acquire_owned().await.map_err(|_| denied(DenialReason::TooMany))?;
        // Another request of the same client may have brought the same password meanwhile.
        let is_right = is_remembered() || {
            let hash = found
                .map_or_else(|| users.dummy_hash(self.sessions.keyed_number(user)), |(_, hash, _)| Ok(hash.clone()));
            let password = password.to_owned();
            let checked = spawn_blocking(move || {
                // The turn goes with the work, which does not end when nobody waits for it any more.
                let _turn = turn;
                password.len() <= MAX_PASSWORD_BYTES && hash.is_ok_and(|hash| hash.verify(&password))
            });
            checked.await.unwrap_or(false)
        };
        match found {
            Some((name, hash, password)) if is_right => {
                attempt.succeeded();
                self.verified.insert(client, name, hash.as_str(), password);
                Ok(Some(self.user_login(name, hash)))
            }
            _ => Err(denied(DenialReason::WrongPassword)),
        }
    }

    /// A known token needs no throttle: it has too many random bits to be guessed.
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
        let is_configured = || configured.map(|configured| (configured.matches)());
        let attempt =
            self.throttle.begin_token_attempt(client, is_configured).await.map_err(|_| DenialReason::TooMany)?;
        match attempt {
            None => Ok(None),
            Some(attempt) if is_configured() == Some(true) => {
                attempt.succeeded();
                Ok(None)
            }
            Some(_) => Err(DenialReason::UnknownToken.into()),
        }
    }

    /// Checks the cookie of a login. One that was never ours is as good as none.
    pub async fn check_cookie(&self, cookie: &str) -> Result<VerifiedLogin, Denied> {
        let (session, is_good) =
            self.sessions.parse_cookie(cookie, Timestamp::now()).ok_or(DenialReason::NoCredentials)?;
        let pass = self.current_login(&session.identity).await.ok_or(DenialReason::Expired)?;
        let is_the_same = verify_slices_are_equal(&pass.fingerprint, &session.fingerprint).is_ok();
        if !is_good || !is_the_same {
            return Err(Denied::new(pass.grant.name(), DenialReason::Expired));
        }
        Ok(VerifiedLogin { session: Some(Arc::new(session)), ..pass })
    }

    /// The cookie for somebody who has logged in, and how long it is good for. None when there is no chance to be had.
    pub fn create_session_cookie(&self, pass: &VerifiedLogin) -> Option<(String, Duration)> {
        let cookie = self.sessions.create_cookie(&pass.identity, &pass.fingerprint, Timestamp::now()).ok()?;
        Some((cookie, self.sessions.lifetime()))
    }

    /// Ends the login that a cookie stands for.
    pub fn log_out(&self, cookie: &str) {
        let now = Timestamp::now();
        if let Some((session, _)) = self.sessions.parse_cookie(cookie, now) {
            self.sessions.end(session, now);
        }
    }

    /// Whether somebody who was let in would be let in again.
    pub async fn is_still_valid(&self, pass: &VerifiedLogin) -> bool {
        let is_good = |session: &Arc<Session>| self.sessions.is_valid(session, Timestamp::now());
        pass.session.as_ref().is_none_or(is_good)
            && self.current_login(&pass.identity).await.is_some_and(|now| now.fingerprint == pass.fingerprint)
    }

    /// Waits until these credentials would be refused. A logout in this process and the end of a login's time are
    /// noticed at once, a changed password and a revoked token within ten seconds.
    pub async fn wait_until_invalid(&self, pass: &VerifiedLogin) {
        let logged_out = async {
            match &pass.session {
                Some(session) => self.sessions.wait_for_logout(session).await,
                None => pending().await,
            }
        };
        let refused = async {
            loop {
                let time_left = pass.session.as_ref().map(|session| session.time_left(Timestamp::now()));
                sleep(time_left.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)).await;
                if !self.is_still_valid(pass).await {
                    break;
                }
            }
        };
        tokio::select! {
            () = logged_out => {}
            () = refused => {}
        }
    }

    /// Reads the files again, whatever they look like.
    pub async fn reload(&self) {
        if let Some(users) = &self.users {
            users.reload().await;
        }
        if let Some(tokens) = &self.tokens {
            tokens.reload().await;
        }
    }

    async fn users(&self) -> Arc<Users> {
        match &self.users {
            Some(users) => users.current().await,
            None => Arc::default(),
        }
    }

    async fn tokens(&self) -> Arc<Tokens> {
        match &self.tokens {
            Some(tokens) => tokens.current().await,
            None => Arc::default(),
        }
    }

    async fn current_login(&self, holder: &Identity) -> Option<VerifiedLogin> {
        match holder {
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

    /// A line of the file of users, made as cheap as it can be.
    fn line(name: &str, password: &str) -> String {
        let hash = bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef").unwrap();
        format!("{name}:{}\n", hash.format_for_version(bcrypt::Version::TwoY))
    }

    struct House {
        dir: TestDir,
        keeper: Authenticator,
    }

    impl House {
        fn new() -> Self {
            let dir = TestDir::new();
            fs::write(dir.path().join("users"), line("ann", "one") + &line("bob", "two")).unwrap();
            let keeper = Authenticator::open(Self::settings(dir.path())).unwrap();
            Self { dir, keeper }
        }

        fn settings(dir: &Path) -> Settings {
            let (users, tokens) = (Some(dir.join("users")), Some(dir.join("tokens.toml")));
            Settings { users, tokens, session_time: Duration::from_hours(1), secret: Some(vec![7; 32]) }
        }

        async fn try_password(&self, user: &str, password: &str, last: u8) -> Result<(), DenialReason> {
            let checked = self.keeper.check_password(user, password, client(last)).await;
            checked.map(|_| ()).map_err(|denied| denied.reason)
        }

        async fn token(&self, expires: Option<Timestamp>) -> String {
            let name = format!("ci {expires:?}");
            let wish = RequestedAccess {
                name,
                scopes: [Scope::Read].into_iter().collect(),
                mailboxes: vec!["ci-*".to_owned()],
                expires,
            };
            let text = tokens::create(&self.dir.path().join("tokens.toml"), wish).unwrap().1;
            self.keeper.reload().await;
            text
        }
    }

    fn client(last: u8) -> Client {
        Some([192, 0, 2, last].into()).into()
    }

    #[tokio::test(start_paused = true)]
    async fn passwords() {
        let house = House::new();
        let pass = house.keeper.check_password("ann", "one", client(1)).await.unwrap();
        assert!(pass.grant.allows_everywhere(Scope::Admin) && pass.grant.name() == Some("ann"));
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
            assert_eq!(house.try_password(user, password, 1).await, expected, "{user} {password}");
        }
        let told = house.keeper.check_password("ann", "x", client(2)).await.unwrap_err();
        assert_eq!(told.name.as_deref(), Some("ann"));
        assert_eq!(house.keeper.check_password("eve", "x", client(2)).await.unwrap_err().name, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_wrong_passwords_take_long_and_stop_nobody_else() {
        let house = House::new();
        assert_eq!(house.try_password("bob", "two", 1).await, Ok(()));
        let begun = Instant::now();
        for _ in 0..100 {
            assert_eq!(house.try_password("ann", "wrong", 1).await, Err(DenialReason::WrongPassword));
        }
        assert!(begun.elapsed() > Duration::from_mins(15), "{:?}", begun.elapsed());
        let begun = Instant::now();
        // Whoever comes from elsewhere, whoever was let in before and whoever has a token.
        assert_eq!(house.try_password("bob", "two", 2).await, Ok(()));
        let token = house.token(None).await;
        assert!(house.keeper.check_token(&token, client(1)).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    /// Checks a login against a setting with the password `right` for `app`.
    async fn try_configured(
        keeper: &Authenticator,
        setting: &'static str,
        user: &str,
        secret: &str,
        last: u8,
    ) -> Result<(), Denied> {
        let is_right = || user == "app" && secret == "right";
        let configured = ConfiguredLogin { setting, user: (user == "app").then_some(user), matches: &is_right };
        keeper.check_configured(user, Some(secret), client(last), &configured).await.map(drop)
    }

    #[tokio::test(start_paused = true)]
    async fn passwords_of_the_settings_are_throttled_with_and_without_accounts() {
        let house = House::new();
        let without_accounts = Authenticator::open(Settings::default()).unwrap();
        assert!(house.keeper.has_accounts() && !without_accounts.has_accounts());
        for keeper in [&house.keeper, &without_accounts] {
            let begun = Instant::now();
            for _ in 0..100 {
                assert!(try_configured(keeper, "smtp", "app", "right", 1).await.is_ok());
            }
            assert_eq!(begun.elapsed(), Duration::ZERO);
            for _ in 0..6 {
                let denied = try_configured(keeper, "smtp", "app", "wrong", 2).await.unwrap_err();
                assert_eq!(denied, Denied::new(Some("app"), DenialReason::WrongPassword));
            }
            assert_eq!(begun.elapsed(), Duration::from_millis(6200));
            // Failures over one protocol delay another one, for a right password too.
            let denied = try_configured(keeper, "pop3", "eve", "wrong", 2).await.unwrap_err();
            assert_eq!((denied.name, begun.elapsed()), (None, Duration::from_millis(12_600)));
            assert!(try_configured(keeper, "pop3", "app", "right", 2).await.is_ok());
            assert_eq!(begun.elapsed(), Duration::from_millis(22_600));
            // It is remembered then, for the same setting and client. Others without failures are not delayed.
            assert!(try_configured(keeper, "pop3", "app", "right", 2).await.is_ok());
            assert!(try_configured(keeper, "smtp", "app", "right", 1).await.is_ok());
            assert_eq!(begun.elapsed(), Duration::from_millis(22_600));
        }
        // They share the table with passwords of users.
        let begun = Instant::now();
        assert_eq!(house.try_password("bob", "two", 2).await, Ok(()));
        assert!(begun.elapsed() > Duration::from_secs(5), "{:?}", begun.elapsed());
        // With accounts, users and tokens are accepted as well.
        let token = house.token(None).await;
        assert!(try_configured(&house.keeper, "smtp", "ann", "one", 3).await.is_ok());
        assert!(try_configured(&house.keeper, "smtp", "ann", &token, 3).await.is_ok());
        let denied = try_configured(&house.keeper, "smtp", "ann", "rst_x", 3).await.unwrap_err();
        assert_eq!(denied.reason, DenialReason::UnknownToken);
        let denied = try_configured(&without_accounts, "smtp", "ann", &token, 3).await.unwrap_err();
        assert_eq!(denied.reason, DenialReason::WrongPassword);
    }

    #[tokio::test(start_paused = true)]
    async fn parallel_guesses_are_no_faster_and_digests_are_throttled_too() {
        let keeper = Arc::new(Authenticator::open(Settings::default()).unwrap());
        let begun = Instant::now();
        let guesses = (0..400).map(|_| {
            let keeper = keeper.clone();
            tokio::spawn(async move {
                let configured = ConfiguredLogin { setting: "pop3", user: None, matches: &|| false };
                keeper.check_configured("app", None, client(1), &configured).await.unwrap_err().reason
            })
        });
        let mut wrong = 0;
        for guess in guesses.collect::<Vec<_>>() {
            wrong += usize::from(guess.await.unwrap() == DenialReason::WrongPassword);
        }
        // Others are refused at once.
        assert_eq!((wrong, begun.elapsed()), (8, Duration::from_millis(22_600)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_let_in_is_remembered_until_the_line_changes() {
        let house = House::new();
        assert_eq!(house.try_password("ann", "one", 1).await, Ok(()));
        let users = house.dir.path().join("users");
        fs::write(&users, line("ann", "new")).unwrap();
        house.keeper.reload().await;
        assert_eq!(house.try_password("ann", "one", 1).await, Err(DenialReason::WrongPassword));
        assert_eq!(house.try_password("ann", "new", 1).await, Ok(()));
        fs::write(&users, "ann:broken").unwrap();
        house.keeper.reload().await;
        assert_eq!(house.try_password("ann", "new", 2).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_good_until_they_end_or_are_revoked() {
        let house = House::new();
        let token = house.token(None).await;
        let pass = house.keeper.check_password("whoever", &token, client(1)).await.unwrap();
        let mailbox = |name: &str| MailboxName::from(name.to_owned());
        assert!(pass.grant.allows(Scope::Read, &mailbox("ci-1")) && !pass.grant.allows(Scope::Read, &mailbox("ann")));
        assert!(house.keeper.is_still_valid(&pass).await);
        tokens::revoke(&house.dir.path().join("tokens.toml"), "ci None").unwrap();
        house.keeper.reload().await;
        assert!(!house.keeper.is_still_valid(&pass).await);
        assert_eq!(house.try_password("whoever", &token, 1).await, Err(DenialReason::UnknownToken));
        let old = house.token(Some(Timestamp::now())).await;
        let denied = house.keeper.check_token(&old, client(1)).await.unwrap_err();
        assert!(denied.reason == DenialReason::Expired && denied.name.is_some_and(|name| name.starts_with("ci ")));
    }

    #[tokio::test(start_paused = true)]
    async fn logins_end_with_what_they_were_made_with() {
        let house = House::new();
        let token = house.token(None).await;
        let reason =
            async |cookie: &str| house.keeper.check_cookie(cookie).await.map(|_| ()).map_err(|denied| denied.reason);
        let mut cookies = Vec::new();
        for (user, secret) in [("ann", "one"), ("bob", "two"), ("", &token)] {
            let pass = house.keeper.check_password(user, secret, client(1)).await.unwrap();
            let (cookie, lifetime) = house.keeper.create_session_cookie(&pass).unwrap();
            assert_eq!((reason(&cookie).await, lifetime), (Ok(()), Duration::from_hours(1)));
            cookies.push(cookie);
        }
        // Other processes with the same secret know them too.
        let other = Authenticator::open(House::settings(house.dir.path())).unwrap();
        assert!(other.check_cookie(&cookies[0]).await.is_ok());
        house.keeper.log_out(&cookies[1]);
        assert_eq!(reason(&cookies[1]).await, Err(DenialReason::Expired));
        fs::write(house.dir.path().join("users"), line("ann", "one") + &line("ann2", "x")).unwrap();
        house.keeper.reload().await;
        assert_eq!(reason(&cookies[0]).await, Ok(()));
        fs::write(house.dir.path().join("users"), line("ann", "new")).unwrap();
        tokens::revoke(&house.dir.path().join("tokens.toml"), "ci None").unwrap();
        house.keeper.reload().await;
        assert_eq!(
            (reason(&cookies[0]).await, reason(&cookies[2]).await),
            (Err(DenialReason::Expired), Err(DenialReason::Expired))
        );
        assert_eq!(reason("made up").await, Err(DenialReason::NoCredentials));
    }

    #[tokio::test]
    async fn a_login_by_a_page_is_lost_with_its_time_and_by_its_own_logout() {
        let house = House::new();
        let settings = Settings { session_time: Duration::from_secs(1), ..House::settings(house.dir.path()) };
        let short = Authenticator::open(settings).unwrap();
        let log_in = async |keeper: &Authenticator| {
            let pass = keeper.check_password("ann", "one", client(1)).await.unwrap();
            let cookie = keeper.create_session_cookie(&pass).unwrap().0;
            let pass = keeper.check_cookie(&cookie).await.unwrap();
            assert!(keeper.is_still_valid(&pass).await);
            (cookie, pass)
        };
        let (_, pass) = log_in(&short).await;
        let soon = CHECK_INTERVAL * 9 / 10;
        timeout(soon, short.wait_until_invalid(&pass)).await.expect("it ends with its time");
        assert!(!short.is_still_valid(&pass).await);

        let ((first, lost), (_, kept)) = (log_in(&house.keeper).await, log_in(&house.keeper).await);
        let log_out = async { house.keeper.log_out(&first) };
        let (ended, ()) = tokio::join!(timeout(soon, house.keeper.wait_until_invalid(&lost)), log_out);
        ended.expect("it ends with the logout");
        assert!(!house.keeper.is_still_valid(&lost).await && house.keeper.is_still_valid(&kept).await);
        // The password itself is still good.
        assert_eq!(house.try_password("ann", "one", 1).await, Ok(()));
    }

    #[test]
    fn a_file_with_a_mistake_stops_the_start() {
        let dir = TestDir::new();
        fs::write(dir.path().join("users"), "ann:one\n").unwrap();
        let problem = Authenticator::open(House::settings(dir.path())).err().unwrap();
        assert!(problem.contains("users: line 1: the hash must be of the kind"), "{problem}");
    }
}
