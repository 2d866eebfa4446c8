//! The signing key and the signature of requests: Standard Webhooks, version 1.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ring::hmac;

/// The prefix of a key in base64.
const BASE64_PREFIX: &str = "whsec_";
/// The minimum length. Shorter keys can be guessed.
const MIN_KEY_BYTES: usize = 16;
/// Accepts missing padding, which is easily lost when a key is copied by hand.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A signing key. Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// Parses a key from the settings: `whsec_` followed by base64, or any other text, whose bytes are the key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = match text.strip_prefix(BASE64_PREFIX) {
            Some(encoded) => {
                LENIENT_BASE64.decode(encoded).map_err(|_| format!("{BASE64_PREFIX} must be followed by base64"))?
            }
            None => text.as_bytes().to_vec(),
        };
        if bytes.len() < MIN_KEY_BYTES {
            return Err(format!(
                "must be a key of at least {MIN_KEY_BYTES} bytes, or {BASE64_PREFIX} and the base64 of one"
            ));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Returns the value of the signature header field.
    pub(crate) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_standard_webhooks_scheme() {
        let table = [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                r#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                "a plain text as a key",
                "stored-1-00",
                0,
                r#"{"event":"é"}"#,
                "v1,Mc6lPovZcbWPf7MmB3E22lbghd/gImzflBhJdi9KRSM=",
            ),
        ];
        for (key, id, timestamp, body, signature) in table {
            assert_eq!(Key::parse(key).unwrap().sign(id, timestamp, body.as_bytes()), signature, "{key}");
        }
    }

    #[test]
    fn rejects_short_and_malformed_keys() {
        for (text, is_valid) in [
            ("0123456789abcdef", true),
            ("0123456789abcde", false),
            ("", false),
            ("whsec_MDEyMzQ1Njc4OWFiY2RlZg==", true),
            ("whsec_MDEyMzQ1Njc4OWFiY2RlZg", true),
            ("whsec_MDEyMzQ1Njc4OWFiY2Rl", false),
            ("whsec_not base64, but long enough", false),
        ] {
            let parsed = Key::parse(text);
            assert_eq!(parsed.is_ok(), is_valid, "{text}");
            assert!(!format!("{parsed:?}").contains("0123"), "{text}");
        }
    }
}
