//! Session cookies of the web interface. A cookie contains the identity and the expiry time and is signed, so the
//! server stores no sessions. It also contains a fingerprint of the credentials: changing a password or revoking a
//! token ends the sessions that were created with it.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::naming::Project;
use ring::error::Unspecified;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

/// The sizes of a signature, a nonce and a fingerprint in bytes.
const MAC_BYTES: usize = 32;
const NONCE_BYTES: usize = 16;
pub(crate) const FINGERPRINT_BYTES: usize = 16;
/// The maximum length of a cookie in bytes.
const MAX_COOKIE_BYTES: usize = 1024;
/// The maximum number of nonces of ended sessions that are stored per identity.
const MAX_ENDED_PER_IDENTITY: usize = 256;
/// The maximum number in total.
const MAX_ENDED_TOTAL: usize = 65_536;
/// The purpose of the signature of a cookie.
const COOKIE_PURPOSE: &[u8] = b"restante session 1\0";

/// Creates and verifies session cookies.
pub(crate) struct Sessions {
    /// The secret of the signatures. The key is made from it for each signature: at a start, that would load code that is
    /// not needed without logins.
    secret: Vec<u8>,
    /// The lifetime of a session.
    pub(crate) lifetime: Duration,
    ended: Mutex<HashMap<Identity, EndedSessions>>,
    /// Notified at every logout.
    logouts: watch::Sender<()>,
}

/// The sessions of one identity that were ended before they expired.
#[derive(Default)]
struct EndedSessions {
    /// The expiry times and nonces of the sessions.
    nonces: Vec<(i64, [u8; NONCE_BYTES])>,
    /// All sessions that expire at this time or earlier have ended. Above the limit the nonces of old sessions are replaced by
    /// this time. Other sessions may then end too, but many logouts can never make an ended session valid again.
    all_until: i64,
}

/// The content of a valid cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The user, token or account.
    pub(crate) identity: Identity,
    /// The fingerprint of the credentials of the login.
    pub(crate) fingerprint: [u8; FINGERPRINT_BYTES],
    nonce: [u8; NONCE_BYTES],
    expires_at: i64,
}

/// Who has logged in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// The name of a user.
    User(String),
    /// The digest of a token.
    Token([u8; 32]),
    /// The name of an account of the identity provider, or of an authenticating proxy.
    Account(String),
    /// A leased run.
    Run(Project),
}

impl Sessions {
    pub(crate) fn new(secret: Vec<u8>, lifetime: Duration) -> Self {
        Self { secret, lifetime, ended: Mutex::default(), logouts: watch::Sender::default() }
    }

    /// Returns the fingerprint of credentials.
    pub(crate) fn fingerprint(&self, credentials: &[u8]) -> [u8; FINGERPRINT_BYTES] {
        let tag = self.sign(b"restante fingerprint\0", credentials);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&tag.as_ref()[..FINGERPRINT_BYTES]);
        fingerprint
    }

    /// Returns a number for a name that cannot be computed without the key.
    pub(crate) fn keyed_number(&self, name: &str) -> u64 {
        let tag = self.sign(b"restante number\0", name.as_bytes());
        tag.as_ref().iter().take(size_of::<u64>()).fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// Creates a cookie. Fails if the random source fails.
    pub(crate) fn create_cookie(
        &self,
        identity: &Identity,
        fingerprint: &[u8],
        now: Timestamp,
    ) -> Result<String, Unspecified> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut nonce)?;
        let lifetime = i64::try_from(self.lifetime.as_secs()).unwrap_or(i64::MAX);
        let until = now.as_second().saturating_add(lifetime);
        let (kind, name) = match identity {
            Identity::User(name) => (b'u', name.as_bytes()),
            Identity::Token(digest) => (b't', &digest[..]),
            Identity::Account(name) => (b'a', name.as_bytes()),
            Identity::Run(project) => (b'r', project.as_str().as_bytes()),
        };
        let content = [&[kind], &until.to_be_bytes()[..], &nonce, fingerprint, name].concat();
        Ok(self.seal(COOKIE_PURPOSE, &content))
    }

    /// Parses a cookie. Returns `None` if the signature is wrong. The second value is true if the session is still
    /// valid.
    pub(crate) fn parse_cookie(&self, cookie: &str, now: Timestamp) -> Option<(Session, bool)> {
        let content = self.open(COOKIE_PURPOSE, cookie, MAX_COOKIE_BYTES)?;
        let session = Session::parse(&content)?;
        let is_valid = self.is_valid(&session, now);
        Some((session, is_valid))
    }

    /// Returns true if a session has not expired and was not ended by a logout.
    pub(crate) fn is_valid(&self, session: &Session, now: Timestamp) -> bool {
        session.expires_at > now.as_second() && !self.has_ended(session)
    }

    /// Waits until a session is ended by a logout in this process.
    pub(crate) async fn wait_for_logout(&self, session: &Session) {
        let mut logouts = self.logouts.subscribe();
        // The sender lives as long as `self`, so waiting for a change does not fail.
        while !self.has_ended(session) && logouts.changed().await.is_ok() {}
    }

    /// Ends a session before it expires.
    pub(crate) fn end(&self, session: Session, now: Timestamp) {
        let now = now.as_second();
        let mut ended_by_identity = self.ended.lock();
        if session.expires_at <= now
            || ended_by_identity.get(&session.identity).is_some_and(|ended| ended.contains(&session))
        {
            return;
        }
        let mut total: usize = ended_by_identity.values().map(|ended| ended.nonces.len()).sum();
        if total >= MAX_ENDED_TOTAL {
            ended_by_identity.retain(|_, ended| !ended.prune(now));
            total = ended_by_identity.values().map(|ended| ended.nonces.len()).sum();
        }
        let ended = ended_by_identity.entry(session.identity).or_default();
        ended.nonces.retain(|(until, _)| *until > now);
        ended.nonces.push((session.expires_at, session.nonce));
        if ended.nonces.len() > MAX_ENDED_PER_IDENTITY || total >= MAX_ENDED_TOTAL {
            ended.coarsen();
        }
        drop(ended_by_identity);
        self.logouts.send_replace(());
    }

    fn has_ended(&self, session: &Session) -> bool {
        let ended_by_identity = self.ended.lock();
        ended_by_identity.get(&session.identity).is_some_and(|ended| ended.contains(session))
    }

    /// Returns a cookie with this content and its signature.
    pub(crate) fn seal(&self, purpose: &[u8], content: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([self.sign(purpose, content).as_ref(), content].concat())
    }

    /// Returns the content of a cookie that [`Self::seal`] created. Returns `None` if its signature is wrong, or if it has
    /// more than `max_bytes`.
    pub(crate) fn open(&self, purpose: &[u8], cookie: &str, max_bytes: usize) -> Option<Vec<u8>> {
        if cookie.len() > max_bytes {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (mac, content) = bytes.split_at_checked(MAC_BYTES)?;
        let is_authentic = self.sign(purpose, content).as_ref().ct_eq(mac);
        bool::from(is_authentic).then(|| content.to_vec())
    }

    pub(crate) fn sign(&self, purpose: &[u8], content: &[u8]) -> hmac::Tag {
        sign(&self.secret, purpose, content)
    }
}

/// Signs content. `purpose` precedes it, so that a signature cannot be used for anything else.
pub(crate) fn sign(secret: &[u8], purpose: &[u8], content: &[u8]) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut signer = hmac::Context::with_key(&key);
    signer.update(purpose);
    signer.update(content);
    signer.sign()
}

impl EndedSessions {
    fn contains(&self, session: &Session) -> bool {
        session.expires_at <= self.all_until || self.nonces.iter().any(|(_, nonce)| *nonce == session.nonce)
    }

    /// Removes expired nonces. Returns true if nothing is left.
    fn prune(&mut self, now: i64) -> bool {
        self.nonces.retain(|(until, _)| *until > now);
        self.nonces.is_empty() && self.all_until <= now
    }

    /// Replaces the nonce of the oldest session by its time.
    fn coarsen(&mut self) {
        let oldest = self.nonces.iter().map(|(until, _)| *until).min();
        self.all_until = self.all_until.max(oldest.unwrap_or_default());
        self.nonces.retain(|(until, _)| *until > self.all_until);
    }
}

impl Session {
    /// Returns the time until the session expires.
    pub(crate) fn time_left(&self, now: Timestamp) -> Duration {
        let millis = self.expires_at.saturating_mul(1000).saturating_sub(now.as_millisecond());
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let (kind, rest) = content.split_first()?;
        let (until, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (fingerprint, name) = rest.split_first_chunk()?;
        let identity = match kind {
            b'u' => Identity::User(str::from_utf8(name).ok()?.to_owned()),
            b't' => Identity::Token(name.try_into().ok()?),
            b'a' => Identity::Account(str::from_utf8(name).ok()?.to_owned()),
            b'r' => Identity::Run(str::from_utf8(name).ok()?.parse().ok()?),
            _ => return None,
        };
        Some(Self { identity, fingerprint: *fingerprint, nonce: *nonce, expires_at: i64::from_be_bytes(*until) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn sessions(secret: u8) -> Sessions {
        Sessions::new(vec![secret; 32], HOUR)
    }

    #[test]
    fn cookie_is_valid_until_expiry_or_logout() {
        let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
        let ann = || "ann".to_owned();
        for identity in [Identity::User(ann()), Identity::Token([7; 32]), Identity::Account(ann())] {
            let fingerprint = sessions.fingerprint(b"hash");
            let cookie = sessions.create_cookie(&identity, &fingerprint, now).unwrap();
            assert!(cookie.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cookie}");
            let (session, is_valid) = sessions.parse_cookie(&cookie, now).unwrap();
            assert_eq!((&session.identity, session.fingerprint, is_valid), (&identity, fingerprint, true));
            assert!(!sessions.parse_cookie(&cookie, now + HOUR).unwrap().1);
            assert_eq!(self::sessions(2).parse_cookie(&cookie, now), None);
            sessions.end(session, now);
            assert!(!sessions.parse_cookie(&cookie, now).unwrap().1);
            assert_ne!(sessions.create_cookie(&identity, &fingerprint, now).unwrap(), cookie);
        }
        assert_ne!(sessions.fingerprint(b"hash"), sessions.fingerprint(b"another"));
    }

    #[test]
    fn many_logouts_do_not_undo_an_earlier_one() {
        let (sessions, start) = (sessions(1), Timestamp::UNIX_EPOCH);
        let (ann, bob) = (Identity::User("ann".to_owned()), Identity::User("bob".to_owned()));
        let log_in = |identity: &Identity, now| sessions.create_cookie(identity, &[0; FINGERPRINT_BYTES], now).unwrap();
        let log_out = |cookie: &str, now| sessions.end(sessions.parse_cookie(cookie, now).unwrap().0, now);
        let is_valid = |cookie: &str, now| sessions.parse_cookie(cookie, now).unwrap().1;
        let (cookie_of_ann, cookie_of_bob) = (log_in(&ann, start), log_in(&bob, start));
        log_out(&cookie_of_ann, start);
        let mut now = start;
        for _ in 0..2 * MAX_ENDED_PER_IDENTITY {
            now += Duration::from_secs(1);
            let another = log_in(&ann, now);
            assert!(is_valid(&another, now));
            log_out(&another, now);
            assert!(!is_valid(&another, now));
        }
        assert!(!is_valid(&cookie_of_ann, now) && is_valid(&cookie_of_bob, now) && is_valid(&log_in(&ann, now), now));
        assert!(sessions.ended.lock()[&ann].nonces.len() <= MAX_ENDED_PER_IDENTITY);
        log_out(&cookie_of_bob, start + HOUR);
        assert!(!sessions.ended.lock().contains_key(&bob), "it has already expired");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_the_logout_of_its_session() {
        let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
        let log_in = || {
            let cookie =
                sessions.create_cookie(&Identity::User("ann".to_owned()), &[0; FINGERPRINT_BYTES], now).unwrap();
            sessions.parse_cookie(&cookie, now).unwrap().0
        };
        let (first, second) = (log_in(), log_in());
        assert_eq!((first.time_left(now), first.time_left(now + 2 * HOUR)), (HOUR, Duration::ZERO));
        let first_logout = sessions.wait_for_logout(&first);
        let second_logout = tokio::time::timeout(HOUR, sessions.wait_for_logout(&second));
        let log_out = async { sessions.end(first.clone(), now) };
        let ((), still_lasts, ()) = tokio::join!(first_logout, second_logout, log_out);
        assert!(still_lasts.is_err());
        // It also returns if the logout was before.
        sessions.wait_for_logout(&first).await;
    }

    proptest! {
        #[test]
        fn rejects_forged_cookies(text in ".{0,200}", position in 0_usize..100, letter in "[A-Za-z0-9_-]") {
            let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
            prop_assert_eq!(sessions.parse_cookie(&text, now), None);
            let cookie = sessions.create_cookie(&Identity::User("ann".to_owned()), &[0; FINGERPRINT_BYTES], now).unwrap();
            let position = position % cookie.len();
            let mut forged = cookie.clone();
            forged.replace_range(position..=position, &letter);
            prop_assume!(forged != cookie);
            prop_assert_eq!(sessions.parse_cookie(&forged, now), None);
        }
    }
}
