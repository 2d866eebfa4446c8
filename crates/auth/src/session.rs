//! The cookie of somebody who has logged in by a page. It says who that is and until when, and is signed, so that nothing has
//! to be remembered of it here. With it goes a fingerprint of what the login was made with: who changes a password or
//! revokes a token ends the logins made with it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use tokio::sync::watch;

/// The bytes of a signature, a nonce and a fingerprint.
const MAC_BYTES: usize = 32;
const NONCE_BYTES: usize = 16;
const FINGERPRINT_BYTES: usize = 16;
/// The longest cookie that is looked at.
const MAX_COOKIE_BYTES: usize = 1024;
/// How many logins of one holder are remembered that were ended before their time; their nonces, to be exact.
const MAX_ENDED_PER_IDENTITY: usize = 256;
/// How many of all holders.
const MAX_ENDED_TOTAL: usize = 65_536;
/// What the signature is about, beside the content: the same key signs nothing else by the same words.
const SIGNATURE_CONTEXT: &[u8] = b"restante session 1\0";

/// Makes cookies and reads them.
pub(crate) struct Sessions {
    key: hmac::Key,
    lifetime: Duration,
    ended: Mutex<HashMap<Identity, EndedSessions>>,
    /// Changes with every logout.
    logouts: watch::Sender<()>,
}

/// The logins of one holder that were ended before their time.
#[derive(Default)]
struct EndedSessions {
    /// Until when they are good, and their nonces.
    nonces: Vec<(i64, [u8; NONCE_BYTES])>,
    /// Every login that is good until then and no longer has ended: nothing finer is remembered of those. So that nobody
    /// undoes a logout by many others, others may end with it.
    all_until: i64,
}

/// What a cookie that is ours says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// Whose it is.
    pub(crate) identity: Identity,
    /// Of what the login was made with.
    pub(crate) fingerprint: [u8; FINGERPRINT_BYTES],
    nonce: [u8; NONCE_BYTES],
    expires_at: i64,
}

/// Who can log in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A user, by name.
    User(String),
    /// A token, by what is kept of it.
    Token([u8; 32]),
}

impl Sessions {
    pub(crate) fn new(key: hmac::Key, lifetime: Duration) -> Self {
        Self { key, lifetime, ended: Mutex::default(), logouts: watch::Sender::default() }
    }

    /// How long a login lasts.
    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// A fingerprint of what somebody logged in with.
    pub(crate) fn fingerprint(&self, of: &[u8]) -> [u8; FINGERPRINT_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"restante fingerprint\0");
        context.update(of);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&context.sign().as_ref()[..FINGERPRINT_BYTES]);
        fingerprint
    }

    /// A number that belongs to a name, and that nobody without the key can work out.
    pub(crate) fn keyed_number(&self, name: &str) -> u64 {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"restante number\0");
        context.update(name.as_bytes());
        context.sign().as_ref().iter().take(size_of::<u64>()).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// A new cookie.
    pub(crate) fn create_cookie(
        &self,
        holder: &Identity,
        fingerprint: &[u8],
        now: Timestamp,
    ) -> Result<String, Unspecified> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce)?;
        let lifetime = i64::try_from(self.lifetime.as_secs()).unwrap_or(i64::MAX);
        let until = now.as_second().saturating_add(lifetime);
        let (kind, name) = match holder {
            Identity::User(name) => (b'u', name.as_bytes()),
            Identity::Token(digest) => (b't', &digest[..]),
        };
        let content = [&[kind], &until.to_be_bytes()[..], &nonce, fingerprint, name].concat();
        Ok(URL_SAFE_NO_PAD.encode([self.sign(&content).as_ref(), &content].concat()))
    }

    /// What a cookie says, when it is ours and was not ended. Whether it is still good is the second value.
    pub(crate) fn parse_cookie(&self, cookie: &str, now: Timestamp) -> Option<(Session, bool)> {
        if cookie.len() > MAX_COOKIE_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (mac, content) = bytes.split_at_checked(MAC_BYTES)?;
        verify_slices_are_equal(self.sign(content).as_ref(), mac).ok()?;
        let session = Session::parse(content)?;
        let is_good = self.is_valid(&session, now);
        Some((session, is_good))
    }

    /// Whether a login still lasts: its time is not over, and it was not ended by a logout.
    pub(crate) fn is_valid(&self, session: &Session, now: Timestamp) -> bool {
        session.expires_at > now.as_second() && !self.has_ended(session)
    }

    /// Waits until a login is ended by a logout in this process.
    pub(crate) async fn wait_for_logout(&self, session: &Session) {
        let mut logouts = self.logouts.subscribe();
        // The sender lives as long as this value, so waiting for a change does not fail.
        while !self.has_ended(session) && logouts.changed().await.is_ok() {}
    }

    /// Ends a login before its time.
    pub(crate) fn end(&self, session: Session, now: Timestamp) {
        let now = now.as_second();
        let mut all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if session.expires_at <= now || all.get(&session.identity).is_some_and(|ended| ended.contains(&session)) {
            return;
        }
        let mut sum: usize = all.values().map(|ended| ended.nonces.len()).sum();
        if sum >= MAX_ENDED_TOTAL {
            all.retain(|_, ended| !ended.prune(now));
            sum = all.values().map(|ended| ended.nonces.len()).sum();
        }
        let ended = all.entry(session.identity).or_default();
        ended.nonces.retain(|(until, _)| *until > now);
        ended.nonces.push((session.expires_at, session.nonce));
        if ended.nonces.len() > MAX_ENDED_PER_IDENTITY || sum >= MAX_ENDED_TOTAL {
            ended.coarsen();
        }
        drop(all);
        self.logouts.send_replace(());
    }

    fn has_ended(&self, session: &Session) -> bool {
        let all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&session.identity).is_some_and(|ended| ended.contains(session))
    }

    fn sign(&self, content: &[u8]) -> hmac::Tag {
        let mut signing = hmac::Context::with_key(&self.key);
        signing.update(SIGNATURE_CONTEXT);
        signing.update(content);
        signing.sign()
    }
}

impl EndedSessions {
    fn contains(&self, session: &Session) -> bool {
        session.expires_at <= self.all_until || self.nonces.iter().any(|(_, nonce)| *nonce == session.nonce)
    }

    /// Forgets what has no meaning any more; whether that is everything.
    fn prune(&mut self, now: i64) -> bool {
        self.nonces.retain(|(until, _)| *until > now);
        self.nonces.is_empty() && self.all_until <= now
    }

    /// Makes room: the oldest login is remembered by its time alone.
    fn coarsen(&mut self) {
        let oldest = self.nonces.iter().map(|(until, _)| *until).min();
        self.all_until = self.all_until.max(oldest.unwrap_or_default());
        self.nonces.retain(|(until, _)| *until > self.all_until);
    }
}

impl Session {
    /// How long the login lasts from now on if it is not ended before.
    pub(crate) fn time_left(&self, now: Timestamp) -> Duration {
        let millis = self.expires_at.saturating_mul(1000).saturating_sub(now.as_millisecond());
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let (kind, rest) = content.split_first()?;
        let (until, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (fingerprint, name) = rest.split_first_chunk()?;
        let holder = match kind {
            b'u' => Identity::User(str::from_utf8(name).ok()?.to_owned()),
            b't' => Identity::Token(name.try_into().ok()?),
            _ => return None,
        };
        Some(Self {
            identity: holder,
            fingerprint: *fingerprint,
            nonce: *nonce,
            expires_at: i64::from_be_bytes(*until),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn sessions(key: u8) -> Sessions {
        Sessions::new(hmac::Key::new(hmac::HMAC_SHA256, &[key; 32]), HOUR)
    }

    #[test]
    fn a_cookie_says_who_it_is_for_some_time() {
        let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
        for holder in [Identity::User("ann".to_owned()), Identity::Token([7; 32])] {
            let fingerprint = sessions.fingerprint(b"hash");
            let cookie = sessions.create_cookie(&holder, &fingerprint, now).unwrap();
            assert!(cookie.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cookie}");
            let (session, is_good) = sessions.parse_cookie(&cookie, now).unwrap();
            assert_eq!((&session.identity, session.fingerprint, is_good), (&holder, fingerprint, true));
            assert!(!sessions.parse_cookie(&cookie, now + HOUR).unwrap().1);
            assert_eq!(self::sessions(2).parse_cookie(&cookie, now), None);
            sessions.end(session, now);
            assert!(!sessions.parse_cookie(&cookie, now).unwrap().1);
            assert_ne!(sessions.create_cookie(&holder, &fingerprint, now).unwrap(), cookie);
        }
        assert_ne!(sessions.fingerprint(b"hash"), sessions.fingerprint(b"another"));
    }

    #[test]
    fn nobody_undoes_a_logout_by_many_others() {
        let (sessions, start) = (sessions(1), Timestamp::UNIX_EPOCH);
        let (ann, bob) = (Identity::User("ann".to_owned()), Identity::User("bob".to_owned()));
        let log_in = |holder: &Identity, now| sessions.create_cookie(holder, &[0; FINGERPRINT_BYTES], now).unwrap();
        let log_out = |cookie: &str, now| sessions.end(sessions.parse_cookie(cookie, now).unwrap().0, now);
        let is_good = |cookie: &str, now| sessions.parse_cookie(cookie, now).unwrap().1;
        let (of_ann, of_bob) = (log_in(&ann, start), log_in(&bob, start));
        log_out(&of_ann, start);
        let mut now = start;
        for _ in 0..2 * MAX_ENDED_PER_IDENTITY {
            now += Duration::from_secs(1);
            let another = log_in(&ann, now);
            assert!(is_good(&another, now));
            log_out(&another, now);
            assert!(!is_good(&another, now));
        }
        assert!(!is_good(&of_ann, now) && is_good(&of_bob, now) && is_good(&log_in(&ann, now), now));
        assert!(sessions.ended.lock().unwrap()[&ann].nonces.len() <= MAX_ENDED_PER_IDENTITY);
        log_out(&of_bob, start + HOUR);
        assert!(!sessions.ended.lock().unwrap().contains_key(&bob), "it was over already");
    }

    #[tokio::test(start_paused = true)]
    async fn a_logout_is_noticed_by_those_who_wait_for_it() {
        let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
        let log_in = || {
            let cookie =
                sessions.create_cookie(&Identity::User("ann".to_owned()), &[0; FINGERPRINT_BYTES], now).unwrap();
            sessions.parse_cookie(&cookie, now).unwrap().0
        };
        let (first, second) = (log_in(), log_in());
        assert_eq!((first.time_left(now), first.time_left(now + 2 * HOUR)), (HOUR, Duration::ZERO));
        let of_first = sessions.wait_for_logout(&first);
        let of_second = tokio::time::timeout(HOUR, sessions.wait_for_logout(&second));
        let log_out = async { sessions.end(first.clone(), now) };
        let ((), still_lasts, ()) = tokio::join!(of_first, of_second, log_out);
        assert!(still_lasts.is_err());
        // Also when it was before.
        sessions.wait_for_logout(&first).await;
    }

    proptest! {
        #[test]
        fn nothing_else_is_a_cookie(text in ".{0,200}", place in 0_usize..100, letter in "[A-Za-z0-9_-]") {
            let (sessions, now) = (sessions(1), Timestamp::UNIX_EPOCH);
            prop_assert_eq!(sessions.parse_cookie(&text, now), None);
            let cookie = sessions.create_cookie(&Identity::User("ann".to_owned()), &[0; FINGERPRINT_BYTES], now).unwrap();
            let place = place % cookie.len();
            let mut forged = cookie.clone();
            forged.replace_range(place..=place, &letter);
            prop_assume!(forged != cookie);
            prop_assert_eq!(sessions.parse_cookie(&forged, now), None);
        }
    }
}
