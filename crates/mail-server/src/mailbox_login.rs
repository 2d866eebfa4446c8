//! Logins to mailboxes over POP3 and IMAP. If neither credentials nor accounts are configured, every login opens every
//! mailbox: a mail catcher shows mail, it does not protect it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use md5::{Digest as _, Md5};
use restante_auth::runs::is_run_token;
use restante_auth::{AuthService, ConfiguredLogin, DenialReason, Denied, Grant, PasswordHash, Scope};
use restante_mail::naming::{MailboxName, Project};
use restante_net::Shutdown;
use restante_proto::{Secret, sasl};
use restante_settings::MailboxPassword;
use subtle::ConstantTimeEq as _;
use tokio::time::sleep;

use crate::ListenerContext;

/// The delay of the reply to a failed login, except for passwords and tokens if accounts are configured. The login
/// throttle is added to it.
const FAILED_LOGIN_DELAY: Duration = Duration::from_secs(1);

/// The mailboxes and passwords of a setting, and the accounts of all protocols.
#[derive(Debug)]
pub struct MailboxLogin {
    /// The name of the setting.
    setting: &'static str,
    credentials: Vec<MailboxPassword>,
    /// The mailboxes whose password is given as a hash; `None` means all mailboxes.
    hashed: Vec<(Option<MailboxName>, PasswordHash)>,
    auth: Arc<AuthService>,
}

/// A login to check.
#[derive(Clone, Copy, Debug)]
pub struct LoginRequest<'a> {
    /// The command, for the log.
    pub command: &'static str,
    /// The mailbox to open, as sent.
    pub mailbox: &'a str,
    /// The user name, as sent. Clients that have one field for both send the same text as the mailbox.
    pub user: &'a str,
    /// The password, token or digest.
    pub proof: Proof<'a>,
    /// The client's address.
    pub ip: Option<IpAddr>,
}

/// The proof of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof<'a> {
    /// A password, or a token in its place.
    Password(&'a Secret),
    /// A bearer token.
    Bearer(&'a Secret),
    /// APOP: the MD5 digest of the timestamp followed by the password.
    Apop {
        /// The timestamp of the greeting, with its angle brackets.
        timestamp: &'a str,
        /// The digest, as sent.
        digest: &'a [u8; 16],
    },
}

/// Why a login is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginRefusal {
    /// The user name or the proof is wrong.
    WrongCredentials,
    /// The login is valid but does not permit this.
    NotPermitted,
    /// No mailbox can have this name, for this reason.
    InvalidName(String),
    /// Too many logins have failed, the identity provider cannot be used, or the server shuts down.
    Unavailable,
}

impl<'a> From<&'a sasl::Proof> for Proof<'a> {
    fn from(proof: &'a sasl::Proof) -> Self {
        match proof {
            sasl::Proof::Password(password) => Self::Password(password),
            sasl::Proof::Bearer(token) => Self::Bearer(token),
        }
    }
}

impl MailboxLogin {
    /// Separates the mailbox and the user, for clients that have one field for both.
    const SEPARATOR: char = '*';

    /// Creates a checker for accounts and the credentials of the setting with this name.
    pub fn new(setting: &'static str, credentials: Vec<MailboxPassword>, auth: Arc<AuthService>) -> Self {
        let (mut plain, mut hashed) = (Vec::new(), Vec::new());
        for credential in credentials {
            match PasswordHash::parse(credential.password.expose()) {
                Ok(hash) => hashed.push((credential.mailbox, hash)),
                Err(_) => plain.push(credential),
            }
        }
        Self { setting, credentials: plain, hashed, auth }
    }

    /// Checks a login to a mailbox that it must permit to read. Returns the mailbox, which is in the home of the grant if
    /// it was named without a project.
    ///
    /// Counts and logs denials, and delays failed logins. Ends early if the server shuts down.
    pub async fn open_mailbox(
        &self,
        context: &ListenerContext,
        session_name: &str,
        request: LoginRequest<'_>,
        shutdown: &mut Shutdown,
    ) -> Result<(MailboxName, Grant), LoginRefusal> {
        let (mailbox, grant) = self.check_and_delay(context, session_name, request, true, shutdown).await?;
        Ok((mailbox.ok_or(LoginRefusal::NotPermitted)?, grant))
    }

    /// Checks a login that must permit to read some mailbox. The mailbox of the request is `None` if it has no valid name,
    /// or if the login does not permit to read it. Otherwise like [`MailboxLogin::open_mailbox`].
    pub async fn log_in(
        &self,
        context: &ListenerContext,
        session_name: &str,
        request: LoginRequest<'_>,
        shutdown: &mut Shutdown,
    ) -> Result<(Option<MailboxName>, Grant), LoginRefusal> {
        self.check_and_delay(context, session_name, request, false, shutdown).await
    }

    async fn check_and_delay(
        &self,
        context: &ListenerContext,
        session_name: &str,
        mut request: LoginRequest<'_>,
        is_mailbox_required: bool,
        shutdown: &mut Shutdown,
    ) -> Result<(Option<MailboxName>, Grant), LoginRefusal> {
        (request.mailbox, request.user) = self.split_mailbox_and_user(request.mailbox, request.user);
        let result = self.check_request(context, &request, is_mailbox_required, shutdown).await;
        context.metrics.count_login(context.protocol, result.is_ok());
        if result.is_err() {
            if !self.auth.is_enabled() {
                // The user name is not logged: users type passwords into the wrong field.
                tracing::info!(session = session_name, "login failed");
            }
            self.delay_failed_login(request.proof, shutdown).await;
        }
        result
    }

    /// Checks a login, which may be delayed by the throttle, and then whether it permits to read the mailbox.
    async fn check_request(
        &self,
        context: &ListenerContext,
        request: &LoginRequest<'_>,
        is_mailbox_required: bool,
        shutdown: &mut Shutdown,
    ) -> Result<(Option<MailboxName>, Grant), LoginRefusal> {
        let mailbox_in = |home: Option<&Project>| match context.mailroom.mailbox_in(home, request.mailbox) {
            Ok(mailbox) => Ok(Some(mailbox)),
            Err(error) if is_mailbox_required => Err(LoginRefusal::InvalidName(error.to_string())),
            Err(_) => Ok(None),
        };
        let report = |denied: &Denied| {
            context.metrics.count_denial(context.protocol, denied.reason);
            self.auth.log_denial(context.protocol.log_name(), request.ip, &request.command, denied);
            match denied.reason {
                DenialReason::TooMany | DenialReason::SingleSignOn => LoginRefusal::Unavailable,
                DenialReason::Scope | DenialReason::Mailbox | DenialReason::NoAccess => LoginRefusal::NotPermitted,
                _ => LoginRefusal::WrongCredentials,
            }
        };
        let (mailbox, user_mailbox) = (mailbox_in(None)?, context.mailroom.mailbox(request.user).ok());
        let login_result = tokio::select! {
            biased;
            login_result = self.check(request, mailbox.as_ref(), user_mailbox.as_ref()) => login_result,
            () = shutdown.triggered() => return Err(LoginRefusal::Unavailable),
        };
        let grant = login_result.map_err(|denied| report(&denied))?;
        let Some(mailbox) = mailbox_in(grant.home())? else {
            return check_read_scope(&grant).map(|()| (None, grant)).map_err(|denied| report(&denied));
        };
        match check_read_access(&grant, &mailbox) {
            Ok(()) => Ok((Some(mailbox), grant)),
            Err(denied) if denied.reason == DenialReason::Mailbox && !is_mailbox_required => Ok((None, grant)),
            Err(denied) => Err(report(&denied)),
        }
    }

    /// Delays the reply to a failed login, if logins are checked. Passwords and tokens are not delayed here if accounts are
    /// configured: the login throttle delays them.
    async fn delay_failed_login(&self, proof: Proof<'_>, shutdown: &mut Shutdown) {
        let is_already_delayed = self.auth.is_enabled() && !matches!(proof, Proof::Apop { .. });
        if !self.accepts_any_login() && !is_already_delayed {
            tokio::select! {
                () = sleep(FAILED_LOGIN_DELAY) => {}
                () = shutdown.triggered() => {}
            }
        }
    }

    /// Returns whether every login opens every mailbox.
    fn accepts_any_login(&self) -> bool {
        self.credentials.is_empty() && self.hashed.is_empty() && !self.auth.is_enabled()
    }

    /// Returns the mailbox and the user that a client means. If accounts are configured, `mailbox*user` gives both.
    pub(crate) fn split_mailbox_and_user<'a>(&self, mailbox: &'a str, user: &'a str) -> (&'a str, &'a str) {
        let both = user.rsplit_once(Self::SEPARATOR).filter(|_| self.auth.is_enabled() && mailbox == user);
        both.unwrap_or((mailbox, user))
    }

    /// Returns the grant of a login. A password of the setting opens its mailbox; whether a user or token may read a
    /// mailbox is checked by [`check_read_access`]. If the client or the user has failed logins, waits before the password
    /// is checked.
    async fn check(
        &self,
        request: &LoginRequest<'_>,
        mailbox: Option<&MailboxName>,
        user_mailbox: Option<&MailboxName>,
    ) -> Result<Grant, Denied> {
        let LoginRequest { user, proof, ip, .. } = *request;
        // The token of a run chooses its project, even if any login is accepted. A hashed password cannot be compared with
        // a digest.
        let secret = match proof {
            Proof::Password(secret) | Proof::Bearer(secret) => Some(secret.expose()),
            Proof::Apop { .. } => None,
        };
        if self.accepts_any_login() && !secret.is_some_and(is_run_token) {
            return Ok(Grant::EVERYTHING);
        }
        let matches = || self.matches_credentials(mailbox, user_mailbox, proof);
        let has_password = |name: &&MailboxName| {
            let plain = self.credentials.iter().map(|credential| credential.mailbox.as_ref());
            plain.chain(self.hashed.iter().map(|(mailbox, _)| mailbox.as_ref())).any(|mailbox| mailbox == Some(name))
        };
        let configured_mailbox = user_mailbox.filter(has_password);
        let hashes = self.hashed.iter().filter(|(own, _)| applies(own.as_ref(), mailbox, user_mailbox));
        let configured = ConfiguredLogin {
            setting: self.setting,
            user: configured_mailbox.map(MailboxName::as_str),
            hashes: hashes.map(|(_, hash)| hash).collect(),
            dummy_hashes: self.hashed.iter().map(|(_, hash)| hash).collect(),
            matches: &matches,
        };
        let authenticator = &self.auth.authenticator;
        match proof {
            Proof::Bearer(token) => authenticator.check_bearer(user, token.expose(), ip.into(), &configured).await,
            _ => authenticator.check_configured(user, secret, ip.into(), &configured).await,
        }
    }

    /// Returns whether the setting opens the mailbox for this proof. `user` is the mailbox of the user, if the user has
    /// one. Takes the same time whichever character is wrong.
    fn matches_credentials(&self, mailbox: Option<&MailboxName>, user: Option<&MailboxName>, proof: Proof<'_>) -> bool {
        let applies = |credential: &MailboxPassword| applies(credential.mailbox.as_ref(), mailbox, user);
        self.credentials
            .iter()
            .fold(false, |found, credential| found | (applies(credential) & verify(credential, proof)))
    }
}

/// Checks whether a grant permits to read a mailbox.
fn check_read_access(grant: &Grant, mailbox: &MailboxName) -> Result<(), Denied> {
    check_read_scope(grant)?;
    if grant.covers(mailbox) { Ok(()) } else { Err(Denied::new(grant.name(), DenialReason::Mailbox)) }
}

/// Checks whether a grant permits to read some mailbox.
fn check_read_scope(grant: &Grant) -> Result<(), Denied> {
    let is_allowed = grant.allows_somewhere(Scope::Read);
    if is_allowed { Ok(()) } else { Err(Denied::new(grant.name(), DenialReason::Scope)) }
}

/// Returns whether the password of the mailbox `own` can open `mailbox` for this user. The password of one mailbox does
/// not open another one (RFC 4616 section 2: the authorization identity). If `own` is `None`, it opens all mailboxes.
fn applies(own: Option<&MailboxName>, mailbox: Option<&MailboxName>, user: Option<&MailboxName>) -> bool {
    own.is_none_or(|own| Some(own) == mailbox && Some(own) == user)
}

fn verify(credential: &MailboxPassword, proof: Proof<'_>) -> bool {
    let password = credential.password.expose().as_bytes();
    match proof {
        Proof::Password(given) | Proof::Bearer(given) => bool::from(password.ct_eq(given.expose().as_bytes())),
        // RFC 1939 section 7: the MD5 of the greeting's timestamp, with its brackets, followed by the shared secret.
        Proof::Apop { timestamp, digest } => {
            let expected = Md5::new().chain_update(timestamp).chain_update(password).finalize();
            bool::from(expected.ct_eq(digest))
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_auth::tokens::{self, RequestedAccess};
    use restante_mail::naming::Naming;
    use restante_mailroom::Mailroom;
    use restante_mailroom::hooks::Extensions;
    use restante_metrics::Protocol;
    use restante_net::ShutdownTrigger;
    use restante_proto::pop3;
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;
    use restante_testdir::TestDir;
    use tokio::time::Instant;

    use super::*;

    const TIMESTAMP: &str = "<1896.697170952@dbc.mtview.ca.us>";

    /// A hash of "secret".
    const SECRET_HASH: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    /// A hash of "own".
    const OWN_HASH: &str = "$2y$05$abcdefghijklmnopqrstuuxaV3eI1CMoC6y8mgsgOIL/z0TTiazXi";

    fn mailbox_name(text: &str) -> MailboxName {
        Naming::Local.parse_mailbox(text).unwrap()
    }

    fn context() -> ListenerContext {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let settings = restante_mailroom::Settings::default();
        ListenerContext {
            protocol: Protocol::Pop3,
            mailroom: Arc::new(Mailroom::new(settings, store, Extensions::default())),
            tls: None,
            implicit_tls: false,
            metrics: Arc::default(),
            idle_timeout: Duration::from_mins(1),
            netdebug: false,
            session_count: Arc::default(),
            store_errors: Arc::default(),
        }
    }

    /// Each entry is a mailbox and its password. `*` opens all mailboxes.
    fn login(credentials: &[(&str, &str)]) -> MailboxLogin {
        let credential = |(mailbox, password): &(&str, &str)| MailboxPassword {
            mailbox: (*mailbox != "*").then(|| mailbox_name(mailbox)),
            password: Secret::new(*password),
        };
        MailboxLogin::new(
            "pop3.credentials",
            credentials.iter().map(credential).collect(),
            AuthService::open(restante_auth::Settings::default()).unwrap(),
        )
    }

    fn password(text: &str) -> pop3::Proof {
        pop3::Proof::Password(Secret::new(text))
    }

    fn bearer(text: &str) -> pop3::Proof {
        pop3::Proof::Bearer(Secret::new(text))
    }

    fn digest(text: &str) -> pop3::Proof {
        let digest = Md5::new().chain_update(TIMESTAMP).chain_update(text).finalize().into();
        pop3::Proof::Apop { timestamp: TIMESTAMP.to_owned(), digest }
    }

    /// Returns whether the login of a user opens a mailbox.
    async fn opens(login: &MailboxLogin, mailbox: &str, user: &str, proof: &pop3::Proof) -> bool {
        let request = LoginRequest { command: "PASS", mailbox, user, proof: proof.into(), ip: None };
        login.check(&request, Some(&mailbox_name(mailbox)), Some(&mailbox_name(user))).await.is_ok()
    }

    async fn opens_mailbox(login: &MailboxLogin, mailbox: &str, user: &str, text: &str) -> bool {
        opens(login, mailbox, user, &password(text)).await
    }

    #[test]
    fn credentials_open_their_mailbox() {
        let login = login(&[("james", "one"), ("ann", "two"), ("*", "all")]);
        // The mailbox, the user, the password, and whether it opens.
        let table = [
            ("james", "james", "one", true),
            ("james", "james", "two", false),
            ("james", "james", "all", true),
            ("james", "james", "", false),
            ("james", "james", "One", false),
            ("ann", "ann", "two", true),
            ("ann", "ann", "one", false),
            ("jim", "jim", "one", false),
            ("jim", "jim", "all", true),
            ("james", "ann", "two", false),
            ("james", "ann", "one", false),
            ("james", "ann", "all", true),
            ("james", "first last", "one", false),
            ("james", "first last", "all", true),
        ];
        for (mailbox, user, text, opens) in table {
            let mailbox = mailbox_name(mailbox);
            let name = Naming::Local.parse_mailbox(user).ok();
            for proof in [password(text), bearer(text), digest(text)] {
                assert_eq!(
                    login.matches_credentials(Some(&mailbox), name.as_ref(), (&proof).into()),
                    opens,
                    "{mailbox} {user} {proof:?} {text}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_credentials_every_login_is_accepted_and_not_throttled() {
        let login = login(&[]);
        let started = Instant::now();
        for proof in [password(""), password("x"), bearer("x"), digest("x")].iter().cycle().take(100) {
            assert!(opens(&login, "james", "james", proof).await);
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn passwords_can_be_hashed() {
        for (user, text, mailbox, opens) in [
            ("james", "secret", "james", true),
            ("james", SECRET_HASH, "james", false),
            ("james", "secret", "ann", false),
            ("*", "secret", "ann", true),
        ] {
            let login = login(&[(user, SECRET_HASH)]);
            assert_eq!(opens_mailbox(&login, mailbox, mailbox, text).await, opens, "{user} {text} {mailbox}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn plain_password_of_one_mailbox_opens_no_other_next_to_a_hash() {
        let login = login(&[("*", SECRET_HASH), ("james", "plain")]);
        // The user james logs in, and then tries to open other mailboxes.
        for (mailbox, text, opens) in [
            ("james", "plain", true),
            ("ann", "plain", false),
            ("james", "plain", true),
            ("james", "secret", true),
            ("ann", "secret", true),
            ("ann", "plain", false),
        ] {
            assert_eq!(opens_mailbox(&login, mailbox, "james", text).await, opens, "{mailbox} {text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hash_for_all_mailboxes_also_opens_those_with_their_own_hash() {
        let login = login(&[("james", OWN_HASH), ("*", SECRET_HASH)]);
        for (mailbox, user, text, opens) in [
            ("james", "james", "own", true),
            ("ann", "james", "own", false),
            ("james", "james", "secret", true),
            ("ann", "james", "secret", true),
            ("james", "ann", "secret", true),
            ("james", "ann", "own", false),
            ("james", "james", "x", false),
        ] {
            assert_eq!(opens_mailbox(&login, mailbox, user, text).await, opens, "{mailbox} {user} {text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn passwords_and_digests_are_throttled_together() {
        let login = login(&[("james", "one")]);
        let started = Instant::now();
        for (proof, is_open, millis) in [
            (digest("one"), true, 0),
            (digest("x"), false, 0),
            (password("x"), false, 200),
            (bearer("x"), false, 600),
            (bearer("one"), true, 1400),
            (password("one"), true, 1400),
        ] {
            assert_eq!(opens(&login, "james", "james", &proof).await, is_open, "{proof:?}");
            assert_eq!(started.elapsed().as_millis(), millis, "{proof:?}");
        }
    }

    /// Returns whether a user with rights in some mailboxes can log in, and open the mailbox.
    async fn results(mailboxes: &[&str], scopes: &[Scope], name: &str) -> [Result<Option<String>, LoginRefusal>; 2] {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        let access = RequestedAccess {
            name: "ci".to_owned(),
            scopes: scopes.iter().copied().collect(),
            mailboxes: mailboxes.iter().map(|&mailbox| mailbox.to_owned()).collect(),
            expires: None,
        };
        let token = tokens::create(&path, access).unwrap().1;
        let settings = restante_auth::Settings { tokens: Some(path), ..restante_auth::Settings::default() };
        let login = MailboxLogin::new("imap.credentials", Vec::new(), AuthService::open(settings).unwrap());
        let (_trigger, mut shutdown) = ShutdownTrigger::new();
        let context = context();
        let proof = sasl::Proof::Bearer(Secret::new(token));
        let request = LoginRequest { command: "LOGIN", mailbox: name, user: name, proof: (&proof).into(), ip: None };
        let logged_in = login.log_in(&context, "test", request, &mut shutdown).await;
        let opened = login.open_mailbox(&context, "test", request, &mut shutdown).await;
        let text = |mailbox: MailboxName| mailbox.as_str().to_owned();
        [logged_in.map(|(mailbox, _)| mailbox.map(text)), opened.map(|(mailbox, _)| Some(text(mailbox)))]
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_needs_no_mailbox_of_its_own() {
        let (read, write) = (&[Scope::Read][..], &[Scope::Write][..]);
        let not_permitted = || Err(LoginRefusal::NotPermitted);
        let found = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(results(&["ann"], read, "ann").await, [found("ann"), found("ann")]);
        assert_eq!(results(&["shop:*"], read, "ann").await, [found("shop:ann"), found("shop:ann")]);
        assert_eq!(results(&["shop:ann"], read, "ann*ci").await, [found("shop:ann"), found("shop:ann")]);
        assert_eq!(results(&["shop:*", "acme:*"], read, "ann").await, [Ok(None), not_permitted()]);
        assert_eq!(results(&["ann"], write, "ann").await, [not_permitted(), not_permitted()]);
        let [logged_in, opened] = results(&["*"], read, "a..b").await;
        assert_eq!(logged_in, Ok(None));
        assert!(matches!(opened, Err(LoginRefusal::InvalidName(_))), "{opened:?}");
        assert_eq!(results(&["*"], write, "a..b").await[0], not_permitted());
    }

    #[test]
    fn verifies_the_apop_example_of_the_rfc() {
        // RFC 1939 section 7.
        let login = login(&[("mrose", "tanstaaf")]);
        let mailbox = mailbox_name("mrose");
        let digest = 0xc4c9_334b_ac56_0ecc_979e_5800_1b3e_22fb_u128.to_be_bytes();
        let proof = Proof::Apop { timestamp: TIMESTAMP, digest: &digest };
        assert!(login.matches_credentials(Some(&mailbox), Some(&mailbox), proof));
    }
}
