//! Checks logins over SMTP. If neither credentials nor accounts are configured, every login is accepted: a mail catcher
//! tests senders, it does not protect anything.

use std::net::IpAddr;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use restante_auth::runs::is_run_token;
use restante_auth::{AuthService, ConfiguredLogin, DenialReason, Denied, Grant, PasswordHash, Scope};
use restante_proto::smtp::Proof;
use restante_settings::Credential;
use subtle::ConstantTimeEq as _;

/// The users and passwords of `smtp.credentials`, and the accounts of all protocols.
#[derive(Debug)]
pub struct Login {
    credentials: Vec<Credential>,
    /// The users whose password is given as a hash.
    hashed: Vec<(String, PasswordHash)>,
    accepts_any: bool,
    auth: Arc<AuthService>,
}

impl Login {
    /// Creates a checker for these credentials and accounts. Without any of them, or if `accepts_any` is true, every
    /// login is accepted.
    pub fn new(credentials: Vec<Credential>, accepts_any: bool, auth: Arc<AuthService>) -> Self {
        let accepts_any = accepts_any || credentials.is_empty() && !auth.is_enabled();
        let hash = |credential: &Credential| PasswordHash::parse(credential.password.expose()).ok();
        let hashed = credentials.iter().filter_map(|credential| Some((credential.user.clone(), hash(credential)?)));
        let hashed = hashed.collect();
        Self { credentials, hashed, accepts_any, auth }
    }

    /// Returns the authentication service, which also logs denials.
    pub(super) fn auth(&self) -> &AuthService {
        &self.auth
    }

    /// Returns the grant for this login. A token, used as password, must have the scope `write`. If the client or the
    /// user has failed logins, waits before the password is checked.
    pub async fn check(&self, user: &str, proof: &Proof, ip: Option<IpAddr>) -> Result<Grant, Denied> {
        // The token of a run chooses its project, even if any login is accepted.
        let is_run = match proof {
            Proof::Password(secret) | Proof::Bearer(secret) => is_run_token(secret.expose()),
            Proof::CramMd5 { challenge, digest } => {
                let matches = |token: &str| verify_digest(token.as_bytes(), challenge, digest);
                if let Some(checked) = self.auth.authenticator.check_run_digest(user, matches) {
                    return checked;
                }
                false
            }
        };
        if self.accepts_any && !is_run {
            return Ok(Grant::EVERYTHING);
        }
        let matches = || self.matches_credentials(user, proof);
        let configured_user = self.credentials.iter().any(|credential| credential.user == user).then_some(user);
        let hashes = self.hashed.iter().filter(|(name, _)| name == user).map(|(_, hash)| hash).collect();
        let configured = ConfiguredLogin {
            setting: "smtp.credentials",
            user: configured_user,
            hashes,
            dummy_hashes: self.hashed.iter().map(|(_, hash)| hash).collect(),
            matches: &matches,
        };
        let (authenticator, client) = (&self.auth.authenticator, ip.into());
        let grant = match proof {
            Proof::Password(password) => {
                authenticator.check_configured(user, Some(password.expose()), client, &configured).await
            }
            Proof::Bearer(token) => authenticator.check_bearer(user, token.expose(), client, &configured).await,
            // A hashed password cannot be compared with a digest.
            Proof::CramMd5 { .. } => authenticator.check_configured(user, None, client, &configured).await,
        }?;
        if grant.allows_somewhere(Scope::Write) {
            Ok(grant)
        } else {
            Err(Denied::new(grant.name(), DenialReason::Scope))
        }
    }

    /// Returns whether digests can be verified: the passwords are known in plain text, or any login is accepted.
    pub fn can_verify_digests(&self) -> bool {
        self.accepts_any || !self.auth.is_enabled() && self.hashed.is_empty()
    }

    /// Returns whether `smtp.credentials` has this user and password. Takes the same time whichever character is wrong.
    fn matches_credentials(&self, user: &str, proof: &Proof) -> bool {
        let is_plain = |credential: &&Credential| self.hashed.iter().all(|(name, _)| *name != credential.user);
        let is_match = |credential: &Credential| {
            bool::from(credential.user.as_bytes().ct_eq(user.as_bytes())) & verify(credential, proof)
        };
        self.credentials.iter().filter(is_plain).fold(false, |found, credential| found | is_match(credential))
    }
}

fn verify(credential: &Credential, proof: &Proof) -> bool {
    let password = credential.password.expose().as_bytes();
    match proof {
        Proof::Password(given) | Proof::Bearer(given) => bool::from(password.ct_eq(given.expose().as_bytes())),
        Proof::CramMd5 { challenge, digest } => verify_digest(password, challenge, digest),
    }
}

fn verify_digest(password: &[u8], challenge: &str, digest: &[u8; 16]) -> bool {
    cram_md5_digest(password, challenge).is_some_and(|expected| bool::from(expected.ct_eq(digest)))
}

/// Returns the HMAC-MD5 of the challenge with the password as key (RFC 2195 section 2).
fn cram_md5_digest(password: &[u8], challenge: &str) -> Option<[u8; 16]> {
    // A key may have any length (RFC 2104 section 3), so this cannot fail.
    let mac = Hmac::<Md5>::new_from_slice(password).ok()?;
    Some(mac.chain_update(challenge).finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use restante_proto::Secret;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn any_login_is_accepted_although_there_are_accounts() {
        let accounts = || {
            let tokens = Some("/nonexistent/tokens.toml".into());
            AuthService::open(restante_auth::Settings { tokens, ..restante_auth::Settings::default() }).unwrap()
        };
        let password = Proof::Password(Secret::new("x"));
        let bearer = Proof::Bearer(Secret::new("x"));
        for (accepts_any, is_accepted) in [(true, true), (false, false)] {
            let login = Login::new(Vec::new(), accepts_any, accounts());
            assert_eq!(login.check("tim", &password, None).await.is_ok(), is_accepted);
            assert_eq!(login.check("tim", &bearer, None).await.is_ok(), is_accepted);
            assert_eq!(login.can_verify_digests(), is_accepted);
        }
    }

    /// Clients that prefer CRAM-MD5 must not be accepted with the rights of an unknown user.
    #[tokio::test(start_paused = true)]
    async fn runs_log_in_with_passwords_and_digests() {
        let auth = AuthService::open(restante_auth::Settings::default()).unwrap();
        let lease = |time| auth.authenticator.runs().lease(time).unwrap();
        let (run, token) = lease(Timestamp::now() + Duration::from_hours(1));
        let (old, old_token) = lease(Timestamp::now());
        let digest = |token: &str| {
            let digest = cram_md5_digest(token.as_bytes(), "<1@x>").unwrap();
            Proof::CramMd5 { challenge: "<1@x>".to_owned(), digest }
        };
        let password = |text: &str| Proof::Password(Secret::new(text));
        let (name, old) = (run.project.as_str(), old.project.as_str());
        let unknown = Err(DenialReason::UnknownToken);
        let table = [
            (name, digest(&token), Ok(Some(&run.project))),
            ("any", password(&token), Ok(Some(&run.project))),
            ("any", Proof::Bearer(Secret::new(token.as_str())), Ok(Some(&run.project))),
            ("tim", Proof::Bearer(Secret::new("x")), Ok(None)),
            (name, digest("x"), unknown),
            (name, digest(&old_token), unknown),
            (old, digest(&old_token), Err(DenialReason::Expired)),
            ("any", password(&old_token), Err(DenialReason::Expired)),
            ("any", password("rst_run_x"), unknown),
            ("tim", digest("x"), Ok(None)),
            ("tim", password("x"), Ok(None)),
        ];
        let login = Login::new(Vec::new(), false, auth.clone());
        for (user, proof, expected) in table {
            let checked = login.check(user, &proof, None).await;
            let home = checked.as_ref().map(Grant::home).map_err(|denied| denied.reason);
            assert_eq!(home, expected, "{user} {proof:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hash_is_not_a_password() {
        // A hash of "secret".
        let hash = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
        let credentials = vec![Credential { user: "tim".to_owned(), password: Secret::new(hash) }];
        let login = Login::new(credentials, false, AuthService::open(restante_auth::Settings::default()).unwrap());
        assert!(!login.can_verify_digests());
        for (user, password, is_accepted) in [("tim", "secret", true), ("tim", hash, false), ("ann", "secret", false)] {
            let proof = Proof::Password(Secret::new(password));
            assert_eq!(login.check(user, &proof, None).await.is_ok(), is_accepted, "{user} {password}");
            let proof = Proof::Bearer(Secret::new(password));
            assert_eq!(login.check(user, &proof, None).await.is_ok(), is_accepted, "{user} {password}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn checks_passwords_and_digests() {
        // The example of RFC 2195 section 2.
        let challenge = "<1896.697170952@postoffice.reston.mci.net>";
        let digest = 0xb913_a602_c7ed_a7a4_95b4_e6e7_334d_3890_u128.to_be_bytes();
        let credential = |user: &str, password| Credential { user: user.to_owned(), password: Secret::new(password) };
        let credentials = vec![credential("tim", "tanstaaftanstaaf"), credential("eve", "x")];
        let login = Login::new(credentials, false, AuthService::open(restante_auth::Settings::default()).unwrap());
        assert!(login.can_verify_digests());
        let digest_of = |challenge: &str| Proof::CramMd5 { challenge: challenge.to_owned(), digest };
        let password = Proof::Password(Secret::new("tanstaaftanstaaf"));
        for (user, proof, is_accepted) in [
            ("tim", digest_of(challenge), true),
            ("tim", password, true),
            ("tim", Proof::Bearer(Secret::new("tanstaaftanstaaf")), true),
            ("eve", Proof::Bearer(Secret::new("tanstaaftanstaaf")), false),
            ("tim", digest_of("<another>"), false),
            ("eve", digest_of(challenge), false),
            ("bob", digest_of(challenge), false),
        ] {
            assert_eq!(login.check(user, &proof, None).await.is_ok(), is_accepted, "{user} {proof:?}");
        }
    }
}
