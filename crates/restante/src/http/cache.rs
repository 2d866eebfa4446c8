//! A bounded memory of rendered answers.
//!
//! Two generations: what is asked for moves into the young one, and when that is full it becomes the old one, whose
//! unused rest is forgotten. This keeps what is in use at the cost of two hash lookups, and never holds more than its
//! bound. An entry carries the state it was rendered from; asked for another state, it is not there.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

/// What an entry is assumed to take beside its bytes: the key, the names it holds, the places in the table.
const OVERHEAD: usize = 256;

/// What an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The listing of a whole mailbox.
    Listing(MailboxName),
    /// A message with its links.
    Message {
        /// The mailbox that holds it.
        mailbox: MailboxName,
        /// Its id.
        id: MessageId,
        /// What the links start with.
        base: Arc<str>,
    },
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Cache {
    bound: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Entry>,
    old: HashMap<Key, Entry>,
    /// What the young generation takes; the old one takes no more than half of the bound.
    young_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    state: u64,
    body: Bytes,
}

impl Cache {
    /// A cache that takes at most `bound` bytes; zero remembers nothing.
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, generations: Mutex::default() }
    }

    /// The answer that was rendered from this state.
    pub(super) fn find(&self, key: &Key, state: u64) -> Option<Bytes> {
        let (found, forgotten) = {
            let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(entry) = generations.young.get(key) {
                return (entry.state == state).then(|| entry.body.clone());
            }
            let (key, entry) = generations.old.remove_entry(key)?;
            if entry.state != state {
                return None;
            }
            let found = entry.body.clone();
            (found, generations.add(key, entry, self.bound / 2))
        };
        drop(forgotten);
        Some(found)
    }

    /// Remembers an answer, unless it is so large that it would drive out too many others.
    pub(super) fn remember(&self, key: Key, state: u64, body: Bytes) {
        if cost(&body) > self.bound / 8 {
            return;
        }
        let forgotten = {
            let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
            generations.add(key, Entry { state, body }, self.bound / 2)
        };
        drop(forgotten);
    }
}

impl Generations {
    /// Adds an entry to the young generation, and returns what is forgotten for it: freeing that takes a while and
    /// need not happen under the lock.
    fn add(&mut self, key: Key, entry: Entry, half: usize) -> HashMap<Key, Entry> {
        if let Some(replaced) = self.young.remove(&key) {
            self.young_bytes -= cost(&replaced.body);
        }
        let cost = cost(&entry.body);
        let mut forgotten = HashMap::new();
        if self.young_bytes + cost > half {
            forgotten = mem::replace(&mut self.old, mem::take(&mut self.young));
            self.young_bytes = 0;
        }
        self.young_bytes += cost;
        self.young.insert(key, entry);
        forgotten
    }
}

fn cost(body: &Bytes) -> usize {
    body.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::Listing(format!("box{number}").into())
    }

    fn body(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    fn bytes_held(cache: &Cache) -> usize {
        let generations = cache.generations.lock().unwrap();
        generations.young.values().chain(generations.old.values()).map(|entry| cost(&entry.body)).sum()
    }

    #[test]
    fn an_answer_is_found_for_its_state_only() {
        let cache = Cache::new(100_000);
        cache.remember(key(1), 7, body(10));
        assert_eq!(cache.find(&key(1), 7), Some(body(10)));
        assert_eq!(cache.find(&key(1), 8), None);
        assert_eq!(cache.find(&key(2), 7), None);
        cache.remember(key(1), 8, body(20));
        assert_eq!(cache.find(&key(1), 7), None);
        assert_eq!(cache.find(&key(1), 8), Some(body(20)));
    }

    #[test]
    fn the_bound_holds_and_what_is_in_use_stays() {
        let cache = Cache::new(100_000);
        cache.remember(key(0), 0, body(1000));
        for number in 1..1000 {
            cache.remember(key(number), 0, body(number * 10 % 5000));
            assert!(bytes_held(&cache) <= 100_000, "after {number}");
            assert!(cache.find(&key(0), 0).is_some(), "after {number}");
        }
        assert!(cache.find(&key(1), 0).is_none());
    }

    #[test]
    fn replacing_an_answer_does_not_count_it_twice() {
        let cache = Cache::new(100_000);
        cache.remember(key(0), 0, body(1000));
        for state in 0..1000 {
            cache.remember(key(1), state, body(1000));
        }
        assert!(cache.find(&key(0), 0).is_some());
    }

    #[test]
    fn one_large_answer_does_not_drive_out_the_rest() {
        let cache = Cache::new(8000);
        cache.remember(key(1), 0, body(8000));
        assert_eq!(cache.find(&key(1), 0), None);
        let none = Cache::new(0);
        none.remember(key(1), 0, body(0));
        assert_eq!(none.find(&key(1), 0), None);
    }
}
