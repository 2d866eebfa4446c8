//! Tests of ID tokens, of bearer tokens, and of wrong providers.

mod bearer_tokens;
mod id_tokens;
mod providers;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

/// The private keys of a provider: one of each kind.
struct PrivateKeys {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

static KEYS: LazyLock<PrivateKeys> = LazyLock::new(PrivateKeys::generate);

impl PrivateKeys {
    /// Generates keys, except for the RSA key, which the library cannot generate.
    fn generate() -> Self {
        let random = SystemRandom::new();
        let ecdsa = |algorithm: &'static EcdsaSigningAlgorithm| {
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
        };
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            rsa: RsaKeyPair::from_der(include_bytes!("rsa-2048.der")).unwrap(),
            p256: ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
        }
    }

    /// Returns the public keys as a provider lists them. Their ids are the names of the kinds.
    fn list(&self) -> Vec<Value> {
        let rsa: PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let point = |kind: &str, curve: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({"kty": "EC", "crv": curve, "kid": kind, "x": encode(x), "y": encode(y)})
        };
        vec![
            // Some providers write numbers with a leading zero.
            json!({"kty": "RSA", "kid": "rsa", "use": "sig", "n": encode(&[&[0], &rsa.n[..]].concat()), "e": encode(&rsa.e)}),
            point("p256", "P-256", self.p256.public_key().as_ref()),
            point("p384", "P-384", self.p384.public_key().as_ref()),
            json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed25519", "x": encode(self.ed25519.public_key().as_ref())}),
        ]
    }

    /// Returns a token with this header and these claims, signed with the key of this kind and with the algorithm of the header.
    fn sign(&self, kind: &str, header: &Value, claims: &Value) -> String {
        let random = SystemRandom::new();
        let message = format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let bytes = message.as_bytes();
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(encoding, &random, bytes, &mut signature).unwrap();
            signature
        };
        let signature = match (kind, header["alg"].as_str().unwrap_or_default()) {
            ("rsa", "RS384") => rsa(&signature::RSA_PKCS1_SHA384),
            ("rsa", "RS512") => rsa(&signature::RSA_PKCS1_SHA512),
            ("rsa", "PS256") => rsa(&signature::RSA_PSS_SHA256),
            ("rsa", "PS384") => rsa(&signature::RSA_PSS_SHA384),
            ("rsa", "PS512") => rsa(&signature::RSA_PSS_SHA512),
            ("rsa", _) => rsa(&signature::RSA_PKCS1_SHA256),
            ("p256", _) => self.p256.sign(&random, bytes).unwrap().as_ref().to_vec(),
            ("p384", _) => self.p384.sign(&random, bytes).unwrap().as_ref().to_vec(),
            _ => self.ed25519.sign(bytes).as_ref().to_vec(),
        };
        format!("{message}.{}", encode(&signature))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
