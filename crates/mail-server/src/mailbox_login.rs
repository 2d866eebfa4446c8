//! Checks logins over POP3. If neither credentials nor accounts are configured, every login opens every mailbox: a mail
//! catcher shows mail, it does not protect it.

use std::net::IpAddr;
use std::sync::Arc;

use md5::{Digest as _, Md5};
use restante_auth::runs::is_run_token;
use restante_auth::{AuthService, ConfiguredLogin, DenialReason, Denied, Grant, PasswordHash, Scope};
use restante_mail::naming::MailboxName;
use restante_proto::pop3::Proof;
use restante_settings::MailboxPassword;
use subtle::ConstantTimeEq as _;

/// The mailboxes and passwords of `pop3.credentials`, and the accounts of all protocols.
#[derive(Debug)]
pub struct Login {
    credentials: Vec<MailboxPassword>,
    /// The mailboxes whose password is given as a hash; `None` means all mailboxes.
    hashed: Vec<(Option<MailboxName>, PasswordHash)>,
    auth: Arc<AuthService>,
}

/// A login to check.
pub(super) struct LoginAttempt<'a> {
    /// The mailbox to open.
    pub(super) mailbox: &'a MailboxName,
    /// The user name as sent.
    pub(super) user: &'a str,
    /// The password or digest.
    pub(super) proof: &'a Proof,
    /// The client's address.
    pub(super) ip: Option<IpAddr>,
}

impl Login {
    /// Separates the mailbox and the user, for clients that have one field for both.
    const SEPARATOR: char = '*';

    /// Creates a checker for these credentials and accounts.
    pub fn new(credentials: Vec<MailboxPassword>, auth: Arc<AuthService>) -> Self {
        let (mut plain, mut hashed) = (Vec::new(), Vec::new());
        for credential in credentials {
            match PasswordHash::parse(credential.password.expose()) {
                Ok(hash) => hashed.push((credential.mailbox, hash)),
                Err(_) => plain.push(credential),
            }
        }
        Self { credentials: plain, hashed, auth }
    }

    /// Returns the authentication service, which also logs denials.
    pub(super) fn auth(&self) -> &AuthService {
        &self.auth
    }

    /// Returns whether every login opens every mailbox.
    pub(super) fn accepts_any_login(&self) -> bool {
        self.credentials.is_empty() && self.hashed.is_empty() && !self.auth.is_enabled()
    }

    /// Returns the mailbox and the user that a client means. If accounts are configured, `mailbox*user` gives both.
    pub(super) fn split_mailbox_and_user<'a>(&self, mailbox: &'a str, user: &'a str) -> (&'a str, &'a str) {
        let both = user.rsplit_once(Self::SEPARATOR).filter(|_| self.auth.is_enabled() && mailbox == user);
        both.unwrap_or((mailbox, user))
    }

    /// Returns the grant of a login. A password of `pop3.credentials` opens its mailbox and the folders of it; whether a user or token may read a
    /// mailbox is checked by [`check_read_access`]. If the client or the user has failed logins, waits before the password
    /// is checked.
    pub(super) async fn check(
        &self,
        attempt: &LoginAttempt<'_>,
        user_mailbox: Option<&MailboxName>,
    ) -> Result<Grant, Denied> {
        let LoginAttempt { mailbox, user, proof, ip } = attempt;
        let (mailbox, user_mailbox) = (&mailbox.owner(), user_mailbox.map(MailboxName::owner));
        let user_mailbox = user_mailbox.as_ref();
        // The token of a run chooses its project, even if any login is accepted.
        let is_run = matches!(proof, Proof::Password(password) if is_run_token(password.expose()));
        if self.accepts_any_login() && !is_run {
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
            setting: "pop3.credentials",
            user: configured_mailbox.map(MailboxName::as_str),
            hashes: hashes.map(|(_, hash)| hash).collect(),
            dummy_hashes: self.hashed.iter().map(|(_, hash)| hash).collect(),
            matches: &matches,
        };
        // A hashed password cannot be compared with a digest.
        let secret = match proof {
            Proof::Password(password) => Some(password.expose()),
            Proof::Apop { .. } => None,
        };
        self.auth.authenticator.check_configured(user, secret, (*ip).into(), &configured).await
    }

    /// Returns whether `pop3.credentials` opens the mailbox for this proof. `user` is the mailbox of the user, if the
    /// user has one. Takes the same time whichever character is wrong.
    fn matches_credentials(&self, mailbox: &MailboxName, user: Option<&MailboxName>, proof: &Proof) -> bool {
        let applies = |credential: &MailboxPassword| applies(credential.mailbox.as_ref(), mailbox, user);
        self.credentials
            .iter()
            .fold(false, |found, credential| found | (applies(credential) & verify(credential, proof)))
    }
}

/// Checks whether a grant permits to read a mailbox.
pub(super) fn check_read_access(grant: &Grant, mailbox: &MailboxName) -> Result<(), Denied> {
    let reason = match grant.allows_somewhere(Scope::Read) {
        true if grant.covers(mailbox) => return Ok(()),
        true => DenialReason::Mailbox,
        false => DenialReason::Scope,
    };
    Err(Denied::new(grant.name(), reason))
}

/// Returns whether the password of the mailbox `own` can open `mailbox` for this user. The password of one mailbox does
/// not open another one (RFC 4616 section 2: the authorization identity). If `own` is `None`, it opens all mailboxes.
fn applies(own: Option<&MailboxName>, mailbox: &MailboxName, user: Option<&MailboxName>) -> bool {
    own.is_none_or(|own| own == mailbox && Some(own) == user)
}

fn verify(credential: &MailboxPassword, proof: &Proof) -> bool {
    let password = credential.password.expose().as_bytes();
    match proof {
        Proof::Password(given) => bool::from(password.ct_eq(given.expose().as_bytes())),
        // RFC 1939 section 7: the MD5 of the greeting's timestamp, with its brackets, followed by the shared secret.
        Proof::Apop { timestamp, digest } => {
            let expected = Md5::new().chain_update(timestamp).chain_update(password).finalize();
            bool::from(expected.ct_eq(digest))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use restante_mail::naming::Naming;
    use restante_proto::Secret;
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

    /// Each entry is a mailbox and its password. `*` opens all mailboxes.
    fn login(credentials: &[(&str, &str)]) -> Login {
        let credential = |(mailbox, password): &(&str, &str)| MailboxPassword {
            mailbox: (*mailbox != "*").then(|| mailbox_name(mailbox)),
            password: Secret::new(*password),
        };
        Login::new(
            credentials.iter().map(credential).collect(),
            AuthService::open(restante_auth::Settings::default()).unwrap(),
        )
    }

    fn password(text: &str) -> Proof {
        Proof::Password(Secret::new(text))
    }

    fn digest(text: &str) -> Proof {
        let digest = Md5::new().chain_update(TIMESTAMP).chain_update(text).finalize().into();
        Proof::Apop { timestamp: TIMESTAMP.to_owned(), digest }
    }

    async fn opens_mailbox(login: &Login, mailbox: &str, user: &str, text: &str) -> bool {
        let (mailbox, user_mailbox, proof) = (mailbox_name(mailbox), mailbox_name(user), password(text));
        let attempt = LoginAttempt { mailbox: &mailbox, user, proof: &proof, ip: None };
        login.check(&attempt, Some(&user_mailbox)).await.is_ok()
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
            for proof in [password(text), digest(text)] {
                assert_eq!(
                    login.matches_credentials(&mailbox, name.as_ref(), &proof),
                    opens,
                    "{mailbox} {user} {proof:?} {text}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn password_of_a_mailbox_opens_its_folders() {
        let login = login(&[("james", "one"), ("ann", "two")]);
        let table = [
            ("james,Sent", "james,Sent", "one", true),
            ("james,Sent", "james", "one", true),
            ("james,Sent", "james,Sent", "two", false),
            ("james,ann", "james,ann", "two", false),
            ("james,Sent", "ann", "two", false),
        ];
        for (mailbox, user, text, expected) in table {
            assert_eq!(opens_mailbox(&login, mailbox, user, text).await, expected, "{mailbox} {user} {text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_credentials_every_login_is_accepted_and_not_throttled() {
        let login = login(&[]);
        let mailbox = mailbox_name("james");
        let started = Instant::now();
        for proof in [password(""), password("x"), digest("x")].iter().cycle().take(100) {
            let attempt = LoginAttempt { mailbox: &mailbox, user: "james", proof, ip: None };
            assert!(login.check(&attempt, None).await.is_ok());
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
        let mailbox = mailbox_name("james");
        let started = Instant::now();
        for (proof, opens, millis) in [
            (digest("one"), true, 0),
            (digest("x"), false, 0),
            (password("x"), false, 200),
            (digest("x"), false, 600),
            (password("one"), true, 1400),
        ] {
            let attempt = LoginAttempt { mailbox: &mailbox, user: "james", proof: &proof, ip: None };
            assert_eq!(login.check(&attempt, Some(&mailbox)).await.is_ok(), opens, "{proof:?}");
            assert_eq!(started.elapsed().as_millis(), millis, "{proof:?}");
        }
    }

    #[test]
    fn verifies_the_apop_example_of_the_rfc() {
        // RFC 1939 section 7.
        let login = login(&[("mrose", "tanstaaf")]);
        let mailbox = mailbox_name("mrose");
        let digest = 0xc4c9_334b_ac56_0ecc_979e_5800_1b3e_22fb_u128.to_be_bytes();
        let proof = Proof::Apop { timestamp: TIMESTAMP.to_owned(), digest };
        assert!(login.matches_credentials(&mailbox, Some(&mailbox), &proof));
    }
}
