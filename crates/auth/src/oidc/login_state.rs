//! What a browser keeps in a cookie while its user logs in at the identity provider. The cookie is signed. The values that the
//! provider gets are derived from its random part, so the server stores nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::digest;
use ring::error::Unspecified;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::session::Sessions;

/// How long a login at the provider may take, in seconds.
pub(crate) const LIFETIME_SECONDS: u64 = 600;
/// The size of the random part in bytes.
const SEED_BYTES: usize = 32;
/// The maximum length of a cookie in bytes. Browsers accept 4096, with its name and attributes.
const MAX_COOKIE_BYTES: usize = 3800;
/// The purpose of the signature of a cookie.
const COOKIE_PURPOSE: &[u8] = b"restante login state 1\0";

/// A login at the provider that has started.
pub(crate) struct LoginState {
    seed: [u8; SEED_BYTES],
    /// The page to return to.
    pub(crate) next: String,
}

/// The values that a login at the provider depends on. Each is a text of 43 characters that cannot be guessed.
pub(crate) struct LoginValues {
    /// Returned with the authorization code. It shows that the response belongs to a login of this browser.
    pub(crate) state: String,
    /// A claim of the ID token. It shows that the token was issued for this login.
    pub(crate) nonce: String,
    /// Sent with the authorization code. It shows that the code was issued for this login (PKCE).
    pub(crate) verifier: String,
}

impl LoginState {
    /// Starts a login. Fails if the random source fails.
    pub(crate) fn new(next: &str) -> Result<Self, Unspecified> {
        let mut seed = [0; SEED_BYTES];
        SystemRandom::new().fill(&mut seed)?;
        Ok(Self { seed, next: next.to_owned() })
    }

    /// Returns the cookie. It has no more than 4096 bytes if the page to return to has a path of at most 2 KiB.
    pub(crate) fn to_cookie(&self, sessions: &Sessions, now: Timestamp) -> String {
        let until = now.as_second().saturating_add_unsigned(LIFETIME_SECONDS);
        let content = [&self.seed[..], &until.to_be_bytes(), self.next.as_bytes()].concat();
        sessions.seal(COOKIE_PURPOSE, &content)
    }

    /// Parses a cookie. Returns `None` if its signature is wrong, or if the login has taken too long.
    pub(crate) fn parse_cookie(sessions: &Sessions, cookie: &str, now: Timestamp) -> Option<Self> {
        let content = sessions.open(COOKIE_PURPOSE, cookie, MAX_COOKIE_BYTES)?;
        let (seed, rest) = content.split_first_chunk()?;
        let (until, next) = rest.split_first_chunk()?;
        let next = String::from_utf8(next.to_vec()).ok()?;
        (i64::from_be_bytes(*until) > now.as_second()).then_some(Self { seed: *seed, next })
    }

    /// Returns the values of this login.
    pub(crate) fn values(&self, sessions: &Sessions) -> LoginValues {
        let derive = |purpose: &[u8]| URL_SAFE_NO_PAD.encode(sessions.sign(purpose, &self.seed));
        LoginValues {
            state: derive(b"restante login value state\0"),
            nonce: derive(b"restante login value nonce\0"),
            verifier: derive(b"restante login value verifier\0"),
        }
    }
}

impl LoginValues {
    /// Returns the challenge of the verifier, with the method S256 (RFC 7636 section 4.2).
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.verifier.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn cookie_belongs_to_one_login_and_expires() {
        let sessions = |secret| Sessions::new(vec![secret; 32], Duration::from_hours(1));
        let (sessions, other_server, now) = (sessions(1), sessions(2), Timestamp::UNIX_EPOCH);
        let state = LoginState::new("m/ann?x=1").unwrap();
        let (cookie, values) = (state.to_cookie(&sessions, now), state.values(&sessions));
        let parsed = LoginState::parse_cookie(&sessions, &cookie, now).unwrap();
        let texts = |values: &LoginValues| [&values.state, &values.nonce, &values.verifier].map(Clone::clone);
        assert_eq!((parsed.next.as_str(), texts(&parsed.values(&sessions))), ("m/ann?x=1", texts(&values)));
        let [first, second, third] = texts(&values);
        assert!(first.len() == 43 && first != second && second != third && first != third);
        let other = LoginState::new("").unwrap();
        assert_ne!(other.values(&sessions).state, values.state);
        assert_ne!(state.values(&other_server).verifier, values.verifier);

        let late = now + Duration::from_secs(LIFETIME_SECONDS);
        assert!(LoginState::parse_cookie(&sessions, &cookie, late).is_none());
        assert!(LoginState::parse_cookie(&other_server, &cookie, now).is_none());
        for forged in ["", "AAAA", &cookie[1..], &format!("{cookie}AAAA"), &"A".repeat(MAX_COOKIE_BYTES + 1)] {
            assert!(LoginState::parse_cookie(&sessions, forged, now).is_none(), "{forged}");
        }
        let longest = LoginState::new(&"x".repeat(2048)).unwrap().to_cookie(&sessions, now);
        assert!(LoginState::parse_cookie(&sessions, &longest, now).is_some());
    }

    #[test]
    fn challenge_is_that_of_the_standard() {
        // RFC 7636 appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let values = LoginValues { state: String::new(), nonce: String::new(), verifier };
        assert_eq!(values.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
