//! Tests of all checks of credentials, with a paused clock where delays matter.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use restante_mail::naming::MailboxName;
use tokio::time::{Instant, timeout};

use super::passwords::MAX_PASSWORD_BYTES;
use super::web_sessions::CHECK_INTERVAL;
use super::*;
use crate::grant::Scope;
use crate::hash_memory::HashMemory;
use crate::tokens::{self, RequestedAccess};
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
    let table =
        [("ann", "two", wrong), ("Ann", "one", wrong), ("", "", wrong), ("ann", &long, wrong), ("bob", "two", Ok(()))];
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
        dummy_hashes: Vec::new(),
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
            let configured = ConfiguredLogin {
                setting: "pop3",
                user: None,
                hashes: Vec::new(),
                dummy_hashes: Vec::new(),
                matches: &|| false,
            };
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

#[tokio::test]
async fn parallel_logins_share_a_fixed_number_of_buffers() {
    let hash = PasswordHash::parse(DUMMY_HASH).unwrap();
    let settings = Settings { credentials: vec![("ann".to_owned(), hash)], ..Settings::default() };
    let authenticator = Arc::new(Authenticator::open(settings).unwrap());
    // From different clients and for different users, so that none of them is delayed.
    let logins = (0..50).map(|number| {
        let authenticator = authenticator.clone();
        tokio::spawn(async move {
            let checked = authenticator.check_password(&format!("user{number}"), "wrong", client(number)).await;
            checked.unwrap_err().reason
        })
    });
    for login in logins.collect::<Vec<_>>() {
        assert_eq!(login.await.unwrap(), DenialReason::WrongPassword);
    }
    // All buffers that exist are kept.
    let sizes = authenticator.hash_memory.kept_sizes();
    assert!((1..=MAX_CONCURRENT_CHECKS).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.iter().all(|size| *size == 19456), "{sizes:?}");
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

/// The id of a key that signs requests is not secret.
#[tokio::test(start_paused = true)]
async fn tokens_with_the_id_of_a_signing_key_need_a_signature() {
    const ID: &str = "AKIAIOSFODNN7EXAMPLE";
    let Fixture { dir, .. } = Fixture::new();
    let path = dir.path().join("tokens.toml");
    let access = RequestedAccess {
        name: "shop".to_owned(),
        scopes: [Scope::Write].into_iter().collect(),
        mailboxes: Vec::new(),
        expires: None,
    };
    tokens::create_with_text(&path, access, ID).unwrap();
    let settings = Settings { signing_key_ids: vec![ID.to_owned()], ..Fixture::settings(dir.path()) };
    let authenticator = Authenticator::open(settings).unwrap();
    let signed = authenticator.check_signing_key(ID, client(1)).await.unwrap();
    assert_eq!(signed.grant.name(), Some("shop"));
    assert_eq!(authenticator.check_token(ID, client(1)).await.unwrap_err().reason, DenialReason::UnknownToken);
    assert!(authenticator.check_password("shop", ID, client(1)).await.is_err());
    assert!(try_configured(&authenticator, "smtp", "app", ID, 1).await.is_err());
    assert!(authenticator.check_signing_key("other", client(1)).await.is_err());
}

/// A token with a chosen text is accepted over all protocols. It may be guessed, so it waits like a wrong one, except for a client
/// that has recently logged in with such a token and has not tried many others.
#[tokio::test(start_paused = true)]
async fn tokens_with_a_chosen_text_are_accepted_and_throttled() {
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    let fixture = Fixture::new();
    let access = |name: &str| RequestedAccess {
        name: name.to_owned(),
        scopes: [Scope::Write].into_iter().collect(),
        mailboxes: Vec::new(),
        expires: None,
    };
    let path = fixture.dir.path().join("tokens.toml");
    tokens::create_with_text(&path, access("shop"), KEY).unwrap();
    fixture.authenticator.reload().await;
    let check = async |text: &str, last: u8| {
        let checked = fixture.authenticator.check_token(text, client(last)).await;
        checked.map(|login| login.grant.name().map(str::to_owned)).map_err(|denied| denied.reason)
    };
    let started = Instant::now();
    let shop = || Ok(Some("shop".to_owned()));
    assert_eq!(check(KEY, 1).await, shop());
    assert_eq!(fixture.try_password("api", KEY, 2).await, Ok(()));
    // The same user name with another password is that of the user.
    assert_eq!(fixture.try_password("ann", KEY, 2).await, Ok(()));
    assert_eq!(fixture.try_password("ann", "one", 2).await, Ok(()));
    assert!(try_configured(&fixture.authenticator, "smtp", "app", KEY, 3).await.is_ok());
    assert_eq!(started.elapsed(), Duration::ZERO);

    // Failures of a client delay the correct text, and those of a name as well.
    for wrong in ["akiaiosfodnn7example", "AKIAIOSFODNN7EXAMPLE ", "AKIAIOSFODNN7EXAMPL", "rst_AKIAIOSFODNN7EXAMPLE"] {
        assert_eq!(check(wrong, 4).await, Err(DenialReason::UnknownToken), "{wrong}");
    }
    assert_eq!(started.elapsed(), Duration::from_millis(1400));
    assert_eq!(check(KEY, 4).await, shop());
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    for _ in 0..3 {
        assert_eq!(fixture.try_password("bob", "wrong", 5).await, Err(DenialReason::WrongPassword));
    }
    assert_eq!(started.elapsed(), Duration::from_millis(3600));
    assert_eq!(fixture.try_password("bob", KEY, 6).await, Ok(()));
    assert_eq!(started.elapsed(), Duration::from_millis(4400));

    // A guess that is abandoned before its answer has still learned nothing.
    let guess = async |text| timeout(Duration::from_millis(100), check(text, 5)).await;
    assert!(check("wrong-wrong-wrong", 5).await.is_err());
    assert!(guess(KEY).await.is_err() && guess("wrong-wrong-wrong").await.is_err());

    // A client that has logged in does not wait, until it has tried some wrong texts.
    let started = Instant::now();
    assert_eq!(check(KEY, 4).await, shop());
    assert_eq!(started.elapsed(), Duration::ZERO);
    for _ in 0..16 {
        assert!(timeout(Duration::from_millis(1), check("wrong-wrong-wrong", 4)).await.is_err());
    }
    assert!(timeout(Duration::from_millis(100), check(KEY, 4)).await.is_err());

    tokens::revoke(&path, "shop").unwrap();
    fixture.authenticator.reload().await;
    assert_eq!(check(KEY, 1).await, Err(DenialReason::UnknownToken));
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

/// The rights of a user limit all logins, and a change of them ends what was logged in before.
#[tokio::test(start_paused = true)]
async fn users_have_the_rights_of_the_file() {
    let fixture = Fixture::new();
    let credentials = vec![("cid".to_owned(), hash_of("three"))];
    let settings = Settings { credentials, ..Fixture::settings(fixture.dir.path()) };
    let authenticator = Authenticator::open(settings).unwrap();
    let mailbox = |name: &str| MailboxName::from(name.to_owned());
    // The lines, and what ann and cid, a user of the settings, may then do in shop:x: read and write.
    let table = [
        ("", [true, true], [true, true]),
        ("#restante ann:read shop:*\n", [true, false], [true, true]),
        ("#restante ann:read,write acme:*\n#restante cid:read\n", [false, false], [true, false]),
    ];
    let mut earlier = None;
    for (lines, ann, cid) in table {
        fs::write(fixture.dir.path().join("users"), lines.to_owned() + &line("ann", "one")).unwrap();
        authenticator.reload().await;
        for (name, password, expected) in [("ann", "one", ann), ("cid", "three", cid)] {
            let login = authenticator.check_password(name, password, client(1)).await.unwrap();
            let allowed = [Scope::Read, Scope::Write].map(|scope| login.grant.allows(scope, &mailbox("shop:x")));
            assert_eq!((allowed, login.grant.name()), (expected, Some(name)), "{lines}");
        }
        let login = authenticator.check_password("ann", "one", client(1)).await.unwrap();
        assert!(authenticator.is_still_valid(&login).await);
        if let Some((login, cookie)) =
            earlier.replace((login.clone(), authenticator.create_session_cookie(&login).unwrap().0))
        {
            assert!(!authenticator.is_still_valid(&login).await, "{lines}");
            assert_eq!(authenticator.check_cookie(&cookie).await.unwrap_err().reason, DenialReason::Expired, "{lines}");
        }
    }
}

/// The token of a run is valid until the run expires, also if there are no accounts, and on every node with the same secret.
#[tokio::test(start_paused = true)]
async fn tokens_of_runs_are_valid_with_and_without_accounts() {
    let fixture = Fixture::new();
    let open =
        |secret: u8| Authenticator::open(Settings { secret: Some(vec![secret; 32]), ..Settings::default() }).unwrap();
    let (without_accounts, other) = (open(7), open(8));
    let in_an_hour = Timestamp::now() + Duration::from_hours(1);
    let (run, token) = without_accounts.runs().lease(in_an_hour).unwrap();
    let (_, old) = without_accounts.runs().lease(Timestamp::now()).unwrap();
    let configured = |matches| ConfiguredLogin {
        setting: "smtp.credentials",
        user: None,
        hashes: Vec::new(),
        dummy_hashes: Vec::new(),
        matches,
    };
    let (no, yes) = (configured(&|| false), configured(&|| true));
    for authenticator in [&without_accounts, &fixture.authenticator] {
        for (number, (secret, expected)) in (1..).zip([
            (&token, Ok(run.project.as_str())),
            (&old, Err(DenialReason::Expired)),
            (&format!("{token}x"), Err(DenialReason::UnknownToken)),
        ]) {
            let name = |login: &Result<VerifiedLogin, Denied>| {
                let name = login.as_ref().map(|login| login.grant.name().unwrap().to_owned());
                name.map_err(|denied| denied.reason)
            };
            let expected = expected.map(str::to_owned);
            assert_eq!(name(&authenticator.check_token(secret, client(number)).await), expected, "{secret}");
            assert_eq!(name(&authenticator.check_password("any", secret, client(number)).await), expected, "{secret}");
            let grant = authenticator.check_configured("any", Some(secret), client(number), &no).await;
            let name = grant.map(|grant| grant.name().unwrap().to_owned()).map_err(|denied| denied.reason);
            assert_eq!(name, expected, "{secret}");
        }
        // A configured password may look like a token.
        assert!(authenticator.check_configured("app", Some("rst_run_x"), client(9), &yes).await.is_ok());
    }
    let denied = other.check_token(&token, client(1)).await.unwrap_err();
    assert_eq!(denied.reason, DenialReason::UnknownToken);
    let login = fixture.authenticator.check_password("any", &token, client(1)).await.unwrap();
    let cookie = fixture.authenticator.create_session_cookie(&login).unwrap().0;
    assert_eq!(fixture.authenticator.check_cookie(&cookie).await.unwrap().grant.home(), Some(&run.project));
    assert!(fixture.authenticator.is_still_valid(&login).await);
}

#[tokio::test]
async fn session_ends_at_expiry_and_at_logout() {
    let fixture = Fixture::new();
    let settings = Settings { session_time: Duration::from_secs(4), ..Fixture::settings(fixture.dir.path()) };
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
    let (ended, _) = tokio::join!(timeout(soon, fixture.authenticator.wait_until_invalid(&ended_login)), log_out);
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
        dummy_hashes: Vec::new(),
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
        let configured = ConfiguredLogin {
            setting: "pop3",
            user: None,
            hashes: vec![&hash],
            dummy_hashes: vec![&hash],
            matches: &is_match,
        };
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
        let configured = ConfiguredLogin {
            setting: "smtp",
            user: None,
            hashes,
            dummy_hashes: vec![&first, &second],
            matches: &|| false,
        };
        let checked = fixture.authenticator.check_configured(user, Some(secret), client(1), &configured).await;
        let name = checked.as_ref().map(Grant::name).map_err(|denied| denied.reason);
        assert_eq!(name, expected, "{user} {secret}");
    }
}

/// A user that the setting does not contain is refused with a password of others, after as much work as for a known user.
#[tokio::test(start_paused = true)]
async fn unknown_users_of_a_setting_take_as_long_as_known_ones() {
    let hashes = ["one", "two", "three"].map(hash_of);
    let authenticator = Authenticator::open(Settings::default()).unwrap();
    let configured = |hashes, dummy_hashes| ConfiguredLogin {
        setting: "smtp.credentials",
        user: None,
        hashes,
        dummy_hashes,
        matches: &|| false,
    };
    let unknown = configured(Vec::new(), hashes.iter().collect());
    for (last, secret) in (1..).zip(["one", "two", "three", "four"]) {
        let checked = authenticator.check_configured("eve", Some(secret), client(last), &unknown).await;
        assert_eq!(checked.unwrap_err().reason, DenialReason::WrongPassword, "{secret}");
    }
    let chosen = authenticator.dummy_hash("eve", &unknown);
    assert!(chosen.is_some());
    assert_eq!(authenticator.dummy_hash("eve", &unknown), chosen, "it does not change");
    let users = (0..50).map(|number| authenticator.dummy_hash(&format!("user{number}"), &unknown).unwrap());
    assert_eq!(users.map(PasswordHash::as_str).collect::<HashSet<_>>().len(), hashes.len(), "users differ");
    let known = configured(vec![&hashes[0]], hashes.iter().collect());
    assert_eq!(authenticator.dummy_hash("ann", &known), None);
    assert_eq!(authenticator.dummy_hash("ann", &configured(Vec::new(), Vec::new())), None);
}

/// The hashes of the file and of the settings can take different times. The hash for an unknown user is one of all.
#[tokio::test]
async fn unknown_users_take_as_long_as_users_of_any_source() {
    let dir = TestDir::new();
    fs::write(dir.path().join("users"), line("ann", "one") + &line("bob", "two")).unwrap();
    let file = ["one", "two"].map(hash_of);
    let configured = [hash_of("three"), PasswordHash::parse_or_plain("four").unwrap()];
    let credentials = vec![("cid".to_owned(), configured[0].clone()), ("dan".to_owned(), configured[1].clone())];
    let chosen = async |settings| {
        let users = Authenticator::open(settings).unwrap().users().await;
        [0, 1, 2, 3, 4, u64::MAX].map(|number| users.dummy_hash(number).unwrap())
    };
    let select = |hashes: &[PasswordHash], indexes: [usize; 6]| indexes.map(|index| hashes[index].clone());

    let none = chosen(Settings::default()).await;
    assert!(none.iter().all(|hash| hash.as_str() == DUMMY_HASH && !hash.verify("", &mut HashMemory::default())));
    let from_file = Fixture::settings(dir.path());
    assert_eq!(chosen(from_file.clone()).await, select(&file, [0, 1, 0, 1, 0, 1]));
    let from_settings = Settings { credentials: credentials.clone(), ..Settings::default() };
    assert_eq!(chosen(from_settings).await, select(&configured, [0, 1, 0, 1, 0, 1]));
    let from_both = Settings { credentials, ..from_file };
    assert_eq!(chosen(from_both).await, select(&[file, configured].concat(), [0, 1, 2, 3, 0, 3]));
}

#[test]
fn invalid_user_file_is_an_error() {
    let dir = TestDir::new();
    fs::write(dir.path().join("users"), "ann:one\n").unwrap();
    let message = Authenticator::open(Fixture::settings(dir.path())).err().unwrap();
    assert!(message.contains("users: line 1: the hash must begin with"), "{message}");
}
