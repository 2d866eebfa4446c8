//! Bearer tokens of mail clients: those of the provider, and next to them tokens of this server and passwords of a setting.

use std::time::Duration;

use jiff::Timestamp;
use restante_mail::naming::Project;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::KEYS;
use super::providers::TestProvider;
use crate::grant::Scope;
use crate::{Authenticator, Client, ConfiguredLogin, DenialReason, Denied, Grant, PasswordHash, Settings};

/// A hash of "secret".
const SECRET_HASH: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

fn client() -> Client {
    Some([192, 0, 2, 1].into()).into()
}

/// Checks a token against a setting with the password `right` for `app`, and the hash of `secret` for `hashed`.
async fn check(authenticator: &Authenticator, user: &str, token: &str) -> Result<Grant, Denied> {
    let hash = PasswordHash::parse(SECRET_HASH).unwrap();
    let configured = ConfiguredLogin {
        setting: "smtp.credentials",
        user: None,
        hashes: if user == "hashed" { vec![&hash] } else { Vec::new() },
        dummy_hashes: vec![&hash],
        matches: &|| user == "app" && token == "right",
    };
    authenticator.check_bearer(user, token, client(), &configured).await
}

async fn reason(authenticator: &Authenticator, token: &str) -> Option<DenialReason> {
    check(authenticator, "ann", token).await.err().map(|denied| denied.reason)
}

#[tokio::test(start_paused = true)]
async fn tokens_of_the_provider_grant_what_the_rules_say() {
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    let now = Timestamp::now().as_second();
    let [ed25519, rsa] = ["ed25519", "rsa"];
    let type_of = |name: &str| json!({"typ": name});
    let unknown = Some(DenialReason::UnknownToken);
    // The key, the changes of the header and of the claims, and the reason of the denial.
    let table: [(&str, Value, Value, Option<DenialReason>); 18] = [
        (ed25519, json!({}), json!({}), None),
        (rsa, type_of("JWT"), json!({"nonce": "of another login"}), None),
        (rsa, type_of("at+jwt"), json!({"aud": ["other", "restante"], "azp": "mail-client"}), None),
        (rsa, json!({}), json!({"azp": "mail-client", "exp": now - 30}), None),
        (ed25519, json!({}), json!({"groups": [], "email": "a@acme.test", "email_verified": true}), None),
        (ed25519, json!({}), json!({"exp": now - 61}), Some(DenialReason::Expired)),
        (ed25519, json!({}), json!({"exp": null}), Some(DenialReason::Expired)),
        (ed25519, json!({}), json!({"groups": []}), Some(DenialReason::NoAccess)),
        (ed25519, json!({}), json!({"groups": [], "email": "a@acme.test"}), Some(DenialReason::NoAccess)),
        (ed25519, json!({}), json!({"aud": "other"}), unknown),
        (ed25519, json!({}), json!({"aud": "other", "azp": "restante"}), unknown),
        (ed25519, json!({}), json!({"iss": "https://login.test"}), unknown),
        (ed25519, json!({}), json!({"nbf": now + 300}), unknown),
        (ed25519, json!({}), json!({"sub": null}), unknown),
        (ed25519, json!({"kid": "p256"}), json!({}), unknown),
        (ed25519, json!({"kid": "other"}), json!({}), unknown),
        (ed25519, json!({"alg": "none"}), json!({}), unknown),
        (ed25519, type_of("logout+jwt"), json!({}), unknown),
    ];
    for (kind, header, claims, expected) in table {
        let token = provider.token(kind, &header, &claims);
        assert_eq!(reason(&authenticator, &token).await, expected, "{header} {claims}");
    }
    let grant = check(&authenticator, "anyone", &provider.token(rsa, &json!({}), &json!({}))).await.unwrap();
    assert_eq!((grant.name(), grant.home().map(Project::as_str)), (Some("ann"), Some("shop")));
    assert!(grant.allows_somewhere(Scope::Read) && !grant.allows_somewhere(Scope::Write));
    // A wrong signature, one of another provider with the same names, and none.
    let valid = provider.token(rsa, &json!({}), &json!({}));
    let (signed, _) = valid.rsplit_once('.').unwrap();
    let other = provider.token(rsa, &json!({}), &json!({"groups": ["admin"]}));
    let (_, signature) = other.rsplit_once('.').unwrap();
    for forged in [format!("{signed}.{signature}"), format!("{signed}.AAAA"), format!("{signed}.")] {
        assert_eq!(reason(&authenticator, &forged).await, unknown, "{forged}");
    }
    assert_eq!(reason(&TestProvider::start().authenticator(), &valid).await, unknown);
    let without_provider = Authenticator::open(Settings::default()).unwrap();
    assert_eq!(reason(&without_provider, &valid).await, unknown);
    assert_eq!(provider.count("GET /keys"), 1, "the keys are less than a minute old");
}

#[tokio::test(start_paused = true)]
async fn expired_tokens_are_not_delayed_and_forged_ones_are() {
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    let (valid, expired) = (json!({}), json!({"exp": 0}));
    let [valid, expired] = [valid, expired].map(|claims| provider.token("rsa", &json!({}), &claims));
    let forged = KEYS.sign("ed25519", &json!({"alg": "EdDSA", "kid": "rsa"}), &json!({}));
    let started = Instant::now();
    for _ in 0..5 {
        assert_eq!(reason(&authenticator, &expired).await, Some(DenialReason::Expired));
        assert_eq!(reason(&authenticator, &valid).await, None);
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    for _ in 0..4 {
        assert_eq!(reason(&authenticator, &forged).await, Some(DenialReason::UnknownToken));
    }
    assert_eq!(started.elapsed(), Duration::from_millis(1400));
    assert_eq!(reason(&authenticator, &valid).await, None);
    assert_eq!(started.elapsed(), Duration::from_millis(1400), "a valid token cannot be guessed");
}

#[tokio::test]
async fn a_provider_that_cannot_be_used_denies_with_its_own_reason() {
    for path in ["/.well-known/openid-configuration", "/keys"] {
        let provider = TestProvider::start();
        provider.set(path, 500, &json!({}));
        let authenticator = provider.authenticator();
        let token = provider.token("rsa", &json!({}), &json!({}));
        for _ in 0..3 {
            assert_eq!(reason(&authenticator, &token).await, Some(DenialReason::SingleSignOn), "{path}");
        }
        assert_eq!(provider.count(&format!("GET {path}")), 1);
        // Other tokens do not need it.
        assert!(check(&authenticator, "app", "right").await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn passwords_of_the_setting_are_tokens_and_those_of_users_are_not() {
    let hash = || PasswordHash::parse(SECRET_HASH).unwrap();
    let credentials = vec![("ann".to_owned(), hash()), ("app".to_owned(), hash())];
    let authenticator = Authenticator::open(Settings { credentials, ..Settings::default() }).unwrap();
    assert!(authenticator.check_password("ann", "secret", client()).await.is_ok());
    let (_, run) = authenticator.runs().lease(Timestamp::now() + Duration::from_hours(1)).unwrap();
    let (_, ended_run) = authenticator.runs().lease(Timestamp::now()).unwrap();
    let unknown = Some(DenialReason::UnknownToken);
    for (user, token, expected) in [
        ("app", "right", None),
        ("hashed", "secret", None),
        ("hashed", "secret", None),
        ("anyone", run.as_str(), None),
        ("anyone", &ended_run, Some(DenialReason::Expired)),
        ("ann", "right", unknown),
        ("ann", "secret", unknown),
        ("app", "secret", unknown),
        ("hashed", "right", unknown),
        ("app", "rst_run_x", unknown),
        ("app", "rst_x", unknown),
        ("app", "", unknown),
        ("app", "a.b.c", unknown),
    ] {
        let checked = check(&authenticator, user, token).await;
        assert_eq!(checked.err().map(|denied| denied.reason), expected, "{user} {token}");
    }
}
