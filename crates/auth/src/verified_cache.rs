//! Who was let in a moment ago: a password that was right is not hashed again at every request. What is remembered is a keyed
//! hash under a key that nobody has outside this process, and for the same client only, so that it is no quick way for others
//! to try passwords.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use tokio::time::Instant;

use crate::client::Client;

/// How long.
const TTL: Duration = Duration::from_mins(5);
/// How many.
const MAX_ENTRIES: usize = 4096;
/// After so many wrong passwords it is forgotten: each of them was tried in no time.
const MAX_MISSES: u32 = 16;

/// What was right.
pub(crate) struct VerifiedCache {
    key: hmac::Key,
    entries: Mutex<Entries>,
}

type Entries = HashMap<(Client, Arc<str>), Entry>;

struct Entry {
    proof: hmac::Tag,
    expires_at: Instant,
    misses: u32,
}

impl VerifiedCache {
    pub(crate) fn new(key: hmac::Key) -> Self {
        Self { key, entries: Mutex::default() }
    }

    /// Whether this client's user had this password a moment ago, with the hash that it has now.
    pub(crate) fn contains(&self, client: Client, user: &Arc<str>, hash: &str, password: &str) -> bool {
        let proof = self.proof(user, hash, password);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (client, user.clone());
        let Some(entry) = entries.get_mut(&place) else { return false };
        let now = Instant::now();
        if entry.expires_at > now && verify_slices_are_equal(entry.proof.as_ref(), proof.as_ref()).is_ok() {
            entry.expires_at = now + TTL;
            return true;
        }
        count_miss(&mut entries, &place);
        false
    }

    /// Counts a wrong login that [`Memory::knows`] let pass to the comparison.
    pub(crate) fn record_miss(&self, client: Client, user: &Arc<str>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        count_miss(&mut entries, &(client, user.clone()));
    }

    /// Remembers that it was right.
    pub(crate) fn insert(&self, client: Client, user: &Arc<str>, hash: &str, password: &str) {
        let (proof, now) = (self.proof(user, hash, password), Instant::now());
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| entry.expires_at > now);
            // It costs those who are forgotten one more hash.
            if entries.len() >= MAX_ENTRIES {
                entries.clear();
            }
        }
        entries.insert((client, user.clone()), Entry { proof, expires_at: now + TTL, misses: 0 });
    }

    /// The parts have their lengths before them, so that no two of them can be moved into each other.
    fn proof(&self, user: &str, hash: &str, password: &str) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [user, hash, password] {
            context.update(&part.len().to_be_bytes());
            context.update(part.as_bytes());
        }
        context.sign()
    }
}

/// Counts a wrong login. After too many of them, the entry is removed.
fn count_miss(entries: &mut Entries, place: &(Client, Arc<str>)) {
    if let Some(entry) = entries.get_mut(place) {
        entry.misses += 1;
        if entry.misses >= MAX_MISSES {
            entries.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered() {
        let memory = VerifiedCache::new(hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]));
        let (here, there) = (Client::from(None), Client::from(Some([192, 0, 2, 1].into())));
        let user: Arc<str> = "ann".into();
        assert!(!memory.contains(here, &user, "hash", "secret"));
        memory.insert(here, &user, "hash", "secret");
        assert!(memory.contains(here, &user, "hash", "secret"));
        assert!(!memory.contains(there, &user, "hash", "secret"));
        assert!(!memory.contains(here, &user, "another", "secret"));
        assert!(!memory.contains(here, &user, "hash", "Secret"));
        assert!(memory.contains(here, &user, "hash", "secret"));
        tokio::time::advance(TTL).await;
        assert!(!memory.contains(here, &user, "hash", "secret"));
    }

    #[test]
    fn nobody_tries_many_passwords_against_it() {
        let memory = VerifiedCache::new(hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]));
        let (here, user): (_, Arc<str>) = (Client::from(None), "ann".into());
        memory.insert(here, &user, "hash", "secret");
        for number in 0..MAX_MISSES {
            assert!(!memory.contains(here, &user, "hash", &number.to_string()));
        }
        assert!(!memory.contains(here, &user, "hash", "secret"));
    }

    #[test]
    fn it_has_an_end() {
        let memory = VerifiedCache::new(hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]));
        for number in 0..MAX_ENTRIES + 10 {
            memory.insert(Client::from(None), &number.to_string().into(), "hash", "secret");
        }
        assert!(memory.entries.lock().unwrap().len() <= MAX_ENTRIES);
    }
}
