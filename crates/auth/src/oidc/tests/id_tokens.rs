//! ID tokens that are accepted, and all the ways in which they are not.

use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

use super::{KEYS, encode};
use crate::claim_grants::Claims;
use crate::oidc::id_token::{self, Expected, Keys, TokenError};

/// A token that is signed correctly with a key of 1024 bits, and that key.
const WEAK_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6IndlYWsifQ.eyJpc3MiOiJodHRwczovL2xvZ2luLnRlc3QiLCJhdWQiOiJyZXN0YW50ZSIsInN1YiI6IjciLCJub25jZSI6Im4iLCJpYXQiOjEwMDAsImV4cCI6MjAwMH0.kAN5BaHdmjmq1j4n-FEp60siob_2C0GmbMm_Tce0sQ1CYrMGZoHGThXxiXLUYMp0JtCBEXBRj6DGCbLS3CMDbCF1j9aaFCTbJt6f6qroWgWlAOx3xr35OJW6AJIlghyPOPytXDmCT7QFcj6otOSnNGd8kcUUyL4uwxyyrzwhJt0";
const WEAK_MODULUS: &str = "3R2JPwz4Tmh0nRY_ZzOeEQaFOUAv2-ARkon5Ao9TMMYSjPd3KRJmXGIeJWofX2dEmxq7uls22wgdURc4XADr0GxkjElBga4xVq47ffg3oPTBf-LiyW_nylJkJrEzku3-ftiTW6SMwTy5lXKjbCduRrCAbUX31yVsMJUlwbqmG4s";

fn verify(token: &str, keys: &[Value]) -> Result<Claims, TokenError> {
    let keys = Keys::parse(json!({"keys": keys}).to_string().as_bytes()).unwrap();
    let now = Timestamp::from_second(1500).unwrap();
    let expected = Expected { issuer: "https://login.test", client_id: "restante", nonce: Some("n"), now };
    id_token::verify(token, &keys, &expected)
}

/// The claims of a valid token, with changes. A null removes a claim.
fn claims(changes: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://login.test", "aud": "restante", "sub": "7", "nonce": "n", "iat": 1500, "exp": 1510
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

#[test]
fn algorithms_of_the_keys_are_accepted() {
    let table = [
        ("rsa", "RS256"),
        ("rsa", "RS384"),
        ("rsa", "RS512"),
        ("rsa", "PS256"),
        ("rsa", "PS384"),
        ("rsa", "PS512"),
        ("p256", "ES256"),
        ("p384", "ES384"),
        ("ed25519", "EdDSA"),
        ("ed25519", "Ed25519"),
    ];
    let groups = json!({"groups": ["qa"]});
    for (kind, algorithm) in table {
        let token = KEYS.sign(kind, &json!({"alg": algorithm, "kid": kind}), &claims(&groups));
        assert_eq!(
            verify(&token, &KEYS.list()).map(|claims| claims["groups"][0].clone()),
            Ok("qa".into()),
            "{algorithm}"
        );
        // Without an id, exactly one key must fit.
        let token = KEYS.sign(kind, &json!({"alg": algorithm}), &claims(&json!({})));
        assert!(verify(&token, &KEYS.list()).is_ok(), "{algorithm}");
        let twice = [KEYS.list(), KEYS.list()].concat();
        assert_eq!(verify(&token, &twice), Err("it does not say with which key it is signed".into()));
        // Another token has the signature of this one.
        let (message, _) = token.rsplit_once('.').unwrap();
        let other = KEYS.sign(kind, &json!({"alg": algorithm, "kid": kind}), &claims(&json!({})));
        let (other_message, other_signature) = other.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{message}.{other_signature}"), &KEYS.list()), Err(TokenError::UnknownKey));
        let (_, signature) = token.rsplit_once('.').unwrap();
        let mixed = verify(&format!("{other_message}.{signature}"), &KEYS.list());
        assert_eq!(mixed, Err("its signature is wrong".into()), "{algorithm}");
    }
}

#[test]
fn keys_decide_about_algorithms() {
    let token = |kind, header: Value| KEYS.sign(kind, &header, &claims(&json!({})));
    let changed = |kind: &str, name: &str, value: &str| {
        let mut keys = KEYS.list();
        keys.iter_mut().find(|key| key["kid"] == kind).unwrap()[name] = value.into();
        keys
    };
    let not_of_key =
        |algorithm: &str| Err(TokenError::Invalid(format!("its algorithm {algorithm:?} is not one of its key")));
    for algorithm in ["none", "None", "", "HS256", "HS512", "RS1", "ES256", "ES384", "EdDSA", "rs256", "ES256K"] {
        let token = token("rsa", json!({"alg": algorithm, "kid": "rsa"}));
        assert_eq!(verify(&token, &KEYS.list()), not_of_key(algorithm), "{algorithm}");
        let (message, _) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{message}."), &KEYS.list()), not_of_key(algorithm), "{algorithm}");
    }
    assert_eq!(verify(&token("p384", json!({"alg": "ES384", "kid": "p256"})), &KEYS.list()), not_of_key("ES384"));
    // HMAC with the public key as the secret.
    let public = KEYS.list()[0]["n"].as_str().unwrap().to_owned();
    let message = token("rsa", json!({"alg": "HS256", "kid": "rsa"})).rsplit_once('.').unwrap().0.to_owned();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes()), message.as_bytes());
    assert_eq!(verify(&format!("{message}.{}", encode(tag.as_ref())), &KEYS.list()), not_of_key("HS256"));
    // The key is for another algorithm, for encryption, or of an unknown kind.
    let rsa = || token("rsa", json!({"alg": "RS256", "kid": "rsa"}));
    assert_eq!(verify(&rsa(), &changed("rsa", "alg", "PS256")), not_of_key("RS256"));
    assert!(verify(&rsa(), &changed("rsa", "alg", "RS256")).is_ok());
    for (name, value) in [("use", "enc"), ("kty", "oct"), ("kid", "other"), ("n", "!"), ("e", "AQ AB")] {
        assert_eq!(verify(&rsa(), &changed("rsa", name, value)), Err(TokenError::UnknownKey), "{name}");
    }
    let p256 = token("p256", json!({"alg": "ES256", "kid": "p256"}));
    assert_eq!(verify(&p256, &changed("p256", "crv", "P-521")), Err(TokenError::UnknownKey));
    let weak = json!({"kty": "RSA", "kid": "weak", "n": WEAK_MODULUS, "e": "AQAB"});
    assert_eq!(verify(WEAK_TOKEN, &[weak]), Err("its signature is wrong".into()));
    assert_eq!(verify(&rsa(), &[]), Err(TokenError::UnknownKey));
}

#[test]
fn claims_are_checked() {
    let issuer = "its issuer (iss) is not https://login.test";
    let audience = "its audience (aud) does not contain restante";
    let party = "its authorized party (azp) is not restante";
    let expired = "expired";
    let early = "it is not valid yet (iat, nbf), or the clocks of the provider and of this server differ";
    let nonce = "it was issued for another login (nonce)";
    let subject = "its subject (sub) is missing or invalid";
    let table = [
        (json!({"aud": ["restante"]}), None),
        (json!({"aud": ["other", "restante"], "azp": "restante"}), None),
        (json!({"azp": "restante", "exp": 1441, "iat": 1560, "nbf": 1560}), None),
        (json!({"exp": 1500.5, "iat": 0}), None),
        (json!({"iss": "https://login.test/"}), Some(issuer)),
        (json!({"iss": null}), Some(issuer)),
        (json!({"aud": "other"}), Some(audience)),
        (json!({"aud": null}), Some(audience)),
        (json!({"aud": ["restante", 7]}), Some(audience)),
        (json!({"aud": {"restante": true}}), Some(audience)),
        (json!({"aud": ["other", "restante"]}), Some(party)),
        (json!({"aud": ["other", "restante"], "azp": "other"}), Some(party)),
        (json!({"azp": "other"}), Some(party)),
        (json!({"azp": 7}), Some(party)),
        (json!({"exp": 1440}), Some(expired)),
        (json!({"exp": "2000"}), Some(expired)),
        (json!({"exp": null}), Some(expired)),
        (json!({"iat": 1561}), Some(early)),
        (json!({"iat": null}), Some(early)),
        (json!({"nbf": 1561}), Some(early)),
        (json!({"nbf": "0"}), Some(early)),
        (json!({"nonce": "other"}), Some(nonce)),
        (json!({"nonce": null}), Some(nonce)),
        (json!({"sub": null}), Some(subject)),
        (json!({"sub": 7}), Some(subject)),
        (json!({"sub": ""}), Some(subject)),
        (json!({"sub": "a\nb"}), Some(subject)),
        (json!({"sub": "x".repeat(256)}), Some(subject)),
    ];
    for (changes, expected) in table {
        let token = KEYS.sign("ed25519", &json!({"alg": "EdDSA", "kid": "ed25519"}), &claims(&changes));
        let expected = expected.map(|reason| if reason == expired { TokenError::Expired } else { reason.into() });
        assert_eq!(verify(&token, &KEYS.list()).err(), expected, "{changes}");
    }
}

#[test]
fn malformed_tokens_and_key_sets_are_refused() {
    let token = |header: Value, claims: Value| KEYS.sign("ed25519", &header, &claims);
    let header = || json!({"alg": "EdDSA", "kid": "ed25519"});
    let critical = json!({"alg": "EdDSA", "kid": "ed25519", "crit": ["b64"], "b64": false});
    let valid = token(header(), claims(&json!({})));
    let table = [
        (String::new(), "it is not a signed token"),
        ("a.b".to_owned(), "it is not a signed token"),
        ("!.b.c".to_owned(), "its header cannot be parsed"),
        (format!("{valid}.{valid}"), "its signature is wrong"),
        (format!("{valid}="), "its signature is wrong"),
        (token(json!([]), json!({})), "its header cannot be parsed"),
        (token(json!({"kid": "ed25519"}), json!({})), "its header cannot be parsed"),
        (token(critical, claims(&json!({}))), "it has critical header parameters, which are not supported"),
        (token(header(), json!("text")), "its claims cannot be parsed"),
        (token(header(), claims(&json!({"x": "x".repeat(48 * 1024)}))), "it has more than 49152 bytes"),
    ];
    for (token, expected) in table {
        assert_eq!(verify(&token, &KEYS.list()), Err(expected.into()), "{token}");
    }
    let parse = |document: Value| Keys::parse(document.to_string().as_bytes()).map(|_| ());
    let many: Vec<Value> = KEYS.list().into_iter().cycle().take(101).collect();
    assert_eq!(parse(json!({"keys": many[..100]})), Ok(()));
    assert_eq!(parse(json!({"keys": many})), Err("has more than 100 keys".to_owned()));
    for document in [json!({}), json!([]), json!({"keys": {}})] {
        assert!(parse(document).unwrap_err().starts_with("is not a key set: "));
    }
}
