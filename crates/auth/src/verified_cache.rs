//! A cache of recent successful logins, so that a password is not hashed again at every request. It stores a keyed hash
//! under a key that exists only in this process, and per client, so that it does not help others to guess passwords
//! quickly.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ring::hmac;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::client::Client;

/// How long an entry is valid.
const TTL: Duration = Duration::from_mins(5);
/// The size of the secret of the keyed hashes in bytes.
pub(crate) const SECRET_BYTES: usize = 32;
/// The maximum number of entries.
const MAX_ENTRIES: usize = 4096;
/// The number of wrong passwords after which an entry is removed: each of them was compared quickly.
const MAX_MISSES: u32 = 16;

/// The cache.
pub(crate) struct VerifiedCache {
    secret: [u8; SECRET_BYTES],
    entries: Mutex<Entries>,
}

type Entries = HashMap<(Client, Arc<str>), Entry>;

struct Entry {
    proof: hmac::Tag,
    expires_at: Instant,
    misses: u32,
}

impl VerifiedCache {
    pub(crate) fn new(secret: [u8; SECRET_BYTES]) -> Self {
        Self { secret, entries: Mutex::default() }
    }

    /// Returns true if this client recently logged in as this user with this password, and the user still has this
    /// hash.
    pub(crate) fn contains(&self, client: Client, user: &Arc<str>, hash: &str, password: &str) -> bool {
        let proof = self.proof(user, hash, password);
        let mut entries = self.entries.lock();
        let key = (client, user.clone());
        let Some(entry) = entries.get_mut(&key) else { return false };
        let now = Instant::now();
        if entry.expires_at > now && bool::from(entry.proof.as_ref().ct_eq(proof.as_ref())) {
            entry.expires_at = now + TTL;
            return true;
        }
        count_miss(&mut entries, &key);
        false
    }

    /// Counts a wrong login for which [`VerifiedCache::contains`] returned true, or would have.
    pub(crate) fn record_miss(&self, client: Client, user: &Arc<str>) {
        let mut entries = self.entries.lock();
        count_miss(&mut entries, &(client, user.clone()));
    }

    /// Adds a successful login.
    pub(crate) fn insert(&self, client: Client, user: &Arc<str>, hash: &str, password: &str) {
        let (proof, now) = (self.proof(user, hash, password), Instant::now());
        let mut entries = self.entries.lock();
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| entry.expires_at > now);
            // Removed logins cost one more password hash.
            if entries.len() >= MAX_ENTRIES {
                entries.clear();
            }
        }
        entries.insert((client, user.clone()), Entry { proof, expires_at: now + TTL, misses: 0 });
    }

    /// Each part is preceded by its length, so that different parts never give the same input.
    fn proof(&self, user: &str, hash: &str, password: &str) -> hmac::Tag {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let mut context = hmac::Context::with_key(&key);
        for part in [user, hash, password] {
            context.update(&part.len().to_be_bytes());
            context.update(part.as_bytes());
        }
        context.sign()
    }
}

/// Counts a wrong login, and removes the entry after too many of them.
fn count_miss(entries: &mut Entries, key: &(Client, Arc<str>)) {
    if let Some(entry) = entries.get_mut(key) {
        entry.misses += 1;
        if entry.misses >= MAX_MISSES {
            entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn contains_verified_password_until_it_expires() {
        let cache = VerifiedCache::new([7; SECRET_BYTES]);
        let (client, other) = (Client::from(None), Client::from(Some([192, 0, 2, 1].into())));
        let user: Arc<str> = "ann".into();
        assert!(!cache.contains(client, &user, "hash", "secret"));
        cache.insert(client, &user, "hash", "secret");
        assert!(cache.contains(client, &user, "hash", "secret"));
        assert!(!cache.contains(other, &user, "hash", "secret"));
        assert!(!cache.contains(client, &user, "another", "secret"));
        assert!(!cache.contains(client, &user, "hash", "Secret"));
        assert!(cache.contains(client, &user, "hash", "secret"));
        tokio::time::advance(TTL).await;
        assert!(!cache.contains(client, &user, "hash", "secret"));
    }

    #[test]
    fn entry_is_removed_after_too_many_misses() {
        let cache = VerifiedCache::new([7; SECRET_BYTES]);
        let (client, user): (_, Arc<str>) = (Client::from(None), "ann".into());
        cache.insert(client, &user, "hash", "secret");
        for number in 0..MAX_MISSES {
            assert!(!cache.contains(client, &user, "hash", &number.to_string()));
        }
        assert!(!cache.contains(client, &user, "hash", "secret"));
    }

    #[test]
    fn size_is_limited() {
        let cache = VerifiedCache::new([7; SECRET_BYTES]);
        for number in 0..MAX_ENTRIES + 10 {
            cache.insert(Client::from(None), &number.to_string().into(), "hash", "secret");
        }
        assert!(cache.entries.lock().len() <= MAX_ENTRIES);
    }
}
