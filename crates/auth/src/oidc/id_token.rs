//! Verifies ID tokens (OpenID Connect Core, section 3.1.3.7) and access tokens (RFC 9068) of the provider: JSON Web Tokens that are
//! signed with one of its keys. The key determines which algorithms are accepted. They all use a pair of keys: `none` and HMAC do not exist here.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm as Verification,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::claim_grants::Claims;

/// The maximum size of a token in bytes.
const MAX_TOKEN_BYTES: usize = 48 * 1024;
/// The maximum number of keys of a provider.
const MAX_KEYS: usize = 100;
/// The maximum length of a subject in bytes (OpenID Connect Core, section 2).
const MAX_SUBJECT_BYTES: usize = 255;
/// How far the clocks of the provider and of this server may differ, in seconds.
const LEEWAY_SECONDS: f64 = 60.0;
/// The types of tokens that are accepted as bearer tokens, in lower case. A token without a type is accepted too.
const BEARER_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The keys of a provider.
#[derive(Debug)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The only algorithm that the key may be used with, if the provider names one.
    algorithm: Option<String>,
    public: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// A point on a curve, in the form that the curve's algorithm expects.
    Point(Curve, Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    Ed25519,
}

enum Algorithm {
    Rsa(&'static RsaParameters),
    Point(Curve, &'static dyn Verification),
}

/// A key as the provider writes it (RFC 7517, RFC 7518 section 6, RFC 8037 section 2).
#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<Value>,
}

/// What a token must contain.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    /// The nonce of an ID token that the provider has issued for a login here. `None` for a bearer token, which the provider may
    /// have issued to another program.
    pub(crate) nonce: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// The reason why a token is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// The token is signed with an unknown key. The provider may have a new one.
    UnknownKey,
    /// The token is signed correctly and has expired.
    Expired,
    /// The token is invalid, for this reason.
    Invalid(String),
}

impl From<&str> for TokenError {
    fn from(reason: &str) -> Self {
        Self::Invalid(reason.to_owned())
    }
}

impl From<String> for TokenError {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "it is signed with a key that the provider does not list",
            Self::Expired => "it has expired (exp), or the clocks of the provider and of this server differ",
            Self::Invalid(reason) => reason,
        })
    }
}

impl Keys {
    /// Parses a key set. Keys of other kinds, and keys that are not for signatures, are left out.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct KeySet {
            keys: Vec<Value>,
        }
        let KeySet { keys } = serde_json::from_slice(document).map_err(|error| format!("is not a key set: {error}"))?;
        if keys.len() > MAX_KEYS {
            return Err(format!("has more than {MAX_KEYS} keys"));
        }
        let keys = keys.into_iter().filter_map(|key| Key::parse(serde_json::from_value(key).ok()?)).collect();
        Ok(Self(keys))
    }

    /// Returns the only key with this id that fits the algorithm. A token may leave the id out if only one key fits.
    fn find(&self, id: Option<&str>, algorithm: &str) -> Result<&Key, TokenError> {
        let has_id = |key: &&Key| id.is_none() || key.id.as_deref() == id;
        let mut named = self.0.iter().filter(has_id).peekable();
        if named.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        let mut fitting = named.filter(|key| key.accepts(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(TokenError::Invalid(format!("its algorithm {algorithm:?} is not one of its key"))),
            _ => Err("it does not say with which key it is signed".into()),
        }
    }
}

impl Key {
    fn parse(key: JsonKey) -> Option<Self> {
        if key.usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let bytes = |value: Option<String>| URL_SAFE_NO_PAD.decode(value?).ok();
        // The library expects numbers without leading zeros.
        let number = |value| bytes(value).map(|bytes| bytes.into_iter().skip_while(|byte| *byte == 0).collect());
        let point = |curve, x, y| Some(PublicKey::Point(curve, [vec![4], bytes(x)?, bytes(y)?].concat()));
        let public = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa(RsaPublicKeyComponents { n: number(key.n)?, e: number(key.e)? }),
            ("EC", Some("P-256")) => point(Curve::P256, key.x, key.y)?,
            ("EC", Some("P-384")) => point(Curve::P384, key.x, key.y)?,
            ("OKP", Some("Ed25519")) => PublicKey::Point(Curve::Ed25519, bytes(key.x)?),
            _ => return None,
        };
        Some(Self { id: key.kid, algorithm: key.alg, public })
    }

    fn accepts(&self, algorithm: &str) -> bool {
        let has_kind = match (&self.public, find_algorithm(algorithm)) {
            (PublicKey::Rsa(_), Some(Algorithm::Rsa(_))) => true,
            (PublicKey::Point(curve, _), Some(Algorithm::Point(expected, _))) => *curve == expected,
            _ => false,
        };
        has_kind && self.algorithm.as_deref().is_none_or(|only| only == algorithm)
    }

    fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (&self.public, find_algorithm(algorithm)) {
            (PublicKey::Rsa(key), Some(Algorithm::Rsa(rsa))) => key.verify(rsa, message, signature).is_ok(),
            (PublicKey::Point(_, point), Some(Algorithm::Point(_, verification))) => {
                UnparsedPublicKey::new(verification, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

/// Returns an algorithm by its name (RFC 7518 section 3.1, RFC 8037, RFC 9864). RSA keys must have at least 2048 bits.
fn find_algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Algorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Algorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Algorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        "PS384" => Algorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        "PS512" => Algorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        "ES256" => Algorithm::Point(Curve::P256, &signature::ECDSA_P256_SHA256_FIXED),
        "ES384" => Algorithm::Point(Curve::P384, &signature::ECDSA_P384_SHA384_FIXED),
        "EdDSA" | "Ed25519" => Algorithm::Point(Curve::Ed25519, &signature::ED25519),
        _ => return None,
    })
}

/// Returns true if a text has the form of a signed token.
pub(crate) fn has_form_of_token(text: &str) -> bool {
    let header = split(text).filter(|_| text.len() <= MAX_TOKEN_BYTES).map(|(_, (header, _), _)| header);
    header.and_then(decode_json::<TokenHeader>).is_some()
}

/// Splits a token into the signed part, the header and the claims in it, and the signature.
fn split(token: &str) -> Option<(&str, (&str, &str), &str)> {
    let (signed, signature) = token.rsplit_once('.')?;
    Some((signed, signed.split_once('.')?, signature))
}

/// Verifies the signature and the claims of a token, and returns the claims.
pub(crate) fn verify(token: &str, keys: &Keys, expected: &Expected<'_>) -> Result<Claims, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::Invalid(format!("it has more than {MAX_TOKEN_BYTES} bytes")));
    }
    let (signed, (header, payload), signature) = split(token).ok_or("it is not a signed token")?;
    let header: TokenHeader = decode_json(header).ok_or("its header cannot be parsed")?;
    if header.crit.is_some() {
        return Err("it has critical header parameters, which are not supported".into());
    }
    let is_bearer_type = |name: &String| BEARER_TYPES.contains(&name.to_ascii_lowercase().as_str());
    if expected.nonce.is_none() && !header.typ.as_ref().is_none_or(is_bearer_type) {
        return Err("its type (typ) is not that of an access token or ID token".into());
    }
    let key = keys.find(header.kid.as_deref(), &header.alg)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    if !key.verify(&header.alg, signed.as_bytes(), &signature) {
        // Without an id, it may be signed with a new key.
        let is_certain = header.kid.is_some();
        return Err(if is_certain { "its signature is wrong".into() } else { TokenError::UnknownKey });
    }
    let claims: Claims = decode_json(payload).ok_or("its claims cannot be parsed")?;
    check_claims(&claims, expected).map(|()| claims)
}

fn check_claims(claims: &Claims, expected: &Expected<'_>) -> Result<(), TokenError> {
    let text = |name| claims.get(name).and_then(Value::as_str);
    let seconds = |name| claims.get(name).and_then(Value::as_f64);
    let client_id = expected.client_id;
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::Array(values)) => values.iter().map(Value::as_str).collect::<Option<_>>().unwrap_or_default(),
        value => value.and_then(Value::as_str).into_iter().collect(),
    };
    if text("iss") != Some(expected.issuer) {
        return Err(format!("its issuer (iss) is not {}", expected.issuer).into());
    }
    if !audience.contains(&client_id) {
        return Err(format!("its audience (aud) does not contain {client_id}").into());
    }
    // With several audiences it must name the client that it was issued to. An access token is issued to any client.
    let is_party = text("azp") == Some(client_id) || claims.get("azp").is_none() && audience.len() == 1;
    if expected.nonce.is_some() && !is_party {
        return Err(format!("its authorized party (azp) is not {client_id}").into());
    }
    let (earliest, latest) = (unix_time(expected.now) - LEEWAY_SECONDS, unix_time(expected.now) + LEEWAY_SECONDS);
    if !seconds("exp").is_some_and(|expires| expires > earliest) {
        return Err(TokenError::Expired);
    }
    let is_issued = seconds("iat").is_some_and(|issued| issued <= latest);
    let is_valid_yet = claims.get("nbf").is_none() || seconds("nbf").is_some_and(|first| first <= latest);
    if !is_issued || !is_valid_yet {
        return Err("it is not valid yet (iat, nbf), or the clocks of the provider and of this server differ".into());
    }
    if expected.nonce.is_some_and(|nonce| text("nonce") != Some(nonce)) {
        return Err("it was issued for another login (nonce)".into());
    }
    let is_subject = |subject: &str| (1..=MAX_SUBJECT_BYTES).contains(&subject.len()) && !has_control(subject);
    if !text("sub").is_some_and(is_subject) {
        return Err("its subject (sub) is missing or invalid".into());
    }
    Ok(())
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
fn unix_time(time: Timestamp) -> f64 {
    time.as_second() as f64
}

fn decode_json<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
